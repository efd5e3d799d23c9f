/* SPDX-License-Identifier: MIT */
/* What becomes of operations that a fiber of the library does when their hive stops, drains or ends, when a worker leaves, after a fork, and who
 * may wait for them.                                                                                                       */
#include <rophive/sim.h>

#include "support/child.h"
#include "support/served.h"

/* ---- now ---- */

static void start_again_in_vain(struct shot *shot, int64_t result)
{
	CHECK_ERR(result, -ECANCELED);
	CHECK_ERR(SHOT_CALL(hive_op_process_wait(&shot->op, 1, HIVE_FOREVER)), -ESHUTDOWN);
}

TEST(stop_now_ends_them_all)
{
	for (int round = 0; round < 3 * core_count(); round++) {
		struct hive *hive = net_start(core_names[round / 3], 1 + round % 3, 2);
		struct shot shots[2 * WAITS];
		struct scene s;

		scene_open(&s);
		launch_all(&s, shots, hive, round % 2 ? HIVE_FOREVER : hive_deadline(NULL, HIVE_S(1000)));
		for (int i = 0; i < WAITS; i++)
			shots[i].then = start_again_in_vain;
		CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		for (int i = 0; i < 2 * WAITS; i++) {
			CHECK_ERR(shot_end(&shots[i]), -ECANCELED);
			CHECK_EQ(atomic_load(&shots[i].told), 1);
		}
		CHECK_ERR(hive_op_process_wait(&shots[0].op, 1, HIVE_FOREVER), -ESHUTDOWN);
		scene_close(&s); /* the resolver answers at last */
		real_join(hive);
	}
}

/* They begin, and others cancel them, while the hive stops: each is refused, or ends once. */
struct siege {
	struct hive *hive;
	struct scene *scene;
	struct shot shots[2 * WAITS];
	atomic_int refused, begun;
	atomic_bool there[2 * WAITS]; /* may be cancelled */
	pthread_barrier_t start;
};

static void *begin_all(void *arg)
{
	struct siege *siege = arg;

	pthread_barrier_wait(&siege->start);
	for (int i = 0; i < 2 * WAITS; i++) {
		int r = SHOT_CALL(waiting[i % WAITS].start(&siege->shots[i].op, siege->scene, HIVE_FOREVER));

		CHECK(r == 0 || r == -ESHUTDOWN);
		if (r == 0)
			atomic_store(&siege->there[i], true);
		atomic_fetch_add(r == 0 ? &siege->begun : &siege->refused, 1);
	}
	return NULL;
}

static void *cancel_all(void *arg)
{
	struct siege *siege = arg;

	pthread_barrier_wait(&siege->start);
	for (int i = 0; i < 2 * WAITS; i++)
		if (atomic_load(&siege->there[i]))
			hive_op_cancel(&siege->shots[i].op);
	return NULL;
}

static void *stop_it(void *arg)
{
	struct siege *siege = arg;

	pthread_barrier_wait(&siege->start);
	CHECK_OK(hive_stop(siege->hive, HIVE_NOW, HIVE_FOREVER));
	return NULL;
}

TEST(starts_and_cancels_against_stop)
{
	void *(*const parts[])(void *) = { begin_all, cancel_all, stop_it };

	for (int round = 0; round < core_count() * (30 / test_slowness() + 5); round++) {
		struct siege siege = { .hive = net_start(core_names[round % core_count()], 1 + round % 3, 1) };
		pthread_t threads[3];
		struct scene s;

		scene_open(&s);
		siege.scene = &s;
		for (int i = 0; i < 2 * WAITS; i++)
			shot_init(&siege.shots[i], siege.hive);
		CHECK_OK(pthread_barrier_init(&siege.start, NULL, 3));
		for (int i = 0; i < 3; i++)
			CHECK_OK(pthread_create(&threads[i], NULL, parts[i], &siege));
		for (int i = 0; i < 3; i++)
			CHECK_OK(pthread_join(threads[i], NULL));
		CHECK_EQ(siege.begun + siege.refused, 2 * WAITS);
		for (int i = 0; i < 2 * WAITS; i++) {
			if (siege.there[i])
				CHECK_ERR(shot_end(&siege.shots[i]), -ECANCELED);
			else
				gate_destroy(&siege.shots[i].done);
			CHECK_EQ(atomic_load(&siege.shots[i].told), siege.there[i]);
		}
		CHECK_OK(pthread_barrier_destroy(&siege.start));
		scene_close(&s);
		real_join(siege.hive);
	}
}

