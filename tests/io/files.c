/* SPDX-License-Identifier: MIT */
/* Files, and what else can be read and written that is no socket: on each core, from fibers. */
#include <pty.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

#include "support/shot.h"

static int temporary(int flags)
{
	char name[] = "/tmp/rophive.XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC | flags);

	if (fd >= 0)
		CHECK_OK(unlink(name));
	return fd;
}

/* ---- regular ones ---- */

static int ends_and_holes(void *arg)
{
	static const int64_t far = INT64_C(1) << 30;
	char text[100] = "";
	struct iovec parts[2] = { { text, 4 }, { text + 4, 90 } };
	int fd = temporary(0);

	(void)arg;
	CHECK(fd >= 0);
	CHECK_EQ(hive_write(fd, "end", 3, far, HIVE_FOREVER), 3); /* a hole before it */
	CHECK_EQ(hive_read(fd, text, sizeof text, far - 2, HIVE_FOREVER), 5);
	CHECK_EQ(memcmp(text, "\0\0end", 5), 0);
	CHECK_EQ(hive_read(fd, text, sizeof text, far + 2, HIVE_FOREVER), 1);
	CHECK_EQ(hive_read(fd, text, sizeof text, far + 3, HIVE_FOREVER), 0);
	CHECK_EQ(hive_read(fd, text, sizeof text, 2 * far, HIVE_FOREVER), 0);
	CHECK_EQ(hive_read(fd, text, 50, 1000, HIVE_FOREVER), 50);
	CHECK_EQ(text[0] | text[49], 0);
	CHECK_EQ(hive_readv(fd, parts, 2, far, HIVE_FOREVER), 3);
	CHECK_EQ(hive_read(fd, NULL, 0, 0, HIVE_FOREVER), 0);
	CHECK_EQ(hive_write(fd, "where it stands", 5, -1, HIVE_FOREVER), 5); /* and goes on from there */
	CHECK_EQ(hive_write(fd, "xyz", 3, -1, HIVE_FOREVER), 3);
	CHECK_EQ(hive_read(fd, text, 8, 0, HIVE_FOREVER), 8);
	CHECK_EQ(memcmp(text, "wherexyz", 8), 0);
	CHECK_EQ(lseek(fd, 1, SEEK_SET), 1);
	CHECK_EQ(hive_read(fd, text, 2, -1, HIVE_FOREVER), 2);
	CHECK_EQ(hive_read(fd, text, 2, -1, HIVE_FOREVER), 2);
	CHECK_EQ(memcmp(text, "re", 2), 0);
	CHECK_ERR(hive_read(fd, text, 1, -2, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_recv(fd, text, 1, HIVE_FOREVER), -ENOTSOCK);
	CHECK_EQ(hive_poll_fd(fd, HIVE_EVENT_IN, HIVE_FOREVER), HIVE_EVENT_IN);
	CHECK_OK(hive_close(fd, HIVE_FOREVER));
	CHECK_ERR(hive_close(fd, HIVE_FOREVER), -EBADF);
	return 0;
}

TEST(ends_holes_and_places)
{
	net_each(ends_and_holes);
	CHECK_EQ(ends_and_holes(NULL), 0);
}

static int past_the_cache(void *arg)
{
	char *block;
	int fd = temporary(O_DIRECT);

	(void)arg;
	if (fd < 0)
		return 0; /* this file system has no such thing */
	CHECK_OK(posix_memalign((void **)&block, 4096, 8192));
	memset(block, 'd', 8192);
	CHECK_EQ(hive_write(fd, block, 8192, 0, HIVE_FOREVER), 8192);
	memset(block, 0, 8192);
	CHECK_EQ(hive_read(fd, block, 4096, 4096, HIVE_FOREVER), 4096);
	CHECK(block[0] == 'd' && block[4095] == 'd');
	CHECK_EQ(hive_read(fd, block, 4096, 8192, HIVE_FOREVER), 0);
	CHECK_OK(hive_fsync(fd, false, HIVE_FOREVER));
	CHECK_OK(hive_close(fd, HIVE_FOREVER));
	free(block);
	return 0;
}

TEST(files_past_the_cache)
{
	net_each(past_the_cache);
}

static int odd_ones(void *arg)
{
	char text[4096];
	int dir, proc, null, full, zero;

	(void)arg;
	dir = hive_open(AT_FDCWD, "/proc/self", O_RDONLY | O_DIRECTORY, 0, HIVE_FOREVER);
	CHECK(dir >= 0);
	CHECK_ERR(hive_read(dir, text, 10, 0, HIVE_FOREVER), -EISDIR);
	proc = hive_open(dir, "status", O_RDONLY, 0, HIVE_FOREVER);
	CHECK(proc >= 0);
	CHECK(hive_read(proc, text, sizeof text, 0, HIVE_FOREVER) > 100);
	CHECK(hive_read(proc, text, 10, -1, HIVE_FOREVER) == 10);
	CHECK(hive_read(proc, text, sizeof text, 1 << 20, HIVE_FOREVER) == 0);
	null = hive_open(AT_FDCWD, "/dev/null", O_RDWR, 0, HIVE_FOREVER);
	zero = hive_open(AT_FDCWD, "/dev/zero", O_RDONLY, 0, HIVE_FOREVER);
	full = hive_open(AT_FDCWD, "/dev/full", O_WRONLY, 0, HIVE_FOREVER);
	CHECK_EQ(hive_read(null, text, 10, -1, HIVE_FOREVER), 0);
	CHECK_EQ(hive_write(null, text, 10, -1, HIVE_FOREVER), 10);
	CHECK_EQ(hive_read(zero, text, 10, -1, HIVE_FOREVER), 10);
	CHECK_ERR(hive_write(full, text, 10, -1, HIVE_FOREVER), -ENOSPC);
	CHECK_OK(hive_close(null, HIVE_FOREVER));
	CHECK_OK(hive_close(zero, HIVE_FOREVER));
	CHECK_OK(hive_close(full, HIVE_FOREVER));
	CHECK_OK(hive_close(proc, HIVE_FOREVER));
	CHECK_OK(hive_close(dir, HIVE_FOREVER));
	return 0;
}

TEST(folders_devices_and_what_the_kernel_makes_up)
{
	net_each(odd_ones);
	CHECK_EQ(odd_ones(NULL), 0);
}

/* ---- from one to the other ---- */

static int splices(void *arg)
{
	static char text[300000];
	int from = temporary(0), to = temporary(0), ends[2], pair[2];
	int64_t all = 0, n;

	(void)arg;
	memset(text, 's', sizeof text);
	CHECK_EQ(hive_write(from, text, sizeof text, 0, HIVE_FOREVER), sizeof text);
	while ((n = hive_splice(from, all, to, all, sizeof text - (size_t)all, HIVE_FOREVER)) > 0)
		all += n;
	CHECK_EQ(all, sizeof text);
	CHECK_EQ(hive_splice(from, sizeof text, to, 0, 10, HIVE_FOREVER), 0); /* behind its end */
	CHECK_OK(pipe2(ends, O_NONBLOCK | O_CLOEXEC));
	CHECK_EQ(lseek(from, 10, SEEK_SET), 10);
	CHECK_EQ(hive_splice(from, -1, ends[1], -1, 100, HIVE_FOREVER), 100); /* where it stands */
	CHECK_EQ(lseek(from, 0, SEEK_CUR), 110);
	CHECK_EQ(hive_splice(ends[0], -1, to, 7, 60, HIVE_FOREVER), 60);
	net_pair(pair);
	CHECK_EQ(hive_splice(ends[0], -1, pair[0], -1, 1000, HIVE_FOREVER), 40);
	CHECK_OK(hive_recv_all(pair[1], text, 40, HIVE_FOREVER));
	CHECK_ERR(hive_splice(ends[0], -1, pair[0], -1, 10, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	CHECK_ERR(hive_splice(ends[0], -1, to, -1, 10, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	CHECK_OK(close(ends[1]));
	CHECK_EQ(hive_splice(ends[0], -1, to, -1, 10, HIVE_FOREVER), 0); /* nobody will write there any more */
	CHECK_OK(close(ends[0]));
	net_close(pair);
	CHECK_OK(hive_close(from, HIVE_FOREVER));
	CHECK_OK(hive_close(to, HIVE_FOREVER));
	return 0;
}

/* Which the system does not copy by itself. */
static int between_file_systems(void *arg)
{
	static const char path[] = "/dev/shm";
	static char text[40000], back[40000];
	int from = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), to = temporary(0);
	int64_t all = 0, n;

	(void)arg;
	if (from < 0 || to < 0) {
		test_skip("no files in /dev/shm");
		return 0;
	}
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)(i / 100);
	CHECK_EQ(write(from, text, sizeof text), sizeof text);
	CHECK_EQ(lseek(from, 100, SEEK_SET), 100);
	while ((n = hive_splice(from, -1, to, -1, sizeof text, HIVE_FOREVER)) > 0)
		all += n;
	CHECK_EQ(n, 0);
	CHECK_EQ(all, sizeof text - 100);
	CHECK_EQ(lseek(from, 0, SEEK_CUR), sizeof text);
	CHECK_EQ(lseek(to, 0, SEEK_CUR), sizeof text - 100);
	CHECK_EQ(pread(to, back, sizeof back, 0), sizeof text - 100);
	CHECK(memcmp(back, text + 100, sizeof text - 100) == 0);
	CHECK_EQ(hive_splice(to, 200, from, 10, 50, HIVE_FOREVER), 50);
	CHECK_EQ(pread(from, back, 60, 0), 60);
	CHECK(memcmp(back, text, 10) == 0 && memcmp(back + 10, text + 300, 50) == 0);
	CHECK_OK(close(from));
	CHECK_OK(close(to));
	return 0;
}

TEST(files_of_different_file_systems_are_copied)
{
	net_each(between_file_systems);
	CHECK_EQ(between_file_systems(NULL), 0);
}

TEST(bytes_go_from_file_to_file_pipe_and_socket)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 1);
		int result = -1;

		CHECK_OK(hive_block_on(hive, splices, NULL, HIVE_FOREVER, &result));
		CHECK_OK(result);
		real_end(hive, HIVE_DRAIN);
	}
	CHECK_EQ(splices(NULL), 0);
}

