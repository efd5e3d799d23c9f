/* SPDX-License-Identifier: MIT */
#include "floor.h"
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void *answer_wakes(void *arg)
{
	struct floor *floor = arg;
	for (;;) {
		struct epoll_event event;
		if (epoll_wait(floor->epoll, &event, 1, -1) < 1)
			continue; /* a signal */
		struct ping_slot *slot = atomic_load_explicit(&floor->slot, memory_order_acquire);
		if (!slot)
			return NULL;
		ping_answer(slot);
	}
}

int floor_submit(void *arg, struct ping_slot *slot)
{
	struct floor *floor = arg;
	const uint64_t one = 1;
	atomic_store_explicit(&floor->slot, slot, memory_order_release);
	return write(floor->event, &one, sizeof one) == (ssize_t)sizeof one ? 0 : -errno;
}

static void pin_thread(pthread_t thread, int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	pthread_setaffinity_np(thread, sizeof set, &set);
}

static int open_descriptors(struct floor *floor)
{
	struct epoll_event interest = { .events = EPOLLIN | EPOLLET };
	floor->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	floor->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (floor->event < 0 || floor->epoll < 0 ||
	    epoll_ctl(floor->epoll, EPOLL_CTL_ADD, floor->event, &interest) != 0)
		return -errno;
	return 0;
}

static void close_descriptors(struct floor *floor)
{
	if (floor->event >= 0)
		close(floor->event);
	if (floor->epoll >= 0)
		close(floor->epoll);
}

int floor_open(struct floor *floor, int cpu)
{
	int error = open_descriptors(floor);
	atomic_init(&floor->slot, NULL);
	if (!error)
		error = -pthread_create(&floor->thread, NULL, answer_wakes, floor);
	if (error) {
		close_descriptors(floor);
		return bench_failed("the raw eventfd thread", error);
	}
	if (cpu >= 0)
		pin_thread(floor->thread, cpu);
	return BENCH_OK;
}

void floor_close(struct floor *floor)
{
	floor_submit(floor, NULL);
	pthread_join(floor->thread, NULL);
	close_descriptors(floor);
}
