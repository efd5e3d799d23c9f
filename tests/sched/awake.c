/* SPDX-License-Identifier: MIT */
/* Sleeping and waking with real threads: no post is slept through, no task strands another. */
#include <sched.h>
#include <semaphore.h>
#include <time.h>

#include "support/fake.h"
#include "support/real.h"
#include "test.h"

/* A core that waits on a semaphore, and lets the test do something at the last moment before it does. */
struct bed {
	struct hive_core core;
	sem_t sem;
};

static struct hive *bed_hive;
static int bed_turns, bed_sleeps;
static hive_fn *at_bedside; /* called once, between "look again" and the wait */

static int bed_open(void *arg, struct hive_core **ret_core)
{
	struct bed *bed = calloc(1, sizeof *bed);

	bed->core.ops = arg;
	CHECK_OK(sem_init(&bed->sem, 0, 0));
	*ret_core = &bed->core;
	return 0;
}

static void bed_close(struct hive_core *core)
{
	sem_destroy(&((struct bed *)(void *)core)->sem);
	free(core);
}

/* announced exactly when the turn may block (a poster may have claimed the announcement by now). */
static int bed_turn(struct hive_core *core, int64_t timeout_ns)
{
	struct bed *bed = (struct bed *)(void *)core;
	struct hive_stats stats;
	struct timespec until;
	hive_fn *now_or_never = at_bedside;

	CHECK_OK(hive_stats_read(bed_hive, &stats));
	CHECK_EQ(hive__current()->announced, timeout_ns != 0);
	CHECK(stats.sleeping <= (timeout_ns != 0));
	bed_turns++;
	if (timeout_ns == 0)
		return 0;
	bed_sleeps++;
	at_bedside = NULL;
	if (now_or_never)
		now_or_never(NULL);
	if (timeout_ns > HIVE_S(3600))
		timeout_ns = HIVE_S(3600);
	clock_gettime(CLOCK_REALTIME, &until);
	timeout_ns += until.tv_nsec;
	until.tv_sec += timeout_ns / HIVE_S(1);
	until.tv_nsec = timeout_ns % HIVE_S(1);
	sem_timedwait(&bed->sem, &until);
	return 0;
}

static void bed_wake(struct hive_core *core)
{
	sem_post(&((struct bed *)(void *)core)->sem);
}

static int bed_add(struct hive_core *core, struct hive_source *source)
{
	(void)core, (void)source;
	return -ENOTSUP;
}

static void bed_remove(struct hive_core *core, struct hive_source *source)
{
	(void)core, (void)source;
}

static struct hive_core_ops bed_ops = {
	.name = "bed",
	.kinds = 0,
	.open = bed_open,
	.close = bed_close,
	.turn = bed_turn,
	.wake = bed_wake,
	.add = bed_add,
	.modify = bed_add,
	.remove = bed_remove,
};

static struct gate done;

static void create_with_bed(void)
{
	struct hive_worker_options o = { .core = &bed_ops, .core_arg = &bed_ops, .spin_ns = HIVE_OFF };

	gate_init(&done);
	bed_turns = bed_sleeps = 0;
	at_bedside = NULL;
	bed_hive = real_create((struct hive_options){ .io_workers = 1, .io = &o });
}

/* with posts of all kinds in between, the core checks each of its turns. */
TEST(sleep_is_announced_for_exactly_the_turns_that_may_block)
{
	create_with_bed();
	CHECK_OK(hive_start(bed_hive));
	for (int i = 0; i < 100; i++) {
		CHECK_OK(hive_post(bed_hive, gate_open_task, &done));
		CHECK_OK(hive_post_to(bed_hive, HIVE_WORKER_MAIN, gate_open_task, &done));
		CHECK_OK(hive_post_after(bed_hive, HIVE_US(i), gate_open_task, &done, NULL));
		for (int k = 0; k < 3; k++)
			gate_pass(&done);
	}
	real_end(bed_hive, HIVE_DRAIN);
	CHECK(bed_sleeps > 0 && bed_turns > bed_sleeps);
	gate_destroy(&done);
}

