/* SPDX-License-Identifier: MIT */
#include "sched/internal.h"

/* The only thread-local of the library: which worker am I. Never cached across a point where code may move to another
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

uint32_t hive_worker_current(void)
{
	return current ? current->self_id : HIVE_WORKER_NONE;
}

struct hive *hive_current(void)
{
	return current ? current->hive : NULL;
}