/* ---- what becomes readable ---- */

struct reader {
	int fd;
	size_t bytes;
	char text[256];
};

static int read_it(void *arg)
{
	struct reader *r = arg;

	return (int)hive_read(r->fd, r->text, r->bytes, -1, HIVE_FOREVER);
}

static struct hive_fiber *begin_read(struct reader *r, int fd, size_t bytes)
{
	struct hive_fiber *fiber;

	CHECK(fd >= 0);
	r->fd = fd;
	r->bytes = bytes;
	fiber = net_spawn(read_it, r);
	CHECK_OK(hive_sleep(HIVE_MS(1))); /* mostly it waits by now; either way it has to work */
	return fiber;
}

static int counters_and_timers(void *arg)
{
	struct itimerspec in_a_while = { .it_value.tv_nsec = 3000000 };
	int counter = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), blocking = eventfd(0, EFD_CLOEXEC);
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	struct hive_fiber *fiber;
	struct reader r;
	uint64_t n = 5;

	(void)arg;
	fiber = begin_read(&r, counter, 8);
	CHECK_EQ(hive_write(counter, &n, 8, -1, HIVE_FOREVER), 8);
	CHECK_EQ(net_join(fiber), 8);
	CHECK_EQ(memcmp(r.text, &n, 8), 0);
	fiber = begin_read(&r, blocking, 8); /* a worker must not block there */
	CHECK_EQ(hive_write(blocking, &n, 8, -1, HIVE_FOREVER), 8);
	CHECK_EQ(net_join(fiber), 8);
	CHECK_ERR(hive_read(counter, r.text, 4, -1, HIVE_FOREVER), -EINVAL);
	fiber = begin_read(&r, timer, 8);
	CHECK_OK(timerfd_settime(timer, 0, &in_a_while, NULL));
	CHECK_EQ(net_join(fiber), 8);
	CHECK_OK(close(counter));
	CHECK_OK(close(blocking));
	CHECK_OK(close(timer));
	return 0;
}

