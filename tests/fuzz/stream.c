/* SPDX-License-Identifier: MIT */
/* A stream over a pair of sockets against an array of bytes: lines, frames and bytes in any order, whatever the pieces in which they come, around
 * the limits; and what is written, as the peer sees it. One thread that never waits, so every answer is exact.                */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rophive/io.h>

#include "fuzz.h"

enum { ROOM = 1 << 14 };

struct world {
	struct hive_stream *stream;
	struct hive_stream_options options;
	int peer;
	bool ended;      /* the peer sends no more */
	size_t from, to; /* of what it has sent, and was not read */
	uint8_t bytes[ROOM];
	size_t written; /* of what the stream has sent, and the peer has not read */
	uint8_t out[ROOM];
};

static size_t left(const struct world *w)
{
	return w->to - w->from;
}

static void open_world(struct world *w, struct input *in)
{
	int fds[2];

	memset(w, 0, sizeof *w);
	w->options.frame_limit = 1 + input_below(in, 24);
	w->options.read_bytes = 1 + input_below(in, 16);
	EXPECT_EQ(hive_socket_pair(false, fds), 0);
	w->peer = fds[1];
	EXPECT_EQ(hive_stream_create(fds[0], &w->options, &w->stream), 0);
}

/* Bytes of the input as they are, or what is rare among them: newlines, small lengths. */
static void peer_sends(struct world *w, struct input *in)
{
	uint32_t how = input_below(in, 4), count = input_below(in, 20);
	uint8_t piece[24];

	if (w->ended || w->to + sizeof piece > ROOM)
		return;
	if (how == 0 && count >= 4) {
		memset(piece, 0, 3);
		piece[3] = input_byte(in);
	}
	for (uint32_t i = how == 0 && count >= 4 ? 4 : 0; i < count; i++)
		piece[i] = how == 1 ? 0 : how == 2 && i + 1 == count ? '\n' : input_byte(in);
	if (count > 0)
		EXPECT_EQ(send(w->peer, piece, count, MSG_DONTWAIT), count);
	memcpy(w->bytes + w->to, piece, count);
	w->to += count;
}

static void peer_ends(struct world *w)
{
	EXPECT_EQ(shutdown(w->peer, SHUT_WR), 0);
	w->ended = true;
}

static void read_line(struct world *w)
{
	const uint8_t *from = w->bytes + w->from, *end = memchr(from, '\n', left(w));
	size_t bytes = end ? (size_t)(end + 1 - from) : left(w);
	int64_t expected = bytes > w->options.frame_limit ? -EMSGSIZE : end || w->ended ? (int64_t)bytes : -ETIMEDOUT;
	const char *line = NULL;

	EXPECT_EQ(hive_stream_read_line(w->stream, &line, HIVE_NOWAIT), expected);
	if (expected <= 0)
		return;
	EXPECT(memcmp(line, from, bytes) == 0);
	w->from += bytes;
}

static int64_t expected_frame(const struct world *w, size_t *ret_bytes)
{
	const uint8_t *from = w->bytes + w->from;

	if (left(w) < 4)
		return !w->ended ? -ETIMEDOUT : left(w) > 0 ? -ENODATA : 0;
	*ret_bytes = (size_t)from[0] << 24 | (size_t)from[1] << 16 | (size_t)from[2] << 8 | from[3];
	if (*ret_bytes > w->options.frame_limit)
		return -EMSGSIZE;
	if (left(w) - 4 < *ret_bytes)
		return w->ended ? -ENODATA : -ETIMEDOUT;
	return (int64_t)*ret_bytes;
}

static void read_frame(struct world *w)
{
	size_t bytes = SIZE_MAX;
	int64_t expected = expected_frame(w, &bytes);
	const void *frame = w;

	EXPECT_EQ(hive_stream_read_frame(w->stream, &frame, HIVE_NOWAIT), expected);
	if (expected < 0)
		return;
	EXPECT((frame == NULL) == (bytes == SIZE_MAX)); /* an end, or an empty one */
	if (!frame)
		return;
	EXPECT(memcmp(frame, w->bytes + w->from + 4, bytes) == 0);
	w->from += 4 + bytes;
}

/* As many as it likes, but at least one. */
static void read_bytes(struct world *w, struct input *in)
{
	uint8_t piece[40];
	size_t most = input_below(in, sizeof piece);
	int64_t n = hive_stream_read(w->stream, piece, most, HIVE_NOWAIT);

	if (most == 0 || left(w) == 0) {
		EXPECT_EQ(n, most == 0 || w->ended ? 0 : -ETIMEDOUT);
		return;
	}
	EXPECT(n > 0 && (size_t)n <= most && (size_t)n <= left(w));
	EXPECT(memcmp(piece, w->bytes + w->from, (size_t)n) == 0);
	w->from += (size_t)n;
}

static void write_some(struct world *w, struct input *in, bool frame)
{
	size_t count = input_below(in, 40);
	bool fits = !frame || count <= w->options.frame_limit;
	uint8_t piece[44] = { 0, 0, 0, (uint8_t)count };

	if (w->written + sizeof piece > ROOM)
		return;
	for (size_t i = 0; i < count; i++)
		piece[4 + i] = (uint8_t)(w->written + i);
	EXPECT_EQ(frame ? hive_stream_write_frame(w->stream, piece + 4, count, HIVE_NOWAIT)
	                : hive_stream_write(w->stream, piece + 4, count, HIVE_NOWAIT),
	          fits ? 0 : -EMSGSIZE);
	if (!fits)
		return;
	memcpy(w->out + w->written, frame ? piece : piece + 4, count + (frame ? 4 : 0));
	w->written += count + (frame ? 4 : 0);
}

/* A thread sends by itself, before its call returns: all of it is there. */
static void peer_reads(struct world *w)
{
	static uint8_t got[ROOM];
	size_t have = 0;
	ssize_t n;

	EXPECT_EQ(hive_stream_flush(w->stream, HIVE_NOWAIT), 0);
	while (have < w->written && (n = recv(w->peer, got + have, ROOM - have, MSG_DONTWAIT)) > 0)
		have += (size_t)n;
	EXPECT_EQ(have, w->written);
	EXPECT(memcmp(got, w->out, have) == 0);
	EXPECT(recv(w->peer, got, 1, MSG_DONTWAIT) < 0);
	w->written = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	struct input in = input_of(data, size);

	open_world(&w, &in);
	while (input_more(&in))
		switch (input_below(&in, 16)) {
		case 0:
			if (!w.ended && input_below(&in, 4) == 0)
				peer_ends(&w);
			break;
		case 1:
		case 2:
			read_bytes(&w, &in);
			break;
		case 3:
		case 4:
		case 5:
			read_line(&w);
			break;
		case 6:
		case 7:
		case 8:
			read_frame(&w);
			break;
		case 9:
			write_some(&w, &in, false);
			break;
		case 10:
			write_some(&w, &in, true);
			break;
		case 11:
			peer_reads(&w);
			break;
		default:
			peer_sends(&w, &in);
		}
	peer_reads(&w);
	EXPECT_EQ(hive_stream_destroy(w.stream, HIVE_NOWAIT), 0);
	close(w.peer);
	return 0;
}
