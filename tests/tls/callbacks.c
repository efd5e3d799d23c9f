/* SPDX-License-Identifier: MIT */
/* A client and an echo server without a fiber of their own: accept and dial by operations, the handshake by hive_tls_handshake_then(), bytes by
 * HIVE_NOWAIT whenever a poll says so.                                                                                     */
#include "base/atomic.h"
#include "meet.h"
#include "support/shot.h"

#include <rophive/cancel.h>

enum { TALKERS = 6, BYTES = 1 << 20, PIECE = 20000 };

struct line { /* one end of a connection; its worker alone touches it */
	struct hive_op op;
	struct hive_tls *tls;
	uint32_t worker;
	int fd;
	bool client, ended;
	uint64_t written, read; /* the server: written is behind read by what is in the buffer */
	uint32_t full;          /* how often it could not write */
	char buffer[PIECE];
};

static struct town {
	struct hive *hive;
	struct hive_tls_context *server, *client;
	struct hive_op accepting;
	int listener;
	char name[40];
	struct line lines[2 * TALKERS];
	ATOMIC(uint32_t) accepted, ended, full[2];
	struct gate all, closed;
} town;

static void go_on(struct line *l);

static void ready(struct hive_op *op, int64_t result)
{
	struct line *l = op->arg;

	CHECK(result > 0);
	CHECK(!hive_fiber_current());
	CHECK_EQ(hive_worker_current(), l->worker);
	go_on(l);
}

static void wait_for(struct line *l, uint32_t events)
{
	hive_op_init(&l->op, town.hive, ready, l);
	CHECK_OK(hive_op_poll(&l->op, hive_tls_fd(l->tls), events, 0, real_patience()));
}

static void leave(struct line *l)
{
	CHECK_EQ(l->read, BYTES);
	CHECK_EQ(l->written, BYTES);
	add_relaxed(&town.full[l->client], l->full);
	CHECK_OK(hive_tls_destroy(l->tls, HIVE_NOWAIT));
	if (add_seq(&town.ended, 1u) + 1 == 2 * TALKERS)
		gate_open(&town.all);
}

/* False: for now no more can be written. */
static bool write_some(struct line *l)
{
	uint64_t end = l->client ? BYTES : l->read;
	int64_t n = 0;

	while (l->written < end && n >= 0) {
		size_t some = end - l->written < PIECE ? (size_t)(end - l->written) : PIECE;

		if (l->client)
			pattern_fill(l->buffer, some, l->written);
		n = hive_tls_write(l->tls, l->client ? l->buffer : l->buffer + l->written % PIECE, some, HIVE_NOWAIT);
		if (n > 0)
			l->written += (uint64_t)n;
	}
	if (n >= 0)
		n = hive_tls_flush(l->tls, HIVE_NOWAIT);
	CHECK(n >= 0 || n == -ETIMEDOUT);
	l->full += n < 0;
	return n >= 0;
}

/* The server's pieces begin where the buffer does, or go on in it. As hive_tls_read(). */
static int64_t read_some(struct line *l)
{
	char *to = l->client ? l->buffer : l->buffer + l->read % PIECE;
	int64_t n = hive_tls_read(l->tls, to, PIECE - (size_t)(to - l->buffer), HIVE_NOWAIT);

	if (n > 0 && l->client)
		pattern_check(to, (size_t)n, l->read);
	if (n > 0)
		l->read += (uint64_t)n;
	CHECK(n >= 0 || n == -ETIMEDOUT);
	return n;
}

/* A server reads when all was written. A client writes first, as long as it can: more than fits between them. */
static void go_on(struct line *l)
{
	for (;;) {
		bool can_write = write_some(l);
		int64_t n = can_write || l->client ? read_some(l) : -ETIMEDOUT;

		if (n == 0) {
			leave(l);
			return;
		}
		if (l->client && l->read == BYTES && !l->ended) {
			CHECK_OK(hive_tls_shutdown(l->tls, HIVE_NOWAIT));
			l->ended = true;
		}
		if (n > 0)
			continue;
		wait_for(l, !can_write ? l->client ? HIVE_EVENT_IN | HIVE_EVENT_OUT : HIVE_EVENT_OUT : HIVE_EVENT_IN);
		return;
	}
}

