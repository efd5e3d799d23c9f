/* SPDX-License-Identifier: MIT */
/* The system's side of the cores: which descriptors a hive opens, what a wake costs, and what happens when the
 * system has no more to give.                                                                                  */
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "support/cores.h"
#include "support/real.h"

static const struct hive_core_ops *core_named(const char *name)
{
	const struct hive_core_ops *core;

	CHECK_OK(hive_core_find(name, &core));
	return core;
}

/* ---- what a wake costs ---- */

static const struct hive_core_ops *real_core;
static struct hive_core_ops counting_core;
static _Atomic(int) wakes_made;
static _Atomic(bool) hold;
static struct gate held;

static int counting_open(void *arg, struct hive_core **ret_core)
{
	int r = real_core->open(arg, ret_core);

	if (r == 0)
		(*ret_core)->ops = &counting_core;
	return r;
}

static void counting_wake(struct hive_core *core)
{
	atomic_fetch_add(&wakes_made, 1);
	real_core->wake(core);
}

/* A worker that was woken, or has got up by itself (who is stopped and goes on is), and has not come out of the system yet, for as long as the test
 * likes.                                                                                                                   */
static int counting_turn(struct hive_core *core, int64_t timeout_ns)
{
	int r = real_core->turn(core, timeout_ns);

	if (timeout_ns != 0 && atomic_load(&hold)) {
		atomic_store(&hold, false);
		gate_pass(&held);
	}
	return r;
}

static struct hive *start_many_counting(const char *name, int32_t workers, enum hive_placement placement)
{
	struct hive_worker_options io = { .core = &counting_core };

	real_core = core_named(name);
	counting_core = *real_core;
	counting_core.open = counting_open;
	counting_core.wake = counting_wake;
	counting_core.turn = counting_turn;
	gate_init(&held);
	return real_start((struct hive_options){ .io_workers = workers, .io = &io, .placement = placement });
}

static struct hive *start_counting(const char *name)
{
	return start_many_counting(name, 1, HIVE_PLACE_DEFAULT);
}

static _Atomic(int) ran;

static void count(void *arg)
{
	(void)arg;
	atomic_fetch_add(&ran, 1);
}

static void post_by(struct hive *hive, int door)
{
	if (door == 0)
		CHECK_OK(hive_post(hive, count, NULL));
	else if (door == 1)
		CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, count, NULL));
	else if (door == 2)
		CHECK_OK(hive_post_after(hive, 0, count, NULL, NULL));
	else
		CHECK_OK(hive_post_many(hive, &(struct hive_task){ count, NULL }, 1));
}

static uint64_t wakes_counted(struct hive *hive)
{
	struct hive_stats s;

	CHECK_OK(hive_stats_read(hive, &s));
	return s.wakes;
}

/* any number of posts to a sleeper cost one system call, by whichever door. */
TEST(any_number_of_posts_to_a_sleeper_cost_one_wake)
{
	for (int i = 0; i < core_count() * 4; i++) {
		struct hive_worker_stats s;
		struct hive *hive;
		uint64_t before;

		atomic_store(&hold, true); /* from its first sleep on: who looks for it later may come too late */
		hive = start_counting(core_names[i / 4]);
		WAIT_UNTIL(load_relaxed(&hive__slot(&hive->io, 0)->parking) == PARKING_PARKED); /* else it needs none */
		before = wakes_counted(hive);
		atomic_store(&wakes_made, 0);
		atomic_store(&ran, 0);
		for (int j = 0; j < 1000; j++)
			post_by(hive, i % 4);
		CHECK_EQ(atomic_load(&wakes_made), 1);
		CHECK_EQ(wakes_counted(hive) - before, 1);
		CHECK_OK(hive_worker_stats_read(hive, HIVE_WORKER_MAIN, &s));
		CHECK_EQ(s.woken, wakes_counted(hive));
		gate_open(&held);
		WAIT_UNTIL(atomic_load(&ran) == 1000);
		real_end(hive, HIVE_DRAIN);
		gate_destroy(&held);
	}
}

