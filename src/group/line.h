/* SPDX-License-Identifier: MIT */
#pragma once
/* A line of tasks, first come first served, without a limit: a list of arrays, each task with a bit beside it. Not thread-safe. It asks nobody
 * for memory: who puts brings an array when there is no room, who takes is given what is used up beyond one spare.         */
#include <stddef.h>
#include <stdint.h>

#include <rophive/task.h>

#if !defined(LINE_TASKS)
#define LINE_TASKS 61 /* 1 KiB with the header, and less than the bits of a word; model checkers use fewer */
#endif

struct line_chunk {
	struct line_chunk *next;
	uint32_t begin, end; /* tasks[begin … end) are queued */
	uint64_t marks;      /* a bit for each */
	struct hive_task tasks[LINE_TASKS];
};

struct line {
	struct line_chunk *first, *last;
	struct line_chunk *spare;
	uint64_t count; /* tasks */
};

static inline bool line_has_room(const struct line *l)
{
	return (l->last && l->last->end < LINE_TASKS) || l->spare;
}

static inline void line_grow(struct line *l, struct line_chunk *chunk)
{
	chunk->next = NULL;
	chunk->begin = chunk->end = 0;
	chunk->marks = 0;
	if (l->last)
		l->last->next = chunk;
	else
		l->first = chunk;
	l->last = chunk;
}

/* *fresh becomes part of the line, and NULL, if there is no room without it. */
static inline void line_put(struct line *l, struct hive_task task, bool mark, struct line_chunk **fresh)
{
	if (!l->last || l->last->end == LINE_TASKS) {
		struct line_chunk **from = l->spare ? &l->spare : fresh;

		line_grow(l, *from);
		*from = NULL;
	}
	l->last->marks |= (uint64_t)mark << l->last->end;
	l->last->tasks[l->last->end++] = task;
	l->count++;
}

/* The caller saw count > 0, as below. */
static inline bool line_first_is_marked(const struct line *l)
{
	return l->first->marks >> l->first->begin & 1;
}

/* The oldest one. *ret_empty: to be freed; else it is left as it is. */
static inline struct hive_task line_take(struct line *l, struct line_chunk **ret_empty)
{
	struct line_chunk *first = l->first;
	struct hive_task task = first->tasks[first->begin++];

	l->count--;
	if (first->begin < first->end)
		return task;
	if (!first->next) { /* it stays, and is empty */
		first->begin = first->end = 0;
		first->marks = 0;
		return task;
	}
	l->first = first->next;
	if (l->spare)
		*ret_empty = first;
	else
		l->spare = first;
	return task;
}
