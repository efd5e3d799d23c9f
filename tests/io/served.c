/* SPDX-License-Identifier: MIT */
/* Operations that a fiber of the library does, on each core: names, connections by name, children, signals. What they give, each error that is
 * likely, deadlines, cancels, who may start them. Their ends with a hive or a worker: served_ends.c.                         */
#include <netinet/tcp.h>

#include "fiber/fiber.h"
#include "support/child.h"
#include "support/served.h"

/* ---- what they are for ---- */

static const char *const seven[] = { "sh", "-c", "exit 7", NULL }, *const missing[] = { "/no/such/program", NULL };

START(resolve_number, hive_op_resolve(op, "127.0.0.1", 80, s->at, 4, by))
START(resolve_local, hive_op_resolve(op, "localhost", 80, s->at, 4, by))
START(resolve_name, hive_op_resolve(op, "somebody.test", 80, s->at, 4, by))
START(resolve_and_count, hive_op_resolve(op, "somebody.test", 80, NULL, 0, by))
START(dial_number, hive_op_dial(op, "127.0.0.1", s->port, NULL, by))
START(dial_name, hive_op_dial(op, "somebody.test", s->port, NULL, by))
START(start_child, ((void)by, hive_op_process_start(op, seven, NULL, &s->started)))
START(take_signal, (kill(getpid(), SIGUSR2), hive_op_signal_wait(op, scene_signals, 2, by)))

static int wait_killed(struct hive_op *op, struct scene *s, int64_t by)
{
	CHECK_OK(hive_process_signal(s->child, SIGKILL));
	return hive_op_process_wait(op, s->child, by);
}

static const struct row good[] = {
	{ "resolve a number", resolve_number, 1 }, { "resolve localhost", resolve_local, 2 },
	{ "resolve a name", resolve_name, 1 },     { "resolve and count", resolve_and_count, 1 },
	{ "dial a number", dial_number, SOME_FD }, { "dial a name", dial_name, SOME_FD },
	{ "process_start", start_child, 0 },       { "process_wait", wait_killed, 256 + SIGKILL },
	{ "signal_wait", take_signal, SIGUSR2 },
};

START(resolve_nobody, hive_op_resolve(op, "nobody.test", 80, s->at, 4, by))
START(resolve_no_name, hive_op_resolve(op, "127.1", 80, s->at, 4, by))
START(dial_nobody, hive_op_dial(op, "nobody.test", 80, NULL, by))
START(dial_refused, hive_op_dial(op, "unix:@rophive-nobody-is-here", 80, NULL, by))
START(start_missing, ((void)by, hive_op_process_start(op, missing, NULL, &s->started)))
START(wait_for_stranger, hive_op_process_wait(op, (int)getpid(), by))

static const struct row bad[] = {
	{ "resolve nobody", resolve_nobody, -ENOENT },
	{ "resolve no name", resolve_no_name, -EINVAL },
	{ "dial nobody", dial_nobody, -ENOENT },
	{ "dial and be refused", dial_refused, -ECONNREFUSED },
	{ "start what is not there", start_missing, -ENOENT },
	{ "wait for a stranger", wait_for_stranger, -ESRCH },
};

static int64_t run_row(struct hive *hive, const struct row *row, struct scene *s, bool inside, int64_t deadline_ns)
{
	uint32_t worker = HIVE_WORKER_NONE;
	struct shot shot;

	shot_init(&shot, hive);
	if (inside)
		worker = launch_at(HIVE_WORKER_NONE, row, s, &shot, deadline_ns);
	else
		CHECK_OK(SHOT_CALL(row->start(&shot.op, s, deadline_ns)));
	shot_wait(&shot);
	if (inside)
		CHECK_EQ(shot.worker, worker);
	gate_destroy(&shot.done);
	return shot.result;
}

