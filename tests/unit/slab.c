/* SPDX-License-Identifier: MIT */
/* Numbered items with a tagged free list. */
#include "queue/slab.h"

#include "unit.h"

struct thing {
	struct slab_item item; /* first */
	_Atomic(int) holders;
	uint64_t content;
};

static struct unit_memory memory;
static struct slab slab;

static void start(void)
{
	unit_memory_init(&memory);
	slab_init(&slab, sizeof(struct thing), &memory.memory);
}

static void end(void)
{
	slab_destroy(&slab);
	CHECK_EQ(atomic_load(&memory.live), 0);
}

static struct thing *get(void)
{
	return (struct thing *)(void *)slab_get(&slab);
}

TEST(empty_slab_has_no_items_and_no_memory)
{
	start();
	CHECK(slab_at(&slab, 0) == NULL);
	CHECK(slab_at(&slab, UINT32_MAX) == NULL);
	CHECK(slab_pop(&slab) == NULL);
	CHECK_EQ(atomic_load(&memory.made), 0);
	end();
}

TEST(number_leads_back_to_the_item)
{
	start();
	for (uint32_t i = 0; i < 1000; i++) {
		struct thing *thing = get();

		CHECK(thing);
		CHECK(slab_at(&slab, thing->item.number) == &thing->item);
	}
	end();
}

TEST(numbers_are_dense_and_each_is_given_once)
{
	struct tally tally;

	start();
	tally_init(&tally, SLAB_FIRST * 15); /* four segments, filled to the last item */
	for (uint32_t i = 0; i < tally.count; i++)
		tally_mark(&tally, get()->item.number);
	tally_end(&tally);
	CHECK_EQ(load_relaxed(&slab.count), SLAB_FIRST * 15);
	CHECK_EQ(atomic_load(&memory.made), 4);
	end();
}

/* Items on both sides of each boundary between segments. */
TEST(lookup_is_right_at_the_edges_of_segments)
{
	start();
	CHECK_OK(slab_reserve(&slab, SLAB_FIRST * 7));
	for (uint32_t edge = SLAB_FIRST; edge < SLAB_FIRST * 7; edge = edge * 2 + SLAB_FIRST)
		for (uint32_t number = edge - 1; number <= edge; number++) {
			CHECK(slab_at(&slab, number) != NULL);
			CHECK_EQ(slab_at(&slab, number)->number, number);
		}
	CHECK_EQ(slab_at(&slab, SLAB_FIRST * 7 - 1)->number, SLAB_FIRST * 7 - 1);
	CHECK(slab_at(&slab, SLAB_FIRST * 7) == NULL);
	end();
}

TEST(items_of_a_segment_do_not_overlap)
{
	struct thing *things[SLAB_FIRST * 3];

	start();
	for (uint64_t i = 0; i < SLAB_FIRST * 3; i++) {
		things[i] = get();
		things[i]->content = i;
	}
	for (uint64_t i = 0; i < SLAB_FIRST * 3; i++)
		CHECK_EQ(things[i]->content, i);
	end();
}

TEST(item_given_back_comes_again_with_its_content)
{
	struct thing *thing;

	start();
	thing = get();
	thing->content = 42;
	slab_put(&slab, &thing->item);
	CHECK(get() == thing);
	CHECK_EQ(thing->content, 42);
	end();
}

TEST(place_of_an_item_never_moves)
{
	struct thing *first;

	start();
	first = get();
	for (int i = 0; i < 5000; i++)
		CHECK(get());
	CHECK(slab_at(&slab, first->item.number) == &first->item);
	end();
}

TEST(chain_goes_back_in_one_move)
{
	struct thing *a, *b, *c;

	start();
	a = get(), b = get(), c = get();
	store_relaxed(&a->item.next_free, b->item.number + 1);
	store_relaxed(&b->item.next_free, c->item.number + 1);
	slab_put_chain(&slab, &a->item, &c->item);
	CHECK(get() == a);
	CHECK(get() == b);
	CHECK(get() == c);
	end();
}

TEST(every_change_of_the_free_list_changes_its_tag)
{
	uint64_t before, after;
	struct thing *thing;

	start();
	thing = get();
	before = load_relaxed(&slab.free_head);
	slab_put(&slab, &thing->item);
	CHECK(get() == thing);
	after = load_relaxed(&slab.free_head);
	CHECK_EQ((uint32_t)before, (uint32_t)after);
	CHECK(before >> 32 != after >> 32);
	end();
}

TEST(tag_may_wrap)
{
	struct thing *thing;

	start();
	CHECK_OK(slab_reserve(&slab, 1));
	store_relaxed(&slab.free_head, (uint64_t)UINT32_MAX << 32 | (uint32_t)load_relaxed(&slab.free_head));
	thing = get();
	CHECK(thing);
	CHECK_EQ(load_relaxed(&slab.free_head) >> 32, 0);
	slab_put(&slab, &thing->item);
	CHECK(get() == thing);
	end();
}

