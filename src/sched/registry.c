/* SPDX-License-Identifier: MIT */
/* Who is there. A worker's memory is made once and used again for the next worker of its slot, so that a thread which found
 * it a moment ago may still look at it, steal from it or write to its inbox. Ids name one life of a slot.                  */
#include <string.h>

#include "sched/internal.h"

/* id = generation << 11 | kind << 10 | index; generations begin at 1, so 0 names nobody. */
enum { ID_INDEX = HIVE_WORKERS_MAX - 1, ID_KIND = HIVE_WORKERS_MAX, ID_GENERATION = 11 };

static uint32_t make_id(const struct worker *w)
{
	return w->generation << ID_GENERATION | (w->kind == HIVE_WORKER_COMPUTE ? ID_KIND : 0u) | w->index;
}

static struct worker *find(struct hive *hive, uint32_t id)
{
	struct workers *set = id & ID_KIND ? &hive->compute : &hive->io;
	uint32_t index = id & ID_INDEX;
	struct worker *w;

	if (index >= hive__limit(set))
		return NULL;
	w = hive__slot(set, index);
	return slots_name_of(&w->id) == id ? w : NULL;
}

struct worker *hive__find_io(struct hive *hive, uint32_t id)
{
	if (id == HIVE_WORKER_MAIN)
		return hive__main(hive);
	return id & ID_KIND ? NULL : find(hive, id);
}

bool hive__names_compute(struct hive *hive, uint32_t id)
{
	return (id & ID_KIND) && find(hive, id);
}

void hive__worker_free(struct worker *w)
{
	const struct memory *memory = &w->hive->memory;

	timers_destroy(&w->timers);
	hive__mesh_destroy(w);
	hive__memory_free(memory, w->placed.cells);
	slab_destroy(&w->parcels);
	slab_destroy(&w->delayed);
	hive__memory_free(memory, w->local.slots);
	hive__memory_free(memory, load_relaxed(&w->forks));
	hive__memory_free(memory, w->scratch);
	hive__memory_free(memory, w->setup.cpus);
	hive__memory_free(memory, w);
}

/* Queues of an IO worker, with as much memory as was asked to be reserved. 0 or -ENOMEM; the caller frees. */
static int make_queues(struct worker *w, uint64_t capacity, bool oldest)
{
	struct hive *hive = w->hive;
	struct slot *slots = (struct slot *)hive__memory_new(&hive->memory, capacity * sizeof *slots);
	struct tray_cell *cells = (struct tray_cell *)hive__memory_new(&hive->memory, TUNE_TRAY * sizeof *cells);
	int r;

	if (cells)
		tray_init(&w->placed, cells, TUNE_TRAY);
	local_init(&w->local, slots, capacity, oldest);
	w->scratch = (struct hive_task *)hive__memory_new(&hive->memory, capacity / 2 * sizeof *w->scratch);
	w->local_capacity = capacity;
	if (!slots || !w->scratch || !cells)
		return -ENOMEM;
	r = slab_reserve(&w->parcels, hive->reserve_tasks);
	if (r == 0)
		r = slab_reserve(&w->delayed, hive->reserve_tasks);
	return r;
}

static struct worker *make_worker(struct hive *hive, enum hive_worker_kind kind, uint32_t index, uint64_t capacity,
                                  bool oldest)
{
	struct worker *w = (struct worker *)hive__memory_new(&hive->memory, sizeof *w);

	if (!w)
		return NULL;
	w->hive = hive;
	w->state = &hive->state;
	w->place.hive = hive;
	w->kind = kind;
	w->index = index;
	inbox_init(&w->inbox);
	mesh_init(&w->mesh);
	parker_init(&w->parker);
	timers_init(&w->timers, &hive->memory);
	slab_init(&w->parcels, sizeof(struct parcel), &hive->memory);
	slab_init(&w->delayed, sizeof(struct delayed), &hive->memory);
	if (kind == HIVE_WORKER_IO && make_queues(w, capacity, oldest) < 0) {
		hive__worker_free(w);
		return NULL;
	}
	return w;
}

