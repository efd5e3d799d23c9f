/* SPDX-License-Identifier: MIT */
/* An echo server with sources. With a port on the command line it serves; without one it talks to itself once and ends. */
#include <netinet/in.h>
#include <rophive/hive.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct server {
	struct hive *hive;
	struct hive_source listener, client;
	struct sockaddr_in address;
	int alone, answers;
};

struct connection {
	struct server *server;
	struct hive_source source;
	size_t have, sent;
	char buffer[4096];
};

static void end(struct connection *c)
{
	hive_source_stop(&c->source);
	close((int)c->source.handle);
	if (c->server->alone)
		hive_stop(c->server->hive, HIVE_NOW, HIVE_FOREVER);
	free(c);
}

/* Either there is something to send, or there is room to receive: one buffer, and the other end feels it. */
static void on_connection_ready(struct hive_source *source, uint32_t events)
{
	struct connection *c = source->arg;
	ssize_t n;

	(void)events;
	if (c->sent < c->have) {
		n = send((int)source->handle, c->buffer + c->sent, c->have - c->sent, MSG_NOSIGNAL);
		c->sent += n > 0 ? (size_t)n : 0;
	} else {
		n = recv((int)source->handle, c->buffer, sizeof c->buffer, 0);
		c->have = n > 0 ? (size_t)n : 0;
		c->sent = 0;
	}
	if (n <= 0 || hive_source_modify(source, c->sent < c->have ? HIVE_EVENT_OUT : HIVE_EVENT_IN) < 0)
		end(c);
}

static void on_connection(struct hive_source *source, uint32_t events)
{
	int fd = accept4((int)source->handle, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct connection *c = fd < 0 ? NULL : calloc(1, sizeof *c);

	(void)events;
	if (fd < 0)
		return;
	if (c) {
		c->server = source->arg;
		hive_source_init(&c->source, HIVE_SOURCE_FD, fd, HIVE_EVENT_IN, on_connection_ready, c);
		if (hive_source_start(&c->source) == 0)
			return;
	}
	close(fd);
	free(c);
}

static void on_answer(struct hive_source *source, uint32_t events)
{
	char text[64] = "";

	(void)events;
	if (recv((int)source->handle, text, sizeof text - 1, 0) > 0)
		printf("the echo says: %s\n", text);
	((struct server *)source->arg)->answers++;
	hive_source_stop(source);
	close((int)source->handle); /* the server sees the end of it, and ends too */
}

/* A blocking connect to a listener of our own does not block: the kernel completes it. */
static int talk_to_myself(struct server *s)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&s->address, sizeof s->address) < 0 ||
	    send(fd, "hello", 5, 0) != 5)
		return -1;
	hive_source_init(&s->client, HIVE_SOURCE_FD, fd, HIVE_EVENT_IN, on_answer, s);
	return hive_source_start(&s->client);
}

static void begin(void *arg)
{
	struct server *s = arg;
	socklen_t bytes = sizeof s->address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	s->alone = s->address.sin_port == 0;
	if (fd < 0 || bind(fd, (struct sockaddr *)&s->address, sizeof s->address) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&s->address, &bytes) < 0)
		perror("listen");
	hive_source_init(&s->listener, HIVE_SOURCE_FD, fd, HIVE_EVENT_IN, on_connection, s);
	if (hive_source_start(&s->listener) < 0 || (s->alone && talk_to_myself(s) < 0))
		hive_stop(s->hive, HIVE_NOW, HIVE_FOREVER);
}

int main(int argc, char **argv)
{
	struct server s = { .address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	struct hive_worker_options worker = { .on_start = begin, .hook_arg = &s };

	s.address.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0));
	if (hive_create(NULL, &s.hive) < 0 || hive_attach(s.hive, &worker, NULL) < 0)
		return 1;
	hive_run(s.hive);
	close((int)s.listener.handle);
	return hive_destroy(s.hive) < 0 || s.answers != 1;
}
