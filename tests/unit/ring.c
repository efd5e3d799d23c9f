/* SPDX-License-Identifier: MIT */
/* Rings of four messages of 24 bytes; numbers wrap after six. */
#define RING_START (UINT64_MAX / 2 - 5)
#include "queue/ring.h"

#include "unit.h"

enum { ROOM = 4, STRIDE = 24 };

static alignas(64) unsigned char slots[ROOM * STRIDE];
static struct spsc spsc;
static struct mpsc mpsc;

static void write_number(void *at, uint64_t number)
{
	memcpy(at, &number, sizeof number);
}

static uint64_t read_number(const void *at)
{
	uint64_t number;

	memcpy(&number, at, sizeof number);
	return number;
}

/* ---- one puts, one takes ---- */

static bool spsc_put(uint64_t number)
{
	unsigned char *at = spsc_room(&spsc);

	if (!at)
		return false;
	write_number(at, number);
	spsc_wrote(&spsc);
	CHECK(spsc_show(&spsc));
	return true;
}

static uint64_t spsc_get(void)
{
	unsigned char *at = spsc_front(&spsc);
	uint64_t number = at ? read_number(at) : UINT64_MAX;

	if (at)
		spsc_pop(&spsc);
	return number;
}

TEST(spsc_first_in_first_out_across_the_wrap)
{
	spsc_init(&spsc, slots, ROOM, STRIDE);
	for (uint64_t i = 0; i < 40; i++) {
		CHECK_EQ(spsc_get(), UINT64_MAX);
		CHECK(spsc_put(2 * i) && spsc_put(2 * i + 1));
		CHECK_EQ(spsc_length(&spsc), 2);
		CHECK_EQ(spsc_get(), 2 * i);
		CHECK_EQ(spsc_get(), 2 * i + 1);
	}
}

TEST(spsc_full_refuses_at_once_and_empty_too)
{
	spsc_init(&spsc, slots, ROOM, STRIDE);
	for (uint64_t i = 0; i < ROOM; i++)
		CHECK(spsc_put(i));
	CHECK(!spsc_put(9));
	CHECK_EQ(spsc_length(&spsc), ROOM);
	CHECK_EQ(spsc_get(), 0);
	CHECK(spsc_put(4));
	CHECK(!spsc_put(9));
	for (uint64_t i = 1; i <= ROOM; i++)
		CHECK_EQ(spsc_get(), i);
	CHECK_EQ(spsc_get(), UINT64_MAX);
}

TEST(spsc_what_is_written_is_shown_together)
{
	spsc_init(&spsc, slots, ROOM, STRIDE);
	for (uint64_t i = 0; i < 3; i++) {
		write_number(spsc_room(&spsc), i);
		spsc_wrote(&spsc);
		CHECK_EQ(spsc_get(), UINT64_MAX);
		CHECK_EQ(spsc_length(&spsc), 0);
	}
	CHECK(spsc_show(&spsc));
	CHECK(!spsc_show(&spsc));
	CHECK_EQ(spsc_length(&spsc), 3);
	for (uint64_t i = 0; i < 3; i++)
		CHECK_EQ(spsc_get(), i);
}

TEST(spsc_a_ring_of_one)
{
	spsc_init(&spsc, slots, 1, STRIDE);
	for (uint64_t i = 0; i < 20; i++) {
		CHECK(spsc_put(i));
		CHECK(!spsc_put(99));
		CHECK_EQ(spsc_get(), i);
	}
}

TEST(spsc_positions_stand_on_lines_of_their_own)
{
	CHECK_EQ(offsetof(struct spsc, tail) % CACHE_LINE, 0);
	CHECK_EQ(offsetof(struct spsc, head) % CACHE_LINE, 0);
	CHECK(offsetof(struct spsc, head) - offsetof(struct spsc, tail) >= CACHE_LINE);
	CHECK_EQ(offsetof(struct mpsc, tail) % CACHE_LINE, 0);
	CHECK(offsetof(struct mpsc, head) - offsetof(struct mpsc, tail) >= CACHE_LINE);
}

