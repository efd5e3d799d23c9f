/* SPDX-License-Identifier: MIT */
/* The plain queues with a lock, which take the place of the lock-free ones in builds with HIVE_LOCKED_QUEUES. They
 * are the reference: here each does what an array would do. This file must not see the scheduler, which was built
 * with others.                                                                                                     */
#define HIVE_LOCKED_QUEUES 1
#include "base/memory.h"
#include "base/rng.h"
#include "queue/deque.h"
#include "queue/inbox.h"
#include "queue/mesh.h"
#include "queue/runq.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { CAPACITY = 16 };

static void nothing(void *arg)
{
	(void)arg;
}

static struct hive_task task_number(uint64_t number)
{
	return (struct hive_task){ nothing, (void *)(uintptr_t)number };
}

/* newest first at one end, oldest first at the other, full refuses, empty gives nothing. */
TEST(the_locked_deque_does_what_an_array_would_do)
{
	static struct slot slots[CAPACITY];
	static struct deque d;
	uint64_t model[CAPACITY], first = 0, count = 0, next = 1, rng = 3;

	deque_init(&d, slots, CAPACITY, UINT64_MAX - 5); /* the indices wrap */
	for (int i = 0; i < 100000; i++) {
		struct hive_task task = { 0 };

		switch (rng_below(rng_next(&rng), 3)) {
		case 0:
			CHECK_EQ(deque_push(&d, task_number(next)), count < CAPACITY);
			if (count < CAPACITY)
				model[(first + count++) % CAPACITY] = next;
			next++;
			break;
		case 1:
			CHECK_EQ(deque_pop(&d, &task), count > 0);
			if (count > 0)
				CHECK_EQ(task.arg, model[(first + --count) % CAPACITY]);
			break;
		default:
			CHECK_EQ(deque_steal(&d, &task), count > 0);
			if (count > 0) {
				CHECK_EQ(task.arg, model[first++ % CAPACITY]);
				count--;
			}
			break;
		}
		CHECK_EQ(deque_size(&d), count);
		CHECK_EQ(deque_room(&d), CAPACITY - count);
	}
}

/* Oldest first, half of it stolen, the last of that for now; the other ring has the rest in order. */
TEST(the_locked_ring_does_what_an_array_would_do)
{
	static struct slot slots[2][CAPACITY];
	static struct runq mine, other;
	uint64_t first = 1, next = 1, rng = 5;

	runq_init(&mine, slots[0], CAPACITY, UINT32_MAX - 5); /* the indices wrap */
	runq_init(&other, slots[1], CAPACITY, 0);
	for (int i = 0; i < 100000; i++) {
		struct hive_task task = { 0 }, tasks[CAPACITY];
		uint64_t count = next - first, half = (count + 1) / 2, n = 0;

		switch (rng_below(rng_next(&rng), 6)) {
		case 0:
		case 1:
		case 2:
			CHECK_EQ(runq_push(&mine, task_number(next)), count < CAPACITY);
			next += count < CAPACITY;
			break;
		case 3:
			CHECK_EQ(runq_pop(&mine, &task), count > 0);
			n = count > 0;
			CHECK(n == 0 || task.arg == task_number(first).arg);
			break;
		case 4:
			n = half < 5 ? half : 5;
			CHECK_EQ(runq_steal_some(&mine, tasks, 5), n);
			CHECK(n == 0 || tasks[n - 1].arg == task_number(first + n - 1).arg);
			break;
		default:
			n = half;
			CHECK_EQ(runq_steal(&mine, &other, &task), n);
			CHECK(n == 0 || task.arg == task_number(first + n - 1).arg);
			CHECK_EQ(runq_take_oldest(&other, tasks, CAPACITY), n == 0 ? 0 : n - 1);
			CHECK(n < 2 || tasks[n - 2].arg == task_number(first + n - 2).arg);
		}
		first += n;
		CHECK_EQ(runq_size(&mine), next - first);
		CHECK_EQ(runq_room(&mine), CAPACITY - (next - first));
	}
}

