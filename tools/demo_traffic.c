/* SPDX-License-Identifier: MIT */
#include "demo_traffic.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define THINK_NS 1000000
#define LOOK_UP_NS 20000000 /* how often an idle thread sees whether it shall end */

static int connect_one(uint16_t port)
{
	const int on = 1;
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
		int error = -errno;
		close(fd);
		return error;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return fd;
}

static void fill_message(char *message, const struct traffic_connection *connection)
{
	for (size_t i = 0; i < TRAFFIC_MESSAGE; i += sizeof connection->sequence)
		memcpy(message + i, &connection->sequence, sizeof connection->sequence);
}

/* A message is so much smaller than a socket's buffer that it goes out whole or not at all. */
static int ask(struct traffic_connection *connection)
{
	char message[TRAFFIC_MESSAGE];
	connection->sequence++;
	connection->got = 0;
	fill_message(message, connection);
	ssize_t sent = send(connection->fd, message, sizeof message, MSG_NOSIGNAL);
	connection->sent_ns = sync_now();
	return sent == (ssize_t)sizeof message ? 0 : sent < 0 ? -errno : -EMSGSIZE;
}

static int hear(struct traffic *traffic, struct traffic_connection *connection)
{
	char expected[TRAFFIC_MESSAGE];
	ssize_t got = recv(connection->fd, connection->answer + connection->got, TRAFFIC_MESSAGE - connection->got, 0);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (got == 0)
		return -ECONNRESET;
	connection->got += (size_t)got;
	if (connection->got < TRAFFIC_MESSAGE)
		return 0;
	fill_message(expected, connection);
	if (memcmp(expected, connection->answer, TRAFFIC_MESSAGE) != 0)
		return -EBADMSG;
	int64_t now = sync_now();
	stats_add(&traffic->latency, now - connection->sent_ns);
	atomic_fetch_add_explicit(&traffic->answers, 1, memory_order_relaxed);
	connection->sent_ns = 0;
	connection->next_ns = now + THINK_NS;
	return 0;
}

static int ask_all_due(struct traffic *traffic, int64_t *ret_wake_ns)
{
	int64_t now = sync_now(), wake = now + LOOK_UP_NS;
	int error = 0;
	for (size_t i = 0; i < TRAFFIC_CONNECTIONS && !error; i++) {
		struct traffic_connection *connection = &traffic->connections[i];
		if (connection->sent_ns)
			continue;
		if (connection->next_ns <= now)
			error = ask(connection);
		else if (connection->next_ns < wake)
			wake = connection->next_ns;
	}
	*ret_wake_ns = wake;
	return error;
}

static int hear_all(struct traffic *traffic, int64_t wake_ns)
{
	struct pollfd ready[TRAFFIC_CONNECTIONS];
	int64_t wait_ns = wake_ns - sync_now();
	struct timespec timeout = { .tv_nsec = wait_ns > 0 ? wait_ns : 0 };
	int error = 0;
	for (size_t i = 0; i < TRAFFIC_CONNECTIONS; i++)
		ready[i] = (struct pollfd){ .fd = traffic->connections[i].fd, .events = POLLIN };
	if (ppoll(ready, TRAFFIC_CONNECTIONS, &timeout, NULL) < 0)
		return errno == EINTR ? 0 : -errno;
	for (size_t i = 0; i < TRAFFIC_CONNECTIONS && !error; i++)
		if (ready[i].revents)
			error = hear(traffic, &traffic->connections[i]);
	return error;
}

static void *talk(void *arg)
{
	struct traffic *traffic = arg;
	int error = 0;
	int64_t wake_ns;
	while (!error && !atomic_load(&traffic->ending)) {
		error = ask_all_due(traffic, &wake_ns);
		if (!error)
			error = hear_all(traffic, wake_ns);
	}
	if (error && !atomic_load(&traffic->ending))
		atomic_store(&traffic->failure, error);
	return NULL;
}

static void close_all(struct traffic *traffic, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(traffic->connections[i].fd);
}

/* Signals are for the main thread: it is the one that looks whether it was interrupted. */
static int start_thread(struct traffic *traffic)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int error = -pthread_create(&traffic->thread, NULL, talk, traffic);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

int traffic_start(struct traffic *traffic, uint16_t port)
{
	memset(traffic, 0, sizeof *traffic);
	traffic->port = port;
	int64_t now = sync_now();
	for (size_t i = 0; i < TRAFFIC_CONNECTIONS; i++) {
		int fd = connect_one(port);
		if (fd < 0)
			return close_all(traffic, i), fd;
		traffic->connections[i].fd = fd;
		traffic->connections[i].next_ns = now + (int64_t)i * THINK_NS / TRAFFIC_CONNECTIONS;
	}
	int error = start_thread(traffic);
	if (error)
		close_all(traffic, TRAFFIC_CONNECTIONS);
	return error;
}

void traffic_end(struct traffic *traffic)
{
	atomic_store(&traffic->ending, true);
}

void traffic_stop(struct traffic *traffic)
{
	traffic_end(traffic);
	pthread_join(traffic->thread, NULL);
	close_all(traffic, TRAFFIC_CONNECTIONS);
}
