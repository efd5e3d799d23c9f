/* SPDX-License-Identifier: MIT */
/* What a hive is: kinds of workers, kinds of tasks, two pools (R-1 … R-14). */
#include "support/fake.h"
#include "support/real.h"
#include "test.h"

static void *n(int number)
{
	return (void *)(intptr_t)number;
}

static int ran;
static uint32_t ran_on;

static void count(void *arg)
{
	(void)arg;
	ran++;
	ran_on = hive_worker_current();
}

static struct hive_stats stats_of(const struct fake *f)
{
	struct hive_stats stats;

	CHECK_OK(hive_stats_read(f->hive, &stats));
	return stats;
}

/* a UI worker, IO workers and compute workers in one hive, and each kind of post is done. The order of
 * attachment is mixed on purpose.                                                                                     */
TEST(one_hive_holds_all_kinds_of_workers_and_takes_all_kinds_of_posts)
{
	struct hive *hive = real_create((struct hive_options){ 0 });
	struct hive_worker_options ui = { .name = "ui" }, io = { 0 }, compute = { .kind = HIVE_WORKER_COMPUTE };
	struct hive_task many[3];
	struct gate done;
	uint32_t io_id;

	gate_init(&done);
	for (int i = 0; i < 3; i++)
		many[i] = (struct hive_task){ gate_open_task, &done };
	CHECK_OK(hive_core_find("poll", &ui.core));
	CHECK_OK(hive_attach(hive, &compute, NULL));
	CHECK_OK(hive_attach(hive, &ui, NULL));
	CHECK_OK(hive_attach(hive, &io, &io_id));
	CHECK_OK(hive_attach(hive, &compute, NULL));
	CHECK_OK(hive_attach(hive, &io, NULL));
	CHECK_OK(hive_start(hive));
	CHECK_OK(hive_post(hive, gate_open_task, &done));
	CHECK_OK(hive_post_many(hive, many, 3));
	CHECK_OK(hive_post_to(hive, io_id, gate_open_task, &done));
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, gate_open_task, &done));
	CHECK_OK(hive_post_after(hive, HIVE_US(10), gate_open_task, &done, NULL));
	CHECK_OK(hive_post_compute(hive, gate_open_task, &done));
	CHECK_OK(hive_post_compute_many(hive, many, 3));
	CHECK_OK(hive_post_compute_then(hive, gate_open_task, io_id, gate_open_task, &done));
	for (int i = 0; i < 13; i++)
		gate_pass(&done);
	CHECK_EQ(real_end(hive, HIVE_DRAIN).ran, 13);
	gate_destroy(&done);
}

static struct hive_source source;
static int events;

static void on_event(struct hive_source *s, uint32_t what)
{
	(void)s;
	CHECK_EQ(what, HIVE_EVENT_IN);
	events++;
	CHECK_OK(hive_post_self(fake_note, n(1)));
}

static void start_source(void *arg)
{
	(void)arg;
	hive_source_init(&source, HIVE_SOURCE_FD, 7, HIVE_EVENT_IN, on_event, NULL);
	CHECK_OK(hive_source_start(&source));
}

static void deliver_once(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	script->in_turn = NULL;
	hive_source_deliver(script->sources[0], HIVE_EVENT_IN);
}

static void post_everything_here(void *arg)
{
	(void)arg;
	CHECK_OK(hive_post_self(fake_note, n(2)));
	CHECK_OK(hive_post_self_after(0, fake_note, n(3), NULL));
	CHECK_OK(hive_post_local(fake_note, n(4)));
}

/* a foreign event loop is a core and nothing more. The worker around it has sources, private tasks, timers,
 * a local queue, the pool, in the usual order, and others steal from it.                                                  */
TEST(a_foreign_loop_is_a_core_of_an_ordinary_worker)
{
	struct fake f = { 0 };
	struct fake_core_script script = { .in_turn = deliver_once };
	struct hive_worker_options ui = { .core = &fake_core, .core_arg = &script, .on_start = start_source };
	uint32_t id;

	events = 0;
	fake_create(&f, (struct hive_options){ 0 });
	CHECK_OK(hive_attach(f.hive, &ui, &id));
	fake_log_clear();
	fake_start(&f);
	CHECK_OK(hive_post_to(f.hive, id, post_everything_here, NULL));
	CHECK_OK(hive_post(f.hive, fake_note, n(5)));
	fake_settle(&f);
	CHECK_EQ(events, 1);
	CHECK_STR(fake_log(), "1 2 3 4 5");
	CHECK(script.turns > 1);
	fake_destroy(&f);
	CHECK_EQ(script.opens, 1);
	CHECK_EQ(script.closes, 1);
}

