/* SPDX-License-Identifier: MIT */
/* The simulator: a host without threads. It keeps the virtual workers, decides by its seed which of them makes the next beat,
 * and moves time only when nobody has anything to do.                                                                     */
#include "base/memory.h"
#include "base/rng.h"

#include <rophive/hive.h>
#include <rophive/sim.h>

struct virtual_worker {
	uint32_t id;
	hive_step_fn *step; /* NULL: it has left */
	void *step_arg;
	int64_t due_ns;  /* when it wants to be called, unless it is woken before */
	int64_t busy_ns; /* until when its last beat takes */
	bool woken;
	bool inside; /* a step of it is under way */
};

struct hive_sim {
	struct hive_host host;
	struct memory memory;
	struct virtual_worker *workers;
	size_t count, capacity;
	int64_t now_ns;
	int64_t local_ns; /* how late it is for whose beat is under way, if that is later than now_ns */
	int64_t beat_ns;
	uint32_t depth; /* beats under way: one inside another when a task waits */
	uint64_t rng, hash, beats;
	uint32_t fail_percent, spurious_percent;
	int (*cpu_distance)(void *cpu_arg, uint32_t a, uint32_t b);
	void *cpu_arg;
};

static uint32_t draw(struct hive_sim *sim, uint32_t below)
{
	return rng_below(rng_next(&sim->rng), below);
}

static void note(struct hive_sim *sim, uint64_t what)
{
	sim->hash = rng_mix(sim->hash ^ what) + 0x9e3779b97f4a7c15u;
}

static int64_t sim_now(void *arg)
{
	const struct hive_sim *sim = (const struct hive_sim *)arg;

	return sim->local_ns > sim->now_ns ? sim->local_ns : sim->now_ns;
}

static int64_t later(int64_t now_ns, int64_t delay_ns)
{
	return delay_ns > HIVE_FOREVER - now_ns ? HIVE_FOREVER : now_ns + delay_ns;
}

static uint64_t sim_random(void *arg, uint32_t worker)
{
	(void)worker;
	return rng_next(&((struct hive_sim *)arg)->rng);
}

static void *sim_allocate(void *arg, void *old, size_t bytes)
{
	struct hive_sim *sim = (struct hive_sim *)arg;

	if (bytes > 0 && sim->beats > 0 && sim->fail_percent > 0 && draw(sim, 100) < sim->fail_percent)
		return NULL;
	return hive__memory_system(NULL, old, bytes);
}

static void sim_wake(void *arg, uint32_t worker)
{
	struct hive_sim *sim = (struct hive_sim *)arg;

	note(sim, worker);
	for (size_t i = 0; i < sim->count; i++)
		if (sim->workers[i].id == worker)
			sim->workers[i].woken = true;
}

static int sim_cpu_distance(void *arg, uint32_t a, uint32_t b)
{
	struct hive_sim *sim = (struct hive_sim *)arg;

	return sim->cpu_distance(sim->cpu_arg, a, b);
}

static int make_room(struct hive_sim *sim)
{
	size_t capacity = sim->capacity ? sim->capacity * 2 : 16;
	struct virtual_worker *workers;

	if (sim->count < sim->capacity)
		return 0;
	workers = (struct virtual_worker *)hive__memory_new(&sim->memory, capacity * sizeof *workers);
	if (!workers)
		return -ENOMEM;
	for (size_t i = 0; i < sim->count; i++)
		workers[i] = sim->workers[i];
	hive__memory_free(&sim->memory, sim->workers);
	sim->workers = workers;
	sim->capacity = capacity;
	return 0;
}

static int sim_step_start(void *arg, uint32_t worker, hive_step_fn *step, void *step_arg)
{
	struct hive_sim *sim = (struct hive_sim *)arg;
	int r = make_room(sim);

	if (r < 0)
		return r;
	sim->workers[sim->count++] = (struct virtual_worker){ worker, step, step_arg, sim->now_ns, 0, false, false };
	return 0;
}

