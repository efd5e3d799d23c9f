/* SPDX-License-Identifier: MIT */
/* Delayed posts and timers as their users see them (R-56 … … ). */
#include <pthread.h>

#include "support/fake.h"
#include "support/real.h"
#include "test.h"
#include "support/kinds.h"

static void *n(int number)
{
	return (void *)(intptr_t)number;
}

static int ran;
static uint32_t ran_on;

static void count(void *arg)
{
	(void)arg;
	ran++;
	ran_on = hive_worker_current();
}

static uint64_t timers_of(const struct fake *f, int worker)
{
	struct hive_worker_stats stats;

	CHECK_OK(hive_worker_stats_read(f->hive, f->workers[worker].id, &stats));
	return stats.timers;
}

/* whatever the order of the posts, they run in the order of their deadlines, equal ones in the order of
 * posting; none before its time, not by one nanosecond.                                                                   */
TEST(delayed_posts_run_in_the_order_of_their_deadlines_and_never_early)
{
	static const int order[] = { 5, 1, 4, 2, 3, 1, 5 };
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	fake_log_clear();
	for (int i = 0; i < 7; i++)
		CHECK_OK(hive_post_after(f.hive, HIVE_MS(order[i]), fake_note, n(10 * order[i] + i), NULL));
	fake_advance(&f, HIVE_MS(1) - 1);
	CHECK_STR(fake_log(), "");
	fake_advance(&f, 1);
	CHECK_STR(fake_log(), "11 15");
	fake_advance(&f, HIVE_MS(2));
	CHECK_STR(fake_log(), "11 15 23 34");
	fake_advance(&f, HIVE_S(1));
	CHECK_STR(fake_log(), "11 15 23 34 42 50 56");
	fake_destroy(&f);
}

/* the count rises when it is posted, before its worker has seen it, and falls when it ran, was cancelled or
 * dropped.                                                                                                              */
TEST(the_published_count_of_timers_is_exact)
{
	struct fake f = { 0 };
	uint64_t ids[10];

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	fake_settle(&f);
	for (int i = 0; i < 10; i++) {
		CHECK_OK(hive_post_after(f.hive, HIVE_MS(1 + i), count, NULL, &ids[i]));
		CHECK_EQ(timers_of(&f, 0), i + 1);
	}
	fake_settle(&f);
	CHECK_EQ(timers_of(&f, 0), 10);
	fake_advance(&f, HIVE_MS(3));
	CHECK_EQ(timers_of(&f, 0), 7);
	for (int i = 3; i < 6; i++)
		CHECK_OK(hive_post_cancel(f.hive, ids[i]));
	fake_advance(&f, HIVE_MS(4));
	CHECK_EQ(timers_of(&f, 0), 3);
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(f.hive, HIVE_FOREVER));
	CHECK_EQ(worker_timers(hive__slot(&f.hive->io, 0)), 0);
	CHECK_EQ(f.drops, 3);
	fake_destroy(&f);
}

/* a budget per beat; the rest waits for the next beat, which follows at once. */
TEST(due_timers_run_within_a_budget_per_beat)
{
	struct fake f = { 0 };
	struct hive_worker_options three = { .timer_budget = 3 };

	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &three });
	fake_start(&f);
	for (int i = 0; i < 7; i++)
		CHECK_OK(hive_post_after(f.hive, 0, count, NULL, NULL));
	ran = 0;
	CHECK_EQ(fake_step(&f, f.workers[0].id), 0);
	CHECK_EQ(ran, 3);
	CHECK_EQ(fake_step(&f, f.workers[0].id), 0);
	CHECK_EQ(ran, 6);
	CHECK_EQ(fake_step(&f, f.workers[0].id), HIVE_FOREVER);
	CHECK_EQ(ran, 7);
	fake_destroy(&f);
}