static void post_two_local(void *arg)
{
	(void)arg;
	CHECK_OK(hive_post_local(count, NULL));
	CHECK_OK(hive_post_local(count, NULL));
}

/* its local tasks can be stolen like those of any other. */
TEST(others_steal_from_a_worker_with_a_foreign_core)
{
	struct fake f = { 0 };
	struct fake_core_script script = { 0 };
	struct hive_worker_options ui = { .core = &fake_core, .core_arg = &script, .local_budget = 1 }, io = { 0 };
	uint32_t ui_id, io_id;

	fake_create(&f, (struct hive_options){ 0 });
	CHECK_OK(hive_attach(f.hive, &ui, &ui_id));
	CHECK_OK(hive_attach(f.hive, &io, &io_id));
	fake_start(&f);
	CHECK_OK(hive_post_to(f.hive, ui_id, post_two_local, NULL));
	ran = 0;
	fake_step(&f, ui_id);
	CHECK_EQ(ran, 1);
	fake_step(&f, io_id); /* steals */
	fake_step(&f, io_id); /* runs */
	CHECK_EQ(ran, 2);
	CHECK_EQ(ran_on, io_id);
	fake_destroy(&f);
}

/* whichever IO worker comes first takes the pool's task, whatever it waits in. */
TEST(pool_tasks_run_on_any_io_worker_whatever_its_core)
{
	struct fake f = { 0 };
	struct fake_core_script script = { 0 };
	struct hive_worker_options special = { .core_arg = &script }, plain = { 0 };
	uint32_t ids[2];

	fake_create(&f, (struct hive_options){ 0 });
	CHECK_OK(hive_attach(f.hive, &special, &ids[0]));
	CHECK_OK(hive_attach(f.hive, &plain, &ids[1]));
	fake_start(&f);
	for (int i = 0; i < 2; i++) {
		ran = 0;
		CHECK_OK(hive_post(f.hive, count, NULL));
		fake_step(&f, ids[i]);
		fake_step(&f, ids[i]);
		CHECK_EQ(ran, 1);
		CHECK_EQ(ran_on, ids[i]);
	}
	fake_destroy(&f);
}

