/* SPDX-License-Identifier: MIT */
/* Waits in a circle. Debug builds report them, and who would have closed the circle is refused; release builds wait, and a dump says who waits for
 * whom. What is no circle, or would end by itself, is left alone by both.                                                   */
#include <pthread.h>
#include <string.h>

#include "base/lock.h"
#include "base/thread.h"
#include "support/dump.h"
#include "support/real.h"
#include "support/world.h"
#include "sync/inside.h"

#if defined(HIVE_DEBUG)
enum { DEBUG = 1 };
#else
enum { DEBUG = 0 };
#endif
enum { CIRCLE_MAX = 12 };

static struct {
	char text[8192];
	int lines, circles;
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
	told.circles += strncmp(line, "deadlock: ", 10) == 0;
	lock_release(&told.lock);
}

static struct world open_world(uint64_t seed)
{
	memset(told.text, 0, sizeof told.text);
	told.lines = told.circles = 0;
	return world_with((struct hive_sim_options){ .seed = seed },
	                  (struct hive_options){ .io_workers = 2, .compute_workers = 1, .on_warn = on_warn });
}

static struct hive_fiber *spawn_named(struct world *w, const char *name, hive_fiber_fn *fn, void *arg)
{
	struct hive_fiber *fiber;

	CHECK_OK(hive_spawn(w->hive, fn, arg, &(struct hive_fiber_options){ .name = name }, &fiber));
	return fiber;
}

static void check_told(const char *words)
{
	if (!strstr(told.text, words))
		test_fail(__FILE__, __LINE__, "nothing of \"%s\" in: %s", words, told.text);
}

/* ---- each holds one mutex and wants the next ---- */

struct place {
	struct hive_mutex *mine, *next;
	struct hive_semaphore *ready; /* all hold theirs */
	int count;
	int64_t deadline_ns;
};

static struct hive_mutex mutexes[CIRCLE_MAX];
static struct hive_semaphore ready;
static struct place places[CIRCLE_MAX];
static struct hive_fiber *fibers[CIRCLE_MAX];

static int hold_and_want(void *arg)
{
	struct place *p = arg;
	int r = hive_mutex_lock(p->mine, HIVE_FOREVER);

	CHECK_OK(r);
	CHECK_OK(hive_semaphore_release(&ready, 1));
	r = hive_semaphore_acquire(&ready, (uint32_t)p->count, HIVE_FOREVER);
	if (r == 0)
		CHECK_OK(hive_semaphore_release(&ready, (uint32_t)p->count));
	if (r == 0)
		r = hive_mutex_lock(p->next, p->deadline_ns);
	if (r == 0)
		CHECK_OK(hive_mutex_unlock(p->next));
	CHECK_OK(hive_mutex_unlock(p->mine));
	return r;
}

/* `open`: the last one wants a mutex that nobody holds. */
static void seat_all(struct world *w, int count, bool open, int64_t deadline_ns)
{
	hive_semaphore_init(&ready, 0);
	for (int i = 0; i < CIRCLE_MAX; i++)
		hive_mutex_init(&mutexes[i]);
	for (int i = 0; i < count; i++) {
		char name[16];
		int next = open ? i + 1 : (i + 1) % count;

		snprintf(name, sizeof name, "guest-%d", i);
		places[i] = (struct place){ &mutexes[i], &mutexes[next], &ready, count, HIVE_FOREVER };
		if (i == 0)
			places[i].deadline_ns = deadline_ns;
		fibers[i] = spawn_named(w, name, hold_and_want, &places[i]);
	}
	world_settle(w);
}

/* Whoever comes last, and however many they are: one is refused, and then all others get what they want. */
TEST(a_circle_of_mutexes)
{
	for (int count = 2; count <= CIRCLE_MAX; count += 5) {
		for (uint64_t seed = 0; seed < 20; seed++) {
			struct world w = open_world(seed);
			int refused = 0, cancelled = 0;

			seat_all(&w, count, false, HIVE_FOREVER);
			CHECK_EQ(told.circles, DEBUG);
			if (!DEBUG) { /* all wait, and a dump says for whom */
				CHECK(strstr(dump_text(w.hive), "guest-0: waits: mutex, for fiber guest-1, stack"));
				CHECK(strstr(dump_text(w.hive), "guest-1: waits: mutex, for fiber guest-"));
				CHECK_OK(hive_fiber_cancel(fibers[1]));
			}
			for (int i = 0; i < count; i++) {
				int r = world_result(fibers[i]);

				refused += r == -EDEADLK;
				cancelled += r == -ECANCELED;
				CHECK(r == 0 || r == -EDEADLK || r == -ECANCELED);
			}
			CHECK_EQ(refused, DEBUG);
			CHECK_EQ(cancelled, !DEBUG);
			world_close(&w, HIVE_DRAIN);
		}
	}
}

