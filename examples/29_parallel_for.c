/* SPDX-License-Identifier: MIT */
/* parallel_for: one call, with a deadline; the caller works too. Then a sum over the same range, and a table tile by tile. */
#include <rophive/hive.h>
#include <stdio.h>

enum { N = 4 << 20, SIDE = 2048 };
static float a[N], b[N], sum[N];

/* Any compute worker, and the caller: pieces that nobody else has. */
static void fill(void *arg, int64_t begin, int64_t end)
{
	(void)arg;
	for (int64_t i = begin; i < end; i++) {
		a[i] = (float)(i % 100);
		b[i] = (float)(100 - i % 100);
	}
}

static void add(void *arg, int64_t begin, int64_t end)
{
	(void)arg;
	for (int64_t i = begin; i < end; i++)
		sum[i] = a[i] + b[i];
}

/* Each who takes part has an accumulator of his own; in the end they are added up, one after the other. */
static void fold(void *arg, int64_t begin, int64_t end, void *accumulator)
{
	double *total = accumulator;

	(void)arg;
	for (int64_t i = begin; i < end; i++)
		*total += (double)sum[i];
}

static void combine(void *arg, void *into, const void *from)
{
	(void)arg;
	*(double *)into += *(const double *)from;
}

/* b becomes a with rows and columns exchanged; both tiles stay in the cache. */
static void transpose(void *arg, const struct hive_tile *tile)
{
	(void)arg;
	for (int64_t row = tile->row; row < tile->row_end; row++)
		for (int64_t column = tile->column; column < tile->column_end; column++)
			b[column * SIDE + row] = a[row * SIDE + column];
}

int main(void)
{
	static const double zero;
	const struct hive_reduction total_of = { sizeof zero, &zero, fold, combine };
	double total = 0;
	struct hive *hive;
	int r;

	if (hive_runtime_start(NULL, &hive) < 0)
		return 1;
	r = hive_parallel_for(hive, 0, N, 0, fill, NULL, HIVE_FOREVER);
	if (r == 0) /* a minute is plenty: what is not begun then is left out, and we are told */
		r = hive_parallel_for(hive, 0, N, 0, add, NULL, hive_deadline(hive, HIVE_S(60)));
	if (r == 0)
		r = hive_parallel_reduce(hive, 0, N, 0, &total_of, NULL, &total, HIVE_FOREVER);
	if (r == 0)
		r = hive_parallel_for_2d(hive, SIDE, SIDE, 0, 0, transpose, NULL, HIVE_FOREVER);
	printf("%s, %.0f in all\n", r < 0 ? hive_error_text(r) : "added", total);
	for (int i = 0; r == 0 && i < SIDE * SIDE; i++)
		if (b[i % SIDE * SIDE + i / SIDE] != a[i])
			r = -1;
	return hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || r < 0 || total != 100.0 * N;
}