/* two pools, and no worker takes from the other kind's, however idle it is. */
TEST(no_worker_takes_from_the_pool_of_the_other_kind)
{
	struct fake f = { 0 };
	uint32_t io, compute;

	fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	fake_start(&f);
	io = f.workers[0].id;
	compute = f.workers[1].id;
	ran = 0;
	CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_EQ(stats_of(&f).pool, 1);
	CHECK_EQ(stats_of(&f).compute_pool, 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(fake_step(&f, compute), HIVE_FOREVER);
	CHECK_EQ(ran, 0);
	fake_settle(&f);
	CHECK_EQ(ran, 1);
	CHECK_EQ(ran_on, io);
	CHECK_OK(hive_post_compute(f.hive, count, NULL));
	CHECK_EQ(stats_of(&f).pool, 0);
	CHECK_EQ(stats_of(&f).compute_pool, 1);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(fake_step(&f, io), HIVE_FOREVER);
	CHECK_EQ(ran, 1);
	fake_settle(&f);
	CHECK_EQ(ran, 2);
	CHECK_EQ(ran_on, compute);
	fake_destroy(&f);
}

/* with a thousand computations waiting, event, private task and timer of the UI worker all come in its next beat. */
TEST(a_flood_of_computation_does_not_delay_the_io_worker)
{
	struct fake f = { 0 };
	struct fake_core_script script = { 0 };
	struct hive_worker_options ui = { .core_arg = &script, .on_start = start_source };
	struct hive_worker_options compute = { .kind = HIVE_WORKER_COMPUTE };
	uint32_t id;

	fake_create(&f, (struct hive_options){ 0 });
	CHECK_OK(hive_attach(f.hive, &ui, &id));
	CHECK_OK(hive_attach(f.hive, &compute, NULL));
	fake_start(&f);
	CHECK_EQ(fake_step(&f, id), HIVE_FOREVER);
	for (int i = 0; i < 1000; i++)
		CHECK_OK(hive_post_compute(f.hive, count, NULL));
	CHECK_OK(hive_post_to(f.hive, id, fake_note, n(2)));
	CHECK_OK(hive_post_after(f.hive, 0, fake_note, n(3), NULL));
	script.in_turn = deliver_once;
	events = 0;
	ran = 0;
	fake_log_clear();
	fake_step(&f, id);
	CHECK_EQ(events, 1);
	CHECK_STR(fake_log(), "1 2 3");
	CHECK_EQ(ran, 0);
	fake_settle(&f);
	CHECK_EQ(ran, 1000);
	fake_destroy(&f);
}

/* two words and nothing else, copied; the caller's array may change at once, and the same value may be posted
 * again. Where it runs is said by the call.                                                                             */
TEST(a_task_is_a_function_and_its_argument_copied_by_the_post)
{
	struct fake f = { 0 };
	struct hive_task tasks[2] = { { fake_note, n(1) }, { fake_note, n(2) } };

	CHECK_EQ(sizeof(struct hive_task), sizeof(hive_fn *) + sizeof(void *));
	CHECK_EQ(hive_sizeof("hive_task"), sizeof(struct hive_task));
	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_log_clear();
	fake_start(&f);
	CHECK_OK(hive_post_many(f.hive, tasks, 2));
	CHECK_OK(hive_post_many(f.hive, tasks, 2));
	memset(tasks, 0, sizeof tasks);
	fake_settle(&f);
	CHECK_STR(fake_log(), "1 2 1 2");
	fake_destroy(&f);
}

/* the kind is said in the call; no kind is no post; a delay is for micro tasks alone. */
TEST(the_kind_of_a_task_is_said_and_never_guessed)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	fake_start(&f);
	CHECK_ERR(hive_post_kind(f.hive, 0, 0, count, NULL), -EINVAL);
	CHECK_ERR(hive_post_kind(f.hive, 3, 0, count, NULL), -EINVAL);
	CHECK_ERR(hive_post_kind(f.hive, 3, 5, count, NULL), -EINVAL);
	CHECK_EQ(stats_of(&f).posted, 0);
	CHECK_OK(hive_post_kind(f.hive, HIVE_MICRO, 0, count, NULL));
	CHECK_OK(hive_post_kind(f.hive, HIVE_MICRO, -5, count, NULL));
	CHECK_EQ(stats_of(&f).pool, 2);
	CHECK_OK(hive_post_kind(f.hive, HIVE_MICRO, HIVE_MS(1), count, NULL));
	CHECK_EQ(stats_of(&f).timers, 1);
	CHECK_OK(hive_post_kind(f.hive, HIVE_COMPUTE, 0, count, NULL));
	CHECK_EQ(stats_of(&f).compute_pool, 1);
	CHECK_MISUSE(hive_post_kind(f.hive, HIVE_COMPUTE, 1, count, NULL), -EINVAL);
	CHECK_EQ(stats_of(&f).compute_pool, 1);
	CHECK_EQ(stats_of(&f).timers, 1);
	ran = 0;
	fake_advance(&f, HIVE_MS(1));
	CHECK_EQ(ran, 4);
	CHECK_EQ(stats_of(&f).posted, 4);
	fake_destroy(&f);
}

enum { FEW = 50 };
static struct fake *world;
static int children, privates, delayed[FEW];
static uint32_t private_worker;

static void spread(void *arg)
{
	(void)arg;
	ran++;
	CHECK_OK(hive_post(world->hive, count, NULL));
	CHECK_OK(hive_post_local(count, NULL));
	children += 2;
}

static void in_order(void *arg)
{
	CHECK_EQ((intptr_t)arg, privates++);
	CHECK_EQ(hive_worker_current(), private_worker);
}

static void not_early(void *arg)
{
	int i = (int)(intptr_t)arg;

	CHECK(world->now_ns >= HIVE_S(1000) + HIVE_MS(i));
	delayed[i]++;
}

static void do_some_of_everything(const struct hive_worker_options *worker, enum hive_preset preset)
{
	struct fake f = { 0 };

	world = &f;
	ran = children = privates = 0;
	memset(delayed, 0, sizeof delayed);
	fake_create(&f, (struct hive_options){ .preset = preset, .io_workers = 3, .io = worker });
	fake_start(&f);
	private_worker = f.workers[1].id;
	for (int i = 0; i < FEW; i++) {
		CHECK_OK(hive_post(f.hive, spread, NULL));
		CHECK_OK(hive_post_to(f.hive, private_worker, in_order, n(i)));
		CHECK_OK(hive_post_after(f.hive, HIVE_MS(i), not_early, n(i), NULL));
	}
	fake_settle(&f);
	for (int i = 0; i < FEW; i++)
		fake_advance(&f, HIVE_MS(1));
	CHECK_EQ(children, 2 * FEW);
	CHECK_EQ(ran, FEW + children);
	CHECK_EQ(privates, FEW);
	for (int i = 0; i < FEW; i++)
		CHECK_EQ(delayed[i], 1);
	fake_destroy(&f);
}

