/* SPDX-License-Identifier: MIT */
/* What is special about the io_uring core: rings that are too small, ends that race with results, and systems that refuse it. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include <rophive/io.h>

#include "base/core_setup.h"
#include "support/child.h"
#include "support/real.h"
#include "support/uring_calls.h"

/* True: this build and this kernel have it. */
static bool is_there(void)
{
	const struct hive_core_ops *core;

	if (hive_core_find("uring", &core) == 0)
		return true;
	test_skip("no io_uring here");
	return false;
}

/* A ring of so many entries, and the test is its worker. */
static void open_small(struct rig *r, int32_t entries)
{
	struct hive_worker_options options = { .ring_entries = entries };

	rig_open_with(r, "uring", options);
}

/* ---- rings that are too small ---- */

enum { OPS = 1000 };

static struct call calls[OPS];

static void put_bytes(int fd, int count)
{
	char bytes[OPS];

	memset(bytes, 'x', sizeof bytes);
	CHECK_EQ(write(fd, bytes, (size_t)count), count);
}

static void check_thousand(int32_t entries)
{
	static struct rig r;
	int fds[2];

	open_small(&r, entries);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	calls_begin(&r, calls, OPS, fds[0]);
	rig_turn(&r, 0);
	CHECK_EQ(calls_over, 0);
	put_bytes(fds[1], OPS);
	calls_turn_until(&r, OPS, HIVE_MS(100));
	for (int i = 0; i < OPS; i++) {
		CHECK_EQ(calls[i].done, 1);
		CHECK_EQ(calls[i].result, 1);
		CHECK_EQ(calls[i].byte, 'x');
	}
	close_both(fds);
	rig_close(&r);
}

/* More answers than the ring has room for wait in the kernel, and none is lost. */
TEST(a_ring_of_4_serves_a_thousand_operations)
{
	if (!is_there())
		return;
	check_thousand(4);
	check_thousand(0);
}

/* All are complete as soon as they are sent, so that the answers run over while the callers still ask. */
TEST(answers_that_run_over_while_the_queue_is_filled_are_all_told)
{
	static struct rig r;
	int fds[2];

	if (!is_there())
		return;
	open_small(&r, 4);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	put_bytes(fds[1], OPS);
	calls_begin(&r, calls, OPS, fds[0]);
	CHECK_EQ(calls_over, 0); /* only inside a turn */
	calls_turn_until(&r, OPS, HIVE_MS(100));
	for (int i = 0; i < OPS; i++)
		CHECK_EQ(calls[i].result, 1);
	close_both(fds);
	rig_close(&r);
}

enum { EARS = 100 };

TEST(a_ring_of_4_serves_a_hundred_sources)
{
	static struct ear ears[EARS];
	static int pipes[EARS][2];
	static struct rig r;

	if (!is_there())
		return;
	open_small(&r, 4);
	for (int i = 0; i < EARS; i++) {
		make_pipe(pipes[i]);
		ear_start(&ears[i], pipes[i][0], HIVE_EVENT_IN | (i % 2 ? HIVE_EVENT_EDGE : 0u));
	}
	for (int round = 1; round < 4; round++) {
		bool all = false;

		for (int i = 0; i < EARS; i++) {
			ears[i].heard = 0;
			put_byte(pipes[i][1]);
		}
		for (int turns = 0; !all; turns++) {
			CHECK(turns < 1000);
			rig_turn(&r, 0);
			all = true;
			for (int i = 0; i < EARS; i++)
				all = all && ears[i].heard > 0;
		}
	}
	for (int i = 0; i < EARS; i++) {
		ear_stop(&ears[i]);
		close_both(pipes[i]);
	}
	rig_turn(&r, 0);
	rig_close(&r);
}

/* ---- ends ---- */

