/* SPDX-License-Identifier: MIT */
/* Fibers under cancel tokens: what their waits answer, who inherits, deadlines in virtual time, join. */
#include "support/world.h"

static int answers;

static int sleep_for_ever(void *arg)
{
	(void)arg;
	return hive_sleep(HIVE_FOREVER);
}

static int nothing(void *arg)
{
	(void)arg;
	return 7;
}

static struct hive_fiber *spawn_under(struct world *w, struct hive_cancel *cancel, hive_fiber_fn *fn, void *arg)
{
	struct hive_fiber_options options = { .cancel = cancel };
	struct hive_fiber *fiber;

	CHECK_OK(hive_spawn(w->hive, fn, arg, &options, &fiber));
	return fiber;
}

struct objects {
	struct hive_fiber *other;
	struct hive_mutex mutex;
	struct hive_cond cond;
	struct hive_semaphore semaphore;
	struct hive_barrier barrier;
	struct hive_channel *channel;
	int reason, fds[2];
};

static void expect(const struct objects *o, int r)
{
	CHECK_ERR(r, o->reason);
	answers++;
}

/* Each kind of wait there is; the first is under way when the token fires. -ETIMEDOUT is a reason like others. */
static int wait_in_all_ways(void *arg)
{
	struct objects *o = arg;
	struct hive_fiber *child;
	size_t index;
	char byte;
	int item = 0, result = 77;

	expect(o, hive_sleep(HIVE_S(9)));
	expect(o, hive_sleep(HIVE_FOREVER));
	expect(o, hive_sleep(0));
	expect(o, hive_yield());
	expect(o, hive_fiber_join(o->other, HIVE_FOREVER, &result));
	expect(o, hive_wait_any(&o->other, 1, hive_deadline(NULL, HIVE_S(1)), &index));
	expect(o, hive_offload(nothing, NULL, HIVE_FOREVER, &result));
	expect(o, hive_semaphore_acquire(&o->semaphore, 1, HIVE_FOREVER));
	expect(o, hive_barrier_wait(&o->barrier, HIVE_FOREVER));
	expect(o, hive_channel_recv(o->channel, &item, sizeof item, HIVE_FOREVER));
	CHECK_OK(hive_mutex_lock(&o->mutex, HIVE_FOREVER)); /* no wait: it is free */
	expect(o, hive_cond_wait(&o->cond, &o->mutex, HIVE_FOREVER));
	CHECK_OK(hive_mutex_unlock(&o->mutex));
	expect(o, (int)hive_recv(o->fds[0], &byte, 1, HIVE_FOREVER));
	expect(o, (int)hive_read(o->fds[0], &byte, 1, -1, hive_deadline(NULL, HIVE_S(1))));
	expect(o, hive_accept(o->fds[0], HIVE_FOREVER) == -EINVAL ? o->reason : 0); /* no listener: it need not wait */
	expect(o, hive_spawn(hive_current(), nothing, NULL, NULL, &child));
	expect(o, hive_cancel_check(NULL));
	CHECK(hive_cancelled());
	CHECK_EQ(result, 77);
	CHECK_OK(hive_close(o->fds[0], HIVE_FOREVER)); /* who is cancelled tidies up all the same */
	return 12;
}

static void wait_with_reason(uint64_t seed, int reason)
{
	struct world w = world_open(seed, 2, 1);
	struct objects o = { .reason = reason, .other = world_spawn(&w, sleep_for_ever, NULL) };
	struct hive_cancel cancel;
	struct hive_fiber *fiber;

	answers = 0;
	hive_mutex_init(&o.mutex);
	hive_cond_init(&o.cond);
	hive_semaphore_init(&o.semaphore, 0);
	hive_barrier_init(&o.barrier, 2);
	CHECK_OK(hive_channel_create(sizeof(int), 1, &o.channel));
	CHECK_OK(hive_socket_pair(false, o.fds));
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	fiber = spawn_under(&w, &cancel, wait_in_all_ways, &o);
	if (seed % 2)
		world_advance(&w, HIVE_MS(1));
	CHECK_EQ(answers, 0);
	CHECK_OK(hive_cancel_fire_with(&cancel, reason));
	CHECK_EQ(world_result(fiber), 12);
	CHECK_EQ(answers, 16);
	CHECK(hive_now(w.hive) <= HIVE_MS(1));
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	CHECK_OK(hive_fiber_cancel(o.other));
	CHECK_EQ(world_result(o.other), -ECANCELED);
	CHECK_OK(hive_channel_destroy(o.channel));
	CHECK_OK(close(o.fds[1]));
	world_close(&w, HIVE_DRAIN);
}

