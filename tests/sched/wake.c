/* SPDX-License-Identifier: MIT */
/* Who is woken, and by whom; who never sleeps through work (R-65 … R-75, stepped). Real threads: awake.c. */
#include "support/fake.h"
#include "test.h"

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

/* Everybody announced asleep, no wakes counted. */
static void create_asleep(struct fake *f, struct hive_options options)
{
	fake_create(f, options);
	fake_start(f);
	fake_settle(f);
	CHECK_EQ(stats_of(f).sleeping, f->worker_count);
	fake_reset_wakes(f);
}

/* with four asleep, one post, one batch, one delayed and one directed post wake exactly one each. */
TEST(a_post_or_a_batch_wakes_exactly_one)
{
	struct hive_task tasks[100];

	for (int i = 0; i < 100; i++)
		tasks[i] = (struct hive_task){ count, NULL };
	for (int door = 0; door < 6; door++) {
		struct fake f = { 0 };

		create_asleep(&f, (struct hive_options){ .io_workers = 4, .compute_workers = 4 });
		switch (door) {
		case 0:
			CHECK_OK(hive_post(f.hive, count, NULL));
			break;
		case 1:
			CHECK_OK(hive_post_many(f.hive, tasks, 100));
			break;
		case 2:
			CHECK_OK(hive_post_compute(f.hive, count, NULL));
			break;
		case 3:
			CHECK_OK(hive_post_compute_many(f.hive, tasks, 100));
			break;
		case 4:
			CHECK_OK(hive_post_to(f.hive, f.workers[2].id, count, NULL));
			CHECK_EQ(f.workers[2].wakes, 1);
			break;
		case 5:
			CHECK_OK(hive_post_after(f.hive, HIVE_S(1), count, NULL, NULL));
			break;
		}
		CHECK_EQ(f.wakes, 1);
		CHECK_EQ(stats_of(&f).wakes, 1);
		CHECK_EQ(stats_of(&f).sleeping, 7);
		fake_destroy(&f);
	}
}

/* whoever is awake will come by; nobody is woken for it. */
TEST(nobody_is_woken_when_nobody_sleeps)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	fake_start(&f);
	CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_OK(hive_post_to(f.hive, f.workers[1].id, count, NULL));
	CHECK_OK(hive_post_after(f.hive, 0, count, NULL, NULL));
	CHECK_OK(hive_post_compute(f.hive, count, NULL));
	CHECK_EQ(f.wakes, 0);
	ran = 0;
	fake_settle(&f);
	CHECK_EQ(ran, 4);
	fake_destroy(&f);
}

/* one who was woken searches, and finds what comes meanwhile: no second wake. When he has taken all, the next post
 * wakes again.                                                                                                         */
TEST(nobody_is_woken_while_somebody_searches)
{
	struct fake f = { 0 };
	int first = -1;

	create_asleep(&f, (struct hive_options){ .io_workers = 4 });
	for (int i = 0; i < 10; i++)
		CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_EQ(f.wakes, 1);
	for (int i = 0; i < 4; i++)
		if (f.workers[i].wakes)
			first = i;
	CHECK_EQ(stats_of(&f).searching, 1);
	fake_step(&f, f.workers[first].id); /* takes ten, keeps one, wakes one for the others */
	CHECK_EQ(stats_of(&f).searching, 1);
	CHECK_EQ(f.wakes, 2);
	ran = 0;
	fake_settle(&f);
	CHECK_EQ(ran, 10);
	CHECK_EQ(stats_of(&f).searching, 0);
	fake_reset_wakes(&f);
	CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_EQ(f.wakes, 1);
	fake_destroy(&f);
}

static struct fake *world;
static int wakes_inside;

static void post_inside_and_look(void *arg)
{
	struct hive_task task = { count, NULL };

	(void)arg;
	fake_reset_wakes(world);
	CHECK_EQ(stats_of(world).searching, 0);
	CHECK_OK(hive_post_many(world->hive, &task, 1));
	wakes_inside = world->wakes;
}

