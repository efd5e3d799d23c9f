/* SPDX-License-Identifier: MIT */
#pragma once
#include "ping.h"
#include <pthread.h>

/* The least that waking a thread through an eventfd can cost here: it blocks in epoll_wait and does nothing else.
 * Edge-triggered and never read: one system call on each side.                                                  */
struct floor {
	int event, epoll;
	pthread_t thread;
	_Atomic(struct ping_slot *) slot; /* whom to answer; NULL: end */
};

/* cpu < 0: anywhere. The bench's exit code. */
int floor_open(struct floor *floor, int cpu);
void floor_close(struct floor *floor);
/* For ping_target.submit; arg is the floor. */
int floor_submit(void *arg, struct ping_slot *slot);
