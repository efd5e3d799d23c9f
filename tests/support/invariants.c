/* SPDX-License-Identifier: MIT */
#include "support/invariants.h"

/* ---- always ---- */

#if defined(HIVE_LOCKED_QUEUES)
static const char *check_ring(struct runq *q)
{
	return q->tail - q->head > q->capacity ? "local queue: more tasks than it can hold" : NULL;
}

static const char *check_deque(struct deque *d)
{
	return d->bottom - d->top > d->capacity ? "local queue: more tasks than it can hold" : NULL;
}
#else
static const char *check_ring(struct runq *q)
{
	uint64_t head = load_relaxed(&q->head);
	uint32_t steal = runq_steal_of(head), all = load_relaxed(&q->tail) - steal;

	if (runq_local_of(head) - steal > all)
		return "local queue: its heads are not in order, or not behind its tail";
	return all > q->capacity ? "local queue: more tasks than it can hold" : NULL;
}

static const char *check_deque(struct deque *d)
{
	int64_t size = (int64_t)(load_relaxed(&d->bottom) - load_relaxed(&d->top));

	if (size < -1) /* the owner has lowered bottom, and the last task was stolen */
		return "local queue: bottom is below top";
	return size > (int64_t)d->capacity ? "local queue: more tasks than it can hold" : NULL;
}
#endif

static const char *check_pool(struct pool *pool)
{
	for (int i = 0; i < POOL_LANES; i++) {
		struct lane *l = &pool->lanes[i];

		if (lane_distance(load_relaxed(&l->head), load_relaxed(&l->tail)) > LANE_CAPACITY)
			return "pool: a lane holds more than its ring (L2)";
		if (lane_length(l) > 0 && !(load_relaxed(&pool->used) & (1u << i)))
			return "pool: a lane holds something and was never used";
	}
	return NULL;
}

static uint32_t bits_set(struct idle *idle, uint32_t limit)
{
	uint32_t n = 0;

	for (uint32_t word = 0; word * 64 < limit; word++)
		n += (uint32_t)__builtin_popcountll(load_relaxed(&idle->asleep[word]));
	return n;
}

/* S2: sleepers may be too many for a moment, searchers never. */
static const char *check_idle(struct workers *set)
{
	uint32_t limit = hive__limit(set);
	uint64_t count = load_relaxed(&set->idle.count);

	if (idle_searchers(count) > (int32_t)limit)
		return "idle set: more searchers than workers";
	return bits_set(&set->idle, limit) > limit ? "idle set: a bit that belongs to nobody" : NULL;
}

static const char *check_set(struct workers *set)
{
	const char *wrong = check_idle(set);
	uint32_t live = 0;

	for (uint32_t i = 0; !wrong && i < hive__limit(set); i++) {
		struct worker *w = hive__slot(set, i);

		live += hive__is_live(set, i);
		if (w->index != i)
			wrong = "registry: a worker in a foreign slot";
		else if (w->kind == HIVE_WORKER_IO)
			wrong = w->local.oldest ? check_ring(&w->local.ring) : check_deque(&w->local.deque);
	}
	if (!wrong && load_relaxed(&set->count) + 1 < live)
		wrong = "registry: fewer workers counted than live";
	return wrong;
}

const char *invariants_always(struct hive *hive)
{
	const char *wrong = check_pool(&hive->pool);

	if (!wrong)
		wrong = check_pool(&hive->compute_pool);
	if (!wrong)
		wrong = check_set(&hive->io);
	return wrong ? wrong : check_set(&hive->compute);
}

/* ---- quiet ---- */

static const char *check_worker_quiet(struct worker *w)
{
	if (w->mail.first || w->yielded.first || w->outbox_count > 0 || local_size(&w->local) > 0)
		return "a worker sleeps on tasks of its own";
	if (!inbox_is_empty(&w->inbox))
		return "a worker sleeps on a full inbox";
	if (load_relaxed(&w->stats.private_tasks) != 0)
		return "private tasks are counted and not there";
	if (load_relaxed(&w->woken) != w->claims)
		return "a claim without its wake, or a wake without a claim";
	if (w->searching || load_relaxed(&w->seeks) || w->found)
		return "a worker sleeps as a searcher";
	if (!timers_valid(&w->timers))
		return "timers are out of order";
	return NULL;
}

static const char *check_set_quiet(struct workers *set)
{
	uint64_t count = load_relaxed(&set->idle.count);
	uint32_t live = 0;

	for (uint32_t i = 0; i < hive__limit(set); i++) {
		struct worker *w = hive__slot(set, i);
		const char *wrong = w->kind == HIVE_WORKER_IO && hive__is_live(set, i) ? check_worker_quiet(w) : NULL;

		if (wrong)
			return wrong;
		live += hive__is_live(set, i);
	}
	if (load_relaxed(&set->count) != live)
		return "registry: not as many counted as live";
	if (idle_searchers(count) != 0)
		return "idle set: somebody is counted as a searcher";
	if (idle_sleepers(count) != bits_set(&set->idle, hive__limit(set)))
		return "idle set: count and bits differ";
	return idle_sleepers(count) != live ? "idle set: not everybody who sleeps is in it" : NULL;
}

const char *invariants_quiet(struct hive *hive)
{
	const char *wrong = invariants_always(hive);

	if (!wrong && !pool_is_empty(&hive->pool))
		wrong = "all sleep, and the pool is not empty";
	if (!wrong && load_relaxed(&hive->compute.count) > 0 && !pool_is_empty(&hive->compute_pool))
		wrong = "all sleep, and the compute pool is not empty";
	if (!wrong)
		wrong = check_set_quiet(&hive->io);
	return wrong ? wrong : check_set_quiet(&hive->compute);
}
