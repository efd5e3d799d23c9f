/* SPDX-License-Identifier: MIT */
/* From create to destroy: attach, run, start, threads (R-15 … ). Detach: detach.c; stop: stop.c. */
#include <pthread.h>
#include <sched.h>

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

static void stop_hive(void *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

/* create, attach, post, run, destroy; nothing else is needed. */
TEST(the_shortest_program_is_complete)
{
	struct hive *hive;

	ran = 0;
	CHECK_OK(hive_create(NULL, &hive));
	CHECK_OK(hive_attach(hive, NULL, NULL));
	CHECK_OK(hive_post(hive, count, NULL));
	CHECK_OK(hive_post_after(hive, HIVE_US(1), stop_hive, hive, NULL));
	CHECK_OK(hive_run(hive));
	CHECK_EQ(ran, 1);
	CHECK_OK(hive_destroy(hive));
	CHECK_OK(hive_destroy(NULL));
}

struct preparation {
	struct fake_core_script script;
	struct hive_source source;
	struct hive_timer timer;
	int fired, events, turns_at_start;
	uint32_t worker;
};

static void on_fire(struct hive_timer *timer)
{
	((struct preparation *)timer->arg)->fired++;
}

static void on_ready(struct hive_source *source, uint32_t events)
{
	(void)events;
	((struct preparation *)source->arg)->events++;
}

static void prepare(void *arg)
{
	struct preparation *p = arg;

	p->turns_at_start = p->script.turns;
	p->worker = hive_worker_current();
	hive_source_init(&p->source, HIVE_SOURCE_USER, 3, HIVE_EVENT_IN, on_ready, p);
	hive_timer_init(&p->timer, on_fire, p);
	CHECK_OK(hive_source_start(&p->source));
	CHECK_OK(hive_timer_start(&p->timer, 0, 0));
}

static void deliver_first(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	if (script->sources[0])
		hive_source_deliver(script->sources[0], HIVE_EVENT_IN);
}

/* sources and timers named before run are there in the first beat, and not a moment earlier. */
TEST(preparations_take_effect_when_the_loop_starts)
{
	struct fake f = { 0 };
	struct preparation p = { .script = { .in_turn = deliver_first }, .turns_at_start = -1 };
	struct hive_worker_options worker = { .core_arg = &p.script, .on_start = prepare, .hook_arg = &p };
	uint32_t id;

	fake_create(&f, (struct hive_options){ 0 });
	CHECK_OK(hive_attach(f.hive, &worker, &id));
	CHECK_EQ(p.script.opens, 0);
	CHECK_EQ(p.turns_at_start, -1);
	fake_start(&f);
	fake_step(&f, id);
	CHECK_EQ(p.turns_at_start, 0);
	CHECK_EQ(p.worker, id);
	CHECK_EQ(p.events, 1);
	CHECK_EQ(p.fired, 1);
	fake_destroy(&f);
}

/* A host whose threads are counted, and refused from a certain one on. */
struct threads {
	struct hive_host host;
	int started, joined, ended, refuse_from;
};

struct thread_begin {
	struct threads *threads;
	hive_fn *main;
	void *arg;
};

static void *thread_body(void *arg)
{
	struct thread_begin start = *(struct thread_begin *)arg;

	free(arg);
	start.main(start.arg);
	__atomic_add_fetch(&start.threads->ended, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static int thread_begin(void *arg, hive_fn *main, void *main_arg, uint64_t *ret_thread)
{
	struct threads *t = arg;
	struct thread_begin *start = malloc(sizeof *start);
	pthread_t thread;

	if (t->refuse_from && t->started + 1 >= t->refuse_from) {
		free(start);
		return -EAGAIN;
	}
	*start = (struct thread_begin){ t, main, main_arg };
	CHECK_OK(pthread_create(&thread, NULL, thread_body, start));
	t->started++;
	*ret_thread = (uint64_t)thread;
	return 0;
}

static void thread_join(void *arg, uint64_t thread)
{
	CHECK_OK(pthread_join((pthread_t)thread, NULL));
	((struct threads *)arg)->joined++;
}

static struct threads counted_threads(void)
{
	return (struct threads){ .host = { .thread_start = thread_begin, .thread_join = thread_join } };
}

/* attach starts no thread; run starts one for each worker but the main one, whose thread is the
 * caller's; when it returns all of them have ended.                                                                    */
TEST(run_makes_one_thread_for_each_other_worker_and_sees_them_off)
{
	struct threads t = counted_threads();
	struct hive_worker_options compute = { .kind = HIVE_WORKER_COMPUTE };
	uint32_t ids[5], listed[8];
	struct hive *hive;

	t.host.arg = &t;
	hive = real_create((struct hive_options){ .host = &t.host, .stall_ns = HIVE_OFF });
	CHECK_OK(hive_attach(hive, &compute, &ids[3]));
	CHECK_OK(hive_attach(hive, NULL, &ids[0]));
	CHECK_OK(hive_attach(hive, NULL, &ids[1]));
	CHECK_OK(hive_attach(hive, &compute, &ids[4]));
	CHECK_OK(hive_attach(hive, NULL, &ids[2]));
	CHECK_EQ(t.started, 0);
	CHECK_EQ(hive_workers(hive, listed, 8), 5);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(listed[i], ids[i]);
	CHECK_OK(hive_post_to(hive, ids[2], stop_hive, hive));
	CHECK_OK(hive_run(hive));
	CHECK_EQ(t.started, 4);
	CHECK_EQ(t.joined, 4);
	CHECK_EQ(t.ended, 4);
	CHECK_OK(hive_destroy(hive));
}

/* with start the main worker has a thread like the others; join sees it off. */
TEST(start_gives_every_worker_a_thread)
{
	struct threads t = counted_threads();
	struct hive *hive;

	t.host.arg = &t;
	hive = real_create(
		(struct hive_options){ .io_workers = 2, .compute_workers = 1, .host = &t.host, .stall_ns = HIVE_OFF });
	CHECK_OK(hive_start(hive));
	CHECK_EQ(t.started, 3);
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, real_patience()));
	CHECK_EQ(t.joined, 3);
	CHECK_OK(hive_join(hive, HIVE_NOWAIT)); /* again: nothing left to do */
	CHECK_EQ(t.joined, 3);
	CHECK_OK(hive_destroy(hive));
}

/* a thread that cannot be had makes run and start fail, with nothing left running; later it may be tried
 * again.                                                                                                             */
TEST(a_start_that_fails_leaves_nothing_and_can_be_repeated)
{
	for (int refuse = 1; refuse <= 3; refuse++) {
		struct threads t = counted_threads();
		struct hive *hive;

		t.host.arg = &t;
		t.refuse_from = refuse;
		hive = real_create((struct hive_options){
			.io_workers = 2, .compute_workers = 2, .host = &t.host, .stall_ns = HIVE_OFF });
		ran = 0;
		CHECK_OK(hive_post(hive, count, NULL));
		CHECK_ERR(hive_run(hive), -EAGAIN);
		CHECK_EQ(t.joined, t.started);
		CHECK_EQ(t.ended, t.started);
		CHECK_EQ(hive_worker_current(), HIVE_WORKER_NONE);
		t.refuse_from = refuse + t.started;
		CHECK_ERR(hive_start(hive), -EAGAIN);
		CHECK_EQ(t.joined, t.started);
		CHECK_EQ(ran, 0);
		CHECK_ERR(hive_join(hive, HIVE_NOWAIT), -EINVAL);
		t.refuse_from = 0;
		CHECK_OK(hive_post_after(hive, HIVE_US(1), stop_hive, hive, NULL));
		CHECK_OK(hive_run(hive));
		CHECK_EQ(ran, 1);
		CHECK_EQ(t.joined, t.started);
		CHECK_OK(hive_destroy(hive));
	}
}

/* the same for a core that cannot be opened, the main worker's and another's. */
TEST(a_core_that_cannot_be_opened_makes_the_start_fail)
{
	for (int which = 0; which < 2; which++) {
		struct fake f = { 0 };
		struct fake_core_script scripts[2];

		memset(scripts, 0, sizeof scripts);
		fake_create(&f, (struct hive_options){ .compute_workers = 1 });
		for (int i = 0; i < 2; i++) {
			struct hive_worker_options worker = { .core_arg = &scripts[i] };

			CHECK_OK(hive_attach(f.hive, &worker, NULL));
		}
		scripts[which].fail_open = -EMFILE;
		CHECK_OK(hive_post(f.hive, count, NULL));
		CHECK_ERR(hive_start(f.hive), -EMFILE);
		CHECK_EQ(scripts[0].opens, scripts[0].closes);
		CHECK_EQ(scripts[1].opens, scripts[1].closes);
		ran = 0;
		fake_settle(&f); /* steps of the first try answer that they have left */
		CHECK_EQ(ran, 0);
		fake_start(&f);
		fake_step(&f, f.workers[f.worker_count - 3].id);
		fake_step(&f, f.workers[f.worker_count - 3].id);
		CHECK_EQ(ran, 1);
		fake_destroy(&f);
		CHECK_EQ(scripts[0].opens, scripts[0].closes);
		CHECK_EQ(scripts[1].opens, scripts[1].closes);
	}
}

/* the list is IO workers first, each kind in the order in which it came; a short array gets its share, and the
 * answer is how many there are.                                                                                       */
TEST(workers_of_both_kinds_are_attached_in_any_number_and_order)
{
	struct fake f = { 0 };
	uint32_t ids[10], listed[10], few[3] = { 0, 0, 77 };

	fake_create(&f, (struct hive_options){ 0 });
	CHECK_EQ(hive_workers(f.hive, NULL, 0), 0);
	for (int i = 0; i < 10; i++) {
		struct hive_worker_options o = { .kind = i % 2 ? HIVE_WORKER_IO : HIVE_WORKER_COMPUTE };

		CHECK_OK(hive_attach(f.hive, &o, &ids[i % 2 ? i / 2 : 5 + i / 2]));
	}
	CHECK_EQ(hive_workers(f.hive, listed, 10), 10);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(listed[i], ids[i]);
		for (int k = 0; k < i; k++)
			CHECK(ids[k] != ids[i]);
	}
	CHECK_EQ(hive_workers(f.hive, few, 2), 10);
	CHECK_EQ(few[1], ids[1]);
	CHECK_EQ(few[2], 77);
	CHECK_EQ(hive_workers(f.hive, NULL, 5), 10);
	CHECK_EQ(hive_workers(NULL, listed, 10), 0);
	fake_start(&f);
	CHECK_EQ(f.worker_count, 10);
	fake_destroy(&f);
}

