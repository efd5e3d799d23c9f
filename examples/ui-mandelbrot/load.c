/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "load.h"

enum { TIMERS = 1000, POSTS = 100 };

static struct hive *busy_hive;
static struct hive_timer timers[TIMERS];
static atomic_bool ended;
static _Atomic(uint64_t) sum;
static pthread_t poster;
static bool posting;

static bool has(const char *letters, char letter)
{
	return letters && strchr(letters, letter);
}

int32_t load_compute_workers(const char *letters)
{
	return has(letters, 'a') ? 4 * hive_cpus() : HIVE_AUTO;
}

static void on_timer(struct hive_timer *timer)
{
	(void)timer;
	atomic_fetch_add(&sum, 1);
}

static void add(void *arg)
{
	(void)arg;
	atomic_fetch_add(&sum, 1);
}

static void *post_often(void *arg)
{
	struct timespec pause = { 0, 1000000 };

	(void)arg;
	while (!atomic_load(&ended)) {
		for (int i = 0; i < POSTS; i++)
			if (hive_post(busy_hive, add, NULL) < 0)
				return NULL;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void block(void *arg)
{
	struct timespec five = { 5, 0 };

	(void)arg;
	nanosleep(&five, NULL);
}

int load_start(struct hive *hive, const char *letters)
{
	uint32_t ids[2];
	int r = 0;

	busy_hive = hive;
	for (int i = 0; i < TIMERS && has(letters, 'b') && r == 0; i++) {
		hive_timer_init(&timers[i], on_timer, NULL);
		r = hive_timer_start(&timers[i], HIVE_US(100) * (i + 1), HIVE_MS(100));
	}
	if (r == 0 && has(letters, 'c')) {
		r = -pthread_create(&poster, NULL, post_often, NULL);
		posting = r == 0;
	}
	if (r == 0 && has(letters, 'd') && hive_workers(hive, ids, 2) == 2)
		r = hive_post_to(hive, ids[1], block, NULL);
	return r;
}

void load_stop(void)
{
	atomic_store(&ended, true);
	if (posting)
		pthread_join(poster, NULL);
	posting = false; /* timers are silent in a hive that stops */
}