/* Each is cancelled at another moment: before it was sent, in the kernel, when its answer is there already. */
static void check_race(struct rig *r, int fds[2], int delay)
{
	struct call *call = &calls[0];
	char byte;

	calls_over = 0;
	memset(call, 0, sizeof *call);
	hive_op_init(&call->op, r->l.f.hive, call_done, call);
	CHECK_OK(hive_op_recv(&call->op, fds[0], &call->byte, 1, HIVE_FOREVER));
	if (delay & 1)
		rig_turn(r, 0);
	if (delay & 2)
		put_byte(fds[1]);
	if (delay & 4)
		rig_turn(r, 0);
	CHECK_ERR(hive_op_cancel(&call->op), calls_over ? -ESRCH : 0);
	CHECK_ERR(hive_op_cancel(&call->op), calls_over ? -ESRCH : 0); /* asking twice is asking once */
	calls_turn_until(r, 1, HIVE_MS(100));
	rig_turn(r, 0);
	rig_turn(r, 0);
	CHECK_EQ(call->done, 1);
	CHECK(call->result == 1 || call->result == -ECANCELED);
	CHECK(call->result == 1 ? call->byte == 'x' : call->byte == 0);
	if ((delay & 2) && call->result < 0) /* nothing was taken from the socket */
		CHECK_EQ(recv(fds[0], &byte, 1, MSG_DONTWAIT), 1);
	CHECK_EQ(recv(fds[0], &byte, 1, MSG_DONTWAIT), -1);
}

TEST(a_cancelled_operation_ends_once_with_what_happened)
{
	static struct rig r;
	int fds[2];

	if (!is_there())
		return;
	for (int32_t entries = 0; entries <= 4; entries += 4) {
		open_small(&r, entries);
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
		for (int round = 0; round < 400; round++)
			check_race(&r, fds, round % 8);
		close_both(fds);
		rig_close(&r);
	}
}

/* Recalls need entries too. */
TEST(a_thousand_operations_in_a_ring_of_4_can_be_cancelled)
{
	static struct rig r;
	int fds[2];

	if (!is_there())
		return;
	open_small(&r, 4);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	calls_begin(&r, calls, OPS, fds[0]);
	for (int i = OPS - 1; i >= 0; i--)
		CHECK_OK(hive_op_cancel(&calls[i].op));
	calls_turn_until(&r, OPS, HIVE_MS(100));
	rig_turn(&r, 0);
	for (int i = 0; i < OPS; i++) {
		CHECK_EQ(calls[i].done, 1);
		CHECK_ERR(calls[i].result, -ECANCELED);
	}
	close_both(fds);
	rig_close(&r);
}

/* A request in the kernel would keep it open. */
TEST(a_descriptor_is_closed_when_its_source_was_stopped)
{
	static struct rig r;
	struct pollfd peer = { .events = POLLIN };
	struct ear ear;
	int fds[2];

	if (!is_there())
		return;
	open_small(&r, 0);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
		ear_start(&ear, fds[0], HIVE_EVENT_IN | (i == 1 ? HIVE_EVENT_EDGE : 0u));
		if (i < 2)
			rig_turn(&r, 0);
		ear_stop(&ear);
		CHECK_OK(close(fds[0]));
		peer.fd = fds[1];
		CHECK_EQ(poll(&peer, 1, 0), 1); /* before the next turn */
		CHECK(peer.revents & POLLHUP);
		CHECK_OK(close(fds[1]));
	}
	rig_close(&r);
}

/* ---- what the kernel tells unasked ---- */

static struct rig *idle_rig;

static void turn_without_calls(void)
{
	for (int i = 0; i < 100; i++)
		CHECK_OK(idle_rig->ops->turn(idle_rig->core, 0));
}

