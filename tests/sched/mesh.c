/* SPDX-License-Identifier: MIT */
/* The mesh: letters from worker to worker by lanes, by the inbox where a lane cannot, in order (V-9, V-10, V-14, V-15). */
#include "support/fake.h"
#include "test.h"

static struct fake f;
static uint32_t ids[4];

static void *n(int number)
{
	return (void *)(intptr_t)number;
}

static void open_world(int workers)
{
	memset(&f, 0, sizeof f);
	fake_create(&f, (struct hive_options){ .io_workers = workers, .mesh = HIVE_MESH_ON });
	fake_start(&f);
	fake_settle(&f);
	for (int i = 0; i < workers; i++)
		ids[i] = f.workers[i].id;
	fake_log_clear();
}

static struct worker *worker(int i)
{
	return hive__slot(&f.hive->io, (uint32_t)i);
}

static struct hive_worker_stats stats_of(int i)
{
	struct hive_worker_stats stats;

	CHECK_OK(hive_worker_stats_read(f.hive, ids[i], &stats));
	return stats;
}

/* What follows runs as worker i; -1: as a foreign thread. */
static void become(int i)
{
	hive__set_current(i < 0 ? NULL : worker(i));
}

static void send(int from, int to, int number)
{
	become(from);
	CHECK_OK(hive_post_to(f.hive, ids[to], fake_note, n(number)));
	become(-1);
}

static void check_log(const char *expected)
{
	CHECK_STR(fake_log(), expected);
	fake_log_clear();
}

/* "0 1 2 ... count-1" */
static void check_numbers(int count)
{
	const char *at = fake_log();

	for (int i = 0; i < count; i++) {
		char *end;

		CHECK_EQ(strtol(at, &end, 10), i);
		CHECK(end != at);
		at = end;
	}
	CHECK_STR(at, "");
	fake_log_clear();
}

TEST(only_workers_have_lanes_and_only_where_they_are_wanted)
{
	open_world(2);
	send(0, 1, 1);
	send(-1, 1, 2); /* by the inbox */
	send(1, 1, 3);  /* to itself: by the inbox */
	CHECK_EQ(stats_of(1).lanes, 1);
	CHECK_EQ(stats_of(1).in_lanes, 1);
	fake_settle(&f);
	check_log("1 2 3");
	CHECK_EQ(stats_of(1).lane_letters, 1);
	CHECK_EQ(stats_of(1).in_lanes, 0);
	CHECK_EQ(stats_of(0).lanes, 0);
	CHECK_EQ(stats_of(0).lane_falls, 0);
	fake_destroy(&f);

	for (int preset = 0; preset <= HIVE_PRESET_VELOQ; preset++)
		for (int mesh = 0; mesh <= HIVE_MESH_ON; mesh++) {
			bool on = mesh == HIVE_MESH_ON || (mesh == 0 && preset == HIVE_PRESET_VELOQ);

			fake_create(&f, (struct hive_options){ .io_workers = 2,
			                                       .preset = (enum hive_preset)preset,
			                                       .mesh = (enum hive_mesh)mesh });
			CHECK_EQ(f.hive->mesh, on);
			fake_start(&f);
			ids[0] = f.workers[0].id, ids[1] = f.workers[1].id;
			send(0, 1, 1);
			CHECK_EQ(stats_of(1).lanes, on);
			fake_settle(&f);
			fake_destroy(&f);
		}
	CHECK_ERR(hive_create(&(struct hive_options){ .mesh = (enum hive_mesh)3 }, &f.hive), -EINVAL);
	CHECK_ERR(hive_create(&(struct hive_options){ .mesh = (enum hive_mesh) - 1 }, &f.hive), -EINVAL);
}

/* V-9, V-10: before local tasks, pool and timers, and before what came by the inbox. */
static void post_a_local_one(void *arg)
{
	CHECK_OK(hive_post_local(fake_note, arg));
}

TEST(a_letter_by_a_lane_comes_before_everything_else)
{
	open_world(2);
	send(-1, 1, 1);
	become(1);
	post_a_local_one(n(4));
	become(-1);
	CHECK_OK(hive_post(f.hive, fake_note, n(5)));
	send(0, 1, 0);
	for (int i = 0; i < 3; i++)
		fake_step(&f, ids[1]);
	check_log("0 1 4 5");
	fake_settle(&f);
	fake_destroy(&f);
}

/* V-15: once, and only if it sleeps. */
TEST(a_letter_wakes_its_addressee_and_nobody_else)
{
	open_world(3);
	fake_reset_wakes(&f);
	send(0, 1, 1);
	CHECK_EQ(fake_worker(&f, ids[1])->wakes, 1);
	send(0, 1, 2);
	send(2, 1, 3);
	CHECK_EQ(f.wakes, 1);
	fake_settle(&f);
	check_log("1 2 3");
	fake_destroy(&f);
}

