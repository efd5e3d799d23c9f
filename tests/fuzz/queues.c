/* SPDX-License-Identifier: MIT */
/* Pool with lanes and chunks, inbox, slab: each against plain arrays. The first byte says which. */
#include "base/thread.h"
#include "queue/inbox.h"
#include "queue/pool.h"
#include "queue/slab.h"

#include "fuzz.h"

enum { POSTERS = 12, WAITING = 4096, BATCH = 64 };

/* ---- the pool: first in, first out for each poster ---- */

struct poster {
	uint64_t thread; /* its number as the system knows it; a dead one is followed by another with a new number */
	uint64_t given, taken;
	bool lives;
};

static struct poster posters[POSTERS];
static struct pool pool;
static struct counted_memory memory;
static uint64_t waiting, accepted, threads;
static bool closed;

/* In place of the system: threads die when the input says so. */
bool hive__thread_lives(uint64_t number)
{
	for (int i = 0; i < POSTERS; i++)
		if (posters[i].thread == number)
			return posters[i].lives;
	return false;
}

static struct hive_task task_by(uint32_t poster, uint64_t number)
{
	return task_of((uint64_t)poster << 32 | number);
}

static void check_taken(struct hive_task task)
{
	struct poster *p = &posters[number_of(task) >> 32];

	EXPECT_EQ(number_of(task) & UINT32_MAX, p->taken);
	p->taken++;
	EXPECT(p->taken <= p->given);
	waiting--;
}

static void give(uint32_t poster, size_t n, bool fresh)
{
	struct poster *p = &posters[poster];
	struct hive_task tasks[BATCH];
	long before = memory.failed;
	int r;

	if (waiting + n > WAITING)
		return;
	for (size_t i = 0; i < n; i++)
		tasks[i] = task_by(poster, p->given + i);
	r = n == 1 ? pool_give(&pool, p->thread, tasks[0], fresh) : pool_give_many(&pool, p->thread, tasks, n, fresh);
	if (excused(&memory, before, r))
		return;
	EXPECT_EQ(r, closed && fresh ? -ESHUTDOWN : 0);
	if (r < 0)
		return;
	p->given += n;
	waiting += n;
	accepted += fresh ? n : 0;
}

static void take(uint32_t start, size_t max)
{
	struct hive_task tasks[BATCH];
	size_t n = pool_take_many(&pool, start, tasks, max);

	EXPECT(n <= max);
	EXPECT_EQ(n > 0, waiting > 0);
	for (size_t i = 0; i < n; i++)
		check_taken(tasks[i]);
}

/* The thread ends; what it posted stays, and its lane may go to somebody else. A new thread takes its part here. */
static void die(uint32_t poster)
{
	if (posters[poster].given != posters[poster].taken)
		return; /* its tasks would have to be told from those of the next */
	posters[poster].lives = false;
	posters[poster].thread = ++threads;
	posters[poster].lives = true;
}

static void pool_operation(struct input *in)
{
	uint32_t what = input_below(in, 16), poster = input_below(in, POSTERS);

	switch (what) {
	case 8:
		give(poster, 1 + input_below(in, BATCH), true);
		break;
	case 9:
		give(poster, 1 + input_below(in, BATCH), false);
		break;
	case 10:
	case 11:
		take(input_byte(in), 1 + input_below(in, BATCH));
		break;
	case 12:
		die(poster);
		break;
	case 13:
		memory.fail_in = input_below(in, 4);
		break;
	case 14:
		if (poster != 0)
			break;
		closed = true;
		pool_close(&pool);
		break;
	case 15: /* enough posts without a lane to have the dead ones looked for */
		for (int i = 0; i < 300; i++) {
			give(poster, 1, true);
			take(poster, 1);
		}
		break;
	default:
		give(poster, 1, true);
	}
	EXPECT_EQ(pool_length(&pool), waiting);
	EXPECT_EQ(pool_is_empty(&pool), waiting == 0);
	EXPECT_EQ(pool_accepted(&pool), accepted);
	EXPECT(!pool_looks_empty(&pool) || waiting == 0);
}

