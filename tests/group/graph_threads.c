/* SPDX-License-Identifier: MIT */
/* Graphs with real threads: random ones against the order that they demand, deadlines, and ends that free them at once. */
#include "base/atomic.h"
#include "base/rng.h"
#include "support/real.h"
#include "test.h"

enum { NODES = 60 };

struct cell { /* of one node */
	const struct cell *before[NODES];
	int needs;
	uint64_t run; /* in which it was called last: plain memory, which the edges protect */
};

static struct cell cells[NODES];
static uint64_t run_number;
static ATOMIC(uint32_t) called;

static int visit(void *arg)
{
	struct cell *cell = arg;

	CHECK_EQ(cell->run, run_number - 1); /* once in each run */
	for (int i = 0; i < cell->needs; i++)
		CHECK_EQ(cell->before[i]->run, run_number);
	cell->run = run_number;
	add_relaxed(&called, 1u);
	return 0;
}

static struct hive_graph *random_graph(struct hive *hive, uint64_t *seed)
{
	struct hive_node *nodes[NODES];
	struct hive_graph *graph;

	memset(cells, 0, sizeof cells);
	CHECK_OK(hive_graph_create(hive, &graph));
	for (int i = 0; i < NODES; i++) {
		enum hive_kind kind = rng_below(rng_next(seed), 3) ? HIVE_MICRO : HIVE_COMPUTE;

		CHECK_OK(hive_graph_add(graph, kind, visit, &cells[i], &nodes[i]));
		for (uint32_t n = rng_below(rng_next(seed), 4); i > 0 && n > 0; n--) {
			uint32_t before = rng_below(rng_next(seed), (uint32_t)i);

			CHECK_OK(hive_graph_edge(graph, nodes[before], nodes[i]));
			cells[i].before[cells[i].needs++] = &cells[before];
		}
	}
	return graph;
}

static int run_in_fiber(void *graph)
{
	return hive_graph_run(graph, HIVE_FOREVER);
}

static void run_in_compute_task(void *arg)
{
	void **both = arg;

	CHECK_OK(hive_graph_run(both[0], HIVE_FOREVER));
	gate_open(both[1]);
}

/* Each node once in each run, after those before it, whose plain memory it sees; by threads, fibers and compute tasks. */
static void check_order(int32_t compute)
{
	/* With one compute worker its task has to run the nodes that it waits for. */
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = compute });
	uint64_t seed = 7;

	for (int round = 0; round < 20 / test_slowness() + 2; round++) {
		struct hive_graph *graph = random_graph(hive, &seed);
		struct hive_fiber *fiber;
		struct gate gate;
		int result;

		gate_init(&gate);
		store_relaxed(&called, 0u);
		for (run_number = 1; run_number <= 30; run_number++) {
			if (run_number % 3 == 0) {
				CHECK_OK(hive_graph_run(graph, real_patience()));
			} else if (run_number % 3 == 1) {
				CHECK_OK(hive_spawn(hive, run_in_fiber, graph, NULL, &fiber));
				CHECK_OK(hive_fiber_join(fiber, real_patience(), &result));
				CHECK_OK(result);
			} else {
				void *both[2] = { graph, &gate };

				CHECK_OK(hive_post_compute(hive, run_in_compute_task, both));
				gate_pass(&gate);
			}
		}
		CHECK_EQ(load_relaxed(&called), 30 * NODES);
		gate_destroy(&gate);
		CHECK_OK(hive_graph_destroy(graph));
	}
	real_end(hive, HIVE_DRAIN);
}

TEST(nodes_come_after_those_they_wait_for)
{
	check_order(1);
	check_order(2);
}

static int count(void *arg)
{
	(void)arg;
	add_relaxed(&called, 1u);
	return 0;
}

/* It is gone as soon as run() has returned. */
TEST(a_graph_goes_when_its_run_returns)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 3, .compute_workers = 1 });

	for (int round = 0; round < 3000 / test_slowness() + 50; round++) {
		struct hive_node *nodes[4];
		struct hive_graph *graph;

		CHECK_OK(hive_graph_create(hive, &graph));
		for (int i = 0; i < 4; i++) {
			CHECK_OK(hive_graph_add(graph, round % 2 && i == 2 ? HIVE_COMPUTE : HIVE_MICRO, count, NULL,
			                        &nodes[i]));
			if (i > 0 && round % 3)
				CHECK_OK(hive_graph_edge(graph, nodes[0], nodes[i]));
		}
		CHECK_OK(hive_graph_run(graph, HIVE_FOREVER));
		CHECK_OK(hive_graph_destroy(graph));
	}
	real_end(hive, HIVE_DRAIN);
}

static struct gate entered, leave;

