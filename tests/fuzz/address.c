/* SPDX-License-Identifier: MIT */
/* Addresses as text against the system's reader, and against each other: what is read is written, and read again as the same. And addresses of
 * any bytes: told, or written within their room.                                                                              */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <rophive/io.h>

#include "fuzz.h"

enum { TEXT = 200, PATH_MOST = sizeof(((struct sockaddr_un *)0)->sun_path) };

struct expected { /* result, and what it is about */
	int result;
	struct hive_address address;
};

static void expect_bytes(struct expected *e, const void *from, size_t bytes)
{
	e->result = 0;
	e->address = (struct hive_address){ .bytes = (uint32_t)bytes };
	memcpy(e->address.storage, from, bytes);
}

static void expect_unix(struct expected *e, const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t bytes = strlen(path), head = offsetof(struct sockaddr_un, sun_path);

	e->result = -EINVAL;
	if (bytes == 0 || strcmp(path, "@") == 0)
		return;
	e->result = -ENAMETOOLONG;
	if (bytes > PATH_MOST || (bytes == PATH_MOST && *path != '@'))
		return;
	memcpy(to.sun_path, path, bytes);
	if (*path == '@')
		to.sun_path[0] = 0;
	expect_bytes(e, &to, head + bytes + (*path != '@'));
}

/* All digits, and no more than 32 bits: that number; else by name. */
static uint32_t expect_scope(const char *text)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);

	if (strspn(text, "0123456789") == strlen(text) && number <= UINT32_MAX)
		return (uint32_t)number;
	return if_nametoindex(text);
}

static void expect_v6(struct expected *e, const char *text, uint16_t port)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	char digits[TEXT];
	size_t bytes = strcspn(text, "%");

	memcpy(digits, text, bytes);
	digits[bytes] = 0;
	e->result = -EINVAL;
	if (inet_pton(AF_INET6, digits, &to.sin6_addr) != 1 || strcmp(text + bytes, "%") == 0)
		return;
	to.sin6_scope_id = text[bytes] ? expect_scope(text + bytes + 1) : 0;
	e->result = -ENODEV;
	if (text[bytes] && to.sin6_scope_id == 0)
		return;
	expect_bytes(e, &to, sizeof to);
}

static void expect(struct expected *e, const char *text, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };

	memset(e, 0, sizeof *e);
	if (strncmp(text, "unix:", 5) == 0)
		expect_unix(e, text + 5);
	else if (strchr(text, ':'))
		expect_v6(e, text, port);
	else if (inet_pton(AF_INET, text, &to.sin_addr) == 1)
		expect_bytes(e, &to, sizeof to);
	else
		e->result = -EINVAL;
}

/* As snprintf: the length of all of it, whatever the room. */
static int format(const struct hive_address *address, char ret_text[TEXT])
{
	int length = hive_address_format(address, ret_text, TEXT);

	EXPECT(length == -EINVAL || length == -EAFNOSUPPORT || (length > 0 && length < TEXT));
	for (int room = 0; room <= length + 1; room++) {
		char *cut = malloc((size_t)room + 1);

		memset(cut, '#', (size_t)room + 1);
		EXPECT_EQ(hive_address_format(address, cut, (size_t)room), length);
		EXPECT(cut[room] == '#');
		EXPECT(room == 0 || (memcmp(cut, ret_text, (size_t)(room - 1)) == 0 && cut[room - 1] == 0));
		free(cut);
	}
	return length;
}

/* Without its port and its brackets. */
static void strip(char *text)
{
	char *colon = strrchr(text, ':');

	if (strncmp(text, "unix:", 5) == 0)
		return;
	*colon = 0;
	if (*text == '[') {
		memmove(text, text + 1, strlen(text));
		*strrchr(text, ']') = 0;
	}
}

static bool shows_as_it_is(const struct hive_address *address)
{
	const char *bytes = (const char *)address->storage;

	return *(const sa_family_t *)bytes != AF_UNIX ||
	       !memchr(bytes + offsetof(struct sockaddr_un, sun_path) + 1, 0,
	               address->bytes - offsetof(struct sockaddr_un, sun_path) - 2);
}

static void check_text(const char *text, uint16_t port)
{
	struct hive_address *got = malloc(sizeof *got), again;
	struct expected e;
	char written[TEXT];

	memset(got, 0xee, sizeof *got);
	expect(&e, text, port);
	EXPECT_EQ(hive_address_parse(text, port, got), e.result);
	if (e.result == 0) {
		EXPECT_EQ(got->bytes, e.address.bytes);
		EXPECT(memcmp(got->storage, e.address.storage, got->bytes) == 0);
		EXPECT(format(got, written) > 0);
		if (shows_as_it_is(got)) {
			uint16_t back = hive_address_port(got);

			EXPECT_EQ(back, strncmp(text, "unix:", 5) == 0 ? 0 : port);
			strip(written);
			EXPECT_EQ(hive_address_parse(written, back, &again), 0);
			EXPECT(again.bytes == got->bytes && memcmp(again.storage, got->storage, got->bytes) == 0);
		}
	} else {
		for (size_t i = 0; i < sizeof *got; i++)
			EXPECT_EQ(((uint8_t *)got)[i], 0xee);
	}
	free(got);
}

/* As long as its family says. */
static bool fits(uint16_t family, uint32_t bytes)
{
	if (family == AF_UNIX)
		return bytes >= offsetof(struct sockaddr_un, sun_path) && bytes <= sizeof(struct sockaddr_un);
	return (family == AF_INET && bytes == sizeof(struct sockaddr_in)) ||
	       (family == AF_INET6 && bytes == sizeof(struct sockaddr_in6));
}

static void check_bytes(struct input *in)
{
	static const uint16_t families[] = { AF_INET, AF_INET6, AF_UNIX, AF_UNSPEC, AF_PACKET };
	struct hive_address *address = calloc(1, sizeof *address);
	uint16_t family = families[input_below(in, 5)];
	char written[TEXT];

	address->bytes = input_below(in, 4) == 0 ? (uint32_t)input_word(in, 4) : input_below(in, 140);
	for (size_t i = 0; i < sizeof address->storage; i++)
		((uint8_t *)address->storage)[i] = input_byte(in);
	memcpy(address->storage, &family, sizeof family);
	EXPECT(fits(family, address->bytes) == (format(address, written) > 0));
	EXPECT(fits(family, address->bytes) || hive_address_port(address) == 0);
	free(address);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char letters[] = "0123456789:::...%@/abcdefABCDEF-xunlo";
	struct input in = input_of(data, size);
	uint32_t how = input_below(&in, 4);
	uint16_t port = (uint16_t)input_word(&in, 2);
	char text[TEXT] = "";
	size_t length = 0;

	if (how == 0) {
		check_bytes(&in);
		return 0;
	}
	if (how == 1) {
		strcpy(text, "unix:");
		length = 5;
	}
	while (input_more(&in) && length < 120)
		text[length++] = how == 2 ? letters[input_below(&in, sizeof letters - 1)] : (char)input_byte(&in);
	check_text(text, port);
	return 0;
}
