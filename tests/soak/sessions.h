/* SPDX-License-Identifier: MIT */
#pragma once
/* Sessions between a client and a server, both fibers: so many bytes there, so many back, each of which is known from a seed. Sizes,
 * pieces, deadlines, and how it ends are left to chance. A byte that is not the one that must come next ends the program.     */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/rng.h"
#include "support/net.h"

enum { PIECE = 4096 };
enum { MODE_CALLS, MODE_FRAMES, MODE_IMPATIENT, MODES }; /* impatient: with deadlines that pass all the time */

struct books {                        /* A  of one round */
	ATOMIC(uint64_t) bytes;       /* that were looked at, on both sides */
	ATOMIC(uint32_t) sessions;    /* of clients that came to their end */
	ATOMIC(uint32_t) given_up;    /* and those that were cancelled, or ended it by a reset */
	ATOMIC(uint32_t) served, cut; /* of the server */
	ATOMIC(uint32_t) inside;      /* its connections */
	ATOMIC(uint32_t) late;        /* deadlines that passed */
	ATOMIC(uint32_t) files, processes, datagrams;
	ATOMIC(uint32_t) called, called_off; /* by callbacks: counted in sessions and given_up too */
	ATOMIC(uint32_t) signals, names;
};

struct session { /* as the client announces it */
	uint64_t seed;
	uint32_t there, back;
	uint32_t mode, spare;
};

static inline unsigned char byte_at(uint64_t seed, uint64_t i)
{
	return (unsigned char)(rng_mix(seed + i / 8) >> (i % 8 * 8));
}

static inline void make_bytes(unsigned char *to, uint64_t seed, uint64_t from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = byte_at(seed, from + i);
}

static inline void check_bytes(struct books *books, const unsigned char *got, uint64_t seed, uint64_t from,
                               size_t count)
{
	for (size_t i = 0; i < count; i++)
		CHECK_EQ(got[i], byte_at(seed, from + i));
	add_relaxed(&books->bytes, (uint64_t)count);
}

static inline size_t some_of(uint64_t *random, uint32_t rest, uint32_t most)
{
	uint32_t n = 1 + rng_below(rng_next(random), most);

	return n < rest ? n : rest;
}

static inline int64_t soon(uint64_t *random)
{
	return hive_deadline(NULL, (int64_t)rng_below(rng_next(random), 200000));
}

/* ---- by calls ---- */

static inline int send_bytes(struct books *books, int fd, const struct session *s, uint64_t seed, uint32_t count,
                             uint64_t *random)
{
	unsigned char piece[PIECE];

	for (uint32_t at = 0; at < count;) {
		size_t n = some_of(random, count - at, PIECE);
		int64_t r;

		make_bytes(piece, seed, at, n);
		r = hive_send(fd, piece, n, s->mode == MODE_IMPATIENT ? soon(random) : HIVE_FOREVER);
		if (r == -ETIMEDOUT && s->mode == MODE_IMPATIENT)
			add_relaxed(&books->late, 1u);
		else if (r < 0)
			return (int)r;
		else
			at += (uint32_t)r;
	}
	return 0;
}

static inline int recv_bytes(struct books *books, int fd, const struct session *s, uint64_t seed, uint32_t count,
                             uint64_t *random)
{
	unsigned char piece[PIECE];

	for (uint32_t at = 0; at < count;) {
		size_t n = some_of(random, count - at, PIECE);
		int64_t r = hive_recv(fd, piece, n, s->mode == MODE_IMPATIENT ? soon(random) : HIVE_FOREVER);

		if (r == -ETIMEDOUT && s->mode == MODE_IMPATIENT) {
			add_relaxed(&books->late, 1u);
			continue;
		}
		if (r <= 0)
			return r < 0 ? (int)r : -ENODATA;
		check_bytes(books, piece, seed, at, (size_t)r);
		at += (uint32_t)r;
	}
	return 0;
}

/* ---- by streams ---- */

static inline int write_frames(struct hive_stream *stream, uint64_t seed, uint32_t count, uint64_t *random)
{
	unsigned char piece[PIECE];

	for (uint32_t at = 0; at < count;) {
		size_t n = some_of(random, count - at, PIECE);
		int r;

		make_bytes(piece, seed, at, n);
		r = hive_stream_write_frame(stream, piece, n, HIVE_FOREVER);
		if (r < 0)
			return r;
		at += (uint32_t)n;
	}
	return hive_stream_flush(stream, HIVE_FOREVER);
}

