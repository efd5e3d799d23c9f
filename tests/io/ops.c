/* SPDX-License-Identifier: MIT */
/* Operations with callbacks, on each core: each code with what it gives and each error that is likely, from each place where it may be
 * started.                                                                                                                  */
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "support/child.h"
#include "support/shot.h"

/* ---- what the operations are about ---- */

struct scene {
	int pair[2];  /* "ab" can be read from 0; 1 can be written */
	int idle[2];  /* nothing can be read from 0 */
	int full[2];  /* 0 cannot be written */
	int pipe[2];  /* "pq" can be read from 0 */
	int stuck[2]; /* a pipe that cannot be written */
	int listener; /* one knocks */
	int lonely;   /* nobody does */
	int crowded;  /* too many do */
	int knock;    /* one of these */
	int client, fresh, dir, file;
	struct hive_address to, nowhere, crowd;
	char folder[32], text[64];
	struct iovec parts[2];
	struct msghdr message;
	struct statx about;
};

static void unix_address(struct hive_address *address, const char *folder, const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	CHECK(snprintf(un.sun_path, sizeof un.sun_path, "%s/%s", folder, name) < (int)sizeof un.sun_path);
	memset(address, 0, sizeof *address);
	memcpy(address->storage, &un, sizeof un);
	address->bytes = sizeof un;
}

static int stream_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	return fd;
}

static const struct sockaddr *plain(const struct hive_address *address)
{
	return (const void *)address->storage;
}

static int listen_at(const struct hive_address *address, int backlog)
{
	int fd = stream_socket();

	CHECK_OK(bind(fd, plain(address), address->bytes));
	CHECK_OK(listen(fd, backlog));
	return fd;
}

static void stuff(int fd)
{
	char zeros[4096] = { 0 };

	while (write(fd, zeros, sizeof zeros) > 0)
		;
	while (write(fd, zeros, 1) > 0)
		;
	CHECK_EQ(errno, EAGAIN);
}