/* The last look before sleep: a sender who saw it awake relies on it. */

TEST(who_has_letters_in_a_lane_does_not_fall_asleep)
{
	open_world(2);
	become(1);
	hive__get_up(worker(1));
	become(-1);
	fake_reset_wakes(&f);
	send(0, 1, 1); /* it was awake: nobody is told */
	CHECK_EQ(f.wakes, 0);
	become(1);
	CHECK(hive__own_work(worker(1)));
	CHECK(!hive__fall_asleep(worker(1)));
	become(-1);
	fake_step(&f, ids[1]);
	check_log("1");
	fake_destroy(&f);
}

/* M4: what does not fit goes by the inbox, and nothing overtakes it, although there is room in the lane again. */
TEST(a_full_lane_falls_back_to_the_inbox_and_the_order_stays)
{
	int next = 0;

	open_world(2);
	for (int i = 0; i < TUNE_MESH + 10; i++)
		send(0, 1, next++);
	CHECK_EQ(stats_of(1).in_lanes, TUNE_MESH);
	CHECK_EQ(stats_of(0).lane_falls, 10);
	fake_step(&f, ids[1]); /* all are received; as many as the budget allows have run */
	CHECK_EQ(stats_of(1).in_lanes, 0);
	for (int i = 0; i <= 2 * MESH_PATIENCE && stats_of(1).in_lanes == 0; i++) {
		send(0, 1, next++);
		fake_step(&f, ids[1]);
		send(0, 1, next++);
	}
	CHECK_EQ(stats_of(1).in_lanes, 1); /* all had arrived: by the lane again */
	fake_settle(&f);
	check_numbers(next);
	CHECK(stats_of(1).lane_letters > TUNE_MESH);
	CHECK_EQ(stats_of(1).lane_letters + stats_of(0).lane_falls, next);
	fake_destroy(&f);
}

/* The lane is empty, because its reader has taken what was in it; but the inbox is not. */
TEST(nothing_overtakes_what_waits_in_the_inbox)
{
	struct worker *w;
	uint32_t lanes;
	int next = 0;

	open_world(2);
	w = worker(1);
	for (int i = 0; i < TUNE_MESH + 1; i++)
		send(0, 1, next++);
	become(1); /* a reader that took its lanes, and has not looked at its inbox */
	for (uint64_t written = mesh_written(&w->mesh); written; written &= written - 1)
		for (struct mesh_lane *l = mesh_lane(&w->mesh, (uint32_t)__builtin_ctzll(written));
		     mesh_waiting(l) > 0;)
			hive__receive_one(w, parcel_of_cell(mesh_take(l)));
	while (w->mail.first) {
		struct parcel *p = hive__mail_take(w);
		struct hive_task task = p->task;

		hive__parcel_free(p);
		hive__run_task(w, task);
	}
	become(-1);
	CHECK_EQ(hive__letters_in_lanes(w, &lanes), 0);
	for (int i = 0; i < 5; i++)
		send(0, 1, next++);
	CHECK_EQ(hive__letters_in_lanes(w, &lanes), 0); /* behind the one that waits there */
	CHECK_EQ(stats_of(0).lane_falls, 6);
	fake_settle(&f);
	check_numbers(next);
	fake_destroy(&f);
}

/* Memory for a lane is not to be had: that is no error, and the order stays when there is some again. */
TEST(without_memory_for_a_lane_letters_go_by_the_inbox)
{
	open_world(3);
	send(-1, 1, 0); /* the slab has some now */
	fake_settle(&f);
	fake_log_clear();
	f.allocations = 0, f.fail_at = 1, f.sticky = true;
	for (int i = 0; i < 3; i++)
		send(0, 1, i);
	f.fail_at = 0, f.sticky = false;
	CHECK_EQ(stats_of(1).lanes, 0);
	CHECK_EQ(load_relaxed(&f.hive->lanes), 0);
	send(0, 1, 3); /* there is memory; but three are on their way */
	CHECK_EQ(stats_of(1).lanes, 0);
	CHECK_EQ(stats_of(0).lane_falls, 4);
	fake_settle(&f);
	check_log("0 1 2 3");
	send(0, 1, 4);
	CHECK_EQ(stats_of(1).lanes, 1);
	fake_settle(&f);
	check_log("4");
	fake_destroy(&f);
}

