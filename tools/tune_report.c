/* SPDX-License-Identifier: MIT */
#include "sync.h"
#include "tune.h"
#include <errno.h>
#include <string.h>

/* What came out, for people, and as C. */
static double percent(double ratio)
{
	return (ratio - 1) * 100;
}

static void put_base(const struct tune *tune, const struct tune_stage *stage, FILE *out)
{
	for (int source = 0; source < tune_job_sources(&tune->job); source++)
		fprintf(out, "defaults: %s %.6g %s (%s is better), median of %d\n", tune_job_name(&tune->job, source),
		        stage->base[source], tune_job_figure(&tune->job, source),
		        tune_job_more(&tune->job, source) ? "more" : "less", stage->done);
	fprintf(out, "          spread %.1f %%\n", stage->spreads[0] * 100);
}

static void put_verdict(const struct tune *tune, const struct tune_outcome *outcome, FILE *out)
{
	char text[TUNE_TEXT];
	const struct tune_stage *final = outcome->final;
	tune_candidate_text(&tune->space, &outcome->winner, text, sizeof text);
	fprintf(out, "best: %s\n", text[0] ? text : "the defaults");
	if (text[0]) {
		size_t at = tune_stage_find(final, &outcome->winner);
		fprintf(out, "      %+.1f %%, spread %.1f %%, median of %d new samples in turns with the defaults\n",
		        percent(final->medians[at]), final->spreads[at] * 100, final->done);
		return;
	}
	if (!final || outcome->short_of_time) {
		if (tune_candidate_changes(&outcome->challenger) > 0 || !outcome->survey)
			fprintf(out, "      the time was over before anything could be judged\n");
		return;
	}
	for (size_t i = 1; i < final->count; i++) {
		tune_candidate_text(&tune->space, &final->candidates[i], text, sizeof text);
		if (final->failed[i])
			fprintf(out, "      not better: %s, which failed\n", text);
		else
			fprintf(out, "      not better by more than the spread, twice: %s, %+.1f %%, spread %.1f %%\n",
			        text, percent(final->medians[i]), final->spreads[i] * 100);
	}
}

/* What setting a parameter back to its default does. */
static void put_effects(const struct tune *tune, const struct tune_outcome *outcome, FILE *out)
{
	const struct tune_stage *effects = outcome->effects;
	char text[TUNE_TEXT];
	if (!effects || effects->failed[1])
		return;
	tune_candidate_text(&tune->space, &outcome->examined, text, sizeof text);
	fprintf(out, "\nwhat mattered: of %s, set back to the default alone\n", text);
	for (int p = 0; p < tune->space.count; p++) {
		struct tune_candidate set_back = outcome->examined;
		set_back.choice[p] = 0;
		size_t at = tune_stage_find(effects, &set_back);
		if (!outcome->examined.choice[p] || at == SIZE_MAX)
			continue;
		const struct tune_parameter *parameter = &tune->space.parameters[p];
		double spread = effects->spreads[at] > effects->spreads[1] ? effects->spreads[at] : effects->spreads[1];
		snprintf(text, sizeof text, "%s=%s", parameter->name,
		         parameter->values[outcome->examined.choice[p] - 1]);
		if (effects->failed[at])
			fprintf(out, "  %-32s fails without it\n", text);
		else
			fprintf(out, "  %-32s %+7.1f %%  spread %.1f %%  %s\n", text,
			        percent(effects->medians[at] / effects->medians[1]), spread / effects->medians[1] * 100,
			        tune_stage_beats(effects, 1, at) ? "matters" : "does not matter");
	}
}

static bool differs_in(const struct tune_candidate *a, const struct tune_candidate *b, int parameter)
{
	for (int p = 0; p < TUNE_PARAMETERS; p++)
		if ((a->choice[p] != b->choice[p]) != (p == parameter))
			return false;
	return true;
}

