/* SPDX-License-Identifier: MIT */
#include "sync.h"
#include "terminal.h"
#include "tune.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Candidates measured in turns: a round has one sample of each, in an order of its own, so that the moods of the machine befall all
 * alike. Only samples of one stage are compared with each other.                                                              */
uint64_t tune_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

struct tune_stage *tune_stage_create(struct tune *tune, const char *key, const char *title, int rounds,
                                     const struct tune_candidate *candidates, size_t count)
{
	size_t sources = (size_t)tune_job_sources(&tune->job);
	struct tune_stage *stage = calloc(1, sizeof *stage);
	if (stage) {
		*stage = (struct tune_stage){ .count = count, .rounds = rounds };
		stage->key = strdup(key);
		stage->title = strdup(title);
		stage->candidates = calloc(count, sizeof *stage->candidates);
		stage->figures = calloc(count * sources * (size_t)rounds, sizeof *stage->figures);
		stage->failed = calloc(count, sizeof *stage->failed);
		stage->medians = calloc(count, sizeof *stage->medians);
		stage->spreads = calloc(count, sizeof *stage->spreads);
		stage->base = calloc(sources, sizeof *stage->base);
	}
	if (!stage || !stage->key || !stage->title || !stage->candidates || !stage->figures || !stage->failed ||
	    !stage->medians || !stage->spreads || !stage->base) {
		tune_stage_free(stage);
		tune->exit_code = 1;
		tune_progress_note(tune, "out of memory");
		return NULL;
	}
	memcpy(stage->candidates, candidates, count * sizeof *candidates);
	return stage;
}

void tune_stage_free(struct tune_stage *stage)
{
	if (!stage)
		return;
	free(stage->key);
	free(stage->title);
	free(stage->candidates);
	free(stage->figures);
	free(stage->failed);
	free(stage->medians);
	free(stage->spreads);
	free(stage->base);
	free(stage);
}

static double *figure_at(const struct tune *tune, const struct tune_stage *stage, size_t candidate, int source,
                         int round)
{
	size_t sources = (size_t)tune_job_sources(&tune->job);
	return &stage->figures[(candidate * sources + (size_t)source) * (size_t)stage->rounds + (size_t)round];
}

static void make_key(const struct tune *tune, const struct tune_stage *stage, size_t candidate, int source, int round,
                     char *key, size_t size)
{
	char text[TUNE_TEXT];
	tune_candidate_text(&tune->space, &stage->candidates[candidate], text, sizeof text);
	snprintf(key, size, "%s.%d %s %s", stage->key, round, tune_job_name(&tune->job, source),
	         text[0] ? text : TUNE_DEFAULTS);
}

/* From the file only as a whole: half a round from another day would not be one. */
static bool round_is_known(const struct tune *tune, const struct tune_stage *stage, int round)
{
	char key[TUNE_TEXT + 128];
	for (size_t i = 0; i < stage->count; i++)
		for (int source = 0; !stage->failed[i] && source < tune_job_sources(&tune->job); source++) {
			make_key(tune, stage, i, source, round, key, sizeof key);
			const struct tune_line *line = tune_state_find(&tune->state, key);
			if (!line)
				return false;
			if (!(line->figure > 0))
				break; /* failed there: the rest was not asked for */
		}
	return true;
}

/* The defaults have to work, whatever they are compared with. */
static void give_up(struct tune *tune, enum tune_end end, int source, const char *why)
{
	tune->exit_code = end == TUNE_INTERRUPTED ? terminal_exit_code() : end == TUNE_LATE ? 3 : 1;
	if (end != TUNE_INTERRUPTED)
		fprintf(stderr, "%shive tune: %s, with the defaults: %s\n", tune->terminal ? "\r\x1b[K" : "",
		        tune_job_name(&tune->job, source), why);
}

static void drop(struct tune *tune, struct tune_stage *stage, size_t candidate, int source, const char *why)
{
	char text[TUNE_TEXT];
	tune_candidate_text(&tune->space, &stage->candidates[candidate], text, sizeof text);
	stage->failed[candidate] = true;
	tune->failed++;
	snprintf(tune->why, sizeof tune->why, "%s: %s: %s", text, tune_job_name(&tune->job, source), why);
	tune_progress_note(tune, tune->why);
}

/* One figure, from the file or from a process. False: the run has to end. */
static bool measure(struct tune *tune, struct tune_stage *stage, size_t candidate, int source, int round, bool known)
{
	char key[TUNE_TEXT + 128], text[TUNE_TEXT], why[512] = "failed in an earlier run";
	double figure = 0;
	make_key(tune, stage, candidate, source, round, key, sizeof key);
	tune->samples++;
	if (known)
		figure = tune_state_find(&tune->state, key)->figure;
	else {
		tune_candidate_text(&tune->space, &stage->candidates[candidate], text, sizeof text);
		enum tune_end end = tune_sample_take(&tune->job, source, text, tune->samples, &figure, why, sizeof why);
		if (end == TUNE_INTERRUPTED || (end != TUNE_GOOD && candidate == 0))
			return give_up(tune, end, source, why), false;
		figure = end == TUNE_GOOD ? figure : 0;
		tune->fresh++;
		if (!tune_state_add(&tune->state, key, figure)) {
			fprintf(stderr, "hive tune: %s: %s\n", tune->state.path ? tune->state.path : "samples",
			        strerror(errno));
			return tune->exit_code = 1, false;
		}
	}
	if (!(figure > 0))
		drop(tune, stage, candidate, source, why);
	*figure_at(tune, stage, candidate, source, round) = figure;
	return true;
}