/* Half-closed, and nobody asked for that: neither told nor looked at again and again. */
TEST(a_half_closed_socket_does_not_keep_the_worker_busy)
{
	static struct rig r;
	struct ear ear;
	int fds[2];

	if (!is_there())
		return;
	open_small(&r, 0);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	ear_start(&ear, fds[0], HIVE_EVENT_PRI);
	CHECK_OK(shutdown(fds[1], SHUT_WR));
	for (int i = 0; i < 3; i++)
		rig_turn(&r, 0);
	CHECK_EQ(ear.heard, 0);
	idle_rig = &r;
	child_without_calls(ENOSYS, turn_without_calls, SYS_io_uring_enter);
	CHECK_OK(close(fds[1]));
	for (int i = 1; i <= 3; i++) {
		for (int turns = 0; ear.heard < i; turns++) {
			CHECK(turns < 3);
			rig_turn(&r, 0);
		}
		CHECK(ear.events & HIVE_EVENT_HUP);
	}
	ear_stop(&ear);
	CHECK_OK(close(fds[0]));
	rig_close(&r);
}

/* The same for an operation. */
TEST(a_poll_operation_waits_for_what_it_asked_for)
{
	static struct rig r;
	struct call *call = &calls[0];
	char bytes[4096] = { 0 };
	int fds[2];

	if (!is_there())
		return;
	open_small(&r, 0);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	while (send(fds[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
	CHECK_OK(shutdown(fds[1], SHUT_WR));
	calls_over = 0;
	memset(call, 0, sizeof *call);
	hive_op_init(&call->op, r.l.f.hive, call_done, call);
	CHECK_OK(hive_op_poll(&call->op, fds[0], HIVE_EVENT_OUT, 0, HIVE_FOREVER));
	for (int i = 0; i < 3; i++)
		rig_turn(&r, 0);
	CHECK_EQ(calls_over, 0);
	while (recv(fds[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
	calls_turn_until(&r, 1, HIVE_MS(100));
	CHECK_EQ(call->result, HIVE_EVENT_OUT);
	close_both(fds);
	rig_close(&r);
}

/* ---- what the kernel would rather not wait for ---- */

/* A non-blocking terminal: the kernel says EAGAIN, and the core waits for it by a poll. */
TEST(a_terminal_that_does_not_block_is_waited_for)
{
	static struct rig r;
	struct call *call = &calls[0];
	int here, there;

	if (!is_there())
		return;
	open_small(&r, 0);
	here = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	CHECK(here >= 0);
	CHECK_OK(grantpt(here));
	CHECK_OK(unlockpt(here));
	there = open(ptsname(here), O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK(there >= 0);
	for (int i = 0; i < 2; i++) {
		calls_over = 0;
		memset(call, 0, sizeof *call);
		hive_op_init(&call->op, r.l.f.hive, call_done, call);
		CHECK_OK(hive_op_read(&call->op, here, &call->byte, 1, -1, HIVE_FOREVER));
		for (int turns = 0; turns < 4; turns++)
			rig_turn(&r, 0);
		CHECK_EQ(calls_over, 0);
		if (i == 0)
			put_byte(there);
		else
			CHECK_OK(hive_op_cancel(&call->op));
		calls_turn_until(&r, 1, HIVE_MS(100));
		CHECK_ERR(call->result, i == 0 ? 1 : -ECANCELED);
		CHECK_EQ(call->byte, i == 0 ? 'x' : 0);
	}
	CHECK_OK(close(here));
	CHECK_OK(close(there));
	rig_close(&r);
}

/* ---- several results ---- */

static int accepted, last_one;

static void on_accept(struct hive_op *op, int64_t result)
{
	if (result < 0) {
		last_one = (int)result;
		return;
	}
	CHECK_EQ(fcntl((int)result, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	CHECK_EQ(fcntl((int)result, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	CHECK_OK(close((int)result));
	if (++accepted == 60)
		CHECK_OK(hive_op_cancel(op)); /* in the middle of its own results */
}

/* More guests than a small ring has room for: the kernel ends such a request, and it is sent again. */
TEST(accepting_again_and_again_loses_nobody)
{
	static struct rig r;
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;
	int listener, guests[60];
	struct hive_op op;

	if (!is_there())
		return;
	accepted = last_one = 0;
	open_small(&r, 4);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK_OK(bind(listener, (struct sockaddr *)&address, size));
	CHECK_OK(listen(listener, 100));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&address, &size));
	hive_op_init(&op, r.l.f.hive, on_accept, NULL);
	CHECK_OK(hive_op_accept(&op, listener, HIVE_OP_REPEAT, HIVE_FOREVER));
	for (int i = 0; i < 60; i++) {
		guests[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK_OK(connect(guests[i], (struct sockaddr *)&address, size));
		if (i == 5)
			rig_turn(&r, 0);
	}
	for (int turns = 0; last_one == 0; turns++) {
		CHECK(turns < 10000);
		rig_turn(&r, HIVE_MS(10));
	}
	CHECK_EQ(accepted, 60);
	CHECK_ERR(last_one, -ECANCELED);
	for (int i = 0; i < 60; i++)
		CHECK_OK(close(guests[i]));
	CHECK_OK(close(listener));
	rig_close(&r);
}

/* What the core leaves to readiness does not leave the descriptor with the core. */
TEST(a_descriptor_is_closed_when_an_operation_has_waited_for_it)
{
	static struct rig r;
	struct pollfd peer = { .events = POLLIN };
	struct call *call = &calls[0];
	int fds[2], from[2];

	if (!is_there())
		return;
	open_small(&r, 0);
	for (int i = 0; i < 2; i++) {
		make_pipe(from);
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
		calls_over = 0;
		memset(call, 0, sizeof *call);
		hive_op_init(&call->op, r.l.f.hive, call_done, call);
		CHECK_OK(hive_op_splice(&call->op, from[0], -1, fds[0], -1, 10, HIVE_FOREVER));
		rig_turn(&r, 0);
		CHECK_EQ(calls_over, 0);
		if (i == 0)
			put_byte(from[1]);
		else
			CHECK_OK(hive_op_cancel(&call->op));
		if (i == 1)
			CHECK(lone_beat(&r.l, 0)); /* the engine has it, and tells by the worker's private queue */
		calls_turn_until(&r, 1, HIVE_MS(100));
		CHECK_ERR(call->result, i == 0 ? 1 : -ECANCELED);
		CHECK_OK(close(from[0]));
		peer.fd = from[1];
		CHECK_EQ(poll(&peer, 1, 0), 1);
		CHECK(peer.revents & POLLERR); /* nobody has the other end any more */
		CHECK_OK(close(from[1]));
		close_both(fds);
	}
	rig_close(&r);
}

/* ---- systems that refuse it ---- */

static int notices;
static char notice[256];

static void on_warn(void *arg, const char *text)
{
	(void)arg;
	notices++;
	snprintf(notice, sizeof notice, "%s", text);
}

/* Which core three workers get without naming one. */
static const char *core_by_default(void)
{
	static struct hive_worker_stats s;
	struct hive *hive = NULL;

	notices = 0;
	CHECK_OK(hive_create(&(struct hive_options){ .io_workers = 3, .stall_ns = HIVE_OFF, .on_warn = on_warn },
	                     &hive));
	CHECK_OK(hive_start(hive));
	CHECK_OK(hive_worker_stats_read(hive, HIVE_WORKER_MAIN, &s));
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_OK(hive_destroy(hive));
	return s.core;
}

static void ask_for(const char *name)
{
	CHECK_OK(setenv("HIVE_CORE", name, 1));
}

static void find_nothing(void)
{
	const struct hive_core_ops *core = NULL;

	CHECK_ERR(hive_core_find("uring", &core), -ENOTSUP);
	CHECK(!core);
	CHECK_OK(hive_core_find("best", &core));
	CHECK_STR(core->name, "epoll");
}

static void refused_for(const char *why)
{
	find_nothing();
	CHECK_STR(core_by_default(), "epoll");
	CHECK_EQ(notices, 1);
	CHECK(strstr(notice, "uring") && strstr(notice, "epoll") && strstr(notice, why));
}

static void without_permission(void)
{
	refused_for("EPERM");
}

static void without_io_uring(void)
{
	refused_for("ENOSYS");
}

static void without_memory(void)
{
	refused_for("ENOMEM");
}

TEST(where_it_is_refused_epoll_takes_its_place_with_one_notice)
{
	if (!is_there())
		return;
	ask_for("uring");
	child_without_calls(EPERM, without_permission, SYS_io_uring_setup);
	child_without_calls(ENOSYS, without_io_uring, SYS_io_uring_setup);
	child_without_calls(ENOMEM, without_memory, SYS_io_uring_setup);
	CHECK_OK(unsetenv("HIVE_CORE"));
}

/* The setup is allowed, the use is not: found out when the worker opens its core. */
static void open_in_vain(void)
{
	const struct hive_core_ops *core = NULL;
	struct hive_core *opened = NULL;

	CHECK_OK(hive_core_find("uring", &core));
	CHECK_ERR(core->open(NULL, &opened), -EPERM);
	CHECK(!opened);
	CHECK_STR(core_by_default(), "epoll");
	CHECK_EQ(notices, 1);
	CHECK(strstr(notice, "uring") && strstr(notice, "EPERM"));
}

TEST(a_ring_that_cannot_be_used_is_replaced_when_it_is_opened)
{
	if (!is_there())
		return;
	ask_for("uring");
	child_without_calls(EPERM, open_in_vain, SYS_io_uring_enter);
	CHECK_OK(unsetenv("HIVE_CORE"));
}

/* Which core a worker has whose options, or whose host, name this one. */
static const char *core_that_is_named(const struct hive_core_ops *by_options, const struct hive_core_ops *by_host)
{
	static struct hive_worker_stats s;
	struct hive_worker_options io = { .core = by_options };
	struct hive_host host = { .core = by_host };
	struct hive *hive = NULL;

	notices = 0;
	CHECK_OK(hive_create(&(struct hive_options){ .io_workers = 1, .io = &io, .host = &host, .on_warn = on_warn },
	                     &hive));
	CHECK_OK(hive_start(hive));
	CHECK_OK(hive_worker_stats_read(hive, HIVE_WORKER_MAIN, &s));
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_OK(hive_destroy(hive));
	return s.core;
}

TEST(the_environment_overrules_nobody_who_names_a_core)
{
	const struct hive_core_ops *epoll, *poll;

	CHECK_OK(hive_core_find("epoll", &epoll));
	CHECK_OK(hive_core_find("poll", &poll));
	ask_for("poll");
	CHECK_STR(core_that_is_named(NULL, NULL), "poll");
	CHECK_STR(core_that_is_named(epoll, NULL), "epoll");
	CHECK_STR(core_that_is_named(NULL, epoll), "epoll");
	CHECK_STR(core_that_is_named(poll, epoll), "poll");
	ask_for("nonsense");
	CHECK_STR(core_that_is_named(poll, NULL), "poll");
	CHECK_EQ(notices, 0);
	CHECK_OK(unsetenv("HIVE_CORE"));
}

TEST(the_environment_chooses_the_core)
{
	for (int i = 0; i < core_count(); i++) {
		ask_for(core_names[i]);
		CHECK_STR(core_by_default(), core_names[i]);
		CHECK_EQ(notices, 0);
	}
	ask_for("kqueue");
	CHECK_STR(core_by_default(), "epoll");
	CHECK_EQ(notices, 1);
	CHECK(strstr(notice, "kqueue") && strstr(notice, "not in this build"));
	CHECK_OK(unsetenv("HIVE_CORE"));
	CHECK_STR(core_by_default(), "epoll");
	CHECK_EQ(notices, 0);
}