static void scene_open(struct scene *s)
{
	struct hive_address lonely;

	memset(s, 0, sizeof *s);
	snprintf(s->folder, sizeof s->folder, "/tmp/rophive.XXXXXX");
	CHECK(mkdtemp(s->folder));
	net_pair(s->pair);
	net_pair(s->idle);
	net_pair(s->full);
	CHECK_OK(pipe2(s->pipe, O_NONBLOCK | O_CLOEXEC));
	CHECK_OK(pipe2(s->stuck, O_NONBLOCK | O_CLOEXEC));
	CHECK_EQ(write(s->pair[1], "ab", 2), 2);
	CHECK_EQ(write(s->pipe[1], "pq", 2), 2);
	stuff(s->full[0]);
	stuff(s->stuck[1]);
	unix_address(&s->to, s->folder, "here");
	unix_address(&lonely, s->folder, "lonely");
	unix_address(&s->crowd, s->folder, "crowd");
	unix_address(&s->nowhere, s->folder, "nowhere");
	s->listener = listen_at(&s->to, 10);
	s->lonely = listen_at(&lonely, 10);
	s->crowded = listen_at(&s->crowd, 0);
	s->knock = stream_socket();
	CHECK_OK(connect(s->knock, plain(&s->crowd), s->crowd.bytes));
	s->client = stream_socket();
	s->fresh = stream_socket();
	CHECK_OK(connect(s->client, plain(&s->to), s->to.bytes));
	s->dir = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->file = openat(s->dir, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(s->dir >= 0 && s->file >= 0);
	CHECK_EQ(write(s->file, "0123456789", 10), 10);
	s->parts[0] = (struct iovec){ s->text, 1 };
	s->parts[1] = (struct iovec){ s->text + 1, 5 };
	s->message = (struct msghdr){ .msg_iov = s->parts, .msg_iovlen = 2 };
}

static void scene_close(struct scene *s)
{
	static const char *const names[] = { "file", "new", "moved", "here", "lonely", "crowd" };

	net_close(s->pair);
	net_close(s->idle);
	net_close(s->full);
	net_close(s->pipe);
	net_close(s->stuck);
	close(s->listener);
	close(s->lonely);
	close(s->crowded);
	close(s->knock);
	close(s->client);
	close(s->fresh);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unlinkat(s->dir, names[i], 0);
	unlinkat(s->dir, "folder", AT_REMOVEDIR);
	close(s->file);
	close(s->dir);
	CHECK_OK(rmdir(s->folder));
}

/* ---- each code ---- */

struct row {
	const char *name;
	int (*start)(struct hive_op *op, struct scene *s, int64_t deadline_ns);
	int64_t result;
};

#define START(NAME, ...)                                                 \
	static int NAME(struct hive_op *op, struct scene *s, int64_t by) \
	{                                                                \
		(void)s;                                                 \
		return __VA_ARGS__;                                      \
	}

START(accept_one, hive_op_accept(op, s->listener, 0, by))
START(connect_one, hive_op_connect(op, s->fresh, &s->to, by))
START(receive, hive_op_recv(op, s->pair[0], s->text, 10, by))
START(send_some, hive_op_send(op, s->pair[0], "xyz", 3, by))
START(receive_message, hive_op_recvmsg(op, s->pair[0], &s->message, 0, by))
START(send_message, hive_op_sendmsg(op, s->pair[0], &s->message, 0, by))
START(read_pipe, hive_op_read(op, s->pipe[0], s->text, 10, -1, by))
START(write_pipe, hive_op_write(op, s->pipe[1], "12345", 5, -1, by))
START(read_file, hive_op_read(op, s->file, s->text, 10, 6, by))
START(write_file, hive_op_write(op, s->file, "abc", 3, 20, by))
START(readv_socket, hive_op_readv(op, s->pair[0], s->parts, 2, -1, by))
START(writev_socket, hive_op_writev(op, s->pair[0], s->parts, 2, -1, by))
START(readv_file, hive_op_readv(op, s->file, s->parts, 2, 8, by))
START(writev_file, hive_op_writev(op, s->file, s->parts, 2, 0, by))
START(splice_file, hive_op_splice(op, s->file, 3, s->pair[0], -1, 4, by))
START(splice_pipe, hive_op_splice(op, s->pipe[0], -1, s->pair[0], -1, 9, by))
START(splice_files, hive_op_splice(op, s->file, 0, s->file, 20, 5, by))
START(splice_pipe_to_file, hive_op_splice(op, s->pipe[0], -1, s->file, 50, 9, by))
START(poll_in, hive_op_poll(op, s->pair[0], HIVE_EVENT_IN, 0, by))
START(poll_both, hive_op_poll(op, s->idle[0], HIVE_EVENT_IN | HIVE_EVENT_OUT, 0, by))
START(shut, hive_op_shutdown(op, s->pair[0], SHUT_WR, by))
START(open_new, hive_op_open(op, s->dir, "new", O_WRONLY | O_CREAT | O_EXCL, 0600, by))
START(close_socket, hive_op_close(op, dup(s->pair[0]), by))
START(close_file, hive_op_close(op, dup(s->file), by))
START(sync_all, hive_op_fsync(op, s->file, false, by))
START(sync_data, hive_op_fsync(op, s->file, true, by))
START(ask_about, hive_op_statx(op, s->dir, "file", 0, &s->about, by))
START(unlink_file, hive_op_unlink(op, s->dir, "file", 0, by))
START(rename_file, hive_op_rename(op, s->dir, "file", s->dir, "moved", by))
START(make_folder, hive_op_mkdir(op, s->dir, "folder", 0700, by))

enum { SOME_FD = 1 << 20 }; /* any descriptor; it is closed */

static const struct row good[] = {
	{ "accept", accept_one, SOME_FD },
	{ "connect", connect_one, 0 },
	{ "recv", receive, 2 },
	{ "send", send_some, 3 },
	{ "recvmsg", receive_message, 2 },
	{ "sendmsg", send_message, 6 },
	{ "read a pipe", read_pipe, 2 },
	{ "write a pipe", write_pipe, 5 },
	{ "read", read_file, 4 },
	{ "write", write_file, 3 },
	{ "readv a socket", readv_socket, 2 },
	{ "writev a socket", writev_socket, 6 },
	{ "readv", readv_file, 2 },
	{ "writev", writev_file, 6 },
	{ "splice a file", splice_file, 4 },
	{ "splice a pipe", splice_pipe, 2 },
	{ "splice files", splice_files, 5 },
	{ "splice a pipe to a file", splice_pipe_to_file, 2 },
	{ "poll", poll_in, HIVE_EVENT_IN },
	{ "poll for two", poll_both, HIVE_EVENT_OUT },
	{ "shutdown", shut, 0 },
	{ "open", open_new, SOME_FD },
	{ "close", close_socket, 0 },
	{ "close a file", close_file, 0 },
	{ "fsync", sync_all, 0 },
	{ "fdatasync", sync_data, 0 },
	{ "statx", ask_about, 0 },
	{ "unlink", unlink_file, 0 },
	{ "rename", rename_file, 0 },
	{ "mkdir", make_folder, 0 },
};

/* ---- errors ---- */

START(accept_not_listening, hive_op_accept(op, s->pair[0], 0, by))
START(accept_file, hive_op_accept(op, s->file, 0, by))
START(connect_nowhere, hive_op_connect(op, s->fresh, &s->nowhere, by))
START(connect_twice, hive_op_connect(op, s->client, &s->to, by))
START(receive_nothing, hive_op_recv(op, 987654, s->text, 1, by))
START(receive_far, hive_op_recv(op, INT32_MAX, s->text, 1, by))
START(receive_pipe, hive_op_recv(op, s->pipe[0], s->text, 1, by))
START(send_unconnected, hive_op_send(op, s->fresh, "x", 1, by))
START(read_folder, hive_op_read(op, s->dir, s->text, 1, 0, by))
START(read_at_pipe, hive_op_read(op, s->pipe[0], s->text, 1, 3, by))
START(write_reader, hive_op_write(op, s->pipe[0], "x", 1, -1, by))
START(readv_many, hive_op_readv(op, s->file, s->parts, 5000, 0, by))
START(splice_sockets, hive_op_splice(op, s->pair[0], -1, s->idle[0], -1, 5, by))
START(splice_nothing, hive_op_splice(op, 987654, -1, s->idle[0], -1, 5, by))
START(poll_nothing, hive_op_poll(op, 987654, HIVE_EVENT_IN, 0, by))
START(poll_nothing_often, hive_op_poll(op, 987654, HIVE_EVENT_IN, HIVE_OP_REPEAT, by))
START(accept_nothing_often, hive_op_accept(op, 987654, HIVE_OP_REPEAT, by))
START(shut_pipe, hive_op_shutdown(op, s->pipe[0], SHUT_WR, by))
START(shut_how, hive_op_shutdown(op, s->pair[0], 77, by))
START(open_missing, hive_op_open(op, s->dir, "missing", O_RDONLY, 0, by))
START(open_through_file, hive_op_open(op, s->dir, "file/x", O_RDONLY, 0, by))
START(close_nothing, hive_op_close(op, 987654, by))
START(sync_socket, hive_op_fsync(op, s->pair[0], false, by))
START(ask_missing, hive_op_statx(op, s->dir, "missing", 0, &s->about, by))
START(unlink_missing, hive_op_unlink(op, s->dir, "missing", 0, by))
START(rename_missing, hive_op_rename(op, s->dir, "missing", s->dir, "moved", by))
START(make_file, hive_op_mkdir(op, s->dir, "file", 0700, by))

static const struct row bad[] = {
	{ "accept on no listener", accept_not_listening, -EINVAL },
	{ "accept on a file", accept_file, -ENOTSOCK },
	{ "connect to nowhere", connect_nowhere, -ENOENT },
	{ "connect twice", connect_twice, -EISCONN },
	{ "recv on nothing", receive_nothing, -EBADF },
	{ "recv far beyond", receive_far, -EBADF },
	{ "recv on a pipe", receive_pipe, -ENOTSOCK },
	{ "send unconnected", send_unconnected, -ENOTCONN },
	{ "read a folder", read_folder, -EISDIR },
	{ "read a pipe at a place", read_at_pipe, -ESPIPE },
	{ "write to a reading end", write_reader, -EBADF },
	{ "too many parts", readv_many, -EINVAL },
	{ "splice without a pipe", splice_sockets, -EINVAL },
	{ "splice from nothing", splice_nothing, -EBADF },
	{ "poll nothing", poll_nothing, -EBADF },
	{ "poll nothing often", poll_nothing_often, -EBADF },
	{ "accept on nothing often", accept_nothing_often, -EBADF },
	{ "shutdown a pipe", shut_pipe, -ENOTSOCK },
	{ "shutdown how", shut_how, -EINVAL },
	{ "open what is not there", open_missing, -ENOENT },
	{ "open through a file", open_through_file, -ENOTDIR },
	{ "close nothing", close_nothing, -EBADF },
	{ "fsync a socket", sync_socket, -EINVAL },
	{ "statx what is not there", ask_missing, -ENOENT },
	{ "unlink what is not there", unlink_missing, -ENOENT },
	{ "rename what is not there", rename_missing, -ENOENT },
	{ "mkdir over a file", make_file, -EEXIST },
};

/* ---- waits that nothing ends but their deadline ---- */

START(wait_accept, hive_op_accept(op, s->lonely, 0, by))
START(wait_connect, hive_op_connect(op, s->fresh, &s->crowd, by))
START(wait_receive, hive_op_recv(op, s->idle[0], s->text, 10, by))
START(wait_send, hive_op_send(op, s->full[0], "xyz", 3, by))
START(wait_receive_message, hive_op_recvmsg(op, s->idle[0], &s->message, 0, by))
START(wait_send_message, hive_op_sendmsg(op, s->full[0], &s->message, 0, by))
START(wait_read, hive_op_read(op, s->idle[0], s->text, 10, -1, by))
START(wait_write, hive_op_write(op, s->stuck[1], "12345", 5, -1, by))
START(wait_readv, hive_op_readv(op, s->idle[0], s->parts, 2, -1, by))
START(wait_writev, hive_op_writev(op, s->stuck[1], s->parts, 2, -1, by))
START(wait_splice_from, hive_op_splice(op, s->idle[0], -1, s->pipe[1], -1, 4, by))
START(wait_splice_to, hive_op_splice(op, s->pipe[0], -1, s->full[0], -1, 4, by))
START(wait_splice_file, hive_op_splice(op, s->file, 0, s->full[0], -1, 4, by))
START(wait_poll, hive_op_poll(op, s->idle[0], HIVE_EVENT_IN, 0, by))
START(wait_poll_pri, hive_op_poll(op, s->pair[0], HIVE_EVENT_PRI, 0, by))

static const struct row waiting[] = {
	{ "accept", wait_accept, 0 },
	{ "connect", wait_connect, 0 },
	{ "recv", wait_receive, 0 },
	{ "send", wait_send, 0 },
	{ "recvmsg", wait_receive_message, 0 },
	{ "sendmsg", wait_send_message, 0 },
	{ "read", wait_read, 0 },
	{ "write", wait_write, 0 },
	{ "readv", wait_readv, 0 },
	{ "writev", wait_writev, 0 },
	{ "splice from", wait_splice_from, 0 },
	{ "splice to", wait_splice_to, 0 },
	{ "splice a file", wait_splice_file, 0 },
	{ "poll", wait_poll, 0 },
	{ "poll for urgent bytes", wait_poll_pri, 0 },
};

/* ---- running them ---- */

struct launch {
	const struct row *row;
	struct scene *scene;
	struct shot *shot;
	int64_t deadline_ns;
	int r;
};

static void launch(void *arg)
{
	struct launch *l = arg;

	l->r = SHOT_CALL(l->row->start(&l->shot->op, l->scene, l->deadline_ns));
}

/* From this thread, or from a worker. */
static int64_t run_row(struct hive *hive, const struct row *row, struct scene *s, bool inside, int64_t deadline_ns)
{
	struct shot shot;
	struct launch l = { row, s, &shot, deadline_ns, -1 };

	shot_init(&shot, hive);
	if (inside)
		shot_at(hive, HIVE_WORKER_NONE, launch, &l);
	else
		launch(&l);
	if (l.r != 0)
		test_fail(__FILE__, __LINE__, "%s: %s at its start", row->name, test_error(l.r));
	return shot_end(&shot);
}

static void expect(const struct row *row, const char *core, bool inside, int64_t result, int64_t expected)
{
	if (expected == SOME_FD && result >= 0)
		CHECK_OK(close((int)result));
	else if (result != expected)
		test_fail(__FILE__, __LINE__, "%s, on %s, %s: %lld %s", row->name, core, inside ? "inside" : "outside",
		          (long long)result, test_error(result));
}

static void run_rows(const struct row *rows, size_t count, int32_t workers, int64_t delay_ns)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], workers, 2);

		for (size_t i = 0; i < 2 * count; i++) {
			const struct row *row = &rows[i / 2];
			int64_t by = delay_ns ? hive_deadline(NULL, delay_ns) : HIVE_NOWAIT;
			struct scene s;

			scene_open(&s);
			expect(row, core_names[core], i % 2, run_row(hive, row, &s, i % 2, by),
			       rows == waiting ? -ETIMEDOUT : row->result);
			scene_close(&s);
		}
		real_end(hive, HIVE_DRAIN);
	}
}

