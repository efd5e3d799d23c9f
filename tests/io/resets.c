/* SPDX-License-Identifier: MIT */
/* Peers that reset a connection at each byte of an exchange, and peers that end one half of it, on each core. */
#include "base/atomic.h"
#include "support/net.h"

/* ---- an exchange: a frame there, a frame back ---- */

enum { ASK = 9, ANSWER = 11 };
static const char ask[] = "\0\0\0\5hello", answer[] = "\0\0\0\7goodbye";

struct server {
	int fd;
	int got;  /* bytes of what was asked */
	int want; /* after so many the peer may go on */
	int64_t end;
	struct hive_semaphore reached, done;
	/* with callbacks */
	struct hive_op op;
	char byte;
	int sent;
};

static void note(struct server *s, char byte)
{
	CHECK(s->got < ASK);
	CHECK_EQ(byte, ask[s->got]);
	if (++s->got == s->want)
		CHECK_OK(hive_semaphore_release(&s->reached, 1));
}

/* Answers without an end: sooner or later it is told, wherever it is then, also when it waits for room. */
static void serve_by_calls(struct server *s)
{
	char byte;

	while (s->got < ASK && (s->end = hive_recv(s->fd, &byte, 1, HIVE_FOREVER)) > 0)
		note(s, byte);
	for (int sent = 0; s->end > 0; sent++)
		s->end = hive_send(s->fd, &answer[sent % ANSWER], 1, HIVE_FOREVER);
}

static void serve_by_stream(struct server *s)
{
	struct hive_stream *stream;
	const void *frame = NULL;

	CHECK_OK(hive_stream_create(dup(s->fd), NULL, &stream));
	s->end = hive_stream_read_frame(stream, &frame, HIVE_FOREVER);
	if (s->end > 0) {
		CHECK_EQ(s->end, 5);
		CHECK_EQ(memcmp(frame, "hello", 5), 0);
		s->got = ASK;
		CHECK_OK(hive_semaphore_release(&s->reached, 1));
	}
	while (s->end >= 0)
		s->end = hive_stream_write_frame(stream, answer + 4, ANSWER - 4, HIVE_FOREVER);
	if (s->got == ASK)
		CHECK_ERR(hive_stream_flush(stream, HIVE_FOREVER), s->end); /* it stays broken */
	hive_stream_destroy(stream, HIVE_FOREVER);
}

static void on_bytes(struct hive_op *op, int64_t n)
{
	struct server *s = op->arg;

	if (n > 0 && s->got < ASK)
		note(s, s->byte);
	if (n > 0) {
		CHECK_OK(s->got < ASK ? hive_op_recv(op, s->fd, &s->byte, 1, HIVE_FOREVER)
		                      : hive_op_send(op, s->fd, &answer[s->sent++ % ANSWER], 1, HIVE_FOREVER));
		return;
	}
	s->end = n;
	CHECK_OK(hive_semaphore_release(&s->done, 1));
}

static void serve_by_callbacks(struct server *s)
{
	hive_op_init(&s->op, hive_current(), on_bytes, s);
	CHECK_OK(hive_op_recv(&s->op, s->fd, &s->byte, 1, HIVE_FOREVER));
	CHECK_OK(hive_semaphore_acquire(&s->done, 1, HIVE_FOREVER));
}

static void (*const servers[])(struct server *s) = { serve_by_calls, serve_by_stream, serve_by_callbacks };
enum { BY_CALLS, BY_STREAM, BY_CALLBACKS, SERVERS };

struct job {
	struct server *server;
	int kind;
};

static int serve(void *arg)
{
	struct job *job = arg;

	servers[job->kind](job->server);
	return 0;
}

static void reset(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
	CHECK_OK(close(fd));
}

static void connect_both(int fds[2])
{
	int listener = hive_listen("127.0.0.1", 0, NULL);
	struct hive_address at;

	CHECK(listener >= 0);
	CHECK_OK(hive_address_of(listener, false, &at));
	fds[0] = hive_dial("127.0.0.1", hive_address_port(&at), NULL, HIVE_FOREVER);
	fds[1] = hive_accept(listener, HIVE_FOREVER);
	CHECK(fds[0] >= 0 && fds[1] >= 0);
	CHECK_OK(close(listener));
}

/* Little room on the way: who answers without an end soon waits. */
static void narrow(const int fds[2])
{
	int bytes = 2000;

	CHECK_OK(setsockopt(fds[0], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes));
	CHECK_OK(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes));
}

