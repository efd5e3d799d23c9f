/* SPDX-License-Identifier: MIT */
#include "tune.h"
#include <stdlib.h>
#include <string.h>

/* Successive halving, in generations. A set of candidates around the best one known is measured a few times; the better half twice as
 * often; and so on until a few are left, which are measured as often as it takes to judge. If one of them beats the one that they stood
 * around, the next generation stands around that. All samples are made in turns with the defaults.                                  */
#define FIRST_ROUNDS 2
#define LAST_SET 3 /* so many challengers are judged */

static bool add(struct tune_candidate *set, size_t *count, size_t most, const struct tune_candidate *candidate)
{
	for (size_t i = 0; i < *count; i++)
		if (tune_candidate_equal(&set[i], candidate))
			return false;
	if (*count < most)
		set[(*count)++] = *candidate;
	return true;
}

static void add_all(const struct tune_space *space, struct tune_candidate *set, size_t *count, size_t most)
{
	struct tune_candidate candidate = { { 0 } };
	for (;;) {
		int at = 0;
		add(set, count, most, &candidate);
		while (at < space->count && candidate.choice[at] == space->parameters[at].count)
			candidate.choice[at++] = 0;
		if (at == space->count)
			return;
		candidate.choice[at]++;
	}
}

/* One value of one parameter changed; if there are too many of them, which ones is drawn. */
static void add_neighbours(const struct tune_space *space, const struct tune_candidate *around, uint64_t *random,
                           struct tune_candidate *set, size_t *count, size_t most)
{
	struct tune_candidate near[TUNE_PARAMETERS * (TUNE_VALUES + 1)];
	size_t near_count = 0;
	for (int i = 0; i < space->count; i++)
		for (int value = 0; value <= space->parameters[i].count; value++)
			if (value != around->choice[i]) {
				near[near_count] = *around;
				near[near_count++].choice[i] = (uint8_t)value;
			}
	bool all = near_count <= most - *count;
	for (size_t left = near_count; left > 0; left--) {
		size_t drawn = all ? near_count - left : tune_random(random) % left;
		add(set, count, most, &near[drawn]);
		if (!all)
			near[drawn] = near[left - 1];
	}
}

/* Two or three parameters changed: values that are good only together are found by luck. */
static void add_drawn(const struct tune_space *space, const struct tune_candidate *around, uint64_t *random,
                      struct tune_candidate *set, size_t *count, size_t most)
{
	for (int attempt = 0; attempt < 1000 && *count < most; attempt++) {
		struct tune_candidate candidate = *around;
		for (int change = 2 + (int)(tune_random(random) % 2); change > 0; change--) {
			size_t i = tune_random(random) % (size_t)space->count;
			candidate.choice[i] = (uint8_t)(tune_random(random) % ((size_t)space->parameters[i].count + 1));
		}
		add(set, count, most, &candidate);
	}
}

/* The rest is for what is drawn. */
static size_t room_for_neighbours(size_t most)
{
	return most - most / 8;
}

