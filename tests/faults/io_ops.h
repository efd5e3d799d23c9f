/* SPDX-License-Identifier: MIT */
#pragma once
/* The parts of io.h that are about operations: with callbacks, that repeat, with lent buffers, begun by a thread of nobody. Whatever they say
 * is right, but each that has begun ends, once.                                                                            */
#include <rophive/sync.h>

#include "io_base.h"

struct io_told { /* what an on_done was told */
	struct hive_op op;
	struct io_scenario *s;
	struct hive_semaphore news;
	struct hive_buffers *buffers;
	int64_t result;
	uint32_t bytes, results;
	bool over;
};

static inline void io_told_init(struct io_told *told, struct io_scenario *s, hive_op_fn *on_done)
{
	*told = (struct io_told){ .s = s };
	hive_semaphore_init(&told->news, 0);
	hive_op_init(&told->op, s->hive, on_done, told);
}

/* Until something was told, and never longer than that takes: it has a deadline. */
static inline void io_until_over(struct io_told *told)
{
	while (!told->over)
		CHECK_OK(hive_semaphore_acquire(&told->news, 1, HIVE_FOREVER));
	FINE(told->s, told->result);
}

/* The last one is known when the fiber that waits is let go. */
static inline void io_note(struct io_told *told, int64_t result, bool over)
{
	struct hive_semaphore *news = &told->news;

	CHECK(!told->over);
	told->result = result;
	told->results++;
	told->over = over;
	CHECK_OK(hive_semaphore_release(news, 1));
}

static inline void io_once(struct hive_op *op, int64_t result)
{
	io_note((struct io_told *)op->arg, result, true);
}

static inline void io_callbacks(struct io_scenario *s)
{
	struct io_told in, out;
	char here[8] = "", there[8] = "";
	int pair[2], r;

	if (!FINE(s, hive_socket_pair(false, pair)))
		return;
	io_told_init(&in, s, io_once);
	io_told_init(&out, s, io_once);
	r = hive_op_recv(&in.op, pair[0], here, sizeof here, io_soon());
	if (FINE(s, hive_op_send(&out.op, pair[1], there, sizeof there, io_soon())))
		io_until_over(&out);
	if (FINE(s, r))
		io_until_over(&in);
	io_close_both(s, pair);
}

static inline void io_end(struct io_told *told)
{
	int r = hive_op_cancel(&told->op);

	CHECK(r == 0 || r == -ESRCH);
	while (!told->over)
		CHECK_OK(hive_semaphore_acquire(&told->news, 1, HIVE_FOREVER));
	if (told->result != -ECANCELED)
		FINE(told->s, told->result);
}

/* By fibers of the library's own. */
static inline void io_served(struct io_scenario *s)
{
	const char *const argv[] = { "/bin/true", NULL };
	const int numbers[] = { SIGUSR1 };
	struct hive_address at = { 0 };
	struct io_told told;
	int listener = hive_listen("127.0.0.1", 0, NULL);

	io_told_init(&told, s, io_once);
	if (FINE(s, listener) && FINE(s, hive_address_of(listener, false, &at)) &&
	    FINE(s, hive_op_dial(&told.op, "somebody.test", hive_address_port(&at), NULL, io_soon()))) {
		io_until_over(&told);
		if (told.result >= 0)
			io_close(s, (int)told.result);
	}
	io_close(s, listener);
	io_told_init(&told, s, io_once);
	if (s->process == 0 && FINE(s, hive_op_process_start(&told.op, argv, NULL, &s->process)))
		io_until_over(&told);
	io_told_init(&told, s, io_once);
	if (s->process > 0 && FINE(s, hive_op_process_wait(&told.op, s->process, hive_deadline(NULL, HIVE_S(5))))) {
		io_until_over(&told);
		if (told.result >= 0 || told.result == -ECHILD)
			s->process = 0;
	}
	io_told_init(&told, s, io_once);
	if (FINE(s, hive_op_signal_wait(&told.op, numbers, 1, HIVE_FOREVER)))
		io_end(&told);
}