/* like an ordinary thread pool; HIVE_AUTO follows the machine. */
TEST(create_attaches_workers_by_number)
{
	struct hive *hive = real_create((struct hive_options){ .io_workers = HIVE_AUTO, .compute_workers = HIVE_AUTO });
	struct hive_stats stats;

	CHECK(hive_cpus() >= 1);
	CHECK_OK(hive_stats_read(hive, &stats));
	CHECK_EQ(stats.io_workers, hive_cpus());
	CHECK_EQ(stats.compute_workers, hive_cpus());
	CHECK_OK(hive_destroy(hive));
	hive = real_create((struct hive_options){ .io_workers = 3, .compute_workers = 7 });
	CHECK_OK(hive_stats_read(hive, &stats));
	CHECK_EQ(stats.io_workers, 3);
	CHECK_EQ(stats.compute_workers, 7);
	CHECK_OK(hive_destroy(hive));
}

/* what is posted before run is done after it has begun; the delay of a delayed post counts from the post. */
TEST(posts_before_run_are_kept_and_delays_count_from_the_post)
{
	struct fake f = { 0 };
	uint32_t second;

	fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	CHECK_OK(hive_attach(f.hive, &(struct hive_worker_options){ .no_steal = true }, &second));
	fake_log_clear();
	CHECK_OK(hive_post_after(f.hive, HIVE_MS(10), fake_note, n(4), NULL));
	f.now_ns += HIVE_MS(6);
	CHECK_OK(hive_post(f.hive, fake_note, n(1)));
	CHECK_OK(hive_post_to(f.hive, second, fake_note, n(2)));
	CHECK_OK(hive_post_compute(f.hive, fake_note, n(3)));
	CHECK_STR(fake_log(), "");
	fake_start(&f);
	fake_settle(&f);
	CHECK_EQ(strlen(fake_log()), 5);
	CHECK(strchr(fake_log(), '1') && strchr(fake_log(), '2') && strchr(fake_log(), '3'));
	fake_log_clear();
	fake_advance(&f, HIVE_MS(4) - 1);
	CHECK_STR(fake_log(), "");
	fake_advance(&f, 1);
	CHECK_STR(fake_log(), "4");
	fake_destroy(&f);
}