/* A slot whose worker is gone for good and whose queues have the right size and order: a late thief may still look at them.
 * Under registry_lock.                                                                                                     */
static struct worker *find_free_slot(struct workers *set, uint64_t capacity, bool oldest)
{
	for (uint32_t i = 0; i < hive__limit(set); i++) {
		struct worker *w = hive__slot(set, i);

		if (w->life == WORKER_LEAVING && w->abandoned &&
		    load_acquire(&w->gone)) { /* GONE-2 (pairs with GONE-1) */
			hive__reap_locked(w);
			w->life = WORKER_FREE;
		}
		if (w->life == WORKER_FREE &&
		    (w->kind == HIVE_WORKER_COMPUTE || (w->local_capacity == capacity && w->local.oldest == oldest)) &&
		    !load_acquire(&w->adopting)) /* ADOPT-2 (pairs with ADOPT-1) */
			return w;
	}
	return NULL;
}

/* Owner-only fields as a new worker finds them. What others may still look at (queues, slab) stays. */
static void renew(struct worker *w)
{
	w->mail.first = NULL;
	w->mail.last = &w->mail.first;
	w->yielded.first = NULL;
	w->yielded.last = &w->yielded.first;
	w->rng = (uint64_t)hive__clock_now() ^ (uint64_t)w->index << 48;
	hive__mark_searching(w, false);
	w->announced = w->busy = w->found = w->silenced = w->started = w->core_failed = w->abandoned = false;
	w->in_sight = false;
	w->busy_beats = w->tick = w->thwarted = w->put_awaited = 0;
	w->newest_run = 0;
	w->events_seen = load_relaxed(&w->stats.events);
	store_relaxed(&w->stats.budget, (uint32_t)w->setup.local_budget);
	w->take_lane = w->index;
	w->wait_ewma_ns = w->setup.spin_ns * 20;
	w->no_spin_until_ns = w->spin_penalty_ns = w->next_move_ns = w->timer_wake_ns = w->up_ns = 0;
	w->review_ns = HIVE_FOREVER;
	w->same_cpu_wakes = 0;
	w->helps = 0;
	w->looked_twice = false;
	w->stack_low = NULL;
	hive__settle_place(w);
	store_relaxed(&w->leave, 0u);
	store_relaxed(&w->cancelled,
	              0u); /* delayed_count goes on: a late poster may just be adding and taking back his one */
	store_relaxed(&w->stealable, (uint32_t)w->setup.stealing);
	store_relaxed(&w->shy, (uint32_t)(w->setup.ui || w->setup.keeps_out));
	if (w->setup.ui)
		store_relaxed(&w->hive->shows, 1u);
	w->frame_ns = w->setup.frame_ns > 0 ? w->setup.frame_ns : 0;
	w->frame_limit_ns = HIVE_FOREVER;
	w->frame_end_ns = 0;
	w->frame_part = 0;
	w->outside = false;
	w->generation = (w->generation + 1) & (UINT32_MAX >> ID_GENERATION);
	if (w->generation == 0 || make_id(w) == HIVE_WORKER_MAIN)
		w->generation = 1;
}

static bool is_starting(uint32_t state)
{
	return state == HIVE_STARTING || state == HIVE_UNDOING;
}

/* Takes registry_lock when no start is under way: that one counts and launches without it. */
void hive__lock_settled(struct hive *hive)
{
	for (;;) {
		hive__wait_word(hive, &hive->state, HIVE_STARTING, HIVE_FOREVER);
		hive__wait_word(hive, &hive->state, HIVE_UNDOING, HIVE_FOREVER);
		lock_acquire(&hive->registry_lock);
		if (!is_starting(load_relaxed(&hive->state)))
			return;
		lock_release(&hive->registry_lock);
	}
}