#if defined(HIVE_DEBUG)
/* One line that says so, one for each wait, up to 8. */
TEST(a_report_names_them_all)
{
	struct world w = open_world(1);

	seat_all(&w, 3, false, HIVE_FOREVER);
	CHECK_EQ(told.lines, 4);
	check_told("deadlock: fiber guest-");
	check_told(" would wait for ever, 3 in a circle:\n");
	check_told("  fiber guest-0 waits for mutex 0x");
	check_told(", held by fiber guest-1\n");
	check_told(", held by fiber guest-2\n");
	check_told(", held by fiber guest-0\n");
	for (int i = 0; i < 3; i++)
		world_result(fibers[i]);
	world_close(&w, HIVE_DRAIN);
	w = open_world(1);
	seat_all(&w, CIRCLE_MAX, false, HIVE_FOREVER);
	CHECK_EQ(told.lines, 1 + 8 + 1);
	check_told("12 in a circle:\n");
	check_told("  and so on\n");
	for (int i = 0; i < CIRCLE_MAX; i++)
		world_result(fibers[i]);
	world_close(&w, HIVE_DRAIN);
}
#endif

/* A row that ends is none, nor is a circle of which one gives up in time: whoever that is. */
TEST(what_ends_by_itself_is_left_alone)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world w = open_world(seed);

		seat_all(&w, 5, true, HIVE_FOREVER);
		for (int i = 0; i < 5; i++)
			CHECK_EQ(world_result(fibers[i]), 0);
		world_close(&w, HIVE_DRAIN);
		w = open_world(seed);
		seat_all(&w, 5, false, hive_deadline(w.hive, HIVE_MS(5)));
		world_advance(&w, HIVE_MS(10));
		CHECK_EQ(world_result(fibers[0]), -ETIMEDOUT);
		for (int i = 1; i < 5; i++)
			CHECK_EQ(world_result(fibers[i]), 0);
		world_close(&w, HIVE_DRAIN);
		CHECK_EQ(told.lines, 0);
	}
}

/* One of them was cancelled and has not gone on yet. */
static int cancel_and_want(void *arg)
{
	struct place *p = arg;
	int r;

	CHECK_OK(hive_mutex_lock(p->mine, HIVE_FOREVER));
	CHECK_OK(hive_semaphore_release(p->ready, 1));
	while (!list_in(p->mine->waiters)->first)
		hive_yield();
	CHECK_OK(hive_fiber_cancel(fibers[0]));
	r = hive_mutex_lock(p->next, HIVE_FOREVER);
	CHECK_OK(r);
	CHECK_OK(hive_mutex_unlock(p->next));
	CHECK_OK(hive_mutex_unlock(p->mine));
	return r;
}

static int want_second(void *arg)
{
	int r;

	(void)arg;
	CHECK_OK(hive_mutex_lock(&mutexes[0], HIVE_FOREVER));
	CHECK_OK(hive_semaphore_acquire(&ready, 1, HIVE_FOREVER));
	r = hive_mutex_lock(&mutexes[1], HIVE_FOREVER);
	CHECK_OK(hive_mutex_unlock(&mutexes[0]));
	return r;
}

TEST(one_who_was_cancelled_closes_no_circle)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world w = open_world(seed);

		hive_semaphore_init(&ready, 0);
		hive_mutex_init(&mutexes[0]);
		hive_mutex_init(&mutexes[1]);
		places[1] = (struct place){ &mutexes[1], &mutexes[0], &ready, 0, HIVE_FOREVER };
		fibers[0] = spawn_named(&w, "early", want_second, NULL);
		fibers[1] = spawn_named(&w, "late", cancel_and_want, &places[1]);
		world_settle(&w);
		CHECK_EQ(world_result(fibers[0]), -ECANCELED);
		CHECK_EQ(world_result(fibers[1]), 0);
		CHECK_EQ(told.lines, 0);
		world_close(&w, HIVE_DRAIN);
	}
}

/* ---- ends that are waited for ---- */

static int hold_and_join(void *arg)
{
	int r, result = 0;

	CHECK_OK(hive_mutex_lock(&mutexes[0], HIVE_FOREVER));
	if (arg) /* it waits already */
		while (!list_in(mutexes[0].waiters)->first)
			hive_yield();
	r = hive_fiber_join(fibers[1], HIVE_FOREVER, &result);
	CHECK_OK(hive_mutex_unlock(&mutexes[0]));
	if (r == -EDEADLK || r == -ECANCELED) /* the handle is still good */
		CHECK_OK(hive_fiber_detach(fibers[1]));
	return r < 0 ? r : result;
}

static int want_first(void *arg)
{
	int r;

	(void)arg;
	while (load_relaxed(&mutexes[0].state) == 0)
		hive_yield();
	r = hive_mutex_lock(&mutexes[0], HIVE_FOREVER);
	if (r == 0)
		CHECK_OK(hive_mutex_unlock(&mutexes[0]));
	return r;
}

