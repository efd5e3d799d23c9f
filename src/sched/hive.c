/* SPDX-License-Identifier: MIT */
/* The hive as an object: made, unmade, its clock and its voice. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/inherited.h"
#include "base/thread.h"
#include "sched/internal.h"

static int system_thread_start(void *arg, hive_fn *main, void *main_arg, uint64_t *ret_thread)
{
	(void)arg;
	return hive__thread_start(main, main_arg, ret_thread);
}

static void system_thread_join(void *arg, uint64_t thread)
{
	(void)arg;
	hive__thread_join(thread);
}

static bool is_zero(const void *words, size_t bytes)
{
	const unsigned char *at = (const unsigned char *)words;

	while (bytes-- > 0)
		if (*at++)
			return false;
	return true;
}

static bool count_is_sane(int32_t workers)
{
	return workers >= HIVE_AUTO && workers <= HIVE_WORKERS_MAX;
}

static int check_options(const struct hive_options *o)
{
	const struct hive_host *host = o->host;
	int r = 0;

	if (!is_zero(o->reserved, sizeof o->reserved) || !count_is_sane(o->io_workers) ||
	    !count_is_sane(o->compute_workers))
		return -EINVAL;
	if ((uint32_t)o->preset > HIVE_PRESET_VELOQ || (uint32_t)o->placement > HIVE_PLACE_TWO_CHOICES ||
	    (uint32_t)o->mesh > HIVE_MESH_ON)
		return -EINVAL;
	if (host && (!is_zero(host->reserved, sizeof host->reserved) || !host->thread_start != !host->thread_join ||
	             !host->step_start != !host->step_wait || !host->step_start != !host->step_stop ||
	             !hive__core_is_complete(host->core)))
		return -EINVAL;
	if (o->reserve_tasks > SLAB_ITEMS_MAX || o->stall_ns < HIVE_OFF)
		return -EINVAL;
	if (o->io)
		r = o->io->kind == HIVE_WORKER_IO ? hive__setup_check(o->io) : -EINVAL;
	if (r == 0 && o->compute) {
		struct hive_worker_options compute = *o->compute;

		compute.kind = HIVE_WORKER_COMPUTE;
		r = hive__setup_check(&compute);
	}
	return r;
}

/* What the host left out is the system's. */
static void fill_host(struct hive *hive, const struct hive_host *host)
{
	if (host)
		hive->host = *host;
	hive->exact_clock = hive->host.now != NULL;
	hive->stepped = hive->host.step_start != NULL;
	if (!hive->host.allocate)
		hive->host.allocate = hive__memory_system;
	if (!hive->host.thread_start) {
		hive->host.thread_start = system_thread_start;
		hive->host.thread_join = system_thread_join;
	}
	hive->memory.allocate = hive->host.allocate;
	hive->memory.arg = hive->host.arg;
}

/* In debug builds a stuck worker is worth a word, where time is the system's. */
static int64_t stall_of(const struct hive *hive, int64_t stall_ns)
{
#if defined(HIVE_DEBUG)
	if (stall_ns == 0 && !hive->exact_clock && !hive->stepped)
		return TUNE_STALL_NS;
#endif
	(void)hive;
	return stall_ns > 0 ? stall_ns : 0;
}

static struct hive *new_hive(const struct hive_options *o)
{
	struct memory memory = { hive__memory_system, NULL };
	struct hive *hive;

	if (o->host && o->host->allocate) {
		memory.allocate = o->host->allocate;
		memory.arg = o->host->arg;
	}
	hive = (struct hive *)hive__memory_new(&memory, sizeof *hive);
	if (!hive)
		return NULL;
	fill_host(hive, o->host);
	hive->preset = o->preset;
	hive->two_choices = o->placement == HIVE_PLACE_TWO_CHOICES ||
	                    (o->placement == HIVE_PLACE_DEFAULT && o->preset == HIVE_PRESET_VELOQ);
	hive->mesh = o->mesh == HIVE_MESH_ON || (o->mesh == HIVE_MESH_DEFAULT && o->preset == HIVE_PRESET_VELOQ);
	hive->hook_arg = o->hook_arg;
	hive->on_drop = o->on_drop;
	hive->on_warn = o->on_warn;
	hive->reserve_tasks = o->reserve_tasks;
	hive->stall_ns = stall_of(hive, o->stall_ns);
	hive->count_cpus = hive__cpus_allowed;
	hive->cpus = (uint32_t)hive->count_cpus();
	lock_init(&hive->registry_lock);
	lock_init(&hive->drop_lock);
	idle_init(&hive->io.idle);
	idle_init(&hive->compute.idle);
	idle_init(&hive->outside);
	pool_init(&hive->pool, &hive->memory, TUNE_KEEP_CHUNKS);
	levels_init(&hive->compute_pool, &hive->memory, TUNE_KEEP_CHUNKS);
	return hive;
}

