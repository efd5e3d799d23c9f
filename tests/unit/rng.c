/* SPDX-License-Identifier: MIT */
/* The small random generator. */
#include "base/rng.h"

#include "unit.h"

TEST(same_seed_same_numbers)
{
	uint64_t a = 42, b = 42;

	for (int i = 0; i < 100; i++)
		CHECK(rng_next(&a) == rng_next(&b));
}

TEST(different_seeds_differ_at_once)
{
	uint64_t a = 1, b = 2;

	CHECK(rng_next(&a) != rng_next(&b));
}

/* splitmix64, as published: the first outputs for seed 1234567. */
TEST(numbers_are_those_of_splitmix64)
{
	static const uint64_t expected[] = { 6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
		                             4593380528125082431u, 16408922859458223821u };
	uint64_t state = 1234567;

	for (int i = 0; i < 5; i++)
		CHECK(rng_next(&state) == expected[i]);
}

TEST(seed_zero_works)
{
	uint64_t state = 0, ones = 0;

	for (int i = 0; i < 64; i++)
		ones += (uint64_t)__builtin_popcountll(rng_next(&state));
	CHECK(ones > 64 * 28 && ones < 64 * 36);
}

TEST(mixing_is_one_to_one_on_small_numbers)
{
	for (uint64_t a = 0; a < 200; a++)
		for (uint64_t b = 0; b < a; b++)
			CHECK(rng_mix(a) != rng_mix(b));
}

TEST(below_stays_below)
{
	uint64_t state = 5;

	for (uint32_t n = 1; n < 2000; n += 7)
		for (int i = 0; i < 100; i++)
			CHECK(rng_below(rng_next(&state), n) < n);
}

TEST(below_one_is_zero)
{
	CHECK_EQ(rng_below(0, 1), 0);
	CHECK_EQ(rng_below(UINT64_MAX, 1), 0);
}

TEST(below_reaches_both_ends)
{
	CHECK_EQ(rng_below(0, 1000), 0);
	CHECK_EQ(rng_below(UINT64_MAX, 1000), 999);
	CHECK_EQ(rng_below(UINT64_MAX, UINT32_MAX), UINT32_MAX - 1);
}

/* Ten boxes, 100,000 balls: a fair box holds 10,000 give or take 95; ten times that would be a broken one. */
TEST(below_is_roughly_uniform)
{
	for (uint32_t n = 2; n <= 10; n++) {
		uint32_t boxes[10] = { 0 }, balls = 10000 * n;
		uint64_t state = n;

		for (uint32_t i = 0; i < balls; i++)
			boxes[rng_below(rng_next(&state), n)]++;
		for (uint32_t i = 0; i < n; i++)
			CHECK(boxes[i] > 9000 && boxes[i] < 11000);
	}
}
