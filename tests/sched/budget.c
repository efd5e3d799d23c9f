/* SPDX-License-Identifier: MIT */
/* The adaptive budget: how many local tasks a beat runs, by what comes from outside; and how long the outside waits at most. */
#include "support/lone.h"

static struct lone l;
static int64_t task_ns; /* what each task takes */
static uint32_t done;

static void open_world(struct hive_worker_options options)
{
	memset(&l, 0, sizeof l);
	lone_open(&l, 1, options);
	l.f.now_ns = HIVE_S(1);
	task_ns = 0;
	done = 0;
}

static uint32_t budget(void)
{
	struct hive_worker_stats stats;

	CHECK_OK(hive_worker_stats_read(l.f.hive, l.ids[0], &stats));
	return (uint32_t)stats.budget;
}

static void work(void *arg)
{
	(void)arg;
	done++;
	l.f.now_ns += task_ns;
}

static void fill(int n)
{
	lone_become(&l, 0);
	for (int i = 0; i < n; i++)
		CHECK_OK(hive_post_local(work, NULL));
	lone_become(&l, LONE_NOBODY);
}

/* How many local tasks a beat runs of as many as there can be. */
static uint32_t beat(void)
{
	fill(1000 - (int)local_size(&l.w[0]->local));
	done = 0;
	CHECK(lone_beat(&l, 0));
	return done;
}

static void end(void)
{
	while (local_size(&l.w[0]->local) > 0)
		lone_beat(&l, 0);
	lone_close(&l);
}

/* V-32, V-33: more and more while nothing else waits; less and less while something does; never beyond its limits. */
TEST(the_budget_grows_and_shrinks_within_its_limits)
{
	uint32_t before;

	open_world((struct hive_worker_options){ .local_budget = HIVE_OFF });
	CHECK_EQ(budget(), TUNE_ADAPTIVE_FIRST);
	for (int i = 0; i < 40; i++) {
		before = budget();
		CHECK_EQ(beat(), before < 1000 ? before : 1000);
		CHECK(budget() > before || before >= 1000);
		CHECK(budget() <= TUNE_ADAPTIVE_MOST);
	}
	for (int i = 0; i < 20; i++) {
		before = budget();
		CHECK_OK(hive_post_to(l.f.hive, l.ids[0], fake_note, number(1)));
		beat();
		CHECK(budget() < before || before == TUNE_ADAPTIVE_LEAST);
	}
	CHECK_EQ(budget(), TUNE_ADAPTIVE_LEAST);
	end();
}

/* An event is as good as a letter. */
TEST(events_make_it_shrink)
{
	uint32_t before;

	open_world((struct hive_worker_options){ .local_budget = HIVE_OFF });
	beat();
	before = budget();
	bump(&l.w[0]->stats.events, 1); /* as hive_source_deliver() does */
	beat();
	CHECK_EQ(budget(), before / 2);
	end();
}

/* A beat that had less to do than it may says nothing. */
TEST(a_budget_that_was_not_used_up_stays)
{
	open_world((struct hive_worker_options){ .local_budget = HIVE_OFF });
	for (int i = 0; i < 10; i++) {
		fill(3);
		lone_beat(&l, 0);
	}
	CHECK_EQ(budget(), TUNE_ADAPTIVE_FIRST);
	end();
}

/* V-11, V-33: a number is a number. */
TEST(a_fixed_budget_stays_fixed)
{
	open_world((struct hive_worker_options){ .local_budget = 64 });
	for (int i = 0; i < 20; i++) {
		if (i % 2)
			CHECK_OK(hive_post_to(l.f.hive, l.ids[0], fake_note, number(1)));
		CHECK_EQ(beat(), 64);
		CHECK_EQ(budget(), 64);
	}
	end();
}

/* ---- how long step 1 waits ---- */

static int64_t last_turn_ns, longest_ns;

static void look_at_clock(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)script, (void)timeout_ns;
	if (last_turn_ns != 0 && l.f.now_ns - last_turn_ns > longest_ns)
		longest_ns = l.f.now_ns - last_turn_ns;
	last_turn_ns = l.f.now_ns;
}

static void again_privately(void *arg)
{
	work(arg);
	CHECK_OK(hive_post_self(again_privately, NULL));
}

static void again_later(void *arg)
{
	work(arg);
	CHECK_OK(hive_post_self_after(0, again_later, NULL, NULL));
}

static void again_locally(void *arg)
{
	work(arg);
	CHECK_OK(hive_post_local(again_locally, NULL));
}

static void flood_everything(void)
{
	lone_become(&l, 0);
	for (int i = 0; i < 300; i++) {
		CHECK_OK(hive_post_self(again_privately, NULL));
		CHECK_OK(hive_post_self_after(0, again_later, NULL, NULL));
		CHECK_OK(hive_post_local(again_locally, NULL));
	}
	lone_become(&l, LONE_NOBODY);
}

/* V-31: three steps with a slice each, and the tasks that were under way when it was over, or that were so short that nobody
 * looked at the clock between them; whatever the budget.                                                                 */
TEST(step_one_never_waits_longer_than_three_slices_and_a_few_tasks)
{
	for (int adaptive = 0; adaptive < 2; adaptive++)
		for (int64_t ns = 100; ns <= HIVE_MS(1); ns *= 10) {
			int64_t tasks = ns * TUNE_TINY < TUNE_SLICE_NS    ? TUNE_TINY_STRIDE
			                : ns * TUNE_SHORT < TUNE_SLICE_NS ? TUNE_SHORT_STRIDE
			                                                  : 1;

			open_world((struct hive_worker_options){ .local_budget = adaptive ? HIVE_OFF : 65536,
			                                         .private_budget = 65536,
			                                         .timer_budget = 65536,
			                                         .local_capacity = 1024 });
			task_ns = ns;
			last_turn_ns = longest_ns = 0;
			l.scripts[0].in_turn = look_at_clock;
			flood_everything();
			for (int i = 0; i < 50; i++)
				CHECK(lone_beat(&l, 0));
			CHECK(longest_ns > 0);
			CHECK(longest_ns <= 3 * (TUNE_SLICE_NS + tasks * ns));
			lone_close(&l);
		}
}
