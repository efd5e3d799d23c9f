/* SPDX-License-Identifier: MIT */
/* What becomes of operations when a hive stops, drains or ends, and when a worker leaves. */
#include <pthread.h>

#include "support/shot.h"

enum { MANY = 40 };

struct crowd {
	struct hive *hive;
	struct shot shots[MANY];
	int fds[2], from, to;
	int64_t deadline_ns;
	atomic_int cancels;
};

static void start_some(void *arg)
{
	struct crowd *c = arg;

	for (int i = c->from; i < c->to; i++)
		CHECK_OK(SHOT_CALL(hive_op_recv(&c->shots[i].op, c->fds[0], &c->shots[i].byte, 1, c->deadline_ns)));
}

static void crowd_init(struct crowd *c, struct hive *hive)
{
	memset(c, 0, sizeof *c);
	c->hive = hive;
	c->deadline_ns = HIVE_FOREVER;
	net_pair(c->fds);
	for (int i = 0; i < MANY; i++)
		shot_init(&c->shots[i], hive);
}

static void start_at(struct crowd *c, uint32_t worker, int from, int to)
{
	c->from = from;
	c->to = to;
	shot_at(c->hive, worker, start_some, c);
}

static uint32_t attach_on(struct hive *hive, const char *core)
{
	struct hive_worker_options options = { .kind = HIVE_WORKER_IO };
	uint32_t id;

	CHECK_OK(hive_core_find(core, &options.core));
	CHECK_OK(hive_attach(hive, &options, &id));
	return id;
}

/* ---- now ---- */

static int wait_in_fiber(void *arg)
{
	char byte;

	return (int)hive_recv(*(int *)arg, &byte, 1, HIVE_FOREVER);
}

TEST(stop_now_ends_them_all_and_leaves_their_buffers_alone)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 3, 1);
		struct hive_fiber *fibers[4];
		struct crowd c;
		uint32_t ids[4];
		int result;

		crowd_init(&c, hive);
		CHECK_EQ(hive_workers(hive, ids, 4), 4);
		for (int i = 0; i < 3; i++)
			start_at(&c, ids[i], 10 * i, 10 * i + 10);
		c.from = 30;
		c.to = MANY;
		c.deadline_ns = hive_deadline(NULL, HIVE_S(1000));
		start_some(&c); /* some may still be on their way */
		for (int i = 0; i < 4; i++)
			CHECK_OK(hive_spawn(hive, wait_in_fiber, &c.fds[0], NULL, &fibers[i]));
		CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		for (int i = 0; i < MANY; i++) {
			CHECK_ERR(shot_end(&c.shots[i]), -ECANCELED);
			c.shots[i].byte = 77;
		}
		CHECK_EQ(write(c.fds[1], "0123456789", 10), 10);
		for (int i = 0; i < 4; i++) {
			CHECK_OK(hive_fiber_join(fibers[i], HIVE_FOREVER, &result));
			CHECK_ERR(result, -ECANCELED);
		}
		CHECK_ERR(hive_op_recv(&c.shots[0].op, c.fds[0], &c.shots[0].byte, 1, HIVE_FOREVER), -ESHUTDOWN);
		real_join(hive);
		for (int i = 0; i < MANY; i++) {
			CHECK_EQ(c.shots[i].byte, 77);
			CHECK_EQ(atomic_load(&c.shots[i].told), 1);
		}
		net_close(c.fds);
	}
}

static void start_again_in_vain(struct shot *shot, int64_t result)
{
	CHECK_ERR(result, -ECANCELED);
	CHECK_ERR(SHOT_CALL(hive_op_recv(&shot->op, shot->number, &shot->byte, 1, HIVE_FOREVER)), -ESHUTDOWN);
}

TEST(nothing_begins_in_on_done_while_a_hive_stops_now)
{
	EACH_CORE(core)
	{
		struct crowd c;

		crowd_init(&c, net_start(core_names[core], 2, 0));
		for (int i = 0; i < MANY; i++) {
			c.shots[i].number = c.fds[0];
			c.shots[i].then = start_again_in_vain;
		}
		start_at(&c, HIVE_WORKER_NONE, 0, MANY);
		CHECK_OK(hive_stop(c.hive, HIVE_NOW, HIVE_FOREVER));
		for (int i = 0; i < MANY; i++)
			CHECK_ERR(shot_end(&c.shots[i]), -ECANCELED);
		real_join(c.hive);
		net_close(c.fds);
	}
}

