/* SPDX-License-Identifier: MIT */
/* The sending half of balancing: of two IO workers drawn at random the one with less to do gets the task. It waits there in a tray,
 * from which others may take it from the first moment on; stealing does the rest.                                        */
#include "base/rng.h"
#include "base/thread.h"
#include "sched/internal.h"

/* Two different IO workers; *ret_second NULL: there is only one. False: there is none. */
bool hive__draw_two(struct hive *hive, struct worker **ret_first, struct worker **ret_second)
{
	struct workers *set = &hive->io;
	struct roster_view view;
	uint32_t first, second;

	do {
		view = roster_look(&set->roster);
		if (view.count == 0)
			return false;
		first = rng_below(hive__random(hive), view.count);
		second = view.count > 1 ? rng_below(hive__random(hive), view.count - 1) : 0;
		if (second >= first)
			second++;
		*ret_first = hive__slot(set, roster_at(&view, first));
		*ret_second = view.count > 1 ? hive__slot(set, roster_at(&view, second)) : NULL;
	} while (!roster_holds(&view));
	return true;
}

uint32_t hive__guest_choose(const struct hive *hive, uint64_t (*rank)(uint64_t key, uint32_t place), uint64_t key)
{
	struct workers *set = &((struct hive *)(uintptr_t)hive)->io;
	struct roster_view view;
	uint32_t best;

	do {
		uint64_t highest = 0;

		view = roster_look(&set->roster);
		best = SLOTS_MAX;
		for (uint32_t i = 0; i < view.count; i++) {
			uint32_t place = roster_at(&view, i);
			uint64_t its = rank(key, place);

			if (best == SLOTS_MAX || its > highest) {
				best = place;
				highest = its;
			}
		}
	} while (!roster_holds(&view));
	return best == SLOTS_MAX ? HIVE_WORKER_NONE : slots_name_of(&hive__slot(set, best)->id);
}

/* What was sent to it and not yet taken, and what it has. Nobody writes this down: the queues say so. */
static uint64_t load_of(struct worker *w)
{
	uint64_t placed = tray_length(&w->placed);

	return placed + local_size(&w->local);
}

static bool may_place(struct worker *w)
{
	return load_relaxed(&w->stealable) && !load_relaxed(&w->shy);
}

/* Where nobody may steal nothing is placed. Nor where the lighter one sleeps: then somebody idle shall have it, and that is what the pool is
 * for, which wakes one at a time, and nobody while somebody searches. NULL: nowhere.                                      */
static struct worker *lighter(struct hive *hive)
{
	struct worker *a, *b;

	if (!hive__draw_two(hive, &a, &b))
		return NULL;
	if (b && !may_place(b))
		b = NULL;
	if (!may_place(a))
		a = b;
	else if (b && load_of(b) < load_of(a))
		a = b;
	return a && !idle_is_asleep(&hive->io.idle, a->index) ? a : NULL;
}

/* Any thread. False: there is nobody to give it to, or he has no room; the pool has. */
bool hive__place_task(struct hive *hive, struct hive_task task)
{
	struct worker *w = lighter(hive);

	if (!w || tray_put(&w->placed, task) < 0)
		return false;
	/* It is awake, and has other things to do, maybe for long: then it is for whoever is idle. */
	if (!hive__wake_if_asleep(w))
		hive__wake_if_needed(hive, &hive->io);
	return true;
}

/* A worker, at the end of its beat. How many are left in the outbox: those for which there was no place. */
uint32_t hive__place_outbox(struct worker *w)
{
	uint32_t n = w->outbox_count, rest = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!hive__place_task(w->hive, w->outbox[i]))
			w->outbox[rest++] = w->outbox[i];
	w->outbox_count = rest;
	bump(&w->stats.posted, rest - (uint64_t)n); /* the tray counts what it takes */
	hive__trail(w, TRAIL_FLUSHED, n - rest);
	return rest;
}

/* What was placed with one worker is taken by another one, or by itself: so many at most. */
static size_t take(struct worker *from, struct hive_task *ret_tasks, size_t max)
{
	size_t n = 0;

	while (n < max && tray_take(&from->placed, &ret_tasks[n]))
		n++;
	return n;
}

/* There is something, and nothing to be had: a put is under way, and its thread shall go on. For who has nothing else to do. */
static void await_put(struct worker *w, struct worker *from)
{
	if (tray_length(&from->placed) > 0)
		hive__thread_give_way(w->put_awaited++);
	else
		w->put_awaited = 0;
}

static void after_taking_placed(struct worker *w, size_t n)
{
	hive__trail(w, TRAIL_TOOK, n);
	hive__end_search(w);
	if (n > 1 || tray_length(&w->placed) > 0) /* W3 */
		hive__wake_if_needed(w->hive, &w->hive->io);
}

/* The owner, in step 4. What was placed here enters the local queue, as far as there is room; if there is none, one runs at once, as it
 * would from the pool. True: that was so.                                                                                  */
bool hive__take_placed(struct worker *w)
{
	struct hive_task tasks[TUNE_POOL_BATCH_MAX];
	uint64_t room = local_room(&w->local);
	size_t max = (size_t)w->setup.pool_batch, n;

	if (room == 0 && hive__is_halted(w))
		return false;
	if (max > room)
		max = room > 0 ? (size_t)room : 1;
	n = take(w, tasks, max);
	if (n == 0) {
		if (local_size(&w->local) == 0)
			await_put(w, w);
		return false;
	}
	w->put_awaited = 0;
	if (room > 0)
		local_push_batch(&w->local, tasks, n);
	after_taking_placed(w, n);
	if (room == 0)
		hive__run_task(w, tasks[0]);
	return room == 0;
}

/* A thief. Up to half of what was placed there: one for running at once, the others are in its own queue. How many. */
uint32_t hive__rob_placed(struct worker *w, struct worker *victim, struct hive_task *ret_first)
{
	struct hive_task loot[TUNE_STEAL_BATCH];
	uint64_t half = (tray_length(&victim->placed) + 1) / 2, room = local_room(&w->local);
	size_t max = half < TUNE_STEAL_BATCH ? (size_t)half : TUNE_STEAL_BATCH, n;

	if (max > room + 1)
		max = (size_t)room + 1;
	n = take(victim, loot, max);
	if (n == 0) {
		await_put(w, victim);
		return 0;
	}
	w->put_awaited = 0;
	*ret_first = loot[0];
	if (n > 1)
		local_push_batch(&w->local, loot + 1, n - 1);
	return (uint32_t)n;
}

/* The owner, or who has it to himself. One task of those that were placed here; false: there is none. */
bool hive__take_one_placed(struct worker *w, struct hive_task *ret_task)
{
	for (w->put_awaited = 0; tray_length(&w->placed) > 0; await_put(w, w))
		if (take(w, ret_task, 1) > 0)
			return true;
	return false;
}

int hive_post_placed(struct hive *hive, hive_fn *fn, void *arg)
{
	struct hive_task task = { fn, arg };
	int r = hive__door(hive, fn);

	if (r < 0)
		return r;
	return hive__place_task(hive, task) ? 0 : hive__post_to_pool(hive, &task, 1);
}
