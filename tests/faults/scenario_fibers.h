/* SPDX-License-Identifier: MIT */
#pragma once
/* The step of scenario.h that is about fibers. */
#include "scenario_base.h"

/* A call in a fiber: what it may say, or an error that is documented; then the fiber goes on without it. */
static inline void attempt_inside(struct scenario *s, int r)
{
	if (r < 0 && r != -ETIMEDOUT && r != -ENOTSUP) /* late; or the compute worker could not be attached */
		judge(s, r, true, "in a fiber", __LINE__);
}

static inline int fiber_count(void *arg)
{
	add_seq(&((struct scenario *)arg)->fibers_ended, 1u);
	return 0;
}

static inline int fiber_live(void *arg)
{
	struct scenario *s = arg;
	struct hive_fiber *child;
	int r;

	attempt_inside(s, hive_fiber_set(&s->fibers_ended, s));
	attempt_inside(s, hive_sleep(HIVE_US(50)));
	attempt_inside(s, hive_offload(fiber_count, s, HIVE_FOREVER, NULL));
	r = hive_spawn(s->hive, fiber_count, s, NULL, &child);
	attempt_inside(s, r);
	if (r == 0 && hive_fiber_join(child, hive_deadline(NULL, HIVE_S(100)), NULL) < 0)
		CHECK_OK(hive_fiber_join(child, HIVE_FOREVER, NULL)); /* that needs no memory */
	CHECK_OK(hive_yield());
	return 7;
}

static inline int fiber_deep(void *arg)
{
	struct scenario *s = arg;

	CHECK_OK(hive_semaphore_acquire(&s->gate, 1, HIVE_FOREVER)); /* all of them are there at once */
	add_seq(&s->deep_ended, 1u);
	return 0;
}

/* Nobody joins them: their stacks gather on their worker. */
static inline void end_deep_fibers(struct scenario *s)
{
	struct hive_fiber_options o = { .worker = HIVE_WORKER_MAIN, .stack_bytes = DEEP };
	uint32_t count = 0;
	int r;

	hive_semaphore_init(&s->gate, 0);
	for (int i = 0; s->running && i < DEEP_FIBERS; i++) {
		ATTEMPT(s, r, hive_spawn(s->hive, fiber_deep, s, &o, NULL));
		count += r == 0;
	}
	CHECK_OK(hive_semaphore_release(&s->gate, DEEP_FIBERS));
	while (load_seq(&s->deep_ended) < count)
		s->pass(s->pass_arg);
}

/* Everything else has ended: what runs now is the fibers'. */
static inline void step_fibers(struct scenario *s)
{
	struct hive_fiber *fibers[SCENARIO_FIBERS];
	struct hive_stats before, after;
	int count = 0, result = 0, r;

	s->steps++;
	CHECK_OK(hive_stats_read(s->hive, &before));
	end_deep_fibers(s);
	for (int i = 0; s->running && i < SCENARIO_FIBERS; i++) {
		struct hive_fiber_options o = { .name = "fiber",
			                        .worker = i % 4 ? HIVE_WORKER_NONE : HIVE_WORKER_MAIN };

		o.stack_bytes = i % 8 ? 0 : 300000;
		ATTEMPT(s, r, hive_spawn(s->hive, fiber_live, s, &o, &fibers[count]));
		count += r == 0;
	}
	ATTEMPT(s, r, hive_dump(s->hive, s->out_fd));
	for (int i = 0; i < count; i++) {
		while ((r = hive_fiber_join(fibers[i], HIVE_NOWAIT, &result)) == -ETIMEDOUT)
			s->pass(s->pass_arg);
		CHECK_OK(r);
		CHECK_EQ(result, 7);
	}
	CHECK_OK(hive_stats_read(s->hive, &after));
	s->ledger->fibers_ran = after.ran - before.ran;
	s->ledger->fibers_cancelled = after.cancelled - before.cancelled;
}
