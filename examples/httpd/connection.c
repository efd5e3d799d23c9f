/* SPDX-License-Identifier: MIT */
/* A connection: bytes in, bytes out, one request after the other. Answers gather in `out`; it is sent when it is full, and before we
 * wait for more of the client: so pipelined requests are answered together.                                                     */
#include "httpd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { LINGER_BYTES = 1 << 20, IN_A_ROW = 32 };
#define LINGER_NS HIVE_S(2)

static const struct settings *settings_of(const struct connection *c)
{
	return &c->worker->server->settings;
}

struct connection *connection_new(struct worker *worker, int fd)
{
	uint32_t in_bytes = worker->server->settings.head.head_bytes + IN_SPARE;
	struct connection *c = malloc(sizeof *c + in_bytes);

	if (!c)
		return NULL;
	memset(c, 0, offsetof(struct connection, client) + 1); /* the buffers, and their pages, can wait */
	c->worker = worker;
	c->fd = fd;
	c->in_bytes = in_bytes;
	c->next = worker->connections;
	if (c->next)
		c->next->prev = c;
	worker->connections = c;
	worker->count++;
	return c;
}

void connection_free(struct connection *c)
{
	struct worker *worker = c->worker;

	if (c->next)
		c->next->prev = c->prev;
	if (c->prev)
		c->prev->next = c->next;
	else
		worker->connections = c->next;
	worker->count--;
	atomic_fetch_sub_explicit(&worker->server->connections, 1, memory_order_relaxed);
	free(c);
}

/* The fiber stays master of its descriptor: it finds that there is nothing more to receive, or to send. */
void connections_end(struct worker *worker, bool all)
{
	for (struct connection *c = worker->connections; c; c = c->next)
		if (all)
			shutdown(c->fd, SHUT_RDWR);
		else if (c->idle)
			shutdown(c->fd, SHUT_RD);
}

/* ---- bytes ---- */

/* When so many bytes must have gone, at the slowest: after that the peer is too slow. */
int64_t pace_deadline(const struct settings *settings, struct pace *pace)
{
	if (pace->began_ns == 0)
		pace->began_ns = hive_now(NULL);
	return pace->began_ns + settings->grace_ns + pace->bytes / settings->rate * HIVE_S(1);
}

static int64_t send_some(struct connection *c, const char *bytes, size_t count, bool more, int64_t deadline_ns)
{
	struct iovec part = { (void *)(uintptr_t)bytes, count };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	return more ? hive_sendmsg(c->fd, &message, MSG_MORE, deadline_ns)
	            : hive_send(c->fd, bytes, count, deadline_ns);
}

int connection_flush(struct connection *c, bool more)
{
	uint32_t sent = 0;

	while (sent < c->out_used) {
		int64_t n = send_some(c, c->out + sent, c->out_used - sent, more,
		                      pace_deadline(settings_of(c), &c->out_pace));

		if (n < 0)
			return (int)n;
		sent += (uint32_t)n;
		c->out_pace.bytes += n;
	}
	c->out_used = 0;
	return 0;
}

