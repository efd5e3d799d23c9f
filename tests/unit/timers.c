/* SPDX-License-Identifier: MIT */
/* A worker's timers in heap and wheel: the same answers from both., F-61. */
#include "sched/timers.h"

#include "base/clock.h"
#include "base/rng.h"
#include "unit.h"
#include "support/kinds.h"

static struct unit_memory memory;
static struct timers timers;
static uint64_t sequence;

static void start(void)
{
	unit_memory_init(&memory);
	timers_init(&timers, &memory.memory);
	CHECK_OK(timers_choose(&timers, !test_has_heap(), 0));
	sequence = 0;
}

static void end(void)
{
	CHECK(timers_valid(&timers));
	timers_destroy(&timers);
	CHECK_EQ(atomic_load(&memory.live), 0);
}

static void insert(struct hive_timer *timer, int64_t due_ns)
{
	timer->due_ns = due_ns;
	timer->sequence = sequence++;
	CHECK_OK(timers_insert(&timers, timer));
}

static struct hive_timer *take(int64_t now_ns)
{
	struct hive_timer *first = timers_first_due(&timers, now_ns);

	if (first)
		timers_remove(&timers, first);
	return first;
}

/* The only one inside: not before its time by a nanosecond, known exactly, and then there. */
static void check_alone(struct hive_timer *timer)
{
	CHECK_EQ(timers_next_due(&timers), timer->due_ns);
	CHECK(timer->due_ns == INT64_MIN || take(timer->due_ns - 1) == NULL);
	CHECK(take(timer->due_ns) == timer);
	CHECK_EQ(timers_count(&timers), 0);
	CHECK_EQ(timers_next_due(&timers), HIVE_FOREVER);
}

TEST(without_timers_nothing_is_due)
{
	start();
	CHECK(take(HIVE_FOREVER) == NULL);
	CHECK_EQ(timers_next_due(&timers), HIVE_FOREVER);
	CHECK_EQ(timers_count(&timers), 0);
	end();
}

TEST(timers_come_out_by_deadline_whatever_it_is)
{
	static const int64_t due[] = { 50, 10, 40, 30, 20, 0, -7, 60, INT64_MAX, INT64_MIN, INT64_MAX - 1, HIVE_S(1) };
	struct hive_timer all[12];
	int64_t last = INT64_MIN;

	start();
	for (int i = 0; i < 12; i++) {
		insert(&all[i], due[i]);
		CHECK(timers_valid(&timers));
	}
	for (int i = 0; i < 12; i++) {
		struct hive_timer *first = take(HIVE_FOREVER);

		CHECK(first && first->due_ns >= last);
		CHECK(timers_valid(&timers));
		last = first->due_ns;
	}
	end();
}

/* Equal ones inserted while the clock goes on, so that the wheel keeps them on several levels. */
TEST(equal_deadlines_keep_their_order_however_far_apart_they_were_started)
{
	static struct hive_timer equal[100], between[100];
	const int64_t due = HIVE_S(10) + 123;
	int64_t now = 0;

	start();
	for (int i = 0; i < 100; i++) {
		insert(&between[i], now + 1);
		insert(&equal[i], due);
		now += (due - now) / 8;
		CHECK(take(now) == &between[i]);
		CHECK(timers_valid(&timers));
	}
	CHECK(take(due - 1) == NULL);
	for (int i = 0; i < 100; i++)
		CHECK(take(due) == &equal[i]);
	end();
}

/* Both orders at once, with numbers that do not come in order. */
TEST(few_deadlines_and_shuffled_numbers_come_out_in_order)
{
	static struct hive_timer many[500];
	struct hive_timer *last = NULL;

	start();
	for (int i = 0; i < 500; i++) {
		many[i].due_ns = i * 7 % 5;
		many[i].sequence = (uint64_t)(i * 263 % 500);
		CHECK_OK(timers_insert(&timers, &many[i]));
	}
	for (struct hive_timer *t = take(4); t; t = take(4)) {
		CHECK(!last || last->due_ns < t->due_ns || (last->due_ns == t->due_ns && last->sequence < t->sequence));
		last = t;
	}
	CHECK_EQ(timers_count(&timers), 0);
	end();
}

/* Around each power of two, which the borders of all levels are, and from clocks that stand around one themselves. */
TEST(deadlines_around_every_power_of_two_are_exact)
{
	for (int clock_bit = 0; clock_bit < 62; clock_bit += 7)
		for (int bit = 0; bit < 63; bit++)
			for (int64_t off = -2; off <= 2; off++) {
				int64_t now = (INT64_C(1) << clock_bit) - 1, delay = (INT64_C(1) << bit) + off;
				struct hive_timer here[2], timer;

				if (delay < 0 || delay > HIVE_FOREVER - now)
					continue;
				start();
				insert(&here[0], now); /* two: the wheel's cursor comes along */
				insert(&here[1], now);
				CHECK(take(now) == &here[0] && take(now) == &here[1]);
				insert(&timer, now + delay);
				CHECK(timers_valid(&timers));
				check_alone(&timer);
				end();
			}
}