TEST(counters_and_timers_are_read)
{
	net_each(counters_and_timers);
}

static int notes_and_signals(void *arg)
{
	char folder[] = "/tmp/rophive.XXXXXX", path[64];
	int notes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), signals, fd;
	struct hive_fiber *fiber;
	struct reader r;
	sigset_t set;

	(void)arg;
	CHECK(mkdtemp(folder));
	CHECK(inotify_add_watch(notes, folder, IN_CREATE | IN_DELETE) >= 0);
	fiber = begin_read(&r, notes, sizeof r.text);
	snprintf(path, sizeof path, "%s/x", folder);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK_OK(close(fd));
	CHECK(net_join(fiber) >= (int)sizeof(struct inotify_event));
	CHECK_OK(unlink(path));
	CHECK(hive_read(notes, r.text, sizeof r.text, -1, HIVE_FOREVER) > 0);
	CHECK_OK(rmdir(folder));
	CHECK_OK(close(notes));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC); /* workers have it blocked, and so has the test */
	fiber = begin_read(&r, signals, sizeof(struct signalfd_siginfo));
	CHECK_OK(kill(getpid(), SIGUSR2));
	CHECK_EQ(net_join(fiber), sizeof(struct signalfd_siginfo));
	CHECK_OK(close(signals));
	return 0;
}