int connection_write(struct connection *c, const char *bytes, size_t count)
{
	while (count > 0) {
		size_t room = OUT_BYTES - c->out_used, n = count < room ? count : room;
		int r;

		memcpy(c->out + c->out_used, bytes, n);
		c->out_used += (uint32_t)n;
		bytes += n;
		count -= n;
		r = c->out_used == OUT_BYTES ? connection_flush(c, false) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int64_t connection_fill(struct connection *c, int64_t deadline_ns)
{
	int64_t n = c->out_used > 0 ? connection_flush(c, false) : 0;

	if (n == 0)
		n = hive_recv(c->fd, c->in + c->to, c->in_bytes - c->to, deadline_ns);
	if (n > 0)
		c->to += (uint32_t)n;
	return n;
}

/* ---- one request after the other ---- */

static void begin_request(struct connection *c)
{
	c->from = c->at;
	if (c->from == c->to)
		c->from = c->at = c->to = 0;
	c->head_bytes = 0;
	c->parser = (struct head_parser){ 0 };
	c->chunks = (struct chunks){ 0 };
	c->in_pace = c->out_pace = (struct pace){ 0 };
	c->continued = c->begun = false;
	c->status = 0;
	c->body_left = c->body_got = c->answered = 0;
}

/* The first byte may take its time, those after it not. */
static int64_t wait_for_head(struct connection *c, int64_t *deadline_ns)
{
	int64_t n;

	c->idle = c->from == c->to;
	if (c->idle)
		*deadline_ns = hive_deadline(NULL,
		                             c->requests > 0 ? settings_of(c)->idle_ns : settings_of(c)->header_ns);
	if (c->idle && atomic_load_explicit(&c->worker->server->stops, memory_order_relaxed)) {
		c->closes = true;
		return 0;
	}
	if (c->from > 0 && c->in_bytes - c->to < IN_SPARE / 2) {
		memmove(c->in, c->in + c->from, c->to - c->from);
		c->to -= c->from;
		c->from = 0;
	}
	n = connection_fill(c, *deadline_ns);
	if (n > 0 && c->idle)
		*deadline_ns = 0;
	c->idle = false;
	return n;
}

/* > 0: it is there. 0: nothing came, and that is the end. -status or -errno. */
static int64_t read_head(struct connection *c)
{
	int64_t n, deadline_ns = 0;

	for (;;) {
		n = c->from < c->to
		            ? head_parse(&c->parser, &settings_of(c)->head, c->in + c->from, c->to - c->from, &c->head)
		            : 0;
		if (n != 0)
			return n;
		if (c->from < c->to && deadline_ns == 0)
			deadline_ns = hive_deadline(NULL, settings_of(c)->header_ns);
		n = wait_for_head(c, &deadline_ns);
		if (n == -ETIMEDOUT)
			return c->from == c->to ? 0 : -408;
		if (n <= 0)
			return n == 0 && c->from < c->to ? -400 : n; /* half a request, and no more */
	}
}

static int serve_one(struct connection *c)
{
	int64_t n;

	begin_request(c);
	n = read_head(c);
	if (n == 0 || (n < 0 && n > -400))
		return n < 0 ? (int)n : -ENODATA;
	c->worker->requests++;
	c->requests++;
	if (n < 0)
		return answer_plain(c, (int)-n);
	c->head_bytes = (uint32_t)n;
	c->at = c->from + c->head_bytes;
	c->body_left = c->head.body_bytes > 0 ? c->head.body_bytes : 0;
	n = serve_request(c);
	if (n < 0)
		return (int)n;
	return c->closes ? 0 : body_skip(c);
}

/* A client that said that this was all it had to say. */
static bool is_last_word(const struct connection *c)
{
	return c->head_bytes > 0 && !c->head.keeps_alive && body_is_over(c) && c->at == c->to;
}

/* What the client still sends would make the system throw away what it has not read yet, if we just closed. */
static void linger(struct connection *c)
{
	int64_t n = 1, got = 0, deadline_ns = hive_deadline(NULL, LINGER_NS);

	hive_shutdown(c->fd, SHUT_WR, deadline_ns);
	while (n > 0 && got < LINGER_BYTES) {
		n = hive_recv(c->fd, c->in, c->in_bytes, deadline_ns);
		got += n;
	}
}

int connection_serve(void *arg)
{
	struct connection *c = arg;
	struct worker *worker = c->worker;
	int r = c->refused ? answer_plain(c, 503) : 0;

	while (r == 0 && !c->closes) {
		uint32_t before = c->requests;

		r = serve_one(c);
		if (c->requests % IN_A_ROW == 0)
			hive_yield(); /* who always has a request for us does not keep others waiting */
		if (c->requests > before && worker->server->log.fd >= 0)
			log_request(&worker->server->log, c, worker_now_s(worker));
	}
	if (!c->breaks && connection_flush(c, false) == 0 && c->closes && !is_last_word(c))
		linger(c);
	hive_close(c->fd, HIVE_FOREVER);
	connection_free(c);
	return 0;
}
