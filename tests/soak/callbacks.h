/* SPDX-License-Identifier: MIT */
#pragma once
/* What callbacks do meanwhile: sessions by operations, whose answers come in lent buffers; and signals and addresses, by calls and by operations. */
#include <signal.h>

#include <rophive/op.h>
#include <rophive/process.h>
#include <rophive/sync.h>

#include "soak/sessions.h"

enum { LENT_BYTES = 1024, LENT = 16, LATEST_CANCEL_NS = 500000 };

/* One client. Its callbacks come on one worker, one after the other, and so does the task that cancels what is under way. */
struct caller {
	struct books *books;
	struct hive_buffers *buffers;
	struct hive_op out, in; /* dial, send, shutdown, close; what comes */
	struct session session;
	uint64_t random;
	uint32_t sent, got;
	int fd, result; /* the first error */
	bool head_sent, receives, sends, is_over;
	unsigned char piece[PIECE];
	struct hive_semaphore over; /* also when the task is */
};

static inline void caller_go_on(struct caller *c);

static inline void caller_closed(struct hive_op *op, int64_t result)
{
	struct caller *c = op->arg;

	CHECK_OK(result);
	c->is_over = true;
	hive_semaphore_release(&c->over, 1);
}

/* When neither way has anything under way any more. */
static inline void caller_end(struct caller *c)
{
	if (c->receives || c->sends)
		return;
	CHECK(c->result != 0 || c->got == c->session.back);
	hive_op_init(&c->out, hive_current(), caller_closed, c);
	CHECK_OK(hive_op_close(&c->out, c->fd, HIVE_FOREVER));
}

static inline void caller_fail(struct caller *c, int64_t result)
{
	CHECK(result == -ECANCELED || c->result != 0);
	if (c->result == 0)
		c->result = (int)result;
}

static inline void caller_came(struct hive_op *op, int64_t result)
{
	struct caller *c = op->arg;

	if (result > 0) {
		CHECK((uint64_t)c->got + (uint64_t)result <= c->session.back);
		check_bytes(c->books, op->buffer, ~c->session.seed, c->got, (size_t)result);
		c->got += (uint32_t)result;
		CHECK_OK(hive_buffer_return(c->buffers, op->buffer));
		return;
	}
	c->receives = false;
	if (result < 0) {
		caller_fail(c, result);
		shutdown(c->fd, SHUT_RDWR); /* the server may be in the middle of it */
	}
	caller_end(c);
}

static inline void caller_shut(struct hive_op *op, int64_t result)
{
	struct caller *c = op->arg;

	c->sends = false;
	if (result < 0)
		caller_fail(c, result);
	caller_end(c);
}

static inline void caller_sent(struct hive_op *op, int64_t result)
{
	struct caller *c = op->arg;

	if (result < 0) {
		c->sends = false;
		caller_fail(c, result);
		shutdown(c->fd, SHUT_RDWR);
		caller_end(c);
		return;
	}
	if (c->head_sent)
		c->sent += (uint32_t)result;
	else
		CHECK_EQ(result, sizeof c->session); /* there is room for it in any socket */
	c->head_sent = true;
	caller_go_on(c);
}

static inline void caller_go_on(struct caller *c)
{
	size_t n = c->sent < c->session.there ? some_of(&c->random, c->session.there - c->sent, PIECE) : 0;

	if (n > 0) {
		make_bytes(c->piece, c->session.seed, c->sent, n);
		CHECK_OK(hive_op_send(&c->out, c->fd, c->piece, n, HIVE_FOREVER));
		return;
	}
	hive_op_init(&c->out, hive_current(), caller_shut, c);
	CHECK_OK(hive_op_shutdown(&c->out, c->fd, SHUT_WR, HIVE_FOREVER));
}

static inline void caller_dialled(struct hive_op *op, int64_t fd)
{
	struct caller *c = op->arg;

	c->fd = (int)fd;
	if (fd < 0) {
		c->result = (int)fd;
		c->is_over = true;
		hive_semaphore_release(&c->over, 1);
		return;
	}
	c->receives = c->sends = true;
	hive_op_init(&c->in, hive_current(), caller_came, c);
	CHECK_OK(hive_op_recv_many(&c->in, c->fd, c->buffers, HIVE_FOREVER));
	hive_op_init(&c->out, hive_current(), caller_sent, c);
	CHECK_OK(hive_op_send(&c->out, c->fd, &c->session, sizeof c->session, HIVE_FOREVER));
}

/* On its worker. The close is under way when neither way is. */
static inline void caller_cancel(void *arg)
{
	struct caller *c = arg;
	int r = 0;

	if (!c->is_over && (c->fd < 0 || c->sends))
		r = hive_op_cancel(&c->out);
	CHECK(r == 0 || r == -ESRCH); /* it is done, and about to be told */
	if (!c->is_over && c->receives)
		r = hive_op_cancel(&c->in);
	CHECK(r == 0 || r == -ESRCH);
	hive_semaphore_release(&c->over, 1);
}

