/* SPDX-License-Identifier: MIT */
/* Our echo server, three times: a fiber for each connection; an operation with callbacks for each; or one that repeats, which has a buffer
 * only when something has come. With sources, by level and by edges: echo_sources.c.                                                                  */
#include "echo.h"
#include "rig.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rophive/fiber.h>
#include <rophive/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int echo_listener(int32_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_port = htons((uint16_t)port),
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* inherited by what is accepted */
	if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	close(fd);
	return -1;
}

void echo_announce(int listener)
{
	struct sockaddr_in at = { 0 };
	socklen_t bytes = sizeof at;
	getsockname(listener, (struct sockaddr *)&at, &bytes);
	printf("PORT %d\n", (int)ntohs(at.sin_port));
	fflush(stdout);
}

void echo_await_end(const struct bench_params *params)
{
	struct stat about;
	struct pollfd input = { .fd = fstat(0, &about) == 0 && S_ISFIFO(about.st_mode) ? 0 : -1 };
	poll(&input, 1, params->serve ? (int)(params->seconds * 1000) : -1);
}

struct server {
	struct rig rig;
	int listener;
	int64_t patience_ns; /* of a receive; 0: any */
	_Atomic uint32_t turn;
	hive_fn *
		begin; /* a connection on its worker, the descriptor is its argument; NULL: an operation for each receive and send */
	struct hive_buffers *buffers; /* with lent ones */
};

static struct server server;

static int64_t deadline(void)
{
	return server.patience_ns ? hive_deadline(server.rig.hive, server.patience_ns) : HIVE_FOREVER;
}

/* ---- with fibers ---- */

static int serve_fiber(void *arg)
{
	char buffer[ECHO_BUFFER];
	int fd = (int)(intptr_t)arg;
	int64_t n;
	while ((n = hive_recv(fd, buffer, sizeof buffer, deadline())) > 0)
		if (hive_send_all(fd, buffer, (size_t)n, HIVE_FOREVER) < 0)
			break;
	hive_close(fd, HIVE_FOREVER);
	return 0;
}

static int accept_fiber(void *arg)
{
	(void)arg;
	for (;;) {
		int fd = hive_accept(server.listener, HIVE_FOREVER);
		if (fd < 0)
			return fd == -ECANCELED ? 0 : fd;
		int error = hive_spawn(server.rig.hive, serve_fiber, (void *)(intptr_t)fd, NULL, NULL);
		if (error) {
			close(fd);
			return error;
		}
	}
}

static int serve_by_fibers(const struct bench_params *params)
{
	struct hive_fiber *acceptor;
	int result = 0, error = hive_spawn(server.rig.hive, accept_fiber, NULL, NULL, &acceptor);
	if (error)
		return bench_failed("hive_spawn", error);
	echo_announce(server.listener);
	echo_await_end(params);
	hive_fiber_cancel(acceptor);
	error = hive_fiber_join(acceptor, hive_deadline(server.rig.hive, BENCH_PATIENCE_NS), &result);
	return error || result ? bench_failed("the fiber that accepts", error ? error : result) : BENCH_OK;
}

/* ---- with callbacks ---- */

struct link {
	struct hive_op op;
	int fd;
	size_t have, sent;
	char buffer[ECHO_BUFFER];
};

static void on_received(struct hive_op *op, int64_t result);

static void end_link(struct link *link)
{
	close(link->fd);
	free(link);
}

static void receive(struct link *link)
{
	link->op.on_done = on_received;
	if (hive_op_recv(&link->op, link->fd, link->buffer, sizeof link->buffer, deadline()) < 0)
		end_link(link);
}

static void on_sent(struct hive_op *op, int64_t result)
{
	struct link *link = op->arg;
	if (result < 0) {
		end_link(link);
		return;
	}
	link->sent += (size_t)result;
	if (link->sent == link->have)
		receive(link);
	else if (hive_op_send(op, link->fd, link->buffer + link->sent, link->have - link->sent, HIVE_FOREVER) < 0)
		end_link(link);
}

static void on_received(struct hive_op *op, int64_t result)
{
	struct link *link = op->arg;
	link->have = result > 0 ? (size_t)result : 0;
	link->sent = 0;
	op->on_done = on_sent;
	if (result <= 0 || hive_op_send(op, link->fd, link->buffer, link->have, HIVE_FOREVER) < 0)
		end_link(link);
}

/* ---- with lent buffers ---- */

enum { LENT = 256, WAITING = 16 }; /* buffers of a worker; pieces of a link that wait to be sent */

struct lent_link {
	int fd;
	bool ended; /* nothing comes any more */
	uint32_t waiting;
	size_t sent;
	struct hive_op in, out;
	struct {
		char *bytes;
		size_t count;
	} pieces[WAITING]; /* in order; the first one is being sent */
};

static void end_lent(struct lent_link *link)
{
	if (!link->ended || link->waiting > 0)
		return;
	close(link->fd);
	free(link);
}

static void drop_first(struct lent_link *link)
{
	hive_buffer_return(server.buffers, link->pieces[0].bytes);
	link->sent = 0;
	link->waiting--;
	for (uint32_t i = 0; i < link->waiting; i++)
		link->pieces[i] = link->pieces[i + 1];
}

