/* SPDX-License-Identifier: MIT */
/* Fibers: turns, lives, what they share, and bytes. */
#include "paths.h"

#include "fiber/switch.h" /* for the path that has no public face */

#include <sys/socket.h>
#include <unistd.h>

static uint64_t left, done;

/* A fiber on its own, to its end; nothing but what it does is left to be waited for. */
static void run_fiber(struct world *w, hive_fiber_fn *fn)
{
	struct hive_fiber *fiber;
	int result = -1;

	MUST(hive_spawn(w->hive, fn, w, NULL, &fiber) == 0);
	MUST(hive_fiber_join(fiber, HIVE_FOREVER, &result) == 0 && result == 0);
}

static void expect(uint64_t n)
{
	MUST(done == n);
	done = 0;
}

/* ---- turns ---- */

static int take_turns(void *arg)
{
	(void)arg;
	while (left > 0) {
		left--;
		done++;
		MUST(hive_yield() == 0);
	}
	return 0;
}

static uint64_t yield(struct world *w, uint64_t n)
{
	struct hive_fiber *other;

	left = n;
	MUST(hive_spawn(w->hive, take_turns, w, NULL, &other) == 0);
	run_fiber(w, take_turns);
	MUST(hive_fiber_join(other, HIVE_FOREVER, NULL) == 0);
	expect(n);
	return n;
}

/* ---- the bare switch, beneath all of these: there and back are two ---- */

static struct context here, there;
static _Alignas(64) char switch_stack[65536];

static void back_at_once(void *arg)
{
	(void)arg;
	for (;;) {
		done++;
		context_switch(&there, &here);
	}
}

static void switch_open(struct world *w)
{
	(void)w;
	context_here(&here);
	context_make(&there, switch_stack, sizeof switch_stack, back_at_once, NULL);
}

static uint64_t switches(struct world *w, uint64_t n)
{
	(void)w;
	for (uint64_t i = 0; i < n; i++)
		context_switch(&here, &there);
	expect(n);
	return 2 * n;
}

static void switch_close(struct world *w)
{
	(void)w;
	context_destroy(&there);
}

/* ---- lives ---- */

static int do_nothing(void *arg)
{
	(void)arg;
	done++;
	return 0;
}

static int spawn_and_join(void *arg)
{
	struct world *w = arg;
	struct hive_fiber *child;

	for (uint64_t i = 0; i < left; i++) {
		MUST(hive_spawn(w->hive, do_nothing, w, NULL, &child) == 0);
		MUST(hive_fiber_join(child, HIVE_FOREVER, NULL) == 0);
	}
	return 0;
}

static uint64_t spawn_join(struct world *w, uint64_t n)
{
	left = n;
	run_fiber(w, spawn_and_join);
	expect(n);
	return n;
}

/* ---- sleep: a timer, and the way back ---- */

static int sleep_often(void *arg)
{
	(void)arg;
	for (; left > 0; left--, done++)
		MUST(hive_sleep(HIVE_US(50)) == 0);
	return 0;
}

static uint64_t sleeps(struct world *w, uint64_t n)
{
	struct hive_fiber *fiber;

	left = n;
	MUST(hive_spawn(w->hive, sleep_often, w, NULL, &fiber) == 0);
	for (world_settle(w); left > 0; world_settle(w))
		w->now_ns += HIVE_US(50);
	MUST(hive_fiber_join(fiber, HIVE_FOREVER, NULL) == 0);
	expect(n);
	return n;
}

/* ---- what they share ---- */

static struct hive_mutex mutex;
static struct hive_channel *channel;

static void mutex_open(struct world *w)
{
	(void)w;
	hive_mutex_init(&mutex);
}

static int lock_and_unlock(void *arg)
{
	(void)arg;
	for (; left > 0; left--, done++) {
		MUST(hive_mutex_lock(&mutex, HIVE_FOREVER) == 0);
		MUST(hive_mutex_unlock(&mutex) == 0);
	}
	return 0;
}

static uint64_t locks(struct world *w, uint64_t n)
{
	left = n;
	run_fiber(w, lock_and_unlock);
	expect(n);
	return n;
}

static void channel_open(struct world *w)
{
	(void)w;
	MUST(hive_channel_create(sizeof(uint64_t), 64, &channel) == 0);
}

static int send_all(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < left; i++)
		MUST(hive_channel_send(channel, &i, sizeof i, HIVE_FOREVER) == 0);
	return 0;
}

static int receive_all(void *arg)
{
	uint64_t got;

	(void)arg;
	for (uint64_t i = 0; i < left; i++, done++)
		MUST(hive_channel_recv(channel, &got, sizeof got, HIVE_FOREVER) == 0 && got == i);
	return 0;
}

static uint64_t values(struct world *w, uint64_t n)
{
	struct hive_fiber *sender;

	left = n;
	MUST(hive_spawn(w->hive, send_all, w, NULL, &sender) == 0);
	run_fiber(w, receive_all);
	MUST(hive_fiber_join(sender, HIVE_FOREVER, NULL) == 0);
	expect(n);
	return n;
}

static void channel_close(struct world *w)
{
	(void)w;
	MUST(hive_channel_destroy(channel) == 0);
}

/* ---- bytes: one comes, and goes back ---- */

static int ends[2];
static struct hive_fiber *server;

static int echo(void *arg)
{
	char byte;

	(void)arg;
	while (hive_read(ends[1], &byte, 1, -1, HIVE_FOREVER) == 1)
		MUST(hive_write(ends[1], &byte, 1, -1, HIVE_FOREVER) == 1);
	return 0;
}

static void echo_open(struct world *w)
{
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
	MUST(hive_spawn(w->hive, echo, w, NULL, &server) == 0);
	world_settle(w);
}

static uint64_t echoes(struct world *w, uint64_t n)
{
	char byte;

	for (uint64_t i = 0; i < n; i++) {
		MUST(write(ends[0], "x", 1) == 1);
		world_step(w, 0);
		world_settle(w);
		MUST(read(ends[0], &byte, 1) == 1);
	}
	return n;
}

static void echo_close(struct world *w)
{
	MUST(close(ends[0]) == 0);
	world_step(w, 0);
	MUST(hive_fiber_join(server, HIVE_FOREVER, NULL) == 0);
	MUST(close(ends[1]) == 0);
}

const struct path fiber_paths[] = {
	{ .name = "switch", .open = switch_open, .run = switches, .close = switch_close },
	{ .name = "yield", .run = yield },
	{ .name = "spawn_join", .run = spawn_join },
	{ .name = "sleep", .timers = HIVE_TIMERS_WHEEL, .run = sleeps },
	{ .name = "mutex", .open = mutex_open, .run = locks },
	{ .name = "channel", .open = channel_open, .run = values, .close = channel_close },
	{ .name = "echo", .open = echo_open, .run = echoes, .close = echo_close },
	{ 0 },
};
