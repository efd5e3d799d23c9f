/* SPDX-License-Identifier: MIT */
/* The writer's half of a stream: what is taken, what waits, and the drain that sends it. */
#include <string.h>

#include <rophive/hive.h>

#include "io/stream.h"
#include "sched/guest.h"

enum { LENGTH_BYTES = 4 };

static bool is_past(int64_t deadline_ns)
{
	return deadline_ns <= HIVE_NOWAIT || (deadline_ns != HIVE_FOREVER && deadline_ns <= hive_now(NULL));
}

/* ---- under the lock ---- */

static bool is_idle(const struct hive_stream *s)
{
	return !s->draining && s->inside == 0;
}

/* Who waits need not any more. */
static bool is_settled(const struct hive_stream *s)
{
	return s->ending ? is_idle(s) : !s->draining || s->error < 0 || s->pending <= s->wake_at;
}

/* Something has changed. The last that is done with the stream by who has no call of its own in it. */
static void settle_and_unlock(struct hive_stream *s)
{
	bool last = s->doomed && is_idle(s);
	struct wait_node *node = is_settled(s) ? node_take(&s->waits) : NULL;

	if (node)
		hive__wait_wake(node->wait);
	lock_release(&s->lock);
	if (last)
		hive__stream_free(s);
}

/* What was one large write does not keep its memory. */
static void load_next(struct hive_stream *s)
{
	struct span empty = s->sending;

	if (span_has(&s->sending) > 0)
		return;
	empty.from = empty.to = 0;
	s->sending = s->filling;
	if (empty.capacity > s->options.high_water)
		hive__span_free(&empty);
	s->filling = empty;
}

static void account(struct hive_stream *s, int64_t n)
{
	if (n > 0) {
		s->sending.from += (size_t)n;
		s->pending -= (size_t)n;
	} else if (n == -ECANCELED || n == -ENOMEM) {
		s->stalled = (int)n;
	} else if (n != -ETIMEDOUT) {
		s->error = n < 0 ? (int)n : -EIO;
	}
}

/* ---- the drain ---- */

static void leave(struct hive_stream *s)
{
	lock_acquire(&s->lock);
	s->inside--;
	settle_and_unlock(s);
}

static void tell(struct hive_stream *s)
{
	if (s->options.on_drain)
		s->options.on_drain(s, s->options.hook_arg);
}

/* The drain's, and `inside` counts the caller. Who wants the end meanwhile leaves it to us: the operation cannot be cancelled before it has
 * begun. tells: nobody but the hook hears of a failure.                                                                      */
static int start(struct hive_stream *s, bool tells)
{
	const char *from = s->sending.data + s->sending.from;
	size_t bytes = span_has(&s->sending);
	int r = s->is_socket ? hive_op_send(&s->op, s->fd, from, bytes, HIVE_FOREVER)
	                     : hive_op_write(&s->op, s->fd, from, bytes, -1, HIVE_FOREVER);
	bool ends;

	lock_acquire(&s->lock);
	if (r < 0) {
		s->draining = false;
		s->stalled = r == -ESHUTDOWN ? -ECANCELED : r;
	}
	ends = s->ending && s->draining;
	tells = tells && r < 0 && s->refused && !s->ending;
	if (tells)
		s->refused = false;
	lock_release(&s->lock);
	if (ends)
		hive_op_cancel(&s->op);
	if (tells)
		tell(s);
	leave(s);
	return r;
}

/* On an IO worker. The hook comes while the drain still goes on: so the stream outlives it, whatever it does. */
static void on_sent(struct hive_op *op, int64_t n)
{
	struct hive_stream *s = (struct hive_stream *)op->arg;
	bool tells, goes_on;

	lock_acquire(&s->lock);
	account(s, n);
	tells = s->refused && !s->ending && (n <= 0 || s->pending <= s->refused_at);
	if (tells)
		s->refused = false;
	settle_and_unlock(s);
	if (tells)
		tell(s);
	lock_acquire(&s->lock);
	goes_on = n > 0 && !s->ending && s->pending > 0;
	s->draining = goes_on;
	if (!goes_on) {
		settle_and_unlock(s);
		return;
	}
	load_next(s);
	s->inside++;
	lock_release(&s->lock);
	start(s, true);
}

