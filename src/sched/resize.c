/* SPDX-License-Identifier: MIT */
/* More workers, or fewer: hive_resize(), and following the CPUs that we are given. One at a time changes the number of workers this way;
 * hive_attach() and hive_detach() may come between, and then the last word is theirs.                                     */
#include <stdio.h>
#include <string.h>

#include "base/futex.h"
#include "sched/internal.h"

static int keep_template(struct hive *hive, struct worker_template *t, const struct hive_worker_options *options,
                         enum hive_worker_kind kind)
{
	if (options)
		t->options = *options;
	t->options.kind = kind;
	if (t->options.name) {
		snprintf(t->name, sizeof t->name, "%s", t->options.name);
		t->options.name = t->name;
	}
	if (t->options.cpu_count == 0)
		return 0;
	t->cpus = (uint16_t *)hive__memory_new(&hive->memory, t->options.cpu_count * sizeof *t->cpus);
	if (!t->cpus)
		return -ENOMEM;
	memcpy(t->cpus, t->options.cpus, t->options.cpu_count * sizeof *t->cpus);
	t->options.cpus = t->cpus;
	return 0;
}

/* Create. What the user wrote down for workers to come may be gone when they come. 0 or -ENOMEM. */
int hive__keep_templates(struct hive *hive, const struct hive_options *options)
{
	int r = keep_template(hive, &hive->templates[HIVE_WORKER_IO], options->io, HIVE_WORKER_IO);

	return r < 0 ? r
	             : keep_template(hive, &hive->templates[HIVE_WORKER_COMPUTE], options->compute,
	                             HIVE_WORKER_COMPUTE);
}

void hive__free_templates(struct hive *hive)
{
	hive__memory_free(&hive->memory, hive->templates[HIVE_WORKER_IO].cpus);
	hive__memory_free(&hive->memory, hive->templates[HIVE_WORKER_COMPUTE].cpus);
}

int hive__attach_some(struct hive *hive, enum hive_worker_kind kind, int32_t n)
{
	int r = 0;

	if (n == HIVE_AUTO)
		n = (int32_t)hive->cpus;
	while (r == 0 && n-- > 0)
		r = hive_attach(hive, &hive->templates[kind].options, NULL);
	return r;
}

static struct workers *set_of_kind(struct hive *hive, enum hive_worker_kind kind)
{
	return kind == HIVE_WORKER_COMPUTE ? &hive->compute : &hive->io;
}

/* 0: it is ours. -ETIMEDOUT: somebody else is at it. */
static int begin_resize(struct hive *hive, int64_t deadline_ns)
{
	uint32_t nobody = 0;
	int r = 0;

	while (r == 0 && !cas_acquire(&hive->resizing, &nobody, 1u)) { /* RESIZE-1 (pairs with RESIZE-2) */
		r = hive__wait_word(hive, &hive->resizing, 1, deadline_ns);
		nobody = 0;
	}
	return r;
}

static void end_resize(struct hive *hive)
{
	store_release(&hive->resizing, 0u); /* RESIZE-2 (pairs with RESIZE-1) */
	hive__futex_wake(&hive->resizing, INT32_MAX);
}

struct leavers {
	uint64_t bits[SLOTS_WORDS]; /* slots whose end is to be seen */
};

/* The latest slot that takes part and is not the main worker's; HIVE_WORKER_NONE: there is none. */
static uint32_t last_of(struct hive *hive, struct workers *set)
{
	for (uint32_t i = hive__limit(set); i-- > 0;) {
		struct worker *w = hive__slot(set, i);
		uint32_t id = hive__is_live(set, i) && w != hive__main(hive) ? slots_name_of(&w->id) : HIVE_WORKER_NONE;

		if (id != HIVE_WORKER_NONE)
			return id;
	}
	return HIVE_WORKER_NONE;
}

/* Everybody is told first, and seen off later: they leave at the same time. */
static int dismiss_some(struct hive *hive, struct workers *set, uint32_t wanted, struct leavers *leavers)
{
	while (load_relaxed(&set->count) > wanted) {
		uint32_t id = last_of(hive, set);
		struct worker *w;
		int r = id == HIVE_WORKER_NONE ? 0 : hive__send_away(hive, id, &w);

		if (r == -ESRCH) /* somebody else has just detached it */
			continue;
		if (r < 0 || id == HIVE_WORKER_NONE)
			return r;
		if (w)
			leavers->bits[w->index / 64] |= (uint64_t)1 << (w->index % 64);
	}
	return 0;
}