static uint64_t hash(const char *text, uint64_t seed)
{
	for (; *text; text++)
		seed = (seed ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return seed;
}

static void shuffle(size_t *order, size_t count, uint64_t random)
{
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	for (size_t i = count; i > 1; i--) {
		size_t other = (size_t)(tune_random(&random) % i), keep = order[i - 1];
		order[i - 1] = order[other];
		order[other] = keep;
	}
}

/* False: the end of the run, or of its time. */
static bool run_round(struct tune *tune, struct tune_stage *stage, size_t *order, int round, int64_t until_ns)
{
	bool known = round_is_known(tune, stage, round);
	shuffle(order, stage->count, hash(stage->key, tune->seed) + (uint64_t)round);
	for (size_t i = 0; i < stage->count; i++) {
		for (int source = 0; source < tune_job_sources(&tune->job) && !stage->failed[order[i]]; source++)
			if ((!known && sync_now() >= until_ns) || !measure(tune, stage, order[i], source, round, known))
				return false;
		if (!known)
			tune_progress_sample(tune, stage, (size_t)round * stage->count + i + 1,
			                     stage->count * (size_t)stage->rounds);
	}
	return true;
}

/* Each sample by the median of the defaults; several scenarios by their geometric mean. */
static double score(const struct tune *tune, const struct tune_stage *stage, size_t candidate, int round)
{
	double sum = 0;
	int sources = tune_job_sources(&tune->job);
	for (int source = 0; source < sources; source++) {
		double ratio = log(*figure_at(tune, stage, candidate, source, round) / stage->base[source]);
		sum += tune_job_more(&tune->job, source) ? ratio : -ratio;
	}
	return exp(sum / sources);
}

static double quantile(const double *sorted, size_t count, double share)
{
	double at = share * (double)(count - 1);
	size_t below = (size_t)at;
	double above = below + 1 < count ? sorted[below + 1] : sorted[below];
	return sorted[below] + (at - (double)below) * (above - sorted[below]);
}

/* The standard deviation that the middle half of the samples has if they are normal: one sample in company of something else does not
 * make a gain invisible, and figures that jump between two levels still have a large one.                                         */
static double spread_of(const double *sorted, size_t count)
{
	return (quantile(sorted, count, 0.75) - quantile(sorted, count, 0.25)) / 1.349;
}

static void compare(const struct tune *tune, struct tune_stage *stage, double *values)
{
	size_t done = (size_t)stage->done;
	for (int source = 0; source < tune_job_sources(&tune->job); source++) {
		memcpy(values, figure_at(tune, stage, 0, source, 0), done * sizeof *values);
		stage->base[source] = stats_median(values, done);
	}
	for (size_t i = 0; i < stage->count; i++) {
		for (int round = 0; round < stage->done && !stage->failed[i]; round++)
			values[round] = score(tune, stage, i, round);
		stage->medians[i] = stage->failed[i] ? 0 : stats_median(values, done); /* sorts them */
		stage->spreads[i] = stage->failed[i] ? 0 : spread_of(values, done);
	}
}

bool tune_stage_run(struct tune *tune, struct tune_stage *stage, int64_t until_ns)
{
	size_t *order = calloc(stage->count, sizeof *order);
	double *values = calloc((size_t)stage->rounds, sizeof *values);
	if (!order || !values)
		tune->exit_code = 1, tune_progress_note(tune, "out of memory");
	while (!tune->exit_code && stage->done < stage->rounds && run_round(tune, stage, order, stage->done, until_ns))
		stage->done++;
	if (!tune->exit_code && stage->done > 0) {
		compare(tune, stage, values);
		tune_progress_stage(tune, stage);
	}
	free(order);
	free(values);
	return !tune->exit_code;
}

size_t tune_stage_find(const struct tune_stage *stage, const struct tune_candidate *candidate)
{
	for (size_t i = 0; i < stage->count; i++)
		if (tune_candidate_equal(&stage->candidates[i], candidate))
			return i;
	return SIZE_MAX;
}

bool tune_stage_beats(const struct tune_stage *stage, size_t a, size_t b)
{
	double spread = stage->spreads[a] > stage->spreads[b] ? stage->spreads[a] : stage->spreads[b];
	return stage->done >= TUNE_ENOUGH && !stage->failed[a] && stage->medians[a] - stage->medians[b] > spread;
}

/* By insertion: sets are small, and equals keep their order. */
void tune_stage_rank(const struct tune_stage *stage, size_t *ret_order)
{
	for (size_t i = 1; i < stage->count; i++) {
		size_t at = i - 1;
		for (; at > 0 && stage->medians[ret_order[at - 1]] < stage->medians[i]; at--)
			ret_order[at] = ret_order[at - 1];
		ret_order[at] = i;
	}
}
