/* SPDX-License-Identifier: MIT */
#include "sched/internal.h"

/* Which worker am I. Never cached across a point where code may move to another
 * thread; initial-exec because a shared library's general model costs a call on every post.                           */
_Thread_local struct worker *hive__current_worker __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The same, for guests, who ask all the time. */
static _Thread_local struct guest_place *place __attribute__((tls_model("initial-exec")));

void hive__set_current(struct worker *w)
{
	hive__current_worker = w;
	place = w && w->kind == HIVE_WORKER_IO ? &w->place : NULL;
}

struct guest_place *hive__place(void)
{
	return place;
}

/* Waiting on this thread makes the first of these go on: they have no threads, and were started here; the last one first. */
static _Thread_local struct hive *worlds;

struct hive *hive__guest_world(void)
{
	return worlds;
}

void hive__enter_world(struct hive *hive)
{
	hive->outer_world = worlds;
	worlds = hive;
}

void hive__leave_world(struct hive *hive)
{
	struct hive **at = &worlds;

	while (*at && *at != hive)
		at = &(*at)->outer_world;
	if (*at)
		*at = hive->outer_world;
}

void **hive__task_slot(void)
{
	return hive__current_worker ? &hive__current_worker->task_slot : NULL;
}

uint32_t hive_worker_current(void)
{
	return hive__current_worker ? hive__current_worker->self_id : HIVE_WORKER_NONE;
}

struct hive *hive_current(void)
{
	return hive__current_worker ? hive__current_worker->hive : NULL;
}
