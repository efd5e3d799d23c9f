/* SPDX-License-Identifier: MIT */
/* The server of echo_server for libev: prints PORT n, echoes until its input ends. One loop, a watcher for each connection. */
#include "echo_link.h"
#include <ev.h>

struct link {
	ev_io io; /* first: the callback is given it */
	struct echo_link echo;
};

static void on_ready(struct ev_loop *loop, ev_io *io, int events)
{
	struct link *link = (struct link *)(void *)io;
	enum echo_wish now = events & EV_WRITE ? ECHO_WRITE : ECHO_READ;
	enum echo_wish wish = now == ECHO_WRITE ? echo_writable(&link->echo) : echo_readable(&link->echo);
	if (wish == now)
		return;
	ev_io_stop(loop, io);
	if (wish == ECHO_END) {
		echo_close(&link->echo);
		free(link);
		return;
	}
	ev_io_set(io, link->echo.fd, wish == ECHO_WRITE ? EV_WRITE : EV_READ);
	ev_io_start(loop, io);
}

static void on_connection(struct ev_loop *loop, ev_io *listener, int events)
{
	int fd;
	(void)events;
	while ((fd = echo_accept(listener->fd)) >= 0) {
		struct link *link = calloc(1, sizeof *link);
		if (!link)
			exit(1);
		link->echo.fd = fd;
		ev_io_init(&link->io, on_ready, fd, EV_READ);
		ev_io_start(loop, &link->io);
	}
}

static void on_input(struct ev_loop *loop, ev_io *io, int events)
{
	(void)io;
	(void)events;
	if (echo_input_ended())
		ev_break(loop, EVBREAK_ALL);
}

int main(void)
{
	struct ev_loop *loop = ev_default_loop(0);
	ev_io accepts, input;
	if (!loop)
		return 1;
	ev_io_init(&accepts, on_connection, echo_listen(), EV_READ);
	ev_io_init(&input, on_input, STDIN_FILENO, EV_READ);
	ev_io_start(loop, &accepts);
	ev_io_start(loop, &input);
	ev_run(loop, 0);
	return 0;
}
