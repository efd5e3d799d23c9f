/* SPDX-License-Identifier: MIT */
/* A bus on a hive: on IO workers, on compute workers, with fibers that wait, in a simulation. */
#include "bus.h"

#include <rophive/sim.h>

static struct hive *hive_begin(void)
{
	struct hive *hive;

	CHECK_OK(hive_runtime_start(&(struct hive_options){ .io_workers = 2, .compute_workers = 2 }, &hive));
	return hive;
}

struct place {
	struct notes notes;
	struct hive *hive;
	enum hive_worker_kind kind;
};

static int note_place(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct place *p = context;
	struct hive_worker_stats stats;

	CHECK(hive_current() == p->hive);
	CHECK_OK(hive_worker_stats_read(p->hive, hive_worker_current(), &stats));
	CHECK_EQ(stats.kind, p->kind);
	return notes_small(&p->notes, header, payload);
}

static void run_on(enum hive_kind kind, enum hive_bus_route route)
{
	struct place p = { .hive = hive_begin(), .kind = kind == HIVE_COMPUTE ? HIVE_WORKER_COMPUTE : HIVE_WORKER_IO };
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", note_place, &p };
	struct hive_bus_options options = { .types = &type,
		                            .type_count = 1,
		                            .hive = p.hive,
		                            .kind = kind,
		                            .workers = 3,
		                            .route = route,
		                            .depth = 64,
		                            .worker_depth = 64 };

	CHECK_OK(hive_bus_create(&options, &p.notes.bus));
	CHECK_OK(hive_bus_start(p.notes.bus));
	for (uint64_t i = 1; i <= 3000; i++)
		CHECK_OK(small_submit_key(p.notes.bus, &(struct small){ i }, HIVE_BUS_HIGH, i, HIVE_FOREVER));
	CHECK_OK(hive_bus_pause(p.notes.bus, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_EQ(p.notes.sum, 3000 * 3001 / 2);
	CHECK_OK(small_submit(p.notes.bus, &(struct small){ 1 }, HIVE_BUS_HIGH, HIVE_NOWAIT));
	CHECK_OK(hive_bus_resume(p.notes.bus));
	bus_end(p.notes.bus);
	CHECK_EQ(p.notes.count, 3001);
	CHECK_OK(hive_runtime_stop(p.hive, HIVE_DRAIN, HIVE_FOREVER));
}

TEST(handlers_run_on_io_workers)
{
	run_on(HIVE_MICRO, HIVE_BUS_ROUND_ROBIN);
	run_on(HIVE_MICRO, HIVE_BUS_BY_KEY);
}

TEST(handlers_run_on_compute_workers)
{
	run_on(HIVE_COMPUTE, HIVE_BUS_ROUND_ROBIN);
	run_on(HIVE_COMPUTE, HIVE_BUS_BY_KEY);
}

TEST(without_compute_workers_the_start_is_refused)
{
	struct notes n = { 0 };
	struct hive *hive;
	struct hive_bus *bus;

	CHECK_OK(hive_create(&(struct hive_options){ .io_workers = 1 }, &hive));
	bus = bus_make((struct hive_bus_options){ .hive = hive, .kind = HIVE_COMPUTE }, &n);
	CHECK_ERR(hive_bus_start(bus), -ENOTSUP);
	CHECK_OK(hive_bus_destroy(bus));
	CHECK_OK(hive_destroy(hive));
}

static int fiber_submits(void *arg)
{
	for (uint64_t i = 1; i <= 500; i++)
		CHECK_OK(small_submit(arg, &(struct small){ i }, HIVE_BUS_HIGH, HIVE_FOREVER));
	return 0;
}

/* One IO worker, which has to handle what its fibers wait for: they park, or it would never end. */
TEST(fibers_park_while_they_wait_for_room)
{
	struct hive *hive;
	struct notes n = { 0 };
	struct hive_bus *bus;
	int result;

	CHECK_OK(hive_runtime_start(&(struct hive_options){ .io_workers = 1, .compute_workers = 1 }, &hive));
	bus = bus_begin((struct hive_bus_options){ .hive = hive, .depth = 4 }, &n);
	CHECK_OK(hive_block_on(hive, fiber_submits, bus, HIVE_FOREVER, &result));
	CHECK_EQ(result, 0);
	bus_end(bus);
	CHECK_EQ(n.sum, 500 * 501 / 2);
	CHECK_OK(hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

struct on_worker {
	struct notes *n;
	_Atomic(int) done;
};

static void task_would_wait(void *arg)
{
	struct on_worker *o = arg;
	struct hive_bus *bus = o->n->bus;
	int r;

	CHECK_ERR(hive_bus_pause(bus, HIVE_DRAIN, HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_bus_stop(bus, HIVE_DRAIN, HIVE_FOREVER), -EDEADLK);
	while ((r = put_small(bus, 1, HIVE_BUS_HIGH)) == 0)
		;
	CHECK_EQ(r, -ENOBUFS);
	CHECK_ERR(small_submit(bus, &(struct small){ 1 }, HIVE_BUS_HIGH, HIVE_FOREVER), -EDEADLK);
	atomic_store(&o->done, 1);
}

TEST(on_an_io_worker_outside_a_fiber_nobody_waits)
{
	struct hive *hive;
	struct notes n = { 0 };
	struct on_worker o = { .n = &n };

	CHECK_OK(hive_runtime_start(&(struct hive_options){ .io_workers = 1, .compute_workers = 1 }, &hive));
	bus_begin((struct hive_bus_options){ .hive = hive, .depth = 4 }, &n);
	CHECK_OK(hive_bus_pause(n.bus, HIVE_NOW, HIVE_FOREVER));
	CHECK_OK(hive_post(hive, task_would_wait, &o));
	while (!o.done)
		sched_yield();
	bus_end(n.bus);
	CHECK_OK(hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

/* A hive that stops waits for its buses, which go on meanwhile. */
TEST(the_hive_ends_after_the_bus)
{
	for (int mode = HIVE_DRAIN; mode <= HIVE_NOW; mode++)
		for (int kind = HIVE_MICRO; kind <= HIVE_COMPUTE; kind++) {
			struct hive *hive = hive_begin();
			struct notes n = { 0 };
			struct hive_bus *bus = bus_begin(
				(struct hive_bus_options){ .hive = hive, .kind = (enum hive_kind)kind, .workers = 2 },
				&n);

			for (uint64_t i = 0; i < 100; i++)
				CHECK_OK(put_small(bus, 1, HIVE_BUS_HIGH));
			CHECK_OK(hive_stop(hive, (enum hive_stop_mode)mode, HIVE_FOREVER));
			CHECK_ERR(hive_join(hive, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
			for (uint64_t i = 0; i < 100; i++)
				CHECK_OK(put_small(bus, 1, HIVE_BUS_HIGH));
			bus_end(bus);
			CHECK_EQ(n.count, 200);
			CHECK_OK(hive_join(hive, HIVE_FOREVER));
			CHECK_OK(hive_destroy(hive));
		}
}

/* Its group ends when the message was handled. */
struct answer {
	struct hive_bus *bus;
	struct hive_group group;
	_Atomic(int) waited;
};

static int answer_with_the_group(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct answer *a = context;

	(void)header, (void)payload;
	return hive_group_leave(&a->group, 0);
}

static void stop_and_wait_for_an_answer(void *arg)
{
	struct answer *a = arg;

	hive_group_init(&a->group, hive_current(), HIVE_COMPUTE);
	CHECK_OK(hive_group_enter(&a->group));
	CHECK_OK(put_small(a->bus, 1, HIVE_BUS_HIGH));
	CHECK_OK(hive_stop(hive_current(), HIVE_NOW, HIVE_FOREVER));
	CHECK_OK(hive_group_wait(&a->group, HIVE_FOREVER));
	atomic_store(&a->waited, 1);
}

/* The bus waits for the only compute worker, whose task waits for the bus: a worker that empties the pool because nothing may begin any more
 * lets those go on that have begun.                                                                                       */
TEST(a_compute_task_that_waits_while_the_hive_stops_runs_its_buses)
{
	struct answer a = { .bus = NULL };
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", answer_with_the_group, &a };
	struct hive_bus_options options = { .types = &type, .type_count = 1, .kind = HIVE_COMPUTE };
	struct hive *hive;

	CHECK_OK(hive_runtime_start(&(struct hive_options){ .io_workers = 1, .compute_workers = 1 }, &hive));
	options.hive = hive;
	CHECK_OK(hive_bus_create(&options, &a.bus));
	CHECK_OK(hive_bus_start(a.bus));
	CHECK_OK(hive_post_compute(hive, stop_and_wait_for_an_answer, &a));
	while (!atomic_load(&a.waited))
		sched_yield();
	bus_end(a.bus);
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_OK(hive_destroy(hive));
}

TEST(a_stopped_hive_takes_no_bus)
{
	struct hive *hive = hive_begin();
	struct notes n = { 0 };
	struct hive_bus *bus = bus_make((struct hive_bus_options){ .hive = hive }, &n);

	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_ERR(hive_bus_start(bus), -ESHUTDOWN);
	CHECK_OK(hive_bus_destroy(bus));
	CHECK_OK(hive_destroy(hive));
}

/* Without threads, on a clock that goes on when it is told to: the times in the headers are those of the hive. */
static int64_t header_time;

static int note_time(void *context, const struct hive_bus_header *header, const void *payload)
{
	(void)payload;
	header_time = header->time_ns;
	++*(int *)context;
	return 0;
}

TEST(in_a_simulation_the_bus_has_the_time_of_its_hive)
{
	int count = 0;
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", note_time, &count };
	struct hive_sim *sim;
	struct hive *hive;
	struct hive_bus *bus;
	struct hive_bus_options options = { .types = &type, .type_count = 1 };

	CHECK_OK(hive_sim_create(&(struct hive_sim_options){ .seed = 1 }, &sim));
	CHECK_OK(hive_create(&(struct hive_options){ .io_workers = 1, .host = hive_sim_host(sim) }, &hive));
	CHECK_OK(hive_start(hive));
	options.hive = hive;
	CHECK_OK(hive_bus_create(&options, &bus));
	CHECK_OK(hive_bus_start(bus));
	for (int i = 1; i <= 5; i++) {
		hive_sim_advance(sim, HIVE_S(1000));
		CHECK_OK(put_small(bus, 1, HIVE_BUS_HIGH));
		CHECK_EQ(count, i - 1);
		hive_sim_advance(sim, 0);
		CHECK_EQ(count, i);
		CHECK(header_time >= i * HIVE_S(1000));
	}
	CHECK_OK(hive_bus_stop(bus, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_bus_destroy(bus));
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_OK(hive_destroy(hive));
	CHECK_OK(hive_sim_destroy(sim));
}
