/* SPDX-License-Identifier: MIT */
/* Descriptor numbers that begin a new life at one worker and are waited for at another; and what a wait costs. */
#include "support/counted.h"

struct scene {
	struct hive *hive;
	uint32_t there; /* the other worker */
	int listener, fd, peer;
};

static void open_scene(struct scene *s)
{
	*s = (struct scene){ .fd = -1 };
	s->hive = counted_start(0, &s->there);
}

static void close_scene(struct scene *s)
{
	counted_end(s->hive);
}

static void run_at(struct scene *s, uint32_t worker, hive_fiber_fn *fn)
{
	counted_run(s->hive, worker, fn, s);
}

static int listen_anywhere(struct scene *s)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(s->listener >= 0);
	CHECK_OK(bind(s->listener, (struct sockaddr *)&at, sizeof at));
	CHECK_OK(listen(s->listener, 8));
	return 0;
}

static void knock(struct scene *s)
{
	struct sockaddr_in at;
	socklen_t bytes = sizeof at;

	CHECK_OK(getsockname(s->listener, (struct sockaddr *)&at, &bytes));
	s->peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(s->peer >= 0);
	CHECK_OK(connect(s->peer, (struct sockaddr *)&at, sizeof at));
}

static int accept_one(void *arg)
{
	struct scene *s = arg;

	s->fd = hive_accept(s->listener, HIVE_FOREVER);
	CHECK(s->fd >= 0);
	return 0;
}

static int close_it(void *arg)
{
	struct scene *s = arg;

	CHECK_OK(hive_close(s->fd, HIVE_FOREVER));
	return 0;
}

static int speak(void *arg)
{
	struct scene *s = arg;

	CHECK_EQ(send(s->peer, "x", 1, 0), 1);
	return 0;
}

/* Nothing is there yet: it waits, and the byte comes by another fiber of this worker. */
static int wait_for_byte(void *arg)
{
	struct hive_fiber_options options = { .worker = HIVE_WORKER_MAIN };
	struct scene *s = arg;
	struct hive_fiber *other;
	char bytes[10];

	options.worker = s->there;
	CHECK_OK(hive_spawn(s->hive, speak, s, &options, &other));
	CHECK_EQ(hive_recv(s->fd, bytes, sizeof bytes, HIVE_FOREVER), 1);
	CHECK_OK(hive_fiber_join(other, HIVE_FOREVER, NULL));
	return 0;
}

/* One that lives on from its earlier life would be found out by the doubt alone, by a change in vain. */
TEST(a_number_that_was_accepted_elsewhere_is_registered_at_once)
{
	struct scene s;
	int first = -1;

	open_scene(&s);
	listen_anywhere(&s);
	for (int life = 0; life < 3; life++) {
		knock(&s);
		run_at(&s, HIVE_WORKER_MAIN, accept_one);
		first = life == 0 ? s.fd : first;
		CHECK_EQ(s.fd, first);
		run_at(&s, s.there, wait_for_byte);
		run_at(&s, HIVE_WORKER_MAIN, close_it);
		CHECK_OK(close(s.peer));
	}
	CHECK(atomic_load(&counted_added) >= 3);
	CHECK_EQ(atomic_load(&counted_in_vain), 0);
	CHECK_OK(close(s.listener));
	close_scene(&s);
}

static int speak_twice(void *arg)
{
	speak(arg);
	return speak(arg);
}

/* Registered there, and ready: one byte of two is taken. */
static int know_as_ready(void *arg)
{
	struct scene *s = arg;
	struct hive_fiber_options here = { .worker = s->there };
	struct hive_fiber *other;
	char byte;

	CHECK_ERR(hive_recv(s->fd, &byte, 1, hive_deadline(NULL, HIVE_US(10))), -ETIMEDOUT);
	CHECK_OK(hive_spawn(s->hive, speak_twice, s, &here, &other));
	CHECK_EQ(hive_recv(s->fd, &byte, 1, HIVE_FOREVER), 1);
	CHECK_OK(hive_fiber_join(other, HIVE_FOREVER, NULL));
	return 0;
}

/* What is ready as far as is known is tried at once; that it was not says nothing about an old registration. */
TEST(a_number_that_was_ready_in_an_old_life_is_registered_at_once)
{
	struct scene s;
	int first;

	open_scene(&s);
	listen_anywhere(&s);
	knock(&s);
	run_at(&s, HIVE_WORKER_MAIN, accept_one);
	first = s.fd;
	run_at(&s, s.there, know_as_ready);
	run_at(&s, HIVE_WORKER_MAIN, close_it);
	CHECK_OK(close(s.peer));
	knock(&s);
	run_at(&s, HIVE_WORKER_MAIN, accept_one);
	CHECK_EQ(s.fd, first);
	run_at(&s, s.there, wait_for_byte);
	CHECK_EQ(atomic_load(&counted_in_vain), 0);
	run_at(&s, HIVE_WORKER_MAIN, close_it);
	CHECK_OK(close(s.peer));
	CHECK_OK(close(s.listener));
	close_scene(&s);
}

static int wait_often(void *arg)
{
	struct scene *s = arg;

	for (int i = 0; i < 5000; i++)
		wait_for_byte(s);
	return 0;
}

/* Each wait is short, or the machine is slow; then some are verified, ever more rarely. */
TEST(short_waits_cost_no_call_to_the_core)
{
	struct scene s;
	int64_t began, ticks;
	int before;

	open_scene(&s);
	listen_anywhere(&s);
	knock(&s);
	run_at(&s, HIVE_WORKER_MAIN, accept_one);
	run_at(&s, s.there, wait_for_byte);
	before = atomic_load(&counted_added);
	began = hive_now(s.hive);
	run_at(&s, s.there, wait_often);
	ticks = (hive_now(s.hive) - began) / HIVE_MS(5);
	CHECK_EQ(atomic_load(&counted_added), before);
	CHECK(atomic_load(&counted_modified) <= 8 + ticks / 16);
	run_at(&s, HIVE_WORKER_MAIN, close_it);
	CHECK_OK(close(s.peer));
	CHECK_OK(close(s.listener));
	close_scene(&s);
}