/* posts to a worker that is awake cost none. */
TEST(posts_to_an_awake_worker_cost_no_wake)
{
	for (int i = 0; i < core_count() * 4; i++) {
		struct hive *hive = start_counting(core_names[i / 4]);
		struct block block;
		uint64_t before;

		block_init(&block);
		CHECK_OK(hive_post(hive, block_task, &block));
		gate_pass(&block.entered);
		before = wakes_counted(hive);
		atomic_store(&wakes_made, 0);
		atomic_store(&ran, 0);
		for (int j = 0; j < 1000; j++)
			post_by(hive, i % 4);
		CHECK_EQ(atomic_load(&wakes_made), 0);
		CHECK_EQ(wakes_counted(hive), before);
		gate_open(&block.leave);
		WAIT_UNTIL(atomic_load(&ran) == 1000);
		real_end(hive, HIVE_DRAIN);
		block_destroy(&block);
		gate_destroy(&held);
	}
}

/* Each worker has something of its own to do, in each beat, until it is told to stop. */
static _Atomic(bool) busy;
static _Atomic(int) busy_workers;

static void keep_busy(void *first)
{
	if (first)
		atomic_fetch_add(&busy_workers, 1);
	if (atomic_load(&busy)) {
		int r = hive_post_self(keep_busy, NULL);

		CHECK(r == 0 || r == -ESHUTDOWN);
	}
}

enum { BUSY_WORKERS = 4, BUSY_POSTS = 2000 };

static void post_from_inside(void *hive)
{
	for (int i = 0; i < BUSY_POSTS; i++)
		CHECK_OK(i % 2 ? hive_post_local(count, NULL) : hive_post(hive, count, NULL));
}

/* Under load, system calls for waking are at most one for a hundred posts, by whichever door and wherever they go; and what is
 * counted is what is made.                                                                                             */
TEST(busy_workers_are_not_woken)
{
	for (int i = 0; i < core_count() * 2; i++) {
		struct hive *hive = start_many_counting(core_names[i / 2], BUSY_WORKERS,
		                                        i % 2 ? HIVE_PLACE_TWO_CHOICES : HIVE_PLACE_POOL);
		uint32_t ids[BUSY_WORKERS];
		uint64_t before;

		atomic_store(&busy, true);
		atomic_store(&busy_workers, 0);
		CHECK_EQ(hive_workers(hive, ids, BUSY_WORKERS), BUSY_WORKERS);
		for (int j = 0; j < BUSY_WORKERS; j++)
			CHECK_OK(hive_post_to(hive, ids[j], keep_busy, &busy));
		WAIT_UNTIL(atomic_load(&busy_workers) == BUSY_WORKERS);
		before = wakes_counted(hive);
		atomic_store(&wakes_made, 0);
		atomic_store(&ran, 0);
		for (int j = 0; j < BUSY_POSTS; j++)
			post_by(hive, j % 4);
		CHECK_OK(hive_post_to(hive, ids[1], post_from_inside, hive));
		WAIT_UNTIL(atomic_load(&ran) == 2 * BUSY_POSTS);
		CHECK(wakes_counted(hive) - before <= 2 * BUSY_POSTS / 100);
		CHECK_EQ(wakes_counted(hive) - before, atomic_load(&wakes_made));
		atomic_store(&busy, false);
		real_end(hive, HIVE_DRAIN);
		gate_destroy(&held);
	}
}

/* ---- descriptors ---- */

enum { DESCRIPTORS = 1024 };

static void list_descriptors(bool open[DESCRIPTORS])
{
	for (int fd = 0; fd < DESCRIPTORS; fd++)
		open[fd] = fcntl(fd, F_GETFD) >= 0;
}

static int count_kind(const bool before[DESCRIPTORS], const char *kind)
{
	int n = 0;

	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		char path[64], link[64] = "";

		if (before[fd] || fcntl(fd, F_GETFD) < 0)
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		CHECK(readlink(path, link, sizeof link - 1) > 0);
		n += strstr(link, kind) != NULL;
	}
	return n;
}

/* each worker has its eventfd while it runs, and whatever the hive opens is closed in programs it
 * starts.                                                                                                       */
TEST(each_worker_has_an_eventfd_and_all_descriptors_close_on_exec)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive_worker_options io = { .core = core_named(core_names[i]) };
		bool before[DESCRIPTORS];
		struct hive *hive;
		int opened = 0;

		list_descriptors(before);
		hive = real_start((struct hive_options){ .io_workers = 3, .compute_workers = 2, .io = &io });
		for (int fd = 0; fd < DESCRIPTORS; fd++) {
			int flags = fcntl(fd, F_GETFD);

			if (before[fd] || flags < 0)
				continue;
			CHECK(flags & FD_CLOEXEC);
			opened++;
		}
		CHECK_EQ(count_kind(before, "eventfd"), 3);
		CHECK_EQ(count_kind(before, "eventpoll"), i == 0 ? 3 : 0);
		CHECK_EQ(count_kind(before, "timerfd"), i == 0 ? 3 : 0);
		CHECK_EQ(count_kind(before, "io_uring"), i == 2 ? 3 : 0);
		CHECK_EQ(opened, i == 0 ? 9 : i == 1 ? 3 : 6);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- when the system has no more ---- */