#define ROWS(rows) rows, sizeof rows / sizeof *rows

TEST(each_operation_does_what_it_is_for)
{
	run_rows(ROWS(good), 1, HIVE_FOREVER);
	run_rows(ROWS(good), 3, HIVE_S(100));
}

TEST(each_error_arrives_in_on_done)
{
	run_rows(ROWS(bad), 1, HIVE_FOREVER);
	run_rows(ROWS(bad), 3, HIVE_S(100));
}

static void without_attempts(void)
{
	run_rows(ROWS(good), 1, HIVE_FOREVER);
	run_rows(ROWS(bad), 1, HIVE_FOREVER);
	run_rows(ROWS(waiting), 1, HIVE_MS(1));
}

/* Of pipes: Linux before 6.4; of anything: before 4.14, and emulators. */
TEST(kernels_that_cannot_read_without_blocking_will_do)
{
	child_without_calls(ENOSYS, without_attempts, SYS_preadv2, SYS_pwritev2);
}

TEST(each_wait_ends_at_its_deadline)
{
	run_rows(ROWS(waiting), 1, HIVE_MS(3));
	run_rows(ROWS(waiting), 2, 0);
	run_rows(ROWS(waiting), 2, -HIVE_MS(5)); /* the past */
}

/* All of them wait at once, and all are cancelled. */
TEST(each_wait_ends_when_it_is_cancelled)
{
	enum { COUNT = sizeof waiting / sizeof *waiting };

	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 1);
		struct shot shots[COUNT];
		struct scene s;

		scene_open(&s);
		for (int i = 0; i < COUNT; i++) {
			struct launch l = { &waiting[i], &s, &shots[i], HIVE_FOREVER, -1 };

			shot_init(&shots[i], hive);
			shot_at(hive, HIVE_WORKER_NONE, launch, &l);
			CHECK_OK(l.r);
		}
		CHECK(shot_restless(hive) < SHOT_RESTFUL);
		for (int i = 0; i < COUNT; i++) {
			CHECK_OK(SHOT_CALL(hive_op_cancel(&shots[i].op)));
			CHECK_ERR(shot_end(&shots[i]), -ECANCELED);
			CHECK_ERR(hive_op_cancel(&shots[i].op), -ESRCH);
		}
		scene_close(&s);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- arguments ---- */

