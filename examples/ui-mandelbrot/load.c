/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "load.h"

enum { TIMERS = 1000, POSTS = 100 };

static struct hive *busy_hive;
static struct hive_timer timers[TIMERS];
static atomic_bool ended;
static _Atomic(uint64_t) fired, ran, blocked;
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
	atomic_fetch_add(&fired, 1);
}

static void add(void *arg)
{
	(void)arg;
	atomic_fetch_add(&ran, 1);
}

/* On a grid of milliseconds, so that it does not matter how late it wakes. */
static void *post_often(void *arg)
{
	struct timespec next;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (!atomic_load(&ended)) {
		for (int i = 0; i < POSTS; i++)
			if (hive_post(busy_hive, add, NULL) < 0)
				return NULL;
		next.tv_nsec += 1000000;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return NULL;
}

static void block(void *arg)
{
	struct timespec five = { 5, 0 };

	(void)arg;
	atomic_fetch_add(&blocked, 1);
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
	if (r == 0 && has(letters, 'd')) /* IO workers come first: the window's, and its company */
		r = hive_workers(hive, ids, 2) < 2 ? -ESRCH : hive_post_to(hive, ids[1], block, NULL);
	return r;
}

void load_stop(void)
{
	atomic_store(&ended, true);
	if (posting)
		pthread_join(poster, NULL);
	posting = false; /* timers are silent in a hive that stops */
}

struct load_figures load_read(void)
{
	return (struct load_figures){ atomic_load(&fired), atomic_load(&ran), atomic_load(&blocked) };
}

bool load_came(const char *letters)
{
	struct load_figures f = load_read();

	return (f.timers > 0 || !has(letters, 'b')) && (f.posts > 0 || !has(letters, 'c')) &&
	       (f.blocked > 0 || !has(letters, 'd'));
}
