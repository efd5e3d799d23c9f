/* SPDX-License-Identifier: MIT */
/* HIVE_CORE=uring: who has it gets it; where the build or the kernel has none, one notice says so and epoll does the work. */
#include "base/atomic.h"
#include "support/net.h"

enum { ECHOES = 20, WORKERS = 3 };

static ATOMIC(uint32_t) notices;
static char notice[256];

static void on_warn(void *arg, const char *text)
{
	(void)arg;
	if (add_seq(&notices, 1u) == 0)
		snprintf(notice, sizeof notice, "%s", text);
}

static int echo(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char byte;

	while (hive_recv(fd, &byte, 1, HIVE_FOREVER) == 1)
		CHECK_OK(hive_send_all(fd, &byte, 1, HIVE_FOREVER));
	return hive_close(fd, HIVE_FOREVER);
}

static int serve(int fd, void *arg)
{
	(void)arg;
	return echo((void *)(intptr_t)fd);
}

struct listening {
	struct hive *hive;
	int fd;
};

static int let_in(void *arg)
{
	const struct listening *l = arg;

	return hive_serve(l->hive, l->fd, NULL, serve, NULL, HIVE_FOREVER);
}

/* Sockets, on all workers. */
static void talk(struct hive *hive)
{
	struct listening l = { hive, hive_listen("127.0.0.1", 0, NULL) };
	struct hive_fiber *server = net_spawn(let_in, &l);
	struct hive_address at;

	CHECK_OK(hive_address_of(l.fd, false, &at));
	for (int i = 0; i < ECHOES; i++) {
		int fd = hive_dial("127.0.0.1", hive_address_port(&at), NULL, HIVE_FOREVER);
		char byte = (char)i, back = 0;

		CHECK(fd >= 0);
		CHECK_OK(hive_send_all(fd, &byte, 1, HIVE_FOREVER));
		CHECK_OK(hive_recv_all(fd, &back, 1, HIVE_FOREVER));
		CHECK_EQ(back, byte);
		CHECK_OK(hive_close(fd, HIVE_FOREVER));
	}
	CHECK_OK(hive_fiber_cancel(server));
	CHECK_EQ(net_join(server), -ECANCELED);
	CHECK_OK(hive_close(l.fd, HIVE_FOREVER));
}

/* A file, by compute workers if need be. */
static void copy(void)
{
	char text[] = "from here to there", back[sizeof text];
	int fd = hive_open(AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 0600, HIVE_FOREVER);

	CHECK(fd >= 0);
	CHECK_EQ(hive_write(fd, text, sizeof text, 0, HIVE_FOREVER), sizeof text);
	CHECK_EQ(hive_read(fd, back, sizeof back, 0, HIVE_FOREVER), sizeof back);
	CHECK_STR(back, text);
	CHECK_OK(hive_fsync(fd, true, HIVE_FOREVER));
	CHECK_OK(hive_close(fd, HIVE_FOREVER));
}

static int work(void *arg)
{
	talk(arg);
	copy();
	return 0;
}

TEST(who_wishes_for_a_ring_has_input_and_output_either_way)
{
	const char *before = getenv("HIVE_CORE"), *kept = before ? strdup(before) : NULL;
	bool granted = core_count() == CORES;
	struct hive_worker_stats stats;
	struct hive *hive;
	int result = -1;

	store_seq(&notices, 0u);
	CHECK_OK(setenv("HIVE_CORE", "uring", 1));
	hive = real_start((struct hive_options){ .io_workers = WORKERS, .compute_workers = 1, .on_warn = on_warn });
	CHECK_OK(hive_worker_stats_read(hive, HIVE_WORKER_MAIN, &stats));
	CHECK_STR(stats.core, granted ? "uring" : "epoll");
	CHECK_OK(hive_block_on(hive, work, hive, HIVE_FOREVER, &result));
	CHECK_EQ(result, 0);
	real_end(hive, HIVE_DRAIN);
	CHECK_EQ(load_seq(&notices), !granted); /* one, for all workers */
	CHECK(granted || (strstr(notice, "uring") && strstr(notice, "epoll")));
	CHECK_OK(kept ? setenv("HIVE_CORE", kept, 1) : unsetenv("HIVE_CORE"));
	free((void *)(uintptr_t)kept);
}