static void shaken(struct hive_tls *tls, int result, void *arg)
{
	struct line *l = arg;

	CHECK_OK(result);
	CHECK(l->tls == tls);
	CHECK_EQ(hive_worker_current(), l->worker);
	go_on(l);
}

/* What callbacks cannot do, and what they do instead. */
static void shake(struct line *l, int fd, const char *host)
{
	CHECK(fd >= 0);
	CHECK(!hive_fiber_current());
	l->worker = hive_worker_current();
	CHECK_OK(hive_tls_create(host ? town.client : town.server, fd, &l->tls));
	CHECK_ERR(host ? hive_tls_connect(l->tls, host, HIVE_NOWAIT) : hive_tls_accept(l->tls, HIVE_NOWAIT), -EDEADLK);
	CHECK_OK(hive_tls_handshake_then(l->tls, host, real_patience(), NULL, shaken, l));
}

static void accepted(struct hive_op *op, int64_t fd)
{
	(void)op;
	if (fd < 0) {
		CHECK_EQ(fd, -ECANCELED);
		gate_open(&town.closed);
		return;
	}
	shake(&town.lines[add_relaxed(&town.accepted, 1u)], (int)fd, NULL);
}

static void dialled(struct hive_op *op, int64_t fd)
{
	shake(op->arg, (int)fd, "localhost");
}

static void dial(void *arg)
{
	struct line *l = arg;

	l->client = true;
	hive_op_init(&l->op, town.hive, dialled, l);
	CHECK_OK(hive_op_dial(&l->op, town.name, 0, NULL, real_patience()));
}

static void town_run(const char *core)
{
	memset(&town, 0, sizeof town);
	gate_init(&town.all);
	gate_init(&town.closed);
	town.server = context_server("server");
	town.client = context_client();
	town.hive = net_start(core, 2, 1);
	snprintf(town.name, sizeof town.name, "unix:@rophive.tls.%d", (int)getpid());
	town.listener = hive_listen(town.name, 0, NULL);
	CHECK(town.listener >= 0);
	hive_op_init(&town.accepting, town.hive, accepted, NULL);
	CHECK_OK(hive_op_accept(&town.accepting, town.listener, HIVE_OP_REPEAT, HIVE_FOREVER));
	for (int i = 0; i < TALKERS; i++)
		CHECK_OK(hive_post(town.hive, dial, &town.lines[TALKERS + i]));
	gate_pass(&town.all);
	CHECK_OK(hive_op_cancel(&town.accepting));
	gate_pass(&town.closed);
	CHECK_EQ(load_relaxed(&town.accepted), TALKERS);
	CHECK(load_relaxed(&town.full[0]) >= TALKERS); /* it was seen that writing has to wait, */
	CHECK(load_relaxed(&town.full[1]) >= TALKERS); /* on both sides */
	CHECK_OK(close(town.listener));
	real_end(town.hive, HIVE_DRAIN);
	hive_tls_context_destroy(town.server);
	hive_tls_context_destroy(town.client);
	gate_destroy(&town.all);
	gate_destroy(&town.closed);
}

TEST(callbacks_alone_make_a_server_and_its_clients)
{
	EACH_CORE(core)
	town_run(core_names[core]);
}

/* ---- what may come in between ---- */

struct attempt {
	struct hive_tls *tls;
	const char *host;
	int64_t deadline_ns;
	struct hive_cancel *cancel;
	int asked, result;
	bool expects_busy, fires;
	struct gate done;
};

static void attempt_done(struct hive_tls *tls, int result, void *arg)
{
	struct attempt *a = arg;

	CHECK(tls == a->tls);
	a->result = result;
	gate_open(&a->done);
}