/* The peer sends so many bytes, takes so many of the answer, and is gone. */
static void reset_after(int kind, int sent, int taken)
{
	struct server s = { .want = kind == BY_STREAM ? ASK : sent };
	struct job job = { &s, kind };
	struct hive_fiber *fiber;
	char text[ANSWER];
	int fds[2];

	connect_both(fds);
	narrow(fds);
	s.fd = fds[1];
	hive_semaphore_init(&s.reached, sent == 0);
	hive_semaphore_init(&s.done, 0);
	fiber = net_spawn(serve, &job);
	for (int i = 0; i < sent; i += sent % 2 ? 1 : sent)
		CHECK_OK(hive_send_all(fds[0], ask + i, (size_t)(sent % 2 ? 1 : sent), HIVE_FOREVER));
	if (kind != BY_STREAM || sent == ASK)
		CHECK_OK(hive_semaphore_acquire(&s.reached, 1, HIVE_FOREVER));
	CHECK_OK(hive_recv_all(fds[0], text, (size_t)taken, HIVE_FOREVER));
	CHECK_EQ(memcmp(text, answer, (size_t)taken), 0);
	reset(fds[0]);
	CHECK_EQ(net_join(fiber), 0);
	CHECK_EQ(s.got, kind == BY_STREAM && sent < ASK ? 0 : sent);
	if (sent < ASK)
		CHECK_ERR(s.end, -ECONNRESET);
	else
		CHECK(s.end == -ECONNRESET || s.end == -EPIPE);
	CHECK_ERR(hive_send(s.fd, "x", 1, HIVE_FOREVER), -EPIPE);
	CHECK_EQ(hive_recv(s.fd, text, 1, HIVE_FOREVER), 0);
	CHECK_OK(close(s.fd));
}

static int at_each_byte(void *arg)
{
	(void)arg;
	for (int kind = 0; kind < SERVERS; kind++) {
		for (int sent = 0; sent < ASK; sent++)
			reset_after(kind, sent, 0);
		for (int taken = 0; taken <= ANSWER; taken++)
			reset_after(kind, ASK, taken);
	}
	return 0;
}

TEST(a_reset_at_each_byte_of_an_exchange)
{
	net_each(at_each_byte);
}

/* ---- halves ---- */

struct half { /* one direction of a connection */
	int from, to;
	int bytes;
};

static char pattern(int i)
{
	return (char)(i * 7 + i / 256);
}

static int fill_half(void *arg)
{
	const struct half *h = arg;
	char part[1000];

	for (int at = 0; at < h->bytes;) {
		int n = h->bytes - at < (int)sizeof part ? h->bytes - at : (int)sizeof part;

		for (int i = 0; i < n; i++)
			part[i] = pattern(at + i);
		CHECK_OK(hive_send_all(h->from, part, (size_t)n, HIVE_FOREVER));
		at += n;
	}
	CHECK_OK(hive_shutdown(h->from, SHUT_WR, HIVE_FOREVER));
	CHECK_ERR(hive_send(h->from, "x", 1, HIVE_FOREVER), -EPIPE);
	return 0;
}

static int drain_half(void *arg)
{
	const struct half *h = arg;
	char part[777];
	int64_t n;
	int at = 0;

	while ((n = hive_recv(h->to, part, sizeof part, HIVE_FOREVER)) > 0)
		for (int i = 0; i < n; i++, at++)
			CHECK_EQ(part[i], pattern(at));
	CHECK_EQ(n, 0);
	CHECK_EQ(at, h->bytes);
	CHECK_EQ(hive_recv(h->to, part, sizeof part, HIVE_FOREVER), 0); /* the end stays */
	return 0;
}

/* Each half ends when it is through, whatever the other one does. */
static void both_halves(bool unix_sockets, int there, int back)
{
	struct hive_fiber *fibers[4];
	struct half halves[2];
	int fds[2];

	if (unix_sockets)
		net_pair(fds);
	else
		connect_both(fds);
	halves[0] = (struct half){ fds[0], fds[1], there };
	halves[1] = (struct half){ fds[1], fds[0], back };
	for (int i = 0; i < 2; i++) {
		fibers[2 * i] = net_spawn(drain_half, &halves[i]);
		fibers[2 * i + 1] = net_spawn(fill_half, &halves[i]);
	}
	for (int i = 0; i < 4; i++)
		CHECK_EQ(net_join(fibers[i]), 0);
	net_close(fds);
}

static int halves(void *arg)
{
	static const int bytes[] = { 0, 1, 300000 };

	(void)arg;
	for (int kind = 0; kind < 2; kind++)
		for (int i = 0; i < 9; i++)
			both_halves(kind, bytes[i / 3], bytes[i % 3]);
	return 0;
}

TEST(each_half_of_a_connection_ends_by_itself)
{
	net_each(halves);
}

static int wait_for_end(void *arg)
{
	char byte;

	return (int)hive_recv(*(int *)arg, &byte, 1, HIVE_FOREVER);
}

/* Who reads is told, though it is the same side that ends its reading half; what it sends still arrives. */
static int own_half(void *arg)
{
	struct hive_fiber *fiber;
	char byte;
	int fds[2];

	(void)arg;
	connect_both(fds);
	fiber = net_spawn(wait_for_end, &fds[0]);
	CHECK_OK(hive_yield());
	CHECK_OK(hive_shutdown(fds[0], SHUT_RD, HIVE_FOREVER));
	CHECK_EQ(net_join(fiber), 0);
	CHECK_EQ(hive_send(fds[0], "x", 1, HIVE_FOREVER), 1);
	CHECK_EQ(hive_recv(fds[1], &byte, 1, HIVE_FOREVER), 1);
	net_close(fds);
	return 0;
}

TEST(who_ends_its_own_reading_half_is_told)
{
	net_each(own_half);
}
