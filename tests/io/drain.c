/* SPDX-License-Identifier: MIT */
/* The writer's half of a stream, on each core: back-pressure, deadlines, broken connections, ends, callbacks, threads. */
#include <pthread.h>

#include "base/atomic.h"
#include "support/net.h"

enum { BLOCK = 1000 };

/* A stream whose socket takes little, and the bare other end. */
static struct hive_stream *narrow(int *ret_other, struct hive_stream_options options)
{
	struct hive_stream *stream;
	int fds[2], bytes = 1;

	CHECK_OK(hive_socket_pair(false, fds));
	CHECK_OK(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes));
	CHECK_OK(hive_stream_create(fds[0], &options, &stream));
	*ret_other = fds[1];
	return stream;
}

static int64_t stuffed; /* bytes that the socket below holds */

/* The same with a socket that takes nothing any more, until stuffing is received. */
static struct hive_stream *stuff(int *ret_other, struct hive_stream_options options)
{
	static const char zeros[BLOCK];
	struct hive_stream *stream = narrow(ret_other, options);

	stuffed = 0;
	for (size_t bytes = BLOCK; bytes > 0; bytes = bytes == BLOCK ? 1 : 0) {
		ssize_t n;

		while ((n = send(hive_stream_fd(stream), zeros, bytes, MSG_DONTWAIT)) > 0)
			stuffed += n;
		CHECK_EQ(errno, EAGAIN);
	}
	return stream;
}

static void unstuff(int fd)
{
	char byte;

	for (; stuffed > 0; stuffed--) {
		CHECK_OK(hive_recv_all(fd, &byte, 1, HIVE_FOREVER));
		CHECK_EQ(byte, 0);
	}
}

/* Blocks of one letter each, until a write has to wait. How many. */
static int write_until_full(struct hive_stream *stream)
{
	char block[BLOCK];
	int count = 0, r;

	do {
		memset(block, 'a' + count % 26, sizeof block);
		r = hive_stream_write(stream, block, sizeof block, HIVE_NOWAIT);
		count += r == 0;
		CHECK(count < 1000);
	} while (r == 0);
	CHECK_EQ(r, -ETIMEDOUT);
	return count;
}

static void check_blocks(int fd, int from, int to)
{
	char block[BLOCK];

	for (int i = from; i < to; i++) {
		CHECK_OK(hive_recv_all(fd, block, sizeof block, HIVE_FOREVER));
		CHECK_EQ(block[0], 'a' + i % 26);
		CHECK_EQ(block[BLOCK - 1], 'a' + i % 26);
	}
}

static const struct hive_stream_options small = { .high_water = 10 * BLOCK, .low_water = 2 * BLOCK };

/* ---- waiting for room ---- */

static int write_one(void *arg)
{
	char block[BLOCK];
	int r;

	memset(block, 'z', sizeof block);
	while ((r = hive_stream_write(arg, block, sizeof block, HIVE_FOREVER)) ==
	       -EBUSY) /* the other one is just asking */
		CHECK_OK(hive_yield());
	return r;
}

