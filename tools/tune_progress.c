/* SPDX-License-Identifier: MIT */
#include "sync.h"
#include "tune.h"

/* What is under way, on stderr: one line that changes on a terminal, else a line for each stage. */
#define WIDTH 78

static void clear(const struct tune *tune)
{
	if (tune->terminal)
		fputs("\r\x1b[K", stderr);
}

static size_t best_of(const struct tune_stage *stage)
{
	size_t best = 0;
	for (size_t i = 1; i < stage->count; i++)
		if (!stage->failed[i] && stage->medians[i] > stage->medians[best])
			best = i;
	return best;
}

static void put_time(char *text, size_t size, int64_t ns)
{
	long long seconds = (long long)(ns / 1000000000);
	snprintf(text, size, "%lld:%02lld", seconds / 60, seconds % 60);
}

void tune_progress_sample(const struct tune *tune, const struct tune_stage *stage, size_t done, size_t all)
{
	char line[256], passed[32], limit[40] = "";
	if (!tune->terminal)
		return;
	put_time(passed, sizeof passed, sync_now() - tune->began_ns);
	if (tune->until_ns != INT64_MAX) {
		limit[0] = '/';
		put_time(limit + 1, sizeof limit - 1, tune->until_ns - tune->began_ns);
	}
	int filled = (int)(done * 20 / all);
	snprintf(line, sizeof line, "%s%s [%.*s%.*s] %zu of %zu  %s", passed, limit, filled, "####################",
	         20 - filled, "....................", done, all, stage->title);
	fprintf(stderr, "\r\x1b[K%.*s", WIDTH, line);
	fflush(stderr);
}

void tune_progress_stage(const struct tune *tune, const struct tune_stage *stage)
{
	char text[TUNE_TEXT];
	size_t best = best_of(stage);
	if (stage->count == 1)
		return; /* nothing was compared */
	tune_candidate_text(&tune->space, &stage->candidates[best], text, sizeof text);
	clear(tune);
	fprintf(stderr, "%s: %zu candidates, %d of %d rounds; ", stage->title, stage->count, stage->done,
	        stage->rounds);
	if (best == 0)
		fprintf(stderr, "none above the defaults\n");
	else
		fprintf(stderr, "highest %+.1f %% (spread %.1f %%): %s\n", (stage->medians[best] - 1) * 100,
		        stage->spreads[best] * 100, text);
}

void tune_progress_note(const struct tune *tune, const char *text)
{
	clear(tune);
	fprintf(stderr, "hive tune: %s\n", text);
}
