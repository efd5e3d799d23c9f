/* SPDX-License-Identifier: MIT */
/* A worker leaves a hive that goes on (R-26 … ). */
#include <pthread.h>
#include <sched.h>

#include "support/fake.h"
#include "support/real.h"
#include "test.h"
#include "support/kinds.h"

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

/* never the main worker, under neither of its names, before run and while running; the others any time. */
TEST(the_main_worker_cannot_be_detached)
{
	struct fake f = { 0 };
	struct hive_worker_options compute = { .kind = HIVE_WORKER_COMPUTE };
	uint32_t main_id, io, number;

	fake_create(&f, (struct hive_options){ 0 });
	CHECK_OK(hive_attach(f.hive, &compute, &number));
	CHECK_OK(hive_attach(f.hive, NULL, &main_id));
	CHECK_OK(hive_attach(f.hive, NULL, &io));
	for (int running = 0; running < 2; running++) {
		if (running)
			fake_start(&f);
		CHECK_ERR(hive_detach(f.hive, main_id, HIVE_FOREVER), -EBUSY);
		CHECK_ERR(hive_detach(f.hive, HIVE_WORKER_MAIN, HIVE_NOWAIT), -EBUSY);
		CHECK_OK(hive_detach(f.hive, io, HIVE_FOREVER));
		CHECK_OK(hive_detach(f.hive, number, HIVE_FOREVER));
		CHECK_EQ(hive_workers(f.hive, NULL, 0), 1);
		CHECK_OK(hive_attach(f.hive, NULL, &io));
		CHECK_OK(hive_attach(f.hive, &compute, &number));
	}
	ran = 0;
	CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_OK(hive_post_compute(f.hive, count, NULL));
	fake_settle(&f);
	CHECK_EQ(ran, 2);
	fake_destroy(&f);
}

static int starts, stops;
static uint32_t stopped_on;

static void on_start(void *arg)
{
	(void)arg;
	starts++;
}

static void on_stop(void *arg)
{
	(void)arg;
	stops++;
	stopped_on = hive_worker_current();
}

/* detach takes it out of the registry at once, marks and wakes it; in its next beat it leaves, with its hook, and
 * closes its core. Afterwards nothing reaches it.                                                                            */
TEST(a_detached_worker_leaves_after_its_beat_and_takes_part_in_nothing)
{
	struct fake f = { 0 };
	struct fake_core_script script = { 0 };
	struct hive_worker_options o = { .core_arg = &script, .on_start = on_start, .on_stop = on_stop };
	uint32_t id;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_attach(f.hive, &o, &id));
	starts = stops = 0;
	fake_start(&f);
	fake_settle(&f);
	fake_reset_wakes(&f);
	CHECK_ERR(hive_detach(f.hive, id, HIVE_NOWAIT), -EINPROGRESS);
	CHECK(fake_worker(&f, id)->wakes >= 1);
	CHECK_EQ(hive_workers(f.hive, NULL, 0), 1);
	CHECK_ERR(hive_post_to(f.hive, id, count, NULL), -ESRCH);
	CHECK_ERR(hive_detach(f.hive, id, HIVE_NOWAIT), -ESRCH);
	CHECK_EQ(stops, 0);
	CHECK_EQ(fake_step(&f, id), -ESHUTDOWN);
	CHECK_EQ(starts, 1);
	CHECK_EQ(stops, 1);
	CHECK_EQ(stopped_on, id);
	CHECK_EQ(script.closes, 1);
	CHECK_EQ(stats_of(&f).sleeping, 1);
	CHECK_EQ(stats_of(&f).searching, 0); /* it looked for work in its last beat; nobody may rely on that now */
	ran = 0;
	for (int i = 0; i < 20; i++) { /* its share of delayed posts, too */
		CHECK_OK(hive_post(f.hive, count, NULL));
		CHECK_OK(hive_post_after(f.hive, 0, count, NULL, NULL));
	}
	fake_settle(&f);
	CHECK_EQ(ran, 40);
	CHECK_EQ(ran_on, f.workers[0].id);
	fake_destroy(&f);
	CHECK_EQ(stops, 1);
}

static struct hive_timer embedded;
static int embedded_fired;
static uint32_t embedded_on;

static void embedded_fires(struct hive_timer *timer)
{
	(void)timer;
	embedded_fired++;
	embedded_on = hive_worker_current();
}

static struct fake *world;
static uint32_t leaver;

/* "<number>": ran on the leaver; "<number + 100>": elsewhere. */
static void note_place(void *arg)
{
	fake_note(n((int)(intptr_t)arg + (hive_worker_current() == leaver ? 0 : 100)));
}