/* ---- drain ---- */

static void dial_in_drain(struct shot *shot, int64_t result)
{
	CHECK_EQ(result, SIGUSR1);
	shot->then = NULL;
	shot_again(shot);
	CHECK_OK(SHOT_CALL(hive_op_dial(&shot->op, "127.0.0.1", (uint16_t)shot->number, NULL, HIVE_FOREVER)));
}

/* One that is under way is waited for, and so is what its on_done begins; others begin no more. */
TEST(a_drain_waits_for_them)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 1);
		struct scene s;
		struct shot shot, late;

		scene_open(&s);
		shot_init(&shot, hive);
		shot_init(&late, hive);
		shot.then = dial_in_drain;
		shot.number = s.port;
		CHECK_OK(hive_op_signal_wait(&shot.op, scene_signals, 1, HIVE_FOREVER));
		CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
		CHECK_ERR(hive_op_process_wait(&late.op, s.child, HIVE_FOREVER), -ESHUTDOWN);
		CHECK_ERR(hive_join(hive, HIVE_NOWAIT), -ETIMEDOUT);
		CHECK_OK(kill(getpid(), SIGUSR1));
		gate_pass(&shot.done);
		CHECK_OK(close((int)shot_end(&shot)));
		gate_destroy(&late.done);
		scene_close(&s);
		real_join(hive);
	}
}

TEST(a_drain_ends_them_at_its_deadline)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 2);
		struct shot shots[2 * WAITS];
		struct scene s;

		scene_open(&s);
		launch_all(&s, shots, hive, HIVE_FOREVER);
		CHECK_OK(hive_stop(hive, HIVE_DRAIN, hive_deadline(NULL, HIVE_MS(5))));
		for (int i = 0; i < 2 * WAITS; i++)
			CHECK_ERR(shot_end(&shots[i]), -ECANCELED);
		scene_close(&s);
		CHECK(real_join(hive).deadline_missed);
	}
}

/* ---- a worker that leaves ---- */

static uint32_t attach_on(struct hive *hive, const char *core)
{
	struct hive_worker_options options = { .kind = HIVE_WORKER_IO };
	uint32_t id;

	CHECK_OK(hive_core_find(core, &options.core));
	CHECK_OK(hive_attach(hive, &options, &id));
	return id;
}