/* ---- cancels, from outside, against a stop: letters that come too late ---- */

static void *cancel_forth_and_back(void *arg)
{
	struct crowd *c = arg;

	for (int i = 0; i < MANY; i++) {
		hive_op_cancel(&c->shots[i].op);
		atomic_fetch_add(&c->cancels, 1);
	}
	return NULL;
}

static void *stop_it(void *arg)
{
	struct crowd *c = arg;
	uint32_t limit = (uint32_t)(uintptr_t)c->hive / 64 % MANY;

	while (atomic_load(&c->cancels) < (int)limit)
		sched_yield();
	CHECK_OK(hive_stop(c->hive, HIVE_NOW, HIVE_FOREVER));
	return NULL;
}

TEST(cancel_against_stop)
{
	EACH_CORE(core)
	for (int round = 0; round < 60 / test_slowness() + 10; round++) {
		struct crowd c;
		uint32_t ids[3];
		pthread_t threads[3];

		crowd_init(&c, net_start(core_names[core], 3, 0));
		CHECK_EQ(hive_workers(c.hive, ids, 3), 3);
		for (int i = 0; i < 3; i++)
			start_at(&c, ids[i], i * MANY / 3, (i + 1) * MANY / 3);
		CHECK_OK(pthread_create(&threads[0], NULL, cancel_forth_and_back, &c));
		CHECK_OK(pthread_create(&threads[1], NULL, cancel_forth_and_back, &c));
		CHECK_OK(pthread_create(&threads[2], NULL, stop_it, &c));
		for (int i = 0; i < 3; i++)
			CHECK_OK(pthread_join(threads[i], NULL));
		for (int i = 0; i < MANY; i++)
			CHECK_ERR(shot_end(&c.shots[i]), -ECANCELED);
		real_join(c.hive);
		net_close(c.fds);
	}
}

/* ---- files on their way when it stops ---- */

TEST(files_against_stop)
{
	EACH_CORE(core)
	for (int round = 0; round < 40 / test_slowness() + 5; round++) {
		struct hive *hive = net_start(core_names[core], 2, 2);
		struct crowd c;

		crowd_init(&c, hive);
		for (int i = 0; i < MANY; i++)
			CHECK_OK(hive_op_open(&c.shots[i].op, AT_FDCWD, "/dev/null", O_RDONLY, 0,
			                      i % 2 ? HIVE_FOREVER : hive_deadline(NULL, HIVE_S(1000))));
		for (int i = 0; i < round; i++)
			sched_yield();
		CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		for (int i = 0; i < MANY; i++) {
			int64_t result = shot_end(&c.shots[i]);

			CHECK(result >= 0 || result == -ECANCELED);
			if (result >= 0)
				CHECK_OK(close((int)result));
		}
		real_join(hive);
		net_close(c.fds);
	}
}

/* ---- drain ---- */

struct late {
	int *fds;
	struct gate waits;
};

static int read_and_answer(void *arg)
{
	struct late *late = arg;
	char byte;

	gate_open(&late->waits);
	CHECK_EQ(hive_recv(late->fds[0], &byte, 1, HIVE_FOREVER), 1);
	CHECK_EQ(hive_send(late->fds[0], "a", 1, HIVE_FOREVER), 1); /* new ones begin while it drains */
	CHECK_ERR(hive_recv(late->fds[0], &byte, 1, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	return 5;
}

TEST(a_drain_waits_for_them)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 1);
		struct hive_fiber *fiber;
		struct shot shot, refused;
		struct late late;
		int fds[2], more[2], result;
		char byte;

		net_pair(fds);
		net_pair(more);
		late.fds = fds;
		gate_init(&late.waits);
		shot_init(&shot, hive);
		shot_init(&refused, hive);
		CHECK_OK(hive_op_recv(&shot.op, more[0], &shot.byte, 1, HIVE_FOREVER));
		CHECK_OK(hive_spawn(hive, read_and_answer, &late, NULL, &fiber));
		gate_pass(&late.waits);
		CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
		CHECK_ERR(hive_op_recv(&refused.op, more[0], &refused.byte, 1, HIVE_FOREVER), -ESHUTDOWN);
		CHECK_ERR(hive_join(hive, hive_deadline(NULL, HIVE_MS(5))), -ETIMEDOUT);
		CHECK_EQ(write(fds[1], "q", 1), 1);
		CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
		CHECK_EQ(result, 5);
		CHECK_EQ(read(fds[1], &byte, 1), 1);
		CHECK_EQ(write(more[1], "z", 1), 1);
		CHECK_EQ(shot_end(&shot), 1);
		real_join(hive);
		gate_destroy(&refused.done);
		gate_destroy(&late.waits);
		net_close(fds);
		net_close(more);
	}
}

