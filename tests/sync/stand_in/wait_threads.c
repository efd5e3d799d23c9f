/* SPDX-License-Identifier: MIT */
/* A stand-in for the waits of src/fiber, for threads alone. */
#include "base/clock.h"
#include "base/parker.h"
#include "fiber/wait.h"

#include <rophive/worker.h>

struct waiter {
	struct cell cell;
	struct parker parker;
	ATOMIC(uint64_t) delivered; /* the last turn whose waker is done with us */
	int32_t held;
};

static __thread struct waiter waiter;

int wait_begin_shielded(struct wait *ret_wait, const char *why)
{
	(void)why;
	ret_wait->who = &waiter;
	ret_wait->turn = cell_begin(&waiter.cell, true);
	return 0;
}

int wait_begin(struct wait *ret_wait, const char *why)
{
	return wait_begin_shielded(ret_wait, why);
}

enum cell_claim wait_claim(struct wait wait)
{
	return cell_claim(&wait.who->cell, wait.turn, CELL_WOKEN);
}

void wait_deliver(struct wait wait)
{
	parker_unpark(&wait.who->parker);
	store_release(&wait.who->delivered, wait.turn);
}

bool wait_wake(struct wait wait)
{
	enum cell_claim claim = wait_claim(wait);

	if (claim == CELL_OURS_PARKED)
		wait_deliver(wait);
	return claim != CELL_NOT_OURS;
}

int wait_end(struct wait wait, int64_t deadline_ns)
{
	struct waiter *self = wait.who;
	enum cell_phase phase;

	if (cell_park(&self->cell)) {
		for (;;) {
			int64_t left = deadline_ns == HIVE_FOREVER ? HIVE_FOREVER : deadline_ns - hive__clock_now();

			if (left > 0)
				parker_park(&self->parker, left);
			phase = cell_phase_of(load_acquire(&self->cell.word));
			if (phase !=
			    CELL_PARKED) /* the token may still be under way: it makes a later park return early */
				break;
			if (left <= 0)
				cell_claim(&self->cell, wait.turn, CELL_LATE);
		}
		while (phase == CELL_WOKEN && load_acquire(&self->delivered) != wait.turn)
			cpu_pause();
	}
	phase = cell_end(&self->cell);
	return phase == CELL_WOKEN ? 0 : phase == CELL_LATE ? -ETIMEDOUT : -ECANCELED;
}

bool wait_give_up(struct wait wait)
{
	return cell_end(&wait.who->cell) == CELL_WAITING;
}

void *wait_self(void)
{
	return &waiter;
}

int32_t wait_held(int32_t n)
{
	return waiter.held += n;
}