/* Of each parameter the best and the worst of its other values; they may be the same. */
static void put_row(const struct tune *tune, const struct tune_outcome *outcome, int p, FILE *out)
{
	const struct tune_stage *survey = outcome->survey;
	const struct tune_parameter *parameter = &tune->space.parameters[p];
	size_t around = tune_stage_find(survey, &outcome->around), best = SIZE_MAX, worst = SIZE_MAX;
	for (size_t i = 0; i < survey->count; i++) {
		if (survey->failed[i] || !differs_in(&survey->candidates[i], &outcome->around, p))
			continue;
		best = best == SIZE_MAX || survey->medians[i] > survey->medians[best] ? i : best;
		worst = worst == SIZE_MAX || survey->medians[i] < survey->medians[worst] ? i : worst;
	}
	if (best == SIZE_MAX)
		return;
	fprintf(out, "  %-20s", parameter->name);
	for (int i = 0; i < (best == worst ? 1 : 2); i++) {
		size_t at = i ? worst : best;
		int choice = survey->candidates[at].choice[p];
		fprintf(out, "  %-8s %+6.1f %%", choice ? parameter->values[choice - 1] : "default",
		        percent(survey->medians[at] / survey->medians[around]));
	}
	fputc('\n', out);
}

static void put_survey(const struct tune *tune, const struct tune_outcome *outcome, FILE *out)
{
	char text[TUNE_TEXT];
	if (!outcome->survey || outcome->survey->done == 0)
		return;
	tune_candidate_text(&tune->space, &outcome->around, text, sizeof text);
	fprintf(out,
	        "\nseen on the way: one parameter changed, the others as in %s; its best and its worst other value.\n"
	        "Medians of %d, which say little one by one:\n",
	        text[0] ? text : "the defaults", outcome->survey->done);
	for (int p = 0; p < tune->space.count; p++)
		put_row(tune, outcome, p, out);
}

void tune_report(const struct tune *tune, const struct tune_outcome *outcome, FILE *out)
{
	double seconds = (double)(sync_now() - tune->began_ns) / 1e9;
	const struct tune_stage *base = outcome->final ? outcome->final : outcome->survey;
	fprintf(out, "samples: %llu, of these %llu new, in %.0f seconds\n", (unsigned long long)tune->samples,
	        (unsigned long long)tune->fresh, seconds);
	if (tune->failed)
		fprintf(out, "failed: %d, the last one %s\n", tune->failed, tune->why);
	if (base && base->done > 0)
		put_base(tune, base, out);
	put_verdict(tune, outcome, out);
	put_effects(tune, outcome, out);
	put_survey(tune, outcome, out);
}

static void put_initializers(const struct tune *tune, const struct tune_candidate *winner, bool of_hive, FILE *out)
{
	char text[64];
	int count = 0;
	fprintf(out, "#define %s ", of_hive ? "HIVE_TUNED_HIVE" : "HIVE_TUNED_WORKER");
	for (int p = 0; p < tune->space.count; p++) {
		const struct tune_parameter *parameter = &tune->space.parameters[p];
		if (!winner->choice[p] || parameter->of_hive != of_hive)
			continue;
		tune_value_in_c(parameter, winner->choice[p], text, sizeof text);
		fprintf(out, "%s.%s = %s", count++ ? ", " : "", parameter->name, text);
	}
	fputs(count ? "\n" : ".reserved = { 0 } /* the defaults */\n", out);
}

bool tune_report_write(const struct tune *tune, const struct tune_outcome *outcome, const char *path)
{
	FILE *out = fopen(path, "w");
	bool good = out != NULL;
	if (good) {
		fputs("/* Parameters found by `hive tune`. To be used as\n"
		      " *   struct hive_worker_options io = { HIVE_TUNED_WORKER };\n"
		      " *   struct hive_options options = { HIVE_TUNED_HIVE, .io_workers = HIVE_AUTO, .io = &io };\n */\n"
		      "#pragma once\n#include <rophive/hive.h>\n\n",
		      out);
		put_initializers(tune, &outcome->winner, false, out);
		put_initializers(tune, &outcome->winner, true, out);
		good = fflush(out) == 0;
	}
	if (!good)
		fprintf(stderr, "hive tune: %s: %s\n", path, strerror(errno));
	if (out)
		good &= fclose(out) == 0;
	return good;
}
