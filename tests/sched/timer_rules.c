/* SPDX-License-Identifier: MIT */
/* Embedded timers: who may start them where, a million of them, and what becomes of those whose worker leaves. */
#include "base/rng.h"
#include "support/lone.h"
#include "support/kinds.h"

static void note(struct hive_timer *timer)
{
	fake_note(timer->arg);
}

/* an uninitialised timer is refused, not undefined; so are a negative period and an unknown policy. */
TEST(senseless_timers_are_refused)
{
	struct lone l = { 0 };
	struct hive_timer timer;

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	memset(&timer, 0, sizeof timer);
	CHECK_ERR(hive_timer_start(&timer, 0, 0), -EINVAL);
	CHECK_ERR(hive_timer_stop(&timer), -EINVAL);
	memset(&timer, 0xff, sizeof timer);
	CHECK_ERR(hive_timer_start(&timer, 0, 0), -EINVAL);
	CHECK_ERR(hive_timer_start(NULL, 0, 0), -EINVAL);
	CHECK_ERR(hive_timer_stop(NULL), -EINVAL);
	hive_timer_init(&timer, note, NULL);
	CHECK_ERR(hive_timer_start(&timer, 0, -1), -EINVAL);
	timer.drift = (enum hive_drift)3;
	CHECK_ERR(hive_timer_start(&timer, 0, 0), -EINVAL);
	hive_timer_init(&timer, NULL, NULL);
	CHECK_ERR(hive_timer_start(&timer, 0, 0), -EINVAL);
	CHECK_EQ(timers_count(&l.w[0]->timers), 0);
	lone_close(&l);
}

/* timers are touched by the worker that started them and by nobody else. */
TEST(timers_belong_to_the_worker_that_started_them)
{
	struct lone l = { 0 };
	struct hive_timer timer;

	lone_open(&l, 2, (struct hive_worker_options){ 0 });
	hive_timer_init(&timer, note, number(1));
	CHECK_MISUSE(hive_timer_start(&timer, 0, 0), -EPERM); /* a foreign thread */
	lone_become(&l, 0);
	CHECK_OK(hive_timer_start(&timer, HIVE_MS(1), 0));
	lone_become(&l, 1);
	CHECK_MISUSE(hive_timer_start(&timer, 0, 0), -EPERM);
	CHECK_MISUSE(hive_timer_stop(&timer), -EPERM);
	lone_become(&l, LONE_NOBODY);
	CHECK_MISUSE(hive_timer_stop(&timer), -EPERM);
	fake_log_clear();
	l.f.now_ns += HIVE_MS(1);
	lone_beat(&l, 1);
	CHECK_STR(fake_log(), "");
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1");
	lone_become(&l, 1);
	CHECK_OK(hive_timer_start(&timer, 0, 0)); /* idle again, so another worker may have it */
	lone_beat(&l, 1);
	CHECK_STR(fake_log(), "1 1");
	lone_close(&l);
}

/* without memory a start is refused and everything is as before; moving an armed timer needs none. */
TEST(starting_without_memory_is_refused_and_moving_needs_none)
{
	struct lone l = { 0 };
	struct hive_timer timers[65];

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	for (int i = 0; i < 65; i++)
		hive_timer_init(&timers[i], note, number(i));
	for (int i = 0; i < 64; i++)
		CHECK_OK(hive_timer_start(&timers[i], HIVE_S(1), 0));
	l.f.fail_at = 1;
	l.f.sticky = true;
	CHECK_ERR(hive_timer_start(&timers[64], HIVE_MS(1), 0), test_has_heap() ? -ENOMEM : 0);
	CHECK_EQ(hive_timer_stop(&timers[64]), !test_has_heap());
	CHECK_EQ(worker_timers(l.w[0]), 64);
	CHECK_OK(hive_timer_start(&timers[7], HIVE_MS(1), HIVE_MS(1)));
	fake_log_clear();
	l.f.now_ns += HIVE_MS(1);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "7");
	l.f.fail_at = 0;
	CHECK_OK(hive_timer_start(&timers[64], HIVE_MS(2), 0));
	lone_close(&l);
}

static void start_too_late(void *arg)
{
	struct hive_timer *timer = arg;

	hive_timer_init(timer, note, number(1));
	CHECK_ERR(hive_timer_start(timer, 0, 0), -ESHUTDOWN);
}

/* no timer starts after stop; armed ones fall silent and need not be stopped. */
TEST(timers_fall_silent_when_the_hive_stops)
{
	struct lone l = { 0 };
	struct hive_timer armed, late;

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	hive_timer_init(&armed, note, number(2));
	CHECK_OK(hive_timer_start(&armed, HIVE_MS(1), HIVE_MS(1)));
	CHECK_OK(hive_post_self(start_too_late, &late));
	lone_become(&l, LONE_NOBODY);
	l.f.now_ns += HIVE_MS(5);
	CHECK_OK(hive_stop(l.f.hive, HIVE_DRAIN, HIVE_FOREVER));
	fake_log_clear();
	l.f.now_ns += HIVE_MS(5);
	CHECK_OK(hive_join(l.f.hive, HIVE_FOREVER));
	CHECK_STR(fake_log(), "");
	CHECK_EQ(hive_timer_stop(&armed), 0);
	lone_close(&l);
}