static struct gate parking, posted;

static void let_others_post(void *arg)
{
	(void)arg;
	gate_open(&parking);
	gate_pass(&posted);
}

/* after the last look and before the block. The wake waits in the core for the turn. */
TEST(a_post_after_the_last_look_is_not_slept_through)
{
	for (int door = 0; door < 3; door++) {
		gate_init(&parking);
		gate_init(&posted);
		create_with_bed();
		at_bedside = let_others_post;
		CHECK_OK(hive_start(bed_hive));
		gate_pass(&parking);
		if (door == 0)
			CHECK_OK(hive_post(bed_hive, gate_open_task, &done));
		if (door == 1)
			CHECK_OK(hive_post_to(bed_hive, HIVE_WORKER_MAIN, gate_open_task, &done));
		if (door == 2)
			CHECK_OK(hive_post_after(bed_hive, 0, gate_open_task, &done, NULL));
		gate_open(&posted);
		gate_pass(&done);
		real_end(bed_hive, HIVE_DRAIN);
		gate_destroy(&parking);
		gate_destroy(&posted);
		gate_destroy(&done);
	}
}

static int parks;

static void first_park_lets_others_post(void *arg)
{
	if (parks++ == 0)
		let_others_post(arg);
}

/* after the decision to sleep and before the announcement, on IO and compute workers. */
TEST(a_post_after_the_decision_to_sleep_is_not_slept_through)
{
	for (int door = 0; door < 4; door++) {
		struct hive_worker_options o = { .on_park = first_park_lets_others_post };
		struct hive *hive = real_create((struct hive_options){ .io_workers = 1 });
		uint32_t id;

		gate_init(&parking);
		gate_init(&posted);
		gate_init(&done);
		parks = 0;
		o.kind = door == 3 ? HIVE_WORKER_COMPUTE : HIVE_WORKER_IO;
		CHECK_OK(hive_attach(hive, &o, &id));
		CHECK_OK(hive_start(hive));
		gate_pass(&parking);
		if (door == 0)
			CHECK_OK(hive_post(hive, gate_open_task, &done));
		if (door == 1)
			CHECK_OK(hive_post_to(hive, id, gate_open_task, &done));
		if (door == 2)
			CHECK_OK(hive_post_after(hive, 0, gate_open_task, &done, NULL));
		if (door == 3)
			CHECK_OK(hive_post_compute(hive, gate_open_task, &done));
		gate_open(&posted);
		gate_pass(&done);
		real_end(hive, HIVE_DRAIN);
		gate_destroy(&parking);
		gate_destroy(&posted);
		gate_destroy(&done);
	}
}

static void park_with_a_timer(void *arg)
{
	(void)arg;
	if (parks++ == 0)
		CHECK_OK(hive_post_self_after(HIVE_US(1), gate_open_task, &done, NULL));
}

static void park_with_a_private_task(void *arg)
{
	(void)arg;
	if (parks++ == 0)
		CHECK_OK(hive_post_self(gate_open_task, &done));
}

static void park_with_a_post(void *arg)
{
	(void)arg;
	if (parks++ == 0)
		CHECK_OK(hive_post(hive_current(), gate_open_task, &done));
}

static void park_with_a_local_task(void *arg)
{
	(void)arg;
	if (parks++ == 0)
		CHECK_OK(hive_post_local(gate_open_task, &done));
}

/* the park hook may post, and what it posts counts for the wait that follows, timers included. */
TEST(what_the_park_hook_posts_is_not_slept_through)
{
	static hive_fn *const hooks[] = { park_with_a_private_task, park_with_a_post, park_with_a_local_task,
		                          park_with_a_timer };

	for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
		struct hive_worker_options o = { .on_park = hooks[i] };
		struct hive *hive = real_create((struct hive_options){ .io_workers = 1, .io = &o });

		parks = 0;
		gate_init(&done);
		CHECK_OK(hive_start(hive));
		gate_pass(&done);
		real_end(hive, HIVE_DRAIN);
		gate_destroy(&done);
	}
}

