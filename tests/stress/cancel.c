/* SPDX-License-Identifier: MIT */
/* Cancellations that race with completion, on real threads: 10^6 watches, half as many tasks, fewer of what takes longer, each with a token of its own that
 * one thread fires while another completes it. Each ends exactly once, and says how; each token is joined and its memory used again at
 * once. ROPHIVE_CANCELS=n: another number.                                                                                */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/atomic.h"
#include "base/rng.h"
#include "support/real.h"
#include "test.h"

#include <rophive/hive.h>

enum { BATCH = 64 };

struct one {
	struct hive_cancel cancel;
	struct hive_cancel_watch watch;
	struct hive_semaphore semaphore;
	struct hive_op op;
	struct hive_timer timer;
	struct gate told;
	_Atomic int ran, dropped, ended;
	int result;
	char byte;
};

static struct {
	struct hive *hive;
	struct one ones[BATCH];
	_Atomic int64_t shown, fired; /* how many of the tokens were made ready, and have been fired */
	int64_t count;
	int64_t completed, cancelled;
} all;

/* The second thread: fires the token of each as soon as it is shown. */
static void *fire_all(void *arg)
{
	(void)arg;
	for (int64_t i = 0; i < all.count; i++) {
		for (int tries = 0; all.shown <= i; tries++)
			if (tries > 1000)
				sched_yield();
		hive_cancel_fire(&all.ones[i % BATCH].cancel);
		all.fired++;
	}
	return NULL;
}

/* About as long as who fires needs to hear of it; now and then until it has fired, for those two may have to share a CPU. */
static void linger(uint64_t *rng, int64_t number)
{
	uint32_t luck = (uint32_t)(rng_next(rng) >> 40);

	while (luck % 16 == 0 && all.fired <= number)
		sched_yield();
	for (uint32_t i = luck / 16 % 32; i > 0 && all.fired <= number; i--)
		cpu_pause();
}

/* make, show it to who fires, complete, look: as far apart as chance will have it. */
struct race {
	void (*make)(struct one *o);
	void (*complete)(struct one *o);
	bool (*settle)(struct one *o); /* true: it was completed */
};

static void run_race(const struct race *race, int64_t count)
{
	uint64_t rng = 88172645463325252u;
	pthread_t firer;

	all.count = count;
	all.shown = all.fired = all.completed = all.cancelled = 0;
	CHECK_OK(pthread_create(&firer, NULL, fire_all, NULL));
	for (int64_t i = 0; i < count; i += BATCH) {
		int n = (int)(count - i < BATCH ? count - i : BATCH);

		for (int k = 0; k < n; k++) {
			hive_cancel_init(&all.ones[k].cancel, NULL, HIVE_FOREVER);
			race->make(&all.ones[k]);
			all.shown++;
			linger(&rng, i + k);
			race->complete(&all.ones[k]);
		}
		for (int k = 0; k < n; k++) {
			struct one *o = &all.ones[k];
			bool completed;

			WAIT_UNTIL(all.fired > i + k);
			completed = race->settle(o);
			all.completed += completed;
			all.cancelled += !completed;
			CHECK_OK(hive_cancel_join(&o->cancel, HIVE_FOREVER));
		}
	}
	CHECK_OK(pthread_join(firer, NULL));
	CHECK_EQ(all.completed + all.cancelled, count);
	printf("# %lld completed, %lld cancelled\n", (long long)all.completed, (long long)all.cancelled);
}

static int64_t many(int64_t share)
{
	return test_env("ROPHIVE_CANCELS", 1000000) / share / test_slowness();
}

/* ---- watches: stopped, or called ---- */

static void on_fired(struct hive_cancel_watch *watch, int reason)
{
	struct one *o = watch->arg;

	CHECK_EQ(reason, -ECANCELED);
	o->ran++;
}

static void make_watch(struct one *o)
{
	o->ran = 0;
	hive_cancel_watch_init(&o->watch, on_fired, o);
	CHECK_OK(hive_cancel_watch_start(&o->cancel, &o->watch));
}

static void stop_watch(struct one *o)
{
	o->result = hive_cancel_watch_stop(&o->watch);
	CHECK_EQ(o->ran, o->result == 0); /* after stop: nothing is called, or it has returned */
}

static bool settle_watch(struct one *o)
{
	CHECK_EQ(o->ran, o->result == 0);
	return o->result == 1;
}

TEST(watches_are_stopped_or_called)
{
	run_race(&(struct race){ make_watch, stop_watch, settle_watch }, many(1));
}

/* ---- tasks: run, or dropped ---- */

static void on_drop(void *hook_arg, const struct hive_task *task)
{
	(void)hook_arg;
	((struct one *)task->arg)->dropped++;
}

static void begin_hive(int32_t compute)
{
	all.hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = compute, .on_drop = on_drop });
}

static void run_task(void *arg)
{
	struct one *o = arg;
	int before = hive_cancel_check(NULL);

	o->ran++;
	CHECK(before == 0 || hive_cancelled());
}

static enum hive_kind kind;

static void make_task(struct one *o)
{
	o->ran = o->dropped = 0;
	CHECK_OK(hive_post_under(all.hive, &o->cancel, kind, run_task, o));
}

static void make_delayed(struct one *o)
{
	o->ran = o->dropped = 0;
	CHECK_OK(hive_post_after_under(all.hive, &o->cancel, 0, run_task, o));
}

