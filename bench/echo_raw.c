/* SPDX-License-Identifier: MIT */
/* What a server costs that is nothing but system calls: an epoll loop per thread, level-triggered, one recv and one send for each
 * request. The figure beside ours. Connections are dealt out in turn by the thread that accepts.                                */
#include "echo_link.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { BATCH = 256, LOOPS = 256 };

struct raw_loop {
	pthread_t thread;
	int epoll_fd, end_fd;
};

static void drop(struct echo_link *link)
{
	echo_link_close(link);
	free(link);
}

static void answer(struct raw_loop *loop, struct echo_link *link, char *buffer)
{
	enum echo_next next = echo_link_answer(link, buffer);
	struct epoll_event event = { .events = next == ECHO_WRITE ? EPOLLOUT : EPOLLIN, .data.ptr = link };
	if (next == ECHO_AS_BEFORE || next == ECHO_MORE)
		return;
	if (next == ECHO_END || epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, link->fd, &event) < 0)
		drop(link);
}

static void *turn_loop(void *arg)
{
	struct raw_loop *loop = arg;
	struct epoll_event events[BATCH];
	char buffer[ECHO_BUFFER];
	pthread_setname_np(pthread_self(), "raw"); /* for profilers */
	for (;;) {
		int n = epoll_wait(loop->epoll_fd, events, BATCH, -1);
		for (int i = 0; i < n; i++) {
			if (!events[i].data.ptr)
				return NULL;
			answer(loop, events[i].data.ptr, buffer);
		}
	}
}

static int start_loop(struct raw_loop *loop)
{
	struct epoll_event end = { .events = EPOLLIN };
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->end_fd = eventfd(0, EFD_CLOEXEC);
	if (loop->epoll_fd < 0 || loop->end_fd < 0 || epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->end_fd, &end) < 0)
		return -errno;
	return -pthread_create(&loop->thread, NULL, turn_loop, loop);
}

static void accept_one(int listener, struct raw_loop *loop)
{
	struct echo_link *link = calloc(1, sizeof *link);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = link };
	if (!link)
		return;
	link->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (link->fd < 0)
		free(link);
	else if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, link->fd, &event) < 0)
		drop(link);
}

static void accept_until_end(const struct bench_params *params, int listener, struct raw_loop *loops)
{
	struct pollfd ready[2] = { { .fd = listener, .events = POLLIN }, { .fd = 0 } };
	int64_t limit = params->serve ? sync_now() + (int64_t)(params->seconds * 1e9) : HIVE_FOREVER;
	for (int32_t turn = 0; !ready[1].revents && sync_now() < limit;)
		if (poll(ready, 2, params->serve ? 100 : -1) > 0 && ready[0].revents)
			accept_one(listener, &loops[turn++ % params->threads]);
}

int echo_serve_raw(const struct bench_params *params)
{
	static struct raw_loop loops[LOOPS];
	int listener = echo_listener(params->port);
	if (listener < 0)
		return bench_failed("listen", -errno);
	for (int32_t i = 0; i < params->threads; i++) {
		int error = start_loop(&loops[i]);
		if (error)
			return bench_failed("a raw loop", error);
	}
	echo_announce(listener);
	accept_until_end(params, listener, loops);
	for (int32_t i = 0; i < params->threads; i++) {
		eventfd_write(loops[i].end_fd, 1);
		pthread_join(loops[i].thread, NULL);
	}
	return BENCH_OK;
}
