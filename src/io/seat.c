/* SPDX-License-Identifier: MIT */
/* Operations on a core that knows readiness only: tried at once, then again when their descriptor is ready.
 *
 * A seat is what a desk knows about a descriptor number. It stays registered with the core, by edges where the core has them, so that
 * an operation costs no call to the core; `ready` keeps what the core has said and nobody has used up. A read that got less than
 * it asked for has used it up, on TCP: more bytes are a new edge, unless the peer has sent its last.
 *
 * Descriptors are plain numbers, and may be closed and opened again. What we close and make is counted (number.h), and what
 * was registered in an earlier life is registered anew. Of what happens behind our back nothing tells. Hence a wait that relies on
 * an old registration is in doubt (doubt.c): when it has lasted for some time it is verified.                              */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/core_setup.h"
#include "base/fetch.h"
#include "io/buffers.h"
#include "io/number.h"
#include "io/seat.h"

#include <rophive/core.h>
#include <rophive/hive.h>

#include "sched/state.h"

enum { STRAYS = 2, ROUND = 64 }; /* ROUND: results of one seat in a row */

static void on_ready(struct hive_source *source, uint32_t events);

/* ---- the core ---- */

static uint32_t wanted(const struct seat *seat)
{
	uint32_t events = 0;

	for (const struct hive_op *op = seat->first; op; op = (const struct hive_op *)op->behind)
		events |= op_events(op);
	return events;
}

static bool waits_alone(const struct hive_op *op)
{
	return op->code == HIVE_OP_ACCEPT && (op->flags & ACCEPT_ALONE);
}

static bool all_wait_alone(const struct seat *seat)
{
	const struct hive_op *op = seat->first;

	while (op && waits_alone(op))
		op = (const struct hive_op *)op->behind;
	return !op && seat->first;
}

static int add_by_edges(struct seat *seat)
{
	bool alone = (hive__place_core(seat->desk->place)->ops->flags & CORE_WAKES_ONE) && all_wait_alone(seat);
	int r;

	seat->source.events = HIVE_EVENT_EDGE | (alone ? HIVE_EVENT_IN | CORE_EVENT_ALONE : SEAT_ALL | HIVE_EVENT_END);
	r = hive__place_add(seat->desk->place, &seat->source);
	if (r == 0)
		seat->how = alone ? SEAT_ALONE : SEAT_EDGES;
	return r;
}

static int add(struct seat *seat)
{
	int r;

	seat->life = number_life((int)seat->source.handle);
	seat->stream = STREAM_UNKNOWN;
	r = add_by_edges(seat);
	if (r == -ENOTSUP) {
		seat->source.events = wanted(seat);
		r = hive__place_add(seat->desk->place, &seat->source);
		if (r == 0)
			seat->how = SEAT_LEVEL;
	}
	return r;
}

void hive__seat_take_out(struct seat *seat)
{
	if (seat->how != SEAT_OUT)
		hive__place_remove(seat->desk->place, &seat->source);
	seat->how = SEAT_OUT;
	seat->sure = 0;
	seat->ready = SEAT_ALL;
}

/* Its number means something else by now, and what was registered went with the old one. */
static void see_life(struct seat *seat)
{
	if (seat->how != SEAT_OUT && seat->life != number_life((int)seat->source.handle))
		hive__seat_take_out(seat);
}

/* Without edges: armed for exactly what is waited for. */
static int arm(struct seat *seat)
{
	uint32_t events = seat->how == SEAT_LEVEL ? wanted(seat) : 0;

	if (seat->how != SEAT_LEVEL || events == seat->source.events)
		return 0;
	return hive__place_modify(seat->desk->place, &seat->source, events);
}

/* What happens there from now on is for it, too; what has happened is not. */
static void append(struct seat *seat, struct hive_op *op)
{
	op->behind = NULL;
	op->waits = true;
	op->spare[0] = seat->event;
	op_lends(op);
	if (seat->last)
		seat->last->behind = op;
	else
		seat->source.soon = seat->first = op;
	seat->last = op;
}