static void run_rows(const struct row *rows, size_t count, int32_t workers, int64_t delay_ns)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], workers, 2);

		for (size_t i = 0; i < 2 * count; i++) {
			const struct row *row = &rows[i / 2];
			struct scene s;
			int64_t r;

			scene_open(&s);
			r = run_row(hive, row, &s, i % 2, delay_ns ? hive_deadline(NULL, delay_ns) : HIVE_NOWAIT);
			if (row->result == SOME_FD && r >= 0)
				CHECK_OK(close((int)r));
			else if (r != (rows == waiting ? -ETIMEDOUT : row->result))
				test_fail(__FILE__, __LINE__, "%s, on %s, %zu: %lld %s", row->name, core_names[core],
				          i % 2, (long long)r, test_error(r));
			scene_close(&s);
		}
		real_end(hive, HIVE_DRAIN);
	}
}

#define ROWS(rows) rows, sizeof rows / sizeof *rows

TEST(each_does_what_the_call_of_its_name_does)
{
	run_rows(ROWS(good), 1, HIVE_FOREVER);
	run_rows(ROWS(good), 3, HIVE_S(100));
}

TEST(each_error_arrives_in_on_done)
{
	run_rows(ROWS(bad), 1, HIVE_FOREVER);
	run_rows(ROWS(bad), 3, HIVE_S(100));
}

TEST(each_wait_ends_at_its_deadline)
{
	run_rows(ROWS(waiting), 1, HIVE_MS(3));
	run_rows(ROWS(waiting), 2, 0);
	run_rows(ROWS(waiting), 2, -HIVE_MS(5)); /* the past */
}

/* What they fill is there in on_done. */
TEST(addresses_and_descriptors_are_there_in_on_done)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 1);
		struct hive_net_options how = { .delay = true };
		struct hive_address peer;
		struct scene s;
		struct shot shot;
		char text[64];
		int fd, on = -1;
		socklen_t bytes = sizeof on;

		scene_open(&s);
		shot_init(&shot, hive);
		CHECK_OK(hive_op_resolve(&shot.op, "somebody.test", 81, s.at, 4, HIVE_FOREVER));
		CHECK_EQ(shot_wait(&shot), 1);
		CHECK(hive_address_format(&s.at[0], text, sizeof text) > 0);
		CHECK_STR(text, "127.0.0.1:81");
		shot_again(&shot);
		CHECK_OK(hive_op_dial(&shot.op, "somebody.test", s.port, &how, HIVE_FOREVER));
		fd = (int)shot_end(&shot);
		CHECK_OK(hive_address_of(fd, true, &peer));
		CHECK_EQ(hive_address_port(&peer), s.port);
		CHECK_OK(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &bytes));
		CHECK_EQ(on, 0);
		CHECK_OK(close(fd));
		scene_close(&s);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- a child, by callbacks alone ---- */

struct run {
	struct shot shot;
	struct hive_process_options options;
	int fds[3], process, step;
	char text[16];
	int64_t bytes;
};

/* Started, its output read to the end, waited for. */
static void next_step(struct shot *shot, int64_t result)
{
	struct run *run = (struct run *)(void *)shot;

	if (run->step == 0) {
		CHECK_OK(result);
		CHECK(run->process > 0 && run->fds[0] == -1 && run->fds[1] >= 0);
	} else if (run->step < 3) {
		CHECK(result >= 0);
		run->bytes += result;
	}
	if (run->step == 3)
		return;
	shot_again(shot);
	run->step++;
	if (run->step == 3)
		CHECK_OK(SHOT_CALL(hive_op_process_wait(&shot->op, run->process, HIVE_FOREVER)));
	else
		CHECK_OK(SHOT_CALL(hive_op_read(&shot->op, run->fds[1], run->text + run->bytes,
		                                sizeof run->text - (size_t)run->bytes, -1, HIVE_FOREVER)));
}

TEST(a_program_runs_by_callbacks_alone)
{
	static const char *const argv[] = { "sh", "-c", "printf hello; exit 3", NULL };

	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 0);
		struct run run;

		memset(&run, 0, sizeof run);
		shot_init(&run.shot, hive);
		run.shot.then = next_step;
		run.options = (struct hive_process_options){ .redirect = { false, true }, .ret_fds = run.fds };
		CHECK_OK(hive_op_process_start(&run.shot.op, argv, &run.options, &run.process));
		for (int i = 0; i < 3; i++)
			gate_pass(&run.shot.done);
		CHECK_EQ(shot_end(&run.shot), 3);
		CHECK_EQ(run.bytes, 5);
		CHECK_EQ(memcmp(run.text, "hello", 5), 0);
		CHECK_OK(close(run.fds[1]));
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- cancels ---- */

