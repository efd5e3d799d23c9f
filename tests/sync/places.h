/* SPDX-License-Identifier: MIT */
#pragma once
/* What holds at each place where one may wait: not on an IO worker outside a fiber; for others until the deadline; and not any more in a fiber that
 * is cancelled. Who includes this has the places, and says before what they are.                                          */

static ATOMIC(uint32_t) ended;
enum { PLACES = WAIT_PLACES };

static void init(void); /* everything is there, and nothing to be had; crew_open() */
static void finish(void);
/* What would have to wait gives this, whatever the deadline. */
static void wait_everywhere(int64_t deadline_ns, int expected);
/* A fiber that is cancelled at the place with this number. */
static void wait_until_cancelled(int place);
static bool somebody_waits(int place);

static void task(void *arg)
{
	(void)arg;
	wait_everywhere(HIVE_FOREVER, -EDEADLK);
	wait_everywhere(hive_deadline(NULL, HIVE_S(1000)), -EDEADLK);
	wait_everywhere(HIVE_NOWAIT, -ETIMEDOUT);
	wait_everywhere(-5, -ETIMEDOUT);
	wait_everywhere(hive_now(NULL) - 1, -ETIMEDOUT);
	store_release(&ended, 1);
}

TEST(a_task_of_an_io_worker_never_waits)
{
	store_relaxed(&ended, 0);
	init();
	CHECK_OK(hive_post(crew_hive, task, NULL));
	until(&ended, 1);
	finish();
}

static void impatient(void *arg)
{
	(void)arg;
	wait_everywhere(hive_deadline(NULL, HIVE_MS(1)), -ETIMEDOUT);
	wait_everywhere(HIVE_NOWAIT, -ETIMEDOUT);
	wait_everywhere(hive_now(NULL) - 1, -ETIMEDOUT);
	add_seq(&ended, 1u);
}

TEST(everybody_else_waits_for_the_deadline)
{
	for (int kind = CREW_THREADS; kind <= CREW_MIXED; kind++) {
		struct crew crew;

		store_relaxed(&ended, 0);
		init();
		crew_begin(&crew, (enum crew_kind)kind);
		for (int i = 0; i < 3; i++) { /* one after the other: what they leave must be as it was */
			crew_add(&crew, impatient, NULL);
			until(&ended, (uint32_t)i + 1);
		}
		crew_end(&crew);
		finish();
	}
}

static int waits_in(void *arg)
{
	wait_until_cancelled(*(int *)arg);
	wait_everywhere(HIVE_FOREVER, -ECANCELED);
	wait_everywhere(HIVE_NOWAIT, -ETIMEDOUT);
	return 7;
}

TEST(a_cancelled_fiber_leaves_every_wait)
{
	for (int place = 0; place < PLACES; place++) {
		struct hive_fiber *fiber;
		int result = 0;

		init();
		CHECK_OK(hive_spawn(crew_hive, waits_in, &place, NULL, &fiber));
		while (!somebody_waits(place))
			CHECK_OK(hive_yield());
		CHECK_OK(hive_fiber_cancel(fiber));
		CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
		CHECK_EQ(result, 7);
		CHECK(!somebody_waits(place));
		finish();
	}
}