/* V-14: memory is bounded. */
TEST(there_are_only_so_many_lanes)
{
	open_world(2);
	store_relaxed(&f.hive->lanes, (uint32_t)TUNE_MESH_LANES);
	send(0, 1, 0);
	CHECK_EQ(stats_of(1).lanes, 0);
	CHECK_EQ(load_relaxed(&f.hive->lanes), TUNE_MESH_LANES);
	store_relaxed(&f.hive->lanes, 0u);
	send(0, 1, 1); /* it is not asked again */
	CHECK_EQ(stats_of(1).lanes, 0);
	send(1, 0, 2);
	CHECK_EQ(stats_of(0).lanes, 1);
	fake_settle(&f);
	fake_destroy(&f);
}

TEST(a_worker_has_only_so_many_lanes_to_it)
{
	static struct mesh_lane others[MESH_LANES];
	static struct parcel cells[MESH_LANES];
	struct worker *w;

	open_world(3);
	w = worker(0);
	send(1, 0, 1);
	for (int i = 1; i < MESH_LANES; i++) {
		mesh_lane_init(&others[i], &cells[i].cell, sizeof *cells, 1);
		CHECK_OK(mesh_join(&w->mesh, &others[i]));
	}
	for (int i = 2; i < 5; i++)
		send(2, 0, i);
	CHECK_EQ(stats_of(0).lanes, MESH_LANES);
	CHECK_EQ(load_relaxed(&f.hive->lanes), 1);
	CHECK_EQ(stats_of(2).lane_falls, 3);
	fake_settle(&f);
	check_log("1 2 3 4");
	for (int i = 1; i < MESH_LANES; i++)
		store_relaxed(&w->mesh.lanes[i], (struct mesh_lane *)NULL);
	fake_destroy(&f);
}

/* What is still queued when it is detached runs there; afterwards its id is stale, for lanes as well. */
static uint32_t leaver;

static void note_place(void *arg)
{
	fake_note(n((int)(intptr_t)arg + (hive_worker_current() == leaver ? 0 : 100)));
}

static void send_place(int from, uint32_t to, int number)
{
	become(from);
	CHECK_OK(hive_post_to(f.hive, to, note_place, n(number)));
	become(-1);
}

TEST(a_worker_that_is_detached_runs_its_letters_and_gets_no_more)
{
	open_world(3);
	leaver = ids[2];
	for (int i = 0; i < 3; i++)
		send_place(i % 2, leaver, i);
	CHECK_ERR(hive_detach(f.hive, leaver, HIVE_NOWAIT), -EINPROGRESS);
	become(0);
	CHECK_ERR(hive_post_to(f.hive, leaver, fake_note, n(9)), -ESRCH);
	become(-1);
	CHECK_EQ(fake_step(&f, leaver), -ESHUTDOWN);
	check_log("0 2 1"); /* lane by lane */
	fake_settle(&f);
	fake_destroy(&f);
}

/* A sender who found the old life, and comes late: refused while nobody has the slot, and not delivered to who has it next. */
TEST(a_late_letter_does_not_reach_a_stranger)
{
	struct hive_task task = { note_place, n(1) };
	struct worker *w;
	uint32_t next;

	open_world(3);
	leaver = ids[2];
	w = worker(2);
	send_place(0, leaver, 0);
	fake_settle(&f);
	check_log("0");
	CHECK_ERR(hive_detach(f.hive, leaver, HIVE_NOWAIT), -EINPROGRESS);
	CHECK_EQ(fake_step(&f, leaver), -ESHUTDOWN);
	become(0);
	CHECK(!hive__send_by_lane(w, leaver, task)); /* closed */
	become(1);
	CHECK(!hive__send_by_lane(w, leaver, task)); /* and none is made */
	become(-1);
	CHECK_EQ(load_relaxed(&f.hive->lanes), 1);
	CHECK_OK(hive_attach(f.hive, NULL, &next));
	CHECK(next != leaver && hive__find_io(f.hive, next) == w);
	become(0);
	CHECK(hive__send_by_lane(w, leaver, task));
	become(-1);
	leaver = next; /* whoever else runs it adds 100 */
	fake_settle(&f);
	CHECK(strcmp(fake_log(), "101") == 0 || strcmp(fake_log(), "1") == 0);
	CHECK_EQ(load_relaxed(&w->stats.lane_letters), 2);
	CHECK_EQ(pool_accepted(&f.hive->pool), 1); /* forwarded: it may run anywhere */
	fake_log_clear();
	send_place(0, next, 7); /* the new life has the same lane */
	CHECK_EQ(load_relaxed(&f.hive->lanes), 1);
	fake_settle(&f);
	check_log("7");
	fake_destroy(&f);
}

/* Stop: a drain runs what is in the lanes, now drops it and tells; the books balance (fake_destroy() checks). */
TEST(a_drain_runs_what_is_in_the_lanes)
{
	open_world(3);
	send(0, 1, 1);
	send(2, 1, 2);
	send(1, 0, 3);
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
	become(0);
	CHECK_ERR(hive_post_to(f.hive, ids[1], fake_note, n(9)), -ESHUTDOWN);
	become(-1);
	CHECK_OK(hive_join(f.hive, HIVE_FOREVER));
	CHECK_EQ(f.drops, 0);
	CHECK_EQ(strlen(fake_log()), 5);
	fake_destroy(&f);
}