static void pass_along(int index, void *arg)
{
	uint64_t count = *(uint64_t *)arg;

	for (uint64_t i = 0; i < count; breathe())
		if (index == 0)
			i += spsc_put(i);
		else if (spsc_length(&spsc) > 0) {
			CHECK_EQ(spsc_get(), i);
			i++;
		}
}

TEST(spsc_between_two_threads_nothing_is_lost_and_the_order_is_kept)
{
	uint64_t count = (uint64_t)rounds(50000);

	spsc_init(&spsc, slots, ROOM, STRIDE);
	crew_run(2, pass_along, &count);
	CHECK_EQ(spsc_length(&spsc), 0);
}

/* ---- many put ---- */

static void mpsc_fresh(uint64_t capacity)
{
	memset(slots, 0xaa, sizeof slots);
	mpsc_init(&mpsc, slots, capacity, STRIDE);
	mpsc_open(&mpsc);
}

static int mpsc_put(uint64_t number, uint64_t room)
{
	struct mpsc_slot *slot;
	uint64_t at;
	int r = mpsc_reserve(&mpsc, room, &at);

	if (r < 0)
		return r;
	while ((slot = mpsc_reserved(&mpsc, at)) == NULL)
		breathe();
	write_number(slot + 1, number);
	mpsc_show(slot, at);
	return 0;
}

static uint64_t mpsc_get_alone(void)
{
	uint64_t at, number;
	struct mpsc_slot *slot = mpsc_front(&mpsc, &at);

	if (!slot)
		return UINT64_MAX;
	number = read_number(slot + 1);
	mpsc_pop(&mpsc, slot, at);
	return number;
}

static uint64_t mpsc_get(uint64_t end)
{
	uint64_t at, number;
	struct mpsc_slot *slot = mpsc_claim(&mpsc, end, &at);

	if (!slot)
		return UINT64_MAX;
	number = read_number(slot + 1);
	mpsc_free(&mpsc, slot, at);
	return number;
}

TEST(mpsc_first_in_first_out_across_the_wrap)
{
	mpsc_fresh(ROOM);
	for (uint64_t i = 0; i < 40; i++) {
		CHECK_EQ(mpsc_get_alone(), UINT64_MAX);
		CHECK_OK(mpsc_put(2 * i, ROOM));
		CHECK_OK(mpsc_put(2 * i + 1, ROOM));
		CHECK_EQ(mpsc_length(&mpsc), 2);
		CHECK_EQ(mpsc_get_alone(), 2 * i);
		CHECK_EQ(mpsc_get(MPSC_NOWHERE), 2 * i + 1);
	}
}

TEST(mpsc_admits_exactly_as_many_as_it_is_told)
{
	for (uint64_t room = 1; room <= ROOM; room++) {
		mpsc_fresh(ROOM);
		for (uint64_t round = 0; round < 10; round++) {
			for (uint64_t i = 0; i < room; i++)
				CHECK_OK(mpsc_put(i, room));
			CHECK_ERR(mpsc_put(9, room), -ENOBUFS);
			CHECK_EQ(mpsc_get_alone(), 0);
			CHECK_OK(mpsc_put(room, room));
			CHECK_ERR(mpsc_put(9, room), -ENOBUFS);
			for (uint64_t i = 1; i <= room; i++)
				CHECK_EQ(mpsc_get_alone(), i);
		}
	}
}

TEST(mpsc_closed_takes_nothing_in_and_gives_out_what_it_has)
{
	mpsc_fresh(ROOM);
	for (int round = 0; round < 10; round++) {
		uint64_t first = mpsc_next(&mpsc);

		CHECK_OK(mpsc_put(7, ROOM));
		CHECK_EQ(mpsc_close(&mpsc), MPSC_NUMBER(first + 1));
		CHECK_ERR(mpsc_put(8, ROOM), -ESHUTDOWN);
		CHECK_EQ(mpsc_length(&mpsc), 1);
		CHECK_EQ(mpsc_get(MPSC_NOWHERE), 7);
		CHECK_EQ(mpsc_length(&mpsc), 0);
		mpsc_open(&mpsc);
	}
}