/* False: it does not wait there. */
static bool take_away(struct seat *seat, struct hive_op *op)
{
	struct hive_op *before = NULL, *at = seat->first;

	while (at && at != op) {
		before = at;
		at = (struct hive_op *)at->behind;
	}
	if (!at)
		return false;
	if (before)
		before->behind = op->behind;
	else
		seat->first = (struct hive_op *)op->behind;
	if (seat->last == op)
		seat->last = before;
	op->waits = false;
	op_returns(op);
	return true;
}

static struct seat *leave(struct desk *desk, struct hive_op *op)
{
	struct seat *seat = op->waits ? seat_at(desk, op_waits_at(op)) : NULL;

	return seat && take_away(seat, op) ? seat : NULL;
}

/* -EPERM: the number is a file's by now, and they are about that. */
static void end_waits(struct seat *seat, int error)
{
	hive__seat_call(seat, SEAT_ALL, error == -EPERM ? 0 : error);
	while (seat->first) {
		struct hive_op *op = seat->first;

		take_away(seat, op);
		if (error == -EPERM && !op->repeat)
			hive__op_to_compute(op);
		else
			hive__op_finish_soon(op, error);
	}
}

/* Still registered? The core says so when it is asked to change it; and it tells again what is ready. */
bool hive__seat_verify(struct seat *seat)
{
	int r = -ENOENT;

	if (!seat_is_waited_at(seat))
		return false;
	if (seat->how == SEAT_LEVEL || seat->how == SEAT_EDGES)
		r = hive__place_modify(seat->desk->place, &seat->source, seat->source.events);
	if (r == 0)
		return true;
	hive__seat_take_out(seat);
	r = add(seat);
	if (r < 0)
		end_waits(seat, r);
	return false;
}

/* ---- waiting ---- */

/* Nobody waits there, and it may not stay: a core that keeps files open would keep this one after everybody has closed it;
 * without edges it would be told all the time that the peer has gone; and alone it would be told in place of who waits elsewhere. */
static bool is_in_the_way(const struct seat *seat)
{
	return seat->how != SEAT_OUT && !seat->first &&
	       (seat->how != SEAT_EDGES || (hive__place_core(seat->desk->place)->ops->flags & CORE_KEEPS_FILES));
}

void hive__seat_leave(struct desk *desk, struct hive_op *op)
{
	struct seat *seat = leave(desk, op);

	if (op->hungry)
		hive__share_leave(op);
	if (seat && is_in_the_way(seat))
		hive__seat_take_out(seat);
	else if (seat && seat->how != SEAT_OUT)
		arm(seat);
}

/* Not so for datagrams, terminals, descriptors on their way, urgent bytes. */
bool hive__seat_asks_stream(struct seat *seat)
{
	int protocol = 0;
	socklen_t bytes = sizeof protocol;

	getsockopt((int)seat->source.handle, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes);
	seat->stream = protocol == IPPROTO_TCP ? STREAM_YES : STREAM_NO;
	return seat->stream == STREAM_YES;
}

/* One attempt; seat may be NULL. */
static int64_t attempt(struct seat *seat, struct hive_op *op)
{
	int64_t r = hive__op_try(op);

	if (r == -EAGAIN && op_blocks(op))
		return r; /* somebody else does it: that says nothing */
	if (seat && op_waits_at(op) == (int)seat->source.handle)
		seat_learn(seat, op->code, op_events(op), op->length, r);
	return r;
}

/* This event is none of its own: it was told something of it, or has begun since. */
static bool is_past(const struct seat *seat, const struct hive_op *op)
{
	return op->spare[0] == seat->event;
}

/* The first that may go on now. A poll that repeats is told once of each event: what it tells of does not go away by that. */
static struct hive_op *next_ready(const struct seat *seat)
{
	uint32_t ready = seat->ready & FINAL ? seat->ready | SEAT_ALL : seat->ready;

	ready &= ~seat->called;
	for (struct hive_op *op = seat->first; op; op = (struct hive_op *)op->behind)
		if ((op_events(op) & ready) && !(op->code == HIVE_OP_POLL && op->repeat && is_past(seat, op)))
			return op;
	return NULL;
}

