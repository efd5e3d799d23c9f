/* SPDX-License-Identifier: MIT */
/* Steps 5, 6 and 6.5: work that comes from others and goes to others. */
#include "base/rng.h"
#include "base/thread.h"
#include "sched/backoff.h"
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

/* Something was taken from the pool: the search has ended, and if there is more, one more is woken (W3). */
static void after_taking(struct worker *w, size_t n)
{
	struct hive *hive = w->hive;

	hive__trail(w, TRAIL_TOOK, n);
	w->thwarted = 0;
	hive__end_search(w);
	if (idle_needs_wake(&hive->io.idle) && (n > 1 || !pool_is_empty(&hive->pool)))
		hive__wake_one(hive, &hive->io);
}

static size_t wanted(const struct worker *w)
{
	return (size_t)(w->tiny && w->last_batch >= (uint32_t)w->setup.pool_batch ? w->setup.pool_crowd
	                                                                          : w->setup.pool_batch);
}

/* One task of the pool, at once. True: there was one. */
bool hive__run_from_pool(struct worker *w)
{
	struct hive_task task;

	w->busy_beats = 0;
	if (hive__is_halted(w) || hive__is_outside(w) || pool_take_many(&w->hive->pool, w->take_lane++, &task, 1) == 0)
		return false;
	after_taking(w, 1);
	hive__run_task(w, task);
	return true;
}

/* Step 5. A batch into the local queue; what would not fit is not taken. True: there was something. Where there is no room one runs
 * at once: local tasks that post themselves again can keep the queue full for ever, and a ring from which a thief copies has none,
 * though it may be empty, for as long as the thief is kept from going on.                                                  */
bool hive__take_from_pool(struct worker *w)
{
	struct hive *hive = w->hive;
	struct hive_task batch[TUNE_POOL_BATCH_MAX];
	uint64_t room = local_room(&w->local);
	size_t n, max = wanted(w);

	w->busy_beats = 0;
	if (room < max)
		max = (size_t)room;
	if (max == 0)
		return hive__run_from_pool(w);
	if (hive__is_outside(w))
		return false;
	wait_for_a_batch(w);
	n = pool_take_many(&hive->pool, w->take_lane++, batch, max);
	learn_from_batch(w, n);
	if (n == 0)
		return false;
	if (!w->setup.last_now || hive__is_halted(w)) {
		local_push_batch(&w->local, batch, n);
		after_taking(w, n);
		return true;
	}
	if (n > 1)
		local_push_batch(&w->local, batch, n - 1);
	after_taking(w, n);
	hive__run_task(w, batch[n - 1]);
	return true;
}

static bool may_search(struct worker *w)
{
	if (!w->searching)
		hive__mark_searching(w, idle_search_begin(&w->hive->io.idle, load_relaxed(&w->hive->io.count)));
	return w->searching;
}

/* One that is leaving may still have tasks, and be busy with a long one: then they are anybody's. */
static bool is_worth_a_look(struct workers *set, struct worker *victim)
{
	return load_relaxed(&victim->stealable) && (hive__is_live(set, victim->index) || hive__has_loot(victim));
}

static uint32_t rob(struct worker *w, struct worker *victim, struct hive_task *ret_first)
{
	uint32_t loot = local_rob(&w->local, &victim->local, ret_first);

	if (loot == 0)
		loot = hive__rob_placed(w, victim, ret_first);
	if (loot > 0 && hive__distance(w, victim) == TOPOLOGY_FAR)
		bump(&w->stats.stolen_far, loot);
	return loot;
}

/* A few victims, the first drawn at random, the others its neighbours. */
static uint32_t rob_at_random(struct worker *w, struct workers *set, uint32_t limit, struct hive_task *ret_first)
{
	uint32_t at = rng_below(hive__random(w->hive), limit), loot = 0;
	int32_t attempts = w->setup.steal_attempts;

	for (uint32_t seen = 0; seen < limit && attempts > 0 && loot == 0; seen++, at = (at + 1) % limit) {
		struct worker *victim = hive__slot(set, at);

		if (victim == w || !is_worth_a_look(set, victim))
			continue;
		attempts--;
		loot = rob(w, victim, ret_first);
	}
	return loot;
}