TEST(a_circle_of_a_mutex_and_a_join)
{
	for (int join_last = 0; join_last < 2; join_last++) {
		struct world w = open_world(3);

		hive_mutex_init(&mutexes[0]);
		fibers[1] = spawn_named(&w, "child", want_first, NULL);
		fibers[0] = spawn_named(&w, "parent", hold_and_join, join_last ? &w : NULL);
		world_settle(&w);
		CHECK_EQ(told.circles, DEBUG);
		if (DEBUG) {
			check_told("  fiber parent waits for the end of fiber child\n");
			check_told("  fiber child waits for mutex 0x");
		} else {
			CHECK(strstr(dump_text(w.hive), "parent: waits: join, for fiber child, stack"));
			CHECK(strstr(dump_text(w.hive), "child: waits: mutex, for fiber parent, stack"));
			CHECK_OK(hive_fiber_cancel(fibers[0]));
		}
		CHECK_EQ(world_result(fibers[0]), DEBUG ? -EDEADLK : -ECANCELED);
		world_close(&w, HIVE_DRAIN);
	}
}

static int join_other(void *arg)
{
	return hive_fiber_join(*(struct hive_fiber **)arg, HIVE_FOREVER, NULL);
}

TEST(two_who_wait_for_each_others_end)
{
	struct world w = open_world(5);
	int r;

	fibers[0] = spawn_named(&w, "hen", join_other, &fibers[1]);
	fibers[1] = spawn_named(&w, "egg", join_other, &fibers[0]);
	world_settle(&w);
	CHECK_EQ(told.circles, DEBUG);
	if (!DEBUG)
		CHECK_OK(hive_fiber_cancel(fibers[0]));
	world_settle(&w); /* one was refused and has ended, the other has joined it */
	r = hive_fiber_join(fibers[0], HIVE_FOREVER, NULL);
	CHECK(r == 0 || r == -ESRCH);
	CHECK_EQ(hive_fiber_join(fibers[1], HIVE_FOREVER, NULL), r == 0 ? -ESRCH : 0);
	world_close(&w, HIVE_DRAIN);
}

/* ---- the mutex that a condition takes back cannot be refused: told, and waited for ---- */

static struct hive_cond cond;
static int step_of_test;

static int wait_with_other(void *arg)
{
	int r;

	(void)arg;
	CHECK_OK(hive_mutex_lock(&mutexes[0], HIVE_FOREVER));
	CHECK_OK(hive_mutex_lock(&mutexes[1], HIVE_FOREVER));
	step_of_test = 1;
	r = hive_cond_wait(&cond, &mutexes[0], HIVE_FOREVER);
	CHECK_OK(hive_mutex_unlock(&mutexes[1]));
	CHECK_OK(hive_mutex_unlock(&mutexes[0]));
	return r;
}

static int signal_and_want(void *arg)
{
	int r;

	(void)arg;
	while (!step_of_test)
		hive_yield();
	CHECK_OK(hive_mutex_lock(&mutexes[0], HIVE_FOREVER));
	hive_cond_signal(&cond);
	while (!list_in(mutexes[0].waiters)->first)
		hive_yield();
	r = hive_mutex_lock(&mutexes[1], HIVE_FOREVER);
	CHECK_OK(hive_mutex_unlock(&mutexes[0]));
	return r;
}

TEST(a_circle_through_a_condition)
{
	struct world w = open_world(7);

	step_of_test = 0;
	hive_cond_init(&cond);
	hive_mutex_init(&mutexes[0]);
	hive_mutex_init(&mutexes[1]);
	fibers[0] = spawn_named(&w, "waiter", wait_with_other, NULL);
	fibers[1] = spawn_named(&w, "signaller", signal_and_want, NULL);
	world_settle(&w);
	CHECK_EQ(told.circles, DEBUG);
	if (!DEBUG)
		CHECK_OK(hive_fiber_cancel(fibers[1]));
	CHECK_EQ(world_result(fibers[1]), DEBUG ? -EDEADLK : -ECANCELED);
	CHECK_EQ(world_result(fibers[0]), 0);
	world_close(&w, HIVE_DRAIN);
}

/* Here the condition comes last: the mutex that it promised to take is held by one who waits for its other one. */
static int hold_until_waited_for(void *arg)
{
	int r;

	(void)arg;
	while (!step_of_test)
		hive_yield();
	CHECK_OK(hive_mutex_lock(&mutexes[0], HIVE_FOREVER));
	step_of_test = 2;
	r = hive_mutex_lock(&mutexes[1], HIVE_FOREVER);
	CHECK_OK(hive_mutex_unlock(&mutexes[0]));
	return r;
}

