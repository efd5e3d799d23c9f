/* SPDX-License-Identifier: MIT */
/* A cache that forgets what was not used for the longest time. Even to look something up changes it, so many fibers on all workers would need a
 * lock; here a strand owns it. Requests are tasks of the strand: one at a time, in order, and no worker ever waits for another.    */
#include <rophive/hive.h>
#include <stdio.h>
#include <string.h>

enum { ROOM = 16, KEYS = 24, FIBERS = 8, REQUESTS = 500 };

struct cache { /* plain memory: only tasks of the strand touch it */
	struct hive_strand *strand;
	struct entry {
		uint32_t key;
		uint64_t value, used;
	} entries[ROOM];
	int count;
	uint64_t clock, hits, misses;
};

struct request {
	struct cache *cache;
	uint32_t key;
	uint64_t value;
	struct hive_semaphore done;
};

static uint64_t look_far_away(uint32_t key) /* what the cache is there for */
{
	uint64_t value = key;

	for (int i = 0; i < 2000; i++)
		value = value * 6364136223846793005u + 1;
	return value;
}

static struct entry *find(struct cache *c, uint32_t key)
{
	for (int i = 0; i < c->count; i++)
		if (c->entries[i].key == key)
			return &c->entries[i];
	return NULL;
}

static struct entry *oldest(struct cache *c)
{
	struct entry *e = &c->entries[0];

	if (c->count < ROOM)
		return &c->entries[c->count++];
	for (int i = 1; i < ROOM; i++)
		if (c->entries[i].used < e->used)
			e = &c->entries[i];
	return e;
}

static void serve(void *arg) /* a task of the strand */
{
	struct request *r = arg;
	struct cache *c = r->cache;
	struct entry *e = find(c, r->key);

	if (e) {
		c->hits++;
	} else {
		c->misses++;
		e = oldest(c);
		e->key = r->key;
		e->value = look_far_away(r->key);
	}
	e->used = ++c->clock;
	r->value = e->value;
	hive_semaphore_release(&r->done, 1); /* the fiber goes on, and r with it */
}

static int ask(void *cache)
{
	uint32_t seed = (uint32_t)(uintptr_t)hive_fiber_current();

	for (int i = 0; i < REQUESTS; i++) {
		struct request r = { .cache = cache };
		int e;

		seed = seed * 1664525 + 1013904223;
		r.key = (seed >> 16) % KEYS;
		hive_semaphore_init(&r.done, 0);
		e = hive_strand_post(r.cache->strand, serve, &r);
		if (e == 0)
			e = hive_semaphore_acquire(&r.done, 1, HIVE_FOREVER);
		if (e < 0)
			return e;
		if (r.value != look_far_away(r.key))
			return -EIO;
	}
	return 0;
}

int main(void)
{
	struct hive_options options = { .io_workers = 2, .compute_workers = HIVE_NONE };
	struct hive_fiber *fibers[FIBERS];
	struct cache cache;
	struct hive *hive;
	int result, bad = 0;

	memset(&cache, 0, sizeof cache);
	if (hive_runtime_start(&options, &hive) < 0 || hive_strand_create(hive, NULL, &cache.strand) < 0)
		return 1;
	for (int i = 0; i < FIBERS; i++)
		if (hive_spawn(hive, ask, &cache, NULL, &fibers[i]) < 0)
			return 1;
	for (int i = 0; i < FIBERS; i++)
		bad |= hive_fiber_join(fibers[i], HIVE_FOREVER, &result) < 0 || result < 0;
	bad |= hive_strand_join(cache.strand, HIVE_FOREVER) < 0; /* from here on it is ours again */
	printf("%llu hits, %llu misses, %d entries\n", (unsigned long long)cache.hits, (unsigned long long)cache.misses,
	       cache.count);
	bad |= cache.hits + cache.misses != FIBERS * REQUESTS || cache.hits < cache.misses / 2;
	bad |= hive_strand_destroy(cache.strand) < 0;
	return hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || bad;
}
