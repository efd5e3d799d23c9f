/* SPDX-License-Identifier: MIT */
/* Whatever the library opens or closes, on whatever thread, each worker knows that the number begins a new life: what was registered
 * under the old one is not relied on.                                                                                          */
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <termios.h>

#include <rophive/process.h>

#include "support/counted.h"

struct scene {
	const struct way *way;
	struct hive *hive;
	uint32_t there; /* the worker that has registered the number */
	int known;      /* the number, which becomes something else */
	int peer;       /* by which that is woken */
	int tools[2], hole, process;
};

typedef void become_fn(struct scene *s);

static void write_byte(struct scene *s)
{
	CHECK_EQ(write(s->peer, "\n", 1), 1);
}

static void close_known(struct scene *s)
{
	CHECK_OK(close(s->known));
}

static void plain_pair(struct scene *s)
{
	int fds[2];

	net_pair(fds);
	CHECK_EQ(fds[0], s->known);
	s->peer = fds[1];
}

/* ---- what the library makes ---- */

static void become_pair(struct scene *s)
{
	int fds[2];

	close_known(s);
	CHECK_OK(hive_socket_pair(false, fds));
	CHECK_EQ(fds[0], s->known);
	s->peer = fds[1];
}

static void become_pipe(struct scene *s)
{
	int fds[2];

	close_known(s);
	CHECK_OK(hive_pipe(fds));
	CHECK_EQ(fds[0], s->known);
	s->peer = fds[1];
}

static uint16_t port_of(int fd)
{
	struct hive_address address;

	CHECK_OK(hive_address_of(fd, false, &address));
	return hive_address_port(&address);
}

static void open_listener(struct scene *s)
{
	s->tools[0] = hive_listen("127.0.0.1", 0, NULL);
	CHECK(s->tools[0] >= 0);
}

static void become_connection(struct scene *s)
{
	close_known(s);
	CHECK_EQ(hive_dial("127.0.0.1", port_of(s->tools[0]), NULL, HIVE_FOREVER), s->known);
	s->peer = accept4(s->tools[0], NULL, NULL, SOCK_CLOEXEC);
	CHECK(s->peer >= 0);
}

static void become_listener(struct scene *s)
{
	close_known(s);
	CHECK_EQ(hive_listen("127.0.0.1", 0, NULL), s->known);
}

static void knock(struct scene *s)
{
	s->peer = hive_dial("127.0.0.1", port_of(s->known), NULL, HIVE_FOREVER);
	CHECK(s->peer >= 0);
}

/* A letter with a descriptor in it, which is on its way before the number is free. */
static void send_letter(struct scene *s)
{
	int inside[2];

	net_pair(inside);
	CHECK_OK(hive_socket_pair(false, s->tools));
	CHECK_OK(hive_send_fd(s->tools[0], inside[0], HIVE_FOREVER));
	CHECK_OK(close(inside[0]));
	s->peer = inside[1];
}

static void become_received(struct scene *s)
{
	close_known(s);
	CHECK_EQ(hive_recv_fd(s->tools[1], HIVE_FOREVER), s->known);
}

static void open_terminal(struct scene *s)
{
	CHECK_OK(openpty(&s->peer, &s->tools[0], NULL, NULL, NULL));
}

static void become_terminal(struct scene *s)
{
	close_known(s);
	CHECK_EQ(hive_tty_open(s->tools[0]), s->known);
}

static void open_pipe(struct scene *s)
{
	CHECK_OK(pipe2(s->tools, O_CLOEXEC));
}

/* Our end of a child's output; what we write it writes. */
static void become_output(struct scene *s)
{
	const char *argv[] = { "cat", NULL };
	int fds[3];
	struct hive_process_options options = { .fds = { s->tools[0] },
		                                .redirect = { false, true, false },
		                                .ret_fds = fds };

	close_known(s);
	CHECK_OK(hive_process_start(argv, &options, &s->process));
	CHECK_EQ(fds[1], s->known);
	CHECK_OK(close(s->tools[0]));
	s->tools[0] = -1;
	s->peer = s->tools[1];
	s->tools[1] = -1;
}

/* What tells of a child's end. */
static void become_child(struct scene *s)
{
	const char *argv[] = { "sleep", "60", NULL };

	close_known(s);
	CHECK_OK(hive_process_start(argv, NULL, &s->process));
}

static void end_child(struct scene *s)
{
	CHECK_OK(hive_process_signal(s->process, SIGKILL));
}

static char fifo[] = "/tmp/rophive.lives.XXXXXX";

static void make_fifo(struct scene *s)
{
	(void)s;
	memcpy(fifo + sizeof fifo - 7, "XXXXXX", 6);
	CHECK(mkdtemp(fifo));
	CHECK_OK(rmdir(fifo));
	CHECK_OK(mkfifo(fifo, 0600));
}

/* By a compute worker, if a fiber asks. */
static void become_fifo(struct scene *s)
{
	close_known(s);
	CHECK_EQ(hive_open(AT_FDCWD, fifo, O_RDONLY | O_NONBLOCK, 0, HIVE_FOREVER), s->known);
	s->peer = open(fifo, O_WRONLY | O_CLOEXEC);
	CHECK(s->peer >= 0);
	CHECK_OK(unlink(fifo));
}

/* ---- what it closes ---- */

static void close_by_call(struct scene *s)
{
	CHECK_OK(hive_close(s->known, HIVE_FOREVER));
	plain_pair(s);
}