/* Who ran where. */
struct seat {
	pthread_t thread;
	int visits;
};

static void sit(void *arg)
{
	struct seat *seat = arg;

	if (seat->visits++ == 0)
		seat->thread = pthread_self();
	CHECK(pthread_equal(seat->thread, pthread_self()));
}

/* the first IO worker, and not the compute worker that came before it, has the caller's thread; each worker has
 * one thread from its first hook to its last, and all are different.                                                      */
TEST(the_main_worker_runs_on_the_callers_thread_and_each_worker_on_one)
{
	struct seat seats[3] = { 0 };
	struct hive *hive = real_create((struct hive_options){ 0 });
	uint32_t ids[3];

	for (int i = 0; i < 3; i++) {
		struct hive_worker_options o = { .kind = i == 0 ? HIVE_WORKER_COMPUTE : HIVE_WORKER_IO,
			                         .on_start = sit,
			                         .on_stop = sit,
			                         .on_park = sit,
			                         .on_unpark = sit,
			                         .hook_arg = &seats[i] };

		CHECK_OK(hive_attach(hive, &o, &ids[i]));
	}
	for (int i = 0; i < 20; i++) {
		CHECK_OK(hive_post_compute(hive, sit, &seats[0]));
		CHECK_OK(hive_post_to(hive, ids[1], sit, &seats[1]));
		CHECK_OK(hive_post_to(hive, ids[2], sit, &seats[2]));
	}
	CHECK_OK(hive_post_after(hive, HIVE_MS(1), stop_hive, hive, NULL));
	CHECK_OK(hive_run(hive));
	CHECK_OK(hive_destroy(hive));
	for (int i = 0; i < 3; i++)
		CHECK(seats[i].visits >= 22);
	CHECK(pthread_equal(seats[1].thread, pthread_self()));
	CHECK(!pthread_equal(seats[0].thread, seats[1].thread));
	CHECK(!pthread_equal(seats[2].thread, seats[1].thread));
	CHECK(!pthread_equal(seats[0].thread, seats[2].thread));
}