static void send_first(struct lent_link *link)
{
	while (link->waiting > 0) {
		if (hive_op_send(&link->out, link->fd, link->pieces[0].bytes + link->sent,
		                 link->pieces[0].count - link->sent, HIVE_FOREVER) == 0)
			return;
		drop_first(link);
	}
}

static void on_lent_sent(struct hive_op *op, int64_t result)
{
	struct lent_link *link = op->arg;
	link->sent += result > 0 ? (size_t)result : link->pieces[0].count;
	if (link->sent >= link->pieces[0].count)
		drop_first(link);
	send_first(link);
	end_lent(link);
}

/* As most are: what can be sent at once needs no operation. */
static bool is_sent_at_once(struct lent_link *link, char *bytes, size_t count)
{
	int64_t sent = hive_send(link->fd, bytes, count, HIVE_NOWAIT);
	link->sent = sent > 0 ? (size_t)sent : 0;
	if (link->sent < count)
		return false;
	link->sent = 0;
	hive_buffer_return(server.buffers, bytes);
	return true;
}

static void on_piece(struct hive_op *op, int64_t result)
{
	struct lent_link *link = op->arg;
	if (result > 0 && link->waiting == 0 && is_sent_at_once(link, op->buffer, (size_t)result))
		return;
	if (result <= 0) {
		link->ended = true;
		end_lent(link);
	} else if (link->waiting == WAITING) { /* it does not read what it is sent */
		hive_buffer_return(server.buffers, op->buffer);
		hive_op_cancel(op);
	} else {
		link->pieces[link->waiting].bytes = op->buffer;
		link->pieces[link->waiting].count = (size_t)result;
		if (link->waiting++ == 0)
			send_first(link);
	}
}

static void begin_lent(void *arg)
{
	struct lent_link *link = malloc(sizeof *link);
	int fd = (int)(intptr_t)arg;
	if (!link) {
		close(fd);
		return;
	}
	link->fd = fd;
	link->waiting = 0;
	link->sent = 0;
	link->ended = false;
	hive_op_init(&link->in, server.rig.hive, on_piece, link);
	hive_op_init(&link->out, server.rig.hive, on_lent_sent, link);
	if (hive_op_recv_many(&link->in, fd, server.buffers, HIVE_FOREVER) < 0) {
		link->ended = true;
		end_lent(link);
	}
}

/* ---- whom they let in ---- */

static void begin_link(void *arg)
{
	receive(arg);
}

static void share_out(int fd, uint32_t worker)
{
	struct link *link = server.begin ? NULL : malloc(sizeof *link);
	if (server.begin) {
		if (hive_post_to(server.rig.hive, worker, server.begin, (void *)(intptr_t)fd) < 0)
			close(fd);
		return;
	}
	if (!link) {
		close(fd);
		return;
	}
	link->fd = fd;
	hive_op_init(&link->op, server.rig.hive, on_received, link);
	if (hive_post_to(server.rig.hive, worker, begin_link, link) < 0)
		end_link(link);
}

/* In turn to the workers: operations stay where they begin. */
static void on_accepted(struct hive_op *op, int64_t result)
{
	uint32_t turn = (uint32_t)server.turn++ % (uint32_t)server.rig.io_count;
	if (result < 0)
		*(_Atomic int64_t *)op->arg = result;
	else
		share_out((int)result, server.rig.io[turn]);
}

static int serve_by_ops(const struct bench_params *params)
{
	static struct hive_op accepts;
	static _Atomic int64_t ended;
	hive_op_init(&accepts, server.rig.hive, on_accepted, &ended);
	int error = params->style == BENCH_LENT
	                    ? hive_buffers_create(server.rig.hive, LENT, ECHO_BUFFER, &server.buffers)
	                    : 0;
	if (error)
		return bench_failed("hive_buffers_create", error);
	error = hive_op_accept(&accepts, server.listener, HIVE_OP_REPEAT, HIVE_FOREVER);
	if (error)
		return bench_failed("hive_op_accept", error);
	echo_announce(server.listener);
	echo_await_end(params);
	hive_op_cancel(&accepts);
	int64_t result = sync_await(&ended, BENCH_PATIENCE_NS);
	return result == -ECANCELED ? BENCH_OK : bench_failed("hive_op_accept", (int)result);
}

int echo_serve_hive(const struct bench_params *params)
{
	server.listener = echo_listener(params->port);
	if (server.listener < 0)
		return bench_failed("listen", -errno);
	server.patience_ns = HIVE_MS(params->deadline_ms);
	int code = rig_open(&server.rig, params, params->threads, 0);
	if (code)
		return code;
	server.begin = params->style == BENCH_LENT      ? begin_lent
	               : params->style == BENCH_SOURCES ? echo_begin_source
	               : params->style == BENCH_EDGES   ? echo_begin_edges
	                                                : NULL;
	code = params->style == BENCH_FIBERS ? serve_by_fibers(params) : serve_by_ops(params);
	return rig_close(&server.rig, code);
}
