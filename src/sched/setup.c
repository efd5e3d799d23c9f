/* SPDX-License-Identifier: MIT */
/* Options of a worker: are they sane, and what do the zeros mean. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core_setup.h"
#include "sched/internal.h"

static bool all_zero(const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (words[i] != 0)
			return false;
	return true;
}

static bool at_least(int64_t value, int64_t least, int64_t most)
{
	return value >= least && value <= most;
}

/* NULL is complete: the default. */
bool hive__core_is_complete(const struct hive_core_ops *core)
{
	return !core || (core->name && core->open && core->close && core->turn && core->wake && core->add &&
	                 core->modify && core->remove);
}

static bool parameters_are_sane(const struct hive_worker_options *o)
{
	int32_t c = o->local_capacity;

	return (c == 0 || (at_least(c, 4, 65536) && (c & (c - 1)) == 0)) && o->local_budget >= HIVE_OFF &&
	       o->private_budget >= 0 && o->timer_budget >= 0 && o->pool_probe_interval >= 0 &&
	       at_least(o->pool_batch, 0, TUNE_POOL_BATCH_MAX) && o->steal_attempts >= HIVE_OFF &&
	       o->io_interval >= 0 && o->slice_ns >= 0 && o->spin_ns >= HIVE_OFF &&
	       (o->ring_entries == 0 || at_least(o->ring_entries, 4, 32768)) &&
	       at_least(o->pool_share, HIVE_OFF, TUNE_POOL_BATCH_MAX) && o->frame_ns >= HIVE_OFF;
}

static bool has_manners(const struct hive_worker_options *o)
{
	return o->ui || o->pool_share != 0 || o->frame_ns != 0;
}

/* 0 or -EINVAL. */
int hive__setup_check(const struct hive_worker_options *o)
{
	if (!all_zero(o->reserved, sizeof o->reserved / sizeof *o->reserved))
		return -EINVAL;
	if (o->kind != HIVE_WORKER_IO && o->kind != HIVE_WORKER_COMPUTE)
		return -EINVAL;
	if ((uint32_t)o->order > HIVE_ORDER_OLDEST || (uint32_t)o->victim > HIVE_VICTIM_NEAR)
		return -EINVAL;
	if ((o->kind == HIVE_WORKER_COMPUTE && (o->core || has_manners(o))) || !hive__core_is_complete(o->core) ||
	    !parameters_are_sane(o))
		return -EINVAL;
	if ((uint32_t)o->timers > HIVE_TIMERS_WHEEL || (o->kind == HIVE_WORKER_COMPUTE && o->timers))
		return -EINVAL;
	if (!at_least(o->nice, -20, 19) || !at_least(o->realtime, HIVE_OFF, 99) || (o->cpu_count > 0 && !o->cpus) ||
	    o->cpu_count > UINT16_MAX || (o->realtime > 0 && o->batch))
		return -EINVAL;
	return 0;
}

static int32_t or_default(int32_t value, int32_t fallback)
{
	return value ? value : fallback;
}

/* Once: other workers have the same to say. */
void hive__notice_core(struct hive *hive, const char *wish, int why, const char *other)
{
	uint32_t unsaid = 0;

	if (!cas_relaxed(&hive->core_noticed, &unsaid, 1u))
		return;
	if (why == -ENOENT)
		hive__warn(hive, "core %s is not in this build: %s is used instead", wish, other);
	else
		hive__warn(hive, "core %s is refused by the system (%s): %s is used instead", wish,
		           hive_error_name(why), other);
}

static int find_core(struct hive *hive, const struct hive_worker_options *o, struct worker_setup *s)
{
	const char *wish = getenv("HIVE_CORE");
	int r, why;

	s->core = o->core ? o->core : hive->host.core;
	if (s->core)
		return 0;
	s->any_core = true;
	r = hive_core_find("best", &s->core);
	if (r < 0 || !wish || strcmp(wish, s->core->name) == 0)
		return r;
	why = hive__core_refusal(wish);
	if (why < 0)
		hive__notice_core(hive, wish, why, s->core->name);
	return 0;
}