/* user code never runs on a worker that others count as searching or asleep, whichever way it was woken: else a
 * long task would keep posts from waking anybody.                                                                        */
TEST(a_worker_inside_a_task_counts_neither_as_searching_nor_as_asleep)
{
	for (int door = 0; door < 4; door++) {
		struct fake f = { 0 };

		create_asleep(&f, (struct hive_options){ .io_workers = 3 });
		world = &f;
		wakes_inside = -1;
		if (door == 0)
			CHECK_OK(hive_post(f.hive, post_inside_and_look, NULL));
		if (door == 1)
			CHECK_OK(hive_post_to(f.hive, f.workers[1].id, post_inside_and_look, NULL));
		if (door == 2)
			CHECK_OK(hive_post_after(f.hive, 0, post_inside_and_look, NULL, NULL));
		if (door == 3)
			CHECK_OK(hive_post_after(f.hive, HIVE_MS(1), post_inside_and_look, NULL, NULL));
		for (int i = 0; i < 3; i++)
			if (f.workers[i].wakes)
				fake_step(&f, f.workers[i].id);
		f.now_ns += HIVE_MS(1);
		for (int i = 0; i < 6 && wakes_inside < 0; i++)
			fake_step(&f, f.workers[i % 3].id);
		CHECK_EQ(wakes_inside, 1);
		fake_settle(&f);
		fake_destroy(&f);
	}
}

static void on_event(struct hive_source *source, uint32_t events)
{
	(void)source, (void)events;
	post_inside_and_look(NULL);
}

static void start_source(void *source)
{
	hive_source_init(source, HIVE_SOURCE_USER, 1, HIVE_EVENT_IN, on_event, NULL);
	CHECK_OK(hive_source_start(source));
}

static void deliver_once(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	script->in_turn = NULL;
	hive_source_deliver(script->sources[0], HIVE_EVENT_IN);
}

/* the same for the callback of a source, which comes before anything else in the beat. */
TEST(a_worker_inside_a_callback_counts_neither_as_searching_nor_as_asleep)
{
	struct fake f = { 0 };
	struct fake_core_script script = { 0 };
	struct hive_source source;
	struct hive_worker_options o = { .core_arg = &script, .on_start = start_source, .hook_arg = &source };

	fake_create(&f, (struct hive_options){ 0 });
	CHECK_OK(hive_attach(f.hive, &o, NULL));
	CHECK_OK(hive_attach(f.hive, NULL, NULL));
	world = &f;
	fake_start(&f);
	fake_settle(&f);
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, count, NULL));
	script.in_turn = deliver_once;
	wakes_inside = -1;
	fake_step(&f, f.workers[0].id);
	CHECK_EQ(wakes_inside, 1);
	fake_settle(&f);
	fake_destroy(&f);
}

/* A clock that posts from outside, as another thread might, when it is read for the n-th time. */
static int64_t (*plain_now)(void *arg);
static int reads, post_at, post_door;

static int64_t post_and_tell_time(void *arg)
{
	struct fake *f = arg;
	struct worker *w = hive__current();

	if (++reads == post_at) {
		hive__set_current(NULL);
		if (post_door == 0)
			CHECK_OK(hive_post(f->hive, count, NULL));
		if (post_door == 1)
			CHECK_OK(hive_post_to(f->hive, f->workers[0].id, count, NULL));
		if (post_door == 2)
			CHECK_OK(hive_post_after(f->hive, 0, count, NULL, NULL));
		hive__set_current(w);
	}
	return plain_now(arg);
}

/* at whatever moment of a beat the post comes, the last look before the sleep included, the worker does not sleep
 * through it: it wants another beat, or it was woken.                                                                  */
