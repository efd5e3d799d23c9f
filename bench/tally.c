/* SPDX-License-Identifier: MIT */
#include "tally.h"
#include "bench.h"
#include <rophive/error.h>
#include <stdio.h>
#include <stdlib.h>

#define TALLY_CELLS 4096 /* threads in the life of one bench process */

static struct tally_cell cells[TALLY_CELLS];
static atomic_size_t cells_claimed;
static atomic_int first_error;
_Thread_local struct tally_cell *tally_mine;

struct tally_cell *tally_claim(void)
{
	size_t index = atomic_fetch_add(&cells_claimed, 1);
	if (index >= TALLY_CELLS) {
		fputs("hive bench: too many threads to count for\n", stderr);
		abort();
	}
	return tally_mine = &cells[index];
}

uint64_t tally_total(void)
{
	size_t claimed = atomic_load(&cells_claimed);
	uint64_t total = 0;
	for (size_t i = 0; i < claimed; i++)
		total += atomic_load_explicit(&cells[i].count, memory_order_acquire);
	return total;
}

void tally_fail(int error)
{
	int none = 0;
	atomic_compare_exchange_strong(&first_error, &none, error);
}

int tally_error(void)
{
	return atomic_load(&first_error);
}

int tally_wait(uint64_t target, int64_t limit_ns, int64_t step_ns)
{
	int64_t deadline = sync_now() + limit_ns;
	for (;;) {
		uint64_t total = tally_total();
		if (tally_error())
			return bench_failed("a task", tally_error());
		if (total == target)
			return BENCH_OK;
		if (total > target)
			return bench_wrong("tasks that ran", target, total);
		if (sync_now() > deadline)
			return bench_timeout("tasks to run", target, total);
		sync_sleep(step_ns);
	}
}

void tally_task(void *unused)
{
	(void)unused;
	tally_add();
}