/* Under registry_lock. A slot, new or used, set up but not yet live. */
static int take_slot(struct hive *hive, const struct hive_worker_options *o, struct worker **ret_worker)
{
	struct workers *set = o->kind == HIVE_WORKER_COMPUTE ? &hive->compute : &hive->io;
	uint64_t capacity = (uint64_t)(o->local_capacity ? o->local_capacity : TUNE_LOCAL_CAPACITY);
	bool oldest = hive__oldest_first(hive, o);
	struct worker *w = find_free_slot(set, capacity, oldest);
	bool is_new = !w;
	int r;

	if (is_new) {
		if (hive__limit(set) == HIVE_WORKERS_MAX)
			return -ENOSPC;
		if (hive->pin_cpus) /* the system gives memory where it is first written: make_worker() writes zeros */
			hive__thread_move_to(hive__pin_of(hive, o->kind, hive__limit(set)));
		w = make_worker(hive, o->kind, hive__limit(set), capacity, oldest);
		if (!w)
			return -ENOMEM;
	}
	r = hive__setup_fill(hive, w, o);
	if (r < 0) {
		if (is_new)
			hive__worker_free(w);
		return r;
	}
	renew(w);
	if (is_new) {
		slots_publish(set, w->index, w);
	} else {
		inbox_open(&w->inbox);
		mesh_open(&w->mesh);
		tray_open(&w->placed);
	}
	w->life = WORKER_ATTACHED;
	w->self_id = make_id(w);
	slots_name(&w->id, w->self_id);
	*ret_worker = w;
	return 0;
}

static void set_live(struct worker *w, bool live)
{
	slots_set_live(hive__set_of(w), w->index, live);
	if (w->kind == HIVE_WORKER_IO &&
	    !w->setup.keeps_out) /* a look at it may be late: who leaves last tells the main worker */
		add_relaxed(&w->hive->takers, live ? 1u : (uint32_t)-1);
}

static void free_slot(struct worker *w)
{
	slots_unname(&w->id);
	w->life = WORKER_FREE;
}

/* While the hive runs: the thread starts outside the lock, which its core needs. */
static int attach_running(struct hive *hive, struct worker *w)
{
	int r;

	add_seq(&hive->alive, 1u); /* ALIVE-1 (pairs with ALIVE-2) */
	if (w->kind == HIVE_WORKER_COMPUTE)
		add_seq(&hive->compute_alive, 1u); /* ALIVE-3 (pairs with ALIVE-4) */
	lock_release(&hive->registry_lock);
	r = hive__launch(w);
	if (r < 0) /* a late poster to the slot's last owner may have found it open */
		hive__hand_over_unstarted(w);
	lock_acquire(&hive->registry_lock);
	if (r == 0) {
		w->life = WORKER_RUNNING;
		set_live(w, true);
		return 0;
	}
	free_slot(w);
	if (w->kind == HIVE_WORKER_COMPUTE)
		sub_seq(&hive->compute_alive, 1u); /* ALIVE-3 (pairs with ALIVE-4) */
	sub_seq(&hive->alive, 1u);                 /* ALIVE-1 (pairs with ALIVE-2) */
	hive__kick(load_relaxed(&hive->main));
	return r;
}

int hive_attach(struct hive *hive, const struct hive_worker_options *options, uint32_t *ret_worker)
{
	static const struct hive_worker_options zeros;
	const struct hive_worker_options *o = options ? options : &zeros;
	struct worker *w;
	int r = hive ? hive__setup_check(o) : -EINVAL;

	if (r < 0)
		return r;
	if (forkmark_is_child(hive->mark))
		return -EOWNERDEAD;
	hive__lock_settled(hive);
	r = load_relaxed(&hive->state) >= HIVE_DRAINING ? -ESHUTDOWN : take_slot(hive, o, &w);
	if (r == 0 && load_relaxed(&hive->state) == HIVE_RUNNING)
		r = attach_running(hive, w);
	else if (r == 0)
		set_live(w, true);
	if (r == 0 && o->kind == HIVE_WORKER_IO && !load_relaxed(&hive->main))
		slots_publish_main(&hive->main, w);
	if (r == 0 && ret_worker)
		*ret_worker = w->self_id;
	lock_release(&hive->registry_lock);
	return r;
}

