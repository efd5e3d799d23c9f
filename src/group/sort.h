/* SPDX-License-Identifier: MIT */
#pragma once
/* Numbers of a known type are sorted by their digits, and merged by comparing them in place: radix.c. */
#include <rophive/group.h>

enum sort_type { SORT_ANY, SORT_I32, SORT_U32, SORT_I64, SORT_U64, SORT_DOUBLE };

enum { RADIX_FEW = 256 }; /* below that comparing is faster */

/* The type that this comparison is about, if items have its size. */
enum sort_type hive__sort_type(hive_compare_fn *compare, size_t item_bytes);
/* n items, in order, into `items` or, into_scratch, into `scratch`; both are overwritten. */
void hive__radix_sort(enum sort_type type, void *items, void *scratch, size_t n, bool into_scratch);
/* Both are in order, and `a` comes first among equals. */
void hive__radix_merge(enum sort_type type, const void *a, size_t a_count, const void *b, size_t b_count,
                       void *ret_out);