static int see_off_all(struct hive *hive, struct workers *set, const struct leavers *leavers, int64_t deadline_ns)
{
	int r = 0;

	for (uint32_t i = 0; i < hive__limit(set); i++) {
		if (!(leavers->bits[i / 64] & (uint64_t)1 << (i % 64)))
			continue;
		if (hive__see_off(hive, hive__slot(set, i), deadline_ns) < 0)
			r = -EINPROGRESS;
	}
	return r;
}

static int grow(struct hive *hive, enum hive_worker_kind kind, uint32_t wanted)
{
	struct workers *set = set_of_kind(hive, kind);
	int r = 0;

	while (r == 0 && load_relaxed(&set->count) < wanted)
		r = hive_attach(hive, &hive->templates[kind].options, NULL);
	return r;
}

/* Who resizes. New ones come before old ones go: there is always somebody. */
static int resize(struct hive *hive, uint32_t io, uint32_t compute, int64_t deadline_ns)
{
	struct leavers io_leavers = { 0 }, compute_leavers = { 0 };
	int r = grow(hive, HIVE_WORKER_IO, io), seen;

	if (r == 0)
		r = grow(hive, HIVE_WORKER_COMPUTE, compute);
	if (r == 0)
		r = dismiss_some(hive, &hive->io, io, &io_leavers);
	if (r == 0)
		r = dismiss_some(hive, &hive->compute, compute, &compute_leavers);
	seen = see_off_all(hive, &hive->io, &io_leavers, deadline_ns);
	if (seen == 0)
		seen = see_off_all(hive, &hive->compute, &compute_leavers, deadline_ns);
	else
		see_off_all(hive, &hive->compute, &compute_leavers, HIVE_NOWAIT);
	return r < 0 ? r : seen;
}

static uint32_t wanted(int32_t workers, int32_t cpus)
{
	if (workers != HIVE_AUTO)
		return (uint32_t)workers;
	return (uint32_t)(cpus > HIVE_WORKERS_MAX ? HIVE_WORKERS_MAX : cpus);
}

static int check_resize(struct hive *hive, int32_t io, int32_t compute, int64_t deadline_ns)
{
	if (!hive || (io != HIVE_AUTO && io < 1) || compute < HIVE_AUTO || io > HIVE_WORKERS_MAX ||
	    compute > HIVE_WORKERS_MAX)
		return -EINVAL;
	if (forkmark_is_child(hive->mark))
		return -EOWNERDEAD;
	if (hive__current_in(hive) && deadline_ns > 0)
		return -EDEADLK;
	return hive__state(hive) >= HIVE_DRAINING ? -ESHUTDOWN : 0;
}

int hive_resize(struct hive *hive, int32_t io_workers, int32_t compute_workers, int64_t deadline_ns)
{
	int32_t cpus;
	int r = check_resize(hive, io_workers, compute_workers, deadline_ns), started;

	if (r == 0)
		r = begin_resize(hive, deadline_ns);
	if (r < 0)
		return r;
	store_relaxed(&hive->follows[HIVE_WORKER_IO], (uint32_t)(io_workers == HIVE_AUTO));
	store_relaxed(&hive->follows[HIVE_WORKER_COMPUTE], (uint32_t)(compute_workers == HIVE_AUTO));
	cpus = hive__follows(hive) ? hive->count_cpus() : 0;
	r = resize(hive, wanted(io_workers, cpus), wanted(compute_workers, cpus), deadline_ns);
	started = hive__follows(hive) ? hive__monitor_start(hive) : 0;
	end_resize(hive);
	return r == 0 ? started : r;
}

bool hive__follows(struct hive *hive)
{
	return load_relaxed(&hive->follows[HIVE_WORKER_IO]) || load_relaxed(&hive->follows[HIVE_WORKER_COMPUTE]);
}

/* The monitor, which must not wait: what cannot be done now is done when it looks again. */
void hive__follow_cpus(struct hive *hive)
{
	uint32_t io, compute, cpus;

	if (!hive__follows(hive) || begin_resize(hive, HIVE_NOWAIT) < 0)
		return;
	cpus = wanted(HIVE_AUTO, hive->count_cpus());
	io = load_relaxed(&hive->follows[HIVE_WORKER_IO]) ? cpus : load_relaxed(&hive->io.count);
	compute = load_relaxed(&hive->follows[HIVE_WORKER_COMPUTE]) ? cpus : load_relaxed(&hive->compute.count);
	if (hive__state(hive) == HIVE_RUNNING)
		resize(hive, io, compute, HIVE_NOWAIT);
	end_resize(hive);
}
