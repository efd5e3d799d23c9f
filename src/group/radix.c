/* SPDX-License-Identifier: MIT */
/* Numbers, digit by digit. Each type has a key, which is an unsigned number of the same order; a digit is a byte of it. Functions are written once for
 * all types of a size, and compiled for each: `type` is a constant wherever they are called.                              */
#include "group/sort.h"

#include <stdint.h>
#include <string.h>

#define INLINED static inline __attribute__((always_inline))

enum { DIGITS = 256 };

INLINED uint32_t key_of_32(enum sort_type type, uint32_t bits)
{
	return type == SORT_I32 ? bits ^ UINT32_C(0x80000000) : bits;
}

/* What is no number comes last, whatever its sign. */
INLINED uint64_t key_of_double(uint64_t bits)
{
	if ((bits & INT64_MAX) > UINT64_C(0x7ff0000000000000))
		return UINT64_MAX;
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

INLINED uint64_t key_of_64(enum sort_type type, uint64_t bits)
{
	if (type == SORT_DOUBLE)
		return key_of_double(bits);
	return type == SORT_I64 ? bits ^ UINT64_C(1) << 63 : bits;
}

/* ---- one pass for each digit, the last one first ---- */

/* Where each digit begins, in place of how often it is there. False: all have the same one, and the pass may be left out. */
static bool make_places(size_t *counts, size_t n)
{
	size_t place = 0;

	for (int digit = 0; digit < DIGITS; digit++) {
		size_t count = counts[digit];

		if (count == n)
			return false;
		counts[digit] = place;
		place += count;
	}
	return true;
}

INLINED void sort_32(enum sort_type type, uint32_t *items, uint32_t *scratch, size_t n, bool into_scratch)
{
	size_t counts[4][DIGITS] = { { 0 } };
	uint32_t *from = items, *to = scratch, *other;

	for (size_t i = 0; i < n; i++) {
		uint32_t key = key_of_32(type, items[i]);

		for (int pass = 0; pass < 4; pass++)
			counts[pass][key >> pass * 8 & 255]++;
	}
	for (int pass = 0; pass < 4; pass++) {
		if (!make_places(counts[pass], n))
			continue;
		for (size_t i = 0; i < n; i++)
			to[counts[pass][key_of_32(type, from[i]) >> pass * 8 & 255]++] = from[i];
		other = from, from = to, to = other;
	}
	if ((from == scratch) != into_scratch)
		memcpy(to, from, n * sizeof *from);
}

INLINED void sort_64(enum sort_type type, uint64_t *items, uint64_t *scratch, size_t n, bool into_scratch)
{
	size_t counts[8][DIGITS] = { { 0 } };
	uint64_t *from = items, *to = scratch, *other;

	for (size_t i = 0; i < n; i++) {
		uint64_t key = key_of_64(type, items[i]);

		for (int pass = 0; pass < 8; pass++)
			counts[pass][key >> pass * 8 & 255]++;
	}
	for (int pass = 0; pass < 8; pass++) {
		if (!make_places(counts[pass], n))
			continue;
		for (size_t i = 0; i < n; i++)
			to[counts[pass][key_of_64(type, from[i]) >> pass * 8 & 255]++] = from[i];
		other = from, from = to, to = other;
	}
	if ((from == scratch) != into_scratch)
		memcpy(to, from, n * sizeof *from);
}

void hive__radix_sort(enum sort_type type, void *items, void *scratch, size_t n, bool into_scratch)
{
	switch (type) {
	case SORT_I32:
		sort_32(SORT_I32, (uint32_t *)items, (uint32_t *)scratch, n, into_scratch);
		break;
	case SORT_U32:
		sort_32(SORT_U32, (uint32_t *)items, (uint32_t *)scratch, n, into_scratch);
		break;
	case SORT_I64:
		sort_64(SORT_I64, (uint64_t *)items, (uint64_t *)scratch, n, into_scratch);
		break;
	case SORT_U64:
		sort_64(SORT_U64, (uint64_t *)items, (uint64_t *)scratch, n, into_scratch);
		break;
	case SORT_DOUBLE:
		sort_64(SORT_DOUBLE, (uint64_t *)items, (uint64_t *)scratch, n, into_scratch);
		break;
	case SORT_ANY:
		break;
	}
}

/* ---- merging, without a branch that has to be guessed ---- */

INLINED void merge_32(enum sort_type type, const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count,
                      uint32_t *out)
{
	const uint32_t *a_end = a + a_count, *b_end = b + b_count;

	while (a < a_end && b < b_end) {
		bool second = key_of_32(type, *b) < key_of_32(type, *a);

		*out++ = second ? *b : *a;
		b += second;
		a += !second;
	}
	memcpy(out, a, (size_t)(a_end - a) * sizeof *a);
	memcpy(out + (a_end - a), b, (size_t)(b_end - b) * sizeof *b);
}

INLINED void merge_64(enum sort_type type, const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count,
                      uint64_t *out)
{
	const uint64_t *a_end = a + a_count, *b_end = b + b_count;

	while (a < a_end && b < b_end) {
		bool second = key_of_64(type, *b) < key_of_64(type, *a);

		*out++ = second ? *b : *a;
		b += second;
		a += !second;
	}
	memcpy(out, a, (size_t)(a_end - a) * sizeof *a);
	memcpy(out + (a_end - a), b, (size_t)(b_end - b) * sizeof *b);
}

void hive__radix_merge(enum sort_type type, const void *a, size_t a_count, const void *b, size_t b_count, void *ret_out)
{
	const uint32_t *a32 = (const uint32_t *)a, *b32 = (const uint32_t *)b;
	const uint64_t *a64 = (const uint64_t *)a, *b64 = (const uint64_t *)b;

	switch (type) {
	case SORT_I32:
		merge_32(SORT_I32, a32, a_count, b32, b_count, (uint32_t *)ret_out);
		break;
	case SORT_U32:
		merge_32(SORT_U32, a32, a_count, b32, b_count, (uint32_t *)ret_out);
		break;
	case SORT_I64:
		merge_64(SORT_I64, a64, a_count, b64, b_count, (uint64_t *)ret_out);
		break;
	case SORT_U64:
		merge_64(SORT_U64, a64, a_count, b64, b_count, (uint64_t *)ret_out);
		break;
	case SORT_DOUBLE:
		merge_64(SORT_DOUBLE, a64, a_count, b64, b_count, (uint64_t *)ret_out);
		break;
	case SORT_ANY:
		break;
	}
}

/* ---- the comparisons that stand for a type ---- */

INLINED int compare_32(enum sort_type type, const void *a, const void *b)
{
	uint32_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	x = key_of_32(type, x);
	y = key_of_32(type, y);
	return (x > y) - (x < y);
}

INLINED int compare_64(enum sort_type type, const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	x = key_of_64(type, x);
	y = key_of_64(type, y);
	return (x > y) - (x < y);
}

int hive_compare_i32(const void *a, const void *b)
{
	return compare_32(SORT_I32, a, b);
}

int hive_compare_u32(const void *a, const void *b)
{
	return compare_32(SORT_U32, a, b);
}

int hive_compare_i64(const void *a, const void *b)
{
	return compare_64(SORT_I64, a, b);
}

int hive_compare_u64(const void *a, const void *b)
{
	return compare_64(SORT_U64, a, b);
}

int hive_compare_double(const void *a, const void *b)
{
	return compare_64(SORT_DOUBLE, a, b);
}

enum sort_type hive__sort_type(hive_compare_fn *compare, size_t item_bytes)
{
	if (item_bytes == sizeof(uint32_t))
		return compare == hive_compare_i32 ? SORT_I32 : compare == hive_compare_u32 ? SORT_U32 : SORT_ANY;
	if (item_bytes != sizeof(uint64_t))
		return SORT_ANY;
	if (compare == hive_compare_i64)
		return SORT_I64;
	return compare == hive_compare_u64 ? SORT_U64 : compare == hive_compare_double ? SORT_DOUBLE : SORT_ANY;
}
