/* SPDX-License-Identifier: MIT */
/* Addresses as text. Numbers only: nobody is asked, and nothing waits. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <rophive/io.h>

#define UNIX_PREFIX "unix:"

enum {
	PREFIX = sizeof UNIX_PREFIX - 1,
	PATH_AT = offsetof(struct sockaddr_un, sun_path),
	PATH_ROOM = sizeof(((struct sockaddr_un *)0)->sun_path),
};

_Static_assert(sizeof(struct sockaddr_storage) <= sizeof(((struct hive_address *)0)->storage), "room for any family");

static int put(struct hive_address *ret_address, const void *from, size_t bytes)
{
	*ret_address = (struct hive_address){ .bytes = (uint32_t)bytes };
	memcpy(ret_address->storage, from, bytes);
	return 0;
}

/* ---- from text ---- */

/* A name that begins with @ is abstract: a 0 in its place, and its length is that of the address. A path ends with a 0. */
static int parse_unix(const char *path, struct hive_address *ret_address)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	bool abstract = *path == '@';
	size_t bytes = strlen(path);

	if (bytes <= (abstract ? 1u : 0u))
		return -EINVAL;
	if (bytes > PATH_ROOM - (abstract ? 0u : 1u))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, path, bytes);
	if (abstract)
		to.sun_path[0] = 0;
	return put(ret_address, &to, PATH_AT + bytes + (abstract ? 0 : 1));
}

/* An interface by name or by number; 0: there is none. */
static uint32_t scope_of(const char *text)
{
	uint64_t number = 0;

	for (const char *at = text; *at >= '0' && *at <= '9' && number <= UINT32_MAX; at++) {
		number = number * 10 + (uint64_t)(*at - '0');
		if (at[1] == 0)
			return number <= UINT32_MAX ? (uint32_t)number : 0;
	}
	return if_nametoindex(text);
}

static int parse_v6(const char *text, uint16_t port, struct hive_address *ret_address)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const char *percent = strchr(text, '%');
	size_t bytes = percent ? (size_t)(percent - text) : strlen(text);
	char digits[INET6_ADDRSTRLEN];

	if (bytes >= sizeof digits)
		return -EINVAL;
	memcpy(digits, text, bytes);
	digits[bytes] = 0;
	if (inet_pton(AF_INET6, digits, &to.sin6_addr) != 1 || (percent && !percent[1]))
		return -EINVAL;
	if (percent) {
		to.sin6_scope_id = scope_of(percent + 1);
		if (to.sin6_scope_id == 0)
			return -ENODEV;
	}
	return put(ret_address, &to, sizeof to);
}

int hive_address_parse(const char *text, uint16_t port, struct hive_address *ret_address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (!text || !ret_address)
		return -EINVAL;
	if (strncmp(text, UNIX_PREFIX, PREFIX) == 0)
		return parse_unix(text + PREFIX, ret_address);
	if (strchr(text, ':'))
		return parse_v6(text, port, ret_address);
	if (inet_pton(AF_INET, text, &to.sin_addr) != 1)
		return -EINVAL;
	return put(ret_address, &to, sizeof to);
}

/* ---- to text ---- */

static int format_v4(const struct sockaddr_in *from, char *ret_text, size_t bytes)
{
	char digits[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &from->sin_addr, digits, sizeof digits);
	return snprintf(ret_text, bytes, "%s:%u", digits, (unsigned)ntohs(from->sin_port));
}

static int format_v6(const struct sockaddr_in6 *from, char *ret_text, size_t bytes)
{
	char digits[INET6_ADDRSTRLEN], name[IF_NAMESIZE + 12] = "";
	unsigned port = ntohs(from->sin6_port);

	inet_ntop(AF_INET6, &from->sin6_addr, digits, sizeof digits);
	if (from->sin6_scope_id == 0)
		return snprintf(ret_text, bytes, "[%s]:%u", digits, port);
	if (!if_indextoname(from->sin6_scope_id, name)) /* it is gone: its number tells as much as we know */
		snprintf(name, sizeof name, "%u", (unsigned)from->sin6_scope_id);
	return snprintf(ret_text, bytes, "[%s%%%s]:%u", digits, name, port);
}

/* Abstract names may have zeros: they are shown as the first one is. */
static int format_unix(const struct sockaddr_un *from, size_t address_bytes, char *ret_text, size_t bytes)
{
	size_t room = address_bytes > PATH_AT ? address_bytes - PATH_AT : 0;
	bool abstract = room > 1 && from->sun_path[0] == 0;
	size_t length = abstract ? room : strnlen(from->sun_path, room);
	char name[PATH_ROOM + 1];

	for (size_t i = 0; i < length; i++)
		name[i] = from->sun_path[i] ? from->sun_path[i] : '@';
	name[length] = 0;
	return snprintf(ret_text, bytes, UNIX_PREFIX "%s", name);
}

/* A copy in the form of its family; false: it is too short, or too long, for that. */
static bool take(const struct hive_address *address, void *ret_form, size_t least, size_t most)
{
	if (address->bytes < least || address->bytes > most)
		return false;
	memset(ret_form, 0, most);
	memcpy(ret_form, address->storage, address->bytes);
	return true;
}

static int family_of(const struct hive_address *address)
{
	sa_family_t family = AF_UNSPEC;

	if (address->bytes >= sizeof family && address->bytes <= sizeof address->storage)
		memcpy(&family, address->storage, sizeof family);
	return family;
}

int hive_address_format(const struct hive_address *address, char *ret_text, size_t bytes)
{
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un local;
	} from;

	if (!address || (!ret_text && bytes > 0))
		return -EINVAL;
	switch (family_of(address)) {
	case AF_INET:
		return take(address, &from.v4, sizeof from.v4, sizeof from.v4) ? format_v4(&from.v4, ret_text, bytes)
		                                                               : -EINVAL;
	case AF_INET6:
		return take(address, &from.v6, sizeof from.v6, sizeof from.v6) ? format_v6(&from.v6, ret_text, bytes)
		                                                               : -EINVAL;
	case AF_UNIX:
		return take(address, &from.local, PATH_AT, sizeof from.local)
		               ? format_unix(&from.local, address->bytes, ret_text, bytes)
		               : -EINVAL;
	case AF_UNSPEC:
		return -EINVAL;
	default:
		return -EAFNOSUPPORT;
	}
}

uint16_t hive_address_port(const struct hive_address *address)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (!address)
		return 0;
	if (family_of(address) == AF_INET && take(address, &v4, sizeof v4, sizeof v4))
		return ntohs(v4.sin_port);
	if (family_of(address) == AF_INET6 && take(address, &v6, sizeof v6, sizeof v6))
		return ntohs(v6.sin6_port);
	return 0;
}
