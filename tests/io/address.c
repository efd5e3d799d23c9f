/* SPDX-License-Identifier: MIT */
/* Addresses as text, there and back; and what is none. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <rophive/hive.h>

#include "test.h"

#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static const struct {
	const char *text, *shown; /* with port 80 */
} good[] = {
	{ "127.0.0.1", "127.0.0.1:80" },
	{ "0.0.0.0", "0.0.0.0:80" },
	{ "255.255.255.255", "255.255.255.255:80" },
	{ "1.2.3.4", "1.2.3.4:80" },
	{ "::", "[::]:80" },
	{ "::1", "[::1]:80" },
	{ "1::", "[1::]:80" },
	{ "2001:db8::1", "[2001:db8::1]:80" },
	{ "2001:DB8:0:0:0:0:0:1", "[2001:db8::1]:80" },
	{ "1:2:3:4:5:6:7:8", "[1:2:3:4:5:6:7:8]:80" },
	{ "1:2:3:4:5:6:1.2.3.4", "[1:2:3:4:5:6:102:304]:80" },
	{ "::ffff:1.2.3.4", "[::ffff:1.2.3.4]:80" },
	{ "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:80" },
	{ "fe80::1%lo", "[fe80::1%lo]:80" },
	{ "fe80::1%1", "[fe80::1%lo]:80" },
	{ "ff02::1%lo", "[ff02::1%lo]:80" },
	{ "fe80::1%4294967295", "[fe80::1%4294967295]:80" },
	{ "unix:/run/x", "unix:/run/x" },
	{ "unix:relative", "unix:relative" },
	{ "unix:a@b", "unix:a@b" },
	{ "unix: ", "unix: " },
	{ "unix:@name", "unix:@name" },
	{ "unix:@@", "unix:@@" },
	{ "unix:/" HUNDRED "123456", "unix:/" HUNDRED "123456" },   /* 107 bytes */
	{ "unix:@" HUNDRED "1234567", "unix:@" HUNDRED "1234567" }, /* 108, no final 0 */
};

static const struct {
	const char *text;
	int error;
} bad[] = {
	{ "", -EINVAL },
	{ " ", -EINVAL },
	{ "localhost", -EINVAL },
	{ "1", -EINVAL },
	{ "127.1", -EINVAL },
	{ "1.2.3", -EINVAL },
	{ "1.2.3.4.5", -EINVAL },
	{ "1.2.3.256", -EINVAL },
	{ "1.2.3.-1", -EINVAL },
	{ "01.2.3.4", -EINVAL },
	{ "0x7f.0.0.1", -EINVAL },
	{ "1.2.3.4 ", -EINVAL },
	{ " 1.2.3.4", -EINVAL },
	{ "1.2.3.4:80", -EINVAL },
	{ "1.2.3.4%lo", -EINVAL },
	{ "1..2.3", -EINVAL },
	{ ".1.2.3", -EINVAL },
	{ ":", -EINVAL },
	{ ":::", -EINVAL },
	{ ":1", -EINVAL },
	{ "1:", -EINVAL },
	{ "1::2::3", -EINVAL },
	{ "1:2:3:4:5:6:7", -EINVAL },
	{ "1:2:3:4:5:6:7:8:9", -EINVAL },
	{ "12345::", -EINVAL },
	{ "g::", -EINVAL },
	{ "[::1]", -EINVAL },
	{ "[::1]:80", -EINVAL },
	{ "::1 ", -EINVAL },
	{ "::1.2.3", -EINVAL },
	{ "::1/64", -EINVAL },
	{ "fe80::1%", -EINVAL },
	{ "%lo", -EINVAL },
	{ "fe80::1%no-such-interface", -ENODEV },
	{ "fe80::1%0", -ENODEV },
	{ "fe80::1%4294967296", -ENODEV },
	{ "fe80::1%99999999999999999999999", -ENODEV },
	{ "fe80::1%lo%lo", -ENODEV },
	{ "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555", -EINVAL },
	{ "unix:", -EINVAL },
	{ "unix:@", -EINVAL },
	{ "unix", -EINVAL },
	{ "UNIX:/x", -EINVAL },
	{ "unix:/" HUNDRED "1234567", -ENAMETOOLONG },
	{ "unix:@" HUNDRED "12345678", -ENAMETOOLONG },
};

TEST(good_texts_become_addresses_and_texts_again)
{
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		bool local = strncmp(good[i].text, "unix:", 5) == 0;
		struct hive_address address, again;
		char text[200];

		CHECK_OK(hive_address_parse(good[i].text, 80, &address));
		CHECK_EQ(hive_address_format(&address, text, sizeof text), strlen(good[i].shown));
		CHECK_STR(text, good[i].shown);
		CHECK_EQ(hive_address_port(&address), local ? 0 : 80);
		if (local) {
			CHECK_OK(hive_address_parse(text, 0, &again));
			CHECK_EQ(again.bytes, address.bytes);
			CHECK_EQ(memcmp(again.storage, address.storage, address.bytes), 0);
		}
	}
}

