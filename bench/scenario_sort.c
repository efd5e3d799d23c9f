/* SPDX-License-Identifier: MIT */
#include "groups.h"
#include <stdlib.h>

/* sort: hive_parallel_sort() of n random 32-bit integers, from a compute task, so that T threads do it all. One operation is one item. With the
 * comparison that the library knows, and with one of our own, which is what items of other types have.                      */
struct job {
	struct hive *hive;
	int32_t *items;
	int64_t n;
	hive_compare_fn *compare;
	int error;
};

struct digest {
	uint64_t sum, mixed; /* of the items, in whatever order */
};

static int compare_own(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

static void sort(void *arg)
{
	struct job *job = arg;
	job->error = hive_parallel_sort(job->hive, job->items, (size_t)job->n, sizeof *job->items, job->compare,
	                                HIVE_FOREVER);
}

static struct digest digest_of(const int32_t *items, int64_t n)
{
	struct digest digest = { 0, 0 };
	for (int64_t i = 0; i < n; i++) {
		uint64_t item = (uint32_t)items[i];
		digest.sum += item;
		digest.mixed += (item ^ item << 17) * UINT64_C(0x9e3779b97f4a7c15) >> 11;
	}
	return digest;
}

static void fill(int32_t *items, int64_t n, uint64_t seed)
{
	for (int64_t i = 0; i < n; i++) {
		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		items[i] = (int32_t)(uint32_t)(seed >> 32);
	}
}

static int sort_and_check(const struct rig *rig, struct job *job, uint64_t seed, int64_t *ret_elapsed_ns)
{
	fill(job->items, job->n, seed);
	struct digest before = digest_of(job->items, job->n), after;
	*ret_elapsed_ns = groups_time(rig, sort, job);
	if (job->error)
		return bench_failed("hive_parallel_sort", job->error);
	after = digest_of(job->items, job->n);
	for (int64_t i = 1; i < job->n; i++)
		if (job->items[i - 1] > job->items[i])
			return bench_wrong("items in order", (uint64_t)job->n, (uint64_t)i);
	if (before.sum != after.sum)
		return bench_wrong("the items' sum", before.sum, after.sum);
	return before.mixed == after.mixed ? BENCH_OK : bench_wrong("the items", before.mixed, after.mixed);
}

static int measure(const struct rig *rig, struct job *job, hive_compare_fn *compare, double *ret_per_s)
{
	int64_t times_ns[GROUPS_TURNS] = { 0 };
	job->compare = compare;
	int code = sort_and_check(rig, job, 1, &times_ns[0]); /* warm-up: the pages of its memory, too */
	for (int turn = 0; turn < GROUPS_TURNS && !code; turn++)
		code = sort_and_check(rig, job, (uint64_t)turn + 2, &times_ns[turn]);
	int64_t elapsed_ns = groups_median(times_ns, GROUPS_TURNS);
	*ret_per_s = (double)job->n * 1e9 / (double)(elapsed_ns > 0 ? elapsed_ns : 1);
	return code;
}

int bench_sort(const struct bench_params *params, struct record *result)
{
	struct rig rig;
	double known = 0, generic = 0;
	struct job job = { .items = calloc((size_t)params->n, sizeof *job.items), .n = params->n };
	if (!job.items)
		return bench_failed("items", -ENOMEM);
	int code = groups_open(&rig, params);
	if (!code) {
		job.hive = rig.hive;
		code = measure(&rig, &job, hive_compare_i32, &known);
		if (!code)
			code = measure(&rig, &job, compare_own, &generic);
		record_metric(result, "ops_per_s", known);
		record_metric(result, "generic_ops_per_s", generic);
		bench_put_memory(result);
		code = rig_close(&rig, code);
	}
	free(job.items);
	return code;
}