TEST(a_drain_ends_them_at_its_deadline)
{
	EACH_CORE(core)
	{
		struct crowd c;

		crowd_init(&c, net_start(core_names[core], 2, 0));
		start_at(&c, HIVE_WORKER_NONE, 0, MANY);
		CHECK_OK(hive_stop(c.hive, HIVE_DRAIN, hive_deadline(NULL, HIVE_MS(5))));
		for (int i = 0; i < MANY; i++)
			CHECK_ERR(shot_end(&c.shots[i]), -ECANCELED);
		real_join(c.hive);
		net_close(c.fds);
	}
}

/* ---- a worker leaves ---- */

TEST(a_worker_leaves_and_its_operations_go_on_elsewhere)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		uint32_t second = attach_on(hive, core_names[core]);
		struct crowd c;
		int result = 0;

		crowd_init(&c, hive);
		start_at(&c, second, 0, 10);
		c.deadline_ns = hive_deadline(NULL, HIVE_MS(20));
		start_at(&c, second, 10, 15);
		c.deadline_ns = HIVE_FOREVER;
		start_at(&c, second, 15, 20);
		CHECK_OK(hive_detach(hive, second, HIVE_FOREVER));
		for (int i = 15; i < 20; i++) {
			CHECK_OK(hive_op_cancel(&c.shots[i].op));
			CHECK_ERR(shot_end(&c.shots[i]), -ECANCELED);
		}
		for (int i = 10; i < 15; i++)
			CHECK_ERR(shot_end(&c.shots[i]), -ETIMEDOUT);
		for (int i = 0; i < 10; i++)
			CHECK_EQ(write(c.fds[1], "r", 1), 1);
		for (int i = 0; i < 10; i++) {
			CHECK_EQ(shot_end(&c.shots[i]), 1);
			CHECK(c.shots[i].worker != second);
			result++;
		}
		CHECK_EQ(result, 10);
		for (int i = 20; i < MANY; i++)
			gate_destroy(&c.shots[i].done);
		net_close(c.fds);
		real_end(hive, HIVE_DRAIN);
	}
}

struct leaver {
	struct crowd *c;
	uint32_t worker;
};

static void *detach_it(void *arg)
{
	struct leaver *l = arg;

	while (atomic_load(&l->c->cancels) < 3)
		sched_yield();
	CHECK_OK(hive_detach(l->c->hive, l->worker, HIVE_FOREVER));
	return NULL;
}

/* Letters on their way to a worker that leaves; deadlines that pass meanwhile; on_done starts the next one there. */
static void start_another(struct shot *shot, int64_t result)
{
	CHECK(result == -ECANCELED || result == -ETIMEDOUT);
	if (shot->number-- <= 0)
		return;
	atomic_store(&shot->ended, 0);
	CHECK_OK(SHOT_CALL(hive_op_recv(&shot->op, shot->op.fd, &shot->byte, 1, hive_deadline(NULL, HIVE_MS(3)))));
}