/* tokio#8334, #2473, rpc-perf#180: nothing is early or lost beyond 2^30, 2^31, 2^32 and 2^36 ms, alone or with near ones. */
TEST(far_timers_fire_at_their_time)
{
	static const int64_t far[] = { INT64_C(1) << 30,
		                       INT64_C(1) << 31,
		                       INT64_C(1) << 32,
		                       INT64_C(1) << 36,
		                       INT64_C(49) * 86400000 + 61200000,
		                       365 * INT64_C(86400000) };
	struct hive_timer near, timer;

	for (size_t i = 0; i < sizeof far / sizeof *far; i++)
		for (int64_t off = -1; off <= 1; off++) {
			int64_t due = HIVE_MS(far[i]) + off, now = 0;

			start();
			insert(&timer, due);
			insert(&near, HIVE_MS(5));
			CHECK_EQ(timers_next_due(&timers), HIVE_MS(5));
			CHECK(take(HIVE_MS(5) - 1) == NULL);
			CHECK(take(HIVE_MS(5)) == &near);
			CHECK_EQ(timers_next_due(&timers), due);
			for (int days = 0; days < 10 && now < due; days++, now += HIVE_S(86400)) { /* the clock jumps */
				CHECK(take(now < due ? now : due - 1) == NULL);
				insert(&near, now + 1);
				CHECK(take(now + 1) == &near);
			}
			check_alone(&timer);
			end();
		}
}

/* A jump of days: all that was due meanwhile, in order, and nothing else. */
TEST(a_clock_that_jumps_finds_everything_in_order)
{
	enum { MANY = 2000 };
	static struct hive_timer many[MANY];
	uint64_t seed = 5;

	start();
	for (int i = 0; i < MANY; i++)
		insert(&many[i], (int64_t)(rng_next(&seed) % (uint64_t)HIVE_S(86400 * 30)));
	for (int64_t now = HIVE_S(86400 * 3); timers_count(&timers) > 0; now += HIVE_S(86400 * 3)) {
		int64_t last = now - HIVE_S(86400 * 3);

		CHECK(timers_next_due(&timers) > last);
		for (struct hive_timer *t = take(now); t; t = take(now)) {
			CHECK(t->due_ns >= last && t->due_ns <= now);
			last = t->due_ns;
		}
		CHECK(timers_valid(&timers));
	}
	end();
}

/* tokio#684: a clock that goes back delays nothing that is started then, and nothing is lost. */
TEST(a_clock_that_goes_back_loses_nothing)
{
	struct hive_timer early[50], late[50];

	start();
	for (int i = 0; i < 50; i++)
		insert(&late[i], HIVE_S(100) + i / 3);
	CHECK(take(HIVE_S(100)) == &late[0]);
	for (int i = 0; i < 50; i++)
		insert(&early[i], HIVE_S(50) - i);
	CHECK_EQ(timers_next_due(&timers), HIVE_S(50) - 49);
	CHECK(take(HIVE_S(50) - 50) == NULL);
	for (int i = 49; i >= 0; i--) {
		CHECK(take(HIVE_S(50) - i - 1) == NULL);
		CHECK(take(HIVE_S(50) - i) == &early[i]);
		CHECK(timers_valid(&timers));
	}
	for (int i = 1; i < 50; i++)
		CHECK(take(HIVE_S(101)) == &late[i]);
	end();
}

/* From sets of each small size, each of them. */
TEST(any_timer_can_be_removed)
{
	for (int size = 1; size <= 25; size++)
		for (int at = 0; at < size; at++) {
			struct hive_timer all[25];

			start();
			for (int i = 0; i < size; i++)
				insert(&all[i], i * 11 % size * (at % 3 == 0 ? 1 : 1000));
			timers_remove(&timers, &all[at]);
			CHECK_EQ(timers_count(&timers), size - 1);
			CHECK(timers_valid(&timers));
			for (struct hive_timer *t = take(HIVE_S(1)); t; t = take(HIVE_S(1)))
				CHECK(t != &all[at]);
			end();
		}
}

/* tokio#3270: moved before, when and after its time has come. */
TEST(a_moved_timer_fires_at_its_new_time_only)
{
	for (int64_t to = -1; to <= 20; to++)
		for (int which = 0; which < 20; which++) {
			struct hive_timer all[20];

			start();
			for (int i = 0; i < 20; i++)
				insert(&all[i], i);
			timers_update(&timers, &all[which], to, sequence++);
			CHECK(timers_valid(&timers));
			CHECK_EQ(timers_count(&timers), 20);
			for (int64_t now = -1; now <= 20; now++)
				for (struct hive_timer *t = take(now); t; t = take(now))
					CHECK_EQ(t->due_ns, now);
			CHECK_EQ(timers_count(&timers), 0);
			end();
		}
}

static bool is_odd(struct hive_timer *timer)
{
	return timer->due_ns % 2 != 0;
}