/* the wait is exactly the time to the next timer, none means no limit; far beyond 24.8 days too. */
TEST(the_wait_is_the_time_to_the_next_timer)
{
	struct fake f = { 0 };
	uint32_t id;
	uint64_t first;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	id = f.workers[0].id;
	CHECK_EQ(fake_step(&f, id), HIVE_FOREVER);
	CHECK_OK(hive_post_after(f.hive, HIVE_S(86400) * 365, count, NULL, NULL));
	CHECK_EQ(fake_step(&f, id), HIVE_S(86400) * 365);
	CHECK_OK(hive_post_after(f.hive, 999, count, NULL, &first));
	CHECK_EQ(fake_step(&f, id), 999);
	f.now_ns += 998;
	CHECK_EQ(fake_step(&f, id), 1);
	f.now_ns += 1;
	CHECK_EQ(fake_step(&f, id), HIVE_S(86400) * 365 - 999);
	CHECK_EQ(hive_poll_ms(1), 1);
	CHECK_EQ(hive_poll_ms(HIVE_MS(1)), 1);
	CHECK_EQ(hive_poll_ms(HIVE_MS(1) + 1), 2);
	CHECK_EQ(hive_poll_ms(0), 0);
	CHECK_EQ(hive_poll_ms(-1), 0);
	CHECK_EQ(hive_poll_ms(HIVE_FOREVER), -1);
	CHECK_EQ(hive_poll_ms(HIVE_FOREVER - 1), INT32_MAX);
	CHECK_EQ(hive_poll_ms(HIVE_S(86400) * 25), INT32_MAX);
	fake_destroy(&f);
}

/* a delay beyond the end of the clock means never, a negative one means now. */
TEST(delays_beyond_the_clock_mean_never_and_negative_ones_now)
{
	struct fake f = { 0 };
	uint64_t id;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	CHECK_OK(hive_post_after(f.hive, INT64_MAX, count, NULL, &id));
	CHECK_EQ(fake_step(&f, f.workers[0].id), HIVE_FOREVER);
	CHECK_OK(hive_post_after(f.hive, INT64_MIN, count, NULL, NULL));
	CHECK_OK(hive_post_after(f.hive, -1, count, NULL, NULL));
	ran = 0;
	fake_settle(&f);
	CHECK_EQ(ran, 2);
	fake_advance(&f, HIVE_S(86400) * 36500);
	CHECK_EQ(ran, 2);
	CHECK_OK(hive_post_cancel(f.hive, id));
	fake_destroy(&f);
}

static uint32_t target_of_next(struct fake *f)
{
	uint64_t before[3], id;
	int grown = -1;

	for (int i = 0; i < 3; i++)
		before[i] = timers_of(f, i);
	CHECK_OK(hive_post_after(f->hive, HIVE_S(1), count, NULL, &id));
	for (int i = 0; i < 3; i++)
		if (timers_of(f, i) != before[i]) {
			CHECK_EQ(grown, -1);
			CHECK_EQ(timers_of(f, i), before[i] + 1);
			grown = i;
		}
	CHECK_OK(hive_post_cancel(f->hive, id));
	for (int i = 0; i < 70; i++) /* until the owner throws the cancelled one out */
		fake_settle(f);
	f->now_ns += HIVE_S(2);
	fake_settle(f);
	return (uint32_t)grown;
}

static void set_timers(void *number)
{
	for (int i = 0; i < (int)(intptr_t)number; i++)
		CHECK_OK(hive_post_self_after(HIVE_S(86400), count, NULL, NULL));
}

/* two different IO workers are drawn, the one with fewer timers has it; every draw is played. Compute
 * workers are never drawn.                                                                                              */
TEST(a_delayed_post_goes_to_the_lighter_of_two_drawn_workers)
{
	static const uint32_t timers[3] = { 3, 1, 2 };
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 3, .compute_workers = 5 });
	fake_start(&f);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post_to(f.hive, f.workers[i].id, set_timers, n((int)timers[i])));
	fake_settle(&f);
	for (uint32_t a = 0; a < 3; a++) {
		for (uint32_t b = 0; b < 2; b++) {
			uint32_t second = b >= a ? b + 1 : b;

			f.random_next = f.random_count = 0;
			fake_push_random(&f, fake_random(a, 3));
			fake_push_random(&f, fake_random(b, 2));
			CHECK_EQ(target_of_next(&f), timers[a] < timers[second] ? a : second);
		}
	}
	fake_destroy(&f);
}

/* a burst does not see old counts: of two idle workers each gets half, before either has made a beat. */
TEST(a_burst_of_delayed_posts_is_spread)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 2 });
	fake_start(&f);
	for (int i = 0; i < 100; i++)
		CHECK_OK(hive_post_after(f.hive, HIVE_S(1), count, NULL, NULL));
	CHECK_EQ(timers_of(&f, 0), 50);
	CHECK_EQ(timers_of(&f, 1), 50);
	fake_destroy(&f);
}

/* the only one there is has it; none at all: refused. */
TEST(a_delayed_post_needs_an_io_worker)
{
	struct hive *hive = real_create((struct hive_options){ .compute_workers = 3 });
	uint64_t id = 77;

	CHECK_ERR(hive_post_after(hive, 0, count, NULL, &id), -ESRCH);
	CHECK_EQ(id, 77);
	CHECK_OK(hive_attach(hive, NULL, NULL));
	CHECK_OK(hive_post_after(hive, 0, count, NULL, &id));
	CHECK(id != 77 && id != 0);
	CHECK_OK(hive_post_cancel(hive, id));
	CHECK_OK(hive_destroy(hive));
}

