/* SPDX-License-Identifier: MIT */
/* All fibers wait and nobody is left to wake them: said once, and only then. The monitor of these worlds is played by the test. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/lock.h"
#include "sched/internal.h"
#include "support/dump.h"
#include "support/real.h"
#include "support/world.h"

enum { STALL_MS = 50 };

static struct {
	char text[8192];
	int lines;
	struct lock lock;
} told;

static void on_warn(void *arg, const char *line)
{
	size_t used;

	(void)arg;
	lock_acquire(&told.lock);
	used = strlen(told.text);
	snprintf(told.text + used, sizeof told.text - used, "%s\n", line);
	told.lines++;
	lock_release(&told.lock);
}

static bool was_told(const char *words)
{
	bool found;

	lock_acquire(&told.lock);
	found = strstr(told.text, words) != NULL;
	lock_release(&told.lock);
	return found;
}

static void check_told(const char *words)
{
	if (!strstr(told.text, words))
		test_fail(__FILE__, __LINE__, "nothing of \"%s\" in: %s", words, told.text);
}

static void forget(void)
{
	memset(told.text, 0, sizeof told.text);
	told.lines = 0;
}

static struct world open_world(void)
{
	forget();
	return world_with(
		(struct hive_sim_options){ .seed = 1, .beat_ns = 1 }, /* no beats that nobody asked for */
		(struct hive_options){
			.io_workers = 2, .compute_workers = 1, .on_warn = on_warn, .stall_ns = HIVE_MS(STALL_MS) });
}

static struct hive_semaphore semaphore;
static struct hive_mutex mutex;
static struct hive_channel *channel;
static struct hive_fiber *target;

static int wait_semaphore(void *arg)
{
	return hive_semaphore_acquire(&semaphore, 1, arg ? *(int64_t *)arg : HIVE_FOREVER);
}

static int hold_and_wait(void *arg)
{
	int r;

	(void)arg;
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
	r = hive_semaphore_acquire(&semaphore, 1, HIVE_FOREVER);
	CHECK_OK(hive_mutex_unlock(&mutex));
	return r;
}

static int want_mutex(void *arg)
{
	int r = hive_mutex_lock(&mutex, HIVE_FOREVER);

	(void)arg;
	if (r == 0)
		CHECK_OK(hive_mutex_unlock(&mutex));
	return r;
}

static int wait_channel(void *arg)
{
	int item;

	(void)arg;
	return hive_channel_recv(channel, &item, sizeof item, HIVE_FOREVER);
}

static int join_target(void *arg)
{
	(void)arg;
	return hive_fiber_join(target, HIVE_FOREVER, NULL);
}

static void spawn(struct world *w, const char *name, hive_fiber_fn *fn, void *arg, struct hive_fiber **ret_fiber)
{
	CHECK_OK(hive_spawn(w->hive, fn, arg, &(struct hive_fiber_options){ .name = name }, ret_fiber));
	world_advance(w, 1000);
}

static void make_objects(void)
{
	hive_semaphore_init(&semaphore, 0);
	hive_mutex_init(&mutex);
	CHECK_OK(hive_channel_create(sizeof(int), 1, &channel));
}

static void drain(struct world *w, int64_t deadline_ns)
{
	CHECK_OK(hive_stop(w->hive, HIVE_DRAIN, deadline_ns));
	world_advance(w, 1000);
}

/* Virtual time moves without a beat, so that deadlines do not pass: the monitor's own clock is all that counts. */
static void look_after(struct world *w, int64_t ms)
{
	if (ms > 0)
		world_advance(w, HIVE_MS(ms));
	hive__monitor_look(w->hive);
}

static void close_world(struct world *w)
{
	int r = hive_stop(w->hive, HIVE_NOW, HIVE_FOREVER);

	CHECK(r == 0 || r == -EALREADY);
	world_join(w);
	CHECK_OK(hive_channel_destroy(channel));
}

/* Not before its time; once; with each fiber, what it waits for and for whom. */
TEST(a_drain_that_cannot_end_is_told_once)
{
	struct world w = open_world();

	make_objects();
	spawn(&w, "holder", hold_and_wait, NULL, &target);
	spawn(&w, "wanter", want_mutex, NULL, NULL);
	spawn(&w, "reader", wait_channel, NULL, NULL);
	spawn(&w, "joiner", join_target, NULL, NULL);
	drain(&w, HIVE_FOREVER);
	look_after(&w, 0);
	look_after(&w, STALL_MS - 1);
	CHECK_EQ(told.lines, 0);
	look_after(&w, 1);
	CHECK_EQ(told.lines, 5);
	check_told("all fibers (4) wait, nobody is left to wake them, and the hive drains\n");
	check_told("  fiber holder waits: semaphore\n");
	check_told("  fiber wanter waits: mutex, for fiber holder\n");
	check_told("  fiber reader waits: channel: receive\n");
	check_told("  fiber joiner waits: join, for fiber holder\n");
	look_after(&w, STALL_MS);
	look_after(&w, 10 * STALL_MS);
	CHECK_EQ(told.lines, 5);
	close_world(&w);
}