size_t tune_search_first(struct tune *tune, const struct tune_candidate *around, int generation,
                         struct tune_candidate *ret_set)
{
	const struct tune_candidate defaults = { { 0 } };
	uint64_t random = tune->seed + (uint64_t)generation * 1000003;
	size_t count = 0, most = tune->most;
	add(ret_set, &count, most, &defaults);
	add(ret_set, &count, most, around);
	if (tune_space_size(&tune->space, most + 1) <= most)
		return add_all(&tune->space, ret_set, &count, most), count;
	add_neighbours(&tune->space, around, &random, ret_set, &count, room_for_neighbours(most));
	size_t with_drawn = count + count / 4;
	add_drawn(&tune->space, around, &random, ret_set, &count, with_drawn < most ? with_drawn : most);
	return count;
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

/* Of one candidate as they mostly are: two or three samples of one say little. */
static double typical_spread(const struct tune_stage *stage)
{
	double *spreads = calloc(stage->count, sizeof *spreads), median = 0;
	if (spreads) {
		memcpy(spreads, stage->spreads, stage->count * sizeof *spreads);
		qsort(spreads, stage->count, sizeof *spreads, compare_doubles);
		median = spreads[stage->count / 2];
	}
	free(spreads);
	return median;
}

/* All changes that seemed to help, each alone, at once. */
static struct tune_candidate combine(const struct tune *tune, const struct tune_stage *stage,
                                     const struct tune_candidate *around)
{
	struct tune_candidate all = *around;
	double best[TUNE_PARAMETERS], bar = stage->medians[tune_stage_find(stage, around)] + typical_spread(stage) / 2;
	for (int p = 0; p < tune->space.count; p++)
		best[p] = bar;
	for (size_t i = 0; i < stage->count; i++) {
		int differs = 0, where = 0;
		for (int p = 0; p < tune->space.count; p++)
			if (stage->candidates[i].choice[p] != around->choice[p])
				differs++, where = p;
		if (differs != 1 || stage->failed[i] || stage->medians[i] <= best[where])
			continue;
		best[where] = stage->medians[i];
		all.choice[where] = stage->candidates[i].choice[where];
	}
	return all;
}

/* The set of the next rung: the defaults, the one they stand around, and the better half. */
static size_t halve(const struct tune_stage *stage, const struct tune_candidate *around, struct tune_candidate *set,
                    size_t *order)
{
	size_t count = 0, others = stage->count - 1, keep = (others + 1) / 2;
	tune_stage_rank(stage, order);
	add(set, &count, stage->count, &stage->candidates[0]);
	add(set, &count, stage->count, around);
	for (size_t i = 0; i < keep; i++)
		if (!stage->failed[order[i]])
			add(set, &count, stage->count, &stage->candidates[order[i]]);
	return count;
}

struct generation {
	struct tune_candidate *set, around, best;
	size_t count, *order;
	int number, rounds;
	bool last, better, cut; /* better: than what it stands around, proven; cut: the time was over */
};

/* One rung. False: the run has to end. */
static bool climb(struct tune *tune, struct generation *g, int rung, struct tune_outcome *outcome)
{
	char key[32], title[64];
	g->last = g->count <= LAST_SET + 1;
	g->rounds = g->last || FIRST_ROUNDS << rung > tune->repeat ? tune->repeat : FIRST_ROUNDS << rung;
	snprintf(key, sizeof key, "search%d.%d", g->number, rung);
	snprintf(title, sizeof title, "search %d, rung %d", g->number + 1, rung + 1);
	struct tune_stage *stage = tune_stage_create(tune, key, title, g->rounds, g->set, g->count);
	if (!stage || !tune_stage_run(tune, stage, tune->search_until_ns))
		return tune_stage_free(stage), false;
	g->cut = stage->done < stage->rounds;
	if (stage->done > 0) {
		g->count = halve(stage, &g->around, g->set, g->order);
		g->best = stage->count > 1 && !stage->failed[g->order[0]] ? stage->candidates[g->order[0]] : g->around;
		g->better = g->last && tune_stage_beats(stage, tune_stage_find(stage, &g->best),
		                                        tune_stage_find(stage, &g->around));
	}
	if (rung > 0 || stage->done == 0)
		return tune_stage_free(stage), true;
	struct tune_candidate all = combine(tune, stage, &g->around);
	add(g->set, &g->count, tune->most, &all);
	if (g->cut && outcome->survey)
		return tune_stage_free(stage), true; /* the one before is complete */
	tune_stage_free(outcome->survey);
	outcome->survey = stage;
	outcome->around = g->around;
	return true;
}

/* Does a set have all neighbours? Then a generation without success is the end, else the next one has others. */
static bool fits(const struct tune *tune)
{
	size_t neighbours = 0;
	for (int p = 0; p < tune->space.count; p++)
		neighbours += (size_t)tune->space.parameters[p].count;
	return neighbours + 2 <= room_for_neighbours(tune->most) ||
	       tune_space_size(&tune->space, tune->most + 1) <= tune->most;
}

static bool run_generations(struct tune *tune, struct generation *g, struct tune_outcome *outcome)
{
	bool whole = tune_space_size(&tune->space, tune->most + 1) <= tune->most, over = false;
	for (g->number = 0; g->number < (whole ? 1 : tune->generations) && !over; g->number++) {
		g->count = tune_search_first(tune, &g->around, g->number, g->set);
		g->last = g->better = false;
		for (int rung = 0; !g->last && !g->cut; rung++)
			if (!climb(tune, g, rung, outcome))
				return false;
		if (g->better)
			g->around = g->best;
		over = g->cut || (!g->better && fits(tune));
	}
	/* If nothing was proven, what seemed best is examined all the same. */
	outcome->challenger = tune_candidate_changes(&g->around) > 0 ? g->around : g->best;
	return true;
}

/* Whoever fails with the defaults is told at once, before others are blamed. */
static bool try_defaults(struct tune *tune)
{
	const struct tune_candidate defaults = { { 0 } };
	struct tune_stage *stage = tune_stage_create(tune, "trial", "trial", 1, &defaults, 1);
	bool good = stage && tune_stage_run(tune, stage, INT64_MAX);
	tune_stage_free(stage);
	return good;
}

bool tune_search(struct tune *tune, struct tune_outcome *outcome)
{
	struct generation g = { .set = calloc(tune->most + 1, sizeof *g.set),
		                .order = calloc(tune->most + 1, sizeof *g.order) };
	bool good = g.set && g.order;
	if (good)
		good = try_defaults(tune) && run_generations(tune, &g, outcome);
	else
		tune->exit_code = 1, tune_progress_note(tune, "out of memory");
	free(g.set);
	free(g.order);
	return good;
}