static void free_workers(struct workers *set)
{
	for (uint32_t i = 0; i < hive__limit(set); i++)
		hive__worker_free(hive__slot(set, i));
}

static void free_hive(struct hive *hive)
{
	struct memory memory = hive->memory;

	for (int sort = 0; sort < GUESTS_SORTS; sort++)
		if (load_relaxed(&hive->guests[sort]))
			hive->guest_ops[sort]->end(load_relaxed(&hive->guests[sort]));
	free_workers(&hive->io);
	free_workers(&hive->compute);
	pool_destroy(&hive->pool);
	levels_destroy(&hive->compute_pool);
	hive__memory_free(&memory, hive->topology);
	hive__memory_free(&memory, hive->pin_cpus);
	hive__free_templates(hive);
	hive__forkmark_free(hive->mark);
	hive__memory_free(&memory, hive);
}

static int furnish(struct hive *hive, const struct hive_options *o)
{
	int r;

	hive->mark = hive__forkmark_new();
	if (!hive->mark)
		return -ENOMEM;
	if (o->reserve_tasks > 0) {
		r = pool_reserve(&hive->pool, o->reserve_tasks);
		if (r == 0)
			r = levels_reserve(&hive->compute_pool, o->reserve_tasks);
		if (r < 0)
			return r;
	}
	r = o->pin ? hive__plan_pins(hive, o->io_workers == HIVE_AUTO ? hive->cpus : (uint32_t)o->io_workers) : 0;
	if (r == 0)
		r = hive__keep_templates(hive, o);
	if (r == 0)
		r = hive__attach_some(hive, HIVE_WORKER_IO, o->io_workers);
	return r < 0 ? r : hive__attach_some(hive, HIVE_WORKER_COMPUTE, o->compute_workers);
}

int hive_create(const struct hive_options *options, struct hive **ret_hive)
{
	static const struct hive_options zeros;
	const struct hive_options *o = options ? options : &zeros;
	struct hive *hive;
	int r = ret_hive ? check_options(o) : -EINVAL;

	if (r < 0)
		return r;
	hive = new_hive(o);
	if (!hive)
		return -ENOMEM;
	r = furnish(hive, o);
	if (r < 0) {
		free_hive(hive);
		return r;
	}
	hive__remember(hive);
	*ret_hive = hive;
	return 0;
}

int hive_destroy(struct hive *hive)
{
	uint32_t state;

	if (!hive)
		return 0;
	if (forkmark_is_child(hive->mark))
		return -EOWNERDEAD;
	if (hive__current_in(hive))
		return -EDEADLK;
	state = hive__state(hive);
	if (state == HIVE_CREATED && hive_stop(hive, HIVE_NOW, HIVE_NOWAIT) == 0)
		state = HIVE_STOPPED;
	if (state != HIVE_STOPPED || load_acquire(&hive->in_run)) /* RUN-3 (pairs with RUN-1, RUN-4 and RUN-5) */
		return -EBUSY;
	hive__join_main(hive);
	hive__forget(hive);
	hive__leave_world(hive);
	free_hive(hive);
	return 0;
}

int64_t hive__now(const struct hive *hive)
{
	return hive->exact_clock ? hive->host.now(hive->host.arg) : hive__clock_now();
}

int64_t hive_now(const struct hive *hive)
{
	if (!hive)
		hive = hive_current();
	return hive ? hive__now(hive) : hive__clock_now();
}

int64_t hive_deadline(const struct hive *hive, int64_t delay_ns)
{
	return time_add(hive_now(hive), delay_ns > 0 ? delay_ns : 0);
}

int hive_poll_ms(int64_t wait_ns)
{
	int64_t ms;

	if (wait_ns == HIVE_FOREVER)
		return -1;
	if (wait_ns <= 0)
		return 0;
	ms = wait_ns / HIVE_MS(1) + (wait_ns % HIVE_MS(1) != 0);
	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

int32_t hive_cpus(void)
{
	return hive__cpus_allowed();
}

void hive__warn(const struct hive *hive, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (hive && hive->on_warn)
		hive->on_warn(hive->hook_arg, text);
	else if (fd_is_inherited(STDERR_FILENO))
		fprintf(stderr, "rophive: %s\n", text);
}