/* How good a victim it is; 0: none. Who searches has nothing, or has just found something for itself: he is the last choice, but
 * one. Were he none, a thief would neither rob him nor fall asleep while he has tasks and does not run.                     */
static uint64_t rank_victim(const struct worker *w, struct worker *victim)
{
	uint64_t size;

	if (victim == w || !load_relaxed(&victim->stealable))
		return 0;
	size = local_size(&victim->local);
	size += tray_length(&victim->placed);
	return size == 0 ? 0 : load_relaxed(&victim->seeks) ? 1 : size + 1;
}

/* One victim, the best of all. */
static uint32_t rob_the_busiest(struct worker *w, struct workers *set, uint32_t limit, struct hive_task *ret_first)
{
	struct worker *best = NULL;
	uint64_t rank = 0;

	for (uint32_t i = 0; i < limit; i++) {
		struct worker *victim = hive__slot(set, i);
		uint64_t its_rank = rank_victim(w, victim);

		if (its_rank > rank) {
			rank = its_rank;
			best = victim;
		}
	}
	return best ? rob(w, best, ret_first) : 0;
}

/* How far each one is from the thief; TOPOLOGY_NOBODY: not to be robbed. Returns a bit for each distance that there is. */
enum { TOPOLOGY_NOBODY = TOPOLOGY_FAR + 1 };

static uint32_t measure(struct worker *w, struct workers *set, uint32_t limit, uint8_t *ret_distances)
{
	uint32_t levels = 0;

	for (uint32_t i = 0; i < limit; i++) {
		struct worker *victim = hive__slot(set, i);

		ret_distances[i] = TOPOLOGY_NOBODY;
		if (victim != w && load_relaxed(&victim->stealable))
			ret_distances[i] = (uint8_t)hive__distance(w, victim);
		levels |= 1u << ret_distances[i];
	}
	return levels;
}

/* Level by level: who is farther is not even looked at before all who are nearer have nothing. Within a level the first is drawn.
 * Only who seems to have something counts as an attempt.                                                                    */
static uint32_t rob_the_nearest(struct worker *w, struct workers *set, uint32_t limit, struct hive_task *ret_first)
{
	uint8_t distances[HIVE_WORKERS_MAX];
	uint32_t start = rng_below(hive__random(w->hive), limit), loot = 0, levels;
	int32_t attempts = w->setup.steal_attempts;

	hive__note_place(w, hive__cpu(w->hive));
	levels = measure(w, set, limit, distances);
	for (int level = 0; level < TOPOLOGY_NOBODY; level++) {
		if (!(levels & 1u << level))
			continue;
		for (uint32_t seen = 0, at = start; seen < limit && attempts > 0 && loot == 0; seen++) {
			struct worker *victim = hive__slot(set, at);

			if (distances[at] == level && hive__has_loot(victim)) {
				attempts--;
				loot = rob(w, victim, ret_first);
			}
			at = at + 1 < limit ? at + 1 : 0;
		}
	}
	return loot;
}

static uint32_t rob_somebody(struct worker *w, struct workers *set, uint32_t limit, struct hive_task *ret_first)
{
	if (w->setup.victim == HIVE_VICTIM_NEAR)
		return rob_the_nearest(w, set, limit, ret_first);
	return w->setup.victim == HIVE_VICTIM_BUSIEST ? rob_the_busiest(w, set, limit, ret_first)
	                                              : rob_at_random(w, set, limit, ret_first);
}

/* Before a round that follows failures. Not in worlds with a clock of their own, where nothing goes on meanwhile. What is for this
 * worker alone, or for anybody, ends it.                                                                                   */
