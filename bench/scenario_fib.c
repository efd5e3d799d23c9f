/* SPDX-License-Identifier: MIT */
#include "groups.h"

/* fib: the naive recursion, one half forked, the other one called; a group on the stack for each call that forks, all by the public calls. One
 * operation is one call of the recursion: 7,049,155 for n = 32. The work is nothing, so this is the price of a fork and its join. */
#define N_MOST 50 /* an hour */

struct call {
	struct hive *hive;
	int n;
	int64_t result;
};

static void fib(void *arg)
{
	struct call *c = arg, left = { c->hive, c->n - 1, 0 }, right = { c->hive, c->n - 2, 0 };
	struct hive_group group;
	if (c->n < 2) {
		c->result = c->n;
		return;
	}
	hive_group_init(&group, c->hive, HIVE_COMPUTE);
	hive_group_run(&group, fib, &left);
	fib(&right);
	hive_group_wait(&group, HIVE_FOREVER);
	c->result = left.result + right.result;
}

static int64_t fib_by_adding(int n)
{
	int64_t a = 0, b = 1;
	for (; n > 0; n--) {
		int64_t sum = a + b;
		a = b;
		b = sum;
	}
	return a;
}

static int compute(const struct rig *rig, int n, int64_t *ret_elapsed_ns)
{
	struct call root = { rig->hive, n, 0 };
	*ret_elapsed_ns = groups_time(rig, fib, &root);
	uint64_t expected = (uint64_t)fib_by_adding(n), seen = (uint64_t)root.result;
	return seen == expected ? BENCH_OK : bench_wrong("rabbits", expected, seen);
}

int bench_fib(const struct bench_params *params, struct record *result)
{
	struct rig rig;
	int64_t times_ns[GROUPS_TURNS] = { 0 };
	if (params->n > N_MOST)
		return bench_failed("fib takes too long", -EINVAL);
	int n = (int)params->n, code = groups_open(&rig, params);
	if (code)
		return code;
	code = compute(&rig, n > 5 ? n - 5 : n, &times_ns[0]); /* warm-up */
	for (int turn = 0; turn < GROUPS_TURNS && !code; turn++)
		code = compute(&rig, n, &times_ns[turn]);
	int64_t elapsed_ns = groups_median(times_ns, GROUPS_TURNS), calls = 2 * fib_by_adding(n + 1) - 1;
	bench_put_rate(result, (double)calls, elapsed_ns);
	record_metric(result, "ns_each", (double)elapsed_ns / (double)calls);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
