/* SPDX-License-Identifier: MIT */
/* Files of which a part is not in memory: what an IO worker sends of them is what is there, a compute worker does the rest. */
#include <sys/mman.h>

#include "support/shot.h"

enum { PAGE = 4096, PAGES = 6, BYTES = PAGES * PAGE };

struct scene {
	struct hive *hive;
	uint32_t compute; /* id */
	int file, pair[2];
	char got[BYTES];
	size_t have;
};

static char text[BYTES];

static int make_file(void)
{
	char name[] = "/tmp/rophive.XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_OK(unlink(name));
	for (size_t i = 0; i < BYTES; i++)
		text[i] = (char)(i / 7 + i / PAGE);
	CHECK_EQ(write(fd, text, BYTES), BYTES);
	CHECK_OK(fsync(fd));
	CHECK_OK(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM)); /* no page is fetched but those that are asked for */
	return fd;
}

static bool is_in_memory(int fd, int page)
{
	unsigned char in[PAGES];
	void *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);

	CHECK(map != MAP_FAILED);
	CHECK_OK(mincore(map, BYTES, in));
	CHECK_OK(munmap(map, BYTES));
	return in[page] & 1;
}

/* Only the first so many pages are in memory. False: not on this file system. */
static bool cool(int fd, int pages)
{
	char byte;

	CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	for (int i = 0; i < pages; i++)
		CHECK_EQ(pread(fd, &byte, 1, (off_t)i * PAGE), 1);
	for (int i = 0; i < PAGES; i++)
		if (is_in_memory(fd, i) != (i < pages))
			return false;
	return true;
}

static void receive(struct scene *s)
{
	ssize_t n;

	while ((n = recv(s->pair[1], s->got + s->have, sizeof s->got - s->have, MSG_DONTWAIT)) > 0)
		s->have += (size_t)n;
}

static uint64_t computed(const struct scene *s)
{
	struct hive_worker_stats stats;

	CHECK_OK(hive_worker_stats_read(s->hive, s->compute, &stats));
	return stats.ran;
}

static bool open_scene(struct scene *s, const char *core)
{
	uint32_t ids[2];

	memset(s, 0, sizeof *s);
	s->file = make_file();
	s->hive = net_start(core, 1, 1);
	CHECK_EQ(hive_workers(s->hive, ids, 2), 2);
	s->compute = ids[1];
	net_pair(s->pair);
	return cool(s->file, 1);
}

static void close_scene(struct scene *s)
{
	real_end(s->hive, HIVE_DRAIN);
	net_close(s->pair);
	CHECK_OK(close(s->file));
}

static void each(hive_fiber_fn *fn)
{
	EACH_CORE(i)
	{
		static struct scene s;
		bool can = open_scene(&s, core_names[i]);
		int result = -1;

		if (can)
			CHECK_OK(hive_block_on(s.hive, fn, &s, HIVE_FOREVER, &result));
		close_scene(&s);
		if (!can) {
			test_skip("pages of a file in /tmp cannot be dropped");
			return;
		}
		CHECK_EQ(result, 0);
	}
}

/* The system begins to fetch what it was asked for and does not have. It may be there a moment later, on a busy machine nearly always, so
 * not each time is one of those that the tests are about; with the mistake none would be, however often it is tried.           */
static bool goes_on(int64_t patience_ns)
{
	return hive_now(NULL) < patience_ns;
}

/* A page that is just being fetched cannot be dropped. */
static void cool_down(int fd, int pages, int64_t patience_ns)
{
	while (!cool(fd, pages))
		CHECK(goes_on(patience_ns));
}

static void send_rest(struct scene *s)
{
	while (receive(s), s->have < BYTES)
		CHECK(hive_splice(s->file, (int64_t)s->have, s->pair[0], -1, BYTES - s->have, HIVE_FOREVER) > 0);
	CHECK_EQ(memcmp(s->got, text, BYTES), 0);
	s->have = 0;
}

/* What is in memory first, without anybody's help, and no more than that. */
static int part_by_part(void *arg)
{
	struct scene *s = arg;
	int64_t patience_ns = real_patience();
	int alone = 0;

	while (alone == 0 && goes_on(patience_ns)) {
		uint64_t before = computed(s);

		cool_down(s->file, 1, patience_ns);
		alone += hive_splice(s->file, 0, s->pair[0], -1, BYTES, HIVE_FOREVER) == PAGE && computed(s) == before;
		send_rest(s);
	}
	CHECK_EQ(alone, 1);
	return 0;
}

TEST(an_io_worker_sends_only_what_is_in_memory)
{
	each(part_by_part);
}

static int send_all(void *arg)
{
	struct scene *s = arg;

	return (int)hive_splice(s->file, 0, s->pair[0], -1, BYTES, HIVE_FOREVER);
}

static size_t fill(int fd)
{
	char junk[4096] = { 0 };
	size_t full = 0;
	ssize_t n;

	while ((n = send(fd, junk, sizeof junk, MSG_DONTWAIT)) > 0)
		full += (size_t)n;
	return full;
}

static void drain(int fd, size_t full)
{
	char junk[4096];
	ssize_t n;

	while (full > 0 && (n = recv(fd, junk, full < sizeof junk ? full : sizeof junk, MSG_DONTWAIT)) > 0)
		full -= (size_t)n;
	CHECK_EQ(full, 0);
}

/* It waits for room, and what was in memory then is not any more. */
static int cold_meanwhile(void *arg)
{
	struct scene *s = arg;
	int64_t patience_ns = real_patience();
	int helped = 0;

	while (helped == 0 && goes_on(patience_ns)) {
		uint64_t before = computed(s);
		size_t full = fill(s->pair[0]);
		struct hive_fiber *sender;

		cool_down(s->file, PAGES, patience_ns);
		sender = net_spawn(send_all, s);
		for (int n = 0; n < 3; n++)
			CHECK_OK(hive_yield());
		CHECK_EQ(computed(s), before);
		cool_down(s->file, 0, patience_ns);
		drain(s->pair[1], full);
		CHECK(net_join(sender) > 0);
		for (int n = 0; n < 1000 && computed(s) == before; n++) /* it counts when it has told */
			CHECK_OK(hive_sleep(HIVE_US(10)));
		helped += computed(s) > before;
		send_rest(s);
	}
	CHECK_EQ(helped, 1);
	return 0;
}

TEST(nor_does_it_when_there_is_room_again)
{
	each(cold_meanwhile);
}
