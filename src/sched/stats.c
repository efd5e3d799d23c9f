/* SPDX-License-Identifier: MIT */
/* Counters read and told. Writers never wait for readers. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sched/internal.h"

static struct hive *writable(const struct hive *hive)
{
	return (struct hive *)(uintptr_t)hive; /* atomics are read, nothing is changed */
}

static void add_worker(struct worker *w, struct hive_stats *s)
{
	struct worker_counters *c = &w->stats;

	s->posted += load_relaxed(&c->posted);
	s->ran += load_relaxed(&c->ran);
	s->steals += load_relaxed(&c->stolen);
	s->spills += load_relaxed(&c->spilled);
	s->sleeps += load_relaxed(&c->sleeps);
	s->sources += load_relaxed(&c->sources);
	s->timers += worker_timers(w);
	if (w->kind == HIVE_WORKER_IO) {
		s->posted += tray_accepted(&w->placed);
		s->placed += tray_length(&w->placed);
	}
}

int hive_stats_read(const struct hive *hive, struct hive_stats *ret_stats)
{
	struct hive *h = writable(hive);
	struct hive_stats s;
	uint64_t io, compute;

	if (!hive || !ret_stats)
		return -EINVAL;
	memset(&s, 0, sizeof s);
	for (uint32_t i = 0; i < hive__limit(&h->io); i++)
		add_worker(hive__slot(&h->io, i), &s);
	for (uint32_t i = 0; i < hive__limit(&h->compute); i++)
		add_worker(hive__slot(&h->compute, i), &s);
	io = load_relaxed(&h->io.idle.count);
	compute = load_relaxed(&h->compute.idle.count);
	s.time_ns = hive__now(h);
	s.io_workers = load_relaxed(&h->io.count);
	s.compute_workers = load_relaxed(&h->compute.count);
	s.sleeping = idle_sleepers(io) + idle_sleepers(compute) + idle_sleepers(load_relaxed(&h->outside.count));
	s.searching = (uint32_t)(idle_searchers(io) > 0 ? idle_searchers(io) : 0);
	s.posted += pool_accepted(&h->pool) + levels_accepted(&h->compute_pool) + load_relaxed(&h->lost_replies) +
	            load_relaxed(&h->readied);
	s.refused = load_relaxed(&h->refused);
	s.dropped = load_relaxed(&h->dropped);
	s.cancelled = load_relaxed(&h->cancelled);
	s.pool = pool_length(&h->pool);
	s.compute_pool = levels_length(&h->compute_pool);
	s.compute_high = pool_length(&h->compute_pool.pools[HIVE_PRIORITY_HIGH]);
	s.compute_low = pool_length(&h->compute_pool.pools[HIVE_PRIORITY_LOW]);
	s.wakes = load_relaxed(&h->wakes);
	s.stalls = load_relaxed(&h->stalls);
	s.rescued = load_relaxed(&h->rescued);
	*ret_stats = s;
	return 0;
}

int hive_report_read(const struct hive *hive, struct hive_report *ret_report)
{
	struct hive *h = writable(hive);
	struct hive_stats s;
	int r = ret_report ? hive_stats_read(hive, &s) : -EINVAL;

	if (r < 0)
		return r;
	if (hive__state(h) != HIVE_STOPPED)
		return -EBUSY;
	memset(ret_report, 0, sizeof *ret_report);
	ret_report->posted = s.posted;
	ret_report->ran = s.ran;
	ret_report->cancelled = s.cancelled;
	ret_report->dropped = s.dropped;
	ret_report->refused = s.refused;
	ret_report->dropped_timers = load_relaxed(&h->dropped_timers);
	ret_report->open_sources = load_relaxed(&h->open_sources);
	ret_report->stop_ns = h->stopped_ns - load_relaxed(&h->stop_ns);
	ret_report->deadline_missed = h->deadline_missed;
	return 0;
}