static int refused;

static void refuse(int r, int expected, int line)
{
	if (r != expected)
		test_fail(__FILE__, line, "%s", test_error(r));
	refused++;
}

#define REFUSED(call) refuse(call, expected, __LINE__)

static void refuse_all(struct hive_op *op, int fd, int expected)
{
	struct hive_address none = { .bytes = 0 }, long_one = { .bytes = 1000 }, good_one = { .bytes = 2 };
	struct msghdr message = { .msg_iov = NULL };
	bool bad_ones = expected == -EINVAL;
	char text[4];

	REFUSED(hive_op_accept(op, bad_ones ? -1 : fd, 0, 0));
	REFUSED(hive_op_connect(op, fd, bad_ones ? &none : &good_one, 0));
	REFUSED(hive_op_recv(op, fd, bad_ones ? NULL : text, 1, 0));
	REFUSED(hive_op_send(op, bad_ones ? -5 : fd, "x", 1, 0));
	REFUSED(hive_op_recvmsg(op, fd, bad_ones ? NULL : &message, 0, 0));
	REFUSED(hive_op_sendmsg(op, fd, bad_ones ? NULL : &message, 0, 0));
	REFUSED(hive_op_read(op, fd, text, 1, bad_ones ? -2 : 0, 0));
	REFUSED(hive_op_write(op, fd, bad_ones ? NULL : text, 1, 0, 0));
	REFUSED(hive_op_readv(op, fd, NULL, bad_ones ? -1 : 0, 0, 0));
	REFUSED(hive_op_writev(op, fd, NULL, bad_ones ? 1 : 0, 0, 0));
	REFUSED(hive_op_splice(op, fd, bad_ones ? -2 : -1, fd, -1, 1, 0));
	REFUSED(hive_op_poll(op, fd, bad_ones ? 0 : HIVE_EVENT_IN, 0, 0));
	REFUSED(hive_op_shutdown(op, bad_ones ? -1 : fd, SHUT_RD, 0));
	REFUSED(hive_op_open(op, AT_FDCWD, bad_ones ? NULL : "x", 0, 0, 0));
	REFUSED(hive_op_close(op, bad_ones ? -1 : fd, 0));
	REFUSED(hive_op_fsync(op, bad_ones ? -1 : fd, true, 0));
	REFUSED(hive_op_statx(op, AT_FDCWD, "x", 0, bad_ones ? NULL : (struct statx *)(void *)text, 0));
	REFUSED(hive_op_unlink(op, AT_FDCWD, bad_ones ? NULL : "x", 0, 0));
	REFUSED(hive_op_rename(op, AT_FDCWD, "x", AT_FDCWD, bad_ones ? NULL : "y", 0));
	REFUSED(hive_op_mkdir(op, AT_FDCWD, bad_ones ? NULL : "x", 0, 0));
	if (!bad_ones)
		return;
	REFUSED(hive_op_connect(op, fd, NULL, 0));
	REFUSED(hive_op_connect(op, fd, &long_one, 0));
	REFUSED(hive_op_accept(op, fd, 2, HIVE_FOREVER));
	REFUSED(hive_op_accept(op, fd, HIVE_OP_REPEAT, HIVE_NOWAIT));
	REFUSED(hive_op_poll(op, fd, HIVE_EVENT_HUP, 0, 0));
	REFUSED(hive_op_poll(op, fd, HIVE_EVENT_IN, 2, 0));
	REFUSED(hive_op_rename(op, AT_FDCWD, NULL, AT_FDCWD, "y", 0));
}