static void close_by_stream(struct scene *s)
{
	struct hive_stream *stream;

	CHECK_OK(hive_stream_create(s->known, NULL, &stream));
	CHECK_OK(hive_stream_destroy(stream, HIVE_FOREVER));
	plain_pair(s);
}

static void fill_listener(struct scene *s)
{
	struct hive_net_options one = { .backlog = 1 };
	int fds[3];

	s->tools[0] = hive_listen("127.0.0.1", 0, &one);
	CHECK(s->tools[0] >= 0);
	for (int i = 0; i < 2; i++)
		CHECK((fds[i] = hive_dial("127.0.0.1", port_of(s->tools[0]), NULL, HIVE_FOREVER)) >= 0);
	for (int i = 0; i < 2; i++)
		CHECK_OK(close(fds[i]));
}

static void close_by_dial(struct scene *s)
{
	close_known(s);
	CHECK_ERR(hive_dial("127.0.0.1", port_of(s->tools[0]), NULL, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	plain_pair(s);
}

static void close_by_listen(struct scene *s)
{
	close_known(s);
	CHECK_ERR(hive_listen("127.0.0.1", port_of(s->tools[0]), NULL), -EADDRINUSE);
	plain_pair(s);
}

/* Two in one letter: the second is not asked for, and is about to have the number. */
static void send_two(struct scene *s)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec part = { "x", 1 };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
	};
	int inside[2];

	net_pair(inside);
	net_pair(s->tools);
	control.header = (struct cmsghdr){ CMSG_LEN(sizeof inside), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.header), inside, sizeof inside);
	CHECK_EQ(sendmsg(s->tools[0], &message, 0), 1);
	s->hole = inside[0];
	CHECK_OK(close(inside[1]));
}

static void close_by_letter(struct scene *s)
{
	CHECK(s->hole < s->known);
	CHECK_OK(close(s->hole));
	close_known(s);
	CHECK_EQ(hive_recv_fd(s->tools[1], HIVE_FOREVER), s->hole);
	plain_pair(s);
}

/* ---- each of them ---- */

static const struct way {
	const char *name;
	become_fn *prepare, *become;
	become_fn *wake;
} ways[] = {
	{ "a pair is made", NULL, become_pair, write_byte },
	{ "a pipe is made", NULL, become_pipe, write_byte },
	{ "dialled", open_listener, become_connection, write_byte },
	{ "a listener is made", NULL, become_listener, knock },
	{ "received", send_letter, become_received, write_byte },
	{ "a terminal is opened", open_terminal, become_terminal, write_byte },
	{ "the output of a child", open_pipe, become_output, write_byte },
	{ "the end of a child", NULL, become_child, end_child },
	{ "opened", make_fifo, become_fifo, write_byte },
	{ "closed", NULL, close_by_call, write_byte },
	{ "closed with its stream", NULL, close_by_stream, write_byte },
	{ "dialled in vain", fill_listener, close_by_dial, write_byte },
	{ "listened in vain", open_listener, close_by_listen, write_byte },
	{ "not asked for in a letter", send_two, close_by_letter, write_byte },
};

static int know(void *arg)
{
	struct scene *s = arg;
	char byte;

	CHECK_ERR(hive_recv(s->known, &byte, 1, hive_deadline(NULL, HIVE_US(10))), -ETIMEDOUT);
	return 0;
}

static int become(void *arg)
{
	struct scene *s = arg;

	s->way->become(s);
	return 0;
}

static int wake(void *arg)
{
	struct scene *s = arg;

	s->way->wake(s);
	return 0;
}

static int wait_for_it(void *arg)
{
	struct scene *s = arg;
	struct hive_fiber_options here = { .worker = s->there };
	struct hive_fiber *other;

	CHECK_OK(hive_spawn(s->hive, wake, s, &here, &other));
	CHECK(hive_poll_fd(s->known, HIVE_EVENT_IN, HIVE_FOREVER) > 0);
	CHECK_OK(hive_fiber_join(other, HIVE_FOREVER, NULL));
	return 0;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		CHECK_OK(close(fd));
}

static void try_way(const struct way *way, bool in_thread)
{
	struct scene s = { .way = way, .known = -1, .peer = -1, .hole = -1, .tools = { -1, -1 } };
	int fds[2];

	s.hive = counted_start(1, &s.there);
	if (way->prepare)
		way->prepare(&s);
	net_pair(fds);
	s.known = fds[0];
	counted_run(s.hive, s.there, know, &s);
	CHECK_EQ(atomic_load(&counted_added), 1);
	if (in_thread)
		become(&s);
	else
		counted_run(s.hive, HIVE_WORKER_MAIN, become, &s);
	counted_run(s.hive, s.there, wait_for_it, &s);
	if (atomic_load(&counted_in_vain) > 0)
		test_fail(__FILE__, __LINE__, "%s, %s: it was not registered", way->name,
		          in_thread ? "in a thread" : "in a fiber");
	close_if_open(s.peer);
	if (s.process)
		CHECK(hive_process_wait(s.process, HIVE_FOREVER) >= 0);
	else
		CHECK_OK(close(s.known));
	if (s.process && way->become == become_output)
		CHECK_OK(close(s.known));
	for (int i = 0; i < 2; i++)
		close_if_open(s.tools[i]);
	close_if_open(s.hole);
	CHECK_OK(close(fds[1]));
	counted_end(s.hive);
}

TEST(a_number_of_the_library_is_registered_at_once)
{
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		try_way(&ways[i], false);
}

TEST(so_is_one_that_a_thread_has_made_or_closed)
{
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		try_way(&ways[i], true);
}
