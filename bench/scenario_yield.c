/* SPDX-License-Identifier: MIT */
#include "fibers.h"
#include <stdlib.h>

/* yield: two fibers for each worker, which do nothing but let each other run, through the scheduler; one operation is one yield.
 * With one worker the two must take turns: when one has done all of its yields, so has the other, but for one.              */
#define FIBERS_MAX 512

struct yielder {
	_Alignas(SYNC_LINE) _Atomic int64_t done; /* the fiber itself stores */
	struct yielder *partner;
	int64_t count, partner_done;
};

struct match {
	struct yielder yielders[FIBERS_MAX];
	struct hive_fiber *handles[FIBERS_MAX];
	int32_t fibers;
	int64_t elapsed_ns;
};

static int yield_often(void *arg)
{
	struct yielder *yielder = arg;
	int error = 0;
	for (int64_t i = 1; i <= yielder->count && !error; i++) {
		atomic_store_explicit(&yielder->done, i, memory_order_relaxed);
		error = hive_yield();
	}
	yielder->partner_done = atomic_load_explicit(&yielder->partner->done, memory_order_relaxed);
	return error;
}

static int play(void *arg)
{
	struct match *match = arg;
	int64_t begin = sync_now();
	int error = fibers_spawn_and_join(yield_often, match->yielders, sizeof *match->yielders, match->fibers,
	                                  match->handles);
	match->elapsed_ns = sync_now() - begin;
	return error;
}

/* Yields of all fibers together: n, rounded up to the same number for each. */
static int64_t share_out(struct match *match, int32_t fibers, int64_t n)
{
	int64_t each = (n + fibers - 1) / fibers;
	match->fibers = fibers;
	for (int32_t i = 0; i < fibers; i++)
		match->yielders[i] = (struct yielder){ .partner = &match->yielders[i ^ 1], .count = each };
	return each;
}

static int check_turns(const struct match *match, int64_t each)
{
	for (int32_t i = 0; i < match->fibers; i++)
		if (atomic_load(&match->yielders[i].done) != each)
			return bench_wrong("yields of a fiber", (uint64_t)each,
			                   (uint64_t)atomic_load(&match->yielders[i].done));
	if (match->fibers > 2)
		return BENCH_OK; /* on several workers nobody promises turns */
	int64_t behind = match->yielders[0].partner_done < match->yielders[1].partner_done
	                         ? match->yielders[0].partner_done
	                         : match->yielders[1].partner_done;
	return behind >= each - 1 ? BENCH_OK
	                          : bench_wrong("turns of the other fiber", (uint64_t)each, (uint64_t)behind);
}

int bench_yield(const struct bench_params *params, struct record *result)
{
	static struct match match;
	struct rig rig;
	int32_t fibers = 2 * params->threads;
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	share_out(&match, fibers, params->n / 10 + 1);
	code = fibers_run(&rig, play, &match);
	int64_t each = share_out(&match, fibers, params->n);
	if (!code)
		code = fibers_run(&rig, play, &match);
	if (!code)
		code = check_turns(&match, each);
	bench_put_rate(result, (double)(each * fibers), match.elapsed_ns);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