static void have_some_of_everything(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		CHECK_OK(hive_post_local(note_place, n(1 + i)));
		CHECK_OK(hive_post_self(note_place, n(11 + i)));
		CHECK_OK(hive_post(world->hive, note_place, n(21 + i)));
		CHECK_OK(hive_post_self_after(HIVE_MS(1 + i), note_place, n(31 + i), NULL));
	}
	hive_timer_init(&embedded, embedded_fires, NULL);
	CHECK_OK(hive_timer_start(&embedded, HIVE_MS(2), HIVE_MS(2)));
	CHECK_ERR(hive_detach(world->hive, leaver, HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_detach(world->hive, leaver, HIVE_NOWAIT), -EINPROGRESS);
	CHECK_ERR(hive_detach(world->hive, leaver, HIVE_NOWAIT), -ESRCH);
}

/* nothing is lost: private tasks run before it leaves, on its own thread and in order; local tasks, the outbox
 * and delayed posts move to others, embedded timers to the main worker, where they go on. It asked for this itself.         */
TEST(a_leaving_worker_keeps_its_private_tasks_and_hands_over_the_rest)
{
	FOR_BOTH_ORDERS(order)
	{
		struct fake f = { 0 };
		struct hive_worker_options o = { .private_budget = 1, .local_budget = 1, .order = order };

		world = &f;
		fake_create(&f, (struct hive_options){ .io_workers = 1 });
		CHECK_OK(hive_attach(f.hive, &o, &leaver));
		fake_start(&f);
		fake_log_clear();
		embedded_fired = 0;
		CHECK_OK(hive_post_to(f.hive, leaver, have_some_of_everything, NULL));
		CHECK_OK(hive_post_to(f.hive, leaver, note_place, n(9)));
		CHECK_OK(hive_post_after(f.hive, HIVE_MS(5), note_place, n(39), NULL));
		CHECK_EQ(fake_step(&f, leaver), -ESHUTDOWN);
		CHECK_EQ(strncmp(fake_log() + strlen(fake_log()) - 10, "9 11 12 13", 10), 0);
		CHECK(strlen(fake_log()) <= 12); /* and at most one local task, which its last beat could still do */
		fake_settle(&f);
		for (int i = 1; i <= 3; i++) {
			char here[8], there[8];

			snprintf(there, sizeof there, "%d", 120 + i);
			CHECK(strstr(fake_log(), there));
			snprintf(there, sizeof there, "%d", 100 + i);
			snprintf(here, sizeof here, "%d ", i);
			CHECK(strstr(fake_log(), there) || strncmp(fake_log(), here, 2) == 0);
		}
		fake_log_clear();
		for (int i = 0; i < 6; i++)
			fake_advance(&f, HIVE_MS(1));
		CHECK_STR(fake_log(), "131 132 133 139");
		CHECK_EQ(embedded_fired, 3);
		CHECK_EQ(embedded_on, f.workers[0].id);
		fake_destroy(&f);
	}
}

/* detached before it ever ran: what was posted to it runs elsewhere. */
TEST(tasks_of_a_worker_detached_before_run_are_done_by_others)
{
	struct fake f = { 0 };
	uint32_t id;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_attach(f.hive, NULL, &id));
	for (int i = 0; i < 10; i++) {
		CHECK_OK(hive_post_to(f.hive, id, count, NULL));
		CHECK_OK(hive_post_after(f.hive, HIVE_MS(1), count, NULL, NULL));
	}
	CHECK_OK(hive_detach(f.hive, id, HIVE_NOWAIT));
	CHECK_ERR(hive_post_to(f.hive, id, count, NULL), -ESRCH);
	ran = 0;
	fake_start(&f);
	fake_settle(&f);
	CHECK_EQ(ran, 10);
	fake_advance(&f, HIVE_MS(1));
	CHECK_EQ(ran, 20);
	fake_destroy(&f);
}

/* to run its private tasks may take a leaving worker a while, but not for ever: then others help. */
TEST(a_leaving_worker_with_very_many_private_tasks_gives_the_rest_away)
{
	enum { BUDGET = 1, EXTRA = 10 };
	struct fake f = { 0 };
	struct hive_worker_options o = { .private_budget = BUDGET };
	uint32_t id;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_attach(f.hive, &o, &id));
	fake_start(&f);
	fake_settle(&f);
	for (int i = 0; i < BUDGET + TUNE_LAST_PRIVATE + EXTRA; i++)
		CHECK_OK(hive_post_to(f.hive, id, count, NULL));
	ran = 0;
	CHECK_ERR(hive_detach(f.hive, id, HIVE_NOWAIT), -EINPROGRESS);
	CHECK_ERR(fake_step(&f, id), -ESHUTDOWN);
	CHECK_EQ(ran, BUDGET + TUNE_LAST_PRIVATE);
	CHECK_EQ(ran_on, id);
	fake_settle(&f);
	CHECK_EQ(ran, BUDGET + TUNE_LAST_PRIVATE + EXTRA);
	CHECK_EQ(ran_on, f.workers[0].id);
	fake_destroy(&f);
}