static int pressure(void *arg)
{
	struct hive_stream *s;
	struct hive_fiber *fiber;
	int other, count;
	char byte;

	(void)arg;
	s = stuff(&other, small);
	count = write_until_full(s);
	CHECK_EQ(count, 10);
	CHECK_ERR(hive_stream_flush(s, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_stream_flush(s, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	CHECK_ERR(hive_stream_write(s, "x", 1, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT); /* nothing is taken */
	fiber = net_spawn(write_one, s);
	CHECK_OK(hive_yield());
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_EQ(net_join(fiber), -ECANCELED);
	fiber = net_spawn(write_one, s);
	unstuff(other);
	check_blocks(other, 0, count);
	CHECK_EQ(net_join(fiber), 0);
	CHECK_OK(hive_stream_flush(s, HIVE_FOREVER));
	CHECK_OK(hive_recv_all(other, (char[BLOCK]){ 0 }, BLOCK, HIVE_FOREVER));
	CHECK_OK(hive_stream_destroy(s, HIVE_FOREVER));
	CHECK_EQ(hive_recv(other, &byte, 1, HIVE_FOREVER), 0);
	CHECK_OK(close(other));
	return 0;
}

TEST(a_writer_waits_above_high_water_until_low_water)
{
	net_each(pressure);
}

enum { TOTAL = 8 << 20, PIECE = 4096, SOCKET_HOLDS = 16 << 10 };

static ATOMIC(int64_t) taken;

static int write_fast(void *arg)
{
	static const char piece[PIECE];

	int r = 0;

	store_relaxed(&taken, 0);
	for (int sent = 0; r == 0 && sent < TOTAL; sent += PIECE) {
		r = hive_stream_write(arg, piece, PIECE, HIVE_FOREVER);
		add_relaxed(&taken, PIECE);
	}
	return r < 0 ? r : hive_stream_flush(arg, HIVE_FOREVER);
}

/* How much was taken and not yet received is never more than the marks, one write, and what the socket holds. */
static int slow_reader(void *arg)
{
	struct hive_stream_options options = { .high_water = 64 << 10, .low_water = 16 << 10 };
	struct hive_stream *s;
	struct hive_fiber *fiber;
	static char buffer[PIECE];
	int other;

	(void)arg;
	s = narrow(&other, options);
	fiber = net_spawn(write_fast, s);
	for (int got = 0; got < TOTAL;) {
		int64_t n = hive_recv(other, buffer, sizeof buffer, HIVE_FOREVER);

		CHECK(n > 0);
		got += (int)n;
		CHECK(load_relaxed(&taken) - got <= (64 << 10) + PIECE + SOCKET_HOLDS);
		if (got / PIECE % 16 == 0)
			CHECK_OK(hive_yield());
	}
	CHECK_EQ(net_join(fiber), 0);
	CHECK_OK(hive_stream_destroy(s, HIVE_FOREVER));
	CHECK_OK(close(other));
	return 0;
}

TEST(a_fast_writer_and_a_slow_reader_need_little_memory)
{
	net_each(slow_reader);
}

/* One write may be larger than the marks: it is taken as one. */
static int large(void *arg)
{
	struct hive_stream *s;
	struct hive_fiber *fiber;
	char *bytes = malloc(TOTAL), *got = malloc(TOTAL);
	int other;

	(void)arg;
	CHECK(bytes && got);
	for (int i = 0; i < TOTAL; i++)
		bytes[i] = (char)(i * 7 + i / 251);
	s = narrow(&other, small);
	CHECK_OK(hive_stream_write(s, bytes, TOTAL, HIVE_NOWAIT));
	CHECK_ERR(hive_stream_write(s, bytes, 1, HIVE_NOWAIT), -ETIMEDOUT);
	fiber = net_spawn(write_one, s);
	CHECK_OK(hive_recv_all(other, got, TOTAL, HIVE_FOREVER));
	CHECK_EQ(memcmp(bytes, got, TOTAL), 0);
	CHECK_EQ(net_join(fiber), 0);
	CHECK_OK(hive_stream_destroy(s, HIVE_FOREVER));
	CHECK_OK(hive_recv_all(other, got, BLOCK, HIVE_FOREVER));
	CHECK_EQ(got[0], 'z');
	CHECK_OK(close(other));
	free(bytes);
	free(got);
	return 0;
}

TEST(one_large_write_is_taken_as_one)
{
	net_each(large);
}

static int second_writer(void *arg)
{
	struct hive_stream *s;
	struct hive_fiber *fiber;
	int other, r = 0;

	(void)arg;
	s = stuff(&other, small);
	write_until_full(s);
	fiber = net_spawn(write_one, s);
	for (int64_t limit = real_patience(); r != -EBUSY; r = hive_stream_flush(s, HIVE_NOWAIT)) {
		CHECK(hive_now(NULL) < limit);
		CHECK_OK(hive_yield());
	}
	CHECK_ERR(hive_stream_write(s, "x", 1, HIVE_NOWAIT), -EBUSY);
	CHECK_ERR(hive_stream_write_frame(s, "x", 1, HIVE_NOWAIT), -EBUSY);
	CHECK_ERR(hive_stream_destroy(s, HIVE_NOWAIT), -EBUSY);
	CHECK_ERR(hive_stream_read(s, (char[1]){ 0 }, 1, HIVE_NOWAIT), -ETIMEDOUT); /* the other half is free */
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_EQ(net_join(fiber), -ECANCELED);
	CHECK_ERR(hive_stream_destroy(s, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(close(other));
	return 0;
}

TEST(a_second_writer_is_told)
{
	net_each(second_writer);
}

/* ---- broken connections, and ends ---- */

static int broken(void *arg)
{
	struct hive_stream *s;
	struct hive_fiber *fiber;
	int other, r = 0;

	(void)arg;
	for (int waits = 0; waits < 2; waits++) {
		s = stuff(&other, small);
		if (waits)
			write_until_full(s);
		fiber = net_spawn(waits ? write_one : write_fast, s);
		CHECK_OK(hive_yield());
		CHECK_OK(close(other));
		r = net_join(fiber);
		CHECK_EQ(r, -EPIPE);
		CHECK_ERR(hive_stream_write(s, "x", 1, HIVE_FOREVER), -EPIPE);
		CHECK_ERR(hive_stream_flush(s, HIVE_FOREVER), -EPIPE);
		CHECK_ERR(hive_stream_destroy(s, HIVE_FOREVER), -EPIPE);
	}
	return 0;
}

TEST(a_broken_connection_is_told_by_each_write)
{
	net_each(broken);
}

/* By its deadline, at once, by a cancel: always gone afterwards, and the descriptor closed. */
static int destroy_slowly(void *arg)
{
	return hive_stream_destroy(arg, HIVE_FOREVER);
}

static int ends(void *arg)
{
	struct hive_stream *s;
	struct hive_fiber *fiber;
	int other, fd;

	(void)arg;
	for (int how = 0; how < 4; how++) {
		s = stuff(&other, small);
		fd = hive_stream_fd(s);
		write_until_full(s);
		if (how < 2) {
			CHECK_ERR(hive_stream_destroy(s, how ? hive_deadline(NULL, HIVE_MS(1)) : HIVE_NOWAIT),
			          -ETIMEDOUT);
		} else {
			fiber = net_spawn(destroy_slowly, s);
			if (how == 3)
				CHECK_OK(hive_yield());
			CHECK_OK(hive_fiber_cancel(fiber));
			CHECK_EQ(net_join(fiber), -ECANCELED);
		}
		CHECK_ERR(fcntl(fd, F_GETFD), -1);
		CHECK_OK(close(other));
	}
	s = stuff(&other, small);
	fd = write_until_full(s); /* so many blocks */
	fiber = net_spawn(destroy_slowly, s);
	unstuff(other);
	check_blocks(other, 0, fd);
	CHECK_EQ(net_join(fiber), 0);
	CHECK_OK(close(other));
	return 0;
}

TEST(destroy_flushes_by_its_deadline_and_always_ends)
{
	net_each(ends);
}

static int fill_up(void *arg)
{
	return write_until_full(arg);
}

/* The hive stops while bytes wait: they are still there for a thread that goes on. */
TEST(a_stopped_hive_leaves_the_rest_to_a_thread)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 2, 0);
		struct hive_stream *s;
		struct hive_fiber *fiber;
		int other, result, count;
		static char all[100 * BLOCK];

		s = stuff(&other, small);
		CHECK_OK(hive_block_on(hive, fill_up, s, HIVE_FOREVER, &count));
		CHECK_OK(hive_spawn(hive, write_one, s, NULL, &fiber));
		CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
		CHECK_EQ(result, -ECANCELED);
		real_end(hive, HIVE_NOW);
		unstuff(other);
		for (int64_t got = 0, n; got < count * BLOCK; got += n) {
			hive_stream_flush(s, HIVE_NOWAIT);
			n = hive_recv(other, all, sizeof all, HIVE_FOREVER);
			CHECK(n > 0);
		}
		CHECK_OK(hive_stream_flush(s, HIVE_NOWAIT));
		CHECK_OK(hive_stream_destroy(s, HIVE_NOWAIT));
		CHECK_OK(close(other));
	}
}

/* ---- threads ---- */

struct reader {
	int fd, count;
};

static void *read_blocks(void *arg)
{
	struct reader *reader = arg;

	unstuff(reader->fd);
	check_blocks(reader->fd, 0, reader->count);
	return NULL;
}

TEST(a_thread_sends_by_itself)
{
	struct hive_stream *s;
	struct reader reader = { .count = 300 };
	char block[BLOCK];
	pthread_t thread;

	s = stuff(&reader.fd, small);
	reader.count += write_until_full(s); /* what was taken and not sent goes with the next call */
	CHECK_OK(pthread_create(&thread, NULL, read_blocks, &reader));
	for (int i = reader.count - 300; i < reader.count; i++) {
		memset(block, 'a' + i % 26, sizeof block);
		CHECK_OK(hive_stream_write(s, block, sizeof block, HIVE_FOREVER));
	}
	CHECK_OK(pthread_join(thread, NULL));
	CHECK_OK(hive_stream_flush(s, HIVE_NOWAIT)); /* nothing was left */
	CHECK_OK(close(reader.fd));
	CHECK_ERR(hive_stream_write(s, block, 1, HIVE_FOREVER), -EPIPE);
	CHECK_ERR(hive_stream_destroy(s, HIVE_FOREVER), -EPIPE);
}

/* ---- callbacks ---- */

/* An echo of lines, or of frames, made of tasks and hooks alone: it reads when there is something, and stops reading while what it wrote has no room. */
struct echo {
	struct hive_stream *stream;
	struct hive_op poll;
	struct gate done;
	const char *line; /* read and not yet written */
	int64_t bytes;
	int refusals;
	bool frames;
};

static int64_t read_piece(struct echo *e)
{
	const void *frame = NULL;
	int64_t r;

	if (!e->frames)
		return hive_stream_read_line(e->stream, &e->line, HIVE_NOWAIT);
	r = hive_stream_read_frame(e->stream, &frame, HIVE_NOWAIT);
	e->line = frame;
	return r;
}

static void go_on(struct echo *e)
{
	int64_t r;

	for (;;) {
		if (e->bytes == 0)
			e->bytes = read_piece(e);
		if (e->bytes <= 0)
			break;
		r = (e->frames ? hive_stream_write_frame : hive_stream_write)(e->stream, e->line, (size_t)e->bytes,
		                                                              HIVE_NOWAIT);
		if (r == -ETIMEDOUT) {
			e->refusals++;
			return; /* until on_drain */
		}
		CHECK_OK(r);
		e->bytes = 0;
	}
	r = e->bytes;
	e->bytes = 0;
	if (r == -ETIMEDOUT) {
		CHECK_OK(hive_op_poll(&e->poll, hive_stream_fd(e->stream), HIVE_EVENT_IN, 0, HIVE_FOREVER));
		return;
	}
	CHECK_EQ(r, 0);
	r = hive_stream_flush(e->stream, HIVE_NOWAIT);
	if (r == -ETIMEDOUT)
		return;
	CHECK_OK(r);
	CHECK_OK(hive_stream_destroy(e->stream, HIVE_NOWAIT));
	gate_open(&e->done);
}

static void on_drain(struct hive_stream *stream, void *arg)
{
	CHECK_EQ(stream, ((struct echo *)arg)->stream);
	go_on(arg);
}

static void on_input(struct hive_op *op, int64_t events)
{
	CHECK(events > 0);
	go_on(op->arg);
}

static void begin_echo(void *arg)
{
	go_on(arg);
}

enum { LINES = 3000 };

struct lines {
	int fd;
	bool frames;
};

/* With its length in front, in a frame: where it begins. */
static int line_text(int n, char text[104])
{
	int bytes = snprintf(text + 4, 100, "line %d %.*s\n", n, n % 60,
	                     "............................................................");

	memcpy(text, (char[]){ 0, 0, 0, (char)bytes }, 4);
	return bytes;
}

static void *write_lines(void *arg)
{
	struct lines *to = arg;
	char text[104];

	for (int i = 0; i < LINES; i++) {
		int bytes = line_text(i, text), ahead = to->frames ? 4 : 0;

		CHECK_OK(hive_send_all(to->fd, text + 4 - ahead, (size_t)(bytes + ahead), HIVE_FOREVER));
	}
	CHECK_OK(shutdown(to->fd, SHUT_WR));
	return NULL;
}

/* All of them come back, and the end. */
static void check_echo(struct hive_stream *mine, bool frames)
{
	const void *piece = NULL;
	const char *line = NULL;
	char expected[104];

	for (int n = 0; n <= LINES; n++) {
		int64_t bytes = frames ? hive_stream_read_frame(mine, &piece, HIVE_FOREVER)
		                       : hive_stream_read_line(mine, &line, HIVE_FOREVER);

		CHECK_EQ(bytes, n < LINES ? line_text(n, expected) : 0);
		if (n < LINES)
			CHECK_EQ(memcmp(frames ? piece : line, expected + 4, (size_t)bytes), 0);
	}
}

TEST(callbacks_get_the_same)
{
	for (int i = 0; i < 2 * core_count(); i++) {
		struct hive *hive = net_start(core_names[i / 2], 1, 0);
		struct echo e = { .frames = i % 2 };
		struct lines lines = { .frames = i % 2 };
		struct hive_stream *mine;
		pthread_t writer;

		gate_init(&e.done);
		e.stream = narrow(&lines.fd, (struct hive_stream_options){
						     .high_water = 200, .on_drain = on_drain, .hook_arg = &e });
		hive_op_init(&e.poll, hive, on_input, &e);
		CHECK_OK(hive_post(hive, begin_echo, &e));
		CHECK_OK(hive_stream_create(lines.fd, NULL, &mine));
		CHECK_OK(pthread_create(&writer, NULL, write_lines, &lines));
		check_echo(mine, e.frames);
		gate_pass(&e.done);
		CHECK(e.refusals > 0);
		CHECK_OK(pthread_join(writer, NULL));
		gate_destroy(&e.done);
		CHECK_OK(hive_stream_destroy(mine, HIVE_FOREVER));
		real_end(hive, HIVE_DRAIN);
	}
}

static void destroy_in_task(void *arg)
{
	struct echo *e = arg;

	write_until_full(e->stream);
	CHECK_ERR(hive_stream_flush(e->stream, HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_stream_destroy(e->stream, e->refusals ? HIVE_NOWAIT : HIVE_FOREVER),
	          e->refusals ? -ETIMEDOUT : -EDEADLK);
	gate_open(&e->done);
}

/* The descriptor is closed by whoever is last: the other end sees that. */
TEST(a_task_destroys_without_waiting)
{
	for (int i = 0; i < 2 * core_count(); i++) {
		struct hive *hive = net_start(core_names[i / 2], 1, 0);
		struct echo e = { .refusals = i % 2 };
		char buffer[BLOCK];
		int other;

		gate_init(&e.done);
		e.stream = stuff(&other, small);
		CHECK_OK(hive_post(hive, destroy_in_task, &e));
		gate_pass(&e.done);
		while (hive_recv(other, buffer, sizeof buffer, HIVE_FOREVER) > 0)
			;
		CHECK_OK(close(other));
		gate_destroy(&e.done);
		real_end(hive, HIVE_DRAIN);
	}
}