/* without an IO worker there is nobody to run. */
TEST(run_without_an_io_worker_is_refused)
{
	struct hive *hive = real_create((struct hive_options){ 0 });

	CHECK_ERR(hive_run(hive), -EINVAL);
	CHECK_ERR(hive_start(hive), -EINVAL);
	CHECK_OK(hive_attach(hive, &(struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE }, NULL));
	CHECK_ERR(hive_run(hive), -EINVAL);
	CHECK_ERR(hive_start(hive), -EINVAL);
	CHECK_ERR(hive_join(hive, HIVE_NOWAIT), -EINVAL);
	CHECK_OK(hive_attach(hive, NULL, NULL));
	CHECK_OK(hive_start(hive));
	real_end(hive, HIVE_DRAIN);
}

static void try_to_run_again(void *hive)
{
	CHECK(hive_run(hive) < 0);
	CHECK(hive_start(hive) < 0);
	CHECK(hive_destroy(hive) < 0);
	CHECK_ERR(hive_join(hive, HIVE_FOREVER), -EDEADLK);
}

/* each step of the life has its time. */
TEST(calls_out_of_their_time_are_refused)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	struct hive_report report = { .posted = 77 };
	struct gate done;

	gate_init(&done);
	CHECK_ERR(hive_start(hive), -EALREADY);
	CHECK_ERR(hive_run(hive), -EALREADY);
	CHECK_ERR(hive_destroy(hive), -EBUSY);
	CHECK_ERR(hive_report_read(hive, &report), -EBUSY);
	CHECK_EQ(report.posted, 77);
	CHECK_ERR(hive_join(hive, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_join(hive, -5), -ETIMEDOUT);
	CHECK_OK(hive_post(hive, try_to_run_again, hive));
	CHECK_OK(hive_post_after(hive, HIVE_US(1), gate_open_task, &done, NULL));
	gate_pass(&done);
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, real_patience()));
	CHECK_ERR(hive_start(hive), -ESHUTDOWN);
	CHECK_ERR(hive_run(hive), -ESHUTDOWN);
	CHECK_ERR(hive_attach(hive, NULL, NULL), -ESHUTDOWN);
	CHECK_OK(hive_report_read(hive, &report));
	CHECK_EQ(report.ran, 2);
	CHECK_OK(hive_destroy(hive));
	gate_destroy(&done);
}

static void post_three_local(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post_local(count, NULL));
}

/* attached while the hive runs, it is stepped at once and takes part in pool, directed posts, timers, thefts (both
 * ways) and wakes.                                                                                                      */