static void attempt_begin(void *arg)
{
	struct attempt *a = arg;

	a->asked = hive_tls_handshake_then(a->tls, a->host, a->deadline_ns, a->cancel, attempt_done, a);
	if (a->fires)
		hive_cancel_fire(a->cancel);
	if (a->expects_busy)
		CHECK_ERR(hive_tls_handshake_then(a->tls, a->host, a->deadline_ns, NULL, attempt_done, a), -EBUSY);
}

/* Its result, or why it was not begun. */
static int attempt_run(struct hive *hive, struct attempt *a)
{
	gate_init(&a->done);
	shot_at(hive, HIVE_WORKER_NONE, attempt_begin, a);
	if (a->asked == 0)
		gate_pass(&a->done);
	gate_destroy(&a->done);
	return a->asked < 0 ? a->asked : a->result;
}

static void on_compute_worker(void *arg)
{
	struct attempt *a = arg;

	attempt_begin(a);
	gate_open(&a->done);
}

/* Whoever may not ask is told, nothing is begun, and the connection is as it was. */
static void ask_wrongly(struct hive *hive, struct attempt *a)
{
	struct attempt wrong = *a;

	wrong.expects_busy = false;

	CHECK_ERR(hive_tls_handshake_then(a->tls, a->host, HIVE_FOREVER, NULL, attempt_done, a), -EPERM);
	gate_init(&wrong.done);
	CHECK_OK(hive_post_compute(hive, on_compute_worker, &wrong));
	gate_pass(&wrong.done);
	gate_destroy(&wrong.done);
	CHECK_ERR(wrong.asked, -EPERM);
	CHECK_ERR(hive_tls_handshake_then(NULL, a->host, HIVE_FOREVER, NULL, attempt_done, a), -EINVAL);
	CHECK_ERR(hive_tls_handshake_then(a->tls, a->host, HIVE_FOREVER, NULL, NULL, a), -EINVAL);
}

/* A peer that says nothing, then one that goes away. */
static void wait_in_vain(struct hive *hive, struct hive_tls_context *context, const char *host)
{
	struct attempt a = { .host = host, .expects_busy = true };
	struct hive_cancel cancel;
	int fds[2];

	net_pair(fds);
	CHECK_OK(hive_tls_create(context, fds[0], &a.tls));
	ask_wrongly(hive, &a);
	a.deadline_ns = hive_deadline(NULL, HIVE_MS(1));
	CHECK_ERR(attempt_run(hive, &a), -ETIMEDOUT);
	a.deadline_ns = HIVE_FOREVER;
	a.cancel = &cancel;
	a.fires = true;
	hive_cancel_init(&cancel, NULL, HIVE_FOREVER);
	CHECK_ERR(attempt_run(hive, &a), -ECANCELED); /* the reason of that token */
	CHECK_OK(a.asked);
	a.expects_busy = a.fires = false;
	CHECK_ERR(attempt_run(hive, &a), -ECANCELED);
	CHECK_ERR(a.asked, -ECANCELED); /* it has fired: refused at the door */
	CHECK_OK(hive_cancel_join(&cancel, real_patience()));
	a.cancel = NULL;
	gate_init(&a.done);
	shot_at(hive, HIVE_WORKER_NONE, attempt_begin, &a);
	CHECK_OK(a.asked);
	if (host) /* what a client says first has come, if not in the attempts before: it is reset with that unread */
		CHECK_EQ(poll(&(struct pollfd){ .fd = fds[1], .events = POLLIN }, 1, -1), 1);
	CHECK_OK(close(fds[1]));
	gate_pass(&a.done);
	gate_destroy(&a.done);
	CHECK_ERR(a.result, host ? -ECONNRESET : -ENODATA);
	CHECK_OK(hive_tls_destroy(a.tls, HIVE_NOWAIT));
}

