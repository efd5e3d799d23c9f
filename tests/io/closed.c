/* SPDX-License-Identifier: MIT */
/* A program that was started without standard input, output and error: what it makes has these numbers then, and neither words of the
 * library nor children take it for what it is not.                                                                          */
#include <stdlib.h>
#include <sys/wait.h>

#include "support/child.h"
#include "support/net.h"

#define SHELL(script) ((const char *const[]){ "sh", "-c", script, NULL })

/* Its own status is all that a part of a test without standard error can tell. */
static void without_standard(void (*body)(void))
{
	pid_t child;

	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		for (int fd = 3; fd < 1024; fd++) /* what the test was started with is not its business */
			fcntl(fd, F_SETFD, FD_CLOEXEC);
		body();
		_exit(0);
	}
	CHECK_EQ(child_wait(child), 0);
}

static int read_all(int fd, char *text, size_t bytes)
{
	size_t have = 0;
	int64_t n;

	while ((n = hive_read(fd, text + have, bytes - 1 - have, -1, HIVE_FOREVER)) > 0)
		have += (size_t)n;
	text[have] = 0;
	CHECK_OK(hive_close(fd, HIVE_FOREVER));
	return (int)n;
}

/* ---- sockets, pipes, streams ---- */

static int accept_one(void *arg)
{
	return hive_accept(*(int *)arg, HIVE_FOREVER);
}

static void talk(int one, int other)
{
	char text[8] = "";

	CHECK_OK(hive_send_all(one, "hello", 6, HIVE_FOREVER));
	CHECK_OK(hive_recv_all(other, text, 6, HIVE_FOREVER));
	CHECK_STR(text, "hello");
}

static void stream_through(int fds[2])
{
	struct hive_stream *stream;
	const char *line;

	CHECK_OK(hive_stream_create(fds[0], NULL, &stream));
	CHECK_EQ(hive_write(fds[1], "line\n", 5, -1, HIVE_FOREVER), 5);
	CHECK_EQ(hive_stream_read_line(stream, &line, HIVE_FOREVER), 5);
	CHECK_EQ(memcmp(line, "line\n", 5), 0);
	CHECK_OK(hive_stream_destroy(stream, HIVE_FOREVER));
	CHECK_OK(hive_close(fds[1], HIVE_FOREVER));
}

static int make_sockets(void *arg)
{
	struct hive_address here;
	struct hive_fiber *accepting;
	int listener = hive_listen("127.0.0.1", 0, NULL), client, server, pipe[2], lowest;

	(void)arg;
	CHECK(listener >= 0);
	CHECK_OK(hive_address_of(listener, false, &here));
	accepting = net_spawn(accept_one, &listener);
	client = hive_dial("127.0.0.1", hive_address_port(&here), NULL, HIVE_FOREVER);
	server = net_join(accepting);
	CHECK(client >= 0 && server >= 0);
	lowest = listener < client ? listener : client;
	CHECK(lowest < 3); /* else there is nothing to see here */
	talk(client, server);
	talk(server, client);
	CHECK_OK(hive_close(listener, HIVE_FOREVER));
	CHECK_OK(hive_pipe(pipe));
	stream_through(pipe);
	talk(client, server);
	CHECK_OK(hive_close(client, HIVE_FOREVER));
	CHECK_OK(hive_close(server, HIVE_FOREVER));
	return 0;
}

/* In a hive that was there before, so that the numbers are left for what it makes. */
static void use_sockets(void)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive;
		int result = -1;

		for (int fd = 0; fd < 3; fd++)
			CHECK_EQ(open("/dev/null", O_RDWR | O_CLOEXEC), fd);
		hive = net_start(core_names[i], 2, 1);
		for (int fd = 0; fd < 3; fd++)
			CHECK_OK(close(fd));
		CHECK_OK(hive_block_on(hive, make_sockets, NULL, HIVE_FOREVER, &result));
		CHECK_EQ(result, 0);
		real_end(hive, HIVE_DRAIN);
	}
}

TEST(sockets_with_these_numbers_are_like_others)
{
	without_standard(use_sockets);
}

/* ---- children ---- */