static void read_worker(struct worker *w, struct hive_worker_stats *s)
{
	struct worker_counters *c = &w->stats;
	uint32_t lanes = 0;

	memset(s, 0, sizeof *s);
	s->worker = w->self_id;
	s->kind = w->kind;
	memcpy(s->name, w->name, sizeof s->name);
	snprintf(s->core, sizeof s->core, "%s", w->setup.core ? w->setup.core->name : "futex");
	s->beats = load_relaxed(&c->beats);
	s->ran = load_relaxed(&c->ran);
	s->stolen = load_relaxed(&c->stolen);
	s->spilled = load_relaxed(&c->spilled);
	s->woken = load_relaxed(&w->woken);
	s->sleeps = load_relaxed(&c->sleeps);
	s->spins = load_relaxed(&c->spins);
	s->events = load_relaxed(&c->events);
	s->timers_fired = load_relaxed(&c->timers_fired);
	s->local = w->kind == HIVE_WORKER_IO ? local_size(&w->local) : 0;
	s->private_tasks = load_relaxed(&c->private_tasks);
	s->timers = worker_timers(w);
	s->placed = w->kind == HIVE_WORKER_IO ? tray_length(&w->placed) : 0;
	s->budget = load_relaxed(&c->budget);
	s->sources = load_relaxed(&c->sources);
	s->asleep_ns = load_relaxed(&c->asleep_ns);
	s->steal_rounds = load_relaxed(&c->steal_rounds);
	s->steal_failures = load_relaxed(&c->steal_failures);
	s->stolen_far = load_relaxed(&c->stolen_far);
	s->steal_pauses = load_relaxed(&c->steal_pauses);
	s->lane_letters = load_relaxed(&c->lane_letters);
	s->lane_falls = load_relaxed(&c->lane_falls);
	s->forks = load_relaxed(&c->forks);
	s->frames_cut = load_relaxed(&c->frames_cut);
	if (w->kind == HIVE_WORKER_IO)
		s->in_lanes = hive__letters_in_lanes(w, &lanes);
	s->lanes = lanes;
}

static struct worker *find_locked(struct hive *hive, struct workers *set, uint32_t id)
{
	(void)hive;
	for (uint32_t i = 0; i < hive__limit(set); i++)
		if (load_relaxed(&hive__slot(set, i)->id) == id)
			return hive__slot(set, i);
	return NULL;
}

int hive_worker_stats_read(const struct hive *hive, uint32_t worker, struct hive_worker_stats *ret_stats)
{
	struct hive *h = writable(hive);
	struct worker *w;

	if (!hive || !ret_stats || worker == HIVE_WORKER_NONE)
		return -EINVAL;
	lock_acquire(&h->registry_lock);
	if (worker == HIVE_WORKER_MAIN) {
		w = load_relaxed(&h->main);
	} else {
		w = find_locked(h, &h->io, worker);
		if (!w)
			w = find_locked(h, &h->compute, worker);
	}
	if (w)
		read_worker(w, ret_stats);
	lock_release(&h->registry_lock);
	return w ? 0 : -ESRCH;
}

