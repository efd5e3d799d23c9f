/* SPDX-License-Identifier: MIT */
/* Completion, cancel, deadline and start against each other: each operation is told once, and no byte is lost. */
#include <pthread.h>

#include "support/shot.h"

enum { SHOTS = 24, CANCELLERS = 2 };

struct race {
	struct hive *hive;
	struct shot shots[SHOTS];
	int fds[2];
	int64_t window_ns; /* deadlines are in it; 0: none */
	bool cancels, inside;
	uint64_t completed, cancelled, late; /* who has won so often */
	pthread_barrier_t line;
};

/* A generator of its own for each thread: repeatable where the schedule is. */
static uint32_t draw(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void note_end(struct shot *shot, int64_t result)
{
	(void)shot;
	CHECK(result == 1 || result == -ECANCELED || result == -ETIMEDOUT);
}

static void start_all(void *arg)
{
	struct race *r = arg;
	uint32_t seed = 1;

	for (int i = 0; i < SHOTS; i++) {
		int64_t by = r->window_ns ? hive_deadline(NULL, draw(&seed) % r->window_ns) : HIVE_FOREVER;

		CHECK_OK(SHOT_CALL(hive_op_recv(&r->shots[i].op, r->fds[0], &r->shots[i].byte, 1, by)));
	}
}

static void *start_and_write(void *arg)
{
	struct race *r = arg;

	pthread_barrier_wait(&r->line);
	if (r->inside)
		CHECK_OK(hive_post(r->hive, start_all, r));
	else
		start_all(r);
	for (int i = 0; i < SHOTS; i++) {
		CHECK_EQ(write(r->fds[1], "b", 1), 1);
		if (i % 5 == 0)
			sched_yield();
	}
	return NULL;
}

static void *cancel_some(void *arg)
{
	struct race *r = arg;
	uint32_t seed = 77;

	pthread_barrier_wait(&r->line);
	for (int i = 0; i < 4 * SHOTS && r->cancels; i++) {
		int error = SHOT_CALL(hive_op_cancel(&r->shots[draw(&seed) % SHOTS].op));

		CHECK(error == 0 || error == -ESRCH);
	}
	return NULL;
}

static int64_t end_shot(struct race *r, struct shot *shot)
{
	int64_t result = shot_wait(shot);

	CHECK_EQ(atomic_load(&shot->told), 1);
	CHECK(result != -ECANCELED || r->cancels);
	CHECK(result != -ETIMEDOUT || r->window_ns);
	shot_again(shot);
	return result;
}

static void note_winner(struct race *r, int64_t result)
{
	*(result == -ECANCELED ? &r->cancelled : result == -ETIMEDOUT ? &r->late : &r->completed) += 1;
}

/* Whoever runs in this race has won at least once: else nobody was in it. */
static bool is_decided(const struct race *r)
{
	return r->completed > 0 && (r->cancelled > 0 || !r->cancels) && (r->late > 0 || !r->window_ns);
}

/* By time and by count; and on until it is decided, which is a matter of luck, but within patience of none. */
static bool goes_on(const struct race *r, int rounds, int64_t until, int64_t patience)
{
	if (rounds < 10 || hive_now(NULL) < until)
		return true;
	if (is_decided(r))
		return false;
	if (hive_now(NULL) > patience)
		test_fail(__FILE__, __LINE__, "%d rounds: %llu completed, %llu cancelled, %llu late", rounds,
		          (unsigned long long)r->completed, (unsigned long long)r->cancelled,
		          (unsigned long long)r->late);
	return true;
}

/* As many bytes as there are operations: who has got none has been cancelled or was late, and left it there. */
static void settle(struct race *r)
{
	char rest[2 * SHOTS];
	ssize_t left;
	int read_by_shots = 0;

	for (int i = 0; i < SHOTS; i++) {
		int64_t result = end_shot(r, &r->shots[i]);

		read_by_shots += result == 1;
		note_winner(r, result);
	}
	left = recv(r->fds[0], rest, sizeof rest, MSG_DONTWAIT);
	CHECK_EQ(read_by_shots + (left > 0 ? left : 0), SHOTS);
}

static void run_race(const char *core, int32_t workers, struct race *r)
{
	int64_t until = hive_now(NULL) + test_stress_ns() / 16, patience = real_patience();
	int rounds = 0;

	r->hive = net_start(core, workers, 0);
	net_pair(r->fds);
	for (int i = 0; i < SHOTS; i++) {
		shot_init(&r->shots[i], r->hive);
		r->shots[i].then = note_end;
	}
	while (goes_on(r, rounds++, until, patience)) {
		pthread_t threads[1 + CANCELLERS];

		CHECK_OK(pthread_barrier_init(&r->line, NULL, 1 + CANCELLERS));
		CHECK_OK(pthread_create(&threads[0], NULL, start_and_write, r));
		for (int i = 0; i < CANCELLERS; i++)
			CHECK_OK(pthread_create(&threads[1 + i], NULL, cancel_some, r));
		for (int i = 0; i <= CANCELLERS; i++)
			CHECK_OK(pthread_join(threads[i], NULL));
		settle(r);
		CHECK_OK(pthread_barrier_destroy(&r->line));
	}
	for (int i = 0; i < SHOTS; i++)
		gate_destroy(&r->shots[i].done);
	net_close(r->fds);
	real_end(r->hive, HIVE_DRAIN);
}

static void race_everywhere(struct race how)
{
	EACH_CORE(core)
	for (int32_t workers = 1; workers <= 3; workers += 2)
		for (int inside = 0; inside < 2; inside++) {
			struct race r = how;

			r.inside = inside;
			run_race(core_names[core], workers, &r);
		}
}

TEST(cancel_against_completion)
{
	race_everywhere((struct race){ .cancels = true });
}

TEST(deadline_against_completion)
{
	race_everywhere((struct race){ .window_ns = HIVE_US(300) });
}

TEST(deadline_against_cancel_and_completion)
{
	race_everywhere((struct race){ .window_ns = HIVE_US(300), .cancels = true });
}

/* ---- files: the cancel meets it on its way to a compute worker, there, and on its way back ---- */

static void *cancel_all(void *arg)
{
	struct race *r = arg;

	pthread_barrier_wait(&r->line);
	for (int i = 0; i < SHOTS; i++)
		hive_op_cancel(&r->shots[i].op);
	return NULL;
}

TEST(cancel_against_a_compute_worker)
{
	EACH_CORE(core)
	{
		struct race r = { .hive = net_start(core_names[core], 2, 2), .cancels = true };
		int64_t until = hive_now(NULL) + test_stress_ns() / 8, patience = real_patience();
		int rounds = 0;

		for (int i = 0; i < SHOTS; i++)
			shot_init(&r.shots[i], r.hive);
		while (goes_on(&r, rounds++, until, patience)) {
			pthread_t thread;

			CHECK_OK(pthread_barrier_init(&r.line, NULL, 2));
			CHECK_OK(pthread_create(&thread, NULL, cancel_all, &r));
			pthread_barrier_wait(&r.line);
			for (int i = 0; i < SHOTS; i++)
				CHECK_OK(hive_op_open(&r.shots[i].op, AT_FDCWD, "/dev/null", O_RDONLY, 0,
				                      i % 3 ? HIVE_FOREVER : hive_deadline(NULL, HIVE_US(50 * i))));
			for (int i = 0; i < SHOTS; i++) {
				int64_t result = shot_wait(&r.shots[i]);

				CHECK(result >= 0 || result == -ECANCELED || (result == -ETIMEDOUT && i % 3 == 0));
				note_winner(&r, result);
				if (result >= 0)
					CHECK_OK(close((int)result));
				shot_again(&r.shots[i]);
			}
			CHECK_OK(pthread_join(thread, NULL));
			CHECK_OK(pthread_barrier_destroy(&r.line));
		}
		for (int i = 0; i < SHOTS; i++)
			gate_destroy(&r.shots[i].done);
		real_end(r.hive, HIVE_DRAIN);
	}
}

/* ---- an op that is started again as soon as it has ended, while others cancel whatever they see ---- */

struct wheel {
	struct shot shot;
	int fds[2];
	atomic_int turns, cancelled;
	atomic_bool stop;
};

static void turn(struct hive_op *op, int64_t result)
{
	struct wheel *w = op->arg;

	CHECK_EQ(shot_depth++, 0);
	CHECK_EQ(shot_inside, 0);
	CHECK(result == -ECANCELED || result == -ETIMEDOUT);
	atomic_fetch_add(&w->cancelled, result == -ECANCELED);
	atomic_fetch_add(&w->turns, 1);
	if (atomic_load(&w->stop))
		gate_open(&w->shot.done);
	else
		CHECK_OK(SHOT_CALL(hive_op_recv(op, w->fds[0], &w->shot.byte, 1, hive_deadline(NULL, HIVE_US(500)))));
	shot_depth--;
}

static void *cancel_for_ever(void *arg)
{
	struct wheel *w = arg;

	while (!atomic_load(&w->stop))
		hive_op_cancel(&w->shot.op);
	return NULL;
}

TEST(an_operation_that_begins_again_is_cancelled_again)
{
	EACH_CORE(core)
	for (int32_t workers = 1; workers <= 3; workers += 2) {
		struct hive *hive = net_start(core_names[core], workers, 0);
		int64_t until = hive_now(NULL) + test_stress_ns() / 16;
		struct wheel w = { .turns = 0 };
		pthread_t threads[CANCELLERS];

		gate_init(&w.shot.done);
		net_pair(w.fds);
		hive_op_init(&w.shot.op, hive, turn, &w);
		CHECK_OK(hive_op_recv(&w.shot.op, w.fds[0], &w.shot.byte, 1, HIVE_S(1000)));
		for (int i = 0; i < CANCELLERS; i++)
			CHECK_OK(pthread_create(&threads[i], NULL, cancel_for_ever, &w));
		WAIT_UNTIL(atomic_load(&w.turns) > 100 && atomic_load(&w.cancelled) > 0 && hive_now(NULL) > until);
		atomic_store(&w.stop, true);
		for (int i = 0; i < CANCELLERS; i++)
			CHECK_OK(pthread_join(threads[i], NULL));
		hive_op_cancel(&w.shot.op);
		gate_pass(&w.shot.done);
		gate_destroy(&w.shot.done);
		net_close(w.fds);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- on_done cancels others on the same descriptor ---- */

struct family {
	struct shot shots[SHOTS];
	int fds[2];
};

static struct family *family; /* on one worker */

static void cancel_the_rest(struct shot *shot, int64_t result)
{
	if (result != 1)
		return;
	for (int i = 0; i < SHOTS; i++)
		if (&family->shots[i] != shot)
			hive_op_cancel(&family->shots[i].op);
}

static void start_family(void *arg)
{
	struct family *f = arg;

	for (int i = 0; i < SHOTS; i++)
		CHECK_OK(SHOT_CALL(hive_op_recv(&f->shots[i].op, f->fds[0], &f->shots[i].byte, 1, HIVE_FOREVER)));
}

TEST(on_done_cancels_the_others)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct family f;
		char rest[SHOTS];
		int got = 0;

		family = &f;
		net_pair(f.fds);
		for (int i = 0; i < SHOTS; i++) {
			shot_init(&f.shots[i], hive);
			f.shots[i].then = cancel_the_rest;
		}
		shot_at(hive, HIVE_WORKER_NONE, start_family, &f);
		CHECK_EQ(write(f.fds[1], "abc", 3), 3);
		for (int i = 0; i < SHOTS; i++) {
			int64_t result = shot_end(&f.shots[i]);

			CHECK(result == 1 || result == -ECANCELED);
			got += result == 1;
		}
		if (!net_is_native(core_names[core], HIVE_OP_RECV))
			CHECK_EQ(got, 1); /* the others were out of the line before their turn */
		CHECK(got >= 1 && got <= 3);
		CHECK_EQ(recv(f.fds[0], rest, sizeof rest, 0),
		         got < 3 ? 3 - got : -1); /* what nobody got is still there */
		net_close(f.fds);
		real_end(hive, HIVE_DRAIN);
		family = NULL;
	}
}

/* Each one's on_done cancels the next one: no tower of calls. */
static void cancel_next(struct shot *shot, int64_t result)
{
	CHECK_ERR(result, -ECANCELED);
	if (shot->number + 1 < SHOTS)
		CHECK_OK(SHOT_CALL(hive_op_cancel(&family->shots[shot->number + 1].op)));
}

static void cancel_first(void *arg)
{
	struct family *f = arg;

	CHECK_OK(SHOT_CALL(hive_op_cancel(&f->shots[0].op)));
}

TEST(a_chain_of_cancels)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct family f;

		family = &f;
		net_pair(f.fds);
		for (int i = 0; i < SHOTS; i++) {
			shot_init(&f.shots[i], hive);
			f.shots[i].then = cancel_next;
			f.shots[i].number = i;
		}
		shot_at(hive, HIVE_WORKER_NONE, start_family, &f);
		shot_at(hive, HIVE_WORKER_NONE, cancel_first, &f);
		for (int i = 0; i < SHOTS; i++)
			CHECK_ERR(shot_end(&f.shots[i]), -ECANCELED);
		net_close(f.fds);
		real_end(hive, HIVE_DRAIN);
		family = NULL;
	}
}
