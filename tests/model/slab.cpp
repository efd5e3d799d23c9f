/* SPDX-License-Identifier: MIT */
/* The slab: any thread takes items and gives them back. */
#include "queue/slab.h"

#include "model.h"

struct cell {
	struct slab_item item;
	rl::var<int> content;
	int held;
};

template <typename T, int THREADS> struct slab_suite : rl::test_suite<T, THREADS> {
	struct slab slab;
	model_memory memory;
	struct cell cells[SLAB_FIRST], more[SLAB_FIRST * 2];

	void before()
	{
		for (cell &c : cells)
			c.held = 0;
		for (cell &c : more)
			c.held = 0;
		memory.offer(cells, sizeof cells);
		memory.offer(more, sizeof more);
		slab_init(&slab, sizeof(cell), &memory.memory);
	}

	/* Leaves `count` items free. */
	void leave(int count)
	{
		slab_reserve(&slab, SLAB_FIRST);
		for (int i = count; i < SLAB_FIRST; i++)
			slab_pop(&slab);
	}

	cell *get()
	{
		cell *c = (cell *)slab_get(&slab);

		RL_ASSERT(c && c->held == 0);
		RL_ASSERT(slab_at(&slab, c->item.number) == &c->item);
		c->held = 1;
		c->content($) = (int)rl::thread_index(); /* a race with the last holder shows a missing order */
		return c;
	}

	void put(cell *c)
	{
		RL_ASSERT(c->content($) == (int)rl::thread_index());
		c->held = 0;
		slab_put(&slab, &c->item);
	}

	int free_items()
	{
		int count = 0;

		while (slab_pop(&slab))
			count++;
		return count;
	}
};

/* One thread is about to swap in "next" while the other takes both and gives the first back. */
struct slab_head_that_went_and_came_back : slab_suite<slab_head_that_went_and_came_back, 2> {
	void before()
	{
		slab_suite::before();
		leave(3);
	}

	void thread(unsigned i)
	{
		cell *a = get();

		if (i == 1) {
			cell *b = get();

			put(a);
			a = get();
			put(b);
		}
		put(a);
	}

	void after()
	{
		RL_ASSERT(free_items() == 3);
	}
};
SCENARIO(slab_head_that_went_and_came_back, 30000, 2);

struct slab_three_threads_share_three_items : slab_suite<slab_three_threads_share_three_items, 3> {
	void before()
	{
		slab_suite::before();
		leave(3);
	}

	void thread(unsigned)
	{
		put(get());
		put(get());
	}

	void after()
	{
		RL_ASSERT(free_items() == 3);
	}
};
SCENARIO(slab_three_threads_share_three_items, 30000, 0);

/* Both find it empty; it grows once, and nobody sees an item that is not there yet. */
struct slab_two_threads_find_it_empty : slab_suite<slab_two_threads_find_it_empty, 2> {
	void thread(unsigned)
	{
		cell *a = get(), *b = get();

		put(a);
		put(b);
	}

	void after()
	{
		RL_ASSERT(free_items() == SLAB_FIRST);
	}
};
SCENARIO(slab_two_threads_find_it_empty, 4000, 1);

/* A number learnt elsewhere may be looked up while the slab grows: a hole or an item, nothing between. */
struct slab_lookup_while_it_grows : slab_suite<slab_lookup_while_it_grows, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			slab_reserve(&slab, 1);
		} else {
			struct slab_item *item = slab_at(&slab, 1);

			RL_ASSERT(item == NULL || item == &cells[1].item);
			RL_ASSERT(slab_at(&slab, SLAB_FIRST) == NULL);
		}
	}
};
SCENARIO(slab_lookup_while_it_grows, 5000, 2);
