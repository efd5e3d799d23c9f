/* SPDX-License-Identifier: MIT */
/* Graphs, beat by beat: order, errors, ends, and no memory after they are built. */
#include "support/fake.h"
#include "test.h"

static int calls, result_told, told;
static uint32_t workers[16];

static int note(void *n)
{
	fake_note(n);
	workers[(uintptr_t)n % 16] = hive_worker_current();
	calls++;
	return 0;
}

static int fail_with_eio(void *n)
{
	note(n);
	return -EIO;
}

static void tell(void *arg, int result)
{
	(void)arg;
	result_told = result;
	told++;
}

static struct hive_graph *begin(struct fake *f, int io, int compute)
{
	struct hive_graph *graph;

	memset(f, 0, sizeof *f);
	fake_create(f, (struct hive_options){ .io_workers = io, .compute_workers = compute });
	fake_start(f);
	fake_settle(f);
	fake_log_clear();
	calls = told = result_told = 0;
	CHECK_OK(hive_graph_create(f->hive, &graph));
	return graph;
}

static void end(struct fake *f, struct hive_graph *graph)
{
	CHECK_OK(hive_graph_destroy(graph));
	fake_destroy(f);
}

static struct hive_node *add(struct hive_graph *graph, enum hive_kind kind, hive_node_fn *fn, uintptr_t n)
{
	struct hive_node *node = NULL;

	CHECK_OK(hive_graph_add(graph, kind, fn, (void *)n, &node));
	return node;
}

/* 1 before 2 and 3, these before 4. */
static void diamond(struct hive_graph *graph, enum hive_kind kind, hive_node_fn *second)
{
	struct hive_node *one = add(graph, HIVE_MICRO, note, 1), *two = add(graph, kind, second, 2);
	struct hive_node *three = add(graph, kind, note, 3), *four = add(graph, HIVE_MICRO, note, 4);

	CHECK_OK(hive_graph_edge(graph, one, two));
	CHECK_OK(hive_graph_edge(graph, one, three));
	CHECK_OK(hive_graph_edge(graph, two, four));
	CHECK_OK(hive_graph_edge(graph, three, four));
}

/* Run by run without memory: the allocator would be noticed. */
TEST(a_graph_runs_many_times_without_memory)
{
	struct fake f;
	struct hive_graph *graph = begin(&f, 2, 1);

	diamond(graph, HIVE_COMPUTE, note);
	CHECK_OK(hive_graph_run(graph, HIVE_FOREVER)); /* pools make their first memory */
	f.fail_at = f.allocations + 1;
	f.sticky = true;
	for (int i = 0; i < 200; i++) {
		fake_log_clear();
		CHECK_OK(hive_graph_run(graph, HIVE_FOREVER));
		CHECK(strcmp(fake_log(), "1 2 3 4") == 0 || strcmp(fake_log(), "1 3 2 4") == 0);
		CHECK_EQ(workers[2], f.workers[2].id);
		CHECK_EQ(workers[3], f.workers[2].id);
		CHECK(workers[4] != f.workers[2].id);
	}
	CHECK_EQ(f.fail_at, f.allocations + 1); /* nobody asked */
	f.fail_at = 0;
	CHECK_EQ(calls, 4 * 201);
	end(&f, graph);
}

/* A chain of one kind is one task of the hive, until others are due: nothing waits in a queue between two of its nodes. */
TEST(who_ends_last_goes_on_with_the_next)
{
	enum { LENGTH = 30 };
	struct fake f;
	struct hive_graph *graph = begin(&f, 2, 0);
	struct hive_node *nodes[LENGTH];
	struct hive_stats before, after;

	for (uintptr_t i = 0; i < LENGTH; i++)
		nodes[i] = add(graph, HIVE_MICRO, note, i);
	for (int i = 1; i < LENGTH; i++)
		CHECK_OK(hive_graph_edge(graph, nodes[i - 1], nodes[i]));
	CHECK_OK(hive_graph_start(graph, tell, NULL));
	CHECK_OK(hive_post(f.hive, fake_note, (void *)(uintptr_t)999));
	CHECK_OK(hive_stats_read(f.hive, &before));
	fake_step(&f, f.workers[0].id);
	fake_settle(&f);
	CHECK_OK(hive_stats_read(f.hive, &after));
	CHECK_EQ(told, 1);
	CHECK_OK(result_told);
	CHECK_EQ(calls, LENGTH);
	CHECK_EQ(after.ran - before.ran, LENGTH + 1); /* each is in the books */
	for (int i = 1; i < 16; i++)
		CHECK_EQ(workers[i], workers[0]);
	end(&f, graph);
}

