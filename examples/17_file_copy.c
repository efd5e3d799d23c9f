/* SPDX-License-Identifier: MIT */
/* A file is copied, and another fiber says how far it is: no worker waits for the disk. 17_file_copy FROM TO; without arguments it makes
 * a file of its own, copies it, compares the two, and removes them.                                                            */
#include <fcntl.h>
#include <rophive/hive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP = 1 << 20, TRIAL = 20 << 20 };

struct copy {
	const char *from, *to;
	uint64_t total;
	struct hive_channel *progress; /* how much is there, now and then */
};

static int copy(void *arg)
{
	struct copy *c = arg;
	int from = hive_open(AT_FDCWD, c->from, O_RDONLY, 0, HIVE_FOREVER);
	int to = hive_open(AT_FDCWD, c->to, O_WRONLY | O_CREAT | O_TRUNC, 0644, HIVE_FOREVER);
	int64_t n = from < 0 ? from : to < 0 ? to : 1;
	uint64_t done = 0;

	while (n > 0) {
		n = hive_splice(from, (int64_t)done, to, (int64_t)done, STEP, HIVE_FOREVER);
		done += n > 0 ? (uint64_t)n : 0;
		if (hive_channel_send(c->progress, &done, sizeof done, HIVE_NOWAIT) == -EPIPE)
			break; /* full is fine: the next one tells more */
	}
	if (n == 0)
		n = hive_fsync(to, true, HIVE_FOREVER);
	if (from >= 0)
		hive_close(from, HIVE_FOREVER);
	if (to >= 0)
		hive_close(to, HIVE_FOREVER);
	hive_channel_close(c->progress);
	return (int)n;
}

static int root(void *arg)
{
	struct copy *c = arg;
	struct hive_fiber *fiber;
	struct statx about;
	uint64_t done = 0;
	int r = hive_statx(AT_FDCWD, c->from, 0, &about, HIVE_FOREVER), result = -1;

	if (r < 0 || hive_channel_create(sizeof done, 1, &c->progress) < 0)
		return r < 0 ? r : -ENOMEM;
	c->total = about.stx_size;
	r = hive_spawn(hive_current(), copy, c, NULL, &fiber);
	while (r == 0 && hive_channel_recv(c->progress, &done, sizeof done, HIVE_FOREVER) == 0)
		printf("%3d %%\n", c->total ? (int)(done * 100 / c->total) : 100);
	if (r == 0)
		r = hive_fiber_join(fiber, HIVE_FOREVER, &result);
	hive_channel_destroy(c->progress);
	return r < 0 ? r : result;
}

static int make(char *name, size_t bytes)
{
	int fd = mkstemp(name);
	static char block[STEP];

	for (size_t at = 0; fd >= 0 && at < bytes; at += sizeof block) {
		memset(block, (int)(at / sizeof block), sizeof block);
		if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
			return -1;
	}
	return fd < 0 ? -1 : close(fd);
}

static int is_same(const char *a, const char *b)
{
	FILE *one = fopen(a, "r"), *two = fopen(b, "r");
	int x = 0, y = 0;

	while (one && two && x == y && x != EOF) {
		x = getc(one);
		y = getc(two);
	}
	if (one)
		fclose(one);
	if (two)
		fclose(two);
	return one && two && x == y;
}

int main(int argc, char **argv)
{
	char from[] = "/tmp/rophive.from.XXXXXX", to[] = "/tmp/rophive.to.XXXXXX";
	struct copy c = { .from = argc > 2 ? argv[1] : from, .to = argc > 2 ? argv[2] : to };
	struct hive *hive;
	int result = -1;

	if ((argc < 3 && (make(from, TRIAL) < 0 || make(to, 0) < 0)) || hive_runtime_start(NULL, &hive) < 0)
		return 1;
	int r = hive_block_on(hive, root, &c, HIVE_FOREVER, &result);
	hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER);
	printf("%s\n", result < 0 ? hive_error_text(result) : "copied");
	int bad = r < 0 || result < 0 || (argc < 3 && !is_same(from, to));
	if (argc < 3)
		bad |= unlink(from) < 0 || unlink(to) < 0;
	return bad;
}