static void cancel_it(void *arg)
{
	CHECK_OK(SHOT_CALL(hive_op_cancel(arg)));
}

/* All of them wait at once, and are cancelled: by a thread, on a worker; at once, or when they rest. */
TEST(each_wait_ends_when_it_is_cancelled)
{
	for (int round = 0; round < 2 * core_count(); round++) {
		struct hive *hive = net_start(core_names[round / 2], 1 + round % 2 * 2, 2);
		struct shot shots[2 * WAITS];
		struct scene s;

		scene_open(&s);
		launch_all(&s, shots, hive, HIVE_FOREVER);
		if (round % 2)
			CHECK(shot_restless(hive) < SHOT_RESTFUL);
		for (int i = 0; i < 2 * WAITS; i++) {
			if (i % 2)
				shot_at(hive, HIVE_WORKER_NONE, cancel_it, &shots[i].op);
			else
				cancel_it(&shots[i].op);
			CHECK_ERR(shot_end(&shots[i]), -ECANCELED);
			CHECK_EQ(atomic_load(&shots[i].told), 1);
			CHECK_ERR(hive_op_cancel(&shots[i].op), -ESRCH);
		}
		CHECK_ERR(hive_process_wait(s.child, HIVE_NOWAIT), -ETIMEDOUT); /* it is still there */
		scene_close(&s);
		real_end(hive, HIVE_DRAIN);
	}
}

/* A program that was asked for, and a cancel: it runs and is known, or there is none. */
TEST(a_cancelled_start_leaves_nobody_behind)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 0);

		for (int i = 0; i < 40 / test_slowness() + 5; i++) {
			struct shot shot;
			int process = -1;
			int64_t r;

			shot_init(&shot, hive);
			CHECK_OK(hive_op_process_start(&shot.op, seven, NULL, &process));
			for (int k = i % 7; k > 0; k--)
				sched_yield();
			hive_op_cancel(&shot.op);
			r = shot_end(&shot);
			CHECK(r == 0 || r == -ECANCELED);
			CHECK_EQ(process > 0, r == 0);
			if (r == 0)
				CHECK_EQ(hive_process_wait(process, HIVE_FOREVER), 7);
			CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
		}
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- the end of it against a cancel, or two ---- */

struct duel {
	struct scene *scene;
	struct shot shot;
	pthread_barrier_t start;
};

static void *cancel_at_start(void *arg)
{
	struct duel *d = arg;

	pthread_barrier_wait(&d->start);
	hive_op_cancel(&d->shot.op);
	return NULL;
}

static void *signal_at_start(void *arg)
{
	struct duel *d = arg;

	pthread_barrier_wait(&d->start);
	CHECK_OK(kill(getpid(), SIGUSR1));
	return NULL;
}

TEST(cancel_against_completion)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 0);
		struct scene s;
		struct duel d = { .scene = &s };

		scene_open(&s);
		for (int round = 0; round < 300 / test_slowness() + 20; round++) {
			pthread_t threads[3];
			int64_t r;

			shot_init(&d.shot, hive);
			CHECK_OK(pthread_barrier_init(&d.start, NULL, 4));
			CHECK_OK(pthread_create(&threads[0], NULL, cancel_at_start, &d));
			CHECK_OK(pthread_create(&threads[1], NULL, cancel_at_start, &d));
			CHECK_OK(pthread_create(&threads[2], NULL, signal_at_start, &d));
			if (round % 2)
				pthread_barrier_wait(&d.start);
			CHECK_OK(hive_op_signal_wait(&d.shot.op, scene_signals, 1, HIVE_FOREVER));
			if (round % 2 == 0)
				pthread_barrier_wait(&d.start);
			for (int i = 0; i < 3; i++)
				CHECK_OK(pthread_join(threads[i], NULL));
			r = shot_end(&d.shot);
			CHECK(r == SIGUSR1 || r == -ECANCELED);
			if (r < 0) /* nobody has lost it */
				CHECK_EQ(hive_signal_wait(scene_signals, 1, HIVE_FOREVER), SIGUSR1);
			CHECK_OK(pthread_barrier_destroy(&d.start));
		}
		scene_close(&s);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- arguments ---- */

