/* SPDX-License-Identifier: MIT */
#include "shrink.h"

#include <stdlib.h>

/* Without the decisions [begin, end). */
static void without(const struct schedule *s, uint32_t begin, uint32_t end, struct schedule *ret_rest)
{
	ret_rest->count = 0;
	for (uint32_t i = 0; i < s->count; i++)
		if (i < begin || i >= end)
			ret_rest->decisions[ret_rest->count++] = s->decisions[i];
}

/* One pass over all pieces of this size. True: something could go. */
static bool remove_pieces(struct schedule *s, uint32_t size, bool (*fails)(const struct schedule *, void *), void *arg)
{
	static struct schedule rest;
	bool smaller = false;

	for (uint32_t at = s->count; at > 0;) {
		uint32_t begin = at > size ? at - size : 0;

		without(s, begin, at, &rest);
		if (fails(&rest, arg)) {
			*s = rest;
			smaller = true;
		}
		at = begin;
	}
	return smaller;
}

void shrink(struct schedule *s, bool (*fails)(const struct schedule *, void *), void *arg)
{
	uint32_t size = s->count;

	while (size > 0) {
		bool smaller = remove_pieces(s, size, fails, arg);

		if (size > s->count && s->count > 0)
			size = s->count;
		if (!smaller || size > 1)
			size /= 2;
	}
}

bool parse_schedule(const char *text, struct schedule *ret_schedule)
{
	struct schedule *s = ret_schedule;

	s->count = 0;
	while (*text) {
		char *end;
		struct decision d = { .step = (uint32_t)strtoul(text, &end, 10), .what = FAULT };

		if (end == text || s->count == DECISIONS_MAX)
			return false;
		if (*end == ':')
			d.what = (int32_t)strtol(end + 1, &end, 10);
		else if (*end++ != '!')
			return false;
		s->decisions[s->count++] = d;
		if (*end == ',')
			end++;
		text = end;
	}
	return true;
}
