/* SPDX-License-Identifier: MIT */
/* The wheel by itself: how often it wakes its worker, what it costs, what it never needs. F-60, F-61. */
#include "queue/wheel.h"

#include "base/clock.h"
#include "base/rng.h"
#include "unit.h"

static struct wheel wheel;
static uint64_t sequence;

static void start(void)
{
	memset(&wheel, 0xa5, sizeof wheel);
	wheel_init(&wheel);
	sequence = 0;
}

static void insert(struct hive_timer *timer, int64_t due_ns)
{
	timer->due_ns = due_ns;
	timer->sequence = sequence++;
	wheel_insert(&wheel, timer);
}

/* As a worker does: sleeps until the next due time, and fires what is due. How often it woke up for nothing. */
static int sleep_until_empty(void)
{
	int for_nothing = 0;

	while (wheel.count > 0) {
		int64_t now = wheel_next_due(&wheel);
		struct hive_timer *first = wheel_first_due(&wheel, now);

		for_nothing += !first;
		CHECK(for_nothing < 100000);
		CHECK(!first || first->due_ns == now);
		if (first)
			wheel_remove(&wheel, first);
	}
	return for_nothing;
}

TEST(size_of_wheel_and_timer_is_as_stated)
{
	CHECK(sizeof(struct wheel) <= 41 * 1024);
	CHECK(sizeof(void *) != 8 || sizeof(struct hive_timer) == 80); /* what it is without a wheel */
}

/* The place of each due time, by the definition: the lowest level on which it is at most 63 slots away. */
TEST(the_level_is_the_lowest_one_that_reaches)
{
	uint64_t seed = 3;

	for (int i = 0; i < rounds(300000); i++) {
		int64_t cursor = (int64_t)(rng_next(&seed) >> (1 + rng_below(rng_next(&seed), 63)));
		int64_t delay = (int64_t)(rng_next(&seed) >> (1 + rng_below(rng_next(&seed), 63)));
		int64_t due = time_add(cursor, delay);
		uint32_t level = 0;

		while ((due >> (3 * level)) - (cursor >> (3 * level)) > 63)
			level++;
		CHECK(level < WHEEL_LEVELS);
		CHECK_EQ(wheel_level(cursor, due), level);
	}
	CHECK_EQ(wheel_level(0, HIVE_FOREVER), WHEEL_LEVELS - 1);
	CHECK_EQ(wheel_level(HIVE_FOREVER, HIVE_FOREVER), 0);
}

/* A lone timer, however far, is known exactly: its worker wakes once. */
TEST(a_lone_timer_wakes_its_worker_once)
{
	for (int bit = 0; bit < 63; bit++) {
		struct hive_timer timer;

		start();
		insert(&timer, (INT64_C(1) << bit) + bit);
		CHECK_EQ(sleep_until_empty(), 0);
	}
}

/* Without removals there is no wake-up for nothing, however many there are. */
TEST(timers_that_stay_never_wake_their_worker_for_nothing)
{
	static struct hive_timer many[5000];
	uint64_t seed = 11;

	for (int shift = 1; shift < 60; shift += 3) {
		start();
		for (int i = 0; i < 5000; i++)
			insert(&many[i], (int64_t)(rng_next(&seed) >> shift));
		CHECK(wheel_valid(&wheel));
		CHECK_EQ(sleep_until_empty(), 0);
	}
}

/* Two beside each other, the earlier one is removed: the other one wakes its worker for nothing once, for each bit of distance. */
TEST(a_removed_neighbour_costs_one_wake_up_for_nothing)
{
	for (int bit = 0; bit < 62; bit++) {
		struct hive_timer first, second, third;
		const int64_t far = INT64_C(1) << 62;

		start();
		insert(&first, far);
		insert(&second, far + (INT64_C(1) << bit));
		insert(&third, far + (INT64_C(1) << bit) + 1);
		wheel_remove(&wheel, &first);
		CHECK(wheel_next_due(&wheel) <= second.due_ns);
		CHECK(sleep_until_empty() <= 1);
	}
}