TEST(a_circle_that_a_condition_closes_is_told_and_goes_on)
{
	struct world w = open_world(9);

	step_of_test = 0;
	hive_cond_init(&cond);
	hive_mutex_init(&mutexes[0]);
	hive_mutex_init(&mutexes[1]);
	fibers[0] = spawn_named(&w, "waiter", wait_with_other, NULL);
	fibers[1] = spawn_named(&w, "holder", hold_until_waited_for, NULL);
	world_settle(&w);
	CHECK_EQ(step_of_test, 2);
	CHECK_EQ(told.lines, 0); /* a condition has no holder */
	hive_cond_signal(&cond);
	world_settle(&w);
	CHECK_EQ(told.circles, DEBUG);
	CHECK(strstr(dump_text(w.hive), "waiter: waits: mutex, for fiber holder, stack"));
	CHECK_OK(hive_fiber_cancel(fibers[1]));
	CHECK_EQ(world_result(fibers[1]), -ECANCELED);
	CHECK_EQ(world_result(fibers[0]), 0);
	world_close(&w, HIVE_DRAIN);
}

/* ---- threads ---- */

static int other_result;

static void *hold_and_want_first(void *arg)
{
	(void)arg;
	CHECK_OK(hive_mutex_lock(&mutexes[1], HIVE_FOREVER));
	other_result = hive_mutex_lock(&mutexes[0], HIVE_FOREVER);
	if (other_result == 0)
		CHECK_OK(hive_mutex_unlock(&mutexes[0]));
	CHECK_OK(hive_mutex_unlock(&mutexes[1]));
	return NULL;
}

static bool has_waiter(struct hive_mutex *mutex)
{
	return (load_relaxed(&mutex->state) & 2) != 0; /* sync/words.h */
}

/* Without a hive it is told to stderr, by the system's number of each thread. */
TEST(threads_wait_in_a_circle)
{
	char text[1024] = "";
	FILE *file = tmpfile();
	pthread_t thread;
	int saved = dup(2), r;

	CHECK(file && saved >= 0);
	hive_mutex_init(&mutexes[0]);
	hive_mutex_init(&mutexes[1]);
	CHECK_OK(hive_mutex_lock(&mutexes[0], HIVE_FOREVER));
	CHECK_EQ(pthread_create(&thread, NULL, hold_and_want_first, NULL), 0);
	WAIT_UNTIL(has_waiter(&mutexes[0]));
	dup2(fileno(file), 2);
	r = hive_mutex_lock(&mutexes[1], DEBUG ? HIVE_FOREVER : HIVE_NOWAIT);
	if (r == 0)
		CHECK_OK(hive_mutex_unlock(&mutexes[1]));
	CHECK_OK(hive_mutex_unlock(&mutexes[0]));
	CHECK_EQ(pthread_join(thread, NULL), 0);
	dup2(saved, 2);
	close(saved);
	/* The last of the two to wait is refused: he may be in the list of the mutex already, and not yet known to wait. */
	if (DEBUG)
		CHECK((r == -EDEADLK) + (other_result == -EDEADLK) == 1 && (r == 0) + (other_result == 0) == 1);
	else
		CHECK(r == -ETIMEDOUT && other_result == 0);
	rewind(file);
	CHECK(fread(text, 1, sizeof text - 1, file) < sizeof text);
	fclose(file);
	CHECK_EQ(strstr(text, "rophive: deadlock: thread ") != NULL, DEBUG);
	CHECK_EQ(strstr(text, ", held by thread ") != NULL, DEBUG);
}

static int hold_until_released(void *arg)
{
	(void)arg;
	CHECK_OK(hive_mutex_lock(&mutexes[1], HIVE_FOREVER));
	CHECK_OK(hive_mutex_lock(&mutexes[0], HIVE_FOREVER));
	CHECK_OK(hive_mutex_unlock(&mutexes[0]));
	CHECK_OK(hive_mutex_unlock(&mutexes[1]));
	return 0;
}

/* A dump names threads too. */
TEST(a_fiber_waits_for_a_thread)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .stall_ns = HIVE_OFF });
	struct hive_fiber_options o = { .name = "patient" };
	struct hive_fiber *fiber;
	char words[64];

	hive_mutex_init(&mutexes[0]);
	hive_mutex_init(&mutexes[1]);
	CHECK_OK(hive_mutex_lock(&mutexes[0], HIVE_FOREVER));
	CHECK_OK(hive_spawn(hive, hold_until_released, NULL, &o, &fiber));
	snprintf(words, sizeof words, "patient: waits: mutex, for thread %u, stack", hive__thread_system_number());
	WAIT_UNTIL(strstr(dump_text(hive), words));
	CHECK_OK(hive_mutex_unlock(&mutexes[0]));
	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, NULL));
	real_end(hive, HIVE_DRAIN);
}