/* First in its line as before, unless it waits for something else by now. */
static void wait_again(struct seat *seat, struct hive_op *op)
{
	if (op_blocks(op)) {
		hive__op_to_compute(op);
	} else if (op_waits_at(op) != (int)seat->source.handle) {
		hive__seat_start(seat->desk, op);
	} else {
		op->behind = seat->first;
		op->waits = true;
		op_lends(op);
		seat->first = op;
		if (!seat->last)
			seat->last = op;
	}
}

static void serve_one(struct seat *seat, struct hive_op *op)
{
	int64_t r;

	take_away(seat, op);     /* what it waits for may change */
	if (seat->ready & FINAL) /* nothing more will be told: each attempt gives an answer, or is the last */
		seat->ready |= SEAT_ALL;
	r = attempt(seat, op);
	if (r == -EAGAIN) {
		seat->ready &= ~(uint32_t)FINAL;
		wait_again(seat, op);
		return;
	}
	if (r == -ENOBUFS && op->code == HIVE_OP_RECV_MANY) {
		hive__share_starve(op);
	} else if (hive__op_has_more(op, r)) {
		append(seat, op);
		hive__op_tell(op, r);
	} else {
		hive__op_finish_in_turn(op, r);
	}
}

/* on_done may do anything, with this seat too: so nothing is kept from one round to the next. Who repeats goes to the end. After so
 * many others are due: the core is asked to tell again.                                                                      */
static void serve(struct seat *seat)
{
	struct hive_op *op;
	int n;

	for (n = 0; n < ROUND && (op = next_ready(seat)) != NULL; n++)
		serve_one(seat, op);
	if (n == ROUND)
		hive__seat_verify(seat);
}

/* They are told again. If it tried elsewhere, since this worker has left, they are there too. */
void hive__seat_tried(struct seat *seat, uint32_t events)
{
	seat->called &= ~events;
	if (seat->first)
		hive__seat_verify(seat);
}

static bool waits_for(const struct seat *seat, uint32_t events)
{
	for (const struct hive_op *op = seat->first; op; op = (const struct hive_op *)op->behind)
		if (((events & FINAL) || (op_events(op) & events)) && !is_past(seat, op))
			return true;
	return false;
}

/* Something was told, and somebody waits for that all the same: others were faster, or it was not about this descriptor, or it is
 * what no event will tell of. It is looked at again some time later.                                                       */
static void look_again(struct seat *seat, uint32_t events)
{
	seat->sure = 0;
	if (seat->how == SEAT_LEVEL && (events & FINAL))
		hive__seat_take_out(seat); /* it would be told all the time */
	if (seat->how != SEAT_LEVEL)
		hive__seat_doubt(seat);
}

/* More than fibers that were called. */
static void tell_all(struct seat *seat, uint32_t events, bool called)
{
	if (events & (HIVE_EVENT_END | HIVE_EVENT_PRI))
		seat->stream = STREAM_NO;
	if (seat_is_waited_at(seat))
		seat->strays = 0;
	if (seat->first) {
		seat->event++;
		hive__place_busy(seat->desk->place);
		serve(seat);
	}
	if (seat->how == SEAT_OUT)
		return;
	if (is_in_the_way(seat))
		hive__seat_take_out(seat);
	else if (waits_for(seat, events))
		look_again(seat, events);
	else if (!called && !seat_is_waited_at(seat) && ++seat->strays >= STRAYS)
		hive__seat_take_out(seat); /* its business goes on elsewhere, or has ended */
	if (seat->how != SEAT_OUT)
		arm(seat);
}

/* Not inlined: what happens most would save registers for it. */
static __attribute__((noinline)) void hear(struct seat *seat, uint32_t events)
{
	uint32_t called = 0;

	if (seat->reader.wait.who || seat->writer.wait.who)
		called = hive__seat_call(seat, events & (HIVE_EVENT_IN | HIVE_EVENT_OUT | FINAL), 0);
	seat->called = called;
	if (called)
		seat->strays = 0;
	if (!called || seat->first || (events & ~(uint32_t)(HIVE_EVENT_IN | HIVE_EVENT_OUT)))
		tell_all(seat, events, called);
}

