/* SPDX-License-Identifier: MIT */
#pragma once
/* A hive of two IO workers on the core epoll, with the calls to the core counted: what was registered under a number of old is found out by a
 * change in vain, some milliseconds late.                                                                                     */
#include <stdatomic.h>

#include "support/net.h"

static struct hive_core_ops counted;
static const struct hive_core_ops *counted_epoll;
static atomic_int counted_added, counted_modified,
	counted_in_vain; /* counted_in_vain: changes of what was not registered any more */

static inline int open_counted(void *arg, struct hive_core **ret_core)
{
	int r = counted_epoll->open(arg, ret_core);

	if (r == 0)
		(*ret_core)->ops = &counted;
	return r;
}

static inline int add_counted(struct hive_core *core, struct hive_source *source)
{
	atomic_fetch_add(&counted_added, 1);
	return counted_epoll->add(core, source);
}

static inline int modify_counted(struct hive_core *core, struct hive_source *source)
{
	int r = counted_epoll->modify(core, source);

	atomic_fetch_add(&counted_modified, 1);
	if (r < 0)
		atomic_fetch_add(&counted_in_vain, 1);
	return r;
}

/* There are `compute` compute workers too. The second IO worker: *ret_there. */
static inline struct hive *counted_start(int32_t compute, uint32_t *ret_there)
{
	struct hive_worker_options io = { .kind = HIVE_WORKER_IO, .core = &counted };
	struct hive_worker_options other = { .kind = HIVE_WORKER_COMPUTE };
	struct hive_options none = { 0 };
	struct hive *hive;

	CHECK_OK(hive_core_find("epoll", &counted_epoll));
	counted = *counted_epoll;
	counted.open = open_counted;
	counted.add = add_counted;
	counted.modify = modify_counted;
	atomic_store(&counted_added, 0);
	atomic_store(&counted_modified, 0);
	atomic_store(&counted_in_vain, 0);
	CHECK_OK(hive_create(&none, &hive));
	CHECK_OK(hive_attach(hive, &io, NULL));
	CHECK_OK(hive_attach(hive, &io, ret_there));
	for (int32_t i = 0; i < compute; i++)
		CHECK_OK(hive_attach(hive, &other, NULL));
	CHECK_OK(hive_start(hive));
	return hive;
}

static inline void counted_end(struct hive *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, hive_deadline(hive, HIVE_S(60))));
	CHECK_OK(hive_join(hive, hive_deadline(hive, HIVE_S(60))));
	CHECK_OK(hive_destroy(hive));
}

static inline void counted_run(struct hive *hive, uint32_t worker, hive_fiber_fn *fn, void *arg)
{
	struct hive_fiber_options options = { .worker = worker };
	struct hive_fiber *fiber;

	CHECK_OK(hive_spawn(hive, fn, arg, &options, &fiber));
	CHECK_OK(hive_fiber_join(fiber, hive_deadline(hive, HIVE_S(60)), NULL));
}