/* A long chain does not keep its worker. */
TEST(others_have_a_turn)
{
	struct fake f;
	struct hive_graph *graph = begin(&f, 1, 0);
	struct hive_node *last = add(graph, HIVE_MICRO, note, 0);

	for (uintptr_t i = 1; i < 100; i++) {
		struct hive_node *next = add(graph, HIVE_MICRO, note, i);

		CHECK_OK(hive_graph_edge(graph, last, next));
		last = next;
	}
	CHECK_OK(hive_graph_start(graph, tell, NULL));
	CHECK_OK(hive_post(f.hive, fake_note, (void *)(uintptr_t)999));
	fake_settle(&f);
	CHECK_EQ(told, 1);
	CHECK(strstr(fake_log(), " 999 ") < strstr(fake_log(), " 64 "));
	end(&f, graph);
}

TEST(the_first_error_ends_the_run_and_the_next_run_is_whole)
{
	struct fake f;
	struct hive_graph *graph = begin(&f, 2, 1);

	diamond(graph, HIVE_MICRO, fail_with_eio);
	add(graph, HIVE_COMPUTE, note, 5); /* beside it: begun, or not */
	for (int i = 0; i < 20; i++) {
		fake_log_clear();
		CHECK_ERR(hive_graph_run(graph, HIVE_FOREVER), -EIO);
		CHECK(strstr(fake_log(), "2") && !strstr(fake_log(), "4"));
		CHECK_ERR(hive_graph_start(graph, tell, NULL), 0);
		fake_settle(&f);
		CHECK_EQ(told, i + 1);
		CHECK_ERR(result_told, -EIO);
	}
	end(&f, graph);
}

TEST(an_empty_graph_is_over_at_once_and_a_callback_may_destroy_it)
{
	struct fake f;
	struct hive_graph *graph = begin(&f, 1, 0);

	CHECK_OK(hive_graph_run(graph, HIVE_FOREVER));
	CHECK_OK(hive_graph_start(graph, tell, NULL));
	CHECK_EQ(told, 0); /* not in here */
	CHECK_ERR(hive_graph_destroy(graph), -EBUSY);
	fake_settle(&f);
	CHECK_EQ(told, 1);
	CHECK_OK(result_told);
	end(&f, graph);
}

static void destroy_it(void *graph, int result)
{
	CHECK_OK(result);
	CHECK_OK(hive_graph_destroy(graph));
	told++;
}

static void run_again(void *graph, int result)
{
	CHECK_OK(result);
	if (++told < 5)
		CHECK_OK(hive_graph_start(graph, run_again, graph));
	else
		CHECK_OK(hive_graph_start(graph, destroy_it, graph));
}

TEST(a_callback_runs_it_again_and_destroys_it_at_last)
{
	struct fake f;
	struct hive_graph *graph = begin(&f, 2, 1);

	diamond(graph, HIVE_COMPUTE, note);
	CHECK_OK(hive_graph_start(graph, run_again, graph));
	fake_settle(&f);
	CHECK_EQ(told, 6);
	CHECK_EQ(calls, 24);
	fake_destroy(&f);
}