TEST(mpsc_takers_stop_where_they_are_told_to)
{
	mpsc_fresh(ROOM);
	for (int round = 0; round < 10; round++) {
		uint64_t end;

		CHECK_OK(mpsc_put(1, ROOM));
		CHECK_OK(mpsc_put(2, ROOM));
		end = mpsc_next(&mpsc);
		CHECK_OK(mpsc_put(3, ROOM));
		CHECK_EQ(mpsc_get(end), 1);
		CHECK_EQ(mpsc_get(end), 2);
		CHECK_EQ(mpsc_get(end), UINT64_MAX);
		CHECK_EQ(mpsc_get(MPSC_NOWHERE), 3);
		CHECK_OK(mpsc_put(4, ROOM));
		CHECK_EQ(mpsc_get(end), UINT64_MAX); /* already past it */
		CHECK_EQ(mpsc_get_alone(), 4);
	}
}

TEST(mpsc_a_put_under_way_has_a_length_and_cannot_be_taken)
{
	struct mpsc_slot *slot;
	uint64_t at;

	mpsc_fresh(2);
	CHECK_OK(mpsc_reserve(&mpsc, 2, &at));
	CHECK_OK(mpsc_put(5, 2));
	CHECK_EQ(mpsc_length(&mpsc), 2);
	CHECK_EQ(mpsc_get(MPSC_NOWHERE), UINT64_MAX);
	slot = mpsc_reserved(&mpsc, at);
	write_number(slot + 1, 4);
	mpsc_show(slot, at);
	CHECK_EQ(mpsc_get(MPSC_NOWHERE), 4);
	CHECK_EQ(mpsc_get(MPSC_NOWHERE), 5);
}

TEST(mpsc_a_slot_that_is_still_read_is_not_written)
{
	struct mpsc_slot *slow;
	uint64_t slow_at, at;

	mpsc_fresh(2);
	CHECK_OK(mpsc_put(1, 2));
	slow = mpsc_claim(&mpsc, MPSC_NOWHERE, &slow_at);
	CHECK(slow != NULL);
	CHECK_OK(mpsc_put(2, 2));
	CHECK_OK(mpsc_reserve(&mpsc, 2, &at));   /* counted out, so there is room ... */
	CHECK(mpsc_reserved(&mpsc, at) == NULL); /* ... and he has to wait */
	CHECK_EQ(read_number(slow + 1), 1);
	mpsc_free(&mpsc, slow, slow_at);
	CHECK(mpsc_reserved(&mpsc, at) == slow);
}

struct crowd {
	struct tally tally;
	uint32_t count; /* of each who puts */
	uint64_t room;
	_Atomic(uint32_t) alone;
};

/* The first two put, the others take; or one of them alone. */
static void push_and_shove(int index, void *arg)
{
	struct crowd *c = arg;

	if (index < 2) {
		for (uint32_t i = 0; i < c->count;) {
			int r = mpsc_put(2 * i + (uint32_t)index, c->room);

			CHECK(r == 0 || r == -ENOBUFS);
			i += r == 0;
			breathe();
		}
		return;
	}
	while (!tally_complete(&c->tally)) {
		uint64_t number = c->alone ? mpsc_get_alone() : mpsc_get(MPSC_NOWHERE);

		if (number != UINT64_MAX)
			tally_mark(&c->tally, number);
		breathe();
	}
}

static void crowd(int takers, uint64_t capacity, uint64_t room)
{
	/* With room for one, each message is a change of threads: on a machine with many programs that takes long. */
	struct crowd c = { .count = (uint32_t)rounds(room == 1 ? 1000 : 10000), .room = room, .alone = takers == 1 };

	mpsc_fresh(capacity);
	if (c.alone)
		mpsc_set_alone(&mpsc);
	tally_init(&c.tally, 2 * c.count);
	crew_run(2 + takers, push_and_shove, &c);
	tally_end(&c.tally);
	CHECK_EQ(mpsc_length(&mpsc), 0);
}

TEST(mpsc_two_put_and_one_takes)
{
	crowd(1, ROOM, ROOM);
	crowd(1, 2, 1);
}

TEST(mpsc_two_put_and_two_take)
{
	crowd(2, ROOM, 3);
	crowd(2, 2, 1);
}