TEST(wrong_arguments_are_refused_and_so_is_an_op_under_way)
{
	struct hive *hive = net_start("epoll", 1, 1);
	struct hive_op never = { 0 }, homeless, silent;
	struct shot shot;
	int fds[2];

	refused = 0;
	net_pair(fds);
	shot_init(&shot, hive);
	refuse_all(&shot.op, fds[0], -EINVAL);
	refuse_all(&never, fds[0], -EINVAL);
	refuse_all(NULL, fds[0], -EINVAL);
	hive_op_init(NULL, hive, NULL, NULL);
	hive_op_init(&homeless, NULL, NULL, NULL);
	CHECK_ERR(hive_op_recv(&homeless, fds[0], fds, 1, 0), -EINVAL);
	hive_op_init(&silent, hive, NULL, NULL);
	CHECK_ERR(hive_op_accept(&silent, fds[0], HIVE_OP_REPEAT, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_op_cancel(&never), -EINVAL);
	CHECK_ERR(hive_op_cancel(NULL), -EINVAL);
	CHECK_ERR(hive_op_cancel(&shot.op), -ESRCH);
	CHECK_ERR(hive_op_wait(&never), -EINVAL);
	CHECK_ERR(hive_op_wait(&shot.op), -EINVAL);
	CHECK_OK(hive_op_recv(&shot.op, fds[0], &shot.byte, 1, HIVE_FOREVER));
	refuse_all(&shot.op, fds[0], -EBUSY);
	CHECK_EQ(write(fds[1], "z", 1), 1);
	CHECK_EQ(shot_end(&shot), 1);
	CHECK_EQ(shot.byte, 'z'); /* what was refused has changed nothing */
	CHECK(refused > 80);
	net_close(fds);
	real_end(hive, HIVE_DRAIN);
	refused = 0;
}

/* ---- another hive's worker ---- */

struct stranger {
	struct shot shot;
	int fd, r;
};

static void start_elsewhere(void *arg)
{
	struct stranger *s = arg;

	s->r = SHOT_CALL(hive_op_recv(&s->shot.op, s->fd, &s->shot.byte, 1, HIVE_FOREVER));
}

TEST(a_worker_of_another_hive_and_a_compute_worker_may_start_it)
{
	EACH_CORE(core)
	{
		struct hive *mine = net_start(core_names[core], 2, 1), *other = net_start(core_names[core], 1, 1);
		struct stranger s;
		int fds[2];

		net_pair(fds);
		shot_init(&s.shot, mine);
		s.fd = fds[0];
		CHECK_EQ(write(fds[1], "1", 1), 1);
		shot_at(other, HIVE_WORKER_NONE, start_elsewhere, &s);
		CHECK_OK(s.r);
		CHECK_EQ(shot_wait(&s.shot), 1); /* on_done looks at the place */
		shot_again(&s.shot);
		CHECK_OK(hive_post_compute(mine, start_elsewhere, &s));
		CHECK_EQ(write(fds[1], "2", 1), 1);
		CHECK_EQ(shot_end(&s.shot), 1);
		CHECK_EQ(s.shot.byte, '2');
		net_close(fds);
		real_end(mine, HIVE_DRAIN);
		real_end(other, HIVE_DRAIN);
	}
}