struct hurdle {
	struct gate entered, leave;
	int armed;
};

static void stumble(void *arg)
{
	struct hurdle *h = arg;

	if (!__atomic_exchange_n(&h->armed, 0, __ATOMIC_SEQ_CST))
		return;
	gate_open(&h->entered);
	gate_pass(&h->leave);
}

/* hooks are user code too. One who lingers in the hook after his sleep must not count as searching: the other
 * sleeper does the work.                                                                                                 */
TEST(a_long_unpark_hook_does_not_keep_others_asleep)
{
	struct hurdle h = { .armed = 0 };
	struct hive_worker_options o = { .on_unpark = stumble, .hook_arg = &h };
	struct hive *hive = real_create((struct hive_options){ .io_workers = 2, .io = &o });

	gate_init(&h.entered);
	gate_init(&h.leave);
	gate_init(&done);
	CHECK_OK(hive_start(hive));
	real_wait_asleep(hive, 2);
	__atomic_store_n(&h.armed, 1, __ATOMIC_SEQ_CST);
	CHECK_OK(hive_post(hive, gate_open_task, &done));
	gate_pass(&h.entered);
	CHECK_OK(hive_post(hive, gate_open_task, &done));
	gate_pass(&done);
	gate_pass(&done);
	gate_open(&h.leave);
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&h.entered);
	gate_destroy(&h.leave);
	gate_destroy(&done);
}

static void awake_in_callback(struct hive_source *source, uint32_t events)
{
	struct hive_stats stats;
	char byte;

	(void)events;
	CHECK_EQ(read((int)source->handle, &byte, 1), 1);
	CHECK_OK(hive_stats_read(hive_current(), &stats));
	CHECK_EQ(stats.sleeping, 0);
	CHECK_EQ(stats.searching, 0);
	gate_open(&done);
}

static void start_source(void *arg)
{
	struct hive_source *source = arg;

	hive_source_init(source, HIVE_SOURCE_FD, source->handle, HIVE_EVENT_IN, awake_in_callback, NULL);
	CHECK_OK(hive_source_start(source));
}

/* a descriptor ended the sleep: when its callback runs, the worker is up in the eyes of the others. */
TEST(a_worker_is_up_before_the_callback_that_ended_its_sleep)
{
	static const char *const cores[] = { "epoll", "poll" };

	for (int i = 0; i < 2; i++) {
		struct hive_source source = { 0 };
		struct hive_worker_options o = { .on_start = start_source, .hook_arg = &source, .spin_ns = HIVE_OFF };
		struct hive *hive;
		int ends[2];

		CHECK_OK(pipe(ends));
		source.handle = ends[0];
		gate_init(&done);
		CHECK_OK(hive_core_find(cores[i], &o.core));
		hive = real_start((struct hive_options){ .io_workers = 1, .io = &o });
		for (int k = 0; k < 20; k++) {
			real_wait_asleep(hive, 1);
			CHECK_EQ(write(ends[1], "x", 1), 1);
			gate_pass(&done);
		}
		CHECK_EQ(real_end(hive, HIVE_DRAIN).open_sources, 1);
		close(ends[0]);
		close(ends[1]);
		gate_destroy(&done);
	}
}

/* The ways in which a task can come to lie behind one that blocks. */
static struct block block;

static void post_local_then_block(void *arg)
{
	CHECK_OK(hive_post_local(gate_open_task, arg));
	block_task(&block);
}

