/* SPDX-License-Identifier: MIT */
/* Somebody leaves, or the hive stops, at the very moment in which something is on its way. The moments are made by the
 * host's hooks, which the library calls halfway through: the draw of a random number, a look at the clock.             */
#include "support/fake.h"
#include "support/lone.h"
#include "test.h"
#include "support/kinds.h"

/* ---- what happens at the moment ---- */

static struct fake *world;
static uint32_t leavers[4];
static int leaver_count, wait_calls; /* so many calls of the hook pass before it happens */
static bool stops;

static void happen(void)
{
	if (wait_calls-- != 0)
		return;
	for (int i = 0; i < leaver_count; i++)
		CHECK_OK(hive_detach(world->hive, leavers[i], HIVE_FOREVER));
	if (stops) {
		CHECK_OK(hive_stop(world->hive, HIVE_NOW, HIVE_FOREVER));
		fake_settle(world);
	}
}

static uint64_t random_at_the_moment(void *arg, uint32_t worker)
{
	struct fake *f = arg;
	uint64_t drawn = f->random_next < f->random_count ? f->randoms[f->random_next++] : 0;

	(void)worker;
	happen(); /* afterwards: those who leave draw as well */
	return drawn;
}

static int64_t now_at_the_moment(void *arg)
{
	happen();
	return ((struct fake *)arg)->now_ns;
}

static void *allocate_at_the_moment(void *arg, void *old, size_t bytes)
{
	struct fake *f = arg;

	if (bytes > 0)
		happen();
	return f->host.allocate(arg, old, bytes);
}

static void open_world(struct fake *f, int workers, uint32_t *ids)
{
	*f = (struct fake){ 0 };
	fake_create(f, (struct hive_options){ 0 });
	for (int i = 0; i < workers; i++)
		CHECK_OK(hive_attach(f->hive, NULL, &ids[i]));
	fake_start(f);
	fake_settle(f);
	world = f;
	leaver_count = 0;
	wait_calls = -1;
	stops = false;
	fake_log_clear();
}

/* These leave when the hook is called for the n-th time. */
static void leave_at(int n, int count, const uint32_t *ids)
{
	wait_calls = n - 1;
	leaver_count = count;
	for (int i = 0; i < count; i++)
		leavers[i] = ids[i];
}

/* ---- delayed posts ---- */

/* Two workers are drawn, and then one of them, or both, have left: the other one keeps the post, or the main worker. */
TEST(a_delayed_post_whose_worker_leaves_while_it_is_chosen_goes_to_another)
{
	static struct fake f;
	uint32_t ids[3];

	for (int both = 0; both < 3; both++) {
		open_world(&f, 3, ids);
		f.hive->host.random = random_at_the_moment;
		/* Draws (0, 2), (2, 0) and (1, 2) out of three. */
		fake_push_random(&f, fake_random(both == 0 ? 0 : both == 1 ? 2 : 1, 3));
		fake_push_random(&f, fake_random(both == 1 ? 0 : 1, 2));
		if (both == 2)
			leave_at(2, 2, ids + 1);
		else
			leave_at(2, 1, ids + 2);
		CHECK_OK(hive_post_after(f.hive, HIVE_MS(5), fake_note, number(1), NULL));
		fake_settle(&f);
		CHECK_STR(fake_log(), "");
		CHECK_EQ(load_relaxed(&hive__slot(&f.hive->io, 0)->delayed_count), 1);
		fake_advance(&f, HIVE_MS(5));
		CHECK_STR(fake_log(), "1");
		fake_destroy(&f);
	}
}

/* It was chosen, and has closed its inbox when the letter comes. */
TEST(a_delayed_post_whose_worker_left_before_it_came_goes_to_another)
{
	static struct fake f;
	uint32_t ids[2];

	open_world(&f, 2, ids);
	fake_push_random(&f, fake_random(1, 2));
	fake_push_random(&f, fake_random(0, 1));
	add_relaxed(&hive__slot(&f.hive->io, 0)->delayed_count, 5u); /* so that the other one is the lighter */
	f.hive->host.now = now_at_the_moment;
	leave_at(1, 1, ids + 1);
	CHECK_OK(hive_post_after(f.hive, HIVE_MS(5), fake_note, number(1), NULL));
	sub_relaxed(&hive__slot(&f.hive->io, 0)->delayed_count, 5u);
	CHECK_EQ(load_relaxed(&hive__slot(&f.hive->io, 0)->delayed_count), 1);
	CHECK_EQ(load_relaxed(&hive__slot(&f.hive->io, 1)->delayed_count), 0);
	fake_advance(&f, HIVE_MS(5));
	CHECK_STR(fake_log(), "1");
	fake_destroy(&f);
}