static struct hive_source source;

static void on_ready(struct hive_source *s, uint32_t events)
{
	(void)s, (void)events;
}

static void start_source(void *arg)
{
	(void)arg;
	hive_source_init(&source, HIVE_SOURCE_USER, 1, HIVE_EVENT_IN, on_ready, NULL);
	CHECK_OK(hive_source_start(&source));
}

/* sources that its user forgot are stopped, and somebody is told. */
TEST(sources_of_a_leaving_worker_are_stopped_with_a_warning)
{
	struct fake f = { 0 };
	struct fake_core_script script = { 0 };
	struct hive_worker_options o = { .core_arg = &script, .on_start = start_source };
	uint32_t id;

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_attach(f.hive, &o, &id));
	fake_start(&f);
	fake_settle(&f);
	CHECK(script.sources[0] == &source);
	CHECK_EQ(stats_of(&f).sources, 1);
	CHECK_OK(hive_detach(f.hive, id, HIVE_FOREVER));
	CHECK(!script.sources[0]);
	CHECK_EQ(stats_of(&f).sources, 0);
	CHECK_EQ(f.warnings, 1);
	CHECK_EQ(hive_source_stop(&source), 0);
	fake_destroy(&f);
}

static void post_while_leaving(void *arg)
{
	(void)arg;
	CHECK_OK(hive_post_self(note_place, n(1)));
	CHECK_OK(hive_post_local(note_place, n(2)));
	CHECK_OK(hive_post(hive_current(), note_place, n(3)));
	CHECK_OK(hive_post_self_after(0, note_place, n(4), NULL));
}

/* the last hook may post too: its private task runs here, the rest elsewhere. */
TEST(what_the_stop_hook_of_a_leaving_worker_posts_is_done)
{
	struct fake f = { 0 };
	struct hive_worker_options o = { .on_stop = post_while_leaving };

	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_attach(f.hive, &o, &leaver));
	fake_start(&f);
	fake_settle(&f);
	fake_log_clear();
	CHECK_OK(hive_detach(f.hive, leaver, HIVE_FOREVER));
	fake_settle(&f);
	CHECK_EQ(fake_log()[0], '1');
	CHECK(strstr(fake_log(), "102") && strstr(fake_log(), "103") && strstr(fake_log(), "104"));
	fake_destroy(&f);
}

/* one who was woken for a task and leaves instead passes the wake on. */
TEST(a_leaving_worker_passes_its_wake_on)
{
	struct fake f = { 0 };
	int woken;

	fake_create(&f, (struct hive_options){ .io_workers = 3 });
	fake_start(&f);
	fake_step(&f, f.workers[1].id); /* the main worker is busy elsewhere, the other two sleep */
	fake_step(&f, f.workers[2].id);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_EQ(f.wakes, 1);
	woken = f.workers[2].wakes ? 2 : 1;
	ran = 0;
	CHECK_ERR(hive_detach(f.hive, f.workers[woken].id, HIVE_NOWAIT), -EINPROGRESS);
	CHECK_EQ(fake_step(&f, f.workers[woken].id), -ESHUTDOWN);
	CHECK(ran < 3);
	CHECK_EQ(f.workers[3 - woken].wakes, 1);
	fake_settle(&f);
	fake_destroy(&f);
}

/* compute workers come and go as well; the last one stays while there is something to compute. */
TEST(the_last_compute_worker_stays_while_it_has_work)
{
	struct fake f = { 0 };
	uint32_t a, b;

	fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 2 });
	fake_start(&f);
	a = f.workers[1].id;
	b = f.workers[2].id;
	CHECK_OK(hive_post_compute(f.hive, count, NULL));
	CHECK_ERR(hive_detach(f.hive, a, HIVE_NOWAIT), -EINPROGRESS);
	CHECK_EQ(fake_step(&f, a), -ESHUTDOWN);
	CHECK_ERR(hive_detach(f.hive, b, HIVE_NOWAIT), -EBUSY);
	ran = 0;
	fake_settle(&f);
	CHECK_EQ(ran, 1);
	CHECK_OK(hive_detach(f.hive, b, HIVE_FOREVER));
	CHECK_OK(hive_post_compute(f.hive, count, NULL)); /* accepted, for whoever comes next */
	CHECK_OK(hive_attach(f.hive, &(struct hive_worker_options){ .kind = HIVE_WORKER_COMPUTE }, NULL));
	fake_settle(&f);
	CHECK_EQ(ran, 2);
	fake_destroy(&f);
}

