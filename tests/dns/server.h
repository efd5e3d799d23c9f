/* SPDX-License-Identifier: MIT */
#pragma once
/* A DNS server of the test's own, on loopback: a thread that answers by the first label of what it is asked for.
 *
 *   good    an address of each family        nx       there is no such name       empty    no addresses
 *   silent  nothing                          garbage  bytes that are no answer    wrong    an answer to another question
 *   many    cut, and 20 of each by TCP       fail     SERVFAIL                                                            */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/atomic.h"
#include "support/net.h"

enum { DNS_A = 1, DNS_AAAA = 28, DNS_MANY = 20, DNS_HEAD = 12 };

struct dns_server {
	int udp, tcp, link, stop[2]; /* link: a connection; -1: none */
	unsigned char asked[600];    /* on it, so far */
	size_t have;
	uint16_t port;
	bool hushed;
	pthread_t thread;
	ATOMIC(uint32_t) by_udp, by_tcp; /* questions */
};

static inline size_t dns_put_address(unsigned char *to, int type, int number)
{
	static const unsigned char head[] = {
		0xc0, DNS_HEAD, 0, 0, 0, 1, 0, 0, 0, 60, 0
	}; /* its name is the question's */
	size_t bytes = type == DNS_A ? 4 : 16;

	memcpy(to, head, sizeof head);
	to[3] = (unsigned char)type;
	to[11] = (unsigned char)bytes;
	memset(to + 12, 0, bytes);
	to[12] = type == DNS_A ? 192 : 0x20;
	to[13] = type == DNS_A ? 0 : 0x01;
	to[14] = type == DNS_A ? 2 : 0x0d;
	if (type == DNS_AAAA)
		to[15] = 0xb8;
	to[12 + bytes - 1] = (unsigned char)number;
	return 12 + bytes;
}

static inline bool dns_asks_for(const unsigned char *question, const char *label)
{
	return question[DNS_HEAD] == strlen(label) && memcmp(question + DNS_HEAD + 1, label, strlen(label)) == 0;
}

/* The answer's length; 0: none. */
static inline size_t dns_answer(const unsigned char *question, size_t bytes, unsigned char *to, bool by_tcp)
{
	size_t end = DNS_HEAD;
	int type, count = 0;

	while (end < bytes && question[end] != 0)
		end += (size_t)question[end] + 1;
	end += 5;
	CHECK(end <= bytes);
	type = question[end - 3];
	memcpy(to, question, end);
	to[2] = 0x84; /* an answer, by who knows */
	to[3] = 0x80;
	memset(to + 6, 0, 6);
	if (dns_asks_for(question, "silent"))
		return 0;
	if (dns_asks_for(question, "garbage")) {
		memset(to + 2, 0xff, 40);
		return 42;
	}
	if (dns_asks_for(question, "nx"))
		to[3] |= 3;
	if (dns_asks_for(question, "fail"))
		to[3] |= 2;
	if (dns_asks_for(question, "wrong"))
		to[0] = (unsigned char)~to[0];
	if (dns_asks_for(question, "good") || dns_asks_for(question, "wrong"))
		count = 1;
	if (dns_asks_for(question, "many") && by_tcp)
		count = DNS_MANY;
	else if (dns_asks_for(question, "many"))
		to[2] |= 2; /* cut */
	to[7] = (unsigned char)count;
	for (int i = 1; i <= count; i++)
		end += dns_put_address(to + end, type, i);
	return end;
}

static inline void dns_serve_udp(struct dns_server *s)
{
	unsigned char question[600], answer[2000];
	struct sockaddr_in from;
	socklen_t from_bytes = sizeof from;
	ssize_t n = recvfrom(s->udp, question, sizeof question, 0, (void *)&from, &from_bytes);
	size_t bytes = n > DNS_HEAD ? dns_answer(question, (size_t)n, answer, false) : 0;

	add_relaxed(&s->by_udp, 1u);
	if (bytes > 0)
		sendto(s->udp, answer, bytes, 0, (void *)&from, from_bytes);
}

