/* SPDX-License-Identifier: MIT */
/* Terminals: raw and back, size, and bytes through one that stays as its other users know it. */
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "support/shot.h"

struct pair {
	int master, slave;
};

static struct pair make(void)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	struct pair pair;

	CHECK_OK(openpty(&pair.master, &pair.slave, NULL, NULL, &size));
	CHECK_OK(fcntl(pair.master, F_SETFL, O_RDWR | O_NONBLOCK)); /* ours alone; the slave is shared, and blocks */
	return pair;
}

static void end(struct pair pair)
{
	CHECK_OK(close(pair.master));
	CHECK_OK(close(pair.slave));
}

static bool blocks(int fd)
{
	return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* ---- how it is set ---- */

TEST(raw_and_back)
{
	struct pair pair = make();
	struct termios before, raw, after;
	struct hive_tty saved;

	CHECK_OK(tcgetattr(pair.slave, &before));
	CHECK(before.c_lflag & ICANON);
	CHECK_OK(hive_tty_raw(pair.slave, &saved));
	CHECK_OK(tcgetattr(pair.slave, &raw));
	CHECK_EQ(raw.c_lflag & (tcflag_t)(ICANON | ECHO | ISIG), 0);
	CHECK_EQ(raw.c_oflag & (tcflag_t)OPOST, 0);
	CHECK_EQ(raw.c_cc[VMIN], 1);
	CHECK_OK(hive_tty_restore(pair.slave, &saved));
	CHECK_OK(tcgetattr(pair.slave, &after));
	CHECK_EQ(after.c_lflag, before.c_lflag);
	CHECK_EQ(after.c_oflag, before.c_oflag);
	CHECK_EQ(after.c_iflag, before.c_iflag);
	CHECK_EQ(memcmp(after.c_cc, before.c_cc, sizeof after.c_cc), 0);
	CHECK_OK(hive_tty_raw(pair.slave, NULL));
	end(pair);
}

TEST(size_follows_the_window)
{
	struct winsize size = { .ws_row = 50, .ws_col = 132 };
	struct pair pair = make();
	int columns = 0, rows = 0;

	CHECK_OK(hive_tty_size(pair.slave, &columns, &rows));
	CHECK_EQ(columns, 80);
	CHECK_EQ(rows, 24);
	CHECK_OK(ioctl(pair.master, TIOCSWINSZ, &size));
	CHECK_OK(hive_tty_size(pair.slave, &columns, &rows));
	CHECK_EQ(columns, 132);
	CHECK_EQ(rows, 50);
	end(pair);
}

TEST(what_is_no_terminal_is_refused)
{
	struct hive_tty saved = { { 0 } };
	struct pair pair = make();
	int fds[2], columns = 7, rows = 7;

	CHECK_OK(pipe2(fds, O_CLOEXEC));
	CHECK_ERR(hive_tty_raw(fds[0], &saved), -ENOTTY);
	CHECK_ERR(hive_tty_restore(fds[0], &saved), -ENOTTY);
	CHECK_ERR(hive_tty_size(fds[0], &columns, &rows), -ENOTTY);
	CHECK_EQ(columns, 7);
	CHECK_ERR(hive_tty_open(fds[0]), -ENOTTY);
	CHECK_ERR(hive_tty_open(pair.master), -ENOTTY);
	CHECK_ERR(hive_tty_raw(-1, &saved), -EBADF);
	CHECK_ERR(hive_tty_open(-1), -EBADF);
	CHECK_ERR(hive_tty_restore(pair.slave, NULL), -EINVAL);
	CHECK_ERR(hive_tty_size(pair.slave, NULL, &rows), -EINVAL);
	net_close(fds);
	end(pair);
}

/* ---- bytes ---- */

static int read_line(void *arg)
{
	char line[100];
	int64_t n = hive_read(*(int *)arg, line, sizeof line, -1, HIVE_FOREVER);

	CHECK_EQ(n, 6);
	CHECK_EQ(memcmp(line, "hello\n", 6), 0);
	return 0;
}

/* Half a line is nothing yet: the fiber waits, and its worker goes on. */
static int talk(void *arg)
{
	struct pair pair = make();
	struct hive_fiber *reader;
	char line[100];

	(void)arg;
	CHECK_ERR(hive_read(pair.slave, line, sizeof line, -1, HIVE_NOWAIT), -ETIMEDOUT);
	reader = net_spawn(read_line, &pair.slave);
	CHECK_OK(hive_yield());
	CHECK_EQ(hive_write(pair.master, "hel", 3, -1, HIVE_FOREVER), 3);
	CHECK_ERR(hive_read(pair.slave, line, sizeof line, -1, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	CHECK_EQ(hive_write(pair.master, "lo\n", 3, -1, HIVE_FOREVER), 3);
	CHECK_EQ(net_join(reader), 0);
	CHECK_EQ(hive_write(pair.slave, "yes\n", 4, -1, HIVE_FOREVER), 4);
	for (int have = 0; have < 12;) { /* what was typed is echoed first */
		int64_t n = hive_read(pair.master, line + have, sizeof line - (size_t)have, -1, HIVE_FOREVER);

		CHECK(n > 0);
		have += (int)n;
	}
	CHECK_EQ(memcmp(line, "hello\r\nyes\r\n", 12), 0);
	CHECK(blocks(pair.slave));
	end(pair);
	return 0;
}

TEST(lines_go_there_and_back)
{
	net_each(talk);
}

TEST(a_thread_reads_and_writes_by_itself)
{
	struct pair pair = make();
	char line[10];

	CHECK_ERR(hive_read(pair.slave, line, sizeof line, -1, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	CHECK_EQ(hive_write(pair.slave, "yes\n", 4, -1, HIVE_FOREVER), 4);
	CHECK_EQ(hive_read(pair.master, line, sizeof line, -1, HIVE_FOREVER), 5);
	CHECK_EQ(hive_write(pair.master, "no\n", 3, -1, HIVE_FOREVER), 3);
	CHECK_EQ(hive_read(pair.slave, line, sizeof line, -1, HIVE_FOREVER), 3);
	CHECK(blocks(pair.slave));
	end(pair);
}

struct flood {
	int fd;
	int bytes;
	int written;
};

static int write_much(void *arg)
{
	static const char bytes[32 << 10];
	struct flood *flood = (struct flood *)arg;

	while (flood->written < flood->bytes) {
		size_t left = (size_t)(flood->bytes - flood->written);
		int64_t n = hive_write(flood->fd, bytes, left < sizeof bytes ? left : sizeof bytes, -1, HIVE_FOREVER);

		CHECK(n > 0);
		flood->written += (int)n;
	}
	return 0;
}

static void take_all(int fd, int bytes)
{
	static _Thread_local char buffer[5000];

	for (int have = 0; have < bytes;) {
		int64_t n = hive_read(fd, buffer, sizeof buffer, -1, HIVE_FOREVER);

		CHECK(n > 0);
		have += (int)n;
	}
}

/* Nobody reads for a while: were the terminal written to by an IO worker, that would stand still, and with it the only reader. */
static int flood_it(void *arg)
{
	struct pair pair = make();
	struct flood flood = { .fd = pair.slave, .bytes = 300000 };
	struct hive_fiber *writer;

	(void)arg;
	CHECK_OK(hive_tty_raw(pair.slave, NULL));
	writer = net_spawn(write_much, &flood);
	for (int i = 0; i < 20; i++)
		CHECK_OK(hive_yield());
	take_all(pair.master, flood.bytes);
	CHECK_EQ(net_join(writer), 0);
	CHECK(blocks(pair.slave));
	end(pair);
	return 0;
}

TEST(a_slow_reader_stops_no_worker)
{
	net_each(flood_it);
}

static int write_for_ever(void *arg)
{
	static const char bytes[4096];
	int64_t n;

	while ((n = hive_write(*(int *)arg, bytes, sizeof bytes, -1, HIVE_FOREVER)) > 0)
		;
	return (int)n;
}

/* Its own way to the terminal: others do not notice, no compute worker is needed, and waits end. */
static int own_way(void *arg)
{
	struct pair pair = make();
	struct hive_fiber *writer;
	struct flood flood = { .bytes = 100000 };
	char line[10];
	int own = hive_tty_open(pair.slave);

	(void)arg;
	CHECK(own >= 0 && own != pair.slave);
	CHECK(!blocks(own) && blocks(pair.slave));
	CHECK_EQ(fcntl(own, F_GETFD), FD_CLOEXEC);
	CHECK_OK(hive_tty_raw(own, NULL));
	CHECK_EQ(hive_write(pair.master, "key", 3, -1, HIVE_FOREVER), 3);
	CHECK_EQ(hive_read(own, line, sizeof line, -1, HIVE_FOREVER), 3);
	flood.fd = own;
	writer = net_spawn(write_much, &flood);
	take_all(pair.master, flood.bytes);
	CHECK_EQ(net_join(writer), 0);
	writer = net_spawn(write_for_ever, &own);
	CHECK_OK(hive_yield());
	CHECK_OK(hive_fiber_cancel(writer));
	CHECK_EQ(net_join(writer), -ECANCELED);
	CHECK_OK(close(own));
	end(pair);
	return 0;
}

TEST(a_descriptor_of_ones_own_does_not_block)
{
	net_each(own_way);
}

static int hang_up(void *arg)
{
	struct pair pair = make();
	char line[10];

	(void)arg;
	CHECK_OK(close(pair.master));
	CHECK_EQ(hive_read(pair.slave, line, sizeof line, -1, HIVE_FOREVER), 0);
	CHECK_ERR(hive_write(pair.slave, "x", 1, -1, HIVE_FOREVER), -EIO);
	CHECK_OK(close(pair.slave));
	return 0;
}

TEST(a_terminal_that_was_closed_says_so)
{
	net_each(hang_up);
	CHECK_EQ(hang_up(NULL), 0);
}

/* ---- somebody else makes it non-blocking, and fills it ---- */

/* What was written goes on to the other side a moment later, and there is room again, some times. */
static void fill_and_stop_blocking(int fd)
{
	static const char bytes[4096];

	CHECK_OK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
	for (int full = 0; full < 10; full++) {
		while (write(fd, bytes, sizeof bytes) > 0)
			full = 0;
		CHECK_EQ(errno, EAGAIN);
		poll(NULL, 0, 1);
	}
}

static void drain(int fd)
{
	char buffer[5000];

	while (read(fd, buffer, sizeof buffer) > 0)
		;
}

/* While the write is on its way to a compute worker, which then may not block; it waits for room like any other. False: there was room after all,
 * which the kernel makes when it finds the time.                                                                         */
static bool is_told_after_the_drain(struct hive *hive)
{
	struct pair pair = make();
	struct block busy;
	struct shot shot;
	bool waited;

	CHECK_OK(hive_tty_raw(pair.slave, NULL));
	block_init(&busy);
	CHECK_OK(hive_post_compute(hive, block_task, &busy));
	gate_pass(&busy.entered);
	shot_init(&shot, hive);
	CHECK_OK(hive_op_write(&shot.op, pair.slave, "x", 1, -1, HIVE_FOREVER));
	real_wait_asleep(hive, 1);
	fill_and_stop_blocking(pair.slave);
	gate_open(&busy.leave);
	real_wait_asleep(hive, 2);
	waited = atomic_load(&shot.told) == 0;
	CHECK(!waited || shot_restless(hive) < SHOT_RESTFUL);
	drain(pair.master);
	CHECK_EQ(shot_end(&shot), 1);
	block_destroy(&busy);
	end(pair);
	return waited;
}

TEST(a_write_that_finds_no_room_after_all_waits_for_it)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 1);

		while (!is_told_after_the_drain(hive))
			;
		real_end(hive, HIVE_DRAIN);
	}
}