TEST(a_stop_at_once_drops_what_is_in_the_lanes)
{
	struct hive_report report;

	open_world(3);
	for (int i = 0; i < TUNE_MESH + 5; i++)
		send(0, 1, 1);
	send(1, 0, 3);
	CHECK_OK(hive_stop(f.hive, HIVE_NOW, HIVE_NOWAIT));
	CHECK_OK(hive_join(f.hive, HIVE_FOREVER));
	CHECK_EQ(f.drops, TUNE_MESH + 6);
	check_log("");
	CHECK_OK(hive_report_read(f.hive, &report));
	CHECK_EQ(report.dropped, TUNE_MESH + 6);
	fake_destroy(&f);
}

/* A letter that was accepted by a worker's lane while everybody stops is dropped when it leaves, not lost. */
TEST(a_letter_that_comes_while_its_addressee_leaves_is_dropped_or_refused)
{
	struct hive_task task = { fake_note, n(5) };

	open_world(2);
	send(0, 1, 0);
	fake_settle(&f);
	CHECK_OK(hive_stop(f.hive, HIVE_NOW, HIVE_NOWAIT));
	become(0);
	CHECK(hive__send_by_lane(worker(1), ids[1], task)); /* past the door before the stop */
	become(-1);
	CHECK_EQ(fake_step(&f, ids[1]), -ESHUTDOWN);
	CHECK_EQ(f.drops, 1);
	become(0);
	CHECK(!hive__send_by_lane(worker(1), ids[1], task));
	become(-1);
	CHECK_OK(hive_join(f.hive, HIVE_FOREVER));
	fake_destroy(&f);
}

/* A slot that was opened again, and whose new worker could not be started. */
static int no_core(void *arg, struct hive_core **ret_core)
{
	(void)arg;
	(void)ret_core;
	return -ENOMEM;
}

TEST(letters_for_a_worker_that_could_not_start_run_elsewhere)
{
	struct hive_core_ops broken = fake_core;
	struct hive_worker_options options = { .core = &broken };
	struct worker *w;

	broken.open = no_core;
	open_world(3);
	w = worker(2);
	send(0, 2, 0);
	fake_settle(&f);
	fake_log_clear();
	CHECK_ERR(hive_detach(f.hive, ids[2], HIVE_NOWAIT), -EINPROGRESS);
	CHECK_EQ(fake_step(&f, ids[2]), -ESHUTDOWN);
	mesh_open(&w->mesh); /* as an attach does, before it launches */
	become(0);
	CHECK(hive__send_by_lane(w, ids[2], (struct hive_task){ fake_note, n(6) }));
	become(-1);
	CHECK_ERR(hive_attach(f.hive, &options, NULL), -ENOMEM);
	become(0);
	CHECK(!hive__send_by_lane(w, ids[2], (struct hive_task){ fake_note, n(7) }));
	become(-1);
	fake_settle(&f);
	check_log("6");
	fake_destroy(&f);
}

/* Fibers that are sent to a worker have their place in the order. */
static int fiber_note(void *arg)
{
	fake_note(arg);
	return 0;
}

TEST(fibers_travel_by_lanes_in_order_with_letters)
{
	struct hive_fiber_options options = { .worker = 0 };
	int next = 0;

	open_world(2);
	options.worker = ids[1];
	become(0);
	for (int i = 0; i < TUNE_MESH; i++) {
		CHECK_OK(hive_post_to(f.hive, ids[1], fake_note, n(next++)));
		CHECK_OK(hive_spawn(f.hive, fiber_note, n(next++), &options, NULL));
	}
	become(-1);
	CHECK_EQ(stats_of(1).in_lanes, TUNE_MESH);
	CHECK_EQ(stats_of(0).lane_falls, TUNE_MESH);
	fake_settle(&f);
	check_numbers(next);
	fake_destroy(&f);
}

/* A dump knows them. */
TEST(a_dump_tells_of_letters_in_lanes)
{
	char text[4096];
	int pipe_fds[2];
	ssize_t bytes;

	open_world(2);
	send(0, 1, 1);
	send(0, 1, 2);
	CHECK_EQ(pipe(pipe_fds), 0);
	CHECK_OK(hive_dump(f.hive, pipe_fds[1]));
	bytes = read(pipe_fds[0], text, sizeof text - 1);
	CHECK(bytes > 0);
	text[bytes] = 0;
	CHECK(strstr(text, ", in lanes 2"));
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	fake_settle(&f);
	fake_destroy(&f);
}
