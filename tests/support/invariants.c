/* SPDX-License-Identifier: MIT */
#include "support/invariants.h"

#include "fiber/wait.h"
#include "io/seat.h"
#include "sync/channel.h"
#include "sync/inside.h"
#include "sync/semaphore.h"
#include "sync/words.h"

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

/* ---- operations: a desk is its worker's, who may be in the middle of something ---- */

static struct desk *desk_of(struct worker *w)
{
	return w->kind == HIVE_WORKER_IO ? (struct desk *)w->place.cache[GUESTS_IO] : NULL;
}

/* One may be entering or leaving the list. */
static const char *check_desk(struct desk *desk)
{
	uint32_t counted = load_relaxed(&desk->place->under_way), n = 0;

	for (struct hive_op *op = desk->ops; op; op = (struct hive_op *)op->next, n++) {
		if (load_relaxed(&op->owner) != desk)
			return "desk: an operation that is another's";
		if (load_relaxed(&op->state) == 0)
			return "desk: an operation that is not under way";
	}
	return n > counted + 1 || counted > n + 1 ? "desk: operations are counted wrong" : NULL;
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
		if (!wrong && desk_of(w))
			wrong = check_desk(desk_of(w));
	}
	if (!wrong && load_relaxed(&set->count) + 1 < live)
		wrong = "registry: fewer workers counted than live";
	return wrong;
}

const char *invariants_always(struct hive *hive)
{
	const char *wrong = check_pool(&hive->pool);

	for (int i = 0; !wrong && i < LEVELS; i++)
		wrong = check_pool(&hive->compute_pool.pools[i]);
	if (!wrong && load_relaxed(&hive->compute_pool.turn) >= LEVEL_TURNS_ALL)
		wrong = "compute pool: a turn that does not exist";
	if (!wrong)
		wrong = check_set(&hive->io);
	return wrong ? wrong : check_set(&hive->compute);
}

/* ---- quiet ---- */

/* Nobody has asked for its end, and it waits for something. */
static const char *check_op_quiet(struct desk *desk, const struct hive_op *op)
{
	const struct seat *seat = op->waits ? seat_at(desk, op_waits_at(op)) : NULL;
	const struct hive_op *at = seat ? seat->first : NULL;

	if (load_relaxed(&op->state) != OP_UNDER_WAY)
		return "an operation sleeps that shall end, or is on its way";
	while (at && at != op)
		at = (const struct hive_op *)at->behind;
	if (op->waits && !at)
		return "an operation waits where nobody knows of it";
	return op->waits || op->native || op->hungry ? NULL : "an operation waits for nothing";
}

static const char *check_seat_quiet(const struct seat *seat)
{
	const struct hive_op *op = seat->first, *last = NULL;

	for (; op; last = op, op = (const struct hive_op *)op->behind)
		if (!op->waits || op_waits_at(op) != (int)seat->source.handle)
			return "seat: who waits there does not know";
	if (last != seat->last)
		return "seat: its last is not the last";
	if (seat_is_waited_at(seat) && seat->how == SEAT_OUT && !seat->doubtful)
		return "seat: somebody waits there, and nobody will tell";
	return seat->doubtful && seat->desk->doubt_alarm == 0 ? "seat: in doubt, and nobody looks" : NULL;
}

static const char *check_desk_quiet(struct desk *desk)
{
	const char *wrong = NULL;
	uint32_t n = 0;

	for (struct hive_op *op = desk->ops; op && !wrong; op = (struct hive_op *)op->next, n++)
		wrong = check_op_quiet(desk, op);
	if (!wrong && n != load_relaxed(&desk->place->under_way))
		wrong = "desk: operations are counted wrong";
	for (uint32_t i = 0; i < desk->chunk_count * SEAT_CHUNK && !wrong; i++) {
		struct seat *seat = seat_at(desk, (int)i);

		wrong = seat ? check_seat_quiet(seat) : NULL;
	}
	return wrong;
}

