/* SPDX-License-Identifier: MIT */
/* The server of echo_server for libevent: prints PORT n, echoes until its input ends. One loop; plain events, a persistent one for each connection,
 * which do less than its buffers (bufferevent) for an echo.                                                                */
#include "echo_link.h"
#include <event2/event.h>

struct link {
	struct echo_link echo;
	struct event *reads, *writes; /* writes: NULL until it is needed */
};

static void end_link(struct link *link)
{
	event_free(link->reads);
	if (link->writes)
		event_free(link->writes);
	echo_close(&link->echo);
	free(link);
}

static void on_writable(evutil_socket_t fd, short what, void *arg);

static void follow(struct link *link, enum echo_wish wish)
{
	if (wish == ECHO_WRITE && !link->writes)
		link->writes = event_new(event_get_base(link->reads), link->echo.fd, EV_WRITE, on_writable, link);
	if (wish == ECHO_END || (wish == ECHO_WRITE &&
	                         (!link->writes || event_del(link->reads) != 0 || event_add(link->writes, NULL) != 0)))
		end_link(link);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct link *link = arg;
	(void)fd;
	(void)what;
	enum echo_wish wish = echo_readable(&link->echo);
	if (wish != ECHO_READ)
		follow(link, wish);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct link *link = arg;
	(void)fd;
	(void)what;
	enum echo_wish wish = echo_writable(&link->echo);
	if (wish == ECHO_READ && event_add(link->reads, NULL) == 0)
		return;
	follow(link, wish == ECHO_READ ? ECHO_END : wish);
}

static void on_connection(evutil_socket_t listener, short what, void *base)
{
	int fd;
	(void)what;
	while ((fd = echo_accept(listener)) >= 0) {
		struct link *link = calloc(1, sizeof *link);
		if (!link)
			exit(1);
		link->echo.fd = fd;
		link->reads = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, link);
		if (!link->reads || event_add(link->reads, NULL) != 0)
			exit(1);
	}
}

static void on_input(evutil_socket_t fd, short what, void *base)
{
	(void)fd;
	(void)what;
	if (echo_input_ended())
		event_base_loopbreak(base);
}

int main(void)
{
	struct event_config *config = event_config_new();
	/* One thread: no locks. */
	if (!config || event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) != 0)
		return 1;
	struct event_base *base = event_base_new_with_config(config);
	event_config_free(config);
	if (!base)
		return 1;
	struct event *accepts = event_new(base, echo_listen(), EV_READ | EV_PERSIST, on_connection, base);
	struct event *input = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, base);
	if (!accepts || !input || event_add(accepts, NULL) != 0 || event_add(input, NULL) != 0)
		return 1;
	event_base_dispatch(base);
	return 0;
}