static int copy_cpus(struct hive *hive, const struct worker *w, struct worker_setup *s,
                     const struct hive_worker_options *o)
{
	bool pins = o->cpu_count == 0 && hive->pin_cpus;
	uint16_t pin = pins ? hive__pin_of(hive, o->kind, w->index) : 0;
	const uint16_t *cpus = pins ? &pin : o->cpus;
	size_t count = pins ? 1 : o->cpu_count;

	if (count == 0)
		return 0;
	s->cpus = (uint16_t *)hive__memory_new(&hive->memory, count * sizeof *cpus);
	if (!s->cpus)
		return -ENOMEM;
	memcpy(s->cpus, cpus, count * sizeof *cpus);
	s->cpu_count = count;
	return 0;
}

/* The order of the local queue, which a worker has for life. */
bool hive__oldest_first(const struct hive *hive, const struct hive_worker_options *o)
{
	if (o->order == HIVE_ORDER_DEFAULT)
		return hive->preset == HIVE_PRESET_FAIO;
	return o->order == HIVE_ORDER_OLDEST;
}

/* What a zero means, by preset. A preset is a set of parameters: the beat is the same. */
static void fill_defaults(const struct hive *hive, struct worker_setup *s, int32_t capacity, bool oldest)
{
	s->local_budget = tune_local_budget(capacity);
	s->private_budget = TUNE_PRIVATE_BUDGET;
	s->timers = TUNE_TIMERS;
	s->timer_budget = TUNE_TIMER_BUDGET;
	s->pool_probe_interval = TUNE_POOL_PROBE_INTERVAL;
	s->pool_batch = TUNE_POOL_BATCH;
	s->steal_attempts = TUNE_STEAL_ATTEMPTS;
	s->io_interval = TUNE_IO_INTERVAL;
	s->victim = HIVE_VICTIM_RANDOM;
	s->spin_ns = TUNE_SPIN_NS;
	s->newest_run = oldest ? TUNE_SLOT_RUN : hive->preset == HIVE_PRESET_ROPHIVE ? 0 : TUNE_NEWEST_RUN;
	if (hive->preset == HIVE_PRESET_VELOQ) {
		s->local_budget = TUNE_VELOQ_BUDGET;
		s->victim = HIVE_VICTIM_NEAR;
	}
	if (hive->preset != HIVE_PRESET_FAIO)
		return;
	s->local_budget = TUNE_FAIO_LOCAL_BUDGET;
	s->pool_probe_interval = TUNE_FAIO_POOL_INTERVAL;
	s->pool_batch = capacity / 2 < TUNE_POOL_BATCH_MAX ? capacity / 2 : TUNE_POOL_BATCH_MAX;
	s->io_interval = TUNE_FAIO_IO_INTERVAL;
	s->victim = HIVE_VICTIM_BUSIEST;
	s->spin_ns = HIVE_OFF;
	s->pool_first = s->last_now = true;
	s->timers = HIVE_TIMERS_WHEEL;
}

/* Who has the defaults, and from whom others may steal. */
static bool may_crowd(const struct worker_setup *s, const struct hive_worker_options *o)
{
	return !o->pool_batch && !o->pool_share && !o->ui && !o->no_steal && s->pool_batch == TUNE_POOL_BATCH &&
	       s->pool_probe_interval >= TUNE_POOL_CROWD;
}

/* Of a UI thread: what the preset says of these is for others. */
static void fill_manners(struct worker_setup *s, const struct hive_worker_options *o)
{
	int32_t share = or_default(o->pool_share, o->ui ? TUNE_UI_POOL_SHARE : s->pool_batch);

	s->ui = o->ui;
	s->keeps_out = share == HIVE_OFF;
	if (!s->keeps_out && share < s->pool_batch)
		s->pool_batch = share;
	s->pool_crowd = may_crowd(s, o) ? TUNE_POOL_CROWD : s->pool_batch;
	if (s->keeps_out)
		s->spin_ns = HIVE_OFF; /* which is a search for what it does not want */
	s->frame_ns = o->frame_ns ? o->frame_ns : o->ui ? TUNE_FRAME_NS : HIVE_OFF;
	if (!o->ui)
		return;
	s->steal_attempts = or_default(o->steal_attempts, HIVE_OFF);
	s->io_interval = or_default(o->io_interval, 1);
	s->pool_first = s->last_now = false;
}