/* nonsense is refused, and so is a hive that stops. */
TEST(detach_refuses_what_is_not_there)
{
	struct fake f = { 0 };

	CHECK_ERR(hive_detach(NULL, 1, HIVE_NOWAIT), -EINVAL);
	fake_create(&f, (struct hive_options){ .io_workers = 2 });
	fake_start(&f);
	CHECK_ERR(hive_detach(f.hive, HIVE_WORKER_NONE, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_detach(f.hive, f.workers[1].id + 1, HIVE_NOWAIT), -ESRCH);
	CHECK_ERR(hive_detach(f.hive, 0x7fffffff, HIVE_NOWAIT), -ESRCH);
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_ERR(hive_detach(f.hive, f.workers[1].id, HIVE_NOWAIT), -ESHUTDOWN);
	fake_destroy(&f);
}

/* R-27, real threads: it is inside a long task, so the deadline passes; it is out of the hive nevertheless, leaves by itself,
 * and its place is used again.                                                                                               */
TEST(a_worker_in_a_long_task_leaves_when_that_ends)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	struct block block;
	struct gate done;
	uint32_t id, next;

	block_init(&block);
	gate_init(&done);
	CHECK_OK(hive_attach(hive, NULL, &id));
	CHECK_OK(hive_post_to(hive, id, block_task, &block));
	CHECK_OK(hive_post_to(hive, id, gate_open_task, &done));
	gate_pass(&block.entered);
	CHECK_ERR(hive_detach(hive, id, hive_deadline(hive, HIVE_US(1))), -EINPROGRESS);
	CHECK_EQ(hive_workers(hive, NULL, 0), 1);
	CHECK_ERR(hive_post_to(hive, id, gate_open_task, &done), -ESRCH);
	gate_open(&block.leave);
	gate_pass(&done); /* what was queued there ran, before it left */
	for (int i = 0; i < 20; i++) {
		CHECK_OK(hive_attach(hive, NULL, &next));
		CHECK(next != id);
		CHECK_OK(hive_detach(hive, next, real_patience()));
	}
	real_end(hive, HIVE_DRAIN);
	block_destroy(&block);
	gate_destroy(&done);
}

static uint64_t accepted, done_count;
static int stop_posting;
static uint32_t guests[4];

static void tally(void *arg)
{
	(void)arg;
	__atomic_add_fetch(&done_count, 1, __ATOMIC_SEQ_CST);
}

/* Accepted is counted before, and done at the end, so that done = accepted means that nothing is left. */
static void tally_and_spread(void *arg)
{
	__atomic_add_fetch(&accepted, 3, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post_local(tally, NULL));
	tally(arg);
}

static void *keep_posting(void *arg)
{
	struct hive *hive = arg;

	for (unsigned i = 0; !__atomic_load_n(&stop_posting, __ATOMIC_SEQ_CST); i++) {
		uint32_t guest = __atomic_load_n(&guests[i % 4], __ATOMIC_SEQ_CST);
		int r;

		__atomic_add_fetch(&accepted, 3, __ATOMIC_SEQ_CST);
		r = guest ? hive_post_to(hive, guest, tally_and_spread, NULL) : -ESRCH;
		CHECK(r == 0 || r == -ESRCH);
		__atomic_sub_fetch(&accepted, r < 0, __ATOMIC_SEQ_CST);
		CHECK_OK(hive_post_after(hive, HIVE_US(i % 50), tally, NULL, NULL));
		CHECK_OK(hive_post(hive, tally_and_spread, NULL));
		if (i % 64 == 0)
			sched_yield();
	}
	return NULL;
}

/* under load four places change hands again and again, while others post to them, steal from them
 * and wake them. What was accepted runs, once; nothing of a worker that left is touched wrongly (the sanitizers look on).  */
TEST(workers_come_and_go_under_load_and_nothing_is_lost)
{
	FOR_BOTH_ORDERS(order)
	{
		struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
		struct hive_worker_options o = { .order = order };
		pthread_t threads[2];

		accepted = done_count = 0;
		stop_posting = 0;
		memset(guests, 0, sizeof guests);
		for (int i = 0; i < 2; i++)
			CHECK_OK(pthread_create(&threads[i], NULL, keep_posting, hive));
		for (int i = 0; i < 100 / test_slowness(); i++) {
			uint32_t id, old = guests[i % 4];

			CHECK_OK(hive_attach(hive, &o, &id));
			__atomic_store_n(&guests[i % 4], id, __ATOMIC_SEQ_CST);
			if (old)
				CHECK_OK(hive_detach(hive, old, real_patience()));
		}
		__atomic_store_n(&stop_posting, 1, __ATOMIC_SEQ_CST);
		for (int i = 0; i < 2; i++)
			CHECK_OK(pthread_join(threads[i], NULL));
		WAIT_UNTIL(__atomic_load_n(&done_count, __ATOMIC_SEQ_CST) ==
		           __atomic_load_n(&accepted, __ATOMIC_SEQ_CST));
		CHECK_EQ(real_end(hive, HIVE_DRAIN).ran, accepted);
	}
}
