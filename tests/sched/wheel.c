/* SPDX-License-Identifier: MIT */
/* Workers that keep their timers in a wheel beside workers with a heap (F-60, F-61). What is the same for both is tested for
 * both in timer.c, timers.c and timer_rules.c.                                                                             */
#include "support/lone.h"

static const struct hive_worker_options with_heap = { .timers = HIVE_TIMERS_HEAP },
					with_wheel = { .timers = HIVE_TIMERS_WHEEL };

static void note(struct hive_timer *timer)
{
	fake_note(timer->arg);
}

/* F-61: an option of IO workers; anything else is refused. */
TEST(the_kind_of_timers_is_an_option_of_io_workers)
{
	struct fake f = { 0 };
	uint32_t id = 77;

	fake_create(&f, (struct hive_options){ 0 });
	CHECK_ERR(hive_attach(f.hive, &(struct hive_worker_options){ .timers = (enum hive_timers)3 }, &id), -EINVAL);
	CHECK_ERR(hive_attach(f.hive, &(struct hive_worker_options){ .timers = (enum hive_timers) - 1 }, &id), -EINVAL);
	CHECK_ERR(hive_attach(f.hive,
	                      &(struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE, .timers = HIVE_TIMERS_WHEEL },
	                      &id),
	          -EINVAL);
	CHECK_EQ(id, 77);
	CHECK_OK(hive_attach(f.hive, NULL, NULL));
	CHECK_OK(hive_attach(f.hive, &with_heap, NULL));
	CHECK_OK(hive_attach(f.hive, &with_wheel, NULL));
	CHECK(!hive__slot(&f.hive->io, 0)->timers.wheel);
	CHECK(!hive__slot(&f.hive->io, 1)->timers.wheel);
	CHECK(hive__slot(&f.hive->io, 2)->timers.wheel);
	fake_destroy(&f);
}

/* Without memory for the wheel there is no worker, and everything is as before; also in a slot that was used before. */
TEST(attaching_without_memory_for_the_wheel_is_refused)
{
	static const uint16_t cpus[] = { 0 };
	struct hive_worker_options pinned = { .timers = HIVE_TIMERS_WHEEL, .cpus = cpus, .cpu_count = 1 };
	struct fake f = { 0 };
	uint32_t id;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_attach(f.hive, &with_heap, &id));
	CHECK_OK(hive_detach(f.hive, id, HIVE_FOREVER));
	for (int nth = 1; nth <= 2; nth++) { /* the copy of cpus, the wheel */
		int64_t before = f.balance;

		f.allocations = 0;
		f.fail_at = nth;
		CHECK_ERR(hive_attach(f.hive, &pinned, &id), -ENOMEM);
		CHECK_EQ(f.balance, before);
		CHECK_EQ(hive_workers(f.hive, NULL, 0), 1);
	}
	f.fail_at = 0;
	CHECK_OK(hive_attach(f.hive, &pinned, &id));
	CHECK_OK(hive_detach(f.hive, id, HIVE_FOREVER));
	CHECK_OK(hive_attach(f.hive, &with_heap, &id)); /* and the slot changes back */
	CHECK(!hive__slot(&f.hive->io, 1)->timers.wheel);
	fake_destroy(&f);
}

/* timers and delayed posts of a leaving worker go on where they come to, whatever kept them and keeps them now. */
static void hand_over(enum hive_timers from, enum hive_timers to)
{
	struct lone l = { 0 };
	struct hive_timer timers[3];
	uint64_t post, cancelled;

	fake_create(&l.f, (struct hive_options){ 0 });
	for (int i = 0; i < 2; i++) {
		struct hive_worker_options o = { .timers = i == 0 ? to : from,
			                         .core = &fake_core,
			                         .core_arg = &l.scripts[i] };

		CHECK_OK(hive_attach(l.f.hive, &o, &l.ids[i]));
	}
	fake_start(&l.f);
	for (int i = 0; i < 2; i++)
		l.w[i] = hive__slot(&l.f.hive->io, (uint32_t)i);
	lone_become(&l, 1);
	hive__worker_start(l.w[1]);
	for (int i = 0; i < 3; i++) {
		hive_timer_init(&timers[i], note, number(i));
		CHECK_OK(hive_timer_start(&timers[i], HIVE_MS(30 - 10 * i), i == 2 ? HIVE_S(1) : 0));
	}
	CHECK_OK(hive_post_self_after(HIVE_MS(15), fake_note, number(7), &post));
	CHECK_OK(hive_post_self_after(HIVE_MS(16), fake_note, number(8), &cancelled));
	CHECK_OK(hive_post_self_after(HIVE_S(86400) * 100, fake_note, number(9), NULL));
	lone_become(&l, LONE_NOBODY);
	CHECK_OK(hive_detach(l.f.hive, l.ids[1], HIVE_FOREVER));
	CHECK_EQ(worker_timers(l.w[1]), 0);
	CHECK_EQ(timers_count(&l.w[1]->timers), 0);
	lone_beat(&l, 0);
	CHECK_EQ(timers_count(&l.w[0]->timers), 6);
	CHECK(timers_valid(&l.w[0]->timers));
	lone_become(&l, 0);
	CHECK_OK(hive_post_cancel(l.f.hive, cancelled)); /* the keeper finds it where it is now */
	CHECK_EQ(timers_count(&l.w[0]->timers), 5);
	fake_log_clear();
	l.f.now_ns += HIVE_MS(30);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "2 7 1 0");
	CHECK_EQ(hive_timer_stop(&timers[2]), 1);
	CHECK_EQ(timers_count(&l.w[0]->timers), 1);
	CHECK_ERR(hive_post_cancel(l.f.hive, post), -ESRCH);
	lone_close(&l);
}