TEST(present_and_later_waits_answer_with_the_reason)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		wait_with_reason(seed, -ECANCELED);
		wait_with_reason(seed, -ETIMEDOUT);
		wait_with_reason(seed, -EDEADLK);
		wait_with_reason(seed, -ENOMEM);
		wait_with_reason(seed, -EIO);
	}
}

/* ---- who is under it ---- */

static int count_down(void *arg)
{
	int *left = arg, r = 0;

	if (--*left > 0)
		CHECK_OK(hive_spawn(hive_current(), count_down, left, NULL, NULL));
	while (r == 0)
		r = hive_sleep(HIVE_MS(1));
	CHECK_ERR(r, -EIO);
	++*left;
	return 0;
}

TEST(fibers_inherit_the_token_of_who_spawns_them)
{
	struct world w = world_open(3, 3, 0);
	struct hive_cancel cancel;
	int left = 100;

	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	CHECK_OK(hive_fiber_detach(spawn_under(&w, &cancel, count_down, &left)));
	world_advance(&w, HIVE_MS(5));
	CHECK_EQ(left, 0);
	CHECK_OK(hive_cancel_fire_with(&cancel, -EIO));
	CHECK_OK(hive_cancel_join(&cancel, HIVE_FOREVER));
	CHECK_EQ(left, 100);
	world_close(&w, HIVE_DRAIN);
}

/* Another token in place of the inherited one; and whoever is of no token is not reached. */
static int spawn_elsewhere(void *arg)
{
	struct hive_cancel *other = arg;
	struct hive_fiber_options options = { .cancel = other };
	struct hive_fiber *fiber;
	int result;

	CHECK_OK(hive_spawn(hive_current(), sleep_for_ever, NULL, &options, &fiber));
	CHECK_ERR(hive_fiber_join(fiber, HIVE_FOREVER, &result), -ECANCELED);
	CHECK_OK(hive_fiber_detach(fiber));
	CHECK_OK(hive_cancel_check(other));
	return 1;
}

TEST(a_token_of_its_own_takes_the_place_of_the_inherited_one)
{
	struct world w = world_open(1, 1, 0);
	struct hive_cancel one, other;
	struct hive_fiber *fiber;

	hive_cancel_init(&one, NULL, HIVE_FOREVER);
	hive_cancel_init(&other, NULL, HIVE_FOREVER);
	fiber = spawn_under(&w, &one, spawn_elsewhere, &other);
	world_settle(&w);
	hive_cancel_fire(&one);
	CHECK_EQ(world_result(fiber), 1);
	CHECK_OK(hive_cancel_join(&one, HIVE_NOWAIT));
	CHECK_ERR(hive_cancel_join(&other, HIVE_NOWAIT), -ETIMEDOUT);
	hive_cancel_fire(&other);
	CHECK_OK(hive_cancel_join(&other, HIVE_FOREVER));
	world_close(&w, HIVE_DRAIN);
}

TEST(a_fired_token_refuses_fibers)
{
	struct world w = world_open(1, 1, 0);
	struct hive_fiber_options options = { .cancel = NULL };
	struct hive_fiber *fiber = (void *)8;
	struct hive_cancel cancel, raw = { .magic = 1 };

	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	CHECK_OK(hive_cancel_fire_with(&cancel, -EPIPE));
	options.cancel = &cancel;
	CHECK_ERR(hive_spawn(w.hive, nothing, NULL, &options, &fiber), -EPIPE);
	options.cancel = &raw;
	CHECK_ERR(hive_spawn(w.hive, nothing, NULL, &options, &fiber), -EINVAL);
	CHECK(fiber == (void *)8);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	world_close(&w, HIVE_DRAIN);
}

/* ---- deadlines ---- */

static int sleep_on(void *arg)
{
	int r, *beats = arg;

	while ((r = hive_sleep(HIVE_MS(30))) == 0)
		++*beats;
	return r;
}

