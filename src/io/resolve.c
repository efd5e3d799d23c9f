/* SPDX-License-Identifier: MIT */
/* Names become addresses by getaddrinfo(), which blocks as long as it likes: a compute worker asks it, and the fiber parks.
 *
 * The request has memory of its own, for the fiber may give up, also while the resolver is busy: an errand (fiber/errand.h), taken when the
 * answer is there.                                                                                                        */
#include <netdb.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <rophive/hive.h>
#include <rophive/io.h>

#include "base/memory.h"
#include "fiber/errand.h"
#include "fiber/once.h"
#include "sched/guest.h"

enum { NAME_ROOM = 256, ADDRESSES = 64 };

struct answer {
	int count; /* or -errno */
	struct hive_address addresses[ADDRESSES];
};

struct request {
	struct guest guest;      /* first */
	struct memory memory;    /* I */
	struct hive *hive;       /* I */
	ATOMIC(uint32_t) errand; /* A */
	struct once once;
	uint16_t port;        /* I */
	char name[NAME_ROOM]; /* I */
	struct answer answer; /* I once answered */
};

/* ---- the resolver ---- */

static int error_of(int code, int system_error)
{
	switch (code) {
	case EAI_NONAME:
#ifdef EAI_NODATA
	case EAI_NODATA:
#endif
#ifdef EAI_ADDRFAMILY
	case EAI_ADDRFAMILY:
#endif
		return -ENOENT;
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_SYSTEM:
		return system_error > 0 ? -system_error : -EIO;
	default:
		return -EIO;
	}
}

static void add(struct answer *answer, const struct addrinfo *info)
{
	struct hive_address *to = &answer->addresses[answer->count];

	if (answer->count == ADDRESSES || info->ai_addrlen > sizeof to->storage)
		return;
	*to = (struct hive_address){ .bytes = info->ai_addrlen };
	memcpy(to->storage, info->ai_addr, info->ai_addrlen);
	answer->count++;
}

/* The port goes in by hand: a number as a service is another thing to look up. */
static void set_port(struct hive_address *address, uint16_t port)
{
	struct sockaddr *at = (struct sockaddr *)(void *)address->storage;
	uint8_t digits[2] = { (uint8_t)(port >> 8), (uint8_t)port };

	if (at->sa_family == AF_INET || at->sa_family == AF_INET6)
		memcpy(at->sa_data, digits, sizeof digits); /* it stands at the same place in both */
}

/* Blocks. Not inlined: it looks at errno, and who calls it may park. */
static __attribute__((noinline)) void ask(const char *name, uint16_t port, struct answer *ret)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list = NULL;
	int r = getaddrinfo(name, NULL, &hints, &list);

	ret->count = 0;
	if (r != 0) {
		ret->count = error_of(r, errno);
		return;
	}
	for (const struct addrinfo *at = list; at; at = at->ai_next)
		if (at->ai_addr && (at->ai_family == AF_INET || at->ai_family == AF_INET6)) {
			int before = ret->count;

			add(ret, at);
			if (ret->count > before)
				set_port(&ret->addresses[before], port);
		}
	freeaddrinfo(list);
	if (ret->count == 0)
		ret->count = -ENOENT;
}

static int give(const struct answer *answer, struct hive_address *ret_addresses, size_t capacity)
{
	for (int i = 0; i < answer->count && (size_t)i < capacity; i++)
		ret_addresses[i] = answer->addresses[i];
	return answer->count;
}

/* ---- for a fiber ---- */

static void discard(struct request *request)
{
	struct hive *hive = request->hive;
	struct memory memory = request->memory;

	hive__memory_free(&memory, request);
	hive__unhold(hive);
}

static void finish(struct request *request)
{
	if (errand_take(&request->errand))
		once_finish(&request->once);
	else
		discard(request);
}

/* On a compute worker. What nobody wants any more is not asked for. */
static void run(struct guest *guest)
{
	struct request *request = (struct request *)(void *)guest;

	if (errand_is_wanted(&request->errand))
		ask(request->name, request->port, &request->answer);
	finish(request);
}

/* The hive stops before a compute worker came to it. */
static void drop(struct guest *guest)
{
	struct request *request = (struct request *)(void *)guest;

	request->answer.count = -ECANCELED;
	finish(request);
}

