/* SPDX-License-Identifier: MIT */
#pragma once
/* The calls of the table in functions.c, and what has to be there before each so that it needs memory. */
#include <fcntl.h>

#include "ledger.h"

#include <rophive/sim.h>

struct world {
	struct hive_sim *sim;
	struct hive *hive;
	uint32_t main, second;
	uint64_t post;
	struct entry *far;
	struct hive_timer timer, armed;
	struct hive_source source, started[20];
	int fds[20];
	struct hive *extra;           /* made by a row, destroyed by us */
	struct hive_sim *extra_sim;   /* likewise */
	struct hive_channel *channel; /* likewise */
};

static struct ledger ledger;

static int post(struct world *w, int (*how)(struct world *w, struct entry *e))
{
	struct entry *e = ledger_open(&ledger, false);
	int r = how(w, e);

	ledger_answered(e, r);
	return r;
}

static void faultless(struct world *w, int (*how)(struct world *w, struct entry *e), int count)
{
	while (count-- > 0)
		CHECK_OK(post(w, how));
}

/* ---- posts: first use, and more than fits ---- */

#define DOOR(NAME, CALL)                                        \
	static int NAME##_how(struct world *w, struct entry *e) \
	{                                                       \
		(void)w;                                        \
		return CALL;                                    \
	}                                                       \
	static int NAME(struct world *w)                        \
	{                                                       \
		return post(w, NAME##_how);                     \
	}

DOOR(to_pool, hive_post(w->hive, ledger_run, e))
DOOR(placed, hive_post_placed(w->hive, ledger_run, e))
DOOR(to_worker, hive_post_to(w->hive, w->main, ledger_run, e))
DOOR(to_second, hive_post_to(w->hive, w->second, ledger_run, e))
DOOR(after, hive_post_after(w->hive, HIVE_MS(1), ledger_run, e, NULL))
DOOR(to_compute, hive_post_compute(w->hive, ledger_run, e))
DOOR(to_high, hive_post_compute_at(w->hive, HIVE_PRIORITY_HIGH, ledger_run, e))
DOOR(to_low, hive_post_compute_at(w->hive, HIVE_PRIORITY_LOW, ledger_run, e))
DOOR(then, (e->is_then = true, hive_post_compute_then(w->hive, ledger_work, w->main, ledger_run, e)))
DOOR(kind_now, hive_post_kind(w->hive, HIVE_MICRO, 0, ledger_run, e))
DOOR(kind_later, hive_post_kind(w->hive, HIVE_MICRO, HIVE_MS(1), ledger_run, e))
DOOR(kind_compute, hive_post_kind(w->hive, HIVE_COMPUTE, 0, ledger_run, e))
DOOR(local, hive_post_local(ledger_run, e))
DOOR(self, hive_post_self(ledger_run, e))
DOOR(self_after, hive_post_self_after(HIVE_MS(1), ledger_run, e, NULL))

static void fill_pool(struct world *w)
{
	faultless(w, to_pool_how, 4096);
}
static void fill_compute(struct world *w)
{
	faultless(w, to_compute_how, 4096);
}
static void fill_low(struct world *w)
{
	faultless(w, to_low_how, 4096);
}
static void fill_parcels(struct world *w)
{
	faultless(w, to_worker_how, 64);
}
static void fill_delayed(struct world *w)
{
	faultless(w, after_how, 128);
}
static void fill_local(struct world *w)
{
	faultless(w, local_how, 8);
}
static void fill_self(struct world *w)
{
	faultless(w, self_how, 64);
}
static void fill_self_after(struct world *w)
{
	faultless(w, self_after_how, 64);
}
static void fill_outbox(struct world *w)
{
	faultless(w, to_pool_how, 256);
}

static void fill_outbox_and_local(struct world *w)
{
	fill_local(w);
	fill_outbox(w);
}

enum batch { TO_POOL, TO_COMPUTE, TO_HIGH };

static int many(struct world *w, enum batch batch, int count)
{
	struct hive_task tasks[5000];
	int r;

	for (int i = 0; i < count; i++)
		tasks[i] = (struct hive_task){ ledger_run, ledger_open(&ledger, false) };
	if (batch == TO_POOL)
		r = hive_post_many(w->hive, tasks, (size_t)count);
	else if (batch == TO_COMPUTE)
		r = hive_post_compute_many(w->hive, tasks, (size_t)count);
	else
		r = hive_post_compute_at_many(w->hive, HIVE_PRIORITY_HIGH, tasks, (size_t)count);
	for (int i = 0; i < count; i++)
		ledger_answered(tasks[i].arg, r);
	return r;
}

static int many_few(struct world *w)
{
	return many(w, TO_POOL, 3);
}
static int many_lots(struct world *w)
{
	return many(w, TO_POOL, 5000);
}
static int compute_few(struct world *w)
{
	return many(w, TO_COMPUTE, 3);
}
static int compute_lots(struct world *w)
{
	return many(w, TO_COMPUTE, 5000);
}
static int high_few(struct world *w)
{
	return many(w, TO_HIGH, 3);
}
static int high_lots(struct world *w)
{
	return many(w, TO_HIGH, 5000);
}

static void post_far(struct world *w)
{
	w->far = ledger_open(&ledger, true);
	CHECK_OK(hive_post_after(w->hive, HIVE_S(9), ledger_run, w->far, &w->post));
	ledger_answered(w->far, 0);
}

static int cancel(struct world *w)
{
	ledger_cancel(w->hive, w->far, w->post);
	return 0;
}

/* ---- life ---- */

static const struct hive_worker_options small = { .local_capacity = 8 };

static struct hive_options options_of(struct world *w)
{
	return (struct hive_options){ .io_workers = 2,
		                      .compute_workers = 1,
		                      .mesh = HIVE_MESH_ON,
		                      .io = &small,
		                      .host = hive_sim_host(w->sim),
		                      .hook_arg = &ledger,
		                      .on_drop = ledger_drop,
		                      .on_warn = ledger_warn };
}

static int create(struct world *w)
{
	struct hive_options o = options_of(w);

	o.reserve_tasks = 1000;
	o.on_drop = NULL; /* not in the books of the world's own hive */
	return hive_create(&o, &w->extra);
}

static void nop(void *arg)
{
	(void)arg;
}

static void make_extra(struct world *w)
{
	CHECK_OK(create(w));
	for (int i = 0; i < 100; i++) {
		CHECK_OK(hive_post(w->extra, nop, NULL));
		CHECK_OK(hive_post_after(w->extra, HIVE_MS(1), nop, NULL, NULL));
		CHECK_OK(hive_post_compute_then(w->extra, nop, HIVE_WORKER_MAIN, nop, NULL));
	}
}

static int destroy(struct world *w)
{
	int r = hive_destroy(w->extra);

	if (r == 0)
		w->extra = NULL;
	return r;
}

static int start(struct world *w)
{
	return hive_start(w->hive);
}

static int stop_drain(struct world *w)
{
	return hive_stop(w->hive, HIVE_DRAIN, HIVE_FOREVER);
}
static int stop_now(struct world *w)
{
	return hive_stop(w->hive, HIVE_NOW, HIVE_FOREVER);
}
static int join(struct world *w)
{
	return hive_join(w->hive, HIVE_FOREVER);
}

static void stop_body(void *arg)
{
	struct world *w = arg;

	CHECK_OK(hive_stop(w->hive, HIVE_DRAIN, HIVE_FOREVER));
}

/* hive_run() comes back when a task has stopped the hive. */
static void post_stop(struct world *w)
{
	struct entry *e = ledger_open(&ledger, false);

	e->body = stop_body;
	CHECK_OK(hive_post_to(w->hive, w->main, ledger_run, e));
	ledger_answered(e, 0);
}

static int run(struct world *w)
{
	return hive_run(w->hive);
}

static int attach(struct world *w)
{
	uint16_t cpu = 0;
	struct hive_worker_options o = { .local_capacity = 16, .cpus = &cpu, .cpu_count = 1 };

	return hive_attach(w->hive, &o, NULL);
}

static int attach_wheel(struct world *w)
{
	return hive_attach(w->hive, &(struct hive_worker_options){ .timers = HIVE_TIMERS_WHEEL }, NULL);
}

static int attach_compute(struct world *w)
{
	return hive_attach(w->hive, &(struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE }, NULL);
}

/* Something of each kind for the one that leaves. */
static void load_second(struct world *w)
{
	for (int i = 0; i < 100; i++) {
		struct entry *e = ledger_open(&ledger, false);

		ledger_answered(e, hive_post_to(w->hive, w->second, ledger_run, e));
	}
	faultless(w, after_how, 100);
	faultless(w, to_pool_how, 100);
}

static void load_and_stop(struct world *w)
{
	load_second(w);
	CHECK_OK(hive_stop(w->hive, HIVE_DRAIN, HIVE_FOREVER));
}

static int detach(struct world *w)
{
	return hive_detach(w->hive, w->second, HIVE_FOREVER);
}

static int resize_up(struct world *w)
{
	return hive_resize(w->hive, 4, 2, HIVE_FOREVER);
}

static int resize_down(struct world *w)
{
	return hive_resize(w->hive, 1, 1, HIVE_FOREVER);
}

/* ---- timers, sources ---- */

static void fire(struct hive_timer *timer)
{
	(void)timer;
}
static void hear(struct hive_source *source, uint32_t events)
{
	(void)source, (void)events;
}

static int timer_init(struct world *w)
{
	return hive_timer_init(&w->timer, fire, NULL), 0;
}
static void make_timer(struct world *w)
{
	hive_timer_init(&w->timer, fire, NULL);
}

static void arm_timer(struct world *w)
{
	make_timer(w);
	CHECK_OK(hive_timer_start(&w->timer, HIVE_S(1), 0));
}

static int timer_start(struct world *w)
{
	return hive_timer_start(&w->timer, HIVE_S(1), HIVE_S(1));
}
static int timer_stop(struct world *w)
{
	return hive_timer_stop(&w->timer) == 1 ? 0 : -EINVAL;
}

static int source_init(struct world *w)
{
	hive_source_init(&w->source, HIVE_SOURCE_FD, w->fds[0], HIVE_EVENT_IN, hear, NULL);
	return 0;
}

/* 15 descriptors and that of the wake-up fill the first array of the poll core. */
static void start_others(struct world *w)
{
	for (int i = 1; i < 16; i++) {
		hive_source_init(&w->started[i], HIVE_SOURCE_FD, w->fds[i], HIVE_EVENT_IN, hear, NULL);
		CHECK_OK(hive_source_start(&w->started[i]));
	}
	source_init(w);
}

static void start_source(struct world *w)
{
	source_init(w);
	CHECK_OK(hive_source_start(&w->source));
}

static int source_start(struct world *w)
{
	return hive_source_start(&w->source);
}
static int source_modify(struct world *w)
{
	return hive_source_modify(&w->source, HIVE_EVENT_PRI);
}
static int source_stop(struct world *w)
{
	return hive_source_stop(&w->source) == 1 ? 0 : -EINVAL;
}
static int deliver(struct world *w)
{
	return hive_source_deliver(&w->source, HIVE_EVENT_IN), 0;
}

/* Of a core that is not this worker's. */
static int foreign_core(struct world *w)
{
	struct hive_core core = { 0 };
	int64_t wait_ns;

	(void)w;
	hive_core_enter(&core);
	hive_core_leave(&core);
	return hive_core_beat(&core, &wait_ns) == -EPERM ? 0 : -EIO;
}

/* ---- questions ---- */

static int stats(struct world *w)
{
	struct hive_stats s;

	return hive_stats_read(w->hive, &s);
}

static int worker_stats(struct world *w)
{
	struct hive_worker_stats s;

	return hive_worker_stats_read(w->hive, w->main, &s);
}

static int dump(struct world *w)
{
	return hive_dump(w->hive, w->fds[19]);
}

static int stats_write(struct world *w)
{
	int r = hive_stats_write(w->hive, w->fds[19], HIVE_FORMAT_TEXT);

	return r < 0 ? r : hive_stats_write(w->hive, w->fds[19], HIVE_FORMAT_JSON);
}

static int report(struct world *w)
{
	struct hive_report s;

	return hive_report_read(w->hive, &s) == -EBUSY ? 0 : -EINVAL;
}

static int workers(struct world *w)
{
	uint32_t ids[4];

	return hive_workers(w->hive, ids, 4) == 3 ? 0 : -EINVAL;
}

static int core_find(struct world *w)
{
	const struct hive_core_ops *core;

	(void)w;
	return hive_core_find("best", &core);
}

static void name_parameters(struct world *w)
{
	(void)w;
	CHECK_OK(setenv("HIVE_TUNE", "pool_batch=8,mesh=on", 1));
}

static int tune_options(struct world *w)
{
	struct hive_worker_options worker = { 0 };
	struct hive_options hive = { 0 };
	int error = hive_tune_options(&worker, &hive);

	(void)w;
	unsetenv("HIVE_TUNE");
	return error ? error : worker.pool_batch == 8 && hive.mesh == HIVE_MESH_ON ? 0 : -EBADMSG;
}

static int words(struct world *w)
{
	bool good = hive_version() && hive_error_name(-EINVAL) && hive_error_text(-EINVAL) &&
	            hive_sizeof("hive_timer") > 0;

	(void)w;
	return good ? 0 : -EINVAL;
}

static int machine(struct world *w)
{
	return (void)w, hive_cpus() >= 1 ? 0 : -EINVAL;
}

static int clocks(struct world *w)
{
	return hive_now(w->hive) <= hive_deadline(w->hive, 1) && hive_poll_ms(1) == 1 ? 0 : -EINVAL;
}

static int whoami(struct world *w)
{
	return hive_current() == w->hive && hive_worker_current() != HIVE_WORKER_NONE && !hive_should_yield() ? 0
	                                                                                                      : -EINVAL;
}

/* ---- the simulator ---- */

/* ---- sync: only a channel has memory of its own ---- */

static int channel_create(struct world *w)
{
	return hive_channel_create(24, 100, &w->channel);
}
static void make_channel(struct world *w)
{
	CHECK_OK(channel_create(w));
}
static int channel_use(struct world *w)
{
	char item[24] = { 0 };

	CHECK_OK(hive_channel_send(w->channel, item, sizeof item, HIVE_NOWAIT));
	CHECK_OK(hive_channel_recv(w->channel, item, sizeof item, HIVE_NOWAIT));
	CHECK_ERR(hive_channel_recv(w->channel, item, sizeof item, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(hive_channel_close(w->channel));
	CHECK_OK(hive_channel_destroy(w->channel));
	w->channel = NULL;
	return 0;
}
/* Waits included: a thread needs nothing for one. */
static int lock_all(struct world *w)
{
	struct hive_mutex mutex;
	struct hive_cond cond;
	struct hive_semaphore semaphore;

	(void)w;
	hive_mutex_init(&mutex);
	hive_cond_init(&cond);
	hive_semaphore_init(&semaphore, 1);
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
	CHECK_ERR(hive_cond_wait(&cond, &mutex, hive_deadline(NULL, HIVE_US(10))), -ETIMEDOUT);
	hive_cond_signal(&cond);
	hive_cond_broadcast(&cond);
	CHECK_OK(hive_mutex_unlock(&mutex));
	CHECK_OK(hive_semaphore_acquire(&semaphore, 1, HIVE_FOREVER));
	CHECK_ERR(hive_semaphore_acquire(&semaphore, 1, hive_deadline(NULL, HIVE_US(10))), -ETIMEDOUT);
	return hive_semaphore_release(&semaphore, 1);
}

static int do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int lock_more(struct world *w)
{
	struct hive_rwlock lock;
	struct hive_barrier barrier;
	struct hive_once once;

	(void)w;
	hive_rwlock_init(&lock);
	hive_barrier_init(&barrier, 2);
	hive_once_init(&once);
	CHECK_OK(hive_rwlock_lock_write(&lock, HIVE_FOREVER));
	CHECK_ERR(hive_rwlock_lock_read(&lock, hive_deadline(NULL, HIVE_US(10))), -ETIMEDOUT);
	CHECK_OK(hive_rwlock_downgrade(&lock));
	CHECK_OK(hive_rwlock_unlock_read(&lock));
	CHECK_OK(hive_rwlock_lock_write(&lock, HIVE_FOREVER));
	CHECK_OK(hive_rwlock_unlock_write(&lock));
	CHECK_ERR(hive_barrier_wait(&barrier, hive_deadline(NULL, HIVE_US(10))), -ETIMEDOUT);
	return hive_once_run(&once, do_nothing, NULL, HIVE_FOREVER);
}

static int sim_create(struct world *w)
{
	return hive_sim_create(NULL, &w->extra_sim);
}
static void make_sim(struct world *w)
{
	CHECK_OK(sim_create(w));
}
static int sim_host(struct world *w)
{
	return hive_sim_host(w->sim) ? 0 : -EINVAL;
}
static int sim_advance(struct world *w)
{
	return hive_sim_advance(w->sim, HIVE_MS(5)) > 0 ? 0 : -EINVAL;
}
static int sim_spend(struct world *w)
{
	return hive_sim_spend(w->sim, HIVE_MS(1));
}
static int sim_hash(struct world *w)
{
	return (void)hive_sim_hash(w->sim), 0;
}

static int sim_destroy(struct world *w)
{
	int r = hive_sim_destroy(w->extra_sim);

	w->extra_sim = NULL;
	return r;
}
