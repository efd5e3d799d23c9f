/* SPDX-License-Identifier: MIT */
/* Datagrams on each core: whole, empty, too long; connected and not; IPv4, IPv6 and unix. */
#include <sys/uio.h>

#include "support/net.h"

static const struct hive_net_options datagram = { .datagram = true };

/* A bound socket and its address. */
static int bound(const char *text, struct hive_address *ret_address)
{
	int fd = hive_listen(text, 0, &datagram);

	CHECK(fd >= 0);
	CHECK_OK(hive_address_of(fd, false, ret_address));
	return fd;
}

static bool is_same(const struct hive_address *a, const struct hive_address *b)
{
	return a->bytes == b->bytes && memcmp(a->storage, b->storage, a->bytes) == 0;
}

static void talk(int a, const struct hive_address *at_a, int b, const struct hive_address *at_b)
{
	struct hive_address from;
	char buffer[64];

	CHECK_ERR(hive_recvfrom(b, buffer, sizeof buffer, &from, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_recvfrom(b, buffer, sizeof buffer, &from, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hive_sendto(a, "hello", 5, at_b, HIVE_FOREVER), 5);
	CHECK_EQ(hive_sendto(a, "", 0, at_b, HIVE_FOREVER), 0);
	CHECK_EQ(hive_sendto(a, NULL, 0, at_b, HIVE_FOREVER), 0);
	CHECK_EQ(hive_sendto(a, "again", 5, at_b, HIVE_FOREVER), 5);
	CHECK_EQ(hive_recvfrom(b, buffer, sizeof buffer, &from, HIVE_FOREVER), 5);
	CHECK_EQ(memcmp(buffer, "hello", 5), 0);
	CHECK(is_same(&from, at_a));
	memset(&from, 0, sizeof from);
	CHECK_EQ(hive_recvfrom(b, buffer, sizeof buffer, &from, HIVE_FOREVER), 0); /* empty, and not an end */
	CHECK(is_same(&from, at_a));
	CHECK_EQ(hive_recvfrom(b, NULL, 0, NULL, HIVE_FOREVER), 0);
	CHECK_EQ(hive_recvfrom(b, buffer, sizeof buffer, NULL, HIVE_FOREVER), 5);
	CHECK_EQ(memcmp(buffer, "again", 5), 0);
	CHECK_EQ(hive_sendto(b, "back", 4, &from, HIVE_FOREVER), 4);
	CHECK_EQ(hive_recvfrom(a, buffer, 4, &from, HIVE_FOREVER), 4); /* fits exactly */
	CHECK(is_same(&from, at_b));
}

/* The beginning is there, the sender too, the rest is lost, and the next one is not touched. */
static void cut(int a, const struct hive_address *at_a, int b, const struct hive_address *at_b)
{
	struct hive_address from = { 0 };
	struct iovec part;
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	char buffer[64] = "";

	for (int i = 0; i < 5; i++)
		CHECK_EQ(hive_sendto(a, "0123456789", 10, at_b, HIVE_FOREVER), 10);
	CHECK_EQ(hive_sendto(a, "next", 4, at_b, HIVE_FOREVER), 4);
	CHECK_ERR(hive_recvfrom(b, buffer, 9, &from, HIVE_FOREVER), -EMSGSIZE);
	CHECK_EQ(memcmp(buffer, "012345678\0", 10), 0);
	CHECK(is_same(&from, at_a));
	CHECK_ERR(hive_recvfrom(b, buffer, 0, NULL, HIVE_FOREVER), -EMSGSIZE);
	CHECK_EQ(hive_recvfrom(b, buffer, 10, NULL, HIVE_FOREVER), 10);
	CHECK_EQ(hive_recv(b, buffer, 3, HIVE_FOREVER), 3); /* does not tell */
	part = (struct iovec){ buffer, 3 };
	CHECK_EQ(hive_recvmsg(b, &message, 0, HIVE_FOREVER), 3);
	CHECK(message.msg_flags & MSG_TRUNC);
	CHECK_EQ(hive_recvfrom(b, buffer, sizeof buffer, NULL, HIVE_FOREVER), 4);
	CHECK_EQ(memcmp(buffer, "next", 4), 0);
}

static int families(void *arg)
{
	static const char *const texts[][2] = { { "127.0.0.1", "127.0.0.1" },
		                                { "::1", "::1" },
		                                { "unix:@rophive.datagram.a", "unix:@rophive.datagram.b" } };

	(void)arg;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct hive_address at_a, at_b;
		int a, b;

		if (!net_has(texts[i][0]))
			continue;
		a = bound(texts[i][0], &at_a);
		b = bound(texts[i][1], &at_b);
		talk(a, &at_a, b, &at_b);
		cut(a, &at_a, b, &at_b);
		CHECK_OK(close(a));
		CHECK_OK(close(b));
	}
	return 0;
}

TEST(whole_empty_and_cut_in_each_family)
{
	if (!net_has_v6())
		test_skip("no IPv6: the other families alone");
	net_each(families);
	CHECK_EQ(families(NULL), 0);
}

static int connected(void *arg)
{
	struct hive_address at_server, at_client, from;
	int server = bound("127.0.0.1", &at_server), client, stranger;
	char buffer[8];

	(void)arg;
	client = hive_dial("127.0.0.1", hive_address_port(&at_server), &datagram, HIVE_FOREVER);
	CHECK(client >= 0);
	CHECK_OK(hive_address_of(client, false, &at_client));
	CHECK_EQ(hive_send(client, "a", 1, HIVE_FOREVER), 1);
	CHECK_EQ(hive_sendto(client, "b", 1, NULL, HIVE_FOREVER), 1);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(hive_recvfrom(server, buffer, sizeof buffer, &from, HIVE_FOREVER), 1);
		CHECK_EQ(buffer[0], "ab"[i]);
		CHECK(is_same(&from, &at_client));
	}
	stranger = bound("127.0.0.1", &from); /* whose datagrams a connected socket does not see */
	CHECK_EQ(hive_sendto(stranger, "s", 1, &at_client, HIVE_FOREVER), 1);
	CHECK_EQ(hive_sendto(server, "c", 1, &at_client, HIVE_FOREVER), 1);
	CHECK_EQ(hive_recv(client, buffer, sizeof buffer, HIVE_FOREVER), 1);
	CHECK_EQ(buffer[0], 'c');
	CHECK_ERR(hive_sendto(stranger, "x", 1, NULL, HIVE_FOREVER), -EDESTADDRREQ);
	CHECK_OK(close(stranger));
	CHECK_OK(close(server));
	CHECK_EQ(hive_send(client, "d", 1, HIVE_FOREVER), 1); /* nobody is there: the next call tells */
	CHECK_ERR(hive_recv(client, buffer, sizeof buffer, HIVE_FOREVER), -ECONNREFUSED);
	CHECK_ERR(hive_recv(client, buffer, sizeof buffer, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(close(client));
	return 0;
}

TEST(connected_ones_know_their_peer)
{
	net_each(connected);
	CHECK_EQ(connected(NULL), 0);
}

static int mistakes(void *arg)
{
	struct hive_address at, wrong = { .bytes = 200 };
	int fd = bound("127.0.0.1", &at);
	static char large[70000];

	(void)arg;
	CHECK_ERR(hive_recvfrom(fd, NULL, 1, NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_sendto(fd, NULL, 1, &at, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_sendto(fd, "x", 1, &wrong, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_recvfrom(-1, large, 1, NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_sendto(fd, large, sizeof large, &at, HIVE_FOREVER), -EMSGSIZE);
	CHECK_ERR(hive_listen("127.0.0.1", hive_address_port(&at), &datagram), -EADDRINUSE);
	CHECK_OK(close(fd));
	return 0;
}

TEST(mistakes_are_told)
{
	net_each(mistakes);
}

/* Many wait at one socket: each datagram wakes one of them, and none is taken twice. */
enum { RECEIVERS = 8, ROUNDS = 25 };

static int receive_one(void *arg)
{
	unsigned char number;

	CHECK_EQ(hive_recvfrom(*(int *)arg, &number, 1, NULL, HIVE_FOREVER), 1);
	return number;
}

static int many(void *arg)
{
	struct hive_address at, from;
	int fd = bound("127.0.0.1", &at), sender = bound("127.0.0.1", &from);

	(void)arg;
	for (int round = 0; round < ROUNDS; round++) {
		struct hive_fiber *fibers[RECEIVERS];
		uint32_t seen = 0;

		for (int i = 0; i < RECEIVERS; i++)
			fibers[i] = net_spawn(receive_one, &fd);
		for (unsigned char i = 0; i < RECEIVERS; i++)
			CHECK_EQ(hive_sendto(sender, &i, 1, &at, HIVE_FOREVER), 1);
		for (int i = 0; i < RECEIVERS; i++)
			seen |= 1u << net_join(fibers[i]);
		CHECK_EQ(seen, (1u << RECEIVERS) - 1);
	}
	CHECK_OK(close(fd));
	CHECK_OK(close(sender));
	return 0;
}

TEST(each_is_received_once)
{
	net_each(many);
}
