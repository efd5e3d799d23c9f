/* SPDX-License-Identifier: MIT */
#pragma once
/* What else fibers do meanwhile: files, child processes, datagrams. */
#include <sys/stat.h>

#include "soak/sessions.h"

static char soak_folder[] = "/tmp/rophive.XXXXXX";

static inline void file_chore(struct books *books, uint64_t *random)
{
	uint64_t seed = rng_next(random), mine = rng_next(random);
	uint32_t bytes = rng_below(rng_next(random), 1 << 17);
	unsigned char piece[PIECE];
	struct statx about;
	char path[80];
	int fd;

	snprintf(path, sizeof path, "%s/%016llx", soak_folder, (unsigned long long)mine);
	fd = hive_open(AT_FDCWD, path, O_CREAT | O_EXCL | O_RDWR, 0600, HIVE_FOREVER);
	CHECK(fd >= 0);
	for (uint32_t at = 0; at < bytes;) {
		size_t n = some_of(random, bytes - at, PIECE);

		make_bytes(piece, seed, at, n);
		CHECK_EQ(hive_write(fd, piece, n, at, HIVE_FOREVER), (int64_t)n);
		at += (uint32_t)n;
	}
	CHECK_OK(hive_statx(AT_FDCWD, path, 0, &about, HIVE_FOREVER));
	CHECK_EQ(about.stx_size, bytes);
	CHECK_OK(hive_unlink(AT_FDCWD, path, 0, HIVE_FOREVER));
	for (int i = 0; i < 10; i++) {
		uint32_t from = rng_below(rng_next(random), bytes + 1);
		int64_t n = hive_read(fd, piece, sizeof piece, from, HIVE_FOREVER);

		CHECK_EQ(n, bytes - from < PIECE ? bytes - from : PIECE);
		check_bytes(books, piece, seed, from, (size_t)n);
	}
	CHECK_OK(hive_close(fd, HIVE_FOREVER));
	add_relaxed(&books->files, 1u);
}

/* A page through cat and back: it fits into the pipes. */
static inline void process_chore(struct books *books, uint64_t *random)
{
	static const char *const argv[] = { "cat", NULL };
	uint64_t seed = rng_next(random);
	size_t bytes = rng_below(rng_next(random), PIECE), have = 0;
	int fds[3], process;
	struct hive_process_options options = { .redirect = { true, true }, .ret_fds = fds };
	unsigned char piece[PIECE];
	int64_t n;

	CHECK_OK(hive_process_start(argv, &options, &process));
	make_bytes(piece, seed, 0, bytes);
	CHECK_EQ(hive_write(fds[0], piece, bytes, -1, HIVE_FOREVER), (int64_t)bytes);
	CHECK_OK(hive_close(fds[0], HIVE_FOREVER));
	while ((n = hive_read(fds[1], piece, sizeof piece, -1, HIVE_FOREVER)) > 0) {
		check_bytes(books, piece, seed, have, (size_t)n);
		have += (size_t)n;
	}
	CHECK_EQ(n, 0);
	CHECK_EQ(have, bytes);
	CHECK_OK(hive_close(fds[1], HIVE_FOREVER));
	CHECK_EQ(hive_process_wait(process, HIVE_FOREVER), 0);
	add_relaxed(&books->processes, 1u);
}

/* Each is whole or cut, and none comes twice. */
static inline void datagram_chore(struct books *books, uint64_t *random)
{
	unsigned char piece[PIECE];
	int fds[2];

	CHECK_OK(hive_socket_pair(true, fds));
	for (int i = 0; i < 20; i++) {
		uint64_t seed = rng_next(random);
		size_t bytes = 1 + rng_below(rng_next(random), PIECE), room = 1 + rng_below(rng_next(random), PIECE);
		int64_t n;

		make_bytes(piece, seed, 0, bytes);
		CHECK_EQ(hive_sendto(fds[0], piece, bytes, NULL, HIVE_FOREVER), (int64_t)bytes);
		memset(piece, 0, sizeof piece);
		n = hive_recvfrom(fds[1], piece, room, NULL, HIVE_FOREVER);
		CHECK_EQ(n, bytes > room ? -EMSGSIZE : (int64_t)bytes);
		check_bytes(books, piece, seed, 0, bytes < room ? bytes : room);
	}
	CHECK_ERR(hive_recvfrom(fds[1], piece, 1, NULL, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(hive_close(fds[0], HIVE_FOREVER));
	CHECK_OK(hive_close(fds[1], HIVE_FOREVER));
	add_relaxed(&books->datagrams, 20u);
}