TEST(a_post_at_any_moment_of_a_beat_is_not_slept_through)
{
	for (int i = 0; i < 3 * 20; i++) {
		struct fake f = { 0 };
		int at, before;

		create_asleep(&f, (struct hive_options){ .io_workers = 1 });
		CHECK_OK(hive_post_after(f.hive, HIVE_S(1), count, NULL,
		                         NULL)); /* so that the wait depends on the clock */
		fake_settle(&f);
		fake_reset_wakes(&f);
		plain_now = f.hive->host.now;
		f.hive->host.now = post_and_tell_time;
		post_door = i % 3;
		post_at = at = 1 + i / 3;
		reads = ran = 0;
		fake_step(&f, f.workers[0].id);
		before = reads;
		while (f.workers[0].wait_ns == 0 || f.workers[0].wakes > 0) {
			f.workers[0].wakes = 0;
			fake_step(&f, f.workers[0].id);
		}
		CHECK(ran == 1 || reads < at);
		f.hive->host.now = plain_now;
		fake_destroy(&f);
		if (i < 3)
			CHECK(before >= 1); /* there are moments to choose from */
	}
}

/* a worker with work left, or with a timer that is due, does not say that it sleeps. */
TEST(sleep_is_announced_only_for_a_wait)
{
	struct fake f = { 0 };
	struct hive_worker_options slow = {
		.private_budget = 1, .timer_budget = 1, .local_budget = 1, .pool_batch = 1
	};
	uint32_t id;

	fake_create(&f, (struct hive_options){ .io_workers = 1, .io = &slow });
	fake_start(&f);
	id = f.workers[0].id;
	for (int i = 0; i < 3; i++) {
		CHECK_OK(hive_post_to(f.hive, id, count, NULL));
		CHECK_OK(hive_post_after(f.hive, 0, count, NULL, NULL));
		CHECK_OK(hive_post(f.hive, count, NULL));
	}
	while (fake_step(&f, id) == 0)
		CHECK_EQ(stats_of(&f).sleeping, 0);
	CHECK_EQ(stats_of(&f).ran, 9);
	CHECK_EQ(stats_of(&f).sleeping, 1);
	CHECK_OK(hive_post_after(f.hive, HIVE_MS(5), count, NULL, NULL));
	CHECK_EQ(fake_step(&f, id), HIVE_MS(5));
	CHECK_EQ(stats_of(&f).sleeping, 1);
	fake_destroy(&f);
}

/* a worker that got up by itself, for its timer or an event, has left the set: it is not claimed, not woken, and
 * not counted twice when it lies down again.                                                                               */
TEST(a_worker_stands_in_the_idle_set_at_most_once)
{
	struct fake f = { 0 };

	create_asleep(&f, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	for (int i = 0; i < 10; i++) { /* superfluous beats */
		for (int k = 0; k < 3; k++)
			fake_step(&f, f.workers[k].id);
		CHECK_EQ(stats_of(&f).sleeping, 3);
		CHECK_EQ(stats_of(&f).searching, 0);
	}
	for (int i = 0; i < 10; i++) { /* timers */
		CHECK_OK(hive_post_after(f.hive, HIVE_MS(1), count, NULL, NULL));
		fake_advance(&f, HIVE_MS(1));
		CHECK_EQ(stats_of(&f).sleeping, 3);
		CHECK_EQ(stats_of(&f).searching, 0);
	}
	fake_destroy(&f);
}

/* a claimed worker is woken exactly once, whatever comes before it is up; the next claim takes another one; with
 * nobody left there is nobody to wake.                                                                                  */
TEST(a_claimed_worker_is_woken_exactly_once)
{
	struct fake f = { 0 };

	create_asleep(&f, (struct hive_options){ .io_workers = 3 });
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 2; k++)
			CHECK_OK(hive_post_to(f.hive, f.workers[k].id, count, NULL));
	CHECK_EQ(f.workers[0].wakes, 1);
	CHECK_EQ(f.workers[1].wakes, 1);
	CHECK_EQ(f.workers[2].wakes, 0);
	fake_step(&f, f.workers[0].id); /* up, done, asleep again: nobody else woken */
	fake_step(&f, f.workers[1].id);
	CHECK_EQ(f.workers[2].wakes, 0);
	fake_reset_wakes(&f);
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, count, NULL));
	CHECK_OK(hive_post_to(f.hive, f.workers[1].id, count, NULL));
	CHECK_OK(hive_post_to(f.hive, f.workers[2].id, count, NULL));
	CHECK_EQ(stats_of(&f).sleeping, 0);
	CHECK_EQ(f.wakes, 3);
	CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_EQ(f.wakes, 3);
	fake_destroy(&f);
}