enum { POSTERS = 3, LETTERS = 5000 };

struct numbered {
	struct letter letter;
	int poster, number;
};

static struct inbox box;
static struct numbered *letters;
static _Atomic(int) posters_done;

static void *post_letters(void *arg)
{
	int poster = (int)(intptr_t)arg;

	for (int i = 0; i < LETTERS; i++) {
		struct numbered *n = &letters[poster * LETTERS + i];

		n->poster = poster;
		n->number = i;
		CHECK(inbox_push(&box, &n->letter));
	}
	atomic_fetch_add(&posters_done, 1);
	return NULL;
}

/* many enqueue, one drains: nothing lost, nothing doubled, each poster's letters in order. */
TEST(the_locked_inbox_loses_and_doubles_nothing)
{
	pthread_t threads[POSTERS];
	int next[POSTERS] = { 0 };
	bool last = false;

	letters = calloc((size_t)POSTERS * LETTERS, sizeof *letters);
	CHECK(letters);
	inbox_init(&box);
	atomic_store(&posters_done, 0);
	for (int i = 0; i < POSTERS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, post_letters, (void *)(intptr_t)i), 0);
	while (!last) {
		struct letter *l;

		last = atomic_load(&posters_done) == POSTERS; /* then one more look is enough */
		for (l = inbox_take(&box); l; l = l->next) {
			struct numbered *n = (struct numbered *)(void *)l; /* the letter is its first member */

			CHECK_EQ(n->number, next[n->poster]);
			next[n->poster]++;
		}
		sched_yield();
	}
	for (int i = 0; i < POSTERS; i++) {
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
		CHECK_EQ(next[i], LETTERS);
	}
	CHECK(inbox_is_empty(&box));
	free(letters);
}

/* What is inside stays, and an inbox that was opened again takes letters again. */
TEST(locked_queues_refuse_when_full_and_when_closed)
{
	static struct slot slots[CAPACITY];
	static struct deque d;
	struct letter first, late;

	deque_init(&d, slots, CAPACITY, 0);
	for (uint64_t i = 0; i < CAPACITY; i++)
		CHECK(deque_push(&d, task_number(i)));
	CHECK(!deque_push(&d, task_number(CAPACITY)));
	CHECK_EQ(deque_size(&d), CAPACITY);
	inbox_init(&box);
	CHECK(inbox_push(&box, &first));
	CHECK(inbox_close(&box) == &first);
	CHECK(!inbox_push(&box, &late));
	CHECK(inbox_is_empty(&box));
	inbox_open(&box);
	CHECK(inbox_push(&box, &late));
	CHECK(inbox_take(&box) == &late);
}

TEST(the_oldest_of_a_locked_deque_come_in_order_and_no_more_than_there_are)
{
	static struct slot slots[CAPACITY];
	static struct deque d;
	struct hive_task tasks[CAPACITY];

	deque_init(&d, slots, CAPACITY, UINT64_MAX - 2);
	CHECK_EQ(deque_take_oldest(&d, tasks, CAPACITY), 0);
	for (uint64_t i = 1; i <= 5; i++)
		CHECK(deque_push(&d, task_number(i)));
	CHECK_EQ(deque_take_oldest(&d, tasks, 3), 3);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(tasks[i].arg, i + 1);
	CHECK_EQ(deque_take_oldest(&d, tasks, CAPACITY), 2);
	CHECK_EQ(tasks[0].arg, 4);
	CHECK_EQ(tasks[1].arg, 5);
	CHECK_EQ(deque_size(&d), 0);
}

static struct deque contested;
static _Atomic(int) taken[64];
static _Atomic(bool) enough;

static void *rob(void *arg)
{
	struct hive_task task;

	(void)arg;
	while (!atomic_load(&enough))
		if (deque_steal(&contested, &task))
			atomic_fetch_add(&taken[(uintptr_t)task.arg % 64], 1);
	return NULL;
}