TEST(circles_are_found_and_can_be_told_again)
{
	struct fake f;
	struct hive_graph *graph = begin(&f, 1, 0);
	struct hive_node *a = add(graph, HIVE_MICRO, note, 1), *b = add(graph, HIVE_MICRO, note, 2);
	struct hive_node *c = add(graph, HIVE_MICRO, note, 3);

	CHECK_ERR(hive_graph_edge(graph, a, a), -ELOOP);
	CHECK_OK(hive_graph_edge(graph, a, b));
	CHECK_OK(hive_graph_edge(graph, a, b)); /* twice is as good as once */
	CHECK_OK(hive_graph_check(graph));
	CHECK_OK(hive_graph_run(graph, HIVE_FOREVER));
	CHECK_EQ(calls, 3);
	CHECK_OK(hive_graph_edge(graph, b, c));
	CHECK_OK(hive_graph_edge(graph, c, a));
	for (int i = 0; i < 2; i++) {
		CHECK_ERR(hive_graph_check(graph), -ELOOP);
		CHECK_ERR(hive_graph_run(graph, HIVE_FOREVER), -ELOOP);
		CHECK_ERR(hive_graph_start(graph, tell, NULL), -ELOOP);
	}
	fake_settle(&f);
	CHECK_EQ(calls, 3);
	CHECK_EQ(told, 0);
	end(&f, graph);
}