/* waking a compute worker, choosing a worker for a delayed post and every other door do without the hive's lock:
 * they come back although it is taken.                                                                                     */
TEST(the_doors_take_no_lock_of_the_hive)
{
	struct fake f = { 0 };
	struct hive_task task = { count, NULL };

	create_asleep(&f, (struct hive_options){ .io_workers = 2, .compute_workers = 2 });
	lock_acquire(&f.hive->registry_lock);
	CHECK_OK(hive_post_compute(f.hive, count, NULL));
	CHECK_EQ(f.wakes, 1);
	CHECK_OK(hive_post_compute_many(f.hive, &task, 1));
	CHECK_OK(hive_post_after(f.hive, 0, count, NULL, NULL));
	CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_OK(hive_post_many(f.hive, &task, 1));
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, count, NULL));
	CHECK_OK(hive_post_compute_then(f.hive, count, f.workers[0].id, count, NULL));
	lock_release(&f.hive->registry_lock);
	ran = 0;
	fake_settle(&f);
	CHECK_EQ(ran, 8);
	fake_destroy(&f);
}

/* the set grows while others use it; a newcomer is woken like anybody else. */
TEST(the_idle_set_grows_with_the_workers)
{
	struct fake f = { 0 };

	create_asleep(&f, (struct hive_options){ .io_workers = 1 });
	for (int i = 1; i < 60; i++) {
		CHECK_OK(hive_attach(f.hive, NULL, NULL));
		fake_step(&f, f.workers[i].id);
		CHECK_EQ(stats_of(&f).sleeping, i + 1);
		CHECK_OK(hive_post_to(f.hive, f.workers[i].id, count, NULL));
		CHECK_EQ(f.workers[i].wakes, 1);
		fake_step(&f, f.workers[i].id);
		CHECK_EQ(ran_on, f.workers[i].id);
	}
	for (int i = 0; i < 59; i++) /* all but the last are claimed: a post to all finds that one */
		CHECK_OK(hive_post_to(f.hive, f.workers[i].id, count, NULL));
	for (int i = 0; i < 59; i++)
		CHECK_EQ(f.workers[i].wakes, i == 0 ? 1 : 2);
	CHECK_EQ(idle_claim_one(&f.hive->io.idle, 60, 0), 59);
	lock_acquire(&f.hive->registry_lock);
	hive__kick(hive__slot(&f.hive->io, 59));
	lock_release(&f.hive->registry_lock);
	add_relaxed(&hive__slot(&f.hive->io, 59)->woken, 1u); /* what its claimer owes it */
	fake_settle(&f);
	CHECK_EQ(stats_of(&f).sleeping, 60);
	fake_destroy(&f);
}

/* a micro post never wakes a compute worker, nor the reverse, even when only the wrong ones sleep. */
TEST(io_and_compute_sleepers_are_kept_apart)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	fake_start(&f);
	fake_step(&f, f.workers[1].id); /* the compute worker sleeps, the IO worker does not */
	CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_OK(hive_post_after(f.hive, 0, count, NULL, NULL));
	CHECK_EQ(f.wakes, 0);
	CHECK_OK(hive_post_compute(f.hive, count, NULL));
	CHECK_EQ(f.workers[1].wakes, 1);
	fake_settle(&f);
	fake_step(&f, f.workers[0].id);
	fake_reset_wakes(&f);
	CHECK_OK(hive_post_compute(f.hive, count, NULL));
	CHECK_EQ(f.workers[0].wakes, 0);
	CHECK_EQ(f.workers[1].wakes, 1);
	CHECK_OK(hive_post_compute(f.hive, count, NULL)); /* its only sleeper is claimed, and an IO worker is no help */
	CHECK_EQ(f.wakes, 1);
	fake_destroy(&f);
}

static int beats_of[FAKE_WORKERS];