/* Byte by byte, then the rest. */
static inline void dns_answer_by_tcp(struct dns_server *s, size_t asked)
{
	unsigned char answer[2002];
	size_t bytes = dns_answer(s->asked + 2, asked, answer + 2, true);
	ssize_t n;

	add_relaxed(&s->by_tcp, 1u);
	answer[0] = (unsigned char)(bytes >> 8);
	answer[1] = (unsigned char)bytes;
	for (size_t sent = 0; bytes > 0 && sent < bytes + 2; sent += (size_t)n)
		if ((n = send(s->link, answer + sent, sent < 5 ? 1 : bytes + 2 - sent, MSG_NOSIGNAL)) <= 0)
			break;
}

/* Questions may come in pieces, and several together: both of a name are asked on one connection if the second one is early enough. */
static inline void dns_serve_tcp(struct dns_server *s)
{
	ssize_t n = recv(s->link, s->asked + s->have, sizeof s->asked - s->have, 0);
	size_t bytes;

	if (n <= 0) {
		close(s->link);
		s->link = -1;
		return;
	}
	for (s->have += (size_t)n; s->have >= 2; s->have -= bytes + 2) {
		bytes = (size_t)(s->asked[0] << 8 | s->asked[1]);
		if (s->have < bytes + 2)
			return;
		dns_answer_by_tcp(s, bytes);
		memmove(s->asked, s->asked + bytes + 2, s->have - bytes - 2);
	}
}

/* One connection at a time; the next one waits. */
static inline void dns_accept(struct dns_server *s)
{
	s->link = accept(s->tcp, NULL, NULL);
	s->have = 0;
}

static inline void *dns_main(void *arg)
{
	struct dns_server *s = arg;

	for (;;) {
		struct pollfd fds[4] = { { .fd = s->udp, .events = POLLIN },
			                 { .fd = s->link < 0 ? s->tcp : -1, .events = POLLIN },
			                 { .fd = s->link, .events = POLLIN },
			                 { .fd = s->stop[0], .events = POLLIN } };

		CHECK(poll(fds, 4, -1) > 0);
		if (fds[3].revents)
			return NULL;
		if (fds[0].revents)
			dns_serve_udp(s);
		if (fds[1].revents)
			dns_accept(s);
		if (fds[2].revents)
			dns_serve_tcp(s);
	}
}

static inline int dns_bind(int type, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		                  .sin_port = htons(port) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	if (bind(fd, (void *)&at, sizeof at) == 0)
		return fd;
	CHECK_OK(close(fd));
	return -1;
}

/* One port for both; what is free for one may be taken for the other. */
static inline void dns_bind_both(struct dns_server *s)
{
	struct sockaddr_in at;
	socklen_t bytes = sizeof at;

	for (int tries = 0;; tries++) {
		s->tcp = dns_bind(SOCK_STREAM, 0);
		CHECK_OK(getsockname(s->tcp, (void *)&at, &bytes));
		s->port = ntohs(at.sin_port);
		s->udp = dns_bind(SOCK_DGRAM, s->port);
		if (s->udp >= 0)
			return;
		CHECK_OK(close(s->tcp));
		CHECK(tries < 100);
	}
}

static inline void dns_open(struct dns_server *s)
{
	memset(s, 0, sizeof *s);
	s->link = -1;
	dns_bind_both(s);
	CHECK_OK(listen(s->tcp, 100));
	CHECK_OK(pipe2(s->stop, O_CLOEXEC));
	CHECK_EQ(pthread_create(&s->thread, NULL, dns_main, s), 0);
}

/* From now on nobody listens there: who asks is told so. The port stays ours, or it might be that of the one who asks. */
static inline void dns_hush(struct dns_server *s)
{
	struct sockaddr_in other = { .sin_family = AF_INET,
		                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		                     .sin_port = htons(1) };

	CHECK_EQ(write(s->stop[1], "x", 1), 1);
	CHECK_EQ(pthread_join(s->thread, NULL), 0);
	CHECK_OK(connect(s->udp, (void *)&other, sizeof other)); /* hears that one only */
	s->hushed = true;
}

static inline void dns_close(struct dns_server *s)
{
	if (!s->hushed)
		dns_hush(s);
	CHECK_OK(close(s->udp));
	CHECK_OK(close(s->tcp));
	if (s->link >= 0)
		CHECK_OK(close(s->link));
	net_close(s->stop);
}