static int count_open(void)
{
	bool open[DESCRIPTORS];
	int n = 0;

	list_descriptors(open);
	for (int fd = 0; fd < DESCRIPTORS; fd++)
		n += open[fd];
	return n;
}

/* Room for `more` descriptors beyond those that are open, or for all (-1). */
static void allow_descriptors(int more)
{
	static struct rlimit usual;
	struct rlimit now;
	int fd = 0;

	if (usual.rlim_cur == 0)
		CHECK_OK(getrlimit(RLIMIT_NOFILE, &usual));
	now = usual;
	if (more >= 0) {
		for (; fd < DESCRIPTORS && (fcntl(fd, F_GETFD) >= 0 || more > 0); fd++)
			more -= fcntl(fd, F_GETFD) < 0;
		now.rlim_cur = (rlim_t)fd;
	}
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &now));
}

/* a core that cannot be opened fails the start as a whole; nothing is left over, and it may be tried again. */
TEST(a_start_without_descriptors_fails_cleanly_and_may_be_tried_again)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive_worker_options io = { .core = core_named(core_names[i]) };
		struct hive *hive = real_create(
			(struct hive_options){ .io_workers = 3, .compute_workers = 1, .io = &io });
		int before = count_open(), tries = 0, r;

		atomic_store(&ran, 0);
		CHECK_OK(hive_post(hive, count, NULL));
		do {
			allow_descriptors(tries++);
			r = hive_start(hive);
			allow_descriptors(-1);
			if (r < 0) {
				CHECK_ERR(r, -EMFILE);
				CHECK_EQ(count_open(), before);
				CHECK_ERR(hive_join(hive, HIVE_NOWAIT), -EINVAL); /* it never started */
			}
		} while (r < 0 && tries < 20);
		CHECK_EQ(tries, i == 0 ? 9 : i == 1 ? 4 : 7); /* the last one of epoll does without a timer */
		WAIT_UNTIL(atomic_load(&ran) == 1);
		real_end(hive, HIVE_DRAIN);
		CHECK_EQ(count_open(), before);
	}
}

static void stop_here(void *arg)
{
	CHECK_OK(hive_stop(arg, HIVE_DRAIN, HIVE_FOREVER));
}

/* the same for a hive on the caller's thread. */
TEST(a_run_without_descriptors_fails_cleanly_and_may_be_tried_again)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive_worker_options io = { .core = core_named(core_names[i]) };
		struct hive *hive = real_create((struct hive_options){ .io_workers = 2, .io = &io });
		int before = count_open(), tries = 0, r;

		CHECK_OK(hive_post(hive, stop_here, hive));
		do {
			allow_descriptors(tries++);
			r = hive_run(hive);
			allow_descriptors(-1);
			CHECK(r == 0 || r == -EMFILE);
			CHECK_EQ(count_open(), before);
		} while (r < 0 && tries < 20);
		CHECK_EQ(tries, i == 0 ? 6 : i == 1 ? 3 : 5);
		CHECK_OK(hive_destroy(hive));
	}
}

/* a worker that cannot be attached to a running hive is refused; the hive goes on. */
TEST(an_attach_without_descriptors_is_refused_and_the_hive_goes_on)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive_worker_options io = { .core = core_named(core_names[i]) };
		struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .io = &io });
		uint32_t id = 12345;
		int before = count_open();

		atomic_store(&ran, 0);
		allow_descriptors(0);
		CHECK_ERR(hive_attach(hive, &io, &id), -EMFILE);
		CHECK_EQ(id, 12345);
		CHECK_EQ(hive_workers(hive, NULL, 0), 1);
		CHECK_OK(hive_post(hive, count, NULL));
		WAIT_UNTIL(atomic_load(&ran) == 1);
		allow_descriptors(-1);
		CHECK_EQ(count_open(), before);
		CHECK_OK(hive_attach(hive, &io, &id));
		CHECK_OK(hive_post_to(hive, id, count, NULL));
		WAIT_UNTIL(atomic_load(&ran) == 2);
		real_end(hive, HIVE_DRAIN);
	}
}