/* ---- that repeat ---- */

static inline void io_let_in_and_out(struct hive_op *op, int64_t result)
{
	if (result >= 0)
		close((int)result);
	io_note((struct io_told *)op->arg, result, result < 0);
}

static inline void io_repeated(struct io_scenario *s)
{
	struct hive_address at = { 0 };
	struct io_told told;
	int fd;

	s->listener = hive_listen("127.0.0.1", 0, NULL);
	if (!FINE(s, s->listener))
		return;
	io_told_init(&told, s, io_let_in_and_out);
	if (FINE(s, hive_address_of(s->listener, false, &at)) &&
	    FINE(s, hive_op_accept(&told.op, s->listener, HIVE_OP_REPEAT, hive_deadline(NULL, HIVE_S(2))))) {
		for (int i = 0; i < 2; i++) {
			fd = hive_dial("127.0.0.1", hive_address_port(&at), NULL, io_soon());
			if (FINE(s, fd) && FINE(s, hive_semaphore_acquire(&told.news, 1, io_soon())))
				CHECK(told.results > 0);
			if (fd >= 0)
				io_close(s, fd);
		}
		io_end(&told);
	}
	io_close(s, s->listener);
}

/* ---- lent buffers ---- */

enum { LENT_COUNT = 4, LENT_BYTES = 16, LENT_ALL = 100 }; /* fewer than would hold it all */

static inline void io_piece(struct hive_op *op, int64_t result)
{
	struct io_told *told = op->arg;

	if (result > 0) {
		told->bytes += (uint32_t)result;
		CHECK_OK(hive_buffer_return(told->buffers, op->buffer));
	}
	if (result <= 0 || told->bytes == LENT_ALL)
		io_note(told, result, result <= 0);
}

static inline void io_lent(struct io_scenario *s)
{
	char bytes[LENT_ALL] = "";
	struct io_told told;
	int pair[2];

	io_told_init(&told, s, io_piece);
	if (!FINE(s, hive_socket_pair(false, pair)))
		return;
	if (FINE(s, hive_buffers_create(s->hive, LENT_COUNT, LENT_BYTES, &told.buffers))) {
		if (FINE(s, hive_op_recv_many(&told.op, pair[0], told.buffers, hive_deadline(NULL, HIVE_S(2))))) {
			if (FINE(s, hive_send_all(pair[1], bytes, sizeof bytes, io_soon())) &&
			    FINE(s, hive_semaphore_acquire(&told.news, 1, io_soon())) && !told.over)
				CHECK(told.bytes >=
				      LENT_ALL); /* more, where the system was made to tell of a byte twice */
			io_end(&told);
		}
		CHECK_OK(hive_buffers_destroy(told.buffers));
	}
	io_close_both(s, pair);
}

/* ---- from outside ---- */

/* A thread that is nobody's begins one, waits for it, and gives another one up. */
static inline void io_outside(struct io_scenario *s)
{
	struct hive_op op;
	char text[8];
	int fds[2], r;

	if (!FINE(s, hive_pipe(fds)))
		return;
	hive_op_init(&op, s->hive, NULL, NULL);
	if (FINE(s, hive_write(fds[1], "hello", 5, -1, io_soon())) &&
	    FINE(s, hive_op_read(&op, fds[0], text, sizeof text, -1, io_soon())))
		FINE(s, hive_op_wait(&op));
	if (FINE(s, hive_op_read(&op, fds[0], text, sizeof text, -1, io_soon()))) {
		r = hive_op_cancel(&op);
		CHECK(r == 0 || r == -ESRCH);
		r = (int)hive_op_wait(&op);
		if (r != -ECANCELED)
			FINE(s, r);
	}
	io_close(s, fds[0]);
	r = (int)hive_write(fds[1], "hello", 5, -1, io_soon()); /* nobody reads: told, and no signal */
	CHECK(r < 0 || !s->strict);
	if (r != -EPIPE)
		FINE(s, r);
	io_close(s, fds[1]);
}
