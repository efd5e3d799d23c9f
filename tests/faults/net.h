/* SPDX-License-Identifier: MIT */
#pragma once
/* The calls of the table in functions.c that are about addresses, sockets and streams. What was written arrives, and what has arrived is
 * read, whatever memory was missing in between.                                                                          */
#include <netdb.h>
#include <unistd.h>

#include "ops.h"

/* ---- addresses, sockets ---- */

static int use_addresses(struct world *w)
{
	struct hive_address address;
	char text[64];

	(void)w;
	CHECK_OK(hive_address_parse("::1", 80, &address));
	CHECK_EQ(hive_address_port(&address), 80);
	CHECK_EQ(hive_address_format(&address, text, sizeof text), 8);
	CHECK_OK(hive_address_parse("unix:/nowhere/at/all", 0, &address));
	return 0;
}

static int listen_here(struct world *w)
{
	struct hive_address address;
	int fd = hive_listen("127.0.0.1", 0, NULL);

	(void)w;
	CHECK(fd >= 0);
	CHECK_OK(hive_address_of(fd, false, &address));
	return close(fd);
}

static int make_pairs(struct world *w)
{
	int fds[2];

	(void)w;
	CHECK_OK(hive_socket_pair(true, fds));
	CHECK_OK(close(fds[0]));
	CHECK_OK(close(fds[1]));
	CHECK_OK(hive_pipe(fds));
	CHECK_OK(close(fds[0]));
	return close(fds[1]);
}

/* In place of the system's: nothing leaves this machine. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list)
{
	(void)name, (void)service, (void)hints, (void)ret_list;
	return EAI_NONAME;
}

static int resolve_here(void *arg)
{
	struct hive_address addresses[2];
	int r = hive_resolve("nobody.test", 80, addresses, 2, HIVE_FOREVER);

	(void)arg;
	CHECK(r == -ENOENT || r == -ENOMEM);
	return r == -ENOENT ? 0 : r;
}

static int resolve(struct world *w)
{
	return in_fiber(w, resolve_here, w);
}

static int resolve_numeric(struct world *w)
{
	struct hive_address addresses[2];

	(void)w;
	CHECK_EQ(hive_resolve("127.0.0.1", 80, addresses, 2, HIVE_NOWAIT), 1);
	return hive_resolve("localhost", 80, addresses, 2, HIVE_NOWAIT) == 2 ? 0 : -EINVAL;
}

static int dial_here(void *arg)
{
	struct hive_address at;
	int listener = hive_listen("127.0.0.1", 0, NULL), fd;

	(void)arg;
	CHECK(listener >= 0);
	CHECK_OK(hive_address_of(listener, false, &at));
	fd = hive_dial("127.0.0.1", hive_address_port(&at), NULL, HIVE_FOREVER);
	CHECK(fd >= 0 || fd == -ENOMEM);
	if (fd >= 0)
		CHECK_OK(close(fd));
	CHECK_OK(close(listener));
	return fd < 0 ? fd : 0;
}

static int dial(struct world *w)
{
	return in_fiber(w, dial_here, w);
}

/* What is on its way when it fails is closed with the socket. */
static int pass_fd_here(void *arg)
{
	struct world *w = arg;
	int pair[2], fd = -1, r;

	CHECK_OK(hive_socket_pair(false, pair));
	r = hive_send_fd(pair[0], w->fds[0], HIVE_FOREVER);
	if (r == 0)
		r = fd = hive_recv_fd(pair[1], HIVE_FOREVER);
	if (fd >= 0)
		CHECK_OK(close(fd));
	CHECK_OK(close(pair[0]));
	CHECK_OK(close(pair[1]));
	return r < 0 ? r : 0;
}

static int pass_fd(struct world *w)
{
	return in_fiber(w, pass_fd_here, w);
}

/* ---- streams ---- */

enum { STREAM_BYTES = 3000, STREAM_FRAME = 10 };

static struct {
	struct hive_stream *stream;
	int peer;
	int step;     /* of the call under way: where it goes on when it is made again */
	int expected; /* bytes at the peer */
} flow;
static char stream_bytes[STREAM_BYTES];

static int create_stream(struct world *w)
{
	int fds[2], r;

	(void)w;
	CHECK_OK(hive_socket_pair(false, fds));
	r = hive_stream_create(fds[0], NULL, &flow.stream);
	flow.peer = fds[1];
	flow.step = flow.expected = 0;
	if (r == 0)
		return 0;
	CHECK_OK(close(fds[0]));
	CHECK_OK(close(fds[1]));
	return r;
}

static void make_stream(struct world *w)
{
	warm_runtime(w);
	CHECK_OK(create_stream(w));
}