static void forget(struct hive_sim *sim, size_t at)
{
	sim->workers[at] = sim->workers[--sim->count];
}

static void sim_step_stop(void *arg, void *step_arg)
{
	struct hive_sim *sim = (struct hive_sim *)arg;

	for (size_t i = 0; i < sim->count; i++)
		if (sim->workers[i].step_arg == step_arg) {
			forget(sim, i);
			return;
		}
}

/* A beat, and when it ends: the time that it spends is its worker's own. */
static int step_worker(struct hive_sim *sim, size_t at, int64_t *ret_wait_ns, int64_t *ret_end_ns)
{
	int64_t outer_ns = sim->local_ns;
	int r;

	sim->local_ns = sim->now_ns;
	sim->depth++;
	r = sim->workers[at].step(sim->workers[at].step_arg, ret_wait_ns);
	sim->depth--;
	*ret_end_ns = sim_now(sim);
	sim->local_ns = outer_ns;
	return r;
}

static void beat(struct hive_sim *sim, size_t at)
{
	void *step_arg = sim->workers[at].step_arg;
	uint32_t id = sim->workers[at].id;
	int64_t wait_ns = 0, end_ns;
	int r;

	if (sim->workers[at].inside || sim->workers[at].busy_ns > sim->now_ns)
		return; /* a task of its waits, and that is what we are called for; or it is at it */
	sim->workers[at].inside = true;
	sim->workers[at].woken = false;
	sim->beats++;
	r = step_worker(sim, at, &wait_ns, &end_ns);
	note(sim, (uint64_t)id << 32 ^ (uint64_t)sim->now_ns ^ (uint64_t)wait_ns ^ (uint64_t)(int64_t)r);
	for (at = 0; at < sim->count && sim->workers[at].step_arg != step_arg; at++)
		; /* workers may have been attached meanwhile, and others may have left */
	if (at == sim->count)
		return;
	sim->workers[at].inside = false;
	sim->workers[at].busy_ns = later(end_ns, sim->beat_ns);
	if (r < 0)
		forget(sim, at);
	else
		sim->workers[at].due_ns = later(end_ns, wait_ns);
}

/* When it makes its next beat, as far as one knows by now. */
static int64_t ready_ns(const struct virtual_worker *w)
{
	int64_t due = w->woken ? 0 : w->due_ns;

	return w->inside ? HIVE_FOREVER : due > w->busy_ns ? due : w->busy_ns;
}

static bool is_ready(const struct hive_sim *sim, size_t at)
{
	return ready_ns(&sim->workers[at]) <= sim->now_ns;
}

/* One beat of a random worker that wants one; now and then of one that does not. False: nobody wants any. */
static bool beat_somebody(struct hive_sim *sim)
{
	size_t ready = 0;
	uint32_t chosen;

	for (size_t i = 0; i < sim->count; i++)
		ready += is_ready(sim, i);
	if (ready == 0)
		return false;
	if (sim->beat_ns == 0 && draw(sim, 100) < sim->spurious_percent) {
		beat(sim, draw(sim, (uint32_t)sim->count));
		return true;
	}
	chosen = draw(sim, (uint32_t)ready);
	for (size_t i = 0; i < sim->count; i++) {
		if (is_ready(sim, i) && chosen-- == 0) {
			beat(sim, i);
			break;
		}
	}
	return true;
}

/* Everybody looks at the system once more, without waiting. True: that gave somebody something to do. */
static bool beat_sleepers(struct hive_sim *sim)
{
	for (size_t i = 0; i < sim->count; i++) {
		beat(sim, i);
		for (size_t j = 0; j < sim->count; j++)
			if (is_ready(sim, j))
				return true;
	}
	return false;
}

