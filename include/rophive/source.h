/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/time.h>

/* Readiness of something the system shows: embed, init, start on this worker. Close the descriptor only after
 * stop. One source per descriptor and worker (-EEXIST). Callbacks run in step 1 of the beat. When the hive stops
 * or the worker is detached, sources still started are stopped for you and counted.                            */
HIVE_BEGIN
struct hive_source;
typedef void hive_source_fn(struct hive_source *source, uint32_t events);

enum hive_source_kind {
	HIVE_SOURCE_FD = 1,     /* file descriptor */
	HIVE_SOURCE_HANDLE = 2, /* Windows handle */
	HIVE_SOURCE_USER = 16   /* first of the kinds of your own cores; the last is 31 */
};

enum {
	HIVE_EVENT_IN = 1,
	HIVE_EVENT_OUT = 2,
	HIVE_EVENT_PRI = 4,
	HIVE_EVENT_HUP = 8, /* HUP and ERR are always reported */
	HIVE_EVENT_ERR = 16,
	HIVE_EVENT_EDGE = 32, /* EDGE and ONCE are asked for, never reported; EDGE: -ENOTSUP on cores without it */
	HIVE_EVENT_ONCE = 64,
	HIVE_EVENT_END = 128 /* asked for: the peer sends no more; a core that cannot tell does not report it */
};

struct hive_source {
	/* yours */
	void *arg;
	/* read-only */
	intptr_t handle;
	uint32_t kind, events;
	/* private */
	uint32_t state, index; /* index belongs to the core while started */
	hive_source_fn *on_ready;
	void *owner, *next, *prev;
	void *soon; /* what on_ready looks at first: a core may fetch it into the cache beforehand */
};

/* Any thread. */
void hive_source_init(struct hive_source *source, enum hive_source_kind kind, intptr_t handle, uint32_t events,
                      hive_source_fn *on_ready, void *arg);
/* Owner thread (this worker becomes it). -ENOTSUP: the core does not take this kind (also warned about; debug
 * builds: assertion). -EALREADY, -EINVAL (handle < 0, unknown event bits), -EPERM, -ESHUTDOWN, system codes.      */
HIVE_CHECKED int hive_source_start(struct hive_source *source);
/* Owner thread. Also re-arms after HIVE_EVENT_ONCE. -EINVAL: not started. */
HIVE_CHECKED int hive_source_modify(struct hive_source *source, uint32_t events);
/* Owner thread. 1: was started; 0: was not. on_ready is not called again, not even for events of the same batch. */
int hive_source_stop(struct hive_source *source);
HIVE_END