/* They may go on after all: nothing was done to them. */
TEST(who_was_told_of_may_go_on)
{
	struct world w = open_world();

	make_objects();
	spawn(&w, "late", wait_semaphore, NULL, NULL);
	drain(&w, HIVE_FOREVER);
	look_after(&w, 0);
	look_after(&w, STALL_MS);
	CHECK_EQ(told.lines, 2);
	CHECK_OK(hive_semaphore_release(&semaphore, 1));
	CHECK_OK(hive_join(w.hive, HIVE_FOREVER));
	world_join(&w);
	CHECK_OK(hive_channel_destroy(channel));
}

/* A few of many are named. */
TEST(a_crowd_is_counted)
{
	struct world w = open_world();

	make_objects();
	for (int i = 0; i < 40; i++)
		spawn(&w, NULL, wait_semaphore, NULL, NULL);
	drain(&w, HIVE_FOREVER);
	look_after(&w, 0);
	look_after(&w, STALL_MS);
	CHECK_EQ(told.lines, 1 + 16);
	check_told("all fibers (40) wait");
	check_told("  fiber 0x");
	close_world(&w);
}

static void expect_silence(struct world *w)
{
	look_after(w, 0);
	for (int i = 0; i < 5; i++)
		look_after(w, STALL_MS);
	CHECK_EQ(told.lines, 0);
}

/* ---- what is ordinary ---- */

/* Threads may come and feed them: nobody waits for their end. */
TEST(fibers_that_serve_threads_are_idle)
{
	struct world w = open_world();

	make_objects();
	spawn(&w, "server", wait_channel, NULL, NULL);
	spawn(&w, "server", wait_semaphore, NULL, NULL);
	expect_silence(&w);
	close_world(&w);
}

/* No fibers at all: a hive that sleeps. */
TEST(a_hive_without_fibers_is_idle)
{
	struct world w = open_world();

	make_objects();
	expect_silence(&w);
	close_world(&w);
}

TEST(a_deadline_will_end_it)
{
	int64_t deadline;
	struct world w = open_world();

	make_objects();
	deadline = hive_deadline(w.hive, HIVE_S(1000)); /* of one fiber */
	spawn(&w, "patient", wait_semaphore, NULL, NULL);
	spawn(&w, "late", wait_semaphore, &deadline, NULL);
	drain(&w, HIVE_FOREVER);
	expect_silence(&w);
	close_world(&w);
	w = open_world(); /* of the drain */
	make_objects();
	spawn(&w, "patient", wait_semaphore, NULL, NULL);
	drain(&w, hive_deadline(w.hive, HIVE_S(1000)));
	expect_silence(&w);
	close_world(&w);
}

static int fds[2];

static int receive(void *arg)
{
	char byte;
	int64_t n = hive_recv(fds[0], &byte, 1, HIVE_FOREVER);

	(void)arg;
	return n < 0 ? (int)n : 0;
}

static int wait_signal(void *arg)
{
	int number = SIGUSR1;

	(void)arg;
	return hive_signal_wait(&number, 1, HIVE_FOREVER);
}

static int sleep_long(void *arg)
{
	(void)arg;
	return hive_sleep(HIVE_S(1000));
}

static int yield_for_long(void *arg)
{
	int r = 0;

	while (!*(bool *)arg && r == 0)
		r = hive_yield();
	return r;
}

/* One fiber among them that the world outside will wake is enough: bytes, the clock. */
TEST(one_who_waits_for_the_world_is_enough)
{
	static hive_fiber_fn *const worldly[] = { receive, sleep_long };

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	for (int i = 0; i < 2; i++) {
		struct world w = open_world();

		make_objects();
		spawn(&w, "patient", wait_semaphore, NULL, NULL);
		spawn(&w, "worldly", worldly[i], NULL, &target);
		drain(&w, HIVE_FOREVER);
		CHECK_ERR(hive_fiber_join(target, HIVE_NOWAIT, NULL), -ETIMEDOUT); /* it waits */
		CHECK_OK(hive_fiber_detach(target));
		expect_silence(&w);
		close_world(&w);
	}
	close(fds[0]);
	close(fds[1]);
}

/* Signals are for real hives. This one has no monitor, and the least of patience: two looks, and it would be told; as it is without the signal. */
TEST(one_who_waits_for_a_signal_is_enough)
{
	for (int without = 0; without < 2; without++) {
		struct hive *hive = real_start(
			(struct hive_options){ .io_workers = 1, .on_warn = on_warn, .stall_ns = HIVE_OFF });

		forget();
		make_objects();
		CHECK_OK(hive_spawn(hive, wait_semaphore, NULL, NULL, NULL));
		CHECK_OK(hive_spawn(hive, without ? wait_channel : wait_signal, NULL, NULL, NULL));
		CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
		WAIT_UNTIL(strstr(dump_text(hive), without ? "waits: channel" : "waits: signal"));
		do { /* it sleeps for good now: two looks with nothing between */
			real_wait_asleep(hive, 1);
			hive__standstill_look(hive);
			hive__standstill_look(hive);
		} while (without && told.lines == 0);
		CHECK_EQ(told.lines, without ? 3 : 0);
		CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		real_join(hive);
		CHECK_OK(hive_channel_destroy(channel));
	}
}