TEST(cancel_against_a_worker_that_leaves)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 0);

		for (int round = 0; round < 60 / test_slowness() + 10; round++) {
			uint32_t worker = attach_on(hive, core_names[core]);
			pthread_t threads[3];
			struct crowd c;
			struct leaver l = { &c, worker };

			crowd_init(&c, hive);
			for (int i = 0; i < MANY; i++) {
				c.shots[i].then = start_another;
				c.shots[i].number = i % 3;
			}
			c.deadline_ns = round % 2 ? HIVE_FOREVER : hive_deadline(NULL, HIVE_MS(1));
			start_at(&c, worker, 0, MANY);
			CHECK_OK(pthread_create(&threads[0], NULL, cancel_forth_and_back, &c));
			CHECK_OK(pthread_create(&threads[1], NULL, cancel_forth_and_back, &c));
			CHECK_OK(pthread_create(&threads[2], NULL, detach_it, &l));
			for (int i = 0; i < 3; i++)
				CHECK_OK(pthread_join(threads[i], NULL));
			for (int i = 0; i < MANY; i++) {
				for (int k = i % 3; k > 0; k--)
					gate_pass(&c.shots[i].done);
				shot_end(&c.shots[i]);
				CHECK_EQ(atomic_load(&c.shots[i].told), i % 3 + 1);
			}
			net_close(c.fds);
		}
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- never started; nobody for files ---- */

static atomic_int dropped;

static void on_drop(struct hive_op *op, int64_t result)
{
	CHECK_ERR(result, -ECANCELED);
	CHECK(op->arg == &dropped);
	atomic_fetch_add(&dropped, 1);
}

TEST(a_hive_that_never_started_ends_what_it_was_given)
{
	for (int way = 0; way < 2; way++) {
		struct hive *hive = real_create((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
		struct hive_op told, silent;
		char byte;
		int fds[2];

		atomic_store(&dropped, 0);
		net_pair(fds);
		hive_op_init(&told, hive, on_drop, &dropped);
		hive_op_init(&silent, hive, NULL, NULL);
		CHECK_OK(hive_op_recv(&told, fds[0], &byte, 1, HIVE_FOREVER));
		CHECK_OK(hive_op_open(&silent, AT_FDCWD, "/dev/null", O_RDONLY, 0, HIVE_S(1000)));
		if (way == 0)
			CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		else
			CHECK_OK(hive_op_cancel(&told));
		CHECK_OK(hive_destroy(hive));
		CHECK_EQ(atomic_load(&dropped), 1);
		CHECK_ERR(hive_op_wait(&silent), -ECANCELED);
		net_close(fds);
	}
}

TEST(who_is_refused_is_told_so_when_he_waits)
{
	struct hive *hive = net_start("epoll", 1, 0);
	struct hive_op op;
	char byte;

	hive_op_init(&op, hive, NULL, NULL);
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_ERR(hive_op_recv(&op, 0, &byte, 1, HIVE_FOREVER), -ESHUTDOWN);
	CHECK_ERR(hive_op_wait(&op), -ESHUTDOWN);
	CHECK_ERR(hive_op_cancel(&op), -ESRCH);
	real_join(hive);
}

/* A core that does files by itself needs nobody for them. */
TEST(without_compute_workers_files_are_refused)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		bool native = net_is_native(core_names[core], HIVE_OP_OPEN);
		bool closes = net_is_native(core_names[core], HIVE_OP_CLOSE);
		int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
		int64_t opened;
		struct shot shot;

		shot_init(&shot, hive);
		CHECK_OK(hive_op_open(&shot.op, AT_FDCWD, "/dev/null", O_RDONLY, 0, HIVE_FOREVER));
		opened = shot_wait(&shot);
		CHECK(native ? opened >= 0 && close((int)opened) == 0 : opened == -ENOTSUP);
		shot_again(&shot);
		CHECK_OK(hive_op_read(&shot.op, file, &shot.byte, 1, 0, hive_deadline(NULL, HIVE_S(1000))));
		CHECK_ERR(shot_wait(&shot), native ? 1 : -ENOTSUP);
		shot_again(&shot);
		CHECK_OK(hive_op_close(&shot.op, file, HIVE_FOREVER));
		CHECK_ERR(shot_end(&shot), closes ? 0 : -ENOTSUP);
		CHECK_EQ(close(file), closes ? -1 : 0); /* it is still there, or gone */
		real_end(hive, HIVE_DRAIN);
	}
}
