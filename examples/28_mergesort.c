/* SPDX-License-Identifier: MIT */
/* A parallel mergesort in plain C: one half is forked, the other one sorted here, and then both are merged. Short pieces are not worth a fork.
 * (There is one in the library, which also merges in parallel: hive_parallel_sort().)                                      */
#include <rophive/hive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 2000000, FEW = 2048, INSERT = 16 };

struct part {
	struct hive *hive;
	int *items, *scratch;
	size_t n;
};

static void insert_each(int *items, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		int item = items[i];
		size_t at = i;

		for (; at > 0 && items[at - 1] > item; at--)
			items[at] = items[at - 1];
		items[at] = item;
	}
}

static void merge(const struct part *p, size_t half)
{
	const int *a = p->items, *b = p->items + half, *a_end = b, *b_end = p->items + p->n;
	int *out = p->scratch;

	while (a < a_end && b < b_end)
		*out++ = *b < *a ? *b++ : *a++; /* of equals the left one: the sort is stable */
	memcpy(out, a, (size_t)(a_end - a) * sizeof *a);
	memcpy(out + (a_end - a), b, (size_t)(b_end - b) * sizeof *b);
	memcpy(p->items, p->scratch, p->n * sizeof *p->items);
}

/* A compute worker. The halves have nothing in common, and both live until the wait is over. */
static void sort(void *arg)
{
	struct part *p = arg;
	size_t half = p->n / 2;
	struct part left = { p->hive, p->items, p->scratch, half };
	struct part right = { p->hive, p->items + half, p->scratch + half, p->n - half };
	struct hive_group group;

	if (p->n <= INSERT) {
		insert_each(p->items, p->n);
		return;
	}
	hive_group_init(&group, p->hive, HIVE_COMPUTE);
	if (p->n > FEW)
		hive_group_run(&group, sort, &right);
	else
		sort(&right);
	sort(&left);
	hive_group_wait(&group, HIVE_FOREVER);
	merge(p, half);
}

int main(void)
{
	struct part all = { .items = malloc(ITEMS * sizeof(int)), .scratch = malloc(ITEMS * sizeof(int)), .n = ITEMS };
	struct hive_group group;
	unsigned seed = 1, sum = 0;
	int wrong = 0;

	if (!all.items || !all.scratch || hive_runtime_start(NULL, &all.hive) < 0)
		return 1;
	for (size_t i = 0; i < ITEMS; i++) {
		seed = seed * 1664525u + 1013904223u;
		all.items[i] = (int)(seed >> 8);
		sum += seed >> 8;
	}
	int64_t begin = hive_now(all.hive);
	hive_group_init(&group, all.hive, HIVE_COMPUTE);
	hive_group_run(&group, sort, &all);
	hive_group_wait(&group, HIVE_FOREVER);
	printf("%d numbers sorted in %.1f ms\n", ITEMS, (double)(hive_now(all.hive) - begin) / 1e6);
	for (size_t i = 0; i < ITEMS; i++) {
		wrong += i > 0 && all.items[i - 1] > all.items[i];
		sum -= (unsigned)all.items[i];
	}
	free(all.items);
	free(all.scratch);
	return hive_runtime_stop(all.hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || wrong > 0 || sum != 0;
}
