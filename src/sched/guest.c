/* SPDX-License-Identifier: MIT */
/* Guests: how they get in, how they keep the hive from ending, how they are woken. */
#include "base/thread.h"
#include "sched/guest.h"
#include "sched/internal.h"
#include "sched/step.h"
#include "sched/stir.h"

bool hive__on_worker(void)
{
	return hive__current() != NULL;
}

void *hive__guests(struct hive *hive, enum guests sort)
{
	return load_acquire(&hive->guests[sort]); /* GUEST-1 (pairs with GUEST-2) */
}

void *hive__guests_set(struct hive *hive, enum guests sort, void *guests, const struct guest_ops *ops)
{
	lock_acquire(&hive->registry_lock);
	if (!load_relaxed(&hive->guests[sort])) {
		hive->guest_ops[sort] = ops;
		store_release(&hive->guests[sort], guests); /* GUEST-2 (pairs with GUEST-1) */
	}
	guests = load_relaxed(&hive->guests[sort]);
	lock_release(&hive->registry_lock);
	return guests;
}

const struct memory *hive__guest_memory(struct hive *hive)
{
	return &hive->memory;
}

int hive__guest_door(struct hive *hive)
{
	return hive__door(hive, hive__run_guest);
}

const ATOMIC(uint32_t) *hive__guest_state(struct hive *hive)
{
	return &hive->state;
}

/* The IO worker of this hive that the caller runs on, or NULL. */
static struct worker *here_in(struct hive *hive)
{
	struct worker *w = hive__current_in(hive);

	return w && w->kind == HIVE_WORKER_IO ? w : NULL;
}

/* A worker keeps some holds in hand, so that a fiber more or less is not a write that all workers share. */
static void take_hold(struct worker *w)
{
	if (w->spare_holds == 0) {
		holds_begin(&w->hive->holds, TUNE_HOLDS);
		w->spare_holds = TUNE_HOLDS;
	}
	w->spare_holds--;
}

void hive__hold(struct hive *hive)
{
	struct worker *w = here_in(hive);

	if (w)
		take_hold(w);
	else
		holds_begin(&hive->holds, 1u);
}

/* Holds for what is about to begin. `w`: here. */
static int begin(struct hive *hive, struct worker *w)
{
	if (w) { /* which does not leave meanwhile */
		take_hold(w);
		return 0;
	}
	if (holds_begin_open(&hive->holds, &hive->state, 1u))
		return 0;
	hive__let_end(hive, 1);
	return hive__refuse(hive, 1);
}

int hive__guest_begin(struct hive *hive)
{
	return begin(hive, here_in(hive));
}

void hive__unhold(struct hive *hive)
{
	struct worker *w = here_in(hive);

	if (!w) {
		hive__let_end(hive, 1);
		return;
	}
	if (++w->spare_holds > 2 * TUNE_HOLDS || hive__is_stopping(w))
		hive__return_holds(w);
}

void hive__return_holds(struct worker *w)
{
	uint32_t n = w->spare_holds;

	w->spare_holds = 0;
	if (n > 0)
		hive__let_end(w->hive, n);
}

void hive__run_guest(void *arg)
{
	struct guest *guest = (struct guest *)arg;

	guest->run(guest);
}

struct guest *hive__guest_next(struct guest_place *place)
{
	struct worker *w = hive__worker_of_place(place);
	struct guest *handed = place->handed;
	struct hive_task task;

	if (handed) {
		place->handed = NULL;
		return handed;
	}
	while (step_next(w, &task)) {
		if (task.fn == hive__run_guest) {
			bump(&w->stats.ran, 1);
			local_look_ahead(&w->local, offsetof(struct guest, run));
			return (struct guest *)task.arg;
		}
		hive__run_task(w, task);
	}
	return NULL;
}

static struct hive_task task_of(struct guest *guest)
{
	struct hive_task task = { hive__run_guest, guest };

	return task;
}

static void wrap(struct guest *guest, uint32_t target)
{
	guest->parcel.kind = PARCEL_GUEST;
	guest->parcel.target = target;
	guest->parcel.home = NULL;
	guest->parcel.receipt = NULL;
	guest->parcel.task = task_of(guest);
}

struct parcel *hive__guest_parcel(struct guest *guest, uint32_t target)
{
	wrap(guest, target);
	return &guest->parcel;
}

/* To one worker, by a lane or by its inbox. False: it is closed. */
static bool send(struct worker *to, struct guest *guest, uint32_t target)
{
	if (to->hive->mesh && hive__send_by_lane(to, target, task_of(guest)))
		return true;
	return hive__send_parcel(to, hive__guest_parcel(guest, target));
}

static bool push_local(struct worker *w, struct guest *guest)
{
	if (!local_push(&w->local, task_of(guest)) && hive__post_to_full(w, task_of(guest), false) < 0)
		return false;
	bump(&w->stats.posted, 1);
	if (w->setup.stealing)
		hive__wake_if_needed(w->hive, &w->hive->io);
	return true;
}

