/* SPDX-License-Identifier: MIT */
#pragma once
/* A connection of a server that is told when it can read or write, and makes the two system calls of an answer itself. Which loop tells it
 * is the server's own affair: the raw one, or a worker by its sources. */
#include "echo.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct echo_link {
	int fd;
	size_t left; /* could not be sent yet: nothing more is read until it is gone */
	char *rest;
};

/* What it waits for from now on. */
enum echo_next {
	ECHO_AS_BEFORE,
	ECHO_MORE,
	ECHO_READ,
	ECHO_WRITE,
	ECHO_END
}; /* MORE: as before, and there may be more already */

static inline void echo_link_close(struct echo_link *link)
{
	close(link->fd);
	free(link->rest);
}

static inline enum echo_next echo_link_keep(struct echo_link *link, const char *bytes, size_t left)
{
	if (!link->rest)
		link->rest = malloc(ECHO_BUFFER);
	if (!link->rest)
		return ECHO_END;
	memcpy(link->rest, bytes, left);
	link->left = left;
	return ECHO_WRITE;
}

static inline enum echo_next echo_link_send_rest(struct echo_link *link)
{
	ssize_t sent = send(link->fd, link->rest, link->left, MSG_NOSIGNAL);
	if (sent < 0)
		return errno == EAGAIN ? ECHO_AS_BEFORE : ECHO_END;
	link->left -= (size_t)sent;
	memmove(link->rest, link->rest + sent, link->left);
	return link->left > 0 ? ECHO_AS_BEFORE : ECHO_READ;
}

/* It can do what it waited for. */
static inline enum echo_next echo_link_answer(struct echo_link *link, char buffer[ECHO_BUFFER])
{
	if (link->left > 0)
		return echo_link_send_rest(link);
	ssize_t got = recv(link->fd, buffer, ECHO_BUFFER, 0);
	if (got <= 0)
		return got < 0 && errno == EAGAIN ? ECHO_AS_BEFORE : ECHO_END;
	ssize_t sent = send(link->fd, buffer, (size_t)got, MSG_NOSIGNAL);
	if (sent == got)
		return got == ECHO_BUFFER ? ECHO_MORE : ECHO_AS_BEFORE;
	if (sent < 0 && errno != EAGAIN)
		return ECHO_END;
	sent = sent > 0 ? sent : 0;
	return echo_link_keep(link, buffer + sent, (size_t)(got - sent));
}