TEST(a_deadline_fires_by_itself_on_the_clock_of_the_hive)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world w = world_open(seed, 1 + (int32_t)(seed % 3), 0);
		struct hive_cancel cancel;
		struct hive_fiber *fiber;
		int beats = 0;

		hive_cancel_init(&cancel, NULL, hive_deadline(w.hive, HIVE_MS(200)));
		fiber = spawn_under(&w, &cancel, sleep_on, &beats);
		world_advance(&w, HIVE_MS(199));
		CHECK_OK(hive_cancel_check(&cancel));
		world_advance(&w, HIVE_MS(1));
		CHECK_ERR(hive_cancel_check(&cancel), -ETIMEDOUT);
		CHECK_EQ(world_result(fiber), -ETIMEDOUT);
		CHECK_EQ(beats, 6);
		CHECK_EQ(hive_now(w.hive), HIVE_MS(200));
		CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
		world_close(&w, HIVE_DRAIN);
	}
}

/* The earlier one of a token and its parents counts; who waits under a child is told by either. */
TEST(a_child_has_the_earlier_deadline)
{
	struct world w = world_open(5, 2, 0);
	struct hive_cancel root, early, late;
	struct hive_fiber *fibers[2];
	int beats = 0;

	hive_cancel_init(&root, NULL, hive_deadline(w.hive, HIVE_MS(100)));
	hive_cancel_init(&early, &root, hive_deadline(w.hive, HIVE_MS(50)));
	hive_cancel_init(&late, &root, hive_deadline(w.hive, HIVE_MS(500)));
	fibers[0] = spawn_under(&w, &early, sleep_on, &beats);
	fibers[1] = spawn_under(&w, &late, sleep_on, &beats);
	world_advance(&w, HIVE_MS(50));
	CHECK_ERR(hive_cancel_check(&early), -ETIMEDOUT);
	CHECK_OK(hive_cancel_check(&late));
	world_advance(&w, HIVE_MS(50));
	CHECK_ERR(hive_cancel_check(&late), -ETIMEDOUT);
	CHECK_ERR(hive_cancel_check(&root), -ETIMEDOUT);
	CHECK_EQ(world_result(fibers[0]), -ETIMEDOUT);
	CHECK_EQ(world_result(fibers[1]), -ETIMEDOUT);
	CHECK_OK(hive_cancel_join(&early, HIVE_NOWAIT));
	CHECK_OK(hive_cancel_join(&late, HIVE_NOWAIT));
	CHECK_OK(hive_cancel_join(&root, HIVE_NOWAIT));
	world_close(&w, HIVE_DRAIN);
}

static void count(struct hive_cancel_watch *watch, int reason)
{
	CHECK_EQ(reason, -ETIMEDOUT);
	++*(int *)watch->arg;
}

TEST(a_hive_that_is_named_watches_the_deadline)
{
	struct world w = world_open(5, 2, 0);
	struct hive_cancel cancel;
	struct hive_cancel_watch watch;
	int calls = 0;

	hive_cancel_init(&cancel, NULL, hive_deadline(w.hive, HIVE_MS(10)));
	CHECK_OK(hive_cancel_arm(&cancel, w.hive));
	CHECK_OK(hive_cancel_arm(&cancel, w.hive)); /* once is enough */
	hive_cancel_watch_init(&watch, count, &calls);
	CHECK_OK(hive_cancel_watch_start(&cancel, &watch));
	world_advance(&w, HIVE_MS(9));
	CHECK_EQ(calls, 0);
	world_advance(&w, HIVE_MS(1));
	CHECK_EQ(calls, 1);
	CHECK_ERR(hive_cancel_arm(&cancel, w.hive), -ETIMEDOUT);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	hive_cancel_init(&cancel, NULL, hive_deadline(w.hive, 1));
	world_advance(&w, 1);
	CHECK_OK(hive_cancel_check(&cancel)); /* no hive knew of it */
	CHECK_ERR(hive_cancel_arm(&cancel, w.hive), -ETIMEDOUT);
	CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	world_close(&w, HIVE_DRAIN);
}