/* While any worker is at something there may be more to come. */
static struct world *world;

static void look_from_inside(void *arg)
{
	(void)arg;
	hive__monitor_look(world->hive);
	CHECK_OK(hive_sim_spend(world->sim, HIVE_MS(STALL_MS - 1)));
	hive__monitor_look(world->hive);
}

TEST(a_task_that_runs_is_somebody)
{
	struct world w = open_world();

	world = &w;
	make_objects();
	spawn(&w, "patient", wait_semaphore, NULL, NULL);
	for (int i = 0; i < 4; i++)
		CHECK_OK(hive_post_compute(w.hive, look_from_inside, NULL));
	drain(&w, HIVE_FOREVER);
	world_advance(&w, HIVE_MS(4 * STALL_MS));
	CHECK_EQ(told.lines, 0);
	close_world(&w);
}

/* Whatever happened meanwhile, the time begins anew. */
TEST(each_change_begins_the_time_anew)
{
	struct world w = open_world();
	bool enough = false;

	make_objects();
	spawn(&w, "patient", wait_semaphore, NULL, NULL);
	spawn(&w, "busy", yield_for_long, &enough, NULL);
	enough = true;
	drain(&w, HIVE_FOREVER);
	for (int i = 0; i < 5; i++) {
		look_after(&w, 0);
		look_after(&w, STALL_MS - 1);
		bump(&hive__slot(&w.hive->io, 0)->stats.beats, 1); /* a beat that found nothing */
		look_after(&w, 1);
	}
	CHECK_EQ(told.lines, 0);
	look_after(&w, STALL_MS);
	CHECK_EQ(told.lines, 2);
	close_world(&w);
}

/* ---- a thread that waits for them ---- */

struct waiting {
	struct hive *hive;
	struct hive_fiber *fiber;
	int how, result;
};

static void *wait_for_end(void *arg)
{
	struct waiting *w = arg;
	int r = w->how == 0   ? hive_block_on(w->hive, wait_semaphore, NULL, HIVE_FOREVER, &w->result)
	        : w->how == 1 ? hive_wait_all(&w->fiber, 1, HIVE_FOREVER)
	                      : 0;

	CHECK_OK(r);
	if (w->how > 0)
		CHECK_OK(hive_fiber_join(w->fiber, HIVE_FOREVER, &w->result));
	return NULL;
}

/* By the monitor's own thread, after 5 ms; then it is woken by somebody whom nobody could know of. */
TEST(a_thread_that_waits_for_the_end_is_told)
{
	for (int how = 0; how < 3; how++) {
		struct waiting waiting = { .how = how };
		pthread_t thread;

		forget();
		hive_semaphore_init(&semaphore, 0);
		waiting.hive = real_start((struct hive_options){
			.io_workers = 2, .compute_workers = 1, .on_warn = on_warn, .stall_ns = HIVE_MS(5) });
		if (how > 0)
			CHECK_OK(hive_spawn(waiting.hive, wait_semaphore, NULL, NULL, &waiting.fiber));
		CHECK_EQ(pthread_create(&thread, NULL, wait_for_end, &waiting), 0);
		WAIT_UNTIL(was_told(
			"all fibers (1) wait, nobody is left to wake them, and a thread waits for their end\n"));
		CHECK_OK(hive_semaphore_release(&semaphore, 1));
		CHECK_EQ(pthread_join(thread, NULL), 0);
		CHECK_EQ(waiting.result, 0);
		real_end(waiting.hive, HIVE_DRAIN);
		CHECK_EQ(load_relaxed(&semaphore.state), 0);
	}
}

/* Nobody counts as waiting any more, however it ended. */
TEST(who_has_waited_is_not_counted)
{
	struct world w = open_world();
	int result = -1;

	make_objects();
	CHECK_OK(hive_semaphore_release(&semaphore, 1));
	CHECK_OK(hive_block_on(w.hive, wait_semaphore, NULL, HIVE_FOREVER, &result));
	CHECK_EQ(result, 0);
	CHECK_ERR(hive_block_on(w.hive, wait_semaphore, NULL, hive_deadline(w.hive, HIVE_MS(1)), &result), -ETIMEDOUT);
	/* In a world without threads it is known that nothing is left to happen. */
	CHECK_ERR(hive_block_on(w.hive, wait_semaphore, NULL, HIVE_FOREVER, &result), -EDEADLK);
	CHECK_EQ(load_relaxed(&w.hive->awaited), 0);
	spawn(&w, "server", wait_channel, NULL, NULL);
	expect_silence(&w);
	close_world(&w);
}