static inline int read_frames(struct books *books, struct hive_stream *stream, uint64_t seed, uint32_t count)
{
	for (uint32_t at = 0; at < count;) {
		const void *frame;
		int64_t r = hive_stream_read_frame(stream, &frame, HIVE_FOREVER);

		if (r <= 0)
			return r < 0 ? (int)r : -ENODATA;
		CHECK((uint64_t)at + (uint64_t)r <= count);
		check_bytes(books, frame, seed, at, (size_t)r);
		at += (uint32_t)r;
	}
	return 0;
}

static inline int by_stream(struct books *books, int fd, const struct session *s, bool client, uint64_t *random)
{
	struct hive_stream_options options = { .high_water = 1 + rng_below(rng_next(random), 20000) };
	struct hive_stream *stream;
	int r, copy = dup(fd);

	if (copy < 0 || hive_stream_create(copy, &options, &stream) < 0) {
		if (copy >= 0)
			close(copy);
		return -EMFILE;
	}
	r = client ? write_frames(stream, s->seed, s->there, random) : read_frames(books, stream, s->seed, s->there);
	if (r == 0)
		r = client ? read_frames(books, stream, ~s->seed, s->back)
		           : write_frames(stream, ~s->seed, s->back, random);
	hive_stream_destroy(stream, HIVE_NOWAIT);
	return r;
}

/* ---- the two sides ---- */

static inline int serve_session(struct books *books, int fd, uint64_t *random)
{
	struct session s;
	int r = hive_recv_all(fd, &s, sizeof s, HIVE_FOREVER);

	if (r < 0)
		return r;
	CHECK(s.mode < MODES);
	if (s.mode == MODE_FRAMES)
		return by_stream(books, fd, &s, false, random);
	r = recv_bytes(books, fd, &s, s.seed, s.there, random);
	return r < 0 ? r : send_bytes(books, fd, &s, ~s.seed, s.back, random);
}

static inline int serve_one(int fd, void *arg)
{
	struct books *books = arg;
	uint64_t random = (uint64_t)hive_now(NULL);
	char byte;
	int r;

	add_relaxed(&books->inside, 1u);
	r = serve_session(books, fd, &random);
	if (r == 0)
		r = (int)hive_recv(fd, &byte, 1, HIVE_FOREVER); /* the peer ends it */
	CHECK(r == 0 || r == -ECONNRESET || r == -EPIPE || r == -ENODATA || r == -ECANCELED);
	add_relaxed(r == 0 ? &books->served : &books->cut, 1u);
	hive_close(fd, HIVE_FOREVER);
	sub_acq_rel(&books->inside, 1u);
	return 0;
}

static inline int whole_session(struct books *books, int fd, const struct session *s, bool half_closes,
                                uint64_t *random)
{
	char byte;
	int r;

	if (s->mode == MODE_FRAMES) {
		r = by_stream(books, fd, s, true, random);
	} else {
		r = send_bytes(books, fd, s, s->seed, s->there, random);
		if (r == 0 && half_closes)
			r = hive_shutdown(fd, SHUT_WR, HIVE_FOREVER);
		if (r == 0)
			r = recv_bytes(books, fd, s, ~s->seed, s->back, random);
	}
	if (r == 0 && (s->mode == MODE_FRAMES || !half_closes))
		r = hive_shutdown(fd, SHUT_WR, HIVE_FOREVER);
	return r < 0 ? r : (int)hive_recv(fd, &byte, 1, HIVE_FOREVER); /* so does the server */
}

static inline void reset_it(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
}

/* Ends it where it likes. */
static inline void part_of_session(struct books *books, int fd, const struct session *s, uint64_t *random)
{
	struct session part = *s;

	part.there = (uint32_t)some_of(random, s->there + 1, s->there + 1);
	part.back = (uint32_t)some_of(random, s->back + 1, s->back + 1) - 1;
	part.mode = MODE_CALLS;
	if (s->mode != MODE_FRAMES && send_bytes(books, fd, s, s->seed, part.there - 1, random) == 0 &&
	    part.there - 1 == s->there)
		recv_bytes(books, fd, &part, ~s->seed, part.back, random);
	if (rng_next(random) % 2)
		reset_it(fd);
}