TEST(a_delayed_post_is_refused_when_the_hive_stops_before_it_arrives)
{
	static struct fake f;
	uint32_t ids[2];
	uint64_t post = 7;

	open_world(&f, 2, ids);
	f.hive->host.now = now_at_the_moment;
	leave_at(1, 0, NULL);
	stops = true;
	CHECK_ERR(hive_post_after(f.hive, HIVE_MS(5), fake_note, number(1), &post), -ESHUTDOWN);
	CHECK_EQ(post, 7);
	CHECK_EQ(f.drops, 0); /* refused, and not accepted and dropped */
	CHECK_EQ(load_relaxed(&f.hive->refused), 1);
	CHECK_EQ(load_relaxed(&hive__slot(&f.hive->io, 0)->delayed_count), 0);
	CHECK_EQ(load_relaxed(&hive__slot(&f.hive->io, 1)->delayed_count), 0);
	fake_destroy(&f);
	CHECK_STR(fake_log(), "");
}

/* ---- private tasks ---- */

/* It was found by its id and has closed its inbox when the letter comes: the poster is told, and what he is told is true. */
TEST(a_task_for_a_worker_that_leaves_before_it_arrives_is_refused)
{
	static struct fake f;
	uint32_t ids[2];

	for (int stopping = 0; stopping < 2; stopping++) {
		open_world(&f, 2, ids);
		hive__slot(&f.hive->io, 1)->parcels.memory.allocate = allocate_at_the_moment;
		leave_at(1, !stopping, ids + 1);
		stops = stopping;
		CHECK_ERR(hive_post_to(f.hive, ids[1], fake_note, number(1)), stopping ? -ESHUTDOWN : -ESRCH);
		CHECK_EQ(load_relaxed(&f.hive->refused), stopping);
		fake_settle(&f);
		fake_destroy(&f);
		CHECK_EQ(f.drops, 0);
		CHECK_STR(fake_log(), "");
	}
}

/* ---- a worker that leaves while the hive stops ---- */

static struct hive_timer embedded;

static void on_fire(struct hive_timer *timer)
{
	(void)timer;
	fake_note(number(9));
}

/* The stop hook of the leaving worker stops the hive, and the main worker closes its inbox before the timers come. */
static void stop_hive(void *arg)
{
	struct fake *f = arg;

	CHECK_OK(hive_stop(f->hive, HIVE_NOW, HIVE_FOREVER));
	fake_step(f, f->workers[0].id);
}

static void start_timers(void *arg)
{
	(void)arg;
	hive_timer_init(&embedded, on_fire, NULL);
	CHECK_OK(hive_timer_start(&embedded, HIVE_MS(1), 0));
	CHECK_OK(hive_post_self_after(HIVE_MS(1), fake_note, number(1), NULL));
}

TEST(timers_of_a_worker_that_leaves_a_stopping_hive_are_dropped)
{
	static struct fake f;
	struct hive_worker_options options = { .on_stop = stop_hive, .hook_arg = &f };
	uint32_t main_id, id;

	open_world(&f, 1, &main_id);
	CHECK_OK(hive_attach(f.hive, &options, &id));
	CHECK_OK(hive_post_to(f.hive, id, start_timers, NULL));
	fake_settle(&f);
	CHECK_OK(hive_detach(f.hive, id, HIVE_FOREVER));
	CHECK_EQ(f.drops, 1);
	CHECK(f.dropped[0].fn == fake_note && f.dropped[0].arg == number(1));
	fake_advance(&f, HIVE_MS(2));
	CHECK_STR(fake_log(), "");
	CHECK_EQ(hive_timer_stop(&embedded), 0); /* it is stopped */
	fake_destroy(&f);
}

/* ---- without memory ---- */

static void post_locally(void *arg)
{
	(void)arg;
	for (int i = 1; i <= 3; i++)
		CHECK_OK(hive_post_local(fake_note, number(i)));
	CHECK_ERR(hive_detach(hive_current(), hive_worker_current(), HIVE_NOWAIT), -EINPROGRESS);
}

/* Its queue would go to the pool, which finds no memory: a task that was accepted runs, and be it here. */
TEST(a_leaving_worker_runs_its_tasks_itself_when_the_pool_has_no_memory)
{
	static struct fake f;
	struct hive_worker_options options = { .local_budget = 1, .no_steal = true };
	uint32_t main_id, id;

	open_world(&f, 1, &main_id);
	CHECK_OK(hive_attach(f.hive, &options, &id));
	CHECK_OK(hive_post_to(f.hive, id, post_locally, NULL));
	f.fail_at = 1;
	f.sticky = true;
	CHECK_ERR(fake_step(&f, id), -ESHUTDOWN);
	CHECK_STR(fake_log(), "3 1 2"); /* one by its budget; the rest, oldest first, when it left */
	f.fail_at = 0;
	fake_destroy(&f);
	CHECK_EQ(f.drops, 0);
}