/* The worst case: each time before the worker sleeps, the earliest timer of the slot is removed. A wake-up for nothing a level. */
TEST(the_wake_ups_for_nothing_of_a_far_timer_are_bounded_by_the_levels)
{
	struct hive_timer far, twin, decoy, *first = NULL;
	int for_nothing = 0;

	start();
	insert(&far, INT64_MAX - 1);
	insert(&twin, INT64_MAX - 1);
	while (!first) {
		uint32_t level = wheel_lowest_bit(wheel.used_levels);
		int64_t begin = far.due_ns & ~((INT64_C(1) << (3 * level)) - 1), now;

		insert(&decoy, begin > wheel.cursor_ns ? begin : wheel.cursor_ns);
		wheel_remove(&wheel, &decoy);
		now = wheel_next_due(&wheel);
		first = wheel_first_due(&wheel, now);
		for_nothing += !first;
		CHECK(for_nothing < WHEEL_LEVELS);
	}
	CHECK(first == &far && for_nothing >= 5);
}

/* What is dealt out falls by a level at least, so nobody is touched more often than there are levels. */
TEST(no_timer_is_dealt_out_more_often_than_there_are_levels)
{
	enum { MANY = 3000 };
	static struct hive_timer many[MANY];
	uint64_t seed = 17;

	start();
	for (int i = 0; i < MANY; i++)
		insert(&many[i], (int64_t)(rng_next(&seed) >> (1 + rng_below(rng_next(&seed), 40))));
	for (int dealt = 0; wheel.count > 0;) {
		struct wheel_slot *slot = wheel_earliest(&wheel);
		uint32_t level = (uint32_t)(slot - wheel.slots) / WHEEL_SLOTS;

		if (wheel_is_ready(&wheel, slot)) {
			wheel_remove(&wheel, slot->first);
			continue;
		}
		CHECK(++dealt < MANY * WHEEL_LEVELS);
		wheel.cursor_ns = slot->least_ns;
		wheel_deal_out(&wheel, slot);
		CHECK(level == 0 || !slot->first); /* none of them stays, and none comes back */
		CHECK(wheel_valid(&wheel));
	}
}

/* A crowd of time-outs of 60 s, started anew when they fire: never many in one slot, so never many to deal out at once. */
TEST(a_crowd_of_time_outs_stays_spread)
{
	enum { MANY = 6000 };
	static struct hive_timer many[MANY];
	int64_t now = HIVE_S(1000);
	int most = 0;

	start();
	for (int i = 0; i < MANY; i++)
		insert(&many[i], now + HIVE_MS(10) * i);
	for (int i = 0; i < MANY * 3; i++, now += HIVE_MS(10)) {
		struct hive_timer *timer = wheel_first_due(&wheel, now);

		CHECK(timer && timer->due_ns == now);
		wheel_remove(&wheel, timer);
		insert(timer, now + HIVE_S(60));
	}
	CHECK(wheel_valid(&wheel));
	for (struct wheel_slot *slot = wheel.slots; slot < wheel.slots + WHEEL_LEVELS * WHEEL_SLOTS; slot++) {
		int inside = 0;

		for (struct hive_timer *t = slot->first; t; t = wheel_after(t))
			inside++;
		most = inside > most ? inside : most;
	}
	CHECK(most > 0 && most <= MANY / 8);
}

/* Of a crowd a few go down with each look, so that none are left to be dealt out at once when the slot's time has come. */
TEST(a_crowd_is_dealt_out_ahead_of_its_time)
{
	enum { MANY = 20000 };
	static struct hive_timer many[MANY];
	int64_t now = HIVE_S(1000);
	uint32_t most = 0;

	start();
	wheel_begin(&wheel, now);
	CHECK_EQ(wheel.cursor_ns, now);
	for (int i = 0; i < MANY; i++)
		insert(&many[i], now + HIVE_MS(200) + HIVE_US(10) * (i * 7919 % MANY));
	for (; wheel.count > 0; now += HIVE_US(50)) {
		struct wheel_slot *slot = wheel_earliest(&wheel);
		struct hive_timer *due;
		uint32_t inside = 0;

		for (struct hive_timer *t = slot->least_ns <= now ? slot->first : NULL; t; t = wheel_after(t))
			inside++;
		most = inside > most ? inside : most;
		while ((due = wheel_first_due(&wheel, now)) != NULL)
			wheel_remove(&wheel, due);
	}
	CHECK(most <= WHEEL_CROWD);
}