static int run(const char *const *argv, struct hive_process_options options, const char *input, char *text,
               size_t bytes)
{
	int fds[3], process = -1;

	options.ret_fds = fds;
	CHECK_OK(hive_process_start(argv, &options, &process));
	if (options.redirect[0]) {
		CHECK_EQ(hive_write(fds[0], input, strlen(input), -1, HIVE_FOREVER), (int64_t)strlen(input));
		CHECK_OK(hive_close(fds[0], HIVE_FOREVER));
	}
	if (options.redirect[1])
		CHECK_EQ(read_all(fds[1], text, bytes), 0);
	return hive_process_wait(process, HIVE_FOREVER);
}

static int start_children(void *arg)
{
	char text[200];

	(void)arg;
	CHECK_EQ(run(SHELL("cat"), (struct hive_process_options){ .redirect = { true, true } }, "through", text,
	             sizeof text),
	         0);
	CHECK_STR(text, "through");
	CHECK_EQ(run(SHELL("ls /proc/$$/fd"), (struct hive_process_options){ .redirect = { false, true } }, NULL, text,
	             sizeof text),
	         0);
	CHECK_STR(text, "1\n"); /* what we have as 0 and 2 is not for it */
	CHECK_EQ(run(SHELL("ls /proc/$$/fd; echo error >&2"),
	             (struct hive_process_options){ .redirect = { true, true }, .fds = { 0, 0, HIVE_PROCESS_MERGE } },
	             "", text, sizeof text),
	         0);
	CHECK_STR(text, "0\n1\n2\nerror\n");
	/* with 2 where 1 goes, and 1 is not there: neither is 2 */
	CHECK_EQ(run(SHELL("test ! -e /proc/$$/fd/1 && test ! -e /proc/$$/fd/2"),
	             (struct hive_process_options){ .redirect = { true }, .fds = { 0, 0, HIVE_PROCESS_MERGE } }, "",
	             NULL, 0),
	         0);
	CHECK_EQ(run(SHELL("echo lost; echo lost >&2; read line"),
	             (struct hive_process_options){ .fds = { HIVE_OFF, HIVE_OFF, HIVE_OFF } }, NULL, NULL, 0),
	         1);
	return 0;
}

static void children(void)
{
	net_each(start_children);
	CHECK_EQ(start_children(NULL), 0);
}

TEST(children_get_what_they_are_to_have_and_nothing_else)
{
	without_standard(children);
}

/* ---- words ---- */

static void warn_without_standard_error(void)
{
	int pair[2], other[2];
	struct hive *hive;
	char byte;

	CHECK_OK(hive_socket_pair(false, pair));
	CHECK_OK(hive_socket_pair(false, other));
	CHECK(other[0] == 2);
	CHECK_OK(setenv("HIVE_CORE", "nonsense", 1)); /* of which the user is warned */
	CHECK_OK(hive_create(&(struct hive_options){ .io_workers = 1 }, &hive));
	CHECK_OK(hive_destroy(hive));
	CHECK_ERR(hive_recv(other[1], &byte, 1, HIVE_NOWAIT), -ETIMEDOUT);
}

TEST(a_warning_does_not_go_to_a_socket)
{
	without_standard(warn_without_standard_error);
}

static void warn_of_a_core(void)
{
	struct hive *hive;

	CHECK_OK(setenv("HIVE_CORE", "nonsense", 1));
	CHECK_OK(hive_create(&(struct hive_options){ .io_workers = 1 }, &hive));
	CHECK_OK(hive_destroy(hive));
}

TEST(a_warning_goes_to_standard_error_where_there_is_one)
{
	char text[200] = "";
	int fds[2];
	pid_t child;

	CHECK_OK(pipe2(fds, O_CLOEXEC));
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		dup2(fds[1], 2);
		warn_of_a_core();
		_exit(0);
	}
	CHECK_EQ(child_wait(child), 0);
	CHECK_OK(close(fds[1]));
	CHECK(read(fds[0], text, sizeof text - 1) > 0);
	CHECK(strstr(text, "nonsense"));
	CHECK_OK(close(fds[0]));
}
