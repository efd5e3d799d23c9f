/* SPDX-License-Identifier: MIT */
/* Waiting, for fibers and for threads. */
#include <rophive/hive.h>

#include "base/clock.h"
#include "base/parker.h"
#include "base/rng.h"
#include "base/thread.h"
#include "fiber/fiber.h"

struct thread_waiter {        /* of a thread that is no fiber's */
	struct waiter waiter; /* first */
	struct parker parker;
};

#if !defined(CHECKPOINTS)
#define CHECKPOINTS 32 /* each one for the explorer, so that no run leaves anything behind for the next */
#endif

enum { WORLD_DEPTH = 16, THREADS_EXPLORED = 64 };

/* In a world without threads one who waits makes others run meanwhile, on this very thread; some of those may wait as well. */
static _Thread_local uint32_t depth;

/* Not inlined: a fiber's code must not keep the address (it never asks, but a compiler might ask early). */
static __attribute__((noinline)) struct waiter *waiter_of_thread(void)
{
#if defined(HIVE_EXPLORE) /* its threads have no thread-locals of their own, but numbers */
	static struct thread_waiter all[THREADS_EXPLORED];
	struct thread_waiter *mine = &all[hive__thread_number() % THREADS_EXPLORED];
#else
	static _Thread_local struct thread_waiter all[WORLD_DEPTH + 1];
	struct thread_waiter *mine = &all[depth];
#endif

	if (!mine->waiter.thread) /* the first time: nobody else knows it yet */
		mine->waiter.thread = hive__thread_system_number();
	return &mine->waiter;
}

void *hive__wait_self(void)
{
	struct hive_fiber *f = hive__fiber_here();

	return f ? &f->waiter : waiter_of_thread();
}

static int begin(struct wait *ret_wait, const char *why, bool shielded)
{
	struct guest_place *place = hive__place();
	struct hive_fiber *f = place ? (struct hive_fiber *)place->now : NULL;
	struct waiter *who;

	if (place && !f)
		return -EDEADLK;
	if (f && !shielded && hive__fiber_reason(f) != 0)
		return hive__fiber_reason(f);
	who = f ? &f->waiter : waiter_of_thread();
	store_relaxed(&who->why, why);
	ret_wait->who = who;
	ret_wait->turn = cell_begin(&who->cell, shielded);
	return 0;
}

int hive__wait_reason(void)
{
	struct hive_fiber *f = hive__fiber_here();

	return f ? hive__fiber_reason(f) : 0;
}

int hive__wait_begin(struct wait *ret_wait, const char *why)
{
	return begin(ret_wait, why, false);
}

int hive__wait_begin_shielded(struct wait *ret_wait, const char *why)
{
	return begin(ret_wait, why, true);
}

void hive__wait_number(struct wait wait, int32_t number)
{
	store_relaxed(&wait.who->detail, (uintptr_t)(uint32_t)number);
}

void hive__wait_whom(struct wait wait, uintptr_t whom)
{
	store_relaxed(&wait.who->detail, whom);
}

void hive__wait_held(int32_t n)
{
	struct waiter *self = (struct waiter *)hive__wait_self();

	self->mutexes += (uint32_t)n;
}

#if defined(HIVE_DEBUG)
struct scope *hive__wait_scope(void)
{
	return &((struct waiter *)hive__wait_self())->scope;
}
#endif

/* After the claim the owner may be gone, unless it is parked and waits for us, or is a thread, which waits for its token. */
enum cell_claim hive__wait_claim(struct wait wait)
{
	bool is_thread = wait.who->thread != 0;
	enum cell_claim claim = cell_claim(&wait.who->cell, wait.turn, CELL_WOKEN);

	return claim == CELL_OURS && is_thread ? CELL_OURS_PARKED : claim;
}

void hive__wait_deliver(struct wait wait)
{
	if (wait.who->thread)
		parker_unpark(&((struct thread_waiter *)(void *)wait.who)->parker);
	else
		hive__fiber_resume(fiber_of_waiter(wait.who));
}

void hive__wait_hand(struct wait wait, struct guest_place *loop)
{
	struct hive_fiber *f = wait.who->thread ? NULL : fiber_of_waiter(wait.who);

	if (f && f->hive == loop->hive && f->pinned == HIVE_WORKER_NONE)
		hive__guest_hand(loop, &f->guest);
	else
		hive__wait_deliver(wait);
}

bool hive__wait_is_on(struct wait wait)
{
	return cell_waits(&wait.who->cell, wait.turn);
}

bool hive__wait_wake(struct wait wait)
{
	enum cell_claim claim = hive__wait_claim(wait);

	if (claim == CELL_OURS_PARKED)
		hive__wait_deliver(wait);
	return claim != CELL_NOT_OURS;
}

/* Of this thread, whoever runs on it: one of several has a closer look. */
static _Thread_local uint32_t checkpoints __attribute__((tls_model("initial-exec")));