static void post_ten(void *hive)
{
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post(hive, fake_note, number(i)));
}

/* Neither pool nor local queue had room for them. */
TEST(tasks_left_in_an_outbox_are_dropped_when_the_hive_stops_at_once)
{
	static struct lone l;

	l = (struct lone){ 0 };
	lone_open(&l, 1, (struct hive_worker_options){ .local_capacity = 4, .local_budget = 1 });
	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], post_ten, l.f.hive));
	fake_log_clear();
	l.f.fail_at = 1;
	l.f.sticky = true;
	CHECK(lone_beat(&l, 0));
	CHECK_EQ(l.w[0]->outbox_count, 6);
	CHECK_OK(hive_stop(l.f.hive, HIVE_NOW, HIVE_FOREVER));
	CHECK(!lone_beat(&l, 0));
	CHECK_EQ(l.f.drops, 10);
	CHECK_EQ(l.w[0]->outbox_count, 0);
	CHECK_STR(fake_log(), "");
	l.f.fail_at = 0;
	lone_close(&l);
}

/* ---- letters that come too late ---- */

/* As hive_post_to() sends it, to a worker that left before it came; the slot has a new owner by then. */
static void send_late(struct worker *slot, uint32_t kind, uint32_t old_id, int note)
{
	struct parcel *p = hive__parcel_new(slot);

	CHECK(p);
	p->kind = kind;
	p->target = old_id;
	p->task = (struct hive_task){ fake_note, number(note) };
	CHECK(inbox_push(&slot->inbox, &p->letter));
}

/* Detaches ids[1] and attaches its successor. */
static struct worker *succeed(struct fake *f, uint32_t old_id, uint32_t *ret_id)
{
	CHECK_OK(hive_detach(f->hive, old_id, HIVE_FOREVER));
	CHECK_OK(hive_attach(f->hive, NULL, ret_id));
	CHECK(*ret_id != old_id);
	fake_settle(f);
	return hive__slot(&f->hive->io, 1);
}

TEST(a_task_that_comes_too_late_runs_anywhere)
{
	static struct fake f;
	struct worker *slot;
	uint32_t ids[2], id;

	open_world(&f, 2, ids);
	slot = succeed(&f, ids[1], &id);
	send_late(slot, PARCEL_TASK, ids[1], 1);
	fake_step(&f, id);
	CHECK_EQ(load_relaxed(&slot->stats.private_tasks), 0); /* it was never meant for this one */
	fake_settle(&f);
	CHECK_STR(fake_log(), "1");
	fake_destroy(&f);
}

/* The pool takes nothing any more, but the letter was accepted. */
TEST(a_task_that_comes_too_late_into_a_draining_hive_runs_where_it_came)
{
	static struct fake f;
	struct worker *slot;
	uint32_t ids[2], id;

	open_world(&f, 2, ids);
	slot = succeed(&f, ids[1], &id);
	send_late(slot, PARCEL_TASK, ids[1], 1);
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_ERR(fake_step(&f, id), -ESHUTDOWN);
	CHECK_STR(fake_log(), "1");
	fake_destroy(&f);
	CHECK_EQ(f.drops, 0);
}

TEST(an_answer_that_comes_too_late_goes_to_the_main_worker_while_it_is_there)
{
	static struct fake f;
	struct worker *slot;
	uint32_t ids[2], id;

	for (int main_left = 0; main_left < 2; main_left++) {
		open_world(&f, 2, ids);
		slot = succeed(&f, ids[1], &id);
		add_seq(&f.hive->holds, 1u);
		send_late(slot, PARCEL_REPLY, ids[1], 1);
		if (main_left) {
			CHECK_OK(hive_stop(f.hive, HIVE_NOW, HIVE_FOREVER));
			fake_step(&f, ids[0]);
			CHECK_ERR(fake_step(&f, id), -ESHUTDOWN);
			CHECK_ERR(fake_step(&f, ids[0]), -ESHUTDOWN); /* whose inbox was open until now */
			CHECK_EQ(f.drops, 1);
		} else {
			fake_step(&f, id);
			CHECK_STR(fake_log(), "");
			fake_step(&f, ids[0]);
			CHECK_STR(fake_log(), "1");
		}
		CHECK_EQ(load_relaxed(&f.hive->holds), 0);
		fake_destroy(&f);
	}
}