/* A thread sends by itself. What its deadline leaves over stays. */
static int drain_here(struct hive_stream *s, int64_t deadline_ns)
{
	bool goes_on;
	int r;

	do {
		const char *from = s->sending.data + s->sending.from;
		size_t bytes = span_has(&s->sending);
		int64_t n = s->is_socket ? hive_send(s->fd, from, bytes, deadline_ns)
		                         : hive_write(s->fd, from, bytes, -1, deadline_ns);

		lock_acquire(&s->lock);
		account(s, n);
		goes_on = n > 0 && s->pending > 0;
		s->draining = goes_on;
		if (goes_on)
			load_next(s);
		r = s->error;
		settle_and_unlock(s);
	} while (goes_on);
	return r;
}

/* The writer. There is a drain afterwards if there is something to send. Fails only if nothing was sent, or with the error of the stream. */
static int kick(struct hive_stream *s, int64_t deadline_ns)
{
	struct hive *hive = hive_current();
	bool idle;
	int r;

	lock_acquire(&s->lock);
	r = s->error;
	idle = r == 0 && !s->draining && s->pending > 0;
	if (idle) {
		s->draining = true;
		s->stalled = 0;
		s->inside += hive ? 1 : 0;
		load_next(s);
	}
	lock_release(&s->lock);
	if (!idle)
		return r;
	if (!hive)
		return drain_here(s, deadline_ns);
	hive_op_init(&s->op, hive, on_sent, s);
	r = start(s, false);
	if (r == 0 || hive__place())
		return r == -ESHUTDOWN ? -ECANCELED : r;
	lock_acquire(&s->lock);
	s->draining = true;
	s->stalled = 0;
	lock_release(&s->lock);
	return drain_here(s, deadline_ns);
}

/* ---- waiting for it ---- */

static int await(struct hive_stream *s, size_t level, bool shielded, int64_t deadline_ns)
{
	struct wait_node node = { .link = NULL };
	struct wait wait;
	int r = shielded ? hive__wait_begin_shielded(&wait, "stream") : hive__wait_begin(&wait, "stream");

	if (r < 0)
		return r;
	lock_acquire(&s->lock);
	s->wake_at = level;
	if (is_settled(s)) {
		lock_release(&s->lock);
		hive__wait_give_up(wait);
		return 0;
	}
	node_add(&s->waits, &node, wait);
	lock_release(&s->lock);
	r = hive__wait_end(wait, deadline_ns);
	lock_acquire(&s->lock);
	node_remove(&s->waits, &node);
	if (is_settled(s))
		r = 0;
	lock_release(&s->lock);
	return r;
}

/* 1: at most `level` is pending. 0: wait for it. */
static int look(struct hive_stream *s, size_t level, int64_t deadline_ns)
{
	int r = 0;

	lock_acquire(&s->lock);
	if (s->error < 0) {
		r = s->error;
	} else if (s->pending <= level) {
		r = 1;
	} else if (s->stalled < 0) {
		r = s->stalled;
		s->stalled = 0;
	} else if (!s->draining) { /* it was drain_here(), until the deadline */
		r = -ETIMEDOUT;
	} else if (is_past(deadline_ns)) {
		r = -ETIMEDOUT;
		s->refused = true;
		s->refused_at = level;
	}
	lock_release(&s->lock);
	return r;
}

int hive__stream_drain(struct hive_stream *s, size_t level, int64_t deadline_ns)
{
	int r = kick(s, deadline_ns);

	while (r == 0) {
		r = look(s, level, deadline_ns);
		if (r == 0)
			r = await(s, level, false, deadline_ns);
	}
	return r < 0 ? r : 0;
}

