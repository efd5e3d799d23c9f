/* SPDX-License-Identifier: MIT */
/* Streams on each core: lines and frames whatever way their bytes arrive, limits, deadlines, back-pressure, ends. */
#include "base/rng.h"
#include "support/net.h"

static struct hive_stream *stream_of(int fd, struct hive_stream_options options)
{
	struct hive_stream *stream;

	CHECK_OK(hive_stream_create(fd, &options, &stream));
	return stream;
}

/* A stream, and the bare other end. */
static struct hive_stream *stream_and(int *ret_other, struct hive_stream_options options)
{
	int fds[2];

	CHECK_OK(hive_socket_pair(false, fds));
	*ret_other = fds[1];
	return stream_of(fds[0], options);
}

static void put(int fd, const void *bytes, size_t count)
{
	CHECK_OK(hive_send_all(fd, bytes, count, HIVE_FOREVER));
}

static void put_text(int fd, const char *text)
{
	put(fd, text, strlen(text));
}

static void check_line(struct hive_stream *stream, const char *text)
{
	const char *line = NULL;

	CHECK_EQ(hive_stream_read_line(stream, &line, HIVE_FOREVER), strlen(text));
	CHECK_EQ(memcmp(line, text, strlen(text)), 0);
}

/* ---- reading ---- */

