/* SPDX-License-Identifier: MIT */
/* Parcels, and the private queue that is made of them. Tasks for one worker travel and wait in the same memory, so an
 * accepted one cannot be lost for want of memory on the way.                                                        */
#include "base/thread.h"
#include "sched/internal.h"

enum { SPARE_MAX = 128 };

/* The owner keeps a few free parcels at hand, so its own posts touch nothing shared. */
static struct parcel *take_spare(struct worker *home, struct spares *spares)
{
	struct parcel *p = hive__current() == home ? spares->first : NULL;

	if (p) {
		spares->first = (struct parcel *)(void *)p->letter.next;
		spares->count--;
	}
	return p;
}

static struct parcel *new_parcel(struct worker *home, struct spares *spares, struct slab *slab)
{
	struct parcel *p = take_spare(home, spares);

	if (!p)
		p = (struct parcel *)(void *)slab_get(slab);
	if (p)
		p->home = home;
	return p;
}

/* Any thread. NULL: no memory. */
struct parcel *hive__parcel_new(struct worker *home)
{
	return new_parcel(home, &home->spare_parcels, &home->parcels);
}

/* Any thread. NULL: no memory. */
struct delayed *hive__delayed_new(struct worker *home)
{
	return (struct delayed *)(void *)new_parcel(home, &home->spare_delayed, &home->delayed);
}

static void give_back(struct spares *spares, struct slab *slab)
{
	struct parcel *first = spares->first, *last = first;

	while (last->letter.next) {
		struct parcel *next = (struct parcel *)(void *)last->letter.next;

		store_relaxed(&last->item.next_free, next->item.number + 1);
		last = next;
	}
	slab_put_chain(slab, &first->item, &last->item);
	spares->first = NULL;
	spares->count = 0;
}

/* Any thread. */
void hive__parcel_free(struct parcel *p)
{
	struct worker *home = p->home;
	bool is_delayed = p->kind == PARCEL_TIMER;
	struct spares *spares;
	struct slab *slab;

	if (p->kind == PARCEL_GUEST) /* part of its guest, and nobody's */
		return;
	if (p->kind == PARCEL_LANE) {
		mesh_free(&p->cell, TUNE_MESH);
		return;
	}
	slab = is_delayed ? &home->delayed : &home->parcels;
	spares = is_delayed ? &home->spare_delayed : &home->spare_parcels;
	if (hive__current() != home) {
		slab_put(slab, &p->item);
		return;
	}
	p->letter.next = (struct letter *)(void *)spares->first;
	spares->first = p;
	if (++spares->count >= SPARE_MAX)
		give_back(spares, slab);
}

/* Its addressee left before it arrived, and the slot has a new owner, for whom it was never meant. An answer goes to the main
 * worker, as promised; a task may run anywhere. False: it must be kept here.                                             */
static bool forward(struct worker *w, struct parcel *p)
{
	struct worker *main = hive__main(w->hive);
	bool is_guest;

	if (p->kind == PARCEL_REPLY) {
		p->target = HIVE_WORKER_NONE;
		if (!inbox_push(&main->inbox, &p->letter))
			return false;
		hive__wake_if_asleep(main);
		return true;
	}
	is_guest = p->kind == PARCEL_GUEST;
	if (pool_give(&w->hive->pool, hive__thread_number(), p->task, true) < 0)
		return false;
	if (!is_guest) /* that one runs again, maybe, and its parcel with it */
		hive__parcel_free(p);
	hive__wake_if_needed(w->hive, &w->hive->io);
	return true;
}

static void receive_task(struct worker *w, struct parcel *p)
{
	if (p->target != HIVE_WORKER_NONE && p->target != w->self_id && forward(w, p))
		return;
	if (p->kind == PARCEL_REPLY)
		hive__let_end(w->hive, 1);
	bump(&w->stats.posted, 1);
	hive__mail_append(w, p);
}

/* Its sender may use the lane again. */
static void receive_with_receipt(struct worker *w, struct parcel *p)
{
	ATOMIC(uint64_t) *receipt = p->receipt; /* before it runs elsewhere, maybe */

	p->receipt = NULL;
	receive_task(w, p);
	if (receipt)
		mesh_return(receipt);
}

/* Guests have a parcel of their own: the cell is free at once. */
static void receive_from_lane(struct worker *w, struct parcel *p)
{
	if (p->task.fn == hive__run_guest) {
		struct parcel *own = hive__guest_parcel((struct guest *)p->task.arg, p->target);

		hive__parcel_free(p);
		p = own;
	}
	receive_task(w, p);
}

void hive__receive_one(struct worker *w, struct parcel *p)
{
	switch (p->kind) {
	case PARCEL_TASK:
	case PARCEL_GUEST:
		receive_with_receipt(w, p);
		break;
	case PARCEL_REPLY:
		receive_task(w, p);
		break;
	case PARCEL_LANE:
		receive_from_lane(w, p);
		break;
	case PARCEL_TIMER:
		hive__place_delayed(w, (struct delayed *)(void *)p);
		break;
	case PARCEL_ADOPT:
		hive__adopt_timers(w, (struct hive_timer *)p->task.arg);
		store_release(&p->home->adopting, 0u); /* ADOPT-1 (pairs with ADOPT-2) */
		break;
	}
}

void hive__receive(struct worker *w, struct letter *letters)
{
	if (letters)
		hive__trail(w, TRAIL_RECEIVED, 0);
	while (letters) {
		struct letter *next = letters->next;

		hive__receive_one(w, parcel_of_letter(letters));
		letters = next;
	}
}