static struct fake *world;

static void use_self_after(void *arg)
{
	struct worker *w = hive__current();
	uint64_t id;

	(void)arg;
	fake_reset_wakes(world);
	CHECK_OK(hive_post_self_after(HIVE_MS(1), count, NULL, NULL));
	CHECK_EQ(timers_count(&w->timers), 1);
	CHECK_EQ(timers_of(world, 0), 1);
	CHECK_OK(hive_post_self_after(HIVE_MS(1), count, NULL, &id));
	CHECK_OK(hive_post_cancel(world->hive, id));
	CHECK_EQ(timers_count(&w->timers), 1);
	CHECK_EQ(timers_of(world, 0), 1);
	CHECK_ERR(hive_post_cancel(world->hive, id), -ESRCH);
	CHECK_OK(hive_post_after(world->hive, HIVE_MS(2), count, NULL, NULL)); /* allowed here too */
	CHECK_EQ(world->wakes, 0);
}

/* own timers are inserted at once, without a letter, counted, and wake nobody. */
TEST(a_worker_inserts_its_own_timers_at_once_and_wakes_nobody)
{
	struct fake f = { 0 };
	struct hive_worker_options lonely = { .no_steal = true };

	world = &f;
	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &lonely, .compute_workers = 1 });
	fake_start(&f);
	fake_settle(&f);
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, use_self_after, NULL));
	ran = 0;
	fake_settle(&f);
	fake_advance(&f, HIVE_MS(1));
	CHECK_EQ(ran, 1);
	CHECK_EQ(ran_on, f.workers[0].id);
	fake_advance(&f, HIVE_MS(1));
	CHECK_EQ(ran, 2);
	fake_destroy(&f);
}

static uint64_t own_id;
static int own_answer;

static void cancel_myself(void *hive)
{
	own_answer = hive_post_cancel(hive, own_id);
	ran++;
}

/* cancel answers exactly one of two: it will not run, or it is too late. Also from inside, for the next post that uses
 * the same memory, and for numbers that never were ids.                                                                    */
TEST(a_delayed_post_is_either_cancelled_or_run)
{
	struct fake f = { 0 };
	uint64_t id, next;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	ran = 0;
	CHECK_OK(hive_post_after(f.hive, HIVE_MS(1), count, NULL, &id));
	CHECK_OK(hive_post_cancel(f.hive, id)); /* still a letter */
	CHECK_ERR(hive_post_cancel(f.hive, id), -ESRCH);
	CHECK_OK(hive_post_after(f.hive, HIVE_MS(1), count, NULL, &id));
	fake_settle(&f);
	CHECK_OK(hive_post_cancel(f.hive, id)); /* among the timers */
	fake_advance(&f, HIVE_MS(1));
	CHECK_EQ(ran, 0);
	CHECK_OK(hive_post_after(f.hive, HIVE_MS(1), cancel_myself, f.hive, &own_id));
	fake_advance(&f, HIVE_MS(1));
	CHECK_EQ(ran, 1);
	CHECK_EQ(own_answer, -ESRCH);
	CHECK_ERR(hive_post_cancel(f.hive, own_id), -ESRCH);
	for (int i = 0; i < 200; i++) {
		CHECK_OK(hive_post_after(f.hive, 0, count, NULL, &next));
		CHECK(next != id && next != own_id && next != 0);
		CHECK_ERR(hive_post_cancel(f.hive, id), -ESRCH);
		fake_settle(&f);
	}
	CHECK_EQ(ran, 201);
	CHECK_ERR(hive_post_cancel(f.hive, 0), -ESRCH);
	CHECK_ERR(hive_post_cancel(f.hive, UINT64_MAX), -ESRCH);
	CHECK_ERR(hive_post_cancel(f.hive, next ^ (uint64_t)1 << 25), -ESRCH);
	CHECK_ERR(hive_post_cancel(NULL, next), -EINVAL);
	fake_destroy(&f);
}

enum { RACES = 2000 };
static int runs[RACES];

static void run_race(void *arg)
{
	__atomic_add_fetch(&runs[(intptr_t)arg], 1, __ATOMIC_SEQ_CST);
}

