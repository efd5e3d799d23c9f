/* SPDX-License-Identifier: MIT */
#include "demo_echo.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

int echo_listen(uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, ECHO_PEERS) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
		int error = -errno;
		close(fd);
		return error;
	}
	*ret_port = ntohs(address.sin_port);
	return fd;
}

struct echo_peer *echo_accept(int listener, struct echo_peer peers[ECHO_PEERS], int *ret_error)
{
	const int on = 1;
	int fd;
	do
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	*ret_error = fd < 0 && errno != EAGAIN ? -errno : 0;
	if (fd < 0)
		return NULL;
	for (struct echo_peer *peer = peers; peer < peers + ECHO_PEERS; peer++)
		if (!peer->open) {
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
			*peer = (struct echo_peer){ .open = true, .fd = fd };
			return peer;
		}
	close(fd);
	return NULL;
}

enum echo_need echo_serve(struct echo_peer *peer)
{
	if (peer->held == 0) {
		ssize_t got = recv(peer->fd, peer->buffer, sizeof peer->buffer, 0);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return ECHO_TO_READ;
		if (got <= 0)
			return ECHO_CLOSED;
		peer->held = (size_t)got;
		peer->sent = 0;
	}
	ssize_t sent = send(peer->fd, peer->buffer + peer->sent, peer->held - peer->sent, MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		return ECHO_CLOSED;
	if (sent > 0)
		peer->sent += (size_t)sent;
	if (peer->sent < peer->held)
		return ECHO_TO_WRITE;
	peer->held = 0;
	return ECHO_TO_READ;
}

void echo_close(struct echo_peer *peer)
{
	if (peer->open)
		close(peer->fd);
	peer->open = false;
}

uint64_t echo_chore(uint64_t seed)
{
	for (int i = 0; i < 4000; i++)
		seed = (seed ^ (uint64_t)i) * UINT64_C(0x100000001b3); /* FNV: each step waits for the one before */
	return seed;
}