static __attribute__((noinline)) void yield_if_due(void)
{
	struct guest_place *place = hive__place();

	if (place && place->now && hive__guest_is_due(place))
		hive_yield();
}

void hive__wait_checkpoint(void)
{
	if (++checkpoints % CHECKPOINTS == 0)
		yield_if_due();
}

uint64_t hive__wait_random(void)
{
	static _Thread_local uint64_t mine;
	struct guest_place *place = hive__place();
	struct hive *hive = place ? place->hive : hive__guest_world();

	if (hive)
		return hive__guest_random(hive);
#if defined(HIVE_EXPLORE) /* no run leaves anything behind for the next */
	mine = 0;
#endif
	if (mine == 0)
		mine = rng_mix(hive__thread_number());
	return rng_next(&mine);
}

/* 0: there is a token. In a world without threads others must be let run meanwhile. */
static int take_token(struct parker *parker, int64_t deadline_ns)
{
	struct hive *world = hive__guest_world();
	int64_t now;

	if (world) {
		int r;

		if (depth == WORLD_DEPTH)
			return -EDEADLK;
		depth++;
		r = hive__guest_wait_word(world, &parker->state, PARKER_EMPTY, deadline_ns);
		depth--;
		return r < 0 ? r : parker_park(parker, HIVE_NOWAIT) ? 0 : -ETIMEDOUT;
	}
	while (!parker_park(parker, HIVE_NOWAIT)) {
		now = deadline_ns == HIVE_FOREVER ? 0 : hive__clock_now();
		if (now >= deadline_ns)
			return -ETIMEDOUT;
		if (parker_park(parker, deadline_ns == HIVE_FOREVER ? HIVE_FOREVER : deadline_ns - now))
			return 0;
	}
	return 0;
}

static int end_thread(struct waiter *who, uint64_t turn, int64_t deadline_ns)
{
	struct parker *parker = &((struct thread_waiter *)(void *)who)->parker;
	int r = take_token(parker, deadline_ns);

	if (r < 0 && cell_claim(&who->cell, turn, CELL_LATE) != CELL_NOT_OURS) {
		waiter_result(who);
		return r;
	}
	while (r < 0) /* somebody was faster: his token is on its way */
		r = take_token(parker, HIVE_FOREVER);
	return waiter_result(who);
}

/* Rung before its time, because nobody may wait any more: that is a cancel, unless the wait is shielded from those. */
static enum cell_claim claim_by_alarm(struct hive_fiber *f)
{
	enum cell_claim claim = CELL_NOT_OURS;

	if (load_relaxed(f->state) >= HIVE_LEAVING)
		claim = cell_claim(&f->waiter.cell, f->alarm_turn, CELL_CANCELLED);
	return claim == CELL_NOT_OURS ? cell_claim(&f->waiter.cell, f->alarm_turn, CELL_LATE) : claim;
}

/* On the worker that keeps the alarm, or, if that is stuck, on another thread. Whoever wakes the fiber earlier finds out that the alarm cannot be stopped, and waits for
 * the last line here.                                                                                                       */
static void ring(void *arg)
{
	struct hive_fiber *f = (struct hive_fiber *)arg;

	if (claim_by_alarm(f) == CELL_OURS_PARKED)
		hive__fiber_resume(f);
	store_release(&f->alarm_rung, 1u); /* ALARM-1 (pairs with ALARM-2) */
}

static inline __attribute__((always_inline)) int end_fiber(struct hive_fiber *f, uint64_t turn, int64_t deadline_ns)
{
	uint64_t alarm = 0;
	int r = 0;

	if (deadline_ns != HIVE_FOREVER) {
		f->alarm_turn = turn;
		store_relaxed(&f->alarm_rung, 0u);
		r = hive__alarm_start_free(deadline_ns, ring, f, &alarm);
	}
	if (r < 0 && cell_claim(&f->waiter.cell, turn, CELL_LATE) != CELL_NOT_OURS) {
		waiter_result(&f->waiter);
		return r;
	}
	fiber_leave(f, REQUEST_PARK);
	if (alarm != 0 && !hive__alarm_stop(f->hive, alarm))
		for (uint32_t tries = 0; !load_acquire(&f->alarm_rung); tries++) /* ALARM-2 (pairs with ALARM-1) */
			hive__thread_give_way(tries);
	return waiter_result(&f->waiter);
}

int hive__wait_end(struct wait wait, int64_t deadline_ns)
{
	if (wait.who->thread)
		return end_thread(wait.who, wait.turn, deadline_ns);
	return end_fiber(fiber_of_waiter(wait.who), wait.turn, deadline_ns);
}

bool hive__wait_give_up(struct wait wait)
{
	bool ours = cell_claim(&wait.who->cell, wait.turn, CELL_LATE) != CELL_NOT_OURS;

	if (!ours && wait.who->thread)
		while (take_token(&((struct thread_waiter *)(void *)wait.who)->parker, HIVE_FOREVER) < 0)
			;
	waiter_result(wait.who);
	return ours;
}