/* They are told elsewhere: of what has happened, or that they were cancelled, before or after it has left. */
TEST(a_worker_leaves_and_they_go_on)
{
	for (int round = 0; round < core_count() * (12 / test_slowness() + 3); round++) {
		const char *core = core_names[round % core_count()];
		struct hive *hive = net_start(core, 1, 2);
		uint32_t worker = attach_on(hive, core);
		struct shot shots[WAITS];
		struct scene s;
		int r;

		scene_open(&s);
		for (int i = 0; i < WAITS; i++) {
			shot_init(&shots[i], hive);
			CHECK_EQ(launch_at(worker, &waiting[i], &s, &shots[i], HIVE_FOREVER), worker);
		}
		if (round % 2)
			CHECK_OK(hive_op_cancel(&shots[0].op));
		r = hive_detach(hive, worker, round % 3 ? HIVE_FOREVER : HIVE_NOWAIT);
		CHECK(r == 0 || r == -EINPROGRESS);
		CHECK_OK(hive_process_signal(s.child, SIGTERM));
		CHECK_EQ(shot_end(&shots[3]), 256 + SIGTERM);
		for (int i = 0; i < WAITS; i++) {
			if (i == 3)
				continue;
			hive_op_cancel(&shots[i].op);
			CHECK_ERR(shot_end(&shots[i]), -ECANCELED);
		}
		scene_close(&s);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- who waits for it, and who may start it ---- */

static int start_and_wait(void *arg)
{
	struct hive_op op;

	hive_op_init(&op, hive_current(), NULL, NULL);
	CHECK_OK(wait_child(&op, arg, HIVE_FOREVER));
	return (int)hive_op_wait(&op);
}

TEST(a_thread_or_a_fiber_waits_for_it)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 1);
		struct hive_fiber *fiber;
		struct hive_op ops[2];
		struct scene s;
		int result;

		scene_open(&s);
		for (int i = 0; i < 2; i++)
			hive_op_init(&ops[i], hive, NULL, NULL);
		CHECK_OK(hive_op_resolve(&ops[0], "somebody.test", 80, s.at, 4, HIVE_FOREVER));
		CHECK_EQ(hive_op_wait(&ops[0]), 1); /* before the other one, which keeps the compute worker */
		CHECK_OK(wait_resolve(&ops[1], &s, hive_deadline(NULL, HIVE_MS(2))));
		CHECK_ERR(hive_op_wait(&ops[1]), -ETIMEDOUT);
		CHECK_OK(hive_spawn(hive, start_and_wait, &s, NULL, &fiber));
		CHECK_OK(hive_fiber_cancel(fiber));
		CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
		CHECK_ERR(result, -ECANCELED);
		CHECK_OK(hive_spawn(hive, start_and_wait, &s, NULL, &fiber));
		CHECK_OK(hive_process_signal(s.child, SIGTERM));
		CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
		CHECK(result == 256 + SIGTERM);
		scene_close(&s);
		real_end(hive, HIVE_DRAIN);
	}
}

/* What a fiber begins is not its child: a tree of fibers ends without it. */
static int start_and_go(void *arg)
{
	struct launch *l = arg;

	launch(l);
	return l->r;
}

TEST(a_tree_of_fibers_does_not_wait_for_it)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 0);
		struct scene s;
		struct shot shot;
		struct launch l = { &waiting[3], &s, &shot, HIVE_FOREVER, -1, 0 };
		int result = -1;

		scene_open(&s);
		shot_init(&shot, hive);
		CHECK_OK(hive_block_on(hive, start_and_go, &l, HIVE_FOREVER, &result));
		CHECK_OK(result);
		CHECK_EQ(atomic_load(&shot.told), 0);
		CHECK_OK(hive_process_signal(s.child, SIGTERM));
		CHECK_EQ(shot_end(&shot), 256 + SIGTERM);
		scene_close(&s);
		real_end(hive, HIVE_DRAIN);
	}
}

TEST(a_worker_of_another_hive_and_a_compute_worker_may_start_it)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 1), *other = net_start(core_names[core], 1, 0);
		struct shot_task task = { .fn = launch };
		struct scene s;
		struct shot shot;
		struct launch l = { &waiting[4], &s, &shot, HIVE_FOREVER, -1, 0 };

		scene_open(&s);
		for (int i = 0; i < 2; i++) {
			shot_init(&shot, hive);
			l.r = -1;
			gate_init(&task.back);
			task.arg = &l;
			CHECK_OK(i ? hive_post_compute(hive, shot_run, &task) : hive_post(other, shot_run, &task));
			gate_pass(&task.back);
			gate_destroy(&task.back);
			CHECK_OK(l.r);
			CHECK_OK(kill(getpid(), SIGUSR1));
			CHECK_EQ(shot_end(&shot), SIGUSR1);
		}
		scene_close(&s);
		real_end(other, HIVE_DRAIN);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- no hive that runs ---- */