/* the timers of a worker that is detached go on, on the main worker, at the same times. */
TEST(timers_of_a_detached_worker_fire_on_the_main_worker)
{
	struct lone l = { 0 };
	struct hive_timer once, periodic;

	lone_open(&l, 3, (struct hive_worker_options){ 0 });
	lone_become(&l, 2);
	hive_timer_init(&once, note, number(1));
	hive_timer_init(&periodic, note, number(2));
	CHECK_OK(hive_timer_start(&once, HIVE_MS(5), 0));
	CHECK_OK(hive_timer_start(&periodic, HIVE_MS(3), HIVE_MS(3)));
	lone_become(&l, LONE_NOBODY);
	CHECK_OK(hive_detach(l.f.hive, l.ids[2], HIVE_FOREVER));
	CHECK_EQ(worker_timers(l.w[2]), 0);
	fake_log_clear();
	lone_beat(&l, 0); /* adopts them */
	CHECK_EQ(worker_timers(l.w[0]), 2);
	l.f.now_ns += HIVE_MS(3) - 1;
	lone_beat(&l, 0);
	lone_beat(&l, 1);
	CHECK_STR(fake_log(), "");
	l.f.now_ns += HIVE_MS(3) + 1;
	lone_beat(&l, 1);
	CHECK_STR(fake_log(), "");
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "2 1");
	l.f.now_ns += HIVE_MS(3);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "2 1 2");
	lone_become(&l, 0);
	CHECK_EQ(hive_timer_stop(&periodic), 1); /* the main worker is the owner now */
	lone_close(&l);
}

enum { MILLION = 1000000 };

static struct hive_timer *crowd;
static int64_t last_due_ns;
static uint64_t last_sequence;
static int crowd_fired;
static struct fake *world;

static void see_order(struct hive_timer *timer)
{
	CHECK(timer->due_ns <= world->now_ns);
	CHECK(timer->due_ns > last_due_ns || (timer->due_ns == last_due_ns && timer->sequence > last_sequence));
	last_due_ns = timer->due_ns;
	last_sequence = timer->sequence;
	crowd_fired++;
}

/* a million timers, each once, in order, none early; half of another million stopped in between. */
TEST(a_million_timers_fire_once_each_and_in_order)
{
	struct lone l = { 0 };
	int many = MILLION / test_slowness(), expected = 0;
	uint64_t rng = 42;

	world = &l.f;
	lone_open(&l, 1, (struct hive_worker_options){ .timer_budget = 100000, .slice_ns = HIVE_S(1000) });
	lone_become(&l, 0);
	crowd = calloc((size_t)many, sizeof *crowd);
	CHECK(crowd);
	for (int i = 0; i < many; i++) {
		hive_timer_init(&crowd[i], see_order, NULL);
		CHECK_OK(hive_timer_start(&crowd[i], (int64_t)rng_below(rng_next(&rng), 1000) * 1000, 0));
	}
	CHECK_EQ(worker_timers(l.w[0]), many);
	for (int i = 0; i < many; i += 2)
		expected += hive_timer_stop(&crowd[(uint32_t)i]);
	CHECK_EQ(expected, (many + 1) / 2);
	last_due_ns = 0;
	last_sequence = 0;
	crowd_fired = 0;
	for (int i = 0; i < 2000 && crowd_fired < many - expected; i++) {
		l.f.now_ns += HIVE_US(1);
		lone_beat(&l, 0);
	}
	CHECK_EQ(crowd_fired, many - expected);
	CHECK_EQ(worker_timers(l.w[0]), 0);
	free(crowd);
	lone_close(&l);
}

/* Random starts, moves and stops against a plain table. */
struct plain {
	bool armed;
	int64_t due_ns, period_ns;
};

enum { FEW = 40 };
static struct hive_timer few[FEW];
static struct plain plain[FEW];
static int wrong;

static void check_against_table(struct hive_timer *timer)
{
	struct plain *p = &plain[timer - few];

	if (!p->armed || p->due_ns > world->now_ns)
		wrong++;
	if (p->period_ns)
		p->due_ns += ((world->now_ns - p->due_ns) / p->period_ns + 1) * p->period_ns;
	else
		p->armed = false;
}

