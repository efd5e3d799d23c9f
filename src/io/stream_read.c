/* SPDX-License-Identifier: MIT */
/* The reader's half of a stream: bytes come in large pieces, and leave as lines, frames or bytes. */
#include <string.h>

#include "io/stream.h"

enum { LENGTH_BYTES = 4 };

static int64_t receive(struct hive_stream *s, void *buffer, size_t bytes, int64_t deadline_ns)
{
	int64_t n = s->is_socket ? hive_recv(s->fd, buffer, bytes, deadline_ns)
	                         : hive_read(s->fd, buffer, bytes, -1, deadline_ns);

	s->ended = n == 0;
	return n;
}

/* What was shown last is gone from here on. */
static void forget_view(struct hive_stream *s)
{
	s->in.from += s->viewed;
	s->viewed = 0;
	if (s->in.from == s->in.to)
		s->in.from = s->in.to = 0;
}

static const char *show(struct hive_stream *s, size_t bytes)
{
	s->viewed = bytes;
	s->searched = 0;
	return s->in.data + s->in.from;
}

/* More into the buffer, which grows with what really came and not with what was announced. > 0; 0: end; -errno. */
static int64_t fill(struct hive_stream *s, int64_t deadline_ns)
{
	size_t least = s->options.read_bytes / 2 + 1, room;
	int64_t n;

	if (!s->in.data ? !hive__span_grow(&s->in, s->options.read_bytes) : !hive__span_grow(&s->in, least))
		return -ENOMEM;
	room = s->in.capacity - s->in.to;
	n = receive(s, s->in.data + s->in.to, room < s->options.read_bytes ? room : s->options.read_bytes, deadline_ns);
	if (n > 0)
		s->in.to += (size_t)n;
	return n;
}

/* Each of these: 1: there is one, *ret_bytes long. 0: more is needed. -EMSGSIZE. */
static int find_line(struct hive_stream *s, size_t *ret_bytes)
{
	size_t has = span_has(&s->in);
	const char *from = has > 0 ? s->in.data + s->in.from : NULL; /* there may be no buffer yet */
	const char *end = has > s->searched ? memchr(from + s->searched, '\n', has - s->searched) : NULL;

	*ret_bytes = end ? (size_t)(end + 1 - from) : has;
	if (*ret_bytes > s->options.frame_limit)
		return -EMSGSIZE;
	s->searched = end ? 0 : has;
	return end ? 1 : 0;
}

static int find_frame(const struct hive_stream *s, size_t *ret_bytes)
{
	size_t has = span_has(&s->in);
	const unsigned char *from;

	if (has < LENGTH_BYTES)
		return 0;
	from = (const unsigned char *)s->in.data + s->in.from;
	*ret_bytes = (size_t)from[0] << 24 | (size_t)from[1] << 16 | (size_t)from[2] << 8 | from[3];
	if (*ret_bytes > s->options.frame_limit)
		return -EMSGSIZE;
	return has - LENGTH_BYTES >= *ret_bytes ? 1 : 0;
}

static int64_t read_line(struct hive_stream *s, const char **ret_line, int64_t deadline_ns)
{
	size_t bytes = 0;
	int64_t r;

	forget_view(s);
	while ((r = find_line(s, &bytes)) == 0) {
		r = s->ended ? 0 : fill(s, deadline_ns);
		if (r < 0)
			return r;
		if (r == 0 && span_has(&s->in) == 0)
			return 0;
		if (r == 0)
			break; /* the last one has no newline */
	}
	if (r < 0)
		return r;
	*ret_line = show(s, bytes);
	return (int64_t)bytes;
}

int64_t hive_stream_read_line(struct hive_stream *stream, const char **ret_line, int64_t deadline_ns)
{
	int64_t r = stream && ret_line ? hive__stream_enter(stream, &stream->reading) : -EINVAL;

	if (r < 0)
		return r;
	r = read_line(stream, ret_line, deadline_ns);
	stream_leave(&stream->reading);
	return r;
}

static int64_t read_frame(struct hive_stream *s, const void **ret_frame, int64_t deadline_ns)
{
	size_t bytes = 0;
	int64_t r;

	forget_view(s);
	while ((r = find_frame(s, &bytes)) == 0) {
		r = s->ended ? 0 : fill(s, deadline_ns);
		if (r < 0)
			return r;
		if (r > 0)
			continue;
		if (span_has(&s->in) > 0)
			return -ENODATA;
		*ret_frame = NULL;
		return 0;
	}
	if (r < 0)
		return r;
	*ret_frame = show(s, LENGTH_BYTES + bytes) + LENGTH_BYTES;
	return (int64_t)bytes;
}

int64_t hive_stream_read_frame(struct hive_stream *stream, const void **ret_frame, int64_t deadline_ns)
{
	int64_t r = stream && ret_frame ? hive__stream_enter(stream, &stream->reading) : -EINVAL;

	if (r < 0)
		return r;
	r = read_frame(stream, ret_frame, deadline_ns);
	stream_leave(&stream->reading);
	return r;
}

/* What is large goes past the buffer. */
static int64_t read_bytes(struct hive_stream *s, void *buffer, size_t bytes, int64_t deadline_ns)
{
	size_t has;
	int64_t n;

	if (bytes == 0)
		return 0;
	forget_view(s);
	s->searched = 0;
	if (span_has(&s->in) == 0) {
		if (s->ended)
			return 0;
		if (bytes >= s->options.read_bytes)
			return receive(s, buffer, bytes, deadline_ns);
		n = fill(s, deadline_ns);
		if (n <= 0)
			return n;
	}
	has = span_has(&s->in) < bytes ? span_has(&s->in) : bytes;
	memcpy(buffer, s->in.data + s->in.from, has);
	s->viewed = has;
	return (int64_t)has;
}

int64_t hive_stream_read(struct hive_stream *stream, void *buffer, size_t bytes, int64_t deadline_ns)
{
	int64_t r = stream && (buffer || bytes == 0) ? hive__stream_enter(stream, &stream->reading) : -EINVAL;

	if (r < 0)
		return r;
	r = read_bytes(stream, buffer, bytes, deadline_ns);
	stream_leave(&stream->reading);
	return r;
}