TEST(reserve_makes_later_gets_free_of_allocation)
{
	start();
	CHECK_OK(slab_reserve(&slab, 1000));
	unit_memory_fail(&memory, 1);
	for (int i = 0; i < 1000; i++)
		CHECK(get());
	CHECK_EQ(atomic_load(&memory.made), 0);
	end();
}

TEST(reserve_of_what_exists_allocates_nothing)
{
	start();
	CHECK_OK(slab_reserve(&slab, 10));
	CHECK_OK(slab_reserve(&slab, SLAB_FIRST));
	CHECK_OK(slab_reserve(&slab, 0));
	CHECK_EQ(atomic_load(&memory.made), 1);
	end();
}

TEST(without_memory_get_says_so_and_recovers)
{
	struct thing *thing;

	start();
	unit_memory_fail(&memory, 1);
	CHECK(get() == NULL);
	CHECK(get() == NULL);
	CHECK_ERR(slab_reserve(&slab, 1), -ENOMEM);
	memory.fails_from = 0;
	thing = get();
	CHECK(thing && thing->item.number == 0);
	end();
}

/* The n-th allocation fails, for each n: what was there stays usable. */
TEST(failed_growth_loses_nothing)
{
	for (long n = 1; n <= 4; n++) {
		uint32_t got = 0;

		start();
		unit_memory_fail(&memory, n);
		while (get())
			got++;
		CHECK_EQ(got, SLAB_FIRST * ((1u << (n - 1)) - 1));
		CHECK_EQ(load_relaxed(&slab.count), got);
		if (got > 0) {
			slab_put(&slab, slab_at(&slab, got - 1));
			CHECK_EQ(get()->item.number, got - 1);
		}
		end();
	}
}

TEST(reserve_that_fails_half_way_keeps_its_half)
{
	start();
	unit_memory_fail(&memory, 3);
	CHECK_ERR(slab_reserve(&slab, SLAB_FIRST * 7), -ENOMEM);
	CHECK_EQ(load_relaxed(&slab.count), SLAB_FIRST * 3);
	end();
}

/* ---- threads ---- */

struct market {
	int rounds;
	uint32_t at_once;
};

static void trade(int index, void *arg)
{
	const struct market *m = arg;
	struct thing *held[8];

	for (int i = 0; i < m->rounds; i++) {
		for (uint32_t k = 0; k < m->at_once; k++) {
			held[k] = get();
			CHECK(held[k]);
			CHECK_EQ(atomic_fetch_add(&held[k]->holders, 1), 0);
			held[k]->content = (uint64_t)index; /* plain: the sanitizer watches the hand-over */
		}
		for (uint32_t k = 0; k < m->at_once; k++) {
			CHECK_EQ(held[k]->content, index);
			CHECK_EQ(atomic_fetch_sub(&held[k]->holders, 1), 1);
			slab_put(&slab, &held[k]->item);
		}
	}
}

/* Few items, many hands: the free list goes through the same heads again and again. */
TEST(no_item_is_ever_held_twice)
{
	struct market market = { rounds(50000), 3 };

	start();
	CHECK_OK(slab_reserve(&slab, 1));
	while ((uint32_t)load_relaxed(&slab.free_head) != 0 && slab_at(&slab, 0))
		if (slab_pop(&slab)->number >= SLAB_FIRST - 14)
			break; /* keep the last few free */
	crew_run(4, trade, &market);
	end();
}

TEST(slab_that_has_reached_its_limit_grows_no_more)
{
	start();
	store_relaxed(&slab.count, (uint32_t)SLAB_ITEMS_MAX); /* as if all were made and in use */
	CHECK(!slab_get(&slab));
	CHECK_ERR(slab_reserve(&slab, (size_t)SLAB_ITEMS_MAX + 1), -ENOMEM);
	CHECK_EQ(load_relaxed(&slab.count), SLAB_ITEMS_MAX);
	CHECK_EQ(atomic_load(&memory.made), 0);
	end();
}

static void grab(int index, void *arg)
{
	struct tally *tally = arg;

	(void)index;
	for (uint32_t i = 0; i < tally->count / 4; i++)
		tally_mark(tally, get()->item.number);
}

TEST(four_threads_grow_it_together)
{
	for (int i = 0; i < 20; i++) {
		struct tally tally;

		start();
		tally_init(&tally, SLAB_FIRST * 7); /* exactly what three segments hold */
		crew_run(4, grab, &tally);
		CHECK_EQ(load_relaxed(&slab.count), SLAB_FIRST * 7);
		tally_end(&tally);
		end();
	}
}

static void look_up(int index, void *arg)
{
	_Atomic(bool) *over = arg;

	if (index == 0) {
		CHECK_OK(slab_reserve(&slab, 10000));
		atomic_store(over, true);
		return;
	}
	while (!atomic_load(over))
		for (uint32_t number = 0; number < 10000; number += 63) {
			struct slab_item *item = slab_at(&slab, number);

			CHECK(!item || item->number == number);
		}
}

TEST(lookup_during_growth_finds_the_item_or_nothing)
{
	_Atomic(bool) over = false;

	start();
	crew_run(3, look_up, &over);
	end();
}
