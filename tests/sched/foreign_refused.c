/* SPDX-License-Identifier: MIT */
/* Guests that cannot be had, and steps that are not theirs. */
#include <poll.h>
#include <pthread.h>

#include "base/thread.h"
#include "support/child.h"
#include "support/fake.h"
#include "support/real.h"
#include "support/wipe.h"

#include <rophive/sim.h>

static const struct hive_core_ops *core_of(const char *name)
{
	const struct hive_core_ops *core;

	CHECK_OK(hive_core_find(name, &core));
	return core;
}

static struct hive *create_on(const char *name, const struct hive_host *host, int32_t compute)
{
	struct hive_worker_options io = { .core = core_of(name) };

	return real_create((struct hive_options){ .io_workers = 1,
	                                          .compute_workers = compute,
	                                          .io = &io,
	                                          .host = host,
	                                          .stall_ns = HIVE_OFF /* no thread for that */ });
}

static void end(struct hive *hive)
{
	int64_t limit = real_patience(), wait_ns;

	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_NOWAIT));
	while (hive_guest_step(hive, &wait_ns) == 0)
		CHECK(hive_now(NULL) < limit);
	CHECK_OK(hive_destroy(hive));
}

TEST(arguments_that_are_none_are_refused)
{
	struct hive *hive = create_on("epoll", NULL, 0);
	int64_t wait_ns = 7;
	int fd = 7;

	CHECK_ERR(hive_guest_start(NULL, &fd), -EINVAL);
	CHECK_ERR(hive_guest_start(hive, NULL), -EINVAL);
	CHECK_ERR(hive_guest_step(NULL, &wait_ns), -EINVAL);
	CHECK_ERR(hive_guest_step(hive, &wait_ns), -EINVAL); /* not started */
	CHECK_OK(hive_guest_start(hive, &fd));
	CHECK_ERR(hive_guest_step(hive, NULL), -EINVAL);
	CHECK_ERR(hive_guest_start(hive, &fd), -EALREADY);
	CHECK_ERR(hive_run(hive), -EALREADY);
	CHECK_EQ(wait_ns, 7);
	end(hive);
}

TEST(without_workers_or_after_a_stop_there_is_no_guest)
{
	struct hive *hive;
	int fd = 7;

	CHECK_OK(hive_create(NULL, &hive));
	CHECK_ERR(hive_guest_start(hive, &fd), -EINVAL);
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_NOWAIT));
	CHECK_ERR(hive_guest_start(hive, &fd), -ESHUTDOWN);
	CHECK_OK(hive_destroy(hive));
	CHECK_EQ(fd, 7);
}

/* It may be run otherwise then. */
static void quit(void *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

TEST(a_core_without_a_descriptor_makes_no_guest)
{
	struct hive *hive = create_on("poll", NULL, 2);
	int fd = 7;

	CHECK_ERR(hive_guest_start(hive, &fd), -ENOTSUP);
	CHECK_EQ(fd, 7);
	CHECK_OK(hive_post(hive, quit, hive));
	CHECK_OK(hive_run(hive));
	CHECK_OK(hive_destroy(hive));
}

TEST(a_world_without_threads_makes_no_guest)
{
	struct hive_sim *sim;
	struct hive *hive;
	int fd = 7;

	CHECK_OK(hive_sim_create(NULL, &sim));
	CHECK_OK(hive_create(&(struct hive_options){ .io_workers = 1, .host = hive_sim_host(sim) }, &hive));
	CHECK_ERR(hive_guest_start(hive, &fd), -ENOTSUP);
	CHECK_OK(hive_destroy(hive));
	CHECK_OK(hive_sim_destroy(sim));
}

/* ---- who steps ---- */

static void *step_elsewhere(void *hive)
{
	int64_t wait_ns = 7;

	CHECK_ERR(hive_guest_step(hive, &wait_ns), -EPERM);
	CHECK_EQ(wait_ns, 7);
	return NULL;
}

TEST(steps_are_for_the_thread_that_started)
{
	struct hive *hive = create_on("epoll", NULL, 0);
	pthread_t thread;
	int fd;

	CHECK_OK(hive_guest_start(hive, &fd));
	CHECK_EQ(pthread_create(&thread, NULL, step_elsewhere, hive), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	end(hive);
}

static void start_inside(void *other)
{
	int fd;

	CHECK_ERR(hive_guest_start(other, &fd), -EDEADLK);
}

TEST(a_worker_is_no_place_to_start_a_guest)
{
	struct hive *hive = create_on("epoll", NULL, 0), *other = create_on("epoll", NULL, 0);

	CHECK_OK(hive_post(hive, start_inside, other));
	CHECK_OK(hive_post(hive, quit, hive));
	CHECK_OK(hive_run(hive));
	CHECK_OK(hive_destroy(hive));
	CHECK_OK(hive_destroy(other));
}

/* A started one is stepped by nobody. */
TEST(a_hive_with_threads_has_no_steps)
{
	struct hive *hive = create_on("epoll", NULL, 0);
	int64_t wait_ns;

	CHECK_OK(hive_start(hive));
	CHECK_ERR(hive_guest_step(hive, &wait_ns), -EINVAL);
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_NOWAIT));
	CHECK_OK(hive_join(hive, real_patience()));
	CHECK_ERR(hive_guest_step(hive, &wait_ns), -EINVAL);
	CHECK_OK(hive_destroy(hive));
}

/* ---- threads that cannot be had ---- */

static int threads_left;

static int start_few(void *arg, hive_fn *main, void *main_arg, uint64_t *ret_thread)
{
	(void)arg;
	if (threads_left-- <= 0)
		return -EAGAIN;
	return hive__thread_start(main, main_arg, ret_thread);
}

static void join_one(void *arg, uint64_t thread)
{
	(void)arg;
	hive__thread_join(thread);
}

TEST(a_start_that_fails_half_way_is_undone_and_may_be_tried_again)
{
	static const struct hive_host host = { .thread_start = start_few, .thread_join = join_one };
	struct hive *hive = create_on("epoll", &host, 3);
	int64_t wait_ns;
	int fd = 7;

	for (int have = 0; have < 3; have++) {
		threads_left = have;
		CHECK_ERR(hive_guest_start(hive, &fd), -EAGAIN);
		CHECK_EQ(fd, 7);
		CHECK_ERR(hive_guest_step(hive, &wait_ns), -EINVAL);
		CHECK_EQ(load_relaxed(&hive->in_run), 0);
	}
	threads_left = 3;
	CHECK_OK(hive_guest_start(hive, &fd));
	CHECK_OK(hive_guest_step(hive, &wait_ns));
	end(hive);
}

/* ---- after a fork ---- */

static void in_child(void *hive)
{
	int64_t wait_ns;
	int fd;

	CHECK_ERR(hive_guest_step(hive, &wait_ns), -EOWNERDEAD);
	CHECK_ERR(hive_guest_start(hive, &fd), -EOWNERDEAD);
}

TEST(a_child_has_no_steps)
{
	struct hive *hive;
	pid_t child;
	int fd;

	if (!kernel_wipes_pages()) {
		test_skip(NO_WIPING);
		return;
	}
	hive = create_on("epoll", NULL, 0);
	CHECK_OK(hive_guest_start(hive, &fd));
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		in_child(hive);
		_exit(0);
	}
	CHECK_EQ(child_wait(child), 0);
	end(hive);
}