/* ---- compute ---- */

static void stop_while_computing(void *arg)
{
	struct fake *f = arg;

	CHECK_OK(hive_stop(f->hive, HIVE_NOW, HIVE_FOREVER));
	fake_step(f, f->workers[0].id); /* the main worker drops what it has */
}

TEST(an_answer_that_nobody_can_take_any_more_is_dropped)
{
	static struct fake f;
	struct hive_worker_options compute = { .kind = HIVE_WORKER_COMPUTE };
	uint32_t main_id, id;

	open_world(&f, 1, &main_id);
	CHECK_OK(hive_attach(f.hive, &compute, &id));
	CHECK_OK(hive_post_compute_then(f.hive, stop_while_computing, main_id, fake_note, &f));
	fake_step(&f, id);
	fake_settle(&f); /* it leaves, and the main worker, whose inbox was open for it, drops the answer */
	CHECK_EQ(f.drops, 1);
	CHECK(f.dropped[0].fn == fake_note && f.dropped[0].arg == &f);
	CHECK_EQ(load_relaxed(&f.hive->holds), 0);
	fake_destroy(&f);
	CHECK_STR(fake_log(), "");
}

/* The poster has put its task and not yet told the takers when the worker decides to sleep (queue/pool.h, P1). */
TEST(a_compute_worker_does_not_sleep_through_a_post_that_is_halfway)
{
	static struct fake f;
	struct hive_worker_options compute = { .kind = HIVE_WORKER_COMPUTE };
	uint32_t main_id, id;

	open_world(&f, 1, &main_id);
	CHECK_OK(hive_attach(f.hive, &compute, &id));
	CHECK_OK(hive_post_compute(f.hive, fake_note, number(1)));
	and_seq(&f.hive->compute_pool.pools[HIVE_PRIORITY_NORMAL].ready, 0u);
	CHECK_EQ(fake_step(&f, id), 0); /* it wants to be called again at once */
	CHECK_STR(fake_log(), "");
	CHECK_EQ(fake_step(&f, id), 0);
	CHECK_STR(fake_log(), "1");
	fake_destroy(&f);
}

/* Two posters have put their tasks and not yet looked for sleepers: who takes one and leaves one wakes one more (W3). */
TEST(a_compute_worker_that_leaves_a_task_behind_wakes_another)
{
	static struct fake f;
	struct hive_worker_options compute = { .kind = HIVE_WORKER_COMPUTE };
	uint32_t main_id, ids[2];

	open_world(&f, 1, &main_id);
	for (int i = 0; i < 2; i++)
		CHECK_OK(hive_attach(f.hive, &compute, &ids[i]));
	fake_settle(&f);
	fake_reset_wakes(&f);
	for (int i = 1; i <= 2; i++) {
		struct hive_task task = { fake_note, number(i) };

		CHECK_OK(pool_give(&f.hive->compute_pool.pools[HIVE_PRIORITY_NORMAL], hive__thread_number(), task,
		                   true));
	}
	fake_step(&f, ids[0]);
	CHECK_STR(fake_log(), "1");
	CHECK_EQ(fake_worker(&f, ids[1])->wakes, 1);
	CHECK_EQ(f.wakes, 1);
	fake_step(&f, ids[1]);
	CHECK_STR(fake_log(), "1 2");
	CHECK_EQ(f.wakes, 1);
	fake_destroy(&f);
}

static void stop_draining(void *arg)
{
	CHECK_OK(hive_post(arg, fake_note, number(1))); /* others still have work, which is no reason to stay */
	CHECK_OK(hive_stop(arg, HIVE_DRAIN, HIVE_FOREVER));
}

/* It had looked for the stop, and found none, before its last hook. Slept through, that would be a hang. */
TEST(a_compute_worker_does_not_sleep_through_a_stop_that_its_park_hook_made)
{
	static struct fake f;
	struct hive_worker_options compute = { .kind = HIVE_WORKER_COMPUTE, .on_park = stop_draining };
	uint32_t main_id;
	struct worker *w;

	open_world(&f, 1, &main_id);
	compute.hook_arg = f.hive;
	CHECK_OK(hive_attach(f.hive, &compute, NULL));
	w = hive__slot(&f.hive->compute, 0);
	w->started = true;
	hive__set_current(w);
	CHECK(hive__compute_beat(w, NULL)); /* as its thread would call it: it may wait in here */
	CHECK_EQ(load_relaxed(&w->stats.sleeps), 0);
	CHECK(!hive__compute_beat(w, NULL));
	hive__set_current(NULL);
	fake_settle(&f);
	CHECK_STR(fake_log(), "1");
	fake_destroy(&f);
}