static void note_worker(void *arg)
{
	(void)arg;
	for (int i = 0; i < world->worker_count; i++)
		beats_of[i] += world->workers[i].id == hive_worker_current();
	ran++;
}

/* Steps only those who are awake: woken since their last beat, or not content with it. */
static void run_the_awake(struct fake *f)
{
	for (bool anybody = true; anybody;) {
		anybody = false;
		for (int i = 0; i < f->worker_count; i++) {
			struct fake_worker *w = &f->workers[i];

			if (w->wakes == 0 && w->wait_ns != 0)
				continue;
			w->wakes = 0;
			fake_step(f, w->id);
			anybody = true;
		}
	}
}

/* the post wakes one; who takes and leaves more wakes one more, until all are at it. */
TEST(a_big_batch_brings_all_sleepers_into_play)
{
	enum { WORKERS = 8, TASKS = 1000 };
	struct hive_task tasks[TASKS];

	for (int i = 0; i < TASKS; i++)
		tasks[i] = (struct hive_task){ note_worker, NULL };
	for (int kind = 0; kind < 2; kind++) {
		struct fake f = { 0 };
		int from = kind == 0 ? 0 : WORKERS;

		create_asleep(&f, (struct hive_options){ .io_workers = WORKERS, .compute_workers = WORKERS });
		world = &f;
		ran = 0;
		memset(beats_of, 0, sizeof beats_of);
		if (kind == 0)
			CHECK_OK(hive_post_many(f.hive, tasks, TASKS));
		else
			CHECK_OK(hive_post_compute_many(f.hive, tasks, TASKS));
		CHECK_EQ(f.wakes, 1);
		run_the_awake(&f);
		CHECK_EQ(ran, TASKS);
		for (int i = 0; i < 2 * WORKERS; i++)
			CHECK_EQ(beats_of[i] > 0, i >= from && i < from + WORKERS);
		fake_destroy(&f);
	}
}

/* the same for single posts that came while one was being woken: two tasks, two workers. */
TEST(who_takes_one_of_two_tasks_wakes_one_for_the_other)
{
	struct fake f = { 0 };
	struct hive_worker_options one = { .pool_batch = 1 };
	uint32_t first;

	create_asleep(&f, (struct hive_options){ .io_workers = 2, .io = &one });
	CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_OK(hive_post(f.hive, count, NULL));
	CHECK_EQ(f.wakes, 1);
	first = f.workers[f.workers[1].wakes].id;
	fake_step(&f, first);
	CHECK_EQ(f.workers[0].wakes, 1);
	CHECK_EQ(f.workers[1].wakes, 1);
	fake_settle(&f);
	fake_destroy(&f);
}

/* a worker that is woken for a private task and finds that the pool needs somebody passes that on before it begins. */
TEST(who_was_woken_for_himself_passes_the_pools_work_on)
{
	struct fake f = { 0 };

	create_asleep(&f, (struct hive_options){ .io_workers = 2 });
	world = &f;
	CHECK_OK(hive_post_to(f.hive, f.workers[0].id, count, NULL)); /* woken, hence counted as searching */
	CHECK_OK(hive_post(f.hive, count, NULL));                     /* so this wakes nobody */
	CHECK_EQ(f.workers[1].wakes, 0);
	fake_step(&f, f.workers[0].id);
	CHECK_EQ(f.workers[1].wakes, 1);
	fake_settle(&f);
	fake_destroy(&f);
}

/* Whoever was claimed and got up by himself may be in a task when the one who claimed him says so: he is up all the same, and can be stuck. */
TEST(a_late_wake_leaves_who_is_up_as_he_is)
{
	ATOMIC(uint32_t) parking;

	parking_end(&parking);
	CHECK(!parking_notify(&parking));
	CHECK_EQ(load_relaxed(&parking), PARKING_RUNNING);
	parking_begin(&parking);
	CHECK(!parking_notify(&parking));
	CHECK(!parking_commit(&parking));
	parking_begin(&parking);
	CHECK(parking_commit(&parking));
	CHECK(parking_notify(&parking));
	CHECK(!parking_notify(&parking)); /* once is enough */
}
