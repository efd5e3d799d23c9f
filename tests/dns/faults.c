/* SPDX-License-Identifier: MIT */
/* Each allocation of c-ares, and each of the library meanwhile, is refused in turn: an error is told, nothing is left, and the next try works. */
#include <ares.h>
#include <rophive/dns.h>

#include "dns/server.h"
#include "faults/swept.h"

static ATOMIC(int64_t) asked, fails_at, theirs; /* since when; 0: none is refused; blocks that c-ares has */

void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static bool refuses(void)
{
	int64_t at = load_relaxed(&fails_at);

	return at > 0 && add_relaxed(&asked, 1) + 1 == at;
}

/* By the linker: the library's memory. */
void *__wrap_realloc(void *old, size_t bytes)
{
	return refuses() ? NULL : __real_realloc(old, bytes);
}

static void *their_malloc(size_t bytes)
{
	void *block = refuses() ? NULL : malloc(bytes);

	add_relaxed(&theirs, (int64_t)(block != NULL));
	return block;
}

static void *their_realloc(void *old, size_t bytes)
{
	void *block = refuses() ? NULL : __real_realloc(old, bytes);

	add_relaxed(&theirs, (int64_t)(!old && block));
	return block;
}

static void their_free(void *block)
{
	sub_relaxed(&theirs, (int64_t)(block != NULL));
	free(block);
}

/* What came of it. */
static int once(struct hive *hive, const char *servers, int timeout_ms)
{
	struct hive_dns_options options = { .servers = servers, .timeout_ms = timeout_ms, .tries = 1 };
	struct hive_address to[2];
	struct hive_dns *dns;
	int r = SWEPT(hive_dns_create)(hive, &options, &dns);

	if (r < 0)
		return r;
	r = SWEPT(hive_dns_resolve)(dns, "good.test", 1, to, 2, HIVE_FOREVER);
	CHECK_OK(SWEPT(hive_dns_destroy)(dns));
	return r;
}

struct asking {
	struct hive *hive;
	const char *servers;
	int timeout_ms;
};

static int once_here(void *arg)
{
	const struct asking *a = arg;

	return once(a->hive, a->servers, a->timeout_ms);
}

static int once_in_fiber(struct hive *hive, const char *servers, int timeout_ms)
{
	struct asking asking = { hive, servers, timeout_ms };
	int result = 0, r = hive_block_on(hive, once_here, &asking, HIVE_FOREVER, &result);

	return r < 0 ? r : result;
}

static void sweep(int (*ask)(struct hive *hive, const char *servers, int timeout_ms))
{
	struct hive *hive = net_start("epoll", 1, 1);
	struct dns_server server;
	char servers[40];
	int told = 0;

	CHECK_EQ(ares_library_init_mem(ARES_LIB_INIT_ALL, their_malloc, their_free, their_realloc), ARES_SUCCESS);
	dns_open(&server);
	snprintf(servers, sizeof servers, "127.0.0.1:%u", (unsigned)server.port);
	CHECK_EQ(ask(hive, servers, 20000), 2);
	for (int64_t at = 1, seen = at; seen >= at - 1; at++) { /* the last one refuses none */
		int r;

		CHECK(at < 10000);
		store_relaxed(&asked, (int64_t)0);
		store_relaxed(&fails_at, at);
		r = ask(hive, servers, 30);
		seen = load_relaxed(&asked);
		store_relaxed(&fails_at, (int64_t)0);
		CHECK(r == 2 || r == 1 || r == -ENOMEM || r == -EAGAIN || r == -EIO || r == -ENOENT);
		told += r == -ENOMEM;
		WAIT_UNTIL(load_relaxed(&theirs) == 0); /* operations may still end */
		if (at % 16 == 0)
			CHECK_EQ(ask(hive, servers, 20000), 2);
	}
	CHECK(told > 5);
	dns_close(&server);
	real_end(hive, HIVE_DRAIN);
}

TEST(each_refused_allocation_is_survived)
{
	sweep(once);
}

TEST(each_refused_allocation_is_survived_by_a_fiber)
{
	sweep(once_in_fiber);
}

TEST(every_function_of_the_header_is_in_a_sweep)
{
	CHECK_EQ(swept_header("dns.h", swept_is_noted), 3);
}