static int lines(void *arg)
{
	struct hive_stream *s;
	const char *line = "unchanged";
	int other;

	(void)arg;
	s = stream_and(&other, (struct hive_stream_options){ .frame_limit = 10 });
	put_text(other, "one\n\ntwo\r\nha");
	check_line(s, "one\n");
	check_line(s, "\n");
	check_line(s, "two\r\n");
	CHECK_ERR(hive_stream_read_line(s, &line, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_stream_read_line(s, &line, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	CHECK_STR(line, "unchanged");
	put_text(other, "lf");
	CHECK_ERR(hive_stream_read_line(s, &line, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	put_text(other, "\n123456789\n1234567890\n"); /* with its newline: 10 and 11 bytes */
	check_line(s, "half\n");
	check_line(s, "123456789\n");
	CHECK_ERR(hive_stream_read_line(s, &line, HIVE_FOREVER), -EMSGSIZE);
	CHECK_ERR(hive_stream_read_line(s, &line, HIVE_FOREVER), -EMSGSIZE);
	{
		char rest[20];

		CHECK_EQ(hive_stream_read(s, rest, 10, HIVE_FOREVER), 10); /* it is still there */
		CHECK_EQ(memcmp(rest, "1234567890", 10), 0);
	}
	check_line(s, "\n");
	put_text(other, "0123456789"); /* the last one needs no newline, and is as long as it may be */
	CHECK_OK(close(other));
	check_line(s, "0123456789");
	CHECK_EQ(hive_stream_read_line(s, &line, HIVE_FOREVER), 0);
	CHECK_EQ(hive_stream_read_line(s, &line, HIVE_FOREVER), 0);
	CHECK_OK(hive_stream_destroy(s, HIVE_FOREVER));
	return 0;
}

TEST(lines_come_one_by_one)
{
	net_each(lines);
	CHECK_EQ(lines(NULL), 0);
}

static void check_frame(struct hive_stream *stream, const char *text)
{
	const void *frame = NULL;

	CHECK_EQ(hive_stream_read_frame(stream, &frame, HIVE_FOREVER), strlen(text));
	CHECK(frame);
	CHECK_EQ(memcmp(frame, text, strlen(text)), 0);
}

static int frames(void *arg)
{
	struct hive_stream *s;
	const void *frame = "";
	int other;

	(void)arg;
	s = stream_and(&other, (struct hive_stream_options){ .frame_limit = 300 });
	put(other, "\0\0\0\3abc\0\0\0\0\0\0\0\1x\0\0", 18);
	check_frame(s, "abc");
	check_frame(s, "");
	check_frame(s, "x");
	CHECK_ERR(hive_stream_read_frame(s, &frame, HIVE_NOWAIT), -ETIMEDOUT);
	put(other, "\1\54", 2); /* 300 */
	CHECK_ERR(hive_stream_read_frame(s, &frame, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	for (int i = 0; i < 30; i++)
		put(other, "0123456789", 10);
	CHECK_EQ(hive_stream_read_frame(s, &frame, HIVE_FOREVER), 300);
	CHECK_EQ(memcmp((const char *)frame + 290, "0123456789", 10), 0);
	put(other, "\0\0\1\55", 4);
	CHECK_ERR(hive_stream_read_frame(s, &frame, HIVE_FOREVER), -EMSGSIZE);
	{
		char length[4];

		CHECK_EQ(hive_stream_read(s, length, 4, HIVE_FOREVER), 4);
		CHECK_EQ(length[3], 45);
	}
	put(other, "\377\377\377\377", 4);
	CHECK_ERR(hive_stream_read_frame(s, &frame, HIVE_FOREVER), -EMSGSIZE);
	CHECK_EQ(hive_stream_read(s, (char[4]){ 0 }, 4, HIVE_FOREVER), 4);
	put(other, "\0\0\0\2x", 5);
	CHECK_OK(hive_shutdown(other, SHUT_WR, HIVE_FOREVER));
	CHECK_ERR(hive_stream_read_frame(s, &frame, HIVE_FOREVER), -ENODATA);
	CHECK_ERR(hive_stream_read_frame(s, &frame, HIVE_FOREVER), -ENODATA);
	CHECK_EQ(hive_stream_read(s, (char[9]){ 0 }, 9, HIVE_FOREVER), 5);
	CHECK_EQ(hive_stream_read_frame(s, &frame, HIVE_FOREVER), 0);
	CHECK(!frame);
	CHECK_OK(hive_stream_destroy(s, HIVE_FOREVER));
	CHECK_OK(close(other));
	return 0;
}

TEST(frames_come_one_by_one)
{
	net_each(frames);
	CHECK_EQ(frames(NULL), 0);
}

static int plain(void *arg)
{
	struct hive_stream *s;
	char buffer[100];
	int other;

	(void)arg;
	s = stream_and(&other, (struct hive_stream_options){ .read_bytes = 10 });
	CHECK_EQ(hive_stream_read(s, NULL, 0, HIVE_FOREVER), 0);
	CHECK_ERR(hive_stream_read(s, buffer, 1, HIVE_NOWAIT), -ETIMEDOUT);
	put_text(other, "line\n0123456789abcdef");
	check_line(s, "line\n");
	CHECK_EQ(hive_stream_read(s, buffer, 3, HIVE_FOREVER), 3);
	CHECK_EQ(memcmp(buffer, "012", 3), 0);
	CHECK_EQ(hive_stream_read(s, buffer, 100, HIVE_FOREVER), 2);  /* what is there */
	CHECK_EQ(hive_stream_read(s, buffer, 100, HIVE_FOREVER), 11); /* past the buffer */
	CHECK_EQ(memcmp(buffer, "56789abcdef", 11), 0);
	CHECK_OK(close(other));
	CHECK_EQ(hive_stream_read(s, buffer, 100, HIVE_FOREVER), 0);
	CHECK_EQ(hive_stream_read(s, buffer, 1, HIVE_FOREVER), 0);
	CHECK_OK(hive_stream_destroy(s, HIVE_FOREVER));
	return 0;
}

TEST(bytes_come_as_they_are)
{
	net_each(plain);
}

/* ---- any split ---- */

enum { SPLIT_BYTES = 20000, SPLIT_ROUNDS = 6, SPLIT_LIMIT = 700 };

struct split {
	uint64_t rng;
	char bytes[SPLIT_BYTES];
	size_t count, ends[SPLIT_BYTES]; /* of the pieces */
	size_t pieces;
	int fd;
	bool framed, single;
};

/* Lines without newlines inside, or frames with anything. */
static void make(struct split *s)
{
	s->count = s->pieces = 0;
	for (;;) {
		uint64_t bytes = rng_next(&s->rng) % (rng_next(&s->rng) % 8 ? 20 : SPLIT_LIMIT);

		if (s->count + bytes + 5 > SPLIT_BYTES)
			return;
		if (s->framed) {
			s->bytes[s->count++] = 0;
			s->bytes[s->count++] = 0;
			s->bytes[s->count++] = (char)(bytes >> 8);
			s->bytes[s->count++] = (char)bytes;
		}
		for (uint64_t i = 0; i < bytes; i++) {
			char byte = (char)rng_next(&s->rng);

			s->bytes[s->count++] = !s->framed && byte == '\n' ? ' ' : byte;
		}
		if (!s->framed)
			s->bytes[s->count++] = '\n';
		s->ends[s->pieces++] = s->count;
	}
}

static int send_split(void *arg)
{
	struct split *s = arg;

	for (size_t at = 0; at < s->count;) {
		size_t bytes = s->single ? 1 : 1 + rng_next(&s->rng) % (rng_next(&s->rng) % 4 ? 9 : 3000);

		bytes = bytes < s->count - at ? bytes : s->count - at;
		put(s->fd, s->bytes + at, bytes);
		at += bytes;
		if (!s->single && rng_next(&s->rng) % 3 == 0)
			CHECK_OK(hive_yield());
	}
	return hive_shutdown(s->fd, SHUT_WR, HIVE_FOREVER);
}

/* A deadline in the past, or one that may pass, or none: the pieces are the same. */
static int64_t any_deadline(uint64_t *rng)
{
	switch (rng_next(rng) % 3) {
	case 0:
		return HIVE_NOWAIT;
	case 1:
		return hive_deadline(NULL, HIVE_US(20));
	default:
		return HIVE_FOREVER;
	}
}

static int64_t read_any(struct hive_stream *stream, struct split *s, uint64_t *rng, const char **ret)
{
	const void *frame = NULL;
	int64_t n;

	for (;;) {
		int64_t deadline = any_deadline(rng);

		n = s->framed ? hive_stream_read_frame(stream, &frame, deadline)
		              : hive_stream_read_line(stream, ret, deadline);
		if (n != -ETIMEDOUT)
			break;
		CHECK_OK(hive_yield());
	}
	if (s->framed)
		*ret = frame;
	return n;
}

static void compare_split(struct split *s, uint64_t *rng)
{
	static const size_t read_bytes[] = { 1, 2, 3, 7, 64, 0 };
	struct hive_stream *stream = stream_and(
		&s->fd, (struct hive_stream_options){ .frame_limit = SPLIT_LIMIT,
	                                              .read_bytes = read_bytes[rng_next(rng) % 6] });
	struct hive_fiber *fiber;
	const char *piece = NULL;
	size_t from = 0;

	make(s);
	fiber = net_spawn(send_split, s);
	for (size_t i = 0; i < s->pieces; i++) {
		size_t head = s->framed ? 4 : 0, bytes = s->ends[i] - from - head;

		CHECK_EQ(read_any(stream, s, rng, &piece), bytes);
		CHECK_EQ(memcmp(piece, s->bytes + from + head, bytes), 0);
		from = s->ends[i];
	}
	CHECK_EQ(read_any(stream, s, rng, &piece), 0);
	CHECK_EQ(net_join(fiber), 0);
	CHECK_OK(hive_stream_destroy(stream, HIVE_FOREVER));
	CHECK_OK(close(s->fd));
}

static int splits(void *arg)
{
	struct split *s = calloc(1, sizeof *s);
	uint64_t rng;

	(void)arg;
	CHECK(s);
	rng = 5;
	for (int round = 0; round < SPLIT_ROUNDS; round++) {
		s->rng = (uint64_t)round;
		s->framed = round % 2;
		s->single = round / 2 % 3 == 0;
		compare_split(s, &rng);
	}
	free(s);
	return 0;
}

TEST(the_same_pieces_whatever_the_segments)
{
	net_each(splits);
}

/* ---- writing and reading ---- */

static int send_frames(void *arg)
{
	struct hive_stream *stream = arg;
	char bytes[1000];
	uint64_t rng;

	rng = 77;
	for (int i = 0; i < 500; i++) {
		size_t count = rng_next(&rng) % sizeof bytes;

		memset(bytes, i, count);
		CHECK_OK(hive_stream_write_frame(stream, bytes, count, HIVE_FOREVER));
	}
	return hive_stream_flush(stream, HIVE_FOREVER);
}

/* Both directions at once, each half in a fiber of its own, through small buffers. */
static int both_ways(void *arg)
{
	struct hive_stream_options small = {
		.read_bytes = 100, .frame_limit = 1000, .high_water = 3000, .low_water = 10
	};
	struct hive_stream *ends[2];
	struct hive_fiber *fibers[2];
	int fds[2];

	(void)arg;
	CHECK_OK(hive_socket_pair(false, fds));
	for (int i = 0; i < 2; i++) {
		ends[i] = stream_of(fds[i], small);
		CHECK_EQ(hive_stream_fd(ends[i]), fds[i]);
	}
	for (int i = 0; i < 2; i++)
		fibers[i] = net_spawn(send_frames, ends[i]);
	for (int i = 0; i < 2; i++) {
		uint64_t rng;

		rng = 77;
		for (int n = 0; n < 500; n++) {
			size_t count = rng_next(&rng) % 1000;
			const void *frame;

			CHECK_EQ(hive_stream_read_frame(ends[i], &frame, HIVE_FOREVER), count);
			for (size_t at = 0; at < count; at++)
				CHECK_EQ(((const char *)frame)[at], (char)n);
		}
	}
	for (int i = 0; i < 2; i++)
		CHECK_EQ(net_join(fibers[i]), 0);
	for (int i = 0; i < 2; i++)
		CHECK_OK(hive_stream_destroy(ends[i], HIVE_FOREVER));
	return 0;
}

TEST(both_directions_at_once)
{
	net_each(both_ways);
}

static int through_a_pipe(void *arg)
{
	struct hive_stream *in, *out;
	int fds[2];

	(void)arg;
	CHECK_OK(hive_pipe(fds));
	in = stream_of(fds[0], (struct hive_stream_options){ 0 });
	out = stream_of(fds[1], (struct hive_stream_options){ 0 });
	CHECK_OK(hive_stream_write(out, "hello\n", 6, HIVE_FOREVER));
	check_line(in, "hello\n");
	CHECK_OK(hive_stream_write_frame(out, "x", 1, HIVE_FOREVER));
	CHECK_OK(hive_stream_destroy(out, HIVE_FOREVER));
	check_frame(in, "x");
	CHECK_EQ(hive_stream_read(in, (char[1]){ 0 }, 1, HIVE_FOREVER), 0);
	CHECK_OK(hive_stream_destroy(in, HIVE_FOREVER));
	return 0;
}

TEST(pipes_too)
{
	net_each(through_a_pipe);
	CHECK_EQ(through_a_pipe(NULL), 0);
}

/* ---- mistakes ---- */

static int read_forever(void *arg)
{
	const char *line;
	int r;

	while ((r = (int)hive_stream_read_line(arg, &line, HIVE_FOREVER)) == -EBUSY) /* the other one is just asking */
		CHECK_OK(hive_yield());
	return r;
}

static int second_ones(void *arg)
{
	struct hive_stream *s;
	struct hive_fiber *fiber;
	const char *line;
	int other, r = 0;

	(void)arg;
	s = stream_and(&other, (struct hive_stream_options){ 0 });
	fiber = net_spawn(read_forever, s);
	for (int64_t limit = real_patience(); r != -EBUSY; r = (int)hive_stream_read_line(s, &line, HIVE_NOWAIT)) {
		CHECK(hive_now(NULL) < limit);
		CHECK_OK(hive_yield());
	}
	CHECK_ERR(hive_stream_read_frame(s, (const void **)&line, HIVE_NOWAIT), -EBUSY);
	CHECK_ERR(hive_stream_read(s, (char[1]){ 0 }, 1, HIVE_NOWAIT), -EBUSY);
	CHECK_ERR(hive_stream_destroy(s, HIVE_FOREVER), -EBUSY);
	CHECK_OK(hive_stream_write(s, "x", 1, HIVE_FOREVER)); /* the other half is free */
	CHECK_OK(hive_stream_flush(s, HIVE_FOREVER));
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_EQ(net_join(fiber), -ECANCELED);
	put_text(other, "now\n");
	check_line(s, "now\n");
	CHECK_OK(hive_stream_destroy(s, HIVE_FOREVER));
	CHECK_OK(close(other));
	return 0;
}

TEST(a_second_reader_is_told)
{
	net_each(second_ones);
}

TEST(mistakes_are_told_and_the_descriptor_stays)
{
	static const struct hive_stream_options bad[] = { { .low_water = 10, .high_water = 10 },
		                                          { .low_water = 1 << 20 },
		                                          { .frame_limit = SIZE_MAX },
		                                          { .read_bytes = SIZE_MAX },
		                                          { .reserved = { 1 } } };
	char name[] = "/tmp/rophive.XXXXXX";
	struct hive_stream *s = NULL;
	int fds[2], file = mkstemp(name);

	CHECK(file >= 0);
	CHECK_OK(unlink(name));
	CHECK_OK(hive_socket_pair(false, fds));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_ERR(hive_stream_create(fds[0], &bad[i], &s), -EINVAL);
	CHECK_ERR(hive_stream_create(-1, NULL, &s), -EINVAL);
	CHECK_ERR(hive_stream_create(fds[0], NULL, NULL), -EINVAL);
	CHECK_ERR(hive_stream_create(4000, NULL, &s), -EBADF);
	CHECK_ERR(hive_stream_create(file, NULL, &s), -EINVAL);
	CHECK(!s);
	CHECK_OK(close(file));
	CHECK_OK(hive_stream_create(fds[0], NULL, &s));
	CHECK_ERR(hive_stream_write(s, NULL, 1, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_stream_write_frame(s, name, (64 << 10) + 1, HIVE_FOREVER), -EMSGSIZE);
	CHECK_ERR(hive_stream_read(s, NULL, 1, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_stream_read_line(s, NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_stream_read_frame(s, NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_stream_write(NULL, "x", 1, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_stream_flush(NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_stream_fd(NULL), -EINVAL);
	CHECK_OK(hive_stream_destroy(NULL, HIVE_FOREVER));
	CHECK_OK(hive_stream_write(s, NULL, 0, HIVE_NOWAIT));
	CHECK_OK(hive_stream_destroy(s, HIVE_NOWAIT));
	CHECK_ERR(fcntl(fds[0], F_GETFD), -1);
	CHECK_OK(close(fds[1]));
}