static atomic_int dropped;

static void on_drop(struct hive_op *op, int64_t result)
{
	CHECK_ERR(result, -ECANCELED);
	CHECK(op->arg == &dropped);
	atomic_fetch_add(&dropped, 1);
}

TEST(a_hive_that_never_started_ends_what_it_was_given)
{
	for (int way = 0; way < 3; way++) {
		struct hive *hive = real_create((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
		struct hive_op told, silent;

		atomic_store(&dropped, 0);
		hive_op_init(&told, hive, on_drop, &dropped);
		hive_op_init(&silent, hive, NULL, NULL);
		CHECK_OK(hive_op_signal_wait(&told, scene_signals, 2, HIVE_FOREVER));
		CHECK_OK(hive_op_process_wait(&silent, 1, HIVE_S(1000)));
		if (way == 0)
			CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		else if (way == 1)
			CHECK_OK(hive_op_cancel(&told));
		CHECK_OK(hive_destroy(hive));
		CHECK_EQ(atomic_load(&dropped), 1);
		CHECK_ERR(hive_op_wait(&silent), -ECANCELED);
	}
}

TEST(who_is_refused_is_told_so_when_he_waits)
{
	struct hive *hive = net_start("epoll", 1, 0);
	struct hive_op op;

	hive_op_init(&op, hive, NULL, NULL);
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_ERR(hive_op_process_wait(&op, 1, HIVE_FOREVER), -ESHUTDOWN);
	CHECK_ERR(hive_op_wait(&op), -ESHUTDOWN);
	CHECK_ERR(hive_op_cancel(&op), -ESRCH);
	real_join(hive);
}

TEST(a_child_after_fork_is_refused)
{
	struct hive *hive = net_start("epoll", 1, 0);
	struct hive_op op;
	pid_t child;

	hive_op_init(&op, hive, NULL, NULL);
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(hive_op_process_wait(&op, 1, HIVE_FOREVER) == -EOWNERDEAD ? 0 : 1);
	CHECK_EQ(child_wait(child), 0);
	real_end(hive, HIVE_DRAIN);
}

/* In virtual time there are numbers, and no names, children or signals. */
TEST(a_simulated_hive_refuses_as_the_calls_do)
{
	static const char *const argv[] = { "true", NULL };
	struct hive_options options = { .io_workers = 2, .compute_workers = 0 };
	struct hive_address at;
	struct shot shots[4];
	struct hive_sim *sim;
	struct hive *hive;
	int process = -1;

	CHECK_OK(hive_sim_create(NULL, &sim));
	options.host = hive_sim_host(sim);
	CHECK_OK(hive_create(&options, &hive));
	CHECK_OK(hive_start(hive));
	for (int i = 0; i < 4; i++)
		shot_init(&shots[i], hive);
	CHECK_OK(hive_op_resolve(&shots[0].op, "127.0.0.1", 80, &at, 1, HIVE_FOREVER));
	CHECK_OK(hive_op_process_start(&shots[1].op, argv, NULL, &process));
	CHECK_OK(hive_op_signal_wait(&shots[2].op, scene_signals, 2, HIVE_FOREVER));
	CHECK_OK(hive_op_resolve(&shots[3].op, "somebody.test", 80, &at, 1, hive_deadline(hive, HIVE_S(1))));
	hive_sim_advance(sim, HIVE_S(2));
	CHECK_EQ(shot_end(&shots[0]), 1);
	CHECK_ERR(shot_end(&shots[1]), -ENOTSUP);
	CHECK_ERR(shot_end(&shots[2]), -ENOTSUP);
	CHECK_ERR(shot_end(&shots[3]), -ENOTSUP);
	CHECK_EQ(process, -1);
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_OK(hive_destroy(hive));
	CHECK_OK(hive_sim_destroy(sim));
}