/* one task left, the owner pops while a thief steals: exactly one of the two has it. */
TEST(the_last_task_of_a_locked_deque_goes_to_exactly_one)
{
	static struct slot slots[CAPACITY];
	pthread_t thief;
	int rounds = 200000 / test_slowness();

	deque_init(&contested, slots, CAPACITY, 0);
	atomic_store(&enough, false);
	for (int i = 0; i < 64; i++)
		atomic_store(&taken[i], 0);
	CHECK_EQ(pthread_create(&thief, NULL, rob, NULL), 0);
	for (int i = 0; i < rounds; i++) {
		struct hive_task task;

		CHECK(deque_push(&contested, task_number((uint64_t)i)));
		if (deque_pop(&contested, &task))
			atomic_fetch_add(&taken[(uintptr_t)task.arg % 64], 1);
		CHECK_EQ(deque_size(&contested), 0);
	}
	atomic_store(&enough, true);
	CHECK_EQ(pthread_join(thief, NULL), 0);
	for (int i = 0; i < 64; i++)
		CHECK_EQ(atomic_load(&taken[i]), rounds / 64 + (i < rounds % 64));
}

enum { CELLS = 4, SENT = 20000 };

static struct mesh mesh;
static struct {
	struct mesh_lane lane;
	struct {
		struct mesh_cell cell;
		int number;
	} cells[CELLS];
} road;

static bool send_number(int number)
{
	struct mesh_cell *cell = mesh_reserve(&road.lane);

	if (!cell)
		return false;
	road.cells[((char *)cell - (char *)road.cells) / (ptrdiff_t)sizeof *road.cells].number = number;
	if (!mesh_commit(&road.lane))
		return false;
	mesh_mark(&mesh, &road.lane);
	return true;
}

static int read_number(void)
{
	struct mesh_cell *cell = mesh_take(&road.lane);
	int number = road.cells[((char *)cell - (char *)road.cells) / (ptrdiff_t)sizeof *road.cells].number;

	mesh_free(cell, CELLS);
	return number;
}

static void *send_numbers(void *arg)
{
	for (int i = 0; i < SENT;) {
		if (send_number(i))
			i++;
		else
			sched_yield();
	}
	return arg;
}

/* the lane with a lock keeps the promises of the other one. */
TEST(the_locked_lane_keeps_the_order_and_refuses_when_full_or_closed)
{
	pthread_t sender;
	int next = 0;

	mesh_init(&mesh);
	mesh_lane_init(&road.lane, &road.cells[0].cell, sizeof *road.cells, CELLS);
	CHECK_OK(mesh_join(&mesh, &road.lane));
	for (int i = 0; i < CELLS; i++)
		CHECK(send_number(i));
	CHECK(!send_number(CELLS));
	CHECK_EQ(mesh_length(&road.lane), CELLS);
	CHECK_EQ(read_number(), 0);
	mesh_fell(&road.lane);
	CHECK(!send_number(CELLS));
	mesh_return(&road.lane.returned);
	CHECK(send_number(CELLS));
	CHECK(mesh_reserve(&road.lane) == NULL);
	mesh_close(&mesh);
	CHECK(!mesh_commit(&road.lane));
	for (int i = 1; i <= CELLS; i++)
		CHECK_EQ(read_number(), i);
	CHECK(!send_number(0));
	mesh_open(&mesh);
	mesh_written(&mesh);
	CHECK_EQ(pthread_create(&sender, NULL, send_numbers, NULL), 0);
	while (next < SENT) {
		uint64_t n = mesh_written(&mesh) ? mesh_waiting(&road.lane) : 0;

		for (; n > 0; n--)
			CHECK_EQ(read_number(), next++);
		sched_yield();
	}
	CHECK_EQ(pthread_join(sender, NULL), 0);
	CHECK_EQ(mesh_waiting(&road.lane), 0);
}