/* All that was taken is at the peer, and nothing twice. */
static void end_stream(void)
{
	char buffer[4096];
	int got = 0;
	ssize_t n;

	if (!flow.stream)
		return;
	CHECK_OK(hive_stream_destroy(flow.stream, HIVE_NOWAIT));
	flow.stream = NULL;
	while ((n = read(flow.peer, buffer, sizeof buffer)) > 0)
		got += (int)n;
	CHECK_EQ(n, 0);
	CHECK_EQ(got, flow.expected);
	CHECK_OK(close(flow.peer));
}

static int write_step(void)
{
	int r;

	if (flow.step == 0)
		r = hive_stream_write(flow.stream, stream_bytes, STREAM_BYTES, HIVE_FOREVER);
	else if (flow.step == 1)
		r = hive_stream_write_frame(flow.stream, stream_bytes, STREAM_FRAME, HIVE_FOREVER);
	else
		r = hive_stream_flush(flow.stream, HIVE_FOREVER);
	return r;
}

static int write_here(void *arg)
{
	static const int taken[] = { STREAM_BYTES, 4 + STREAM_FRAME, 0 };

	(void)arg;
	CHECK(hive_stream_fd(flow.stream) >= 0);
	for (; flow.step < 3; flow.step++) {
		int r = write_step();

		if (r < 0)
			return r;
		flow.expected += taken[flow.step];
	}
	return 0;
}

static int stream_write(struct world *w)
{
	return in_fiber(w, write_here, w);
}

static void fill_stream(struct world *w)
{
	static const char text[] = "line\n\0\0\0\2hiand more";

	make_stream(w);
	CHECK_EQ(write(flow.peer, text, sizeof text), sizeof text);
}

static int64_t read_step(void)
{
	const char *line;
	const void *frame;
	int64_t r;

	if (flow.step == 0)
		r = hive_stream_read_line(flow.stream, &line, HIVE_FOREVER);
	else if (flow.step == 1)
		r = hive_stream_read_frame(flow.stream, &frame, HIVE_FOREVER);
	else
		r = hive_stream_read(flow.stream, stream_bytes, STREAM_BYTES, HIVE_FOREVER);
	return r;
}

static int read_here(void *arg)
{
	static const int64_t lengths[] = { 5, 2, sizeof "and more" };

	(void)arg;
	while (flow.step < 3) {
		int64_t r = read_step();

		if (r < 0)
			return (int)r;
		CHECK_EQ(r, lengths[flow.step]);
		flow.step++;
	}
	CHECK_STR(stream_bytes, "and more");
	return 0;
}

static int stream_read(struct world *w)
{
	return in_fiber(w, read_here, w);
}

static int stream_destroy(struct world *w)
{
	(void)w;
	end_stream();
	return 0;
}

/* ---- a core that does operations by itself ---- */

static struct hive_core_ops lone; /* the poll core, which reads nothing and says so */
static struct hive_op *lone_op;
static int (*lone_inner_open)(void *arg, struct hive_core **ret_core);
static int (*lone_inner_turn)(struct hive_core *core, int64_t timeout_ns);

static int lone_open(void *arg, struct hive_core **ret_core)
{
	int r = lone_inner_open(arg, ret_core);

	if (r == 0)
		(*ret_core)->ops = &lone;
	return r;
}

static int lone_turn(struct hive_core *core, int64_t timeout_ns)
{
	struct hive_op *op = lone_op;

	lone_op = NULL;
	if (op)
		hive_op_deliver(op, 0, false);
	return lone_inner_turn(core, op ? 0 : timeout_ns);
}

static int lone_submit(struct hive_core *core, struct hive_op *op)
{
	lone_op = op;
	core->ops->wake(core);
	return 0;
}

static void lone_cancel(struct hive_core *core, struct hive_op *op)
{
	(void)core, (void)op; /* it comes with the next turn */
}

static void make_lone_runtime(struct world *w)
{
	struct hive_options o = options_of(w);
	struct hive_worker_options io = *o.io;
	const struct hive_core_ops *inner;

	CHECK_OK(hive_core_find("poll", &inner));
	lone = *inner;
	lone_inner_open = inner->open;
	lone_inner_turn = inner->turn;
	lone.open = lone_open;
	lone.turn = lone_turn;
	lone.submit = lone_submit;
	lone.cancel = lone_cancel;
	lone.native_ops = 1u << HIVE_OP_READ;
	io.core = &lone;
	o.io = &io;
	o.io_workers = 1;
	o.on_drop = NULL;
	CHECK_OK(hive_runtime_start(&o, &w->extra));
	CHECK_OK(in_fiber(w, fiber_nop, NULL));
}

static int lone_read_here(void *arg)
{
	struct world *w = arg;

	return (int)hive_read(w->fds[0], op_bytes, 8, -1, HIVE_FOREVER);
}

static int lone_read(struct world *w)
{
	return in_fiber(w, lone_read_here, w);
}
