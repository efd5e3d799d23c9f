/* SPDX-License-Identifier: MIT */
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The server of echo_server for libraries that tell when a descriptor is ready and leave the reading and writing to the program:
 * libevent, libev. What is here is what such a program writes by itself. One buffer for the whole loop; what could not be sent at
 * once is kept, and nothing more is read until it is gone.                                                                */
#define ECHO_BUFFER 4096

struct echo_rest {
	size_t at, count;
	char bytes[ECHO_BUFFER];
};

struct echo_link {
	int fd;
	struct echo_rest *rest; /* NULL: everything was sent */
};

/* What the link waits for. */
enum echo_wish { ECHO_READ, ECHO_WRITE, ECHO_END };

/* Listens on a port of the system's choice and prints it. */
static inline int echo_listen(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 4096) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &bytes) != 0) {
		perror("echo: listen");
		exit(1);
	}
	printf("PORT %d\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

/* The next connection, or -1 when there is none now. */
static inline int echo_accept(int listener)
{
	int one = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
		perror("echo: accept");
		exit(1);
	}
	return fd;
}

static inline enum echo_wish echo_keep(struct echo_link *link, const char *bytes, size_t count)
{
	link->rest = malloc(sizeof *link->rest);
	if (!link->rest)
		return ECHO_END;
	link->rest->at = 0;
	link->rest->count = count;
	memcpy(link->rest->bytes, bytes, count);
	return ECHO_WRITE;
}

static inline enum echo_wish echo_readable(struct echo_link *link)
{
	static char buffer[ECHO_BUFFER];
	ssize_t count = recv(link->fd, buffer, sizeof buffer, 0);
	if (count <= 0)
		return count < 0 && (errno == EAGAIN || errno == EINTR) ? ECHO_READ : ECHO_END;
	ssize_t sent = send(link->fd, buffer, (size_t)count, MSG_NOSIGNAL);
	if (sent == count)
		return ECHO_READ;
	if (sent < 0 && errno != EAGAIN)
		return ECHO_END;
	sent = sent < 0 ? 0 : sent;
	return echo_keep(link, buffer + sent, (size_t)(count - sent));
}

static inline enum echo_wish echo_writable(struct echo_link *link)
{
	struct echo_rest *rest = link->rest;
	ssize_t sent = send(link->fd, rest->bytes + rest->at, rest->count - rest->at, MSG_NOSIGNAL);
	if (sent < 0)
		return errno == EAGAIN ? ECHO_WRITE : ECHO_END;
	rest->at += (size_t)sent;
	if (rest->at < rest->count)
		return ECHO_WRITE;
	free(rest);
	link->rest = NULL;
	return ECHO_READ;
}

static inline void echo_close(struct echo_link *link)
{
	close(link->fd);
	free(link->rest);
}

/* True when the input has ended: the server's end. */
static inline int echo_input_ended(void)
{
	char bytes[64];
	return read(STDIN_FILENO, bytes, sizeof bytes) == 0;
}
