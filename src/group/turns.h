/* SPDX-License-Identifier: MIT */
#pragma once
/* Whose turn it is in a strand. Its tasks wait in a line; up to `width` drains take them one by one. A drain rests, is called when there is
 * something to take and then is out until it finds nothing to take.
 *
 * Everything here is under the latch of one word, so that there is no moment between "nothing is left" and "it rests" into which a post
 * could fall: who posts finds the drain out, and it will look again; or resting, and calls it.
 *
 *   TURNS-A  While there is something to take, some drain is out.
 *   TURNS-B  A marked task is taken when nothing runs, and nothing is taken while it runs. Drains that rest because of it are not needed: the
 *            last one that ends looks again, and so does the marked one's.
 *   TURNS-C  HELD from the first put until all drains rest and the line is empty. Until then a drain may be on its way that finds nothing: a
 *            strand that has nothing to do may be destroyed all the same.                                                 */
#include "base/latch.h"
#include "group/line.h"

#define TURNS_HELD UINT64_C(2)   /* the strand holds its hive */
#define TURNS_ALONE UINT64_C(4)  /* a marked task runs */
#define TURNS_GONE UINT64_C(8)   /* destroyed while drains were out for nothing: the last one frees it */
#define TURNS_RUNS UINT64_C(256) /* one task that runs */
#define TURNS_RUNNING(word) ((word) / TURNS_RUNS)

enum { TURNS_WIDTH_MAX = 64, TURNS_NOBODY = -1 };

struct turns {
	ATOMIC(uint64_t) word; /* A  latch, flags, how many run */
	uint32_t width;        /* I */
	uint64_t resting;      /* L word  a bit for each drain */
	uint64_t taken;        /* L word  so far; so many are numbered */
	uint64_t *numbers;     /* L word  of the task that a drain runs; UINT64_MAX: it runs none */
	struct line line;      /* L word */
};

static inline uint64_t turns_all(const struct turns *t)
{
	return UINT64_MAX >> (TURNS_WIDTH_MAX - t->width);
}

static inline void turns_init(struct turns *t, uint32_t width, uint64_t *numbers)
{
	store_relaxed(&t->word, (uint64_t)0);
	t->width = width;
	t->numbers = numbers;
	t->taken = 0;
	t->resting = turns_all(t);
	t->line.first = t->line.last = t->line.spare = NULL;
	t->line.count = 0;
	for (uint32_t i = 0; i < width; i++)
		numbers[i] = UINT64_MAX;
}

static inline bool turns_may_take(const struct turns *t, uint64_t word)
{
	if (t->line.count == 0 || (word & TURNS_ALONE))
		return false;
	return TURNS_RUNNING(word) == 0 || !line_first_is_marked(&t->line);
}

/* A drain that the caller makes ready; TURNS_NOBODY: enough are on their way. */
static inline int turns_call(struct turns *t, uint64_t word)
{
	uint64_t out = t->width - (uint64_t)__builtin_popcountll(t->resting), coming = out - TURNS_RUNNING(word);
	int drain;

	if (!t->resting || coming >= t->line.count || !turns_may_take(t, word))
		return TURNS_NOBODY;
	drain = __builtin_ctzll(t->resting);
	t->resting &= t->resting - 1;
	return drain;
}

/* The caller has seen to it that there is room or *fresh, and holds the hive, or finds it held: then his hold is one too many, and he is told
 * so. Whom he has to make ready.                                                                                         */
static inline int turns_put(struct turns *t, uint64_t *word, struct hive_task task, bool mark,
                            struct line_chunk **fresh, bool *ret_was_held)
{
	*ret_was_held = *word & TURNS_HELD;
	*word |= TURNS_HELD;
	line_put(&t->line, task, mark && t->width > 1, fresh);
	return turns_call(t, *word);
}

/* A drain that is out. False: nothing may be taken now. */
static inline bool turns_take(struct turns *t, uint64_t *word, int drain, struct hive_task *ret_task,
                              struct line_chunk **ret_empty)
{
	if (!turns_may_take(t, *word))
		return false;
	if (line_first_is_marked(&t->line))
		*word |= TURNS_ALONE;
	*word += TURNS_RUNS;
	t->numbers[drain] = t->taken++;
	*ret_task = line_take(&t->line, ret_empty);
	return true;
}

/* What it has taken has ended. */
static inline void turns_end(struct turns *t, uint64_t *word, int drain)
{
	*word = (*word - TURNS_RUNS) & ~TURNS_ALONE;
	t->numbers[drain] = UINT64_MAX;
}

/* It found nothing to take. True: nobody is out and nothing is left, and the caller gives the hold back. */
static inline bool turns_rest(struct turns *t, uint64_t *word, int drain)
{
	t->resting |= UINT64_C(1) << drain;
	if (t->resting != turns_all(t) || t->line.count > 0)
		return false;
	*word &= ~TURNS_HELD;
	return true;
}

/* Nothing is queued, nothing runs. */
static inline bool turns_are_over(const struct turns *t, uint64_t word)
{
	return t->line.count == 0 && TURNS_RUNNING(word) == 0;
}

/* Tasks with smaller numbers have ended. */
static inline uint64_t turns_ended(const struct turns *t)
{
	uint64_t ended = t->taken;

	for (uint32_t i = 0; i < t->width; i++)
		if (t->numbers[i] < ended)
			ended = t->numbers[i];
	return ended;
}