TEST(bad_texts_are_refused_and_nothing_is_written)
{
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hive_address address, before;
		int r;

		memset(&address, 0x5a, sizeof address);
		before = address;
		r = hive_address_parse(bad[i].text, 80, &address);
		if (r != bad[i].error)
			test_fail(__FILE__, __LINE__, "\"%s\": %s", bad[i].text, test_error(r));
		CHECK_EQ(memcmp(&address, &before, sizeof address), 0);
	}
	CHECK_ERR(hive_address_parse(NULL, 80, &(struct hive_address){ 0 }), -EINVAL);
	CHECK_ERR(hive_address_parse("::1", 80, NULL), -EINVAL);
}

TEST(the_system_reads_the_same_in_them)
{
	struct hive_address address;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;

	CHECK_OK(hive_address_parse("10.1.2.3", 65535, &address));
	CHECK_EQ(address.bytes, sizeof v4);
	memcpy(&v4, address.storage, sizeof v4);
	CHECK_EQ(v4.sin_family, AF_INET);
	CHECK_EQ(ntohl(v4.sin_addr.s_addr), 0x0a010203);
	CHECK_EQ(ntohs(v4.sin_port), 65535);

	CHECK_OK(hive_address_parse("fe80::2%lo", 1, &address));
	CHECK_EQ(address.bytes, sizeof v6);
	memcpy(&v6, address.storage, sizeof v6);
	CHECK_EQ(v6.sin6_family, AF_INET6);
	CHECK_EQ(v6.sin6_scope_id, if_nametoindex("lo"));
	CHECK_EQ(v6.sin6_addr.s6_addr[15], 2);

	CHECK_OK(hive_address_parse("unix:@ab", 1, &address));
	CHECK_EQ(address.bytes, offsetof(struct sockaddr_un, sun_path) + 3);
	memset(&local, 1, sizeof local);
	memcpy(&local, address.storage, address.bytes);
	CHECK_EQ(memcmp(local.sun_path, "\0ab", 3), 0);
	CHECK_OK(hive_address_parse("unix:ab", 1, &address));
	CHECK_EQ(address.bytes, offsetof(struct sockaddr_un, sun_path) + 3);
}

TEST(text_is_cut_as_snprintf_cuts_it)
{
	struct hive_address address;
	char text[8];

	CHECK_OK(hive_address_parse("127.0.0.1", 12345, &address));
	for (size_t bytes = 0; bytes <= sizeof text; bytes++) {
		memset(text, '#', sizeof text);
		CHECK_EQ(hive_address_format(&address, text, bytes), 15);
		if (bytes > 0)
			CHECK_EQ(strlen(text), bytes - 1);
		if (bytes < sizeof text)
			CHECK_EQ(text[bytes], '#');
	}
	CHECK_EQ(hive_address_format(&address, NULL, 0), 15);
	CHECK_ERR(hive_address_format(&address, NULL, 1), -EINVAL);
	CHECK_ERR(hive_address_format(NULL, text, 1), -EINVAL);
	CHECK_EQ(hive_address_port(NULL), 0);
}

/* An address from elsewhere: too short, too long, of a family that we do not know, without a name, with zeros in it. */
TEST(addresses_gone_wrong_are_told_and_not_read_beyond_their_end)
{
	struct hive_address address = { 0 };
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	sa_family_t family = AF_NETLINK;
	char text[200];

	CHECK_ERR(hive_address_format(&address, text, sizeof text), -EINVAL);
	memcpy(address.storage, &family, sizeof family);
	address.bytes = 12;
	CHECK_ERR(hive_address_format(&address, text, sizeof text), -EAFNOSUPPORT);
	address.bytes = 1;
	CHECK_ERR(hive_address_format(&address, text, sizeof text), -EINVAL);
	address.bytes = sizeof address.storage + 1;
	CHECK_ERR(hive_address_format(&address, text, sizeof text), -EINVAL);

	for (int i = 0; i < 2; i++) {
		CHECK_OK(hive_address_parse(i ? "::1" : "127.0.0.1", 80, &address));
		address.bytes--;
		CHECK_ERR(hive_address_format(&address, text, sizeof text), -EINVAL);
		CHECK_EQ(hive_address_port(&address), 0);
		address.bytes += 2;
		CHECK_ERR(hive_address_format(&address, text, sizeof text), -EINVAL);
		CHECK_EQ(hive_address_port(&address), 0);
	}

	memset(local.sun_path, 'x', sizeof local.sun_path); /* the kernel's longest has no final 0 */
	memcpy(address.storage, &local, sizeof local);
	address.bytes = sizeof local;
	CHECK_EQ(hive_address_format(&address, text, sizeof text), 5 + sizeof local.sun_path);
	address.bytes = sizeof local + 1;
	CHECK_ERR(hive_address_format(&address, text, sizeof text), -EINVAL);
	address.bytes = offsetof(struct sockaddr_un, sun_path);
	CHECK_EQ(hive_address_format(&address, text, sizeof text), 5);
	CHECK_STR(text, "unix:");
	memcpy(local.sun_path, "\0a\0b", 4);
	memcpy(address.storage, &local, sizeof local);
	address.bytes = offsetof(struct sockaddr_un, sun_path) + 4;
	hive_address_format(&address, text, sizeof text);
	CHECK_STR(text, "unix:@a@b");
}