static void do_nothing(struct one *o)
{
	(void)o;
}

static bool settle_task(struct one *o)
{
	WAIT_UNTIL(o->ran + o->dropped > 0);
	CHECK_OK(hive_cancel_check(NULL));
	CHECK_EQ(o->ran + o->dropped, 1);
	return o->ran;
}

TEST(tasks_run_or_are_dropped)
{
	begin_hive(1);
	kind = HIVE_MICRO;
	run_race(&(struct race){ make_task, do_nothing, settle_task }, many(4));
	kind = HIVE_COMPUTE;
	run_race(&(struct race){ make_task, do_nothing, settle_task }, many(4));
	real_end(all.hive, HIVE_DRAIN);
}

TEST(delayed_tasks_run_or_are_dropped)
{
	begin_hive(0);
	run_race(&(struct race){ make_delayed, do_nothing, settle_task }, many(20));
	real_end(all.hive, HIVE_DRAIN);
}

/* ---- fibers: woken, or cancelled ---- */

static int acquire(void *arg)
{
	struct one *o = arg;

	o->result = hive_semaphore_acquire(&o->semaphore, 1, HIVE_FOREVER);
	o->ended++;
	return 0;
}

static void make_fiber(struct one *o)
{
	struct hive_fiber_options options = { .cancel = &o->cancel };

	o->ended = 0;
	hive_semaphore_init(&o->semaphore, 0);
	CHECK_OK(hive_spawn(all.hive, acquire, o, &options, NULL));
}

static void release(struct one *o)
{
	CHECK_OK(hive_semaphore_release(&o->semaphore, 1));
}

/* What was released is there unless the fiber has it. */
static bool settle_fiber(struct one *o)
{
	WAIT_UNTIL(o->ended > 0);
	CHECK_EQ(o->ended, 1);
	CHECK_ERR(hive_semaphore_acquire(&o->semaphore, 1, HIVE_NOWAIT), o->result == 0 ? -ETIMEDOUT : 0);
	CHECK(o->result == 0 || o->result == -ECANCELED);
	return o->result == 0;
}

TEST(fibers_are_woken_or_cancelled)
{
	begin_hive(0);
	run_race(&(struct race){ make_fiber, release, settle_fiber }, many(10));
	real_end(all.hive, HIVE_DRAIN);
}

/* ---- timers: fired, or stopped by a letter to their worker ---- */

static void on_time(struct hive_timer *timer)
{
	((struct one *)timer->arg)->ran++;
}

static void start_timer(void *arg)
{
	struct one *o = arg;

	hive_timer_init(&o->timer, on_time, o);
	o->result = hive_timer_start_under(&o->timer, &o->cancel, 0, 0);
	o->ended++;
}

static void make_timer(struct one *o)
{
	o->ran = o->ended = 0;
	CHECK_OK(hive_post_to(all.hive, HIVE_WORKER_MAIN, start_timer, o));
}

/* When the token is joined nobody comes to the timer any more. */
static bool settle_timer(struct one *o)
{
	WAIT_UNTIL(o->ended > 0);
	CHECK_OK(hive_cancel_join(&o->cancel, HIVE_FOREVER));
	CHECK(o->result == 0 || (o->result == -ECANCELED && o->ran == 0));
	memset(&o->timer, 0xa5, sizeof o->timer);
	hive_cancel_init(&o->cancel, NULL, HIVE_FOREVER); /* for who joins it again */
	return o->ran;
}

TEST(timers_fire_or_are_stopped)
{
	begin_hive(0);
	run_race(&(struct race){ make_timer, do_nothing, settle_timer }, many(20));
	real_end(all.hive, HIVE_DRAIN);
}

/* ---- operations: done, or cancelled ---- */

static int fds[BATCH][2];

static void on_done(struct hive_op *op, int64_t result)
{
	struct one *o = op->arg;

	o->ended++;
	o->result = (int)result;
	gate_open(&o->told);
}

static int fd_of(const struct one *o, int end)
{
	return fds[o - all.ones][end];
}

static void make_op(struct one *o)
{
	o->ended = 0;
	hive_op_init(&o->op, all.hive, on_done, o);
	CHECK_OK(hive_op_under(&o->op, &o->cancel));
	CHECK_OK(hive_op_recv(&o->op, fd_of(o, 0), &o->byte, 1, HIVE_FOREVER));
}

static void send_byte(struct one *o)
{
	CHECK_EQ(write(fd_of(o, 1), "x", 1), 1);
}

/* The byte was received, or is there to be. */
static bool settle_op(struct one *o)
{
	gate_pass(&o->told);
	CHECK_EQ(o->ended, 1);
	CHECK(o->result == 1 || o->result == -ECANCELED);
	CHECK_EQ(recv(fd_of(o, 0), &o->byte, 1, MSG_DONTWAIT), o->result == 1 ? -1 : 1);
	return o->result == 1;
}

TEST(operations_are_done_or_cancelled)
{
	for (int i = 0; i < BATCH; i++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds[i]));
		gate_init(&all.ones[i].told);
	}
	begin_hive(0);
	run_race(&(struct race){ make_op, send_byte, settle_op }, many(40));
	real_end(all.hive, HIVE_DRAIN);
	for (int i = 0; i < BATCH; i++) {
		gate_destroy(&all.ones[i].told);
		close(fds[i][0]);
		close(fds[i][1]);
	}
}
