/* SPDX-License-Identifier: MIT */
/* Priorities of compute tasks: shares, exactly; nobody starves; what is empty costs nothing; nothing is lost at the end. */
#include <pthread.h>
#include <string.h>

#include "support/dump.h"
#include "support/lone.h"

enum { WORKERS_MAX = 8, TASKS = 300 };

static const char letters[] = "NHL"; /* by enum hive_priority */

static struct {
	char text[8 * TASKS]; /* the level of each task that ran, in order */
	int used;
	int last[LEVELS]; /* number of the last one that ran */
	bool disorder;
} ran;

struct note {
	enum hive_priority level;
	int number;
};

static struct note notes[LEVELS][2 * TASKS];

static void run(void *arg)
{
	struct note *note = arg;

	CHECK(ran.used < (int)sizeof ran.text - 1);
	ran.text[ran.used++] = letters[note->level];
	ran.text[ran.used] = 0;
	ran.disorder |= note->number <= ran.last[note->level];
	ran.last[note->level] = note->number;
}

static void clear_log(void)
{
	memset(&ran, 0, sizeof ran);
	for (int i = 0; i < LEVELS; i++)
		ran.last[i] = -1;
}

static void open_world(struct fake *f, int compute)
{
	*f = (struct fake){ 0 };
	fake_create(f, (struct hive_options){ .io_workers = 1, .compute_workers = compute });
	fake_start(f);
	fake_settle(f);
	clear_log();
	for (int level = 0; level < LEVELS; level++)
		for (int i = 0; i < 2 * TASKS; i++)
			notes[level][i] = (struct note){ (enum hive_priority)level, i };
}

static void post(struct fake *f, enum hive_priority level, int first, int count)
{
	for (int i = first; i < first + count; i++)
		CHECK_OK(hive_post_compute_at(f->hive, level, run, &notes[level][i]));
}

/* A beat of one compute worker. */
static void step(struct fake *f, int worker)
{
	fake_step(f, f->workers[1 + worker].id);
}

static int count_of(const char *text, int n, char letter)
{
	int count = 0;

	for (int i = 0; i < n; i++)
		count += text[i] == letter;
	return count;
}

static struct hive_stats stats_of(struct fake *f)
{
	struct hive_stats s;

	CHECK_OK(hive_stats_read(f->hive, &s));
	return s;
}

/* The figures that the headers promise are those of the parameter. */
TEST(a_round_has_the_shares_that_are_promised)
{
	CHECK_EQ(LEVEL_TURNS, 21);
	CHECK_EQ(count_of(TUNE_LEVEL_TURNS, LEVEL_TURNS, 'H'), 16);
	CHECK_EQ(count_of(TUNE_LEVEL_TURNS, LEVEL_TURNS, 'N'), 4);
	CHECK_EQ(count_of(TUNE_LEVEL_TURNS, LEVEL_TURNS, 'L'), 1);
}

/* Whoever makes the next beat: the turns belong to the hive. Every row of 21 tasks has the shares, wherever it begins. */
TEST(shares_are_exact_whatever_the_number_of_workers)
{
	for (int workers = 1; workers <= WORKERS_MAX; workers++) {
		struct fake f;

		open_world(&f, workers);
		for (int level = 0; level < LEVELS; level++)
			post(&f, (enum hive_priority)level, 0, TASKS);
		for (int i = 0; i < 10 * LEVEL_TURNS; i++)
			step(&f, i * i % workers);
		CHECK_EQ(ran.used, 10 * LEVEL_TURNS);
		for (int i = 0; i + LEVEL_TURNS <= ran.used; i++) {
			CHECK_EQ(count_of(ran.text + i, LEVEL_TURNS, 'H'), 16);
			CHECK_EQ(count_of(ran.text + i, LEVEL_TURNS, 'N'), 4);
			CHECK_EQ(count_of(ran.text + i, LEVEL_TURNS, 'L'), 1);
		}
		CHECK(!ran.disorder);
		fake_destroy(&f);
	}
}

