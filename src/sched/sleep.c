/* SPDX-License-Identifier: MIT */
/* The only sleep protocol:
 *
 *     announce → look again → block → retract
 *
 * Between looking again and blocking the worker commits itself (parking.h): who claims it before needs no system call to wake it.
 * Nothing that can create work may stand between "look again" and "block". Rejected: deciding to sleep and then
 * announcing it (a post in between sleeps for ever); a flag with release and acquire (store and load may still pass
 * each other).                                                                                                     */
#include "base/thread.h"
#include "sched/internal.h"
#include "sched/stir.h"

/* What nobody else can or will do for this worker. */
bool hive__own_work(struct worker *w)
{
	struct fork_stack *stack = load_relaxed(&w->forks);

	return w->mail.first || w->yielded.first || w->outbox_count > 0 || local_size(&w->local) > 0 ||
	       !hive__no_letters(w) || tray_length(&w->placed) > 0 || (stack && forks_length(&stack->forks) > 0);
}

/* What it could take from the others: nothing once nothing may begin, or it would wait awake for those that still run. */
bool hive__work_elsewhere(struct worker *w)
{
	struct workers *set = &w->hive->io;

	if (hive__is_halted(w))
		return false;
	if (w->kind == HIVE_WORKER_COMPUTE)
		return !levels_are_empty(&w->hive->compute_pool) || hive__call_for_forks(w);
	if (!w->outside && !pool_is_empty(&w->hive->pool))
		return true;
	if (!w->setup.stealing || w->setup.steal_attempts <= 0)
		return false;
	for (uint32_t i = 0; i < hive__limit(set); i++) {
		struct worker *victim = hive__slot(set, i);

		if (victim != w && load_relaxed(&victim->stealable) && hive__has_loot(victim))
			return true;
	}
	return hive__call_for_forks(w);
}

/* 0: there is something to do at once. HIVE_FOREVER: only a wake can bring something. */
int64_t hive__time_to_wait(struct worker *w)
{
	int64_t due = hive__next_due(w), deadline, now;
	struct hive *hive = w->hive;

	if (hive__state(hive) >= HIVE_DRAINING) {
		deadline = load_relaxed(&hive->stop_deadline_ns);
		if (load_relaxed(&hive->state) == HIVE_DRAINING && deadline < due)
			due = deadline;
	}
	if (due == HIVE_FOREVER)
		return HIVE_FOREVER;
	now = hive__now(hive);
	if (!hive->exact_clock && due > now && due < w->timer_wake_ns + TUNE_TIMER_GAP_NS)
		due = w->timer_wake_ns + TUNE_TIMER_GAP_NS;
	return due > now ? due - now : 0;
}

/* Who keeps out of the pool sleeps where no post to it looks for sleepers, and does not count as a searcher when it is woken. What it may have
 * been searching for until now is told to the others.                                                                   */
static void choose_bed(struct worker *w)
{
	bool outside = hive__is_outside(w);

	if (outside)
		hive__end_search(w);
	w->outside = outside;
}

/* Announces, looks at what others have. While others search, what they find is their business. */
static void announce_and_look(struct worker *w)
{
	uint32_t others, cpu = hive__cpu(w->hive);

	hive__note_place(w, cpu);
	if (w->setup.keeps_out)
		choose_bed(w);
	parking_begin(&w->parking);
	if (w->outside)
		others = idle_announce(&w->hive->outside, w->index, false, cpu);
	else
		others = idle_announce(&hive__set_of(w)->idle, w->index, w->searching,
		                       load_relaxed(&w->shy) ? (uint32_t)IDLE_LAST : cpu);
	w->announced = true;
	hive__mark_searching(w, false);
	w->found = others == 0 && hive__work_elsewhere(w);
	w->in_sight = w->found;
}

/* A compute worker whose task waits for others: it is as good as any that sleeps, but does not leave. True: it may block now. */
bool hive__fall_asleep_in_task(struct worker *w)
{
	announce_and_look(w);
	if (!w->found && parking_commit(&w->parking)) {
		hive__trail(w, TRAIL_SLEEP, 0);
		return true;
	}
	hive__get_up(w);
	return false;
}

/* Announces, looks again. True: it may block now; false: it is up again, with something to do. But who has to leave may not wait for what others
 * find, for nobody would tell it.                                                                                        */
bool hive__fall_asleep(struct worker *w)
{
	enum parting parting;

	announce_and_look(w);
	if (!w->found && !hive__own_work(w)) {
		parting = hive__parting(w);
		w->found = parting == PARTING_BUSY;
		if ((parting == PARTING_NONE || parting == PARTING_WAIT) && parking_commit(&w->parking)) {
			hive__trail(w, TRAIL_SLEEP, 0);
			return true;
		}
	}
	hive__get_up(w);
	return false;
}

/* Retracts the announcement, if there is one. A claimed worker owes its waker a search. */
void hive__get_up(struct worker *w)
{
	bool slept_outside = w->outside;

	if (!w->announced)
		return;
	w->announced = w->outside = false;
	parking_end(&w->parking);
	if (!idle_retract(slept_outside ? &w->hive->outside : &hive__set_of(w)->idle, w->index)) {
		hive__trail(w, TRAIL_UP, 0);
		return;
	}
	hive__trail(w, TRAIL_CLAIMED, 0);
	w->claims++;
	if (slept_outside)
		return;
	w->looked_twice = false; /* if for a fork, that push has let others pass again */
	hive__mark_searching(w, true);
}