static void keep_private(struct worker *w, struct guest *guest)
{
	wrap(guest, HIVE_WORKER_NONE);
	hive__mail_append(w, &guest->parcel);
	bump(&w->stats.posted, 1);
}

static void ready_here(struct worker *w, struct guest *guest)
{
	if (!push_local(w, guest))
		keep_private(w, guest);
}

/* They run in their order. What finds no room, and no memory to make some, stays here. */
void hive__share_brought(struct worker *w)
{
	uint32_t n = w->brought_count;

	w->brought_count = 0;
	while (local_room(&w->local) < n)
		if (hive__spill(w) <= 0)
			break;
	if (local_room(&w->local) < n) {
		for (uint32_t i = 0; i < n; i++)
			keep_private(w, (struct guest *)w->brought[i].arg);
		return;
	}
	local_push_batch(&w->local, w->brought, n);
	bump(&w->stats.posted, n);
	w->unshared = w->setup.stealing; /* see hive__end_search() */
}

/* One atomic step for all of them, in place of one for each. */
void hive__guest_ready_in_turn(struct guest_place *place, struct guest *guest)
{
	struct worker *w = hive__worker_of_place(place);

	if (!w->turning) {
		ready_here(w, guest);
		return;
	}
	w->brought[w->brought_count++] = task_of(guest);
	w->unshared = true;
	if (w->brought_count == TUNE_BROUGHT)
		hive__share_brought(w);
}

/* The main worker's inbox is open until it leaves, and it stays as long as anybody holds. */
static void ready_by_mail(struct worker *to, struct guest *guest)
{
	wrap(guest, HIVE_WORKER_NONE);
	if (!inbox_push(&to->inbox, &guest->parcel.letter))
		CHECK(false);
	hive__wake_if_asleep(to);
}

static bool push_pool(struct hive *hive, struct guest *guest)
{
	if (pool_give(&hive->pool, hive__thread_number(), task_of(guest), false) < 0)
		return false;
	add_relaxed(&hive->readied, 1u);
	hive__wake_if_needed(hive, &hive->io);
	return true;
}

void hive__guest_ready(struct hive *hive, struct guest *guest)
{
	struct worker *w = here_in(hive);

	if (w && w->place.gentle)
		hive__guest_ready_in_turn(&w->place, guest);
	else if (w)
		ready_here(w, guest);
	else if (!push_pool(hive, guest))
		ready_by_mail(hive__main(hive), guest);
}

/* The queue would give it back at once, so it need not go there. */
void hive__guest_hand(struct guest_place *place, struct guest *guest)
{
	struct worker *w = hive__worker_of_place(place);

	if (place->handed || !hive__step_would_take(w)) {
		ready_here(w, guest);
		return;
	}
	place->handed = guest;
	bump(&w->stats.posted, 1);
	bump(&w->stats.ran, 1);
}

bool hive__guest_is_wanted_elsewhere(struct guest_place *place)
{
	struct worker *w = hive__worker_of_place(place);

	return idle_needs_wake(&w->hive->io.idle) && w->setup.stealing &&
	       (w->mail.first || w->yielded.first || local_size(&w->local) > 0);
}

/* This queue costs no atomic step: it is the worker's own, first in, first out, and it waits for the local tasks and the pool. */
struct guest *hive__guest_yield(struct guest_place *place, struct guest *guest)
{
	struct worker *w = hive__worker_of_place(place);

	wrap(guest, HIVE_WORKER_NONE);
	guest->parcel.letter.next = NULL;
	*w->yielded.last = &guest->parcel.letter;
	w->yielded.last = &guest->parcel.letter.next;
	bump(&w->stats.private_tasks, 1);
	bump(&w->stats.posted, 1);
	return hive__step_next_guest(w, guest->run);
}

void hive__guest_move(struct hive *hive, struct guest *guest)
{
	if (!push_pool(hive, guest))
		ready_by_mail(hive__main(hive), guest);
}

static int post(struct hive *hive, struct worker *here, struct guest *guest)
{
	struct hive_task task = task_of(guest);

	if (hive->two_choices && hive__place_task(hive, task))
		return 0;
	if (here)
		return push_local(here, guest) ? 0 : -ENOMEM;
	return hive__post_to_pool(hive, &task, 1);
}

int hive__guest_check_worker(struct hive *hive, uint32_t worker)
{
	if (hive__names_compute(hive, worker))
		return -EINVAL;
	return hive__find_io(hive, worker) ? 0 : -ESRCH;
}

void hive__guest_ready_here(struct guest_place *place, struct guest *guest)
{
	keep_private(hive__worker_of_place(place), guest);
}

bool hive__guest_is_caught_up(struct guest_place *place)
{
	return !hive__worker_of_place(place)->mail.first;
}

