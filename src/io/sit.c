/* SPDX-License-Identifier: MIT */
/* A fiber that waits at a seat itself, with no operation: what it waits for is a try away, and it is the one to try. It leaves its name
 * at the seat, parks, and tries again when it was called.
 *
 * A name may grow old: a deadline, a cancel or a stop ends the wait wherever the fiber goes on, and nobody comes back to wipe it off.
 * Who calls by an old name calls nobody (sitter.h). Until it is called the fiber's stack stays, and with it the place for the
 * result.                                                                                                                  */
#include <rophive/core.h>
#include <rophive/hive.h>
#include <rophive/io.h>

#include "fiber/fiber.h"
#include "io/number.h"
#include "io/seat.h"
#include "io/try.h"
#include "sched/state.h"

static bool is_sitting(const struct sitter *sitter)
{
	return sitter->wait.who && hive__wait_is_on(sitter->wait);
}

bool hive__seat_has_sitter(const struct seat *seat)
{
	return is_sitting(&seat->reader) || is_sitting(&seat->writer);
}

/* It does not run before it is made ready. Where operations wait behind it, it tries here and nowhere else, for they are told when it has
 * (hive__seat_tried).                                                                                                         */
static inline bool call(const struct seat *seat, struct sitter *sitter, int result)
{
	struct guest_place *place = seat->desk->place;
	struct waiter *who = sitter->wait.who;
	enum cell_claim claim = who ? sitter_claim(sitter, &who->cell, result) : CELL_NOT_OURS;
	struct hive_fiber *f;

	if (claim != CELL_OURS_PARKED)
		return claim == CELL_OURS;
	f = fiber_of_waiter(who);
	fiber_warm_up(f);
	if (f->pinned != HIVE_WORKER_NONE)
		hive__guest_ready_at(f->hive, &f->guest, f->pinned);
	else if (seat->first)
		hive__guest_ready_at(f->hive, &f->guest, hive__place_worker(place));
	else
		hive__guest_ready_in_turn(place, &f->guest);
	return true;
}

bool hive__seat_call_reader(struct seat *seat)
{
	return call(seat, &seat->reader, 0);
}

uint32_t hive__seat_call(struct seat *seat, uint32_t events, int result)
{
	uint32_t called = 0;

	if ((events & ~(uint32_t)HIVE_EVENT_OUT) && call(seat, &seat->reader, result))
		called = HIVE_EVENT_IN;
	if ((events & ~(uint32_t)HIVE_EVENT_IN) && call(seat, &seat->writer, result))
		called |= HIVE_EVENT_OUT;
	return called;
}

/* Where a fiber of this worker may do it by itself; NULL: nowhere. Not inlined: what is worked out of the number would be kept, in the
 * frame of a fiber that waits.                                                                                              */
static __attribute__((noinline)) struct seat *find(const struct guest_place *place, int fd)
{
	struct hive_fiber *f = place ? (struct hive_fiber *)place->now : NULL;
	struct desk *desk = f ? (struct desk *)place->cache[GUESTS_IO] : NULL;

	if (!desk || !desk->by_seats || load_relaxed(f->state) >= HIVE_LEAVING)
		return NULL;
	return seat_at(desk, fd);
}

/* Nobody was here before, and as far as is known it is ready. What is tried needs no registration. */
static inline bool may_try(struct seat *seat, const struct sitter *sitter, uint32_t events)
{
	if (!seat->first && !sitter->wait.who && (seat->ready & events))
		return true;
	return seat_is_quiet(seat) ? (seat->ready & FINAL) != 0 : hive__seat_is_free(seat, events);
}

/* It is told of what comes, in this life of the number, and nothing has come. */
static inline bool may_sit(struct seat *seat, const struct sitter *sitter, uint32_t events)
{
	return !(seat->ready & (events | FINAL)) && !seat->first && !(sitter->wait.who && is_sitting(sitter)) &&
	       seat->how == SEAT_EDGES && !seat->desk->left && seat->life == number_life((int)seat->source.handle);
}

static inline __attribute__((always_inline)) int sit(struct seat *seat, struct sitter *sitter, const char *why,
                                                     int64_t deadline_ns)
{
	struct hive_fiber *f = (struct hive_fiber *)seat->desk->place->now;
	int result = 0, r = hive__fiber_reason(f);
	struct wait wait;

	if (r != 0)
		return r;
	store_relaxed(&f->waiter.why, why);
	store_relaxed(&f->waiter.detail, (uintptr_t)seat->source.handle);
	wait = (struct wait){ &f->waiter, cell_begin(&f->waiter.cell, false) };
	*sitter = (struct sitter){ wait, &result };
	seat->source.soon = f;
	seat_doubt(seat); /* it may be called here and now: without memory for the doubt */
	r = fiber_wait_end(wait, deadline_ns);
	return r < 0 ? r : result;
}