/* from the smallest to the largest parameters, everything runs once, in its place, in its order. */
TEST(parameters_change_the_pace_and_never_the_rules)
{
	static const struct hive_worker_options sets[] = {
		{ 0 },
		{ .local_capacity = 4,
		  .local_budget = 1,
		  .private_budget = 1,
		  .timer_budget = 1,
		  .pool_probe_interval = 1,
		  .pool_batch = 1,
		  .steal_attempts = HIVE_OFF,
		  .slice_ns = 1,
		  .spin_ns = HIVE_OFF },
		{ .local_capacity = 65536,
		  .local_budget = INT32_MAX,
		  .private_budget = INT32_MAX,
		  .timer_budget = INT32_MAX,
		  .pool_probe_interval = INT32_MAX,
		  .pool_batch = 256,
		  .steal_attempts = INT32_MAX,
		  .slice_ns = INT64_MAX,
		  .spin_ns = INT64_MAX },
		{ .local_capacity = 4, .pool_batch = 256, .no_outbox = true },
		{ .no_steal = true, .pool_batch = 3 },
	};

	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
		do_some_of_everything(&sets[i], HIVE_PRESET_DEFAULT);
		do_some_of_everything(&sets[i], HIVE_PRESET_ROPHIVE);
	}
}

static void post_a_hundred_local(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++)
		CHECK_OK(hive_post_local(fake_note, n(i)));
}

/* under the founding design's preset the local queue is newest first and nothing else, no ageing. The default
 * lets the oldest have its turn after a long row or a long time. */
TEST(the_founding_preset_has_no_ageing)
{
	static const enum hive_preset presets[] = { HIVE_PRESET_ROPHIVE, HIVE_PRESET_DEFAULT };
	char newest_first[512] = "";

	for (int i = 99; i >= 0; i--)
		snprintf(newest_first + strlen(newest_first), 8, "%s%d", i < 99 ? " " : "", i);
	for (int i = 0; i < 2; i++) {
		struct fake f = { 0 };

		fake_create(&f, (struct hive_options){ .io_workers = 1, .preset = presets[i] });
		fake_log_clear();
		fake_start(&f);
		CHECK_OK(hive_post_to(f.hive, f.workers[0].id, post_a_hundred_local, NULL));
		fake_step(&f, f.workers[0].id);
		f.now_ns += TUNE_NEWEST_NS;
		fake_settle(&f);
		CHECK_EQ(strcmp(fake_log(), newest_first) == 0, presets[i] == HIVE_PRESET_ROPHIVE);
		fake_destroy(&f);
	}
}

static void nothing_on_fire(struct hive_timer *timer)
{
	(void)timer;
}

/* each call names the thread it is for, and tells a caller on any other. */
TEST(calls_for_a_worker_thread_refuse_other_threads)
{
	struct hive_timer timer;
	struct hive_source idle;

	hive_timer_init(&timer, nothing_on_fire, NULL);
	hive_source_init(&idle, HIVE_SOURCE_FD, 0, HIVE_EVENT_IN, on_event, NULL);
	CHECK_MISUSE(hive_post_local(count, NULL), -EPERM);
	CHECK_MISUSE(hive_post_self(count, NULL), -EPERM);
	CHECK_MISUSE(hive_post_self_after(0, count, NULL, NULL), -EPERM);
	CHECK_MISUSE(hive_timer_start(&timer, 0, 0), -EPERM);
	CHECK_MISUSE(hive_source_start(&idle), -EPERM);
	CHECK_EQ(hive_worker_current(), HIVE_WORKER_NONE);
	CHECK(!hive_current());
}

/* hive, IO worker and compute worker are three things, told apart in every list. */
TEST(statistics_tell_the_kinds_of_workers_apart)
{
	struct fake f = { 0 };
	struct hive_worker_stats worker;
	uint32_t ids[8];

	fake_create(&f, (struct hive_options){ .io_workers = 2, .compute_workers = 3 });
	CHECK_EQ(hive_workers(f.hive, ids, 8), 5);
	for (int i = 0; i < 5; i++) {
		char name[32];

		snprintf(name, sizeof name, i < 2 ? "io-%d" : "compute-%d", i < 2 ? i : i - 2);
		CHECK_OK(hive_worker_stats_read(f.hive, ids[i], &worker));
		CHECK_EQ(worker.kind, i < 2 ? HIVE_WORKER_IO : HIVE_WORKER_COMPUTE);
		CHECK_STR(worker.name, name);
		CHECK_EQ(worker.worker, ids[i]);
	}
	CHECK_EQ(stats_of(&f).io_workers, 2);
	CHECK_EQ(stats_of(&f).compute_workers, 3);
	CHECK_OK(hive_destroy(f.hive));
	CHECK_EQ(f.balance, 0);
}
