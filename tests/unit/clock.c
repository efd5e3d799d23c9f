/* SPDX-License-Identifier: MIT */
/* Now, and sums of times that stop at "for ever". */
#include "base/clock.h"

#include <time.h>

#include "unit.h"

TEST(clock_never_goes_back)
{
	int64_t last = hive__clock_now();

	for (int i = 0; i < 10000; i++) {
		int64_t now = hive__clock_now();

		CHECK(now >= last);
		last = now;
	}
}

TEST(clock_is_the_monotonic_one_in_nanoseconds)
{
	struct timespec ts;
	int64_t before = hive__clock_now(), between, after;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	between = ts.tv_sec * HIVE_S(1) + ts.tv_nsec;
	after = hive__clock_now();
	CHECK(before > 0 && before <= between && between <= after);
}

TEST(clock_runs)
{
	int64_t before = hive__clock_now();

	nanosleep(&(struct timespec){ 0, 5 * 1000 * 1000 }, NULL);
	CHECK(hive__clock_now() - before >= HIVE_MS(5));
}

TEST(sum_is_exact_below_for_ever)
{
	CHECK_EQ(time_add(1, 2), 3);
	CHECK_EQ(time_add(0, 0), 0);
	CHECK_EQ(time_add(-5, 3), -2);
	CHECK_EQ(time_add(INT64_MIN, 1), INT64_MIN + 1);
	CHECK_EQ(time_add(HIVE_FOREVER - 1, 1), HIVE_FOREVER);
	CHECK_EQ(time_add(HIVE_FOREVER - 2, 1), HIVE_FOREVER - 1);
}

TEST(sum_stops_at_for_ever)
{
	CHECK_EQ(time_add(HIVE_FOREVER, 0), HIVE_FOREVER);
	CHECK_EQ(time_add(HIVE_FOREVER, 1), HIVE_FOREVER);
	CHECK_EQ(time_add(1, HIVE_FOREVER), HIVE_FOREVER);
	CHECK_EQ(time_add(HIVE_FOREVER, HIVE_FOREVER), HIVE_FOREVER);
	CHECK_EQ(time_add(HIVE_FOREVER - 5, 6), HIVE_FOREVER);
}

TEST(negative_time_plus_for_ever_does_not_overflow)
{
	CHECK_EQ(time_add(-1, HIVE_FOREVER), HIVE_FOREVER - 1);
	CHECK_EQ(time_add(INT64_MIN, HIVE_FOREVER), -1);
}
