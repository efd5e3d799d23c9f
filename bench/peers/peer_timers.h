/* SPDX-License-Identifier: MIT */
/* The measuring side of timer and timer_cancel for the peers in C whose loops have no header of their own: they give a loop of one thread that knows timers. */
#pragma once
#include "peer.h"

struct timed {
	void *handle; /* the loop's own; NULL: not armed */
	size_t place; /* the loop's own */
	int64_t delay_ns, due_ns, late_ns;
};

struct timers_kind {
	void *(*open)(int64_t most); /* so many timers at once */
	void (*arm)(void *loop, struct timed *timed, int64_t delay_ns);
	int (*cancel)(void *loop, struct timed *timed); /* 1: it was armed */
	/* Waits and fires until so many have fired, within the limit; false: they have not. Each that fires: timers_fired(). */
	int (*run)(void *loop, int64_t count, int64_t limit_ns);
	void (*close)(void *loop);
};

void timers_fired(struct timed *timed);

/* Each does its scenario. The bench's exit code. */
int timers_timer(const struct bench_params *params, struct record *result, const struct timers_kind *kind);
int timers_cancel(const struct bench_params *params, struct record *result, const struct timers_kind *kind);
