/* SPDX-License-Identifier: MIT */
#include "sched/internal.h"

/* Which worker am I. Never cached across a point where code may move to another
 * thread; initial-exec because a shared library's general model costs a call on every post.                           */
static _Thread_local struct worker *current __attribute__((tls_model("initial-exec")));

struct worker *hive__current(void)
{
	return current;
}

void hive__set_current(struct worker *w)
{
	current = w;
}

/* Waiting on this thread makes that hive go on: it has no threads, and was started here. */
static _Thread_local struct hive *world;

struct hive *hive__guest_world(void)
{
	return world;
}

void hive__set_world(struct hive *hive)
{
	world = hive;
}

uint32_t hive_worker_current(void)
{
	return current ? current->self_id : HIVE_WORKER_NONE;
}

struct hive *hive_current(void)
{
	return current ? current->hive : NULL;
}
