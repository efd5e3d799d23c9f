/* SPDX-License-Identifier: MIT */
/* Chunked bodies, octet by octet but for their data. Extensions and trailers are read over: they are limited, and end with CRLF. */
#include "http.h"

enum chunk_state {
	SIZE_FIRST, /* a digit */
	SIZE,       /* more digits, an extension, or the end of the line */
	EXTENSION,
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER_FIRST, /* a field, or the empty line */
	TRAILER,
	TRAILER_LF,
	END_LF,
	OVER
};

static bool is_text(char c)
{
	return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

/* -1: it does not belong there. */
static int step_size(struct chunks *chunks, char c)
{
	int digit = hex_of(c);

	if (digit >= 0) {
		if (chunks->left >> 56) /* not a length that anybody means */
			return -1;
		chunks->left = chunks->left << 4 | (unsigned)digit;
		return SIZE;
	}
	if (chunks->state == SIZE_FIRST)
		return -1;
	if (c == '\r')
		return SIZE_LF;
	return c == ';' || c == ' ' || c == '\t' ? EXTENSION : -1;
}

static int step(struct chunks *chunks, char c)
{
	switch ((enum chunk_state)chunks->state) {
	case SIZE_FIRST:
	case SIZE:
		return step_size(chunks, c);
	case EXTENSION:
		return c == '\r' ? SIZE_LF : is_text(c) ? EXTENSION : -1;
	case SIZE_LF:
		return c != '\n' ? -1 : chunks->left > 0 ? DATA : TRAILER_FIRST;
	case DATA_CR:
		return c == '\r' ? DATA_LF : -1;
	case DATA_LF:
		return c == '\n' ? SIZE_FIRST : -1;
	case TRAILER_FIRST: /* a folded line would begin with a blank */
		return c == '\r' ? END_LF : is_text(c) && c != ' ' && c != '\t' ? TRAILER : -1;
	case TRAILER:
		return c == '\r' ? TRAILER_LF : is_text(c) ? TRAILER : -1;
	case TRAILER_LF:
		return c == '\n' ? TRAILER_FIRST : -1;
	case END_LF:
		return c == '\n' ? OVER : -1;
	default:
		return -1;
	}
}

bool chunks_over(const struct chunks *chunks)
{
	return chunks->state == OVER;
}

static size_t take_data(struct chunks *chunks, size_t at, size_t count, struct span *ret_data)
{
	size_t bytes = count - at < chunks->left ? count - at : (size_t)chunks->left;

	*ret_data = (struct span){ (uint32_t)at, (uint32_t)bytes };
	chunks->left -= bytes;
	chunks->overhead = 0;
	if (chunks->left == 0)
		chunks->state = DATA_CR;
	return at + bytes;
}

int64_t chunks_parse(struct chunks *chunks, const char *bytes, size_t count, struct span *ret_data)
{
	size_t at = 0;

	*ret_data = (struct span){ 0, 0 };
	while (at < count && !chunks_over(chunks)) {
		int next;

		if (chunks->state == DATA)
			return (int64_t)take_data(chunks, at, count, ret_data);
		next = step(chunks, bytes[at++]);
		if (next < 0 || ++chunks->overhead > CHUNK_OVERHEAD_MAX)
			return -400;
		chunks->state = (uint32_t)next;
	}
	return (int64_t)at;
}
