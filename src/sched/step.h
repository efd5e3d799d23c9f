/* SPDX-License-Identifier: MIT */
#pragma once
/* A step of the beat: so many tasks, for so long. Of worker.c alone. */
#include "sched/internal.h"

/* A step goes on until its budget is used up, its slice is over, or there is nothing left. The clock is read after the
 * first task, and then after each one while they take long, after every few while they are short: reading it costs as
 * much as a short task.                                                                                              */
typedef bool step_source(struct worker *w, struct hive_task *ret_task);
typedef bool step_question(struct worker *w);

struct step {
	uint32_t done, budget, next_look;
	int64_t began_ns, slice_ns;
	bool close;          /* the clock is looked at after each task: its beat must not last longer than its frame */
	step_source *next;   /* where its tasks come from */
	step_question *more; /* whether there are any */
};

/* It has just got up, and knows what time that was. */
static inline int64_t time_of_step(struct worker *w)
{
	int64_t up_ns = w->up_ns;

	w->up_ns = 0;
	return up_ns ? up_ns : hive__now(w->hive);
}

static inline void fit_into_frame(const struct worker *w, struct step *s)
{
	int64_t left_ns = w->frame_end_ns - s->began_ns;

	s->close = true;
	if (left_ns < s->slice_ns)
		s->slice_ns = left_ns;
}

static inline struct step step_begin(struct worker *w, int32_t budget, step_source *next, step_question *more)
{
	/* A single task has no need of the time. */
	int64_t began_ns = budget > 1 ? time_of_step(w) : 0;
	struct step s = { 0, (uint32_t)budget, 1, began_ns, w->setup.slice_ns, false, next, more };

	if (w->frame_end_ns)
		fit_into_frame(w, &s);
	return s;
}

static inline uint32_t stride(const struct step *s, int64_t spent_ns)
{
	int64_t each_ns = spent_ns / s->done;

	if (each_ns >= s->slice_ns / TUNE_SHORT)
		return 1;
	return each_ns >= s->slice_ns / TUNE_TINY ? TUNE_SHORT_STRIDE : TUNE_TINY_STRIDE;
}

static inline bool step_goes_on(struct worker *w, struct step *s)
{
	int64_t spent_ns;
	uint32_t next;

	if (s->done >= s->budget || hive__is_halted(w))
		return false;
	if (s->done < s->next_look || (s->more && !s->more(w))) /* for the end of it nobody needs the time */
		return true;
	spent_ns = hive__now(w->hive) - s->began_ns;
	next = s->close ? 1 : stride(s, spent_ns);
	w->tiny = next == TUNE_TINY_STRIDE;
	s->next_look += next;
	return spent_ns < s->slice_ns;
}
