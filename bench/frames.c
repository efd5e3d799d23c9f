/* SPDX-License-Identifier: MIT */
#include "frames.h"

void frames_begin(struct frames *frames, int64_t base_ns)
{
	*frames = (struct frames){ .base_ns = base_ns };
}

int64_t frames_due(const struct frames *frames)
{
	return frames->base_ns + frames->next * FRAMES_PERIOD_NS;
}

static void note_late(struct frames *frames, int64_t due_ns, int64_t now_ns, int64_t count)
{
	if (frames->late_count == FRAMES_LATES)
		return;
	frames->lates[frames->late_count].due_ns = due_ns;
	frames->lates[frames->late_count].came_ns = now_ns;
	frames->lates[frames->late_count++].count = count;
}

void frames_tick(struct frames *frames, int64_t now_ns)
{
	int64_t due_ns = frames_due(frames), late_ns = now_ns - due_ns;
	int64_t count = 1 + (late_ns > 0 ? late_ns / FRAMES_PERIOD_NS : 0);
	frames->last_late_ns = late_ns;
	frames->drawn++;
	frames->on_time += late_ns < FRAMES_LATE_NS;
	stats_add(&frames->lateness, late_ns);
	frames->next += count;
	if (late_ns >= FRAMES_LATE_NS)
		note_late(frames, due_ns, now_ns, count);
}

int64_t frames_expected(const struct frames *frames, int64_t now_ns)
{
	if (now_ns < frames->base_ns)
		return 0;
	/* The frame due at this very moment may still come: count it once its time to be on time is over. */
	int64_t due = (now_ns - FRAMES_LATE_NS - frames->base_ns) / FRAMES_PERIOD_NS + 1;
	return due > frames->next ? due : frames->next;
}

double frames_share(const struct frames *frames, int64_t now_ns)
{
	int64_t expected = frames_expected(frames, now_ns);
	return expected > 0 ? (double)frames->on_time / (double)expected : 0;
}

int64_t frames_halted(const struct frames *frames, const struct halts *halts, int64_t now_ns)
{
	bool at_the_end = halts_between(halts, frames_due(frames), now_ns);
	int64_t count = at_the_end ? frames_expected(frames, now_ns) - frames->next : 0;
	for (int i = 0; i < frames->late_count; i++)
		if (halts_between(halts, frames->lates[i].due_ns, frames->lates[i].came_ns))
			count += frames->lates[i].count;
	return count;
}

double frames_share_running(const struct frames *frames, const struct halts *halts, int64_t now_ns)
{
	int64_t expected = frames_expected(frames, now_ns) - frames_halted(frames, halts, now_ns);
	return expected > 0 ? (double)frames->on_time / (double)expected : 0;
}
