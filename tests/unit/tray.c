/* SPDX-License-Identifier: MIT */
/* A tray of four; its indices wrap after six tasks. */
#define TRAY_START (UINT64_MAX / 2 - 5)
#include <pthread.h>

#include "queue/tray.h"

#include "unit.h"

enum { ROOM = 4 };

static struct tray_cell cells[ROOM];
static struct tray tray;

static uint64_t take(void)
{
	struct hive_task task;

	return tray_take(&tray, &task) ? number_of(task) : UINT64_MAX;
}

TEST(first_in_first_out_across_the_wrap)
{
	tray_init(&tray, cells, ROOM);
	for (uint64_t i = 0; i < 40; i++) {
		CHECK_OK(tray_put(&tray, task_of(2 * i)));
		CHECK_OK(tray_put(&tray, task_of(2 * i + 1)));
		CHECK_EQ(tray_length(&tray), 2);
		CHECK_EQ(take(), 2 * i);
		CHECK_EQ(take(), 2 * i + 1);
		CHECK_EQ(take(), UINT64_MAX);
		CHECK_EQ(tray_length(&tray), 0);
	}
	CHECK_EQ(tray_accepted(&tray), 80);
}

TEST(a_full_tray_refuses_and_goes_on_when_there_is_room)
{
	tray_init(&tray, cells, ROOM);
	for (uint64_t round = 0; round < 10; round++) {
		for (uint64_t i = 0; i < ROOM; i++)
			CHECK_OK(tray_put(&tray, task_of(i)));
		CHECK_ERR(tray_put(&tray, task_of(9)), -ENOSPC);
		CHECK_EQ(tray_length(&tray), ROOM);
		CHECK_EQ(take(), 0);
		CHECK_OK(tray_put(&tray, task_of(7)));
		for (uint64_t i = 1; i < ROOM; i++)
			CHECK_EQ(take(), i);
		CHECK_EQ(take(), 7);
	}
}

TEST(a_closed_tray_takes_nothing_in_and_gives_out_what_it_has)
{
	tray_init(&tray, cells, ROOM);
	for (int round = 0; round < 10; round++) {
		CHECK_OK(tray_put(&tray, task_of(1)));
		tray_close(&tray);
		CHECK_ERR(tray_put(&tray, task_of(2)), -ESHUTDOWN);
		CHECK_EQ(tray_length(&tray), 1);
		CHECK_EQ(take(), 1);
		CHECK_EQ(take(), UINT64_MAX);
		tray_open(&tray);
	}
}

/* ---- with threads ---- */

enum { THREADS = 4, EACH = 20000 };

static ATOMIC(uint64_t) taken;
static ATOMIC(uint32_t) seen[THREADS * EACH / 2];

static void *put_all(void *arg)
{
	uint64_t first = (uint64_t)(uintptr_t)arg * EACH;

	for (uint64_t i = 0; i < EACH; i++)
		while (tray_put(&tray, task_of(first + i)) < 0)
			sched_yield();
	return NULL;
}

static void *take_all(void *arg)
{
	(void)arg;
	while (load_relaxed(&taken) < THREADS / 2 * EACH) {
		uint64_t number = take();

		if (number == UINT64_MAX) {
			sched_yield();
			continue;
		}
		add_relaxed(&seen[number], 1u);
		add_relaxed(&taken, (uint64_t)1);
	}
	return NULL;
}

TEST(each_task_is_taken_once_whoever_puts_and_takes)
{
	pthread_t threads[THREADS];

	tray_init(&tray, cells, ROOM);
	store_relaxed(&taken, (uint64_t)0);
	for (int i = 0; i < THREADS; i++)
		CHECK_OK(pthread_create(&threads[i], NULL, i % 2 ? take_all : put_all, (void *)(uintptr_t)(i / 2)));
	for (int i = 0; i < THREADS; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
	for (int i = 0; i < THREADS / 2 * EACH; i++)
		CHECK_EQ(load_relaxed(&seen[i]), 1);
	CHECK_EQ(tray_length(&tray), 0);
}