TEST(notes_and_signals_are_read)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, &old));
	net_each(notes_and_signals);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
}

static int terminals(void *arg)
{
	struct hive_fiber *fiber;
	struct reader r;
	int master, slave;

	(void)arg;
	CHECK_OK(openpty(&master, &slave, NULL, NULL, NULL)); /* both block: a worker must not */
	fiber = begin_read(&r, slave, 100);
	CHECK_EQ(hive_write(master, "a line\n", 7, -1, HIVE_FOREVER), 7);
	CHECK_EQ(net_join(fiber), 7);
	CHECK(hive_read(master, r.text, 100, -1, HIVE_FOREVER) > 0); /* the echo */
	CHECK_OK(close(slave));
	fiber = begin_read(&r, master, 100);
	CHECK_EQ(net_join(fiber), -EIO); /* hung up */
	CHECK_OK(close(master));
	return 0;
}

TEST(terminals_are_read_and_written)
{
	net_each(terminals);
}

/* ---- what blocks ---- */

static int open_reader(void *arg)
{
	return hive_open(AT_FDCWD, arg, O_RDONLY, 0, HIVE_FOREVER);
}

static int fifos(void *arg)
{
	char folder[] = "/tmp/rophive.XXXXXX", path[64], text[8];
	struct hive_fiber *fiber;
	int64_t before;
	int reader, writer;

	(void)arg;
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/fifo", folder);
	CHECK_OK(mkfifo(path, 0600));
	fiber = net_spawn(open_reader, path);
	before = hive_now(NULL);
	for (int i = 0; i < 20; i++) /* it blocks, and this worker does not */
		CHECK_OK(hive_sleep(HIVE_US(100)));
	CHECK(hive_now(NULL) > before);
	writer = hive_open(AT_FDCWD, path, O_WRONLY, 0, HIVE_FOREVER);
	reader = net_join(fiber);
	CHECK(writer >= 0 && reader >= 0);
	CHECK_ERR(hive_read(reader, text, 8, -1, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT); /* it blocks, too */
	CHECK_EQ(hive_write(writer, "f", 1, -1, HIVE_FOREVER), 1);
	CHECK_EQ(hive_read(reader, text, 8, -1, HIVE_FOREVER), 1);
	CHECK_OK(hive_close(writer, HIVE_FOREVER));
	CHECK_EQ(hive_read(reader, text, 8, -1, HIVE_FOREVER), 0);
	CHECK_OK(hive_close(reader, HIVE_FOREVER));
	CHECK_OK(unlink(path));
	CHECK_OK(rmdir(folder));
	return 0;
}

TEST(opening_a_fifo_blocks_no_io_worker)
{
	net_each(fifos);
}

/* ---- a cancelled fiber still closes what it has; and the lowest numbers are descriptors as well ---- */

struct closer {
	struct gate begins;
	int fds[2];
};

static int close_when_cancelled(void *arg)
{
	struct closer *closer = arg;
	int *fds = closer->fds;
	char byte;

	gate_open(&closer->begins);
	CHECK_ERR(hive_recv(fds[0], &byte, 1, HIVE_FOREVER), -ECANCELED);
	CHECK_OK(hive_close(fds[1], HIVE_FOREVER)); /* a file */
	CHECK_OK(hive_close(fds[0], HIVE_FOREVER));
	return 0;
}

TEST(a_cancelled_fiber_closes_its_files)
{
	EACH_CORE(core)
	for (int stops = 0; stops < 2; stops++) {
		struct hive *hive = net_start(core_names[core], 1, 1);
		struct hive_fiber *fiber;
		struct closer closer;
		int pair[2];

		net_pair(pair);
		gate_init(&closer.begins);
		closer.fds[0] = pair[0];
		closer.fds[1] = temporary(0);
		CHECK_OK(hive_spawn(hive, close_when_cancelled, &closer, NULL, &fiber));
		gate_pass(&closer.begins);
		if (stops)
			CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		else
			CHECK_OK(hive_fiber_cancel(fiber));
		CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, NULL));
		CHECK_ERR(fcntl(closer.fds[1], F_GETFD) < 0 ? -errno : 0, -EBADF);
		CHECK_OK(close(pair[1]));
		gate_destroy(&closer.begins);
		real_end(hive, HIVE_NOW);
	}
}