bool hive__stream_end_drain(struct hive_stream *s)
{
	struct guest_place *place = hive__place();
	bool idle, cancels;

	lock_acquire(&s->lock);
	s->ending = true;
	cancels = s->draining && s->inside == 0;
	if (cancels)
		s->inside++;
	lock_release(&s->lock);
	if (cancels) {
		hive_op_cancel(&s->op);
		leave(s);
	}
	if (!place || place->now) {
		while (await(s, 0, true, HIVE_FOREVER) < 0)
			;
		return true;
	}
	lock_acquire(&s->lock);
	idle = is_idle(s);
	s->doomed = !idle;
	lock_release(&s->lock);
	return idle;
}

/* ---- writing ---- */

struct piece {
	const void *data;
	size_t bytes;
};

static void put(struct span *span, struct piece piece)
{
	if (piece.bytes > 0)
		memcpy(span->data + span->to, piece.data, piece.bytes);
	span->to += piece.bytes;
}

static int take(struct hive_stream *s, struct piece head, struct piece body)
{
	size_t bytes = head.bytes + body.bytes;
	int r;

	lock_acquire(&s->lock);
	r = s->error;
	if (r == 0 && !hive__span_grow(&s->filling, bytes))
		r = -ENOMEM;
	if (r == 0) {
		put(&s->filling, head);
		put(&s->filling, body);
		s->pending += bytes;
	}
	lock_release(&s->lock);
	return r;
}

/* There is no drain, so that the newest bytes are at the end of one of the two. */
static void take_back(struct hive_stream *s, size_t bytes)
{
	lock_acquire(&s->lock);
	if (s->error == 0) {
		struct span *span = span_has(&s->filling) > 0 ? &s->filling : &s->sending;

		span->to -= bytes;
		s->pending -= bytes;
	}
	lock_release(&s->lock);
}

static bool is_full(struct hive_stream *s)
{
	bool full;

	lock_acquire(&s->lock);
	full = s->pending >= s->options.high_water;
	lock_release(&s->lock);
	return full;
}

static int write_both(struct hive_stream *s, struct piece head, struct piece body, int64_t deadline_ns)
{
	int r = is_full(s) ? hive__stream_drain(s, s->options.low_water, deadline_ns) : 0;

	if (r == 0)
		r = take(s, head, body);
	if (r < 0)
		return r;
	r = kick(s, deadline_ns);
	if (r < 0)
		take_back(s, head.bytes + body.bytes);
	return r;
}

static int write_as_one(struct hive_stream *stream, struct piece head, struct piece body, int64_t deadline_ns)
{
	int r = stream && (body.data || body.bytes == 0) && body.bytes < SIZE_MAX / 8
	                ? hive__stream_enter(stream, &stream->writing)
	                : -EINVAL;

	if (r < 0)
		return r;
	r = write_both(stream, head, body, deadline_ns);
	stream_leave(&stream->writing);
	return r;
}

int hive_stream_write(struct hive_stream *stream, const void *buffer, size_t bytes, int64_t deadline_ns)
{
	return write_as_one(stream, (struct piece){ NULL, 0 }, (struct piece){ buffer, bytes }, deadline_ns);
}

int hive_stream_write_frame(struct hive_stream *stream, const void *frame, size_t bytes, int64_t deadline_ns)
{
	unsigned char length[LENGTH_BYTES] = { (unsigned char)(bytes >> 24), (unsigned char)(bytes >> 16),
		                               (unsigned char)(bytes >> 8), (unsigned char)bytes };

	if (stream && (bytes > stream->options.frame_limit || bytes > UINT32_MAX))
		return -EMSGSIZE;
	return write_as_one(stream, (struct piece){ length, sizeof length }, (struct piece){ frame, bytes },
	                    deadline_ns);
}

int hive_stream_flush(struct hive_stream *stream, int64_t deadline_ns)
{
	int r = stream ? hive__stream_enter(stream, &stream->writing) : -EINVAL;

	if (r < 0)
		return r;
	r = hive__stream_drain(stream, 0, deadline_ns);
	stream_leave(&stream->writing);
	return r;
}
