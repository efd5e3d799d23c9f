/* SPDX-License-Identifier: MIT */
/* The slice of a task: how long it may go on before others are due. Nobody interrupts it: it asks. To ask costs next to nothing, since
 * the clock is read now and then only: after twice as many questions as the last time, while they come fast.                */
#include <rophive/worker.h>

#include "sched/guest.h"
#include "sched/internal.h"
#include "sched/team.h"

/* A task of the worker is one of a beat, and counted. (Timers and sources are not: they share the slice of who ran before.) */
static bool is_of_slice(const struct worker *w)
{
	return w->slice.task == load_relaxed(&w->stats.ran) + 1 && w->slice.beat == w->tick;
}

static void begin(struct worker *w)
{
	w->slice.task = load_relaxed(&w->stats.ran) + 1;
	w->slice.beat = w->tick;
	w->slice.over = false;
	w->slice.stride = 1;
	w->slice.left = 1;
	w->slice.began_ns = 0;
}

/* So many that about TUNE_SLICE_LOOKS of them fit into a slice, as far as one can tell. */
static uint32_t next_stride(const struct slice *s, int64_t spent_ns, int64_t slice_ns)
{
	int64_t part_ns = slice_ns / TUNE_SLICE_LOOKS;

	if (spent_ns <= part_ns / 2)
		return s->stride < TUNE_SLICE_STRIDE ? s->stride * 2 : s->stride;
	if (spent_ns <= part_ns)
		return s->stride;
	return s->stride > 1 ? s->stride / 2 : 1;
}

static bool look(struct worker *w)
{
	struct slice *s = &w->slice;
	int64_t now;

	s->left = 1;
	if (s->over)
		return true;
	now = hive__now(w->hive);
	if (s->began_ns == 0) {
		s->began_ns = s->looked_ns = now ? now : 1;
		return false;
	}
	s->stride = next_stride(s, now - s->looked_ns, w->setup.slice_ns);
	s->looked_ns = now;
	s->over = now - s->began_ns >= w->setup.slice_ns;
	if (!s->over)
		s->left = s->stride;
	return s->over;
}

static inline bool ask(struct worker *w)
{
	if (!is_of_slice(w))
		begin(w);
	return --w->slice.left == 0 && look(w);
}

/* Of others' work one piece may be long: the clock is read each time. How often a task asks is not learnt from that. */
bool hive__slice_is_over(struct worker *w)
{
	struct slice *s = &w->slice;
	int64_t now = hive__now(w->hive);

	if (!is_of_slice(w))
		begin(w);
	if (s->began_ns == 0)
		s->began_ns = s->looked_ns = now ? now : 1;
	if (now - s->began_ns >= w->setup.slice_ns) {
		s->over = true;
		s->left = 1;
	}
	return s->over;
}

bool hive_should_yield(void)
{
	struct worker *w = hive__current();

	return w && ask(w);
}

bool hive__guest_is_due(struct guest_place *place)
{
	return ask(hive__worker_of_place(place));
}