TEST(timers_move_between_heap_and_wheel_when_a_worker_leaves)
{
	for (int from = HIVE_TIMERS_HEAP; from <= HIVE_TIMERS_WHEEL; from++)
		for (int to = HIVE_TIMERS_HEAP; to <= HIVE_TIMERS_WHEEL; to++)
			hand_over((enum hive_timers)from, (enum hive_timers)to);
}

static int fired;
static struct fake *world;

static void again(struct hive_timer *timer)
{
	CHECK(timer->due_ns <= world->now_ns + HIVE_S(86400));
	fired++;
}

/* F-60: a wait ends with the next timer. 50 days and more, one timer a day and a far one: a beat for each, and none for nothing. */
TEST(an_idle_worker_with_far_timers_wakes_for_them_alone)
{
	enum { DAYS = 60 };
	struct fake f = { 0 };
	struct hive_timer daily, far;
	struct worker *w;
	int beats = 0;

	world = &f;
	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &with_wheel });
	fake_start(&f);
	fake_settle(&f);
	w = hive__slot(&f.hive->io, 0);
	hive__set_current(w);
	hive_timer_init(&daily, again, NULL);
	hive_timer_init(&far, note, number(5));
	CHECK_OK(hive_timer_start(&daily, HIVE_S(86400), HIVE_S(86400)));
	CHECK_OK(hive_timer_start(&far, HIVE_MS(INT64_C(1) << 32), 0)); /* 49.7 days */
	hive__set_current(NULL);
	fired = 0;
	fake_log_clear();
	for (int64_t begin = f.now_ns, wait; f.now_ns - begin < HIVE_S(86400) * DAYS; f.now_ns += wait, beats++) {
		wait = fake_step(&f, f.workers[0].id);
		CHECK(wait > 0 && wait <= HIVE_S(86400));
		CHECK_EQ(fake_log()[0] == '5', f.now_ns - begin >= HIVE_MS(INT64_C(1) << 32));
	}
	CHECK_EQ(fired, DAYS - 1);
	CHECK_EQ(beats, DAYS + 1); /* the first one, one for each day, one for the far one */
	hive__set_current(w);
	CHECK_EQ(hive_timer_stop(&daily), 1);
	hive__set_current(NULL);
	fake_destroy(&f);
}

static void cancel_both(struct hive_timer *timer)
{
	struct hive_timer *others = timer->arg;

	fired++;
	for (int i = 0; i < 100; i++)
		CHECK_EQ(hive_timer_stop(&others[i]), 1);
}

/* A callback may take away whole slots: its own, those due in the same step, those dealt out with it. */
TEST(a_callback_may_empty_the_wheel)
{
	for (int64_t spread = 1; spread < HIVE_S(1); spread *= 7) {
		static struct hive_timer others[100];
		struct lone l = { 0 };
		struct hive_timer first;

		lone_open(&l, 1, with_wheel);
		lone_become(&l, 0);
		hive_timer_init(&first, cancel_both, others);
		CHECK_OK(hive_timer_start(&first, HIVE_MS(1), 0));
		for (int i = 0; i < 100; i++) {
			hive_timer_init(&others[i], note, number(i));
			CHECK_OK(hive_timer_start(&others[i], HIVE_MS(1) + i % 10 * spread, i % 3));
		}
		fired = 0;
		fake_log_clear();
		l.f.now_ns += HIVE_S(100);
		lone_beat(&l, 0);
		CHECK_EQ(fired, 1);
		CHECK_STR(fake_log(), "");
		CHECK_EQ(timers_count(&l.w[0]->timers), 0);
		lone_beat(&l, 0);
		CHECK_EQ(lone_timeout(&l, 0), HIVE_FOREVER);
		lone_close(&l);
	}
}