/* The trail tells of a turn that it brought something, before user code runs, and not how much: else nothing else would fit in. */
void hive__hear(struct worker *w)
{
	w->still = false;
	hive__get_up(w);
	hive__trail(w, TRAIL_EVENT, 0);
}

/* Learns how long posts keep it waiting. Measured to the waker's stamp: measured to the own waking, a short wait would
 * look as long as a wake-up takes, and it would never be worth spinning.                                             */
void hive__note_wait(struct worker *w, int64_t began_ns)
{
	int64_t longest = w->setup.spin_ns * 20, waited;

	if (w->setup.spin_ns <= 0 || !w->searching)
		return;
	waited = load_relaxed(&w->wake_ns) - began_ns;
	if (waited < 0)
		waited = 0;
	if (waited > longest)
		waited = longest;
	w->wait_ewma_ns += (waited - w->wait_ewma_ns) / 8;
}

/* A CPU must be left over for whoever is going to post: workers that run, this one included, and the poster. */
static bool cpu_to_spare(const struct worker *w)
{
	const struct hive *hive = w->hive;
	uint32_t workers = load_relaxed(&hive->io.count) + load_relaxed(&hive->compute.count);
	uint32_t asleep = idle_sleepers(load_relaxed(&hive->io.idle.count)) +
	                  idle_sleepers(load_relaxed(&hive->compute.idle.count)) +
	                  idle_sleepers(load_relaxed(&hive->outside.count));

	return workers < asleep + hive->cpus;
}

/* On a machine that is full, a wake-up across CPUs waits for whoever runs there; on the waker's own CPU it is let in at once.
 * So after a row of wakes from another CPU the worker moves over, and then stays away from moving for a while.            */
void hive__follow_waker(struct worker *w)
{
	int64_t now;

	if (!w->searching || w->hive->exact_clock || w->setup.cpu_count > 0)
		return;
	if (load_relaxed(&w->waker_cpu) == hive__cpu(w->hive) || cpu_to_spare(w)) {
		w->far_wakes = 0;
		return;
	}
	if (++w->far_wakes < TUNE_FAR_WAKES)
		return;
	now = hive__now(w->hive);
	if (now < w->next_move_ns)
		return;
	w->far_wakes = 0;
	w->next_move_ns = now + HIVE_MS(50);
	hive__thread_move_to(load_relaxed(&w->waker_cpu));
}

/* Spinning on the CPU of the one who posts keeps him from posting. After many such waits the worker steps aside once. */
static bool poster_is_elsewhere(struct worker *w, int64_t now)
{
	if (load_relaxed(&w->waker_cpu) != hive__cpu(w->hive)) {
		w->same_cpu_wakes = 0;
		return true;
	}
	if (++w->same_cpu_wakes < 32 || now < w->next_move_ns || w->setup.cpu_count > 0)
		return false;
	w->same_cpu_wakes = 0;
	w->next_move_ns = now + HIVE_MS(100);
	return hive__thread_step_aside();
}

/* Posts come soon after each other; but is this a good moment and a good place? True: it counts as a searcher now. */
static bool should_spin(struct worker *w, int64_t now)
{
	if (now < w->no_spin_until_ns || !cpu_to_spare(w) || !poster_is_elsewhere(w, now))
		return false;
	if (!w->searching && !idle_search_begin(&w->hive->io.idle, load_relaxed(&w->hive->io.count)))
		return false;
	hive__mark_searching(w, true);
	return true;
}

/* A jump of the clock means that somebody else had the CPU: do not spin for a while, longer each time. */
static void note_jump(struct worker *w, int64_t now)
{
	w->spin_penalty_ns = w->spin_penalty_ns ? w->spin_penalty_ns * 2 : HIVE_MS(1);
	if (w->spin_penalty_ns > HIVE_MS(128))
		w->spin_penalty_ns = HIVE_MS(128);
	w->no_spin_until_ns = now + w->spin_penalty_ns;
}

/* Looks at the cheap signs often and at everything now and then. */
static bool something_turned_up(struct worker *w)
{
	for (int i = 0; i < 8; i++) {
		if (!hive__no_letters(w) || !pool_looks_empty(&w->hive->pool) || tray_length(&w->placed) > 0)
			return true;
		cpu_pause();
	}
	w->in_sight = hive__work_elsewhere(w);
	return w->in_sight;
}

/* True: something to do turned up while it waited awake. It counts as a searcher meanwhile, so posters make no system
 * call for it.                                                                                                       */
bool hive__spin(struct worker *w)
{
	int64_t began, now, last, due;

	if (w->setup.spin_ns <= 0 || w->wait_ewma_ns >= w->setup.spin_ns || w->hive->exact_clock || w->silenced)
		return false;
	now = began = hive__now(w->hive);
	due = hive__next_due(w);
	if (!should_spin(w, began))
		return false;
	bump(&w->stats.spins, 1);
	while (now - began < w->setup.spin_ns && now < due) {
		if (something_turned_up(w)) {
			w->wait_ewma_ns += (now - began - w->wait_ewma_ns) / 8;
			w->spin_penalty_ns = 0;
			return true;
		}
		last = now;
		now = hive__now(w->hive);
		if (now - last > HIVE_US(200)) {
			note_jump(w, now);
			break;
		}
	}
	w->wait_ewma_ns += (w->setup.spin_ns * 4 - w->wait_ewma_ns) / 8;
	return false;
}