/* Under registry_lock. 0: it may go. */
static int may_detach(struct hive *hive, struct worker *w)
{
	if (!w) /* or it leaves already: then it has no id */
		return -ESRCH;
	if (load_relaxed(&hive->state) >= HIVE_DRAINING)
		return -ESHUTDOWN;
	if (w == load_relaxed(&hive->main))
		return -EBUSY;
	if (w->kind == HIVE_WORKER_COMPUTE && load_relaxed(&hive->compute.count) == 1 &&
	    !levels_are_empty(&hive->compute_pool))
		return -EBUSY;
	return 0;
}

/* Waits for the end of one that was told to leave, and frees the slot. 0 or -EINPROGRESS. */
int hive__see_off(struct hive *hive, struct worker *w, int64_t deadline_ns)
{
	int r = hive__wait_word(hive, &w->gone, 0, deadline_ns); /* GONE-2 (pairs with GONE-1) */

	if (r == 0)
		hive__reap(w);
	lock_acquire(&hive->registry_lock);
	if (r == 0)
		free_slot(w);
	else
		w->abandoned = true;
	lock_release(&hive->registry_lock);
	return r < 0 ? -EINPROGRESS : 0;
}

/* Under registry_lock, for one that may go. It is out of the hive from here on. True: it has a thread, which was told to leave. */
static bool dismiss(struct worker *w)
{
	bool ran = w->life == WORKER_RUNNING;

	slots_unname(&w->id);
	set_live(w, false);
	w->life = WORKER_LEAVING;
	if (ran) {
		store_release(&w->leave, 1u); /* LEAVE-1 (pairs with LEAVE-2) */
		hive__kick(w);
	}
	return ran;
}

/* Takes it out of the hive, without waiting for its end: hive__see_off() is for that, and *ret_leaving says for whom; NULL: it never had a
 * thread, and is gone.                                                                                                   */
int hive__send_away(struct hive *hive, uint32_t worker, struct worker **ret_leaving)
{
	struct worker *w;
	bool ran;
	int r;

	hive__lock_settled(hive);
	w = worker == HIVE_WORKER_MAIN ? load_relaxed(&hive->main) : find(hive, worker);
	r = may_detach(hive, w);
	ran = r == 0 && dismiss(w);
	lock_release(&hive->registry_lock);
	if (r < 0)
		return r;
	*ret_leaving = ran ? w : NULL;
	if (ran)
		return 0;
	hive__hand_over_unstarted(w);
	lock_acquire(&hive->registry_lock);
	free_slot(w);
	lock_release(&hive->registry_lock);
	return 0;
}

int hive_detach(struct hive *hive, uint32_t worker, int64_t deadline_ns)
{
	struct worker *leaving;
	int r;

	if (!hive || worker == HIVE_WORKER_NONE)
		return -EINVAL;
	if (forkmark_is_child(hive->mark))
		return -EOWNERDEAD;
	if (hive__current_in(hive) && deadline_ns > 0)
		return -EDEADLK;
	r = hive__send_away(hive, worker, &leaving);
	return r == 0 && leaving ? hive__see_off(hive, leaving, deadline_ns) : r;
}

static size_t list(struct workers *set, uint32_t *ret_workers, size_t capacity, size_t n)
{
	for (uint32_t i = 0; i < hive__limit(set); i++) {
		uint32_t id = hive__is_live(set, i) ? slots_name_of(&hive__slot(set, i)->id) : HIVE_WORKER_NONE;

		if (id == HIVE_WORKER_NONE)
			continue;
		if (n < capacity)
			ret_workers[n] = id;
		n++;
	}
	return n;
}

size_t hive_workers(const struct hive *hive, uint32_t *ret_workers, size_t capacity)
{
	struct hive *h = (struct hive *)(uintptr_t)hive;
	size_t n;

	if (!hive)
		return 0;
	if (!ret_workers)
		capacity = 0;
	n = list(&h->io, ret_workers, capacity, 0);
	return list(&h->compute, ret_workers, capacity, n);
}
