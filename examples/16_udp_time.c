/* SPDX-License-Identifier: MIT */
/* A time server over UDP: each datagram is a question, each answer one line. With a port on the command line it serves; without one it asks
 * itself a few times and ends.                                                                                                */
#include <rophive/hive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct hive_net_options datagram = { .datagram = true };

static int serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct hive_address from;
	char question[64], answer[64], who[80];
	int64_t n;

	for (;;) {
		n = hive_recvfrom(fd, question, sizeof question, &from, HIVE_FOREVER);
		if (n == -EMSGSIZE)
			continue; /* longer than any question: not one of ours */
		if (n < 0)
			return (int)n; /* cancelled */
		time_t now = time(NULL);
		struct tm tm;
		size_t bytes = strftime(answer, sizeof answer, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
		hive_address_format(&from, who, sizeof who);
		printf("%s asks %.*s\n", who, (int)n, question);
		hive_sendto(fd, answer, bytes, &from, HIVE_FOREVER);
	}
}

/* Datagrams get lost: a deadline for each answer, and another try. */
static int ask(uint16_t port, const char *question)
{
	int fd = hive_dial("127.0.0.1", port, &datagram, HIVE_FOREVER);
	char answer[64];
	int64_t n = fd;

	for (int tries = 0; fd >= 0 && tries < 10; tries++) {
		n = hive_send(fd, question, strlen(question), HIVE_FOREVER);
		if (n >= 0)
			n = hive_recvfrom(fd, answer, sizeof answer, NULL, hive_deadline(NULL, HIVE_S(1)));
		if (n != -ETIMEDOUT)
			break;
	}
	if (n > 0)
		printf("it is %.*s\n", (int)n, answer);
	if (fd >= 0)
		close(fd);
	return n == 20 ? 0 : -1;
}

static int root(void *arg)
{
	const char *text = arg;
	int bad = 0, result = 0, fd = hive_listen("127.0.0.1", (uint16_t)(text ? atoi(text) : 0), &datagram);
	struct hive_address address;
	struct hive_fiber *server;

	if (fd < 0 || hive_address_of(fd, false, &address) < 0 ||
	    hive_spawn(hive_current(), serve, (void *)(intptr_t)fd, NULL, &server) < 0)
		return 1;
	if (!text) {
		bad += ask(hive_address_port(&address), "the time") < 0;
		bad += ask(hive_address_port(&address), "it again") < 0;
		hive_fiber_cancel(server);
	}
	hive_fiber_join(server, HIVE_FOREVER, &result);
	close(fd);
	return bad;
}

int main(int argc, char **argv)
{
	struct hive *hive;
	int bad = 1;

	if (hive_runtime_start(NULL, &hive) < 0)
		return 1;
	int r = hive_block_on(hive, root, argc > 1 ? argv[1] : NULL, HIVE_FOREVER, &bad);
	return hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || r < 0 || bad;
}