TEST(a_worker_attached_while_running_takes_part_in_everything)
{
	struct fake f = { 0 };
	struct hive_worker_options one_at_a_time = { .local_budget = 1 };
	uint32_t old, new;

	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &one_at_a_time });
	fake_start(&f);
	old = f.workers[0].id;
	fake_settle(&f);
	CHECK_OK(hive_attach(f.hive, &one_at_a_time, &new));
	CHECK_EQ(f.worker_count, 2);
	CHECK_EQ(fake_step(&f, new), HIVE_FOREVER);
	ran = 0;
	CHECK_OK(hive_post(f.hive, count, NULL)); /* pool */
	fake_step(&f, new);
	fake_step(&f, new);
	CHECK_EQ(ran, 1);
	CHECK_EQ(ran_on, new);
	fake_settle(&f);
	fake_reset_wakes(&f);
	CHECK_OK(hive_post_to(f.hive, new, count, NULL)); /* directed, woken */
	CHECK_EQ(fake_worker(&f, new)->wakes, 1);
	fake_step(&f, new);
	CHECK_EQ(ran_on, new);
	fake_push_random(&f, fake_random(1, 2)); /* the second of the two workers, then the other: both have none */
	fake_push_random(&f, 0);
	CHECK_OK(hive_post_after(f.hive, 0, count, NULL, NULL));
	fake_step(&f, old);
	CHECK_EQ(ran, 2);
	fake_step(&f, new);
	CHECK_EQ(ran, 3);
	CHECK_OK(hive_post_to(f.hive, old, post_three_local, NULL)); /* it steals */
	fake_step(&f, old);
	fake_step(&f, new);
	ran_on = 0;
	fake_step(&f, new);
	CHECK_EQ(ran_on, new);
	fake_step(&f, old);
	CHECK_EQ(ran, 6);
	CHECK_OK(hive_post_to(f.hive, new, post_three_local, NULL)); /* it is stolen from */
	fake_step(&f, new);
	fake_step(&f, old);
	ran_on = 0;
	fake_step(&f, old);
	CHECK_EQ(ran_on, old);
	fake_step(&f, new);
	CHECK_EQ(ran, 9);
	fake_destroy(&f);
}

/* R-25, real threads: the main worker is busy, so the task can only be done by the newcomer. */
TEST(a_worker_attached_while_running_has_its_thread_at_once)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	struct hive_worker_options compute = { .kind = HIVE_WORKER_COMPUTE };
	struct block block;
	struct gate done;

	block_init(&block);
	gate_init(&done);
	CHECK_OK(hive_post(hive, block_task, &block));
	gate_pass(&block.entered);
	CHECK_OK(hive_post(hive, gate_open_task, &done));
	CHECK_OK(hive_post_compute(hive, gate_open_task, &done));
	CHECK_OK(hive_attach(hive, NULL, NULL));
	gate_pass(&done);
	CHECK_OK(hive_attach(hive, &compute, NULL));
	gate_pass(&done);
	gate_open(&block.leave);
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&done);
	block_destroy(&block);
}

static void post_to_myself_by_name(void *gate)
{
	CHECK_OK(hive_post_to(hive_current(), hive_worker_current(), gate_open_task, gate));
}

/* its own id is good for posts from the very first hook on. */
TEST(a_worker_attached_while_running_can_be_posted_to_from_its_start_hook)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	struct gate done;

	gate_init(&done);
	for (int i = 0; i < 200 / test_slowness(); i++) {
		struct hive_worker_options o = { .on_start = post_to_myself_by_name, .hook_arg = &done };
		uint32_t id;

		CHECK_OK(hive_attach(hive, &o, &id));
		gate_pass(&done);
		CHECK_OK(hive_detach(hive, id, real_patience()));
	}
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&done);
}

/* a newcomer whose core cannot be opened is not there, and the hive goes on. */
TEST(an_attach_that_fails_while_running_changes_nothing)
{
	struct fake f = { 0 };
	struct fake_core_script script = { .fail_open = -EMFILE };
	struct hive_worker_options worker = { .core_arg = &script };
	uint32_t id = 77;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	CHECK_ERR(hive_attach(f.hive, &worker, &id), -EMFILE);
	CHECK_EQ(id, 77);
	CHECK_EQ(hive_workers(f.hive, NULL, 0), 1);
	ran = 0;
	CHECK_OK(hive_post(f.hive, count, NULL));
	fake_settle(&f);
	CHECK_EQ(ran, 1);
	CHECK_OK(hive_attach(f.hive, &worker, &id));
	CHECK_EQ(hive_workers(f.hive, NULL, 0), 2);
	fake_destroy(&f);
}