/* whatever is started, moved and stopped, exactly what is due fires, and nothing that is due is missed. */
TEST(random_starts_moves_and_stops_agree_with_a_table)
{
	struct lone l = { 0 };
	uint64_t rng = 7;

	world = &l.f;
	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	for (int i = 0; i < FEW; i++) {
		hive_timer_init(&few[i], check_against_table, NULL);
		plain[i] = (struct plain){ 0 };
	}
	wrong = 0;
	for (int round = 0; round < 20000; round++) {
		uint32_t i = rng_below(rng_next(&rng), FEW), what = rng_below(rng_next(&rng), 8);
		int64_t delay = rng_below(rng_next(&rng), 100), period = what < 2 ? 1 + delay / 2 : 0;

		if (what < 5) {
			CHECK_OK(hive_timer_start(&few[i], delay, period));
			plain[i] = (struct plain){ true, l.f.now_ns + delay, period };
		} else if (what == 5) {
			CHECK_EQ(hive_timer_stop(&few[i]), plain[i].armed);
			plain[i].armed = false;
		} else {
			l.f.now_ns += delay / 4;
			lone_beat(&l, 0);
			for (int j = 0; j < FEW; j++)
				wrong += plain[j].armed && plain[j].due_ns <= l.f.now_ns;
		}
		CHECK_EQ(wrong, 0);
		CHECK(timers_valid(&l.w[0]->timers));
	}
	lone_close(&l);
}

/* Others cancel, the owner throws the dead out in one sweep: what lives among them stays, and in order. */
TEST(a_sweep_of_cancelled_posts_spares_everything_else)
{
	enum { POSTS = 200 };
	struct lone l = { 0 };
	struct hive_timer early;
	struct delayed late = { .ticket = TICKET_CANCELLED }; /* a timer in memory that looks like a cancelled post */
	uint64_t posts[POSTS];

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	hive_timer_init(NULL, note, NULL); /* nothing to prepare: nothing happens */
	hive_timer_init(&early, note, number(1));
	hive_timer_init(&late.timer, note, number(3));
	lone_become(&l, 0);
	CHECK_OK(hive_timer_start(&late.timer, HIVE_MS(30), 0));
	CHECK_OK(hive_timer_start(&early, HIVE_MS(10), 0));
	lone_become(&l, LONE_NOBODY);
	for (int i = 0; i < POSTS; i++)
		CHECK_OK(hive_post_after(l.f.hive, HIVE_MS(20), fake_note, number(i == 99 ? 2 : 4), &posts[i]));
	lone_beat(&l, 0);
	CHECK_EQ(timers_count(&l.w[0]->timers), POSTS + 2);
	for (int i = 0; i < POSTS; i++)
		if (i != 99)
			CHECK_OK(hive_post_cancel(l.f.hive, posts[i]));
	lone_beat(&l, 0);
	CHECK_EQ(timers_count(&l.w[0]->timers), 3);
	CHECK_EQ(worker_timers(l.w[0]), 3);
	fake_log_clear();
	l.f.now_ns += HIVE_MS(30);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 2 3");
	lone_close(&l);
}

/* Ids name one post: those of a place in memory differ for 2^32 uses, and never are 0. */
TEST(ids_of_delayed_posts_begin_again_after_the_last_one)
{
	struct lone l = { 0 };
	struct delayed *d;
	uint64_t last, first;

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	CHECK_OK(hive_post_self_after(HIVE_MS(1), fake_note, number(1), &last));
	d = (struct delayed *)(void *)slab_at(&l.w[0]->delayed, (uint32_t)last & ((1u << 22) - 1));
	CHECK_OK(hive_post_cancel(l.f.hive, last));
	store_relaxed(&d->ticket, (uint64_t)(UINT32_MAX - 1) * TICKET_STATES + TICKET_FREE);
	CHECK_OK(hive_post_self_after(HIVE_MS(1), fake_note, number(1), &last));
	CHECK_EQ(last >> 32, UINT32_MAX);
	CHECK_OK(hive_post_cancel(l.f.hive, last));
	CHECK_OK(hive_post_self_after(HIVE_MS(1), fake_note, number(2), &first));
	CHECK_EQ(first >> 32, 1);
	CHECK_EQ((uint32_t)first, (uint32_t)last); /* the same place */
	CHECK_ERR(hive_post_cancel(l.f.hive, last), -ESRCH);
	fake_log_clear();
	l.f.now_ns += HIVE_MS(1);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "2");
	CHECK_ERR(hive_post_cancel(l.f.hive, first), -ESRCH);
	lone_close(&l);
}

TEST(an_id_that_was_never_given_cancels_nothing)
{
	struct lone l = { 0 };
	uint64_t post;

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	CHECK_OK(hive_post_after(l.f.hive, HIVE_MS(1), fake_note, number(1), &post));
	CHECK_ERR(hive_post_cancel(l.f.hive, post + SLAB_FIRST), -ESRCH);          /* no such place */
	CHECK_ERR(hive_post_cancel(l.f.hive, post + 1), -ESRCH);                   /* not in use */
	CHECK_ERR(hive_post_cancel(l.f.hive, post + ((uint64_t)1 << 22)), -ESRCH); /* no such worker */
	CHECK_ERR(hive_post_cancel(l.f.hive, post + ((uint64_t)1 << 32)), -ESRCH); /* another use */
	CHECK_OK(hive_post_cancel(l.f.hive, post));
	lone_close(&l);
}