/* A server is refused by a client that does not trust it. */
static void distrust(struct hive *hive, struct hive_tls_context *server, struct hive_tls_context *client)
{
	struct attempt ends[2] = { { .deadline_ns = HIVE_FOREVER },
		                   { .deadline_ns = HIVE_FOREVER, .host = "elsewhere" } };
	int fds[2];

	net_pair(fds);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(hive_tls_create(i ? client : server, fds[i], &ends[i].tls));
		gate_init(&ends[i].done);
		shot_at(hive, HIVE_WORKER_NONE, attempt_begin, &ends[i]);
		CHECK_OK(ends[i].asked);
	}
	for (int i = 0; i < 2; i++) {
		gate_pass(&ends[i].done);
		gate_destroy(&ends[i].done);
		CHECK_ERR(ends[i].result, i ? -EKEYREJECTED : -EACCES);
		CHECK_OK(hive_tls_destroy(ends[i].tls, HIVE_NOWAIT));
	}
}

TEST(what_keeps_a_handshake_from_its_end_is_told)
{
	struct hive_tls_context *server = context_server("server"), *client = context_client();

	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 1);
		struct attempt a = { .host = "localhost" };
		int fds[2];

		wait_in_vain(hive, server, NULL);
		wait_in_vain(hive, client, "localhost");
		distrust(hive, server, client);
		net_pair(fds);
		CHECK_OK(hive_tls_create(server, fds[0], &a.tls));
		CHECK_ERR(attempt_run(hive, &a), -EINVAL); /* a server wants nobody */
		CHECK_ERR(a.asked, -EINVAL);
		CHECK_OK(hive_tls_destroy(a.tls, HIVE_NOWAIT));
		CHECK_OK(close(fds[1]));
		real_end(hive, HIVE_DRAIN);
	}
	hive_tls_context_destroy(server);
	hive_tls_context_destroy(client);
}

TEST(without_a_compute_worker_nobody_shakes_hands)
{
	struct hive_tls_context *client = context_client();
	struct hive *hive = net_start("epoll", 1, 0);
	struct attempt a = { .host = "localhost", .deadline_ns = HIVE_FOREVER };
	int fds[2];

	net_pair(fds);
	CHECK_OK(hive_tls_create(client, fds[0], &a.tls));
	CHECK_ERR(attempt_run(hive, &a), -ENOTSUP);
	CHECK_OK(hive_tls_destroy(a.tls, HIVE_NOWAIT));
	CHECK_OK(close(fds[1]));
	real_end(hive, HIVE_DRAIN);
	hive_tls_context_destroy(client);
}

/* One that waits for its peer is told that the hive stops; one whose fiber has not begun is dropped, like a task. Both connections are the
 * caller's afterwards.                                                                                                       */
static void begin_and_stop(void *arg)
{
	struct attempt *a = arg;

	attempt_begin(&a[1]);
	CHECK_OK(a[1].asked);
	CHECK_OK(hive_stop(hive_current(), HIVE_NOW, HIVE_FOREVER));
}

TEST(a_hive_that_stops_now_lets_go_of_connections)
{
	struct hive_tls_context *client = context_client();

	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 1);
		struct attempt a[2];
		int fds[2][2];

		for (int i = 0; i < 2; i++) {
			a[i] = (struct attempt){ .host = "localhost", .deadline_ns = HIVE_FOREVER, .result = 1 };
			net_pair(fds[i]);
			CHECK_OK(hive_tls_create(client, fds[i][0], &a[i].tls));
			gate_init(&a[i].done);
		}
		shot_at(hive, HIVE_WORKER_NONE, attempt_begin, &a[0]);
		CHECK_EQ(poll(&(struct pollfd){ .fd = fds[0][1], .events = POLLIN }, 1, -1), 1); /* it has begun */
		CHECK_OK(hive_post(hive, begin_and_stop, a));
		gate_pass(&a[0].done);
		real_join(hive);
		CHECK_ERR(a[0].result, -ECANCELED);
		CHECK_EQ(a[1].result, 1);
		for (int i = 0; i < 2; i++) {
			CHECK_OK(hive_tls_destroy(a[i].tls, HIVE_NOWAIT));
			CHECK_OK(close(fds[i][1]));
			gate_destroy(&a[i].done);
		}
	}
	hive_tls_context_destroy(client);
}