/* Without one of the levels the others share its turns as they share the rest. */
TEST(a_level_that_is_empty_leaves_its_share_to_the_others)
{
	static const struct {
		enum hive_priority more, less;
		int of_more, of_less;
	} pairs[] = {
		{ HIVE_PRIORITY_HIGH, HIVE_PRIORITY_NORMAL, 16, 4 },
		{ HIVE_PRIORITY_HIGH, HIVE_PRIORITY_LOW, 16, 1 },
		{ HIVE_PRIORITY_NORMAL, HIVE_PRIORITY_LOW, 4, 1 },
	};

	for (int i = 0; i < 3; i++) {
		int round = pairs[i].of_more + pairs[i].of_less;
		struct fake f;

		open_world(&f, 2);
		post(&f, pairs[i].more, 0, TASKS);
		post(&f, pairs[i].less, 0, TASKS);
		for (int n = 0; n < 8 * round; n++)
			step(&f, n % 2);
		CHECK_EQ(ran.used, 8 * round); /* each beat found something */
		for (int n = 0; n + round <= ran.used; n++)
			CHECK_EQ(count_of(ran.text + n, round, letters[pairs[i].less]), pairs[i].of_less);
		fake_destroy(&f);
	}
}

/* Alone, each level is the pool that there always was: in order, one for each beat, and no turn is spent. */
TEST(one_level_alone_runs_in_order)
{
	for (int level = 0; level < LEVELS; level++) {
		struct fake f;

		open_world(&f, 1);
		post(&f, (enum hive_priority)level, 0, 50);
		for (int i = 1; i <= 50; i++) {
			step(&f, 0);
			CHECK_EQ(ran.used, i);
		}
		CHECK_EQ(load_relaxed(&f.hive->compute_pool.turn), 0);
		CHECK(!ran.disorder);
		CHECK_EQ(count_of(ran.text, 50, letters[level]), 50);
		fake_destroy(&f);
	}
}

/* At whatever moment it comes, and whoever takes: fewer than a round of others go first. Some moments need all of these. */
TEST(a_low_task_waits_for_less_than_a_round)
{
	int longest = 0;

	for (int workers = 1; workers <= WORKERS_MAX; workers += 3) {
		for (int moment = 0; moment < 2 * LEVEL_TURNS; moment++) {
			struct fake f;
			const char *low;

			open_world(&f, workers);
			post(&f, HIVE_PRIORITY_HIGH, 0, TASKS);
			post(&f, HIVE_PRIORITY_NORMAL, 0, TASKS);
			for (int i = 0; i < moment; i++)
				step(&f, i % workers);
			post(&f, HIVE_PRIORITY_LOW, 0, 1);
			for (int i = 0; i < LEVEL_TURNS; i++)
				step(&f, (moment + i) % workers);
			low = strchr(ran.text, 'L');
			CHECK(low);
			CHECK(low - ran.text - moment < LEVEL_TURNS);
			if (longest < low - ran.text - moment)
				longest = (int)(low - ran.text - moment);
			fake_destroy(&f);
		}
	}
	CHECK_EQ(longest, LEVEL_TURNS - 1);
}

/* What takes long keeps its worker, not the turns: the others go on with the round. */
static struct fake *world;

static void stay_while_others_take(void *arg)
{
	(void)arg;
	for (int i = 0; i < LEVEL_TURNS; i++)
		step(world, 1);
}

TEST(a_long_task_does_not_hold_up_the_round)
{
	struct fake f;

	world = &f;
	open_world(&f, 2);
	CHECK_OK(hive_post_compute_at(f.hive, HIVE_PRIORITY_HIGH, stay_while_others_take, NULL));
	post(&f, HIVE_PRIORITY_HIGH, 0, TASKS);
	post(&f, HIVE_PRIORITY_LOW, 0, 3);
	step(&f, 0);
	CHECK_EQ(ran.used, LEVEL_TURNS);
	CHECK(count_of(ran.text, ran.used, 'L') >= 1);
	fake_destroy(&f);
}

struct poster {
	struct hive *hive;
	int number;
};

static void *post_low(void *arg)
{
	struct poster *p = arg;

	CHECK_OK(hive_post_compute_at(p->hive, HIVE_PRIORITY_LOW, run, &notes[HIVE_PRIORITY_LOW][p->number]));
	return NULL;
}

