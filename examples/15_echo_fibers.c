/* SPDX-License-Identifier: MIT */
/* An echo server with fibers: straight-line code on all cores; an idle limit is just a deadline. With a port on the command line it serves;
 * without one it is its own client, ten times at once, and ends.                                                              */
#include <rophive/hive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS = 10 };

static uint16_t port;

static int echo(int fd, void *arg)
{
	char buffer[4096];
	int64_t n;

	(void)arg;
	while ((n = hive_recv(fd, buffer, sizeof buffer, hive_deadline(NULL, HIVE_S(60)))) > 0)
		if (hive_send_all(fd, buffer, (size_t)n, HIVE_FOREVER) < 0)
			break;
	return close(fd);
}

/* Until it is cancelled: who talks then has five seconds more. */
static int serve(void *arg)
{
	struct hive_serve_options options = { .connections = 10000, .grace_ns = HIVE_S(5) };

	return hive_serve(hive_current(), (int)(intptr_t)arg, &options, echo, NULL, HIVE_FOREVER);
}

/* A line there and back, through a stream. 0: it is the same. */
static int ask(void *arg)
{
	int64_t deadline = hive_deadline(NULL, HIVE_S(30));
	int fd = hive_dial("localhost", port, NULL, deadline);
	struct hive_stream *stream;
	char text[40];
	const char *line;

	if (fd < 0 || hive_stream_create(fd, NULL, &stream) < 0)
		return -1;
	int bytes = snprintf(text, sizeof text, "client %d\n", (int)(intptr_t)arg);
	int good = hive_stream_write(stream, text, (size_t)bytes, deadline) == 0 &&
	           hive_stream_read_line(stream, &line, deadline) == bytes && memcmp(line, text, (size_t)bytes) == 0;
	if (good)
		printf("the echo says: %.*s", bytes, line);
	return hive_stream_destroy(stream, deadline) < 0 || !good;
}

static int root(void *arg)
{
	struct hive_fiber *server, *clients[CLIENTS];
	struct hive_address address;
	int bad = 0, result = -1, fd = hive_listen("127.0.0.1", port, NULL);

	if (fd < 0 || hive_address_of(fd, false, &address) < 0)
		return -1;
	port = hive_address_port(&address);
	if (hive_spawn(hive_current(), serve, (void *)(intptr_t)fd, NULL, &server) < 0)
		return -1;
	for (intptr_t i = 0; !arg && i < CLIENTS; i++)
		if (hive_spawn(hive_current(), ask, (void *)i, NULL, &clients[i]) < 0)
			return -1;
	for (int i = 0; !arg && i < CLIENTS; i++) {
		hive_fiber_join(clients[i], HIVE_FOREVER, &result);
		bad += result != 0;
	}
	if (!arg)
		hive_fiber_cancel(server);
	hive_fiber_join(server, HIVE_FOREVER, &result);
	close(fd);
	return bad;
}

int main(int argc, char **argv)
{
	struct hive *hive;
	int bad = 1;

	port = (uint16_t)(argc > 1 ? atoi(argv[1]) : 0);
	if (hive_runtime_start(NULL, &hive) < 0)
		return 1;
	int r = hive_block_on(hive, root, argc > 1 ? argv[1] : NULL, HIVE_FOREVER, &bad);
	return hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || r < 0 || bad;
}