static void wipe(struct hive_timer *timer, void *arg)
{
	memset(timer, 0xa5, sizeof *timer); /* it is somebody else's now */
	++*(int *)arg;
}

TEST(a_sweep_takes_the_dead_and_leaves_the_rest_in_order)
{
	for (int size = 0; size < 150; size += 7) {
		struct hive_timer all[150], before;
		int gone = 0;

		start();
		insert(&before, HIVE_S(2));
		for (int i = 0; i < size; i++)
			insert(&all[i], i * 29 % 64 * (i % 4 == 0 ? HIVE_MS(1) + 1 : 1));
		timers_sweep(&timers, is_odd, wipe, &gone);
		CHECK(timers_valid(&timers));
		CHECK_EQ(timers_count(&timers), size - gone + 1);
		for (int64_t last = 0; timers_count(&timers) > 0;) {
			struct hive_timer *t = take(HIVE_S(2));

			CHECK(t->due_ns >= last && t->due_ns % 2 == 0);
			last = t->due_ns;
		}
		end();
	}
}

/* ---- the same operations on a list that is kept sorted, while time goes on ---- */

enum { MODEL = 200 };
static struct hive_timer *sorted[MODEL];
static int sorted_count;

static bool earlier(const struct hive_timer *a, const struct hive_timer *b)
{
	return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->sequence < b->sequence);
}

static void sorted_insert(struct hive_timer *timer)
{
	int i = sorted_count++;

	for (; i > 0 && earlier(timer, sorted[i - 1]); i--)
		sorted[i] = sorted[i - 1];
	sorted[i] = timer;
}

static void sorted_remove(const struct hive_timer *timer)
{
	int i = 0;

	while (sorted[i] != timer)
		i++;
	for (sorted_count--; i < sorted_count; i++)
		sorted[i] = sorted[i + 1];
}

/* Any order of magnitude; now and then one that was due some time ago. */
static int64_t draw_due(uint64_t *seed, int64_t now)
{
	int64_t delay = (int64_t)(rng_next(seed) >> (20 + rng_below(rng_next(seed), 44)));

	return rng_below(rng_next(seed), 16) ? time_add(now, delay) : now - (int64_t)rng_below(rng_next(seed), 1000);
}

static int64_t fire_due(int64_t now, bool *inside, const struct hive_timer *first)
{
	for (struct hive_timer *t = take(now); t; t = take(now)) {
		CHECK(sorted_count > 0 && t == sorted[0] && t->due_ns <= now);
		sorted_remove(t);
		inside[t - first] = false;
	}
	CHECK(sorted_count == 0 || sorted[0]->due_ns > now);
	CHECK(timers_next_due(&timers) <= (sorted_count ? sorted[0]->due_ns : HIVE_FOREVER));
	return now;
}

static void compare_with_model(uint64_t seed, int operations)
{
	static struct hive_timer all[MODEL];
	bool inside[MODEL] = { false };
	int64_t now = HIVE_S(1000);

	start();
	sorted_count = 0;
	for (int i = 0; i < operations; i++) {
		uint32_t which = rng_below(rng_next(&seed), MODEL), what = rng_below(rng_next(&seed), 8);
		struct hive_timer *timer = &all[which];
		int64_t step = (int64_t)(rng_next(&seed) >> (30 + rng_below(rng_next(&seed), 34)));

		if (what == 0) {
			now = fire_due(now < HIVE_FOREVER / 2 ? now + step : now, inside, all);
		} else if (!inside[which]) {
			insert(timer, draw_due(&seed, now));
			sorted_insert(timer);
			inside[which] = true;
		} else if (what < 3) {
			timers_remove(&timers, timer);
			sorted_remove(timer);
			inside[which] = false;
		} else {
			sorted_remove(timer);
			timers_update(&timers, timer, draw_due(&seed, now), sequence++);
			sorted_insert(timer);
		}
		CHECK_EQ(timers_count(&timers), sorted_count);
		if (i % 16 == 0)
			CHECK(timers_valid(&timers));
	}
	fire_due(HIVE_FOREVER, inside, all);
	CHECK_EQ(timers_count(&timers), 0);
	end();
}

TEST(random_operations_while_time_goes_on_agree_with_a_sorted_list)
{
	for (uint64_t seed = 1; seed <= 8; seed++)
		compare_with_model(seed, rounds(20000));
}

TEST(a_million_timers_come_out_in_order)
{
	uint32_t count = (uint32_t)rounds(1000000);
	struct hive_timer *many = malloc(count * sizeof *many);
	uint64_t seed = 1;
	int64_t last = -1;

	CHECK(many);
	start();
	for (uint32_t i = 0; i < count; i++)
		insert(&many[i], (int64_t)(rng_next(&seed) >> 34)); /* within a second: many equal ones */
	for (uint32_t i = 0; i < count; i++) {
		struct hive_timer *first = take(HIVE_S(2));

		CHECK(first->due_ns >= last);
		last = first->due_ns;
	}
	end();
	free(many);
}