static const char *check_worker_quiet(struct worker *w)
{
	uint32_t lanes;

	if (w->mail.first || w->yielded.first || w->outbox_count > 0 || local_size(&w->local) > 0 ||
	    (w->kind == HIVE_WORKER_IO && tray_length(&w->placed) > 0) || w->brought_count > 0)
		return "a worker sleeps on tasks of its own";
	if (!inbox_is_empty(&w->inbox))
		return "a worker sleeps on a full inbox";
	if (hive__letters_in_lanes(w, &lanes) > 0)
		return "a worker sleeps on letters in a lane";
	if (load_relaxed(&w->stats.private_tasks) != 0)
		return "private tasks are counted and not there";
	if (load_relaxed(&w->woken) != w->claims)
		return "a claim without its wake, or a wake without a claim";
	if (w->searching || load_relaxed(&w->seeks) || w->found)
		return "a worker sleeps as a searcher";
	if (!timers_valid(&w->timers))
		return "timers are out of order";
	return desk_of(w) ? check_desk_quiet(desk_of(w)) : NULL;
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
	if (!wrong && load_relaxed(&hive->compute.count) > 0 && !levels_are_empty(&hive->compute_pool))
		wrong = "all sleep, and the compute pool is not empty";
	if (!wrong)
		wrong = check_set_quiet(&hive->io);
	return wrong ? wrong : check_set_quiet(&hive->compute);
}

/* ---- what fibers and threads share: whoever has the latch is in the middle of something ---- */

static const char *check_list(const struct wait_list *list)
{
	struct wait_node *const *link = &list->first;

	for (const struct wait_node *node = list->first; node; node = node->next) {
		if (node->link != link)
			return "a list of waits: somebody in it does not know";
		link = &node->next;
	}
	return list->first && list->last != link ? "a list of waits: its end is not its last" : NULL;
}

/* Its word says whether there is somebody. */
static const char *check_waits(uint64_t word, uint64_t bit, const struct wait_list *list)
{
	if (!(word & bit) != !list->first)
		return list->first ? "somebody waits, and the word does not say so"
		                   : "the word says that somebody waits, and nobody does";
	return check_list(list);
}

const char *invariants_mutex(struct hive_mutex *mutex)
{
	uint64_t word = load_relaxed(&mutex->state);

	if (word & LATCH_TAKEN)
		return NULL;
	if (!mutex_holder(word) && (word & (WORD_WAITERS | MUTEX_WAKING)) == WORD_WAITERS)
		return "mutex: it is free, and who waits is not told";
	return check_waits(word, WORD_WAITERS, list_in(mutex->waiters));
}

const char *invariants_cond(struct hive_cond *cond)
{
	uint64_t word = load_relaxed(&cond->state);

	return word & LATCH_TAKEN ? NULL : check_waits(word, WORD_WAITERS, list_in(cond->waiters));
}

const char *invariants_semaphore(struct hive_semaphore *semaphore)
{
	const struct wait_list *list = list_in(semaphore->waiters);
	uint64_t word = load_relaxed(&semaphore->state);

	if (word & LATCH_TAKEN)
		return NULL;
	if (list->first && ((const struct semaphore_node *)list->first)->wants <= semaphore_count(word))
		return "semaphore: who waits in front could have what it wants";
	return check_waits(word, WORD_WAITERS, list);
}

/* Who selects may wait at both ends, but then nobody else waits there. */
static bool of_one_wait(const struct wait_list *senders, const struct wait_list *receivers)
{
	struct waiter *who = receivers->first->wait.who;

	for (const struct wait_node *node = senders->first; node; node = node->next)
		if (node->wait.who != who)
			return false;
	for (const struct wait_node *node = receivers->first; senders->first && node; node = node->next)
		if (node->wait.who != who)
			return false;
	return true;
}

const char *invariants_channel(struct hive_channel *channel)
{
	uint64_t word = load_relaxed(&channel->word);
	size_t count = load_relaxed(&channel->count);
	const char *wrong;

	if (word & LATCH_TAKEN)
		return NULL;
	wrong = check_waits(word, CHANNEL_SENDERS, &channel->senders);
	if (!wrong)
		wrong = check_waits(word, CHANNEL_RECEIVERS, &channel->receivers);
	if (wrong)
		return wrong;
	if (count > channel->capacity ||
	    (channel->capacity && (channel->head + count) % channel->capacity != channel->tail))
		return "channel: its places and its count differ";
	if (channel->receivers.first && (count > 0 || !of_one_wait(&channel->senders, &channel->receivers)))
		return "channel: somebody waits for an item, and there is one";
	if (channel->senders.first && count < channel->capacity)
		return "channel: somebody waits for room, and there is some";
	return (word & CHANNEL_CLOSED) && (channel->senders.first || channel->receivers.first)
	               ? "channel: somebody waits in it, and it is closed"
	               : NULL;
}