static int talk_on_low_numbers(void *arg)
{
	char byte;
	int fds[2];

	(void)arg;
	net_pair(fds);
	CHECK(fds[0] < 3);
	CHECK_EQ(hive_send(fds[0], "0", 1, HIVE_FOREVER), 1);
	CHECK_EQ(hive_recv(fds[1], &byte, 1, HIVE_FOREVER), 1);
	CHECK_ERR(hive_recv(fds[1], &byte, 1, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	CHECK_OK(hive_close(fds[0], HIVE_FOREVER));
	CHECK_EQ(hive_recv(fds[1], &byte, 1, HIVE_FOREVER), 0);
	CHECK_OK(hive_close(fds[1], HIVE_FOREVER));
	return 0;
}

TEST(the_three_lowest_numbers_are_like_others)
{
	EACH_CORE(core)
	{
		int status, saved[3];
		struct hive *hive;
		int result = -1;

		hive = net_start(core_names[core], 1, 1);
		for (int i = 0; i < 3; i++) {
			saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 50);
			CHECK_OK(close(i));
		}
		status = hive_block_on(hive, talk_on_low_numbers, NULL, HIVE_FOREVER, &result);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(dup2(saved[i], i), i);
		for (int i = 0; i < 3; i++)
			CHECK_OK(close(saved[i]));
		real_end(hive, HIVE_DRAIN);
		CHECK_OK(status);
		CHECK_OK(result);
	}
}

/* And a hive may have them itself. */
TEST(a_hive_that_starts_without_the_three_lowest_numbers)
{
	EACH_CORE(core)
	{
		int saved[3], status, result = -1;
		struct hive *hive;

		for (int i = 0; i < 3; i++) {
			saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 50);
			CHECK_OK(close(i));
		}
		hive = net_start(core_names[core], 2, 1);
		status = hive_block_on(hive, counters_and_timers, NULL, HIVE_FOREVER, &result);
		real_end(hive, HIVE_DRAIN);
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(dup2(saved[i], i), i);
			CHECK_OK(close(saved[i]));
		}
		CHECK_OK(status);
		CHECK_OK(result);
	}
}

/* ---- an answer that sounds like "later", and is the answer ---- */

static char leased[] = "/tmp/rophive.lease.XXXXXX";

static int open_leased(void *arg)
{
	(void)arg;
	return hive_open(AT_FDCWD, leased, O_WRONLY | O_NONBLOCK, 0, HIVE_FOREVER);
}

/* Somebody has a lease on it, and gives it back when he is asked, or never: open(2), O_NONBLOCK. */
TEST(an_open_that_shall_not_wait_for_a_lease_is_told)
{
	int writer = mkostemp(leased, O_CLOEXEC), fd = open(leased, O_RDONLY | O_CLOEXEC);

	CHECK(writer >= 0 && fd >= 0);
	CHECK_OK(close(writer));
	signal(SIGIO, SIG_IGN); /* by which he is asked */
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0) {
		test_skip("no leases in /tmp");
	} else {
		for (int i = 0; i < core_count(); i++) {
			struct hive *hive = net_start(core_names[i], 1, 1);
			int result = 0;

			CHECK_OK(hive_block_on(hive, open_leased, NULL, HIVE_FOREVER, &result));
			CHECK_ERR(result, -EAGAIN);
			real_end(hive, HIVE_DRAIN);
		}
		CHECK_ERR(open_leased(NULL), -EAGAIN);
	}
	CHECK_OK(unlink(leased));
	CHECK_OK(close(fd));
}