static void on_ready(struct hive_source *source, uint32_t events)
{
	struct seat *seat = (struct seat *)source->arg;

	prefetch(&seat->called); /* for who tries, and waits again */
	seat->heard = true;
	seat->ready |= events & (SEAT_ALL | FINAL);
	if ((events & ~(uint32_t)HIVE_EVENT_OUT) == HIVE_EVENT_IN && !seat->first && !seat->writer.wait.who &&
	    hive__seat_call_reader(seat)) /* what happens most */
		seat->strays = 0;
	else
		hear(seat, events);
}

/* -EPERM: it cannot wait for that; it is a file. */
static int wait_at(struct seat *seat, struct hive_op *op)
{
	bool old;
	int r;

	if (seat->how == SEAT_ALONE && !waits_alone(op))
		hive__seat_take_out(seat); /* for this one it is told in any case */
	old = seat->how != SEAT_OUT;
	append(seat, op);
	if (!old)
		r = add(seat);
	else if (op->repeat && seat->how != SEAT_LEVEL) /* it is told what is there already */
		r = hive__place_modify(seat->desk->place, &seat->source, seat->source.events);
	else
		r = arm(seat);
	if (old && r < 0) {
		hive__seat_take_out(seat);
		r = add(seat);
	}
	if (r < 0) {
		take_away(seat, op);
		end_waits(seat, r);
	} else if (old && seat->how != SEAT_LEVEL) {
		hive__seat_doubt(seat);
	}
	return r;
}

bool hive__seat_is_free(struct seat *seat, uint32_t events)
{
	if (seat->first)
		return !(wanted(seat) & events) && (seat->ready & (events | FINAL));
	if (!hive__seat_has_sitter(seat))
		see_life(seat);
	return seat->how == SEAT_OUT || (seat->ready & (events | FINAL));
}

static bool may_try(struct seat *seat, const struct hive_op *op)
{
	bool never_waits = op->code == HIVE_OP_SHUTDOWN || op->code == HIVE_OP_CLOSE;

	return never_waits || !seat || hive__seat_is_free(seat, op_events(op));
}

/* What happens most: for something that has not come yet, where all is as it was. */
static bool waits_as_before(const struct seat *seat, const struct hive_op *op)
{
	return seat_is_quiet(seat) && seat->how == SEAT_EDGES && !(seat->ready & (op_events(op) | FINAL)) &&
	       op->code != HIVE_OP_SHUTDOWN && op->code != HIVE_OP_CLOSE;
}

bool hive__seat_try(struct desk *desk, struct hive_op *op, int64_t *ret_result)
{
	struct seat *seat = seat_at(desk, op->fd);

	if (!seat || !seat_is_quiet(seat) || !(seat->ready & (op_events(op) | FINAL)))
		return false;
	*ret_result = attempt(seat, op);
	return *ret_result != -EAGAIN;
}

void hive__seat_start(struct desk *desk, struct hive_op *op)
{
	struct seat *seat = seat_at(desk, op_waits_at(op));
	int64_t r = -EAGAIN;
	int waiting;

	if (seat && !op->repeat && waits_as_before(seat, op)) {
		append(seat, op);
		seat_doubt(seat);
		return;
	}
	if (op->repeat)
		r = op->code == HIVE_OP_POLL ? -EAGAIN : hive__check_socket(op->fd);
	else if (may_try(seat, op))
		r = attempt(seat, op);
	if (r != -EAGAIN) {
		hive__op_finish_soon(op, r);
		return;
	}
	seat = op_blocks(op) ? NULL : hive__seat_of(desk, op_waits_at(op), on_ready);
	waiting = op_blocks(op) ? -EPERM : seat ? wait_at(seat, op) : -ENOMEM;
	if (waiting == -EPERM && !op->repeat)
		hive__op_to_compute(op);
	else if (waiting < 0)
		hive__op_finish_soon(op, waiting);
}

/* Who waits there has lost what it waited for. */
void hive__seat_forget(struct desk *desk, int fd)
{
	struct seat *seat = seat_at(desk, fd);

	if (!seat)
		return;
	seat->lost++;
	hive__seat_take_out(seat);
	end_waits(seat, -EBADF);
}