static int64_t next_due(const struct hive_sim *sim)
{
	int64_t due = HIVE_FOREVER;

	for (size_t i = 0; i < sim->count; i++)
		if (ready_ns(&sim->workers[i]) < due)
			due = ready_ns(&sim->workers[i]);
	return due;
}

/* Lets something happen that is due until `limit`. False: there is nothing. */
static bool happen(struct hive_sim *sim, int64_t limit_ns)
{
	int64_t due;

	if (beat_somebody(sim) || (sim->beat_ns == 0 && beat_sleepers(sim)))
		return true;
	due = next_due(sim);
	if (due == HIVE_FOREVER || due > limit_ns)
		return false;
	sim->now_ns = due;
	return true;
}

static int sim_step_wait(void *arg, int64_t deadline_ns)
{
	struct hive_sim *sim = (struct hive_sim *)arg;

	if (happen(sim, deadline_ns))
		return 0;
	if (deadline_ns == HIVE_FOREVER)
		return -EDEADLK;
	sim->now_ns = deadline_ns;
	return -ETIMEDOUT;
}

int hive_sim_create(const struct hive_sim_options *options, struct hive_sim **ret_sim)
{
	static const struct hive_sim_options zeros;
	const struct hive_sim_options *o = options ? options : &zeros;
	struct memory memory = { hive__memory_system, NULL };
	struct hive_sim *sim;

	for (size_t i = 0; i < sizeof o->reserved / sizeof *o->reserved; i++)
		if (o->reserved[i])
			return -EINVAL;
	if (!ret_sim || o->fail_percent > 100 || o->spurious_percent > 100 || o->beat_ns < 0)
		return -EINVAL;
	sim = (struct hive_sim *)hive__memory_new(&memory, sizeof *sim);
	if (!sim)
		return -ENOMEM;
	sim->memory = memory;
	sim->rng = rng_mix(o->seed + 1);
	sim->fail_percent = o->fail_percent;
	sim->spurious_percent = o->spurious_percent ? o->spurious_percent : 3;
	sim->beat_ns = o->beat_ns;
	sim->host = (struct hive_host){ .arg = sim,
		                        .now = sim_now,
		                        .random = sim_random,
		                        .allocate = sim_allocate,
		                        .wake = sim_wake,
		                        .step_start = sim_step_start,
		                        .step_stop = sim_step_stop,
		                        .step_wait = sim_step_wait };
	sim->cpu_distance = o->cpu_distance;
	sim->cpu_arg = o->cpu_arg;
	if (o->cpu_distance)
		sim->host.cpu_distance = sim_cpu_distance;
	hive_core_find("poll", &sim->host.core);
	*ret_sim = sim;
	return 0;
}

const struct hive_host *hive_sim_host(struct hive_sim *sim)
{
	return sim ? &sim->host : NULL;
}

int64_t hive_sim_advance(struct hive_sim *sim, int64_t delay_ns)
{
	uint64_t before;
	int64_t limit;

	if (!sim)
		return -EINVAL;
	before = sim->beats;
	limit = delay_ns < 0 ? sim->now_ns : later(sim->now_ns, delay_ns);
	while (happen(sim, limit))
		;
	if (limit != HIVE_FOREVER)
		sim->now_ns = limit;
	return (int64_t)(sim->beats - before);
}

int hive_sim_spend(struct hive_sim *sim, int64_t spent_ns)
{
	if (!sim || spent_ns < 0)
		return -EINVAL;
	if (sim->depth == 0)
		return -EPERM;
	sim->local_ns = later(sim_now(sim), spent_ns);
	return 0;
}

uint64_t hive_sim_hash(const struct hive_sim *sim)
{
	return sim ? sim->hash : 0;
}

int hive_sim_destroy(struct hive_sim *sim)
{
	struct memory memory;

	if (!sim)
		return 0;
	if (sim->count > 0)
		return -EBUSY;
	memory = sim->memory;
	hive__memory_free(&memory, sim->workers);
	hive__memory_free(&memory, sim);
	return 0;
}