TEST(every_timer_is_visited_once_and_may_go_meanwhile)
{
	enum { MANY = 1000 };
	static struct hive_timer many[MANY];
	static int visits[MANY];
	struct hive_timer *next;
	uint64_t seed = 23;

	start();
	for (int i = 0; i < MANY; i++)
		insert(&many[i], HIVE_S(10) + (int64_t)(rng_next(&seed) >> (30 + rng_below(rng_next(&seed), 30))));
	CHECK(!wheel_first_due(&wheel, HIVE_S(10) - 1));
	for (int i = 0; i < 2; i++) {
		struct hive_timer *first = wheel_first_due(&wheel, HIVE_S(1000000));

		wheel_remove(&wheel, first);
		insert(first, 5 - i); /* late: one in order, one fresh */
		if (i == 0)
			CHECK(wheel_first_due(&wheel, HIVE_S(1)) == first);
	}
	memset(visits, 0, sizeof visits);
	for (struct hive_timer *t = wheel_each(&wheel, NULL); t; t = next) {
		next = wheel_each(&wheel, t);
		visits[t - many]++;
		wheel_remove(&wheel, t);
	}
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(visits[i], 1);
	CHECK_EQ(wheel.count, 0);
	CHECK_EQ(wheel.used_levels, 0);
}

/* Letters that took long come in any order and in numbers: they are put in order together. */
TEST(a_hundred_thousand_late_timers_are_put_in_order_together)
{
	int count = rounds(100000);
	struct hive_timer *many = malloc((size_t)count * sizeof *many), here[2], one_more;
	uint64_t seed = 29;
	int64_t last = 0;

	CHECK(many);
	start();
	insert(&here[0], HIVE_S(5));
	insert(&here[1], HIVE_S(5));
	CHECK(wheel_first_due(&wheel, HIVE_S(5)) == &here[0]); /* the cursor stands at 5 s */
	for (int i = 0; i < count; i++)
		insert(&many[i], (int64_t)rng_below(rng_next(&seed), 1000000));
	for (int i = 0; i < count; i++) {
		struct hive_timer *first = wheel_first_due(&wheel, HIVE_S(5));

		CHECK(first->due_ns >= last && first->due_ns < HIVE_S(5));
		last = first->due_ns;
		wheel_remove(&wheel, first);
		if (i == count / 2) { /* one more, before all that are left */
			insert(&one_more, last - 1);
			CHECK_EQ(wheel_next_due(&wheel), last - 1);
			CHECK(wheel_first_due(&wheel, HIVE_S(5)) == &one_more);
			CHECK(wheel_valid(&wheel));
			wheel_remove(&wheel, &one_more);
		}
	}
	CHECK(wheel_first_due(&wheel, HIVE_S(5)) == &here[0]);
	free(many);
}

TEST(validity_check_notices_disorder)
{
	struct hive_timer all[10];

	start();
	for (int i = 0; i < 10; i++)
		insert(&all[i], i * 1000);
	CHECK(wheel_valid(&wheel));
	all[3].due_ns += 100000;
	CHECK(!wheel_valid(&wheel));
	all[3].due_ns = 3000;
	wheel.count++;
	CHECK(!wheel_valid(&wheel));
	wheel.count--;
	wheel.used_levels ^= 1u << 15;
	CHECK(!wheel_valid(&wheel));
	wheel.used_levels ^= 1u << 15;
	wheel.cursor_ns = 1;
	CHECK(!wheel_valid(&wheel));
}