static void queue_behind(struct hive *hive, int way)
{
	struct hive_task two[2] = { { block_task, &block }, { gate_open_task, &done } };

	switch (way) {
	case 0: /* one batch out of the pool */
		CHECK_OK(hive_post_many(hive, two, 2));
		break;
	case 1: /* two posts, the second while the first one's worker wakes up */
		CHECK_OK(hive_post(hive, block_task, &block));
		CHECK_OK(hive_post(hive, gate_open_task, &done));
		break;
	case 2: /* woken for a private task, while a post relies on it */
		CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, block_task, &block));
		CHECK_OK(hive_post(hive, gate_open_task, &done));
		break;
	case 3: /* the local queue of the one that blocks */
		CHECK_OK(hive_post(hive, post_local_then_block, &done));
		break;
	case 4: /* woken for a timer */
		CHECK_OK(hive_post_after(hive, 0, block_task, &block, NULL));
		CHECK_OK(hive_post(hive, gate_open_task, &done));
		break;
	case 5:
		CHECK_OK(hive_post_compute(hive, block_task, &block));
		CHECK_OK(hive_post_compute(hive, gate_open_task, &done));
		break;
	case 6:
		CHECK_OK(hive_post_compute_many(hive, two, 2));
		break;
	case 7: /* while it blocks */
		CHECK_OK(hive_post(hive, block_task, &block));
		gate_pass(&block.entered);
		gate_open(&block.entered);
		CHECK_OK(hive_post(hive, gate_open_task, &done));
		break;
	}
}

/* one worker is stuck in a task; what lies behind that is done by the other. Asleep or awake at first. */
TEST(a_long_task_never_strands_the_one_behind_it)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2, .compute_workers = 2 });

	gate_init(&done);
	for (int way = 0; way < 8; way++) {
		for (int i = 0; i < 40 / test_slowness(); i++) {
			block_init(&block);
			if (i % 2)
				real_wait_asleep(hive, 4);
			queue_behind(hive, way);
			gate_pass(&block.entered);
			gate_pass(&done);
			gate_open(&block.leave);
			real_wait_asleep(hive, 4);
			block_destroy(&block);
		}
	}
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&done);
}

enum { CROWD = 70 };
static int present;
static struct gate everybody;

static void wait_for_everybody(void *arg)
{
	int crowd = *(int *)arg;

	if (__atomic_add_fetch(&present, 1, __ATOMIC_SEQ_CST) == crowd)
		for (int i = 0; i < crowd; i++)
			gate_open(&everybody);
	gate_pass(&everybody);
}

/* seventy sleepers, more than one word of the idle set holds, one batch, one wake: the tasks wait for each other,
 * so each worker must come. Half of them were attached while the hive ran.                                                  */
TEST(one_batch_brings_every_sleeper_of_a_large_hive_into_play)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = CROWD / 2 });
	struct hive_task tasks[CROWD];
	int crowd = CROWD;

	gate_init(&everybody);
	for (int i = 0; i < CROWD - CROWD / 2; i++)
		CHECK_OK(hive_attach(hive, NULL, NULL));
	for (int i = 0; i < CROWD; i++)
		tasks[i] = (struct hive_task){ wait_for_everybody, &crowd };
	for (int round = 0; round < 3; round++) {
		present = 0;
		real_wait_asleep(hive, CROWD);
		CHECK_OK(hive_post_many(hive, tasks, CROWD));
		WAIT_UNTIL(__atomic_load_n(&present, __ATOMIC_SEQ_CST) == CROWD);
	}
	CHECK_EQ(real_end(hive, HIVE_DRAIN).ran, 3 * CROWD);
	gate_destroy(&everybody);
}

/* the same for compute workers. */
TEST(one_batch_brings_every_compute_worker_into_play)
{
	enum { COMPUTE = 6 };
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1, .compute_workers = COMPUTE });
	struct hive_task tasks[COMPUTE];
	int crowd = COMPUTE;

	gate_init(&everybody);
	for (int i = 0; i < COMPUTE; i++)
		tasks[i] = (struct hive_task){ wait_for_everybody, &crowd };
	for (int round = 0; round < 20; round++) {
		present = 0;
		real_wait_asleep(hive, COMPUTE + 1);
		CHECK_OK(hive_post_compute_many(hive, tasks, COMPUTE));
		WAIT_UNTIL(__atomic_load_n(&present, __ATOMIC_SEQ_CST) == COMPUTE);
	}
	real_end(hive, HIVE_DRAIN);
	gate_destroy(&everybody);
}