/* Its hive ends before: nobody fires it, and it may be joined when the hive is gone; drained or not, started or not. */
TEST(a_deadline_outlives_its_hive)
{
	for (int how = 0; how < 3; how++) {
		struct world w = world_open(5, 2, 0), other = world_open(6, 1, 0);
		struct hive_cancel cancel;
		int64_t deadline = hive_deadline(w.hive, HIVE_S(1));

		hive_cancel_init(&cancel, NULL, deadline);
		CHECK_OK(hive_cancel_arm(&cancel, w.hive));
		if (how == 1)
			world_settle(&w);
		world_close(&w, how == 2 ? HIVE_NOW : HIVE_DRAIN);
		CHECK_OK(hive_cancel_check(&cancel));
		if (how == 2) { /* the next one takes over */
			CHECK_OK(hive_cancel_arm(&cancel, other.hive));
			world_advance(&other, deadline);
			CHECK_ERR(hive_cancel_check(&cancel), -ETIMEDOUT);
		}
		CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
		world_close(&other, HIVE_DRAIN);
	}
}

TEST(a_joined_token_leaves_no_alarm_behind)
{
	struct world w = world_open(5, 2, 0);
	struct hive_cancel *cancel = malloc(sizeof *cancel);

	CHECK(cancel);
	hive_cancel_init(cancel, NULL, hive_deadline(w.hive, HIVE_S(1)));
	CHECK_OK(hive_cancel_arm(cancel, w.hive));
	world_advance(&w, HIVE_MS(1));
	CHECK_OK(hive_cancel_join(cancel, HIVE_NOWAIT));
	free(cancel);
	world_advance(&w, HIVE_S(2));
	world_close(&w, HIVE_DRAIN);
}

/* ---- join ---- */

static int join_from_inside(void *arg)
{
	struct hive_cancel *cancel = arg;

	CHECK_ERR(hive_cancel_join(cancel, HIVE_FOREVER), -EDEADLK);
	return 0;
}

static int join_with_deadline(void *arg)
{
	return hive_cancel_join(arg, hive_deadline(NULL, HIVE_MS(20)));
}

static void join_as_task(void *arg)
{
	CHECK_ERR(hive_cancel_join(arg, HIVE_FOREVER), -EDEADLK);
}

TEST(a_join_waits_fires_or_says_why_not)
{
	struct world w = world_open(8, 1, 0);
	struct hive_cancel cancel, inner;
	struct hive_fiber *sleeper, *joiner;

	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	hive_cancel_init(&inner, &cancel, HIVE_FOREVER);
	CHECK_EQ(world_result(spawn_under(&w, &inner, join_from_inside, &cancel)), 0);
	sleeper = spawn_under(&w, &inner, sleep_for_ever, NULL);
	CHECK_OK(hive_post(w.hive, join_as_task, &inner));
	world_settle(&w);
	CHECK_OK(hive_cancel_check(&inner));
	joiner = world_spawn(&w, join_with_deadline, &inner);
	world_advance(&w, HIVE_MS(1));
	CHECK_ERR(hive_cancel_join(&inner, HIVE_NOWAIT), -EALREADY);
	CHECK_EQ(world_result(joiner), -ETIMEDOUT);
	CHECK_EQ(hive_now(w.hive), HIVE_MS(20));
	CHECK_EQ(world_result(sleeper), -ETIMEDOUT);
	sleeper = spawn_under(&w, &cancel, sleep_for_ever, NULL);
	joiner = world_spawn(&w, join_with_deadline, &cancel);
	world_settle(&w);
	CHECK_OK(hive_fiber_cancel(joiner)); /* fires too, and waits */
	CHECK_EQ(world_result(joiner), -ECANCELED);
	CHECK_EQ(world_result(sleeper), -ECANCELED);
	world_close(&w, HIVE_DRAIN);
}

/* Stopped hives: fibers end, and leave. */
TEST(a_stop_empties_the_token)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct world w = world_open(seed, 2, 0);
		struct hive_cancel cancel;

		hive_cancel_init(&cancel, NULL, hive_deadline(w.hive, HIVE_S(3)));
		for (int i = 0; i < 5; i++)
			CHECK_OK(hive_fiber_detach(spawn_under(&w, &cancel, sleep_for_ever, NULL)));
		if (seed % 2)
			world_settle(&w);
		world_close(&w, HIVE_NOW);
		CHECK_OK(hive_cancel_check(&cancel));
		CHECK_OK(hive_cancel_join(&cancel, HIVE_NOWAIT));
	}
}
