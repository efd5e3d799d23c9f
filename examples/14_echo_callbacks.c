/* SPDX-License-Identifier: MIT */
/* An echo server with callbacks: a readiness source for the listener, completion operations for the connections, one allocation for
 * each. With a port on the command line it serves; without one it talks to itself once and ends.                               */
#include <rophive/hive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct server {
	struct hive *hive;
	struct hive_source listener;
	uint16_t port;
	int alone, answers;
	int client; /* when it talks to itself */
	struct hive_op ask;
	char answer[32];
};

struct connection {
	struct server *server;
	struct hive_op op;
	int fd;
	size_t have, sent;
	char buffer[4096];
};

static void finish(struct connection *c)
{
	if (c->server->alone)
		hive_stop(c->server->hive, HIVE_NOW, HIVE_FOREVER);
	close(c->fd);
	free(c);
}

/* Either there is something to send, or there is room to receive. */
static void go_on(struct connection *c)
{
	int64_t idle = hive_deadline(NULL, HIVE_S(60));
	int r = c->have ? hive_op_send(&c->op, c->fd, c->buffer + c->sent, c->have - c->sent, idle)
	                : hive_op_recv(&c->op, c->fd, c->buffer, sizeof c->buffer, idle);

	if (r < 0)
		finish(c);
}

static void on_bytes(struct hive_op *op, int64_t n) /* 0: end; -errno: -ECANCELED at stop, … */
{
	struct connection *c = op->arg;

	if (n <= 0) {
		finish(c);
		return;
	}
	if (c->have == 0)
		c->have = (size_t)n;
	else if ((c->sent += (size_t)n) == c->have)
		c->have = c->sent = 0;
	go_on(c);
}

static void on_connection(struct hive_source *source, uint32_t events)
{
	int fd = accept4((int)source->handle, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct connection *c = fd < 0 ? NULL : calloc(1, sizeof *c);

	(void)events;
	if (c) {
		c->server = source->arg;
		c->fd = fd;
		hive_op_init(&c->op, hive_current(), on_bytes, c);
		go_on(c);
	} else if (fd >= 0) {
		close(fd);
	}
}

static void on_answer(struct hive_op *op, int64_t n)
{
	struct server *s = op->arg;

	if (n > 0)
		printf("the echo says: %.*s\n", (int)n, s->answer);
	s->answers += n == 5;
	close(s->client); /* the server sees the end of it, and ends too */
}

/* In a task nothing waits, so it asks for what can be had at once: the kernel completes a connection over loopback by itself. */
static int talk_to_myself(struct server *s)
{
	s->client = hive_dial("unix:@rophive.example.14", 0, NULL, HIVE_NOWAIT);
	hive_op_init(&s->ask, s->hive, on_answer, s);
	return s->client < 0 || hive_send(s->client, "hello", 5, HIVE_NOWAIT) != 5
	               ? -1
	               : hive_op_recv(&s->ask, s->client, s->answer, sizeof s->answer, HIVE_FOREVER);
}

static void begin(void *arg)
{
	struct server *s = arg;
	int fd = s->alone ? hive_listen("unix:@rophive.example.14", 0, NULL) : hive_listen("0.0.0.0", s->port, NULL);

	hive_source_init(&s->listener, HIVE_SOURCE_FD, fd, HIVE_EVENT_IN, on_connection, s);
	if (hive_source_start(&s->listener) < 0 || (s->alone && talk_to_myself(s) < 0))
		hive_stop(s->hive, HIVE_NOW, HIVE_FOREVER); /* a failed listen gives a handle < 0: -EINVAL here */
}

int main(int argc, char **argv)
{
	struct server s = { .port = (uint16_t)(argc > 1 ? atoi(argv[1]) : 0), .alone = argc < 2 };
	struct hive_worker_options worker = { .on_start = begin, .hook_arg = &s };

	if (hive_create(NULL, &s.hive) < 0 || hive_attach(s.hive, &worker, NULL) < 0)
		return 1;
	hive_run(s.hive);
	close((int)s.listener.handle);
	return hive_destroy(s.hive) < 0 || s.answers != s.alone;
}