static void refuse_all(struct hive_op *op, int expected)
{
	struct hive_net_options odd = { .reserved = { 1 } }, even = { 0 };
	bool bad_ones = expected == -EINVAL;
	int number = bad_ones ? SIGKILL : SIGUSR1, process;
	struct hive_address at;

	CHECK_ERR(hive_op_resolve(op, bad_ones ? NULL : "x", 1, &at, 1, 0), expected);
	CHECK_ERR(hive_op_resolve(op, "x", 1, bad_ones ? NULL : &at, 1, 0), expected);
	CHECK_ERR(hive_op_dial(op, bad_ones ? NULL : "x", 1, NULL, 0), expected);
	CHECK_ERR(hive_op_dial(op, "x", 1, bad_ones ? &odd : &even, 0), expected);
	CHECK_ERR(hive_op_process_start(op, bad_ones ? NULL : seven, NULL, &process), expected);
	CHECK_ERR(hive_op_process_start(op, seven, NULL, bad_ones ? NULL : &process), expected);
	CHECK_ERR(hive_op_signal_wait(op, &number, 1, 0), expected);
	CHECK_ERR(hive_op_signal_wait(op, scene_signals, bad_ones ? 0 : 1, 0), expected);
	if (!bad_ones)
		CHECK_ERR(hive_op_process_wait(op, 1, 0), expected);
}

TEST(wrong_arguments_are_refused_and_so_is_an_op_under_way)
{
	struct hive *hive = net_start("epoll", 1, 1);
	struct hive_op none = { .arg = NULL };
	struct scene s;
	struct shot shot;

	scene_open(&s);
	shot_init(&shot, hive);
	refuse_all(&shot.op, -EINVAL);
	CHECK_ERR(hive_op_process_wait(&none, 1, 0), -EINVAL); /* nobody has made it one */
	CHECK_ERR(hive_op_process_wait(NULL, 1, 0), -EINVAL);
	CHECK_OK(wait_signal(&shot.op, &s, HIVE_FOREVER));
	refuse_all(&shot.op, -EBUSY);
	CHECK_OK(hive_op_cancel(&shot.op));
	CHECK_ERR(shot_end(&shot), -ECANCELED);
	scene_close(&s);
	real_end(hive, HIVE_DRAIN);
}

TEST(names_need_a_compute_worker)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct hive_address at;
		struct shot shot;

		shot_init(&shot, hive);
		CHECK_OK(hive_op_resolve(&shot.op, "somebody.test", 1, &at, 1, HIVE_FOREVER));
		CHECK_ERR(shot_wait(&shot), -ENOTSUP);
		shot_again(&shot);
		CHECK_OK(hive_op_dial(&shot.op, "somebody.test", 1, NULL, HIVE_FOREVER));
		CHECK_ERR(shot_end(&shot), -ENOTSUP);
		real_end(hive, HIVE_DRAIN);
	}
}

static void count_stack(void *arg, struct stack stack)
{
	(void)stack;
	++*(int *)arg;
}

/* What one has used the next one uses: its fiber is given back whoever collects the result, cancelled or not. */
TEST(hundreds_need_a_few_stacks)
{
	struct hive *hive = net_start("epoll", 1, 0);
	struct hive_address at;
	int stacks = 0;

	for (int i = 0; i < 150; i++) {
		struct shot shot;
		struct hive_op op;

		shot_init(&shot, hive);
		CHECK_OK(hive_op_resolve(&shot.op, "127.0.0.1", 1, &at, 1, HIVE_FOREVER));
		if (i % 2)
			hive_op_cancel(&shot.op);
		shot_end(&shot);
		hive_op_init(&op, hive, NULL, NULL);
		CHECK_OK(hive_op_resolve(&op, "127.0.0.1", 1, &at, 1, HIVE_FOREVER));
		CHECK_EQ(hive_op_wait(&op), 1);
	}
	hive__stacks_visit(hive__fibers(hive)->stacks, count_stack, &stacks);
	CHECK(stacks > 0 && stacks < 100);
	real_end(hive, HIVE_DRAIN);
}
