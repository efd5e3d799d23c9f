/* SPDX-License-Identifier: MIT */
/* Whose turn it is among the levels of the compute pool. Apart from levels.h, so that a take from the level that all use is compiled by itself. */
#include "sched/levels.h"

/* Bit i: level i may have something. */
static uint32_t ready_levels(struct levels *l)
{
	uint32_t ready = 0;

	for (uint32_t i = 0; i < LEVELS; i++)
		ready |= (uint32_t)!pool_looks_empty(&l->pools[i]) << i;
	return ready;
}

static uint32_t level_of(uint32_t turn)
{
	switch (TUNE_LEVEL_TURNS[turn % LEVEL_TURNS]) {
	case 'H':
		return HIVE_PRIORITY_HIGH;
	case 'L':
		return HIVE_PRIORITY_LOW;
	default:
		return HIVE_PRIORITY_NORMAL;
	}
}

/* The next turn of one of these levels (bits, at least one), which is the caller's from here on. */
static uint32_t next_turn(struct levels *l, uint32_t ready)
{
	uint32_t seen = load_relaxed(&l->turn), turn;

	do {
		turn = seen;
		while (!(ready >> level_of(turn) & 1))
			turn = (turn + 1) % LEVEL_TURNS_ALL;
	} while (!cas_relaxed(&l->turn, &seen, (turn + 1) % LEVEL_TURNS_ALL));
	return turn;
}

bool hive__levels_take_in_turn(struct levels *l, uint32_t start, struct hive_task *ret_task,
                               enum hive_priority *ret_level)
{
	uint32_t ready = ready_levels(l);

	while (ready) {
		uint32_t level = (uint32_t)__builtin_ctz(ready);

		if (ready & (ready - 1)) {
			uint32_t turn = next_turn(l, ready);

			level = level_of(turn);
			start = turn / LEVEL_TURNS + turn % LEVEL_TURNS;
		}
		if (pool_take_many(&l->pools[level], start, ret_task, 1) > 0) {
			*ret_level = (enum hive_priority)level;
			return true;
		}
		ready &= ~(1u << level);
	}
	return false;
}
