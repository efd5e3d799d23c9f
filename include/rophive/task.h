/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/error.h>

typedef void hive_fn(void *arg);

/* A task is a value: two words, copied in, copied out, called once. It has no identity, so there is nothing
 * to free and nothing to cancel by mistake.                                                              */
struct hive_task {
	hive_fn *fn;
	void *arg;
};

/* Never guessed: the call says which pool */
enum hive_kind {
	HIVE_MICRO = 1,  /* short, runs on IO workers */
	HIVE_COMPUTE = 2 /* heavy, runs on compute workers */
};

/* Of compute tasks. While several have tasks waiting, of 21 that begin 16 are HIGH, 4 NORMAL and 1 LOW, whatever the number of workers; one
 * that has none leaves its share to the others. So LOW waits, but not for ever; and a priority is no order: nothing that
 * runs is interrupted.                                                                                                  */
enum hive_priority { HIVE_PRIORITY_NORMAL = 0, HIVE_PRIORITY_HIGH = 1, HIVE_PRIORITY_LOW = 2 };

/* Zero is refused: nothing stops by accident */
enum hive_stop_mode {
	HIVE_DRAIN = 1, /* what is queued runs first */
	HIVE_NOW = 2    /* what has not begun is dropped */
};

#define HIVE_WORKER_NONE 0u         /* no worker; refused wherever a worker is asked for */
#define HIVE_WORKER_MAIN UINT32_MAX /* the first attached IO worker, whatever its id */