/* Whoever says how the thread shall be treated has the last word. With one CPU nobody else, the display's server for one, would have a place to
 * go to while it is busy.                                                                                                 */
static bool may_ask_realtime(const struct hive *hive, const struct hive_worker_options *o)
{
	return o->ui && o->realtime == 0 && o->nice == 0 && !o->batch && hive->cpus > 1;
}

static void fill_parameters(const struct hive *hive, struct worker_setup *s, const struct hive_worker_options *o)
{
	fill_defaults(hive, s, or_default(o->local_capacity, TUNE_LOCAL_CAPACITY), hive__oldest_first(hive, o));
	s->adaptive = o->local_budget == HIVE_OFF;
	s->local_budget = s->adaptive ? TUNE_ADAPTIVE_FIRST : or_default(o->local_budget, s->local_budget);
	s->private_budget = or_default(o->private_budget, s->private_budget);
	s->timers = o->timers ? o->timers : s->timers;
	s->timer_budget = or_default(o->timer_budget, s->timer_budget);
	s->pool_probe_interval = or_default(o->pool_probe_interval, s->pool_probe_interval);
	s->pool_batch = or_default(o->pool_batch, s->pool_batch);
	s->steal_attempts = or_default(o->steal_attempts, s->steal_attempts);
	s->io_interval = or_default(o->io_interval, s->io_interval);
	if (o->victim != HIVE_VICTIM_DEFAULT)
		s->victim = o->victim;
	s->slice_ns = o->slice_ns ? o->slice_ns : TUNE_SLICE_NS;
	s->spin_ns = o->spin_ns ? o->spin_ns : s->spin_ns;
	if (s->spin_ns > TUNE_SPIN_MAX_NS)
		s->spin_ns = TUNE_SPIN_MAX_NS;
	if (o->kind == HIVE_WORKER_COMPUTE || hive->cpus < 2)
		s->spin_ns = HIVE_OFF;
	s->nice = or_default(o->nice, HIVE_OFF);
	s->nice_by_default = o->nice == 0 && o->kind == HIVE_WORKER_COMPUTE;
	fill_manners(s, o);
	s->realtime_if_allowed = may_ask_realtime(hive, o);
	if (o->no_steal)
		s->steal_attempts = HIVE_OFF;
}

/* Checked options become the worker's setup. 0, -ENOMEM, -ENOTSUP. */
int hive__setup_fill(struct hive *hive, struct worker *w, const struct hive_worker_options *o)
{
	struct worker_setup s = { .realtime = o->realtime > 0 ? o->realtime : 0,
		                  .batch = o->batch,
		                  .outbox = !o->no_outbox,
		                  .stealing = !o->no_steal,
		                  .keep_signals = o->keep_signals,
		                  .on_start = o->on_start,
		                  .on_stop = o->on_stop,
		                  .on_park = o->on_park,
		                  .on_unpark = o->on_unpark,
		                  .hook_arg = o->hook_arg,
		                  .core_arg = o->core_arg,
		                  .ring_entries = (uint32_t)o->ring_entries };
	int r = o->kind == HIVE_WORKER_IO ? find_core(hive, o, &s) : 0;

	if (r == 0)
		r = copy_cpus(hive, w, &s, o);
	if (r < 0)
		return r;
	fill_parameters(hive, &s, o);
	if (o->kind == HIVE_WORKER_IO && s.victim == HIVE_VICTIM_NEAR)
		r = hive__learn_topology(hive);
	s.topology = hive->topology;
	if (r == 0 && o->kind == HIVE_WORKER_IO)
		r = timers_choose(&w->timers, s.timers == HIVE_TIMERS_WHEEL, hive->reserve_tasks);
	if (r < 0) {
		hive__memory_free(&hive->memory, s.cpus);
		return r;
	}
	hive__memory_free(&hive->memory, w->setup.cpus);
	w->setup = s;
	if (o->name)
		snprintf(w->name, sizeof w->name, "%s", o->name);
	else
		snprintf(w->name, sizeof w->name, "%s-%u", o->kind == HIVE_WORKER_IO ? "io" : "compute", w->index);
	return 0;
}