static int write_all(int fd, const char *text, size_t bytes)
{
	while (bytes > 0) {
		ssize_t n = write(fd, text, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		text += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int write_hive(int fd, const struct hive_stats *s, bool json)
{
	char text[1024];
	int n = snprintf(
		text, sizeof text,
		json ? "{\"io_workers\":%u,\"compute_workers\":%u,\"sleeping\":%u,\"posted\":%llu,\"ran\":%llu,"
		       "\"refused\":%llu,\"dropped\":%llu,\"cancelled\":%llu,\"pool\":%llu,\"compute_pool\":%llu,"
		       "\"compute_high\":%llu,\"compute_low\":%llu,\"timers\":%llu,\"steals\":%llu,\"spills\":%llu,\"wakes\":%llu,\"sleeps\":%llu,\"stalls\":%llu,"
		       "\"rescued\":%llu,\"workers\":["
		     : "io %u  compute %u  sleeping %u  posted %llu  ran %llu  refused %llu  dropped %llu  "
		       "cancelled %llu  pool %llu  compute pool %llu  high %llu  low %llu  timers %llu  steals %llu  spills %llu  "
		       "wakes %llu  sleeps %llu  stalls %llu  rescued %llu\n",
		s->io_workers, s->compute_workers, s->sleeping, (unsigned long long)s->posted,
		(unsigned long long)s->ran, (unsigned long long)s->refused, (unsigned long long)s->dropped,
		(unsigned long long)s->cancelled, (unsigned long long)s->pool, (unsigned long long)s->compute_pool,
		(unsigned long long)s->compute_high, (unsigned long long)s->compute_low, (unsigned long long)s->timers,
		(unsigned long long)s->steals, (unsigned long long)s->spills, (unsigned long long)s->wakes,
		(unsigned long long)s->sleeps, (unsigned long long)s->stalls, (unsigned long long)s->rescued);

	return write_all(fd, text, (size_t)n);
}

/* Names are cut at a fixed length, perhaps within a character: only plain ASCII goes into JSON as it is. */
static void harmless(char *name)
{
	for (; *name; name++)
		if (*name == '"' || *name == '\\' || *name < ' ' || *name > '~')
			*name = '_';
}

static int write_worker(int fd, struct hive_worker_stats *s, bool json, bool first)
{
	char text[1024];
	int n;

	harmless(s->name);
	harmless(s->core);
	n = snprintf(
		text, sizeof text,
		json ? "%s{\"name\":\"%s\",\"core\":\"%s\",\"beats\":%llu,\"ran\":%llu,\"stolen\":%llu,\"stolen_far\":%llu,\"spilled\":%llu,"
		       "\"woken\":%llu,\"sleeps\":%llu,\"spins\":%llu,\"events\":%llu,\"timers_fired\":%llu,\"local\":%llu,"
		       "\"private\":%llu,\"lane_letters\":%llu,\"lane_falls\":%llu,\"placed\":%llu,\"timers\":%llu,\"sources\":%llu,\"steal_rounds\":%llu,"
		       "\"steal_failures\":%llu,\"steal_pauses\":%llu,\"frames_cut\":%llu,\"asleep_ns\":%lld}"
		     : "%s%-16s %-6s beats %llu  ran %llu  stolen %llu  far %llu  spilled %llu  woken %llu  sleeps %llu  spins %llu  "
		       "events %llu  timers fired %llu  local %llu  private %llu  by lanes %llu  past lanes %llu  placed %llu  timers %llu  sources %llu  "
		       "steal rounds %llu  failures %llu  pauses %llu  frames cut %llu  asleep %lld ns\n",
		json && !first ? "," : "", s->name, s->core, (unsigned long long)s->beats, (unsigned long long)s->ran,
		(unsigned long long)s->stolen, (unsigned long long)s->stolen_far, (unsigned long long)s->spilled,
		(unsigned long long)s->woken, (unsigned long long)s->sleeps, (unsigned long long)s->spins,
		(unsigned long long)s->events, (unsigned long long)s->timers_fired, (unsigned long long)s->local,
		(unsigned long long)s->private_tasks, (unsigned long long)s->lane_letters,
		(unsigned long long)s->lane_falls, (unsigned long long)s->placed, (unsigned long long)s->timers,
		(unsigned long long)s->sources, (unsigned long long)s->steal_rounds,
		(unsigned long long)s->steal_failures, (unsigned long long)s->steal_pauses,
		(unsigned long long)s->frames_cut, (long long)s->asleep_ns);
	return write_all(fd, text, (size_t)n);
}

int hive_stats_write(const struct hive *hive, int fd, enum hive_format format)
{
	bool json = format == HIVE_FORMAT_JSON, first = true;
	uint32_t ids[2 * HIVE_WORKERS_MAX];
	struct hive_worker_stats worker;
	struct hive_stats stats;
	size_t n;
	int r = format == HIVE_FORMAT_TEXT || json ? hive_stats_read(hive, &stats) : -EINVAL;

	if (r == 0)
		r = write_hive(fd, &stats, json);
	n = r < 0 ? 0 : hive_workers(hive, ids, 2 * HIVE_WORKERS_MAX);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (hive_worker_stats_read(hive, ids[i], &worker) < 0)
			continue; /* left meanwhile */
		r = write_worker(fd, &worker, json, first);
		first = false;
	}
	return r == 0 && json ? write_all(fd, "]}\n", 3) : r;
}
