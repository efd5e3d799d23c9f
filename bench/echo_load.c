/* SPDX-License-Identifier: MIT */
/* The load upon an echo server: one thread, one epoll loop, a request under way on each connection. */
#include "echo.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 256, PORTS_EACH = 10000 }; /* connections from one address of ours */

struct load_link {
	int fd;
	int64_t got;
	int64_t asked_ns;
	uint64_t stamp; /* each request has its own: an answer to another one is noticed */
};

int load_open(struct load *load, int32_t capacity, int64_t bytes)
{
	*load = (struct load){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC), .capacity = capacity, .bytes = bytes };
	load->request = malloc((size_t)bytes + sizeof(uint64_t));
	load->reply = malloc((size_t)bytes + sizeof(uint64_t));
	load->links = calloc((size_t)capacity, sizeof *load->links);
	stats_reset(&load->times);
	if (load->epoll_fd < 0 || !load->request || !load->reply || !load->links)
		return bench_failed("the load", -ENOMEM);
	for (int64_t i = 0; i < bytes + (int64_t)sizeof(uint64_t); i++)
		load->request[i] = (char)(i * 31);
	return BENCH_OK;
}

void load_reset(struct load *load)
{
	stats_reset(&load->times);
	load->answers = 0;
}

void load_close(struct load *load)
{
	for (int32_t i = 0; i < load->count; i++)
		close(load->links[i].fd);
	if (load->epoll_fd >= 0)
		close(load->epoll_fd);
	free(load->links);
	free(load->request);
	free(load->reply);
	*load = (struct load){ .epoll_fd = -1 };
}

static int ask(struct load *load, struct load_link *link, int64_t now)
{
	size_t bytes = (size_t)load->bytes, mark = bytes < sizeof link->stamp ? bytes : sizeof link->stamp;
	link->stamp++;
	memcpy(load->request, &link->stamp, mark);
	link->got = 0;
	link->asked_ns = now;
	ssize_t sent = send(link->fd, load->request, bytes, MSG_NOSIGNAL);
	if (sent == (ssize_t)bytes)
		return BENCH_OK;
	return sent < 0 ? bench_failed("send", -errno) : bench_wrong("bytes sent at once", bytes, (uint64_t)sent);
}

/* What has come of an answer. It is checked where it comes whole, as nearly all do. */
static int hear(struct load *load, struct load_link *link, bool *ret_whole)
{
	int64_t missing = load->bytes - link->got;
	ssize_t got = recv(link->fd, load->reply, (size_t)missing, 0);
	*ret_whole = false;
	if (got <= 0)
		return got < 0 && errno == EAGAIN ? BENCH_OK : bench_failed("recv", got < 0 ? -errno : -EPIPE);
	if (got == load->bytes) {
		size_t mark = got < (ssize_t)sizeof link->stamp ? (size_t)got : sizeof link->stamp;
		if (memcmp(load->reply, &link->stamp, mark) != 0 ||
		    memcmp(load->reply + mark, load->request + mark, (size_t)got - mark) != 0)
			return bench_wrong("an answer's bytes", link->stamp, 0);
	}
	link->got += got;
	*ret_whole = link->got == load->bytes;
	return BENCH_OK;
}

/* One that has been heard asks again, unless it is late. */
static int go_on(struct load *load, struct load_link *link, int64_t until_ns, int32_t *under_way)
{
	bool whole;
	int code = hear(load, link, &whole);
	if (code || !whole)
		return code;
	int64_t now = sync_now();
	stats_add(&load->times, now - link->asked_ns);
	load->answers++;
	if (now < until_ns)
		return ask(load, link, now);
	--*under_way;
	return BENCH_OK;
}

static int hear_all(struct load *load, int32_t under_way, int64_t until_ns)
{
	struct epoll_event events[BATCH];
	int code = BENCH_OK;
	while (under_way > 0 && !code) {
		int n = epoll_wait(load->epoll_fd, events, BATCH, hive_poll_ms(BENCH_PATIENCE_NS));
		if (n == 0)
			return bench_timeout("answers", (uint64_t)under_way, 0);
		for (int i = 0; i < n && !code; i++)
			code = go_on(load, &load->links[events[i].data.u32], until_ns, &under_way);
	}
	return code;
}

int load_run(struct load *load, int32_t busy, int64_t until_ns)
{
	int code = BENCH_OK;
	for (int32_t i = 0; i < busy && !code; i++)
		code = ask(load, &load->links[i], sync_now());
	return code ? code : hear_all(load, busy, until_ns);
}

/* From several of the loopback's addresses, so that the ports suffice. */
static int connect_one(struct load *load, int32_t port, int32_t index)
{
	struct sockaddr_in from = { .sin_family = AF_INET,
		                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)(index / PORTS_EACH)) };
	struct sockaddr_in to = { .sin_family = AF_INET,
		                  .sin_port = htons((uint16_t)port),
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)index };
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return bench_failed("a socket of the load", -errno);
	load->links[index].fd = fd;
	load->count = index + 1;
	if (setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
	    bind(fd, (struct sockaddr *)&from, sizeof from) < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0 ||
	    epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return bench_failed("a connection of the load", -errno);
	return BENCH_OK;
}

int load_connect(struct load *load, int32_t port, int32_t count)
{
	int code = BENCH_OK;
	int32_t first = load->count;
	for (int32_t i = 0; i < count && !code; i++) {
		code = connect_one(load, port, first + i);
		if (!code)
			code = ask(load, &load->links[first + i], 0);
		if (!code)
			code = hear_all(load, 1, 0);
	}
	load_reset(load);
	return code;
}
