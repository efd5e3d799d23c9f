/* SPDX-License-Identifier: MIT */
#pragma once
/* A step of the beat: so many tasks, for so long. Of worker.c, and of guests that go on with the next one themselves. */
#include "sched/internal.h"

/* A step goes on until its budget is used up, its slice is over, or there is nothing left. The clock is read after the
 * first task, and then after each one while they take long, after every few while they are short: reading it costs as
 * much as a short task.                                                                                              */
typedef bool step_source(struct worker *w, struct hive_task *ret_task);
typedef bool step_question(struct worker *w);

struct step {
	uint32_t done, budget;
	uint32_t next_look; /* after so many the clock is read; at most the budget */
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
	struct step s = { 0, (uint32_t)budget, budget > 0, began_ns, w->setup.slice_ns, false, next, more };

	if (w->frame_end_ns)
		fit_into_frame(w, &s);
	return s;
}

/* Looks at the clock. */
bool hive__step_is_in_time(struct worker *w, struct step *s);

/* For one task more, which need not be in the queue. */
static inline bool step_has_time(struct worker *w, struct step *s)
{
	if (hive__is_halted(w))
		return false;
	if (s->done < s->next_look)
		return true;
	return s->done < s->budget && hive__step_is_in_time(w, s);
}

static inline bool step_goes_on(struct worker *w, struct step *s)
{
	if (hive__is_halted(w))
		return false;
	if (s->done < s->next_look)
		return true;
	if (s->done >= s->budget)
		return false;
	return (s->more && !s->more(w)) || hive__step_is_in_time(w, s); /* for the end of it nobody needs the time */
}

/* Whoever runs tasks of the step under way may go on with the next one without coming back (guests do: each return from a stack
 * that was left is one that the processor guesses wrong). False: the step is over, or there is none.                       */
static inline bool step_next(struct worker *w, struct hive_task *ret_task)
{
	struct step *step = w->step;

	if (!step || !step_goes_on(w, step) || !step->next(w, ret_task))
		return false;
	step->done++;
	return true;
}