static void back_off(struct worker *w)
{
	struct hive *hive = w->hive;
	uint32_t pauses, i = 0;

	if (w->thwarted == 0 || hive->exact_clock || hive->stepped)
		return;
	pauses = backoff_pauses(w->thwarted, hive__random(hive));
	while (i < pauses && hive__no_letters(w) && pool_looks_empty(&hive->pool))
		for (uint32_t row = 0; row < 8 && i < pauses; row++, i++)
			cpu_pause();
	bump(&w->stats.steal_pauses, i);
}

static void note_round(struct worker *w, uint32_t loot)
{
	bump(&w->stats.steal_rounds, 1);
	if (loot == 0)
		bump(&w->stats.steal_failures, 1);
	if (loot > 0 || !w->in_sight)
		w->thwarted = 0;
	else if (w->thwarted < TUNE_BACKOFF_MOST)
		w->thwarted++;
	w->in_sight = false;
}

/* Step 6. One stolen task runs at once: were it only queued, two idle workers could take it from each other for ever. True:
 * there was something. Who looked for the busiest and got nothing asks the pool once more: it took longer than other looks. */
bool hive__steal_some(struct worker *w)
{
	struct workers *set = &w->hive->io;
	uint32_t limit = hive__limit(set), loot;
	struct hive_task first;

	if (hive__is_halted(w) || w->setup.steal_attempts <= 0 || limit < 2)
		return false;
	back_off(w);
	if (!may_search(w))
		return false;
	loot = rob_somebody(w, set, limit, &first);
	note_round(w, loot);
	if (loot == 0)
		return hive__search_forks(w) || (w->setup.victim == HIVE_VICTIM_BUSIEST && hive__run_from_pool(w));
	bump(&w->stats.stolen, loot);
	hive__trail(w, TRAIL_STOLE, loot);
	hive__end_search(w);
	if (loot > 1) /* W3 */
		hive__wake_if_needed(w->hive, set);
	hive__run_task(w, first);
	return true;
}

/* The local queue is full: its older half goes to the pool in one splice. How many, or -ENOMEM with everything as before. */
int hive__spill(struct worker *w)
{
	struct hive *hive = w->hive;
	size_t n = local_take_oldest(&w->local, w->scratch, (size_t)w->local_capacity / 2);
	int r;

	if (n == 0)
		return 0;
	r = pool_give_many(&hive->pool, hive__thread_number(), w->scratch, n, false);
	if (r < 0) {
		local_put_back(&w->local, w->scratch, n);
		return r;
	}
	bump(&w->stats.spilled, n);
	hive__trail(w, TRAIL_SPILLED, n);
	hive__wake_if_needed(hive, &hive->io);
	return (int)n;
}

/* A local post that found no room. While a thief copies from a full ring its slots are not free, and there is no knowing for how
 * long: then this task goes to the pool by itself. soon: see local_post(). 0 or -ENOMEM.                                     */
int hive__post_to_full(struct worker *w, struct hive_task task, bool soon)
{
	int r;

	do {
		r = hive__spill(w);
		if (r < 0)
			return r;
		if (soon ? local_post(&w->local, task) : local_push(&w->local, task))
			return 0;
	} while (r > 0 || !w->local.oldest);
	r = pool_give(&w->hive->pool, hive__thread_number(), task, false);
	if (r == 0)
		bump(&w->stats.spilled, 1);
	return r;
}

/* Step 6.5. One splice for all posts made in this beat. Without memory they go to the local queue, as far as there is
 * room; the rest waits for the next beat.                                                                           */
void hive__flush_outbox(struct worker *w)
{
	struct hive *hive = w->hive;
	uint32_t n = w->outbox_count, kept = 0;

	if (n == 0)
		return;
	if (hive->two_choices) {
		n = hive__place_outbox(w);
		if (n == 0)
			return;
	}
	if (pool_give_many(&hive->pool, hive__thread_number(), w->outbox, n, false) < 0) {
		while (kept < n && local_push(&w->local, w->outbox[kept]))
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