TEST(mistakes_are_told)
{
	struct fake f;
	struct hive_graph *graph = begin(&f, 1, 0), *other;
	struct hive_node *a = add(graph, HIVE_MICRO, note, 1), *foreign;
	uint64_t junk[128] = { 0 };
	struct hive *empty;

	CHECK_ERR(hive_graph_create(NULL, &other), -EINVAL);
	CHECK_ERR(hive_graph_create(f.hive, NULL), -EINVAL);
	CHECK_OK(hive_create(&(struct hive_options){ 0 }, &empty));
	CHECK_ERR(hive_graph_create(empty, &other), -ESRCH);
	CHECK_OK(hive_destroy(empty));
	CHECK_OK(hive_graph_create(f.hive, &other));
	foreign = add(other, HIVE_MICRO, note, 1);
	CHECK_ERR(hive_graph_edge(graph, a, foreign), -EINVAL);
	CHECK_ERR(hive_graph_edge(graph, foreign, a), -EINVAL);
	CHECK_ERR(hive_graph_edge(graph, a, NULL), -EINVAL);
	CHECK_ERR(hive_graph_edge(NULL, a, foreign), -EINVAL);
	CHECK_ERR(hive_graph_add(graph, (enum hive_kind)0, note, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_graph_add(graph, HIVE_MICRO, NULL, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_graph_add(NULL, HIVE_MICRO, note, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_graph_check((struct hive_graph *)(void *)junk), -EINVAL);
	CHECK_ERR(hive_graph_run(NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_graph_start(graph, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_graph_start(NULL, tell, NULL), -EINVAL);
	CHECK_ERR(hive_graph_destroy((struct hive_graph *)(void *)junk), -EINVAL);
	CHECK_OK(hive_graph_destroy(NULL));
	CHECK_ERR(hive_graph_run(graph, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(hive_graph_add(other, HIVE_COMPUTE, note, NULL, NULL));
	CHECK_ERR(hive_graph_run(other, HIVE_FOREVER), -ENOTSUP);
	CHECK_EQ(calls, 0);
	CHECK_OK(hive_graph_start(graph, tell, NULL));
	CHECK_ERR(hive_graph_start(graph, tell, NULL), -EBUSY);
	CHECK_ERR(hive_graph_run(graph, HIVE_FOREVER), -EBUSY);
	CHECK_ERR(hive_graph_add(graph, HIVE_MICRO, note, NULL, NULL), -EBUSY);
	CHECK_ERR(hive_graph_edge(graph, a, a), -EBUSY);
	CHECK_ERR(hive_graph_check(graph), -EBUSY);
	CHECK_ERR(hive_graph_destroy(graph), -EBUSY);
	fake_settle(&f);
	CHECK_EQ(told, 1);
	CHECK_OK(hive_graph_destroy(other));
	end(&f, graph);
}

TEST(without_memory_it_is_as_it_was)
{
	struct fake f;
	struct hive_graph *graph = begin(&f, 1, 0), *none = NULL;
	struct hive_node *a, *b;

	f.fail_at = f.allocations + 1;
	CHECK_ERR(hive_graph_create(f.hive, &none), -ENOMEM);
	f.fail_at = f.allocations + 1;
	CHECK_ERR(hive_graph_add(graph, HIVE_MICRO, note, NULL, NULL), -ENOMEM);
	f.fail_at = 0;
	a = add(graph, HIVE_MICRO, note, 1);
	b = add(graph, HIVE_MICRO, note, 2);
	f.fail_at = f.allocations + 1;
	CHECK_ERR(hive_graph_edge(graph, a, b), -ENOMEM);
	f.fail_at = 0;
	CHECK_OK(hive_graph_edge(graph, a, b));
	CHECK_OK(hive_graph_run(graph, HIVE_FOREVER));
	CHECK_STR(fake_log(), "1 2");
	end(&f, graph);
}

static struct hive_graph *own;
static int inner;

static int run_inside(void *arg)
{
	(void)arg;
	inner = hive_graph_run(own, HIVE_FOREVER);
	return 0;
}

static void run_in_task(void *arg)
{
	run_inside(arg);
}

TEST(a_task_of_an_io_worker_cannot_wait_for_it)
{
	struct fake f;
	struct hive_graph *graph = begin(&f, 1, 0);

	own = graph;
	add(graph, HIVE_MICRO, note, 1);
	CHECK_OK(hive_post(f.hive, run_in_task, NULL));
	fake_settle(&f);
	CHECK_ERR(inner, -EDEADLK);
	CHECK_EQ(calls, 0);
	CHECK_OK(hive_spawn(f.hive, run_inside, NULL, NULL, NULL)); /* a fiber can */
	fake_settle(&f);
	CHECK_OK(inner);
	CHECK_EQ(calls, 1);
	end(&f, graph);
}

TEST(a_drain_runs_it_to_its_end)
{
	struct fake f;
	struct hive_graph *graph = begin(&f, 2, 1);

	diamond(graph, HIVE_COMPUTE, note);
	CHECK_OK(hive_graph_start(graph, tell, NULL));
	CHECK_OK(hive_stop(f.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(f.hive, HIVE_FOREVER));
	CHECK_EQ(told, 1);
	CHECK_OK(result_told);
	CHECK_EQ(calls, 4);
	CHECK_ERR(hive_graph_start(graph, tell, NULL), -ESHUTDOWN);
	CHECK_ERR(hive_graph_run(graph, HIVE_FOREVER), -ESHUTDOWN);
	end(&f, graph);
}

static int stop_now(void *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
	return 0;
}

TEST(a_stop_leaves_out_what_has_not_begun)
{
	for (int kind = HIVE_MICRO; kind <= HIVE_COMPUTE; kind++) {
		struct fake f;
		struct hive_graph *graph = begin(&f, 2, 1);
		struct hive_node *first, *second;

		CHECK_OK(hive_graph_add(graph, (enum hive_kind)kind, stop_now, f.hive, &first));
		second = add(graph, HIVE_COMPUTE, note, 1);
		CHECK_OK(hive_graph_edge(graph, first, second));
		CHECK_OK(hive_graph_edge(graph, second, add(graph, HIVE_MICRO, note, 2)));
		CHECK_OK(hive_graph_start(graph, tell, NULL));
		fake_settle(&f);
		CHECK_OK(hive_join(f.hive, HIVE_FOREVER));
		CHECK_EQ(told, 1);
		CHECK_ERR(result_told, -ECANCELED);
		CHECK_EQ(calls, 0);
		end(&f, graph);
	}
}

TEST(a_hive_that_never_ran_tells_it_too)
{
	struct hive_graph *graph, *none;
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	calls = told = 0;
	CHECK_OK(hive_graph_create(f.hive, &graph));
	CHECK_OK(hive_graph_create(f.hive, &none));
	diamond(graph, HIVE_COMPUTE, note);
	CHECK_OK(hive_graph_start(graph, tell, NULL));
	CHECK_OK(hive_graph_start(none, tell, NULL));
	CHECK_OK(hive_destroy(f.hive));
	CHECK_EQ(told, 2);
	CHECK_EQ(calls, 0);
	CHECK_EQ(f.drops, 0);
	CHECK_OK(hive_graph_destroy(graph));
	CHECK_OK(hive_graph_destroy(none));
	CHECK_EQ(f.balance, 0);
}
