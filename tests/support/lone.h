/* SPDX-License-Identifier: MIT */
#pragma once
/* Workers of the fake world that make the beat of a real thread, the one that waits inside the core. The test calls
 * each beat; what the fake core's in_turn does happens while the worker sleeps there.                               */
#include "support/fake.h"
#include "support/kind.h"
#include "test.h"

enum { LONE_WORKERS = 8 };

struct lone {
	struct fake f;
	struct fake_core_script scripts[LONE_WORKERS];
	struct worker *w[LONE_WORKERS];
	uint32_t ids[LONE_WORKERS];
	int count;
};

/* The code that follows runs as worker i; LONE_NOBODY: as a foreign thread. */
enum { LONE_NOBODY = -1 };
static inline void lone_become(struct lone *l, int i)
{
	hive__set_current(i == LONE_NOBODY ? NULL : l->w[i]);
}

static inline void lone_open_preset(struct lone *l, int count, struct hive_worker_options options,
                                    enum hive_preset preset)
{
	fake_create(&l->f, (struct hive_options){ .preset = preset });
	l->count = count;
	if (!options.timers)
		options.timers = test_timers;
	for (int i = 0; i < count; i++) {
		options.core = &fake_core;
		options.core_arg = &l->scripts[i];
		CHECK_OK(hive_attach(l->f.hive, &options, &l->ids[i]));
	}
	fake_start(&l->f);
	for (int i = 0; i < count; i++) {
		l->w[i] = hive__slot(&l->f.hive->io, (uint32_t)i);
		lone_become(l, i);
		hive__worker_start(l->w[i]);
	}
	lone_become(l, LONE_NOBODY);
}

static inline void lone_open(struct lone *l, int count, struct hive_worker_options options)
{
	lone_open_preset(l, count, options, HIVE_PRESET_DEFAULT);
}

/* False: the worker would leave now. */
static inline bool lone_beat(struct lone *l, int i)
{
	struct worker *outer = hive__current();
	bool goes_on;

	lone_become(l, i);
	goes_on = hive__beat(l->w[i]);
	hive__set_current(outer);
	return goes_on;
}

static inline void lone_close(struct lone *l)
{
	lone_become(l, LONE_NOBODY);
	fake_destroy(&l->f);
}

/* The time-out of the last turn of worker i. */
static inline int64_t lone_timeout(const struct lone *l, int i)
{
	const struct fake_core_script *script = &l->scripts[i];

	CHECK(script->turns > 0 && script->turns <= FAKE_TURNS);
	return script->timeouts[script->turns - 1];
}

static inline void *number(int n)
{
	return (void *)(intptr_t)n;
}

/* For CHECK_MISUSE of what comes after the look at the fork mark: its child is to pass for the parent. */
static inline int lone_start_source(struct lone *l, struct hive_source *source)
{
	store_relaxed(l->f.hive->mark, 1u);
	return hive_source_start(source);
}