struct guest *hive__guest_take(struct guest_place *place, guest_fn *run)
{
	struct worker *w = hive__worker_of_place(place);
	struct guest *guest = w->mail.first ? hive__mail_take_guest(w, run) : NULL;

	if (guest)
		hive__end_search(w);
	return guest;
}

void hive__guest_ready_at(struct hive *hive, struct guest *guest, uint32_t worker)
{
	struct worker *w = hive__find_io(hive, worker);

	if (w && w == hive__current())
		keep_private(w, guest);
	else if (!w || !send(w, guest, worker == HIVE_WORKER_MAIN ? HIVE_WORKER_NONE : worker))
		hive__guest_ready(hive, guest);
}

static int post_at(struct hive *hive, struct worker *here, struct guest *guest, uint32_t worker)
{
	struct worker *w = hive__find_io(hive, worker);

	if (w && w == here) {
		keep_private(w, guest);
		return 0;
	}
	if (w && send(w, guest, worker == HIVE_WORKER_MAIN ? HIVE_WORKER_NONE : worker))
		return 0;
	return post(hive, here, guest); /* it has left, or everybody has */
}

int hive__guest_launch(struct hive *hive, struct guest *guest, uint32_t worker)
{
	struct worker *here = here_in(hive);
	int r = begin(hive, here);

	if (r < 0)
		return r;
	r = worker == HIVE_WORKER_NONE ? post(hive, here, guest) : post_at(hive, here, guest, worker);
	if (r < 0)
		hive__unhold(hive);
	return r;
}

bool hive__guest_has_compute(struct hive *hive)
{
	return load_relaxed(&hive->compute.count) > 0;
}

int hive__guest_compute(struct hive *hive, struct guest *guest)
{
	return hive__guest_compute_at(hive, guest, HIVE_PRIORITY_NORMAL);
}

int hive__guest_compute_at(struct hive *hive, struct guest *guest, enum hive_priority level)
{
	struct hive_task task = task_of(guest);
	int r;

	if (!hive__guest_has_compute(hive))
		return -ENOTSUP;
	r = levels_give_many(&hive->compute_pool, level, hive__thread_number(), &task, 1, false);
	if (r < 0)
		return r;
	add_relaxed(&hive->readied, 1u);
	hive__wake_if_needed(hive, &hive->compute);
	if (state_ends_waits(&hive->state)) { /* the compute workers may have left: others look after what is there */
		lock_acquire(&hive->registry_lock);
		hive__kick_all(hive);
		lock_release(&hive->registry_lock);
	}
	return 0;
}

void hive__guest_await(struct hive *hive, int32_t threads)
{
	add_relaxed(&hive->awaited, (uint32_t)threads);
}

void hive__guest_warn(const struct hive *hive, const char *line)
{
	hive__warn(hive, "%s", line);
}

int hive__guest_wait_word(struct hive *hive, ATOMIC(uint32_t) *word, uint32_t value, int64_t deadline_ns)
{
	return hive__wait_word(hive, word, value, deadline_ns);
}

/* On a worker that has seen that nothing may begin any more. */
void hive__stop_guests(struct worker *w)
{
	if (w->told_guests)
		return;
	w->told_guests = true;
	for (int sort = 0; sort < GUESTS_SORTS; sort++) {
		void *guests = hive__guests(w->hive, (enum guests)sort);

		if (guests)
			w->hive->guest_ops[sort]->stop(guests, w->place.cache[sort]);
	}
}

/* The worker leaves, others stay. */
void hive__move_guests(struct worker *w)
{
	for (int sort = 0; sort < GUESTS_SORTS; sort++)
		if (w->place.cache[sort] && w->hive->guest_ops[sort]->move)
			w->hive->guest_ops[sort]->move(hive__guests(w->hive, (enum guests)sort), w->place.cache[sort]);
}

/* The worker ends. */
void hive__place_leave(struct worker *w)
{
	hive__return_holds(w);
	for (int sort = 0; sort < GUESTS_SORTS; sort++) {
		if (w->place.cache[sort])
			w->hive->guest_ops[sort]->leave(hive__guests(w->hive, (enum guests)sort), w->place.cache[sort]);
		w->place.cache[sort] = NULL;
	}
}

void hive__place_stirs(struct guest_place *place, bool user_code)
{
	stirs(hive__worker_of_place(place), user_code);
}

void hive__place_busy(struct guest_place *place)
{
	hive__end_search(hive__worker_of_place(place));
}

uint64_t hive__guest_random(struct hive *hive)
{
	return hive__random(hive);
}

struct hive_core *hive__place_core(struct guest_place *place)
{
	return hive__worker_of_place(place)->core;
}

uint32_t hive__place_worker(struct guest_place *place)
{
	return hive__worker_of_place(place)->self_id;
}
