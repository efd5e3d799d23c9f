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
	int udp, tcp, stop[2];
	uint16_t port;
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

/* One question for each connection, which may come in pieces. */
static inline void dns_serve_tcp(struct dns_server *s)
{
	unsigned char question[600], answer[2002];
	int fd = accept(s->tcp, NULL, NULL);
	size_t have = 0, bytes;
	ssize_t n;

	while (have < 2 || have < 2u + (size_t)(question[0] << 8 | question[1])) {
		n = recv(fd, question + have, sizeof question - have, 0);
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	add_relaxed(&s->by_tcp, 1u);
	bytes = have > 2 ? dns_answer(question + 2, have - 2, answer + 2, true) : 0;
	answer[0] = (unsigned char)(bytes >> 8);
	answer[1] = (unsigned char)bytes;
	for (size_t sent = 0; bytes > 0 && sent < bytes + 2; sent += (size_t)n) /* byte by byte, then the rest */
		if ((n = send(fd, answer + sent, sent < 5 ? 1 : bytes + 2 - sent, MSG_NOSIGNAL)) <= 0)
			break;
	close(fd);
}

static inline void *dns_main(void *arg)
{
	struct dns_server *s = arg;
	struct pollfd fds[3] = { { .fd = s->udp, .events = POLLIN },
		                 { .fd = s->tcp, .events = POLLIN },
		                 { .fd = s->stop[0], .events = POLLIN } };

	for (;;) {
		CHECK(poll(fds, 3, -1) > 0);
		if (fds[2].revents)
			return NULL;
		if (fds[0].revents)
			dns_serve_udp(s);
		if (fds[1].revents)
			dns_serve_tcp(s);
	}
}

static inline void dns_open(struct dns_server *s)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof at;

	memset(s, 0, sizeof *s);
	s->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_OK(bind(s->tcp, (void *)&at, sizeof at));
	CHECK_OK(listen(s->tcp, 100));
	CHECK_OK(getsockname(s->tcp, (void *)&at, &bytes));
	s->port = ntohs(at.sin_port);
	s->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK_OK(bind(s->udp, (void *)&at, sizeof at));
	CHECK_OK(pipe2(s->stop, O_CLOEXEC));
	CHECK_EQ(pthread_create(&s->thread, NULL, dns_main, s), 0);
}

static inline void dns_close(struct dns_server *s)
{
	CHECK_EQ(write(s->stop[1], "x", 1), 1);
	CHECK_EQ(pthread_join(s->thread, NULL), 0);
	CHECK_OK(close(s->udp));
	CHECK_OK(close(s->tcp));
	net_close(s->stop);
}