/* R-58, real threads: cancel against fire; of each exactly one side wins. */
TEST(cancel_and_fire_never_both_win)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2 });
	static int cancelled[RACES];
	struct hive_report report;
	uint64_t total = 0;

	memset(runs, 0, sizeof runs);
	for (int i = 0; i < RACES; i++) {
		uint64_t id;
		int r;

		CHECK_OK(hive_post_after(hive, HIVE_US(i % 30), run_race, n(i), &id));
		for (volatile int spin = 0; spin < i % 97 * 20; spin++)
			continue;
		r = hive_post_cancel(hive, id);
		CHECK(r == 0 || r == -ESRCH);
		cancelled[i] = r == 0;
		total += r == 0;
	}
	WAIT_UNTIL((hive_stats_read(hive, &(struct hive_stats){ 0 }),
	            __atomic_load_n(&runs[RACES - 1], __ATOMIC_SEQ_CST)) +
	                   cancelled[RACES - 1] ==
	           1);
	report = real_end(hive, HIVE_DRAIN);
	CHECK_EQ(report.cancelled, total);
	CHECK_EQ(report.posted, RACES);
	CHECK_EQ(report.ran + report.dropped, RACES - total);
	for (int i = 0; i < RACES; i++)
		CHECK(runs[i] + cancelled[i] <= 1);
}

static struct hive_timer victim;
static int victim_fired;

static void victim_fires(struct hive_timer *timer)
{
	(void)timer;
	victim_fired++;
}

static void start_victim(void *arg)
{
	(void)arg;
	hive_timer_init(&victim, victim_fires, NULL);
	CHECK_OK(hive_timer_start(&victim, HIVE_MS(1) + 1, 0));
	for (int i = 1; i < 64; i++) /* until the first block of the heap is full */
		CHECK_OK(hive_post_self_after(HIVE_S(86400), count, NULL, NULL));
}

static void stop_victim(void *arg)
{
	(void)arg;
	CHECK_EQ(hive_timer_stop(&victim), 1);
	memset(&victim, 0xee, sizeof victim); /* its memory is free now */
}

/* without memory for the heap (a wheel needs none) an accepted delayed post still runs in time; and a timer that it stops is stopped. */
TEST(a_timer_stopped_by_a_delayed_post_that_found_no_memory_does_not_fire)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, start_victim, NULL));
	fake_settle(&f);
	victim_fired = ran = 0;
	CHECK_OK(hive_post_after(f.hive, HIVE_MS(1), stop_victim, NULL, NULL));
	CHECK_OK(hive_post_after(f.hive, HIVE_MS(3), count, NULL, NULL));
	f.allocations = 0;
	f.fail_at = 1;
	f.sticky = true;
	fake_step(&f, f.workers[0].id); /* the letters arrive; the heap cannot grow */
	CHECK_EQ(timers_count(&hive__slot(&f.hive->io, 0)->timers), test_has_heap() ? 64 : 66);
	f.now_ns += HIVE_MS(1) + 1;
	CHECK_EQ(fake_step(&f, f.workers[0].id), HIVE_MS(2) - 1);
	CHECK_EQ(victim_fired, 0);
	CHECK(timers_valid(&hive__slot(&f.hive->io, 0)->timers));
	f.now_ns += HIVE_MS(2);
	fake_settle(&f);
	CHECK_EQ(ran, 1);
	f.fail_at = 0;
	fake_destroy(&f);
}

struct clocked {
	struct hive *hive;
	int64_t due;
	int early;
};

static void compare(void *arg)
{
	struct clocked *c = arg;

	c->early += hive_now(c->hive) < c->due;
	gate_open_task(c + 1);
}

/* R-58, real clock and cores: never early. */
TEST(real_timers_never_fire_early)
{
	static const char *const cores[] = { "epoll", "poll" };

	for (int core = 0; core < 2; core++) {
		struct {
			struct clocked c;
			struct gate done;
		} t = { .c = { .early = 0 } };
		struct hive_worker_options o = { .spin_ns = core ? HIVE_OFF : 0 };

		CHECK_OK(hive_core_find(cores[core], &o.core));
		gate_init(&t.done);
		t.c.hive = real_start((struct hive_options){ .io_workers = 1, .io = &o });
		for (int i = 0; i < 60; i++) {
			int64_t delay = (int64_t)i * i * 1237;

			t.c.due = hive_deadline(t.c.hive, delay);
			CHECK_OK(hive_post_after(t.c.hive, delay, compare, &t.c, NULL));
			gate_pass(&t.done);
		}
		CHECK_EQ(t.c.early, 0);
		real_end(t.c.hive, HIVE_DRAIN);
		gate_destroy(&t.done);
	}
}
