/* SPDX-License-Identifier: MIT */
/* Steps 5, 6 and 6.5: work that comes from others and goes to others. */
#include "base/rng.h"
#include "base/thread.h"
#include "sched/internal.h"

/* A taker that empties the pool one task at a time takes the poster's cache lines away with each look, and both crawl. So
 * after a row of thin batches it waits a moment before it looks; if the next batch is thin all the same, nobody was in a
 * hurry, and it stops waiting.                                                                                           */
static void wait_for_a_batch(const struct worker *w)
{
	if (w->patient && w->last_batch < (uint32_t)w->setup.pool_batch)
		for (int i = 0; i < TUNE_THIN_PAUSES; i++)
			cpu_pause();
}

static void learn_from_batch(struct worker *w, size_t n)
{
	w->last_batch = (uint32_t)n;
	if (n >= TUNE_THIN_BATCH)
		w->thin_batches = 0;
	else if (w->patient || n == 0)
		w->patient = false, w->thin_batches = 0;
	else
		w->patient = ++w->thin_batches >= TUNE_THIN_ROW;
}

/* Oldest last: the local queue runs its newest end first, so the batch runs in the order of the pool. */
static void push_reversed(struct worker *w, struct hive_task *batch, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		struct hive_task swap = batch[i];

		batch[i] = batch[n - 1 - i];
		batch[n - 1 - i] = swap;
	}
	deque_push_many(&w->local, batch, n);
}

/* Step 5. A batch into the local queue; what would not fit is not taken. True: there was something. */
bool hive__take_from_pool(struct worker *w)
{
	struct hive *hive = w->hive;
	struct hive_task batch[TUNE_POOL_BATCH_MAX];
	uint64_t room = deque_room(&w->local);
	size_t n, max = (size_t)w->setup.pool_batch;

	w->busy_beats = 0;
	if (room < max)
		max = (size_t)room;
	if (max == 0)
		return false;
	wait_for_a_batch(w);
	n = pool_take_many(&hive->pool, w->take_lane++, batch, max);
	learn_from_batch(w, n);
	if (n == 0)
		return false;
	hive__trail(w, TRAIL_TOOK, n);
	push_reversed(w, batch, n);
	hive__end_search(w);
	if (idle_needs_wake(&hive->io.idle) && (n > 1 || !pool_is_empty(&hive->pool))) /* W3 */
		hive__wake_one(hive, &hive->io);
	return true;
}

/* Up to half of what the victim has, one at a time: each is decided by its own compare-and-swap. The first is for running at
 * once, the others go to the local queue.                                                                                 */
static uint32_t rob(struct worker *w, struct worker *victim, struct hive_task *ret_first)
{
	uint64_t half = (deque_size(&victim->local) + 1) / 2, room = deque_room(&w->local);
	uint32_t loot = 0;
	struct hive_task task;

	if (half > TUNE_STEAL_BATCH)
		half = TUNE_STEAL_BATCH;
	if (half > room)
		half = room;
	while (loot < half && deque_steal(&victim->local, &task)) {
		if (loot++ == 0)
			*ret_first = task;
		else
			deque_push(&w->local, task);
	}
	return loot;
}

static bool may_search(struct worker *w)
{
	if (!w->searching)
		w->searching = idle_search_begin(&w->hive->io.idle, load_relaxed(&w->hive->io.count));
	return w->searching;
}

/* One that is leaving may still have tasks, and be busy with a long one: then they are anybody's. */
static bool is_worth_a_look(struct workers *set, struct worker *victim)
{
	return load_relaxed(&victim->stealable) &&
	       (hive__is_live(set, victim->index) || deque_size(&victim->local) > 0);
}

/* Step 6. A few victims, the first drawn at random, the others its neighbours. The oldest stolen task runs at once: were it
 * only queued, two idle workers could take it from each other for ever. True: there was something.                        */
bool hive__steal_some(struct worker *w)
{
	struct workers *set = &w->hive->io;
	uint32_t limit = hive__limit(set), loot = 0, at;
	int32_t attempts = w->setup.steal_attempts;
	struct hive_task first;

	if (hive__is_halted(w) || attempts <= 0 || limit < 2 || !may_search(w))
		return false;
	at = rng_below(hive__random(w->hive), limit);
	for (uint32_t seen = 0; seen < limit && attempts > 0 && loot == 0; seen++, at = (at + 1) % limit) {
		struct worker *victim = hive__slot(set, at);

		if (victim == w || !is_worth_a_look(set, victim))
			continue;
		attempts--;
		loot = rob(w, victim, &first);
	}
	if (loot == 0)
		return false;
	bump(&w->stats.stolen, loot);
	hive__trail(w, TRAIL_STOLE, loot);
	hive__end_search(w);
	if (loot > 1) /* W3 */
		hive__wake_if_needed(w->hive, set);
	hive__run_task(w, first);
	return true;
}

/* The local queue is full: its older half goes to the pool in one splice. 0, or -ENOMEM with everything as before. */
int hive__spill(struct worker *w)
{
	struct hive *hive = w->hive;
	size_t n = (size_t)deque_take_oldest(&w->local, w->scratch, w->local_capacity / 2);
	int r;

	if (n == 0)
		return 0;
	r = pool_give_many(&hive->pool, hive__thread_number(), w->scratch, n, false);
	if (r < 0) {
		deque_push_many(&w->local, w->scratch, n);
		return r;
	}
	bump(&w->stats.spilled, n);
	hive__trail(w, TRAIL_SPILLED, n);
	hive__wake_if_needed(hive, &hive->io);
	return 0;
}

/* Step 6.5. One splice for all posts made in this beat. Without memory they go to the local queue, as far as there is
 * room; the rest waits for the next beat.                                                                           */
void hive__flush_outbox(struct worker *w)
{
	struct hive *hive = w->hive;
	uint32_t n = w->outbox_count, kept = 0;

	if (n == 0)
		return;
	if (pool_give_many(&hive->pool, hive__thread_number(), w->outbox, n, false) < 0) {
		while (kept < n && deque_push(&w->local, w->outbox[kept]))
			kept++;
		for (uint32_t i = kept; i < n; i++)
			w->outbox[i - kept] = w->outbox[i];
		w->outbox_count = n - kept;
		return;
	}
	w->outbox_count = 0;
	hive__trail(w, TRAIL_FLUSHED, n);
	hive__wake_if_needed(hive, &hive->io);
}