static void fuzz_pool(struct input *in)
{
	counted_memory_init(&memory);
	waiting = accepted = threads = 0;
	closed = false;
	for (uint32_t i = 0; i < POSTERS; i++)
		posters[i] = (struct poster){ .thread = ++threads, .lives = true };
	pool_init(&pool, &memory.memory, input_below(in, 8));
	if (input_below(in, 4) == 3)
		EXPECT_EQ(pool_reserve(&pool, input_byte(in)), 0);
	while (input_more(in))
		pool_operation(in);
	memory.fail_in = 0;
	if (input_below(in, 2))
		while (waiting > 0)
			take(0, 7);
	pool_destroy(&pool);
	EXPECT_EQ(memory.live, 0);
}

/* ---- the inbox: posting order, and nothing after the close ---- */

enum { LETTERS = 64 };

static void fuzz_inbox(struct input *in)
{
	struct letter letters[LETTERS], *got;
	int queued[LETTERS], count = 0, next = 0;
	bool is_closed = false;
	struct inbox box;

	inbox_init(&box);
	while (input_more(in)) {
		uint32_t what = input_below(in, 8);

		if (what < 5) {
			EXPECT_EQ(inbox_push(&box, &letters[next % LETTERS]), !is_closed);
			if (!is_closed)
				queued[count++] = next++ % LETTERS;
		} else if (what == 6 && is_closed) {
			inbox_open(&box);
			is_closed = false;
		}
		EXPECT_EQ(inbox_is_empty(&box), count == 0);
		if (what != 7 && (is_closed || (what != 5 && count < LETTERS)))
			continue;
		got = what == 7 ? inbox_close(&box) : inbox_take(&box);
		is_closed = what == 7;
		for (int i = 0; i < count; i++, got = got->next)
			EXPECT(got == &letters[queued[i]]);
		EXPECT(!got);
		count = 0;
	}
}

/* ---- the slab: an item has one user at a time, and its number finds it ---- */

enum { ITEMS = 500 };

struct item {
	struct slab_item item;
	uint64_t user; /* 0: free */
};

static struct item *held[ITEMS];

static void put_chain(struct slab *slab, int *count, int n)
{
	struct item *first = held[*count - 1], *last = first;

	for (int i = 1; i < n; i++) {
		struct item *next = held[*count - 1 - i];

		last->user = 0;
		store_relaxed(&last->item.next_free, next->item.number + 1);
		last = next;
	}
	last->user = 0;
	*count -= n;
	slab_put_chain(slab, &first->item, &last->item);
}

static void get(struct slab *slab, int *count, uint64_t user)
{
	long before = memory.failed;
	struct item *item = (struct item *)(void *)slab_get(slab);

	EXPECT(item || memory.failed > before);
	if (!item)
		return;
	EXPECT_EQ(item->user, 0);
	EXPECT(slab_at(slab, item->item.number) == &item->item);
	item->user = user;
	held[(*count)++] = item;
}

static void fuzz_slab(struct input *in)
{
	uint64_t user = 0;
	struct slab slab;
	int count = 0;

	counted_memory_init(&memory);
	slab_init(&slab, sizeof(struct item), &memory.memory);
	while (input_more(in)) {
		uint32_t what = input_below(in, 8), n = 1 + input_byte(in);

		if (what == 0)
			memory.fail_in = n % 4;
		else if (what == 1 && memory.fail_in == 0)
			EXPECT_EQ(slab_reserve(&slab, n), 0);
		else if (what == 2)
			EXPECT_EQ(slab_at(&slab, n * n * n) != NULL, n * n * n < load_relaxed(&slab.count));
		else if (what < 5 && count > 0)
			put_chain(&slab, &count, (int)n % count + 1);
		else
			for (; n > 0 && count < ITEMS; n--)
				get(&slab, &count, ++user);
		for (int i = 0; i < count; i++)
			EXPECT(held[i]->user > 0);
	}
	slab_destroy(&slab);
	EXPECT_EQ(memory.live, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = input_of(data, size);

	switch (input_below(&in, 4)) {
	case 0:
		fuzz_inbox(&in);
		break;
	case 1:
		fuzz_slab(&in);
		break;
	default:
		fuzz_pool(&in);
	}
	return 0;
}