/* Whoever always finds at once what he asks for would keep his worker, and those who wait there would wait for ever. */
static inline int64_t take_turns(struct desk *desk, int64_t result, int64_t deadline_ns)
{
	if (desk_counts(desk, result) && deadline_ns != HIVE_NOWAIT)
		hive_yield();
	return result;
}

struct known { /* of a seat, before a wait */
	const struct seat *seat;
	uint32_t lost;
};

/* Whoever was called goes on some time later. Meanwhile its number may have become another's, whose bytes are not for it. */
static inline bool is_lost(const struct seat *seat, const struct known *known)
{
	return seat == known->seat && seat->lost != known->lost;
}

/* The two calls that fibers make most. Each is one function, for its frame is what a fiber that waits has to bring into the cache. */

int64_t hive_recv(int fd, void *buffer, size_t bytes, int64_t deadline_ns)
{
	struct known known = { NULL, 0 };

	for (bool waited = false;; waited = true) {
		struct seat *seat = find(hive__place(), fd);
		bool is_next, sits;
		int64_t r;

		if (!seat || (!buffer && bytes > 0))
			break;
		if (is_lost(seat, &known))
			return -EBADF;
		is_next = waited && (seat->called & HIVE_EVENT_IN);
		sits = !is_next && may_sit(seat, &seat->reader, HIVE_EVENT_IN);
		if (!sits && (is_next || may_try(seat, &seat->reader, HIVE_EVENT_IN))) {
			r = try_recv(fd, buffer, bytes);
			seat_learn(seat, HIVE_OP_RECV, HIVE_EVENT_IN, bytes, r);
			if (is_next)
				hive__seat_tried(seat, HIVE_EVENT_IN);
			if (r != -EAGAIN)
				return waited ? r : take_turns(seat->desk, r, deadline_ns);
			sits = may_sit(seat, &seat->reader, HIVE_EVENT_IN);
		}
		if (deadline_ns <= HIVE_NOWAIT || !sits)
			break;
		known = (struct known){ seat, seat->lost };
		POISON(buffer, bytes);
		r = sit(seat, &seat->reader, "recv on ", deadline_ns);
		UNPOISON(buffer, bytes);
		if (r < 0)
			return r;
	}
	return hive__recv_by_op(fd, buffer, bytes, deadline_ns);
}

int64_t hive_send(int fd, const void *buffer, size_t bytes, int64_t deadline_ns)
{
	struct known known = { NULL, 0 };

	for (bool waited = false;; waited = true) {
		struct seat *seat = find(hive__place(), fd);
		bool is_next, sits;
		int64_t r;

		if (!seat || (!buffer && bytes > 0))
			break;
		if (is_lost(seat, &known))
			return -EBADF;
		is_next = waited && (seat->called & HIVE_EVENT_OUT);
		sits = !is_next && may_sit(seat, &seat->writer, HIVE_EVENT_OUT);
		if (!sits && (is_next || may_try(seat, &seat->writer, HIVE_EVENT_OUT))) {
			r = try_send(fd, buffer, bytes);
			if (r <= 0)
				seat_learn(seat, HIVE_OP_SEND, HIVE_EVENT_OUT, bytes, r);
			if (is_next)
				hive__seat_tried(seat, HIVE_EVENT_OUT);
			if (r != -EAGAIN)
				return waited ? r : take_turns(seat->desk, r, deadline_ns);
			sits = may_sit(seat, &seat->writer, HIVE_EVENT_OUT);
		}
		if (deadline_ns <= HIVE_NOWAIT || !sits)
			break;
		known = (struct known){ seat, seat->lost };
		r = sit(seat, &seat->writer, "send on ", deadline_ns);
		if (r < 0)
			return r;
	}
	return hive__send_by_op(fd, buffer, bytes, deadline_ns);
}

void hive__seats_call_all(struct desk *desk)
{
	for (uint32_t chunk = 0; chunk < desk->chunk_count; chunk++)
		for (uint32_t i = 0; desk->chunks[chunk] && i < SEAT_CHUNK; i++)
			if (desk->chunks[chunk][i])
				hive__seat_call(desk->chunks[chunk][i], SEAT_ALL, 0);
}
