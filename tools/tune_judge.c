/* SPDX-License-Identifier: MIT */
#include "tune.h"

/* The best of many samples is partly the luckiest: whether it is better than the defaults is judged by new samples, twice, and so is what
 * of it matters. What does not is left out.                                                                                      */

/* The candidate, and it with each of its parameters set back to the default. */
static bool measure_effects(struct tune *tune, struct tune_outcome *outcome, const struct tune_candidate *candidate,
                            int pass)
{
	struct tune_candidate set[TUNE_PARAMETERS + 2] = { { { 0 } }, *candidate };
	char key[32], title[32];
	size_t count = 2;
	for (int p = 0; p < tune->space.count; p++)
		if (candidate->choice[p] && tune_candidate_changes(candidate) > 1) {
			set[count] = *candidate;
			set[count++].choice[p] = 0;
		}
	snprintf(key, sizeof key, "effects%d", pass);
	snprintf(title, sizeof title, "effects %d", pass + 1);
	struct tune_stage *stage = tune_stage_create(tune, key, title, tune->repeat, set, count);
	if (!stage || !tune_stage_run(tune, stage, tune->until_ns))
		return tune_stage_free(stage), false;
	if (stage->done < TUNE_ENOUGH)
		return tune_stage_free(stage), true; /* the one before, if any, says more */
	tune_stage_free(outcome->effects);
	outcome->effects = stage;
	outcome->examined = *candidate;
	return true;
}

static struct tune_candidate without_what_does_not_matter(const struct tune *tune, const struct tune_outcome *outcome)
{
	struct tune_candidate kept = outcome->examined;
	for (int p = 0; p < tune->space.count; p++) {
		struct tune_candidate set_back = outcome->examined;
		set_back.choice[p] = 0;
		size_t at = tune_stage_find(outcome->effects, &set_back);
		if (outcome->examined.choice[p] && at != 0 && at != SIZE_MAX &&
		    !tune_stage_beats(outcome->effects, 1, at))
			kept.choice[p] = 0;
	}
	return kept;
}

/* Again until nothing more falls out, and at least twice: among many parameters one seems to matter by chance. ret_good: it, and the
 * challenger, did better than the defaults.                                                                                    */
static bool weed(struct tune *tune, struct tune_outcome *outcome, struct tune_candidate *kept, bool ret_good[2])
{
	*kept = outcome->challenger;
	for (int pass = 0; tune_candidate_changes(kept) > 0; pass++) {
		struct tune_candidate before = *kept;
		if (!measure_effects(tune, outcome, kept, pass))
			return false;
		if (!outcome->effects || !tune_candidate_equal(&outcome->examined, kept))
			return outcome->short_of_time = true;
		ret_good[0] = tune_stage_beats(outcome->effects, 1, 0);
		if (pass == 0)
			ret_good[1] = ret_good[0];
		*kept = without_what_does_not_matter(tune, outcome);
		if (tune_candidate_equal(kept, &before) && pass > 0)
			return true;
	}
	return ret_good[0] = false, true;
}

/* What is left, and the challenger as it was: parameters that replace each other must not both be left out. */
static bool confirm(struct tune *tune, struct tune_outcome *outcome, const struct tune_candidate *kept,
                    const bool good[2])
{
	struct tune_candidate set[3] = { { { 0 } } };
	bool was_good[3] = { false };
	size_t count = 1;
	if (tune_candidate_changes(kept) > 0)
		was_good[count] = good[0], set[count++] = *kept;
	if (!tune_candidate_equal(kept, &outcome->challenger))
		was_good[count] = good[1], set[count++] = outcome->challenger;
	outcome->final = tune_stage_create(tune, "final", "final", tune->repeat, set, count);
	if (!outcome->final || !tune_stage_run(tune, outcome->final, tune->until_ns))
		return false;
	outcome->short_of_time = outcome->final->done < TUNE_ENOUGH;
	for (size_t i = count - 1; i > 0 && !outcome->short_of_time; i--)
		if (was_good[i] && tune_stage_beats(outcome->final, i, 0))
			outcome->winner = set[i]; /* the shorter one is the last to be asked */
	return true;
}

bool tune_judge(struct tune *tune, struct tune_outcome *outcome)
{
	struct tune_candidate kept;
	bool good[2] = { false, false };
	if (tune_candidate_changes(&outcome->challenger) == 0)
		return true;
	return weed(tune, outcome, &kept, good) && (outcome->short_of_time || confirm(tune, outcome, &kept, good));
}