/* Each thread that posts has a lane of its own. One that keeps its lane full does not hide the others: each round begins with another lane. */
TEST(each_posting_thread_has_its_turn_within_a_level)
{
	enum { POSTERS = POOL_LANES - 2 };
	struct poster posters[POSTERS];
	struct fake f;
	int seen = 0;

	open_world(&f, 3);
	for (int i = 0; i < POSTERS; i++) {
		pthread_t thread;

		posters[i] = (struct poster){ f.hive, TASKS + i };
		CHECK_EQ(pthread_create(&thread, NULL, post_low, &posters[i]), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
	post(&f, HIVE_PRIORITY_LOW, 0, TASKS);
	for (int round = 0; round < POOL_LANES * 2; round++) {
		post(&f, HIVE_PRIORITY_HIGH, 0, 17);
		for (int i = 0; i < 17; i++) {
			step(&f, i % 3);
			seen += ran.text[ran.used - 1] == 'L' && ran.last[HIVE_PRIORITY_LOW] >= TASKS;
		}
	}
	CHECK_EQ(seen, POSTERS);
	fake_destroy(&f);
}

TEST(a_post_at_any_priority_wakes_one_worker)
{
	for (int level = 0; level < LEVELS; level++) {
		struct fake f;

		open_world(&f, 2);
		fake_reset_wakes(&f);
		post(&f, (enum hive_priority)level, 0, 1);
		CHECK_EQ(f.wakes, 1);
		fake_settle(&f);
		CHECK_EQ(ran.used, 1);
		/* Who takes one and leaves one of another level wakes one more. */
		fake_reset_wakes(&f);
		post(&f, (enum hive_priority)level, 1, 1);
		post(&f, (enum hive_priority)((level + 1) % LEVELS), 0, 1);
		CHECK_EQ(f.wakes, 1);
		step(&f, f.workers[1].wakes ? 0 : 1);
		CHECK_EQ(f.wakes, 2);
		fake_settle(&f);
		CHECK_EQ(ran.used, 3);
		fake_destroy(&f);
	}
}

/* A poster has put its task, and its word to the takers is still to come. */
TEST(nobody_sleeps_while_a_level_has_something)
{
	for (int level = 0; level < LEVELS; level++) {
		struct fake f;

		open_world(&f, 1);
		post(&f, (enum hive_priority)level, 0, 1);
		and_seq(&f.hive->compute_pool.pools[level].ready, 0u);
		step(&f, 0);
		CHECK_EQ(ran.used, 0);
		step(&f, 0);
		CHECK_EQ(ran.used, 1);
		fake_destroy(&f);
	}
}

TEST(lengths_are_told_by_level)
{
	struct fake f;

	open_world(&f, 1);
	post(&f, HIVE_PRIORITY_NORMAL, 0, 2);
	CHECK(!strstr(dump_text(f.hive), "of these"));
	post(&f, HIVE_PRIORITY_HIGH, 0, 3);
	post(&f, HIVE_PRIORITY_LOW, 0, 5);
	CHECK_EQ(stats_of(&f).compute_pool, 10);
	CHECK_EQ(stats_of(&f).compute_high, 3);
	CHECK_EQ(stats_of(&f).compute_low, 5);
	CHECK(strstr(dump_text(f.hive), "compute pool 10, of these high 3, of these low 5"));
	fake_settle(&f);
	CHECK_EQ(stats_of(&f).compute_pool, 0);
	CHECK_EQ(stats_of(&f).compute_high, 0);
	CHECK_EQ(stats_of(&f).compute_low, 0);
	CHECK_EQ(ran.used, 10);
	fake_destroy(&f);
}

/* All or none, one wake for all of them, in order. */
TEST(many_are_posted_at_one_priority)
{
	struct hive_task tasks[6];
	struct fake f;

	open_world(&f, 2);
	fake_reset_wakes(&f);
	for (int i = 0; i < 6; i++)
		tasks[i] = (struct hive_task){ run, &notes[HIVE_PRIORITY_LOW][i] };
	CHECK_OK(hive_post_compute_at_many(f.hive, HIVE_PRIORITY_LOW, tasks, 6));
	CHECK_EQ(f.wakes, 1);
	CHECK_EQ(stats_of(&f).compute_low, 6);
	CHECK_OK(hive_post_compute_at_many(f.hive, HIVE_PRIORITY_HIGH, NULL, 0));
	tasks[3].fn = NULL;
	CHECK_ERR(hive_post_compute_at_many(f.hive, HIVE_PRIORITY_HIGH, tasks, 6), -EINVAL);
	CHECK_EQ(stats_of(&f).compute_pool, 6);
	fake_settle(&f);
	CHECK_STR(ran.text, "LLLLLL");
	CHECK(!ran.disorder);
	fake_destroy(&f);
}

TEST(bad_arguments_are_refused)
{
	struct hive_task task = { run, &notes[0][0] };
	struct fake f;

	open_world(&f, 1);
	CHECK_ERR(hive_post_compute_at(NULL, HIVE_PRIORITY_LOW, run, NULL), -EINVAL);
	CHECK_ERR(hive_post_compute_at(f.hive, HIVE_PRIORITY_LOW, NULL, NULL), -EINVAL);
	for (int wrong = -1; wrong <= 4; wrong += wrong == -1 ? 4 : 1) {
		CHECK_ERR(hive_post_compute_at(f.hive, (enum hive_priority)wrong, run, NULL), -EINVAL);
		CHECK_ERR(hive_post_compute_at_many(f.hive, (enum hive_priority)wrong, &task, 1), -EINVAL);
		CHECK_ERR(hive_post_compute_at_many(f.hive, (enum hive_priority)wrong, NULL, 0), -EINVAL);
	}
	CHECK_ERR(hive_post_compute_at_many(NULL, HIVE_PRIORITY_LOW, &task, 1), -EINVAL);
	CHECK_ERR(hive_post_compute_at_many(f.hive, HIVE_PRIORITY_LOW, NULL, 1), -EINVAL);
	CHECK_EQ(stats_of(&f).posted, 0);
	CHECK_OK(hive_stop(f.hive, HIVE_NOW, HIVE_FOREVER));
	CHECK_ERR(hive_post_compute_at(f.hive, HIVE_PRIORITY_HIGH, run, NULL), -ESHUTDOWN);
	CHECK_ERR(hive_post_compute_at_many(f.hive, HIVE_PRIORITY_HIGH, &task, 1), -ESHUTDOWN);
	CHECK_EQ(stats_of(&f).refused, 2);
	CHECK_EQ(f.drops, 0);
	fake_destroy(&f);
}

/* A drain runs all levels, an end at once hands all of them to the hook. fake_destroy() compares the books. */
TEST(an_end_leaves_no_level_behind)
{
	for (int now = 0; now < 2; now++) {
		struct fake f;

		open_world(&f, 2);
		for (int level = 0; level < LEVELS; level++)
			post(&f, (enum hive_priority)level, 0, 10 * (level + 1));
		CHECK_OK(hive_stop(f.hive, now ? HIVE_NOW : HIVE_DRAIN, HIVE_FOREVER));
		fake_settle(&f);
		CHECK_EQ(ran.used, now ? 0 : 60);
		CHECK_EQ(f.drops, now ? 60 : 0);
		CHECK_EQ(stats_of(&f).compute_pool, 0);
		fake_destroy(&f);
	}
}

/* Nobody to run them: the answers that a drain waits for will not come, at whatever level they are; and a hive that never started. */
TEST(without_workers_all_levels_are_dropped)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	for (int level = 0; level < LEVELS; level++)
		CHECK_OK(hive_post_compute_at(f.hive, (enum hive_priority)level, run, NULL));
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_EQ(f.drops, LEVELS);
	fake_destroy(&f);
}

/* The last compute worker may not go while anything waits for one, at whatever level. */
TEST(the_last_compute_worker_stays_for_any_level)
{
	for (int level = 0; level < LEVELS; level++) {
		struct fake f;

		open_world(&f, 1);
		post(&f, (enum hive_priority)level, 0, 1);
		CHECK_ERR(hive_detach(f.hive, f.workers[1].id, HIVE_FOREVER), -EBUSY);
		fake_settle(&f);
		CHECK_OK(hive_detach(f.hive, f.workers[1].id, HIVE_FOREVER));
		fake_destroy(&f);
	}
}

static int guests_run;

static void run_guest(struct guest *guest)
{
	(void)guest;
	guests_run++;
}

/* What lives on top of the scheduler gives its guests a level; to raise one it gives it again, higher. */
TEST(a_guest_is_raised_by_giving_it_again)
{
	struct guest guest = { .run = run_guest };
	struct fake f;

	open_world(&f, 1);
	guests_run = 0;
	post(&f, HIVE_PRIORITY_LOW, 0, 50);
	CHECK_OK(hive__guest_compute_at(f.hive, &guest, HIVE_PRIORITY_LOW));
	for (int i = 0; i < 3; i++)
		step(&f, 0);
	CHECK_EQ(guests_run, 0);
	CHECK_OK(hive__guest_compute_at(f.hive, &guest, HIVE_PRIORITY_HIGH));
	step(&f, 0);
	CHECK_EQ(guests_run, 1);
	fake_settle(&f);
	CHECK_EQ(guests_run, 2); /* it is told apart by the guest itself */
	CHECK_EQ(ran.used, 50);
	fake_destroy(&f);
	f = (struct fake){ 0 };
	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_ERR(hive__guest_compute_at(f.hive, &guest, HIVE_PRIORITY_HIGH), -ENOTSUP);
	fake_destroy(&f);
}