static int hold_up(void *arg)
{
	(void)arg;
	gate_open(&entered);
	gate_pass(&leave);
	return 0;
}

static struct hive_graph *held_up(struct hive *hive)
{
	struct hive_node *first, *second;
	struct hive_graph *graph;

	gate_init(&entered);
	gate_init(&leave);
	store_relaxed(&called, 0u);
	CHECK_OK(hive_graph_create(hive, &graph));
	CHECK_OK(hive_graph_add(graph, HIVE_COMPUTE, hold_up, NULL, &first));
	CHECK_OK(hive_graph_add(graph, HIVE_MICRO, count, NULL, &second));
	CHECK_OK(hive_graph_edge(graph, first, second));
	return graph;
}

static void end_held_up(struct hive *hive, struct hive_graph *graph)
{
	CHECK_EQ(load_relaxed(&called), 0);
	gate_open(&leave); /* the next run is whole */
	CHECK_OK(hive_graph_run(graph, real_patience()));
	CHECK_EQ(load_relaxed(&called), 1);
	CHECK_OK(hive_graph_destroy(graph));
	gate_destroy(&entered);
	gate_destroy(&leave);
	real_end(hive, HIVE_DRAIN);
}

static ATOMIC(uint32_t) is_over;

static int run_for_a_moment(void *graph)
{
	int r = hive_graph_run(graph, hive_deadline(NULL, HIVE_MS(1)));

	store_seq(&is_over, 1u);
	return r;
}

/* No deadline is left, and the workers sleep. */
static bool is_late(struct hive *hive)
{
	struct hive_stats stats;

	CHECK_OK(hive_stats_read(hive, &stats));
	return stats.timers == 0 && stats.sleeping == 2;
}

/* A deadline ends the run: what had begun is waited for, what had not is left out. A run that is late before it begins does not begin, so
 * it is tried until one does.                                                                                           */
TEST(a_deadline_leaves_out_what_has_not_begun)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	struct hive_graph *graph = held_up(hive);
	bool begun = false;

	while (!begun) {
		struct hive_fiber *fiber;
		int result, is_in = 0;

		store_seq(&is_over, 0u);
		CHECK_OK(hive_spawn(hive, run_for_a_moment, graph, NULL, &fiber));
		WAIT_UNTIL(sem_getvalue(&entered.sem, &is_in) == 0 && (is_in > 0 || load_seq(&is_over)));
		begun = is_in > 0;
		if (begun) {
			gate_pass(&entered);
			WAIT_UNTIL(is_late(hive));
			CHECK_EQ(load_seq(&is_over), 0);
			gate_open(&leave);
		}
		CHECK_OK(hive_fiber_join(fiber, real_patience(), &result));
		CHECK_ERR(result, -ETIMEDOUT);
	}
	end_held_up(hive, graph);
}

/* A fiber that is cancelled while it waits leaves out the rest in the same way. */
TEST(a_cancelled_fiber_leaves_out_the_rest)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	struct hive_graph *graph = held_up(hive);
	struct hive_fiber *fiber;
	int result = 0;

	CHECK_OK(hive_spawn(hive, run_in_fiber, graph, NULL, &fiber));
	gate_pass(&entered);
	real_wait_asleep(hive, 2);
	CHECK_OK(hive_fiber_cancel(fiber));
	real_wait_asleep(hive, 2); /* it waits again, for the one that has begun */
	gate_open(&leave);
	CHECK_OK(hive_fiber_join(fiber, real_patience(), &result));
	CHECK_ERR(result, -ECANCELED);
	end_held_up(hive, graph);
}

static ATOMIC(uint32_t) told;

static void tell(void *arg, int result)
{
	(void)arg;
	CHECK(result == 0 || result == -ECANCELED);
	add_seq(&told, 1u);
}

/* The end of the hive comes at any moment of the run: it is told once all the same. */
TEST(a_stop_races_with_a_run)
{
	uint64_t seed = 3;

	for (int round = 0; round < 100 / test_slowness() + 10; round++) {
		struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 1 });
		struct hive_graph *graph = random_graph(hive, &seed);
		enum hive_stop_mode mode = round % 2 ? HIVE_NOW : HIVE_DRAIN;

		store_relaxed(&told, 0u);
		store_relaxed(&called, 0u);
		run_number = 1;
		CHECK_OK(hive_graph_start(graph, tell, NULL));
		while (load_relaxed(&called) < (uint32_t)round % 10)
			sched_yield();
		real_end(hive, mode);
		CHECK_EQ(load_seq(&told), 1);
		if (mode == HIVE_DRAIN)
			CHECK_EQ(load_relaxed(&called), NODES);
		CHECK_OK(hive_graph_destroy(graph));
	}
}