static int in_fiber(struct hive *hive, const char *name, uint16_t port, struct hive_address *ret_addresses,
                    size_t capacity, int64_t deadline_ns)
{
	const struct memory *memory = hive__guest_memory(hive);
	struct request *request = (struct request *)hive__memory_new(memory, sizeof *request);
	int r;

	if (!request)
		return -ENOMEM;
	request->guest.run = run;
	request->guest.drop = drop;
	request->memory = *memory;
	request->hive = hive;
	request->port = port;
	memcpy(request->name, name, strlen(name) + 1);
	once_init(&request->once);
	hive__hold(hive); /* for the request: it may outlive the fiber */
	r = hive__guest_compute(hive, &request->guest);
	if (r < 0) {
		discard(request);
		return r;
	}
	r = once_wait(&request->once, false, "resolver", deadline_ns);
	if (r < 0 && errand_abandon(&request->errand))
		return r;
	while (r < 0)
		r = once_wait(&request->once, true, "resolver", HIVE_FOREVER);
	r = give(&request->answer, ret_addresses, capacity);
	discard(request);
	return r;
}

/* ---- for a thread ---- */

/* Not inlined: the answer is large, and the stack of a fiber is not. */
static __attribute__((noinline)) int in_thread(const char *name, uint16_t port, struct hive_address *ret_addresses,
                                               size_t capacity)
{
	struct answer answer;

	ask(name, port, &answer);
	return give(&answer, ret_addresses, capacity);
}

/* ---- without a resolver ---- */

static bool ends_with(const char *name, size_t bytes, const char *end)
{
	size_t most = strlen(end);

	return bytes >= most && strncasecmp(name + bytes - most, end, most) == 0;
}

/* This machine has that name, whatever a resolver says, and whether or not there is one. */
static bool is_localhost(const char *name)
{
	size_t bytes = strlen(name);

	if (bytes > 0 && name[bytes - 1] == '.')
		bytes--;
	return ends_with(name, bytes, "localhost") && (bytes == strlen("localhost") || name[bytes - 10] == '.');
}

static int localhost(uint16_t port, struct hive_address *ret_addresses, size_t capacity)
{
	static const char *const both[] = { "127.0.0.1", "::1" };

	for (size_t i = 0; i < 2 && i < capacity; i++)
		hive_address_parse(both[i], port, &ret_addresses[i]);
	return 2;
}

/* The last part of a name is no number: "127.1" and "10.0.0.256" are addresses gone wrong, and no resolver is to guess. */
static bool may_be_name(const char *name)
{
	size_t bytes = strlen(name), last;

	if (bytes > 0 && name[bytes - 1] == '.')
		bytes--;
	for (last = bytes; last > 0 && name[last - 1] != '.'; last--)
		;
	if (last == bytes || strchr(name, ':') || strchr(name, '%'))
		return false;
	if (bytes - last > 2 && name[last] == '0' && (name[last + 1] | 32) == 'x')
		return false;
	while (last < bytes && name[last] >= '0' && name[last] <= '9')
		last++;
	return last < bytes;
}

int hive_resolve(const char *name, uint16_t port, struct hive_address *ret_addresses, size_t capacity,
                 int64_t deadline_ns)
{
	struct guest_place *place = hive__place();
	struct hive_address numeric;
	int r;

	if (!name || (!ret_addresses && capacity > 0))
		return -EINVAL;
	r = hive_address_parse(name, port, &numeric);
	if (r == 0) {
		if (capacity > 0)
			ret_addresses[0] = numeric;
		return 1;
	}
	if (r != -EINVAL || !may_be_name(name))
		return r;
	if (strlen(name) >= NAME_ROOM)
		return -ENAMETOOLONG;
	if (is_localhost(name))
		return localhost(port, ret_addresses, capacity);
	if (deadline_ns <= HIVE_NOWAIT || (deadline_ns != HIVE_FOREVER && deadline_ns <= hive_now(NULL)))
		return -ETIMEDOUT;
	if (place)
		return place->now ? in_fiber(place->hive, name, port, ret_addresses, capacity, deadline_ns) : -EDEADLK;
	return in_thread(name, port, ret_addresses, capacity);
}