/* False: the system has no port for it at the moment. */
static inline bool call_once(struct caller *c, const char *name, uint16_t port, bool cancels)
{
	uint32_t worker = hive_worker_current();

	hive_semaphore_init(&c->over, 0);
	c->result = 0;
	c->fd = -1;
	c->is_over = false;
	hive_op_init(&c->out, hive_current(), caller_dialled, c);
	CHECK_OK(hive_op_dial(&c->out, name, port, NULL, HIVE_FOREVER));
	if (cancels) {
		CHECK_OK(hive_sleep((int64_t)rng_below(rng_mix(c->random), LATEST_CANCEL_NS)));
		CHECK_OK(hive_post_to(hive_current(), worker, caller_cancel, c));
	}
	CHECK_OK(hive_semaphore_acquire(&c->over, 1 + cancels, HIVE_FOREVER));
	return c->result != -EADDRNOTAVAIL;
}

static inline void callback_chore(struct books *books, struct hive_buffers *buffers, const struct session *session,
                                  const char *name, uint16_t port, uint64_t *random)
{
	struct caller *c = calloc(1, sizeof *c);
	bool cancels = rng_next(random) % 4 == 0;

	CHECK(c);
	c->books = books;
	c->buffers = buffers;
	c->session = *session;
	c->session.mode = MODE_CALLS;
	c->random = rng_next(random);
	while (!call_once(c, name, port, cancels))
		CHECK_OK(hive_sleep(HIVE_MS(10)));
	CHECK(c->result == 0 || (c->result == -ECANCELED && cancels));
	add_relaxed(c->result == 0 ? &books->sessions : &books->given_up, 1u);
	add_relaxed(c->result == 0 ? &books->called : &books->called_off, 1u);
	free(c);
}

/* ---- signals ---- */

static const int soak_signals[] = { SIGUSR1 };
static struct hive_mutex soak_signal_turn; /* who sends it waits for it: one at a time */

/* On the thread that only waits. ThreadSanitizer would keep the signal back while that is in a system call: there it comes by a descriptor, as
 * with all signals that every thread blocks; else to a handler.                                                              */
static inline void prepare_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (TEST_TSAN)
		CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
}

/* Before the first one is sent: from here on it is kept. */
static inline int watch_signals(void *arg)
{
	(void)arg;
	hive_mutex_init(&soak_signal_turn);
	CHECK_ERR(hive_signal_wait(soak_signals, 1, HIVE_NOWAIT), -ETIMEDOUT);
	return 0;
}

static inline void signal_chore(struct books *books, uint64_t *random)
{
	struct hive_op op;
	int64_t r;

	CHECK_OK(hive_mutex_lock(&soak_signal_turn, HIVE_FOREVER));
	hive_op_init(&op, hive_current(), NULL, NULL);
	if (rng_next(random) % 2) {
		CHECK_OK(hive_op_signal_wait(&op, soak_signals, 1, HIVE_FOREVER));
		CHECK_OK(kill(getpid(), SIGUSR1));
		r = hive_op_wait(&op);
	} else {
		CHECK_OK(kill(getpid(), SIGUSR1));
		r = hive_signal_wait(soak_signals, 1, HIVE_FOREVER);
	}
	CHECK_EQ(r, SIGUSR1);
	CHECK_ERR(hive_signal_wait(soak_signals, 1, HIVE_NOWAIT), -ETIMEDOUT);
	hive_mutex_unlock(&soak_signal_turn);
	add_relaxed(&books->signals, 1u);
}

/* ---- addresses: none of these asks anybody ---- */

static inline void name_chore(struct books *books, uint64_t *random)
{
	static const struct {
		const char *name, *shown;
		int count;
	} names[] = {
		{ "127.0.0.1", "127.0.0.1:80", 1 },       { "::1", "[::1]:80", 1 },
		{ "2001:db8::7", "[2001:db8::7]:80", 1 }, { "10.1.2.3", "10.1.2.3:80", 1 },
		{ "localhost", "127.0.0.1:80", 2 },
	};

	for (int i = 0; i < 10; i++) {
		uint32_t which = rng_below(rng_next(random), sizeof names / sizeof *names);
		struct hive_address addresses[2];
		struct hive_op op;
		char text[80];
		int64_t r;

		hive_op_init(&op, hive_current(), NULL, NULL);
		if (rng_next(random) % 2) {
			CHECK_OK(hive_op_resolve(&op, names[which].name, 80, addresses, 2, HIVE_FOREVER));
			r = hive_op_wait(&op);
		} else {
			r = hive_resolve(names[which].name, 80, addresses, 2, HIVE_FOREVER);
		}
		CHECK_EQ(r, names[which].count);
		CHECK(hive_address_format(&addresses[0], text, sizeof text) > 0);
		CHECK_STR(text, names[which].shown);
	}
	add_relaxed(&books->names, 10u);
}
