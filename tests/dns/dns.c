/* SPDX-License-Identifier: MIT */
/* Names by librophive-dns, on each core, asked of a server of our own: answers of all sorts, none, and questions that are given up. */
#include <rophive/dns.h>

#include "dns/server.h"
#include "support/counted.h"

enum { CROWD = 100 };

struct scene {
	struct dns_server server;
	struct hive *hive;
	struct hive_dns *dns;
	ATOMIC(uint32_t) ticks, over;
};

static struct hive_dns *create(struct hive *hive, uint16_t port, int timeout_ms)
{
	struct hive_dns_options options = { .timeout_ms = timeout_ms, .tries = 2 };
	char servers[40];
	struct hive_dns *dns;

	snprintf(servers, sizeof servers, "127.0.0.1:%u", (unsigned)port);
	options.servers = servers;
	CHECK_OK(hive_dns_create(hive, &options, &dns));
	return dns;
}

/* fn as a fiber, on each core, with one IO worker and none that computes: nothing may block. */
static void each(hive_fiber_fn *fn, int timeout_ms)
{
	for (int i = 0; i < core_count(); i++) {
		struct scene s = { .ticks = 0 };

		dns_open(&s.server);
		s.hive = net_start(core_names[i], 1, 0);
		s.dns = create(s.hive, s.server.port, timeout_ms);
		CHECK_OK(hive_block_on(s.hive, fn, &s, HIVE_FOREVER, NULL));
		CHECK_OK(hive_dns_destroy(s.dns));
		real_end(s.hive, HIVE_DRAIN);
		dns_close(&s.server);
	}
}

static int resolve(const struct scene *s, const char *name, int64_t deadline_ns)
{
	struct hive_address to[4];

	return hive_dns_resolve(s->dns, name, 80, to, 4, deadline_ns);
}

static void check_address(const struct hive_address *address)
{
	char text[60];

	CHECK(hive_address_format(address, text, sizeof text) > 0);
	CHECK(strcmp(text, "192.0.2.1:443") == 0 || strcmp(text, "[2001:db8::1]:443") == 0);
}

static int answers(void *arg)
{
	struct scene *s = arg;
	struct hive_address to[3] = { { 0 } };

	CHECK_EQ(hive_dns_resolve(s->dns, "good.test", 443, to, 3, HIVE_FOREVER), 2);
	check_address(&to[0]);
	check_address(&to[1]);
	CHECK(memcmp(&to[0], &to[1], sizeof to[0]) != 0);
	CHECK_EQ(to[2].bytes, 0);
	CHECK_EQ(hive_dns_resolve(s->dns, "good.test", 443, to, 1, HIVE_FOREVER), 2);
	CHECK_EQ(hive_dns_resolve(s->dns, "good.test", 443, NULL, 0, HIVE_FOREVER), 2);
	CHECK_ERR(resolve(s, "nx.test", HIVE_FOREVER), -ENOENT);
	CHECK_ERR(resolve(s, "empty.test", HIVE_FOREVER), -ENOENT);
	CHECK_ERR(resolve(s, "fail.test", HIVE_FOREVER), -EAGAIN);
	CHECK_EQ(load_relaxed(&s->server.by_tcp), 0);
	CHECK_EQ(resolve(s, "many.test", HIVE_FOREVER), 2 * DNS_MANY); /* cut: asked again by TCP */
	CHECK_EQ(load_relaxed(&s->server.by_tcp), 2);
	return 0;
}

TEST(answers_of_all_sorts)
{
	each(answers, 5000);
}

static int nobody_is_asked(void *arg)
{
	struct scene *s = arg;

	CHECK_EQ(resolve(s, "127.0.0.1", HIVE_FOREVER), 1);
	CHECK_EQ(resolve(s, "::1", HIVE_NOWAIT), 1);
	CHECK_EQ(resolve(s, "some.localhost", HIVE_FOREVER), 2);
	CHECK_ERR(resolve(s, "10.0.0.256", HIVE_FOREVER), -EINVAL);
	CHECK_ERR(resolve(s, "", HIVE_FOREVER), -EINVAL);
	CHECK_ERR(resolve(s, "good.test", HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_dns_resolve(NULL, "good.test", 1, NULL, 0, HIVE_FOREVER), -EINVAL);
	CHECK_EQ(load_relaxed(&s->server.by_udp), 0);
	return 0;
}

TEST(what_needs_no_server_asks_none)
{
	each(nobody_is_asked, 5000);
}

static int tick(void *arg)
{
	struct scene *s = arg;

	while (!load_relaxed(&s->over)) {
		CHECK_OK(hive_sleep(HIVE_MS(1)));
		add_relaxed(&s->ticks, 1u);
	}
	return 0;
}

/* Others go on meanwhile, on the same worker. Two tries of 20 ms. */
static int in_vain(void *arg)
{
	static const char *const names[] = { "silent.test", "garbage.test", "wrong.test" };
	struct scene *s = arg;
	struct hive_fiber *ticker = net_spawn(tick, s);

	for (int i = 0; i < 3; i++) {
		uint32_t before = load_relaxed(&s->ticks);
		int r = resolve(s, names[i], HIVE_FOREVER);

		CHECK(r == -EAGAIN || (i > 0 && r == -EIO));
		CHECK(i > 0 || load_relaxed(&s->ticks) > before);
	}
	store_relaxed(&s->over, 1u);
	CHECK_EQ(net_join(ticker), 0);
	CHECK(load_relaxed(&s->server.by_udp) >= 2);
	return 0;
}

TEST(servers_that_do_not_answer_keep_nobody)
{
	each(in_vain, 20);
}

static int ask_silent(void *arg)
{
	return resolve(arg, "silent.test", HIVE_FOREVER);
}

/* They are given up; the resolver is destroyed with all of them open. */
static int given_up(void *arg)
{
	struct scene *s = arg;
	struct hive_fiber *fiber;
	int64_t deadline = hive_deadline(NULL, HIVE_MS(5));

	CHECK_ERR(resolve(s, "silent.test", deadline), -ETIMEDOUT);
	CHECK(hive_now(NULL) >= deadline);
	for (int i = 0; i < 5; i++) {
		fiber = net_spawn(ask_silent, s);
		for (int turns = i; turns > 0; turns--)
			CHECK_OK(hive_yield());
		if (i == 4)
			CHECK_ERR(hive_dns_destroy(s->dns), -EBUSY);
		CHECK_OK(hive_fiber_cancel(fiber));
		CHECK_EQ(net_join(fiber), -ECANCELED);
	}
	CHECK_EQ(resolve(s, "good.test", HIVE_FOREVER), 2); /* the others are still open */
	return 0;
}

TEST(deadlines_and_cancels_are_heeded)
{
	each(given_up, 60000);
}

static int ask_good(void *arg)
{
	return resolve(arg, "good.test", HIVE_FOREVER);
}

static int crowd(void *arg)
{
	struct hive_fiber *fibers[CROWD];

	for (int i = 0; i < CROWD; i++)
		fibers[i] = net_spawn(i % 10 == 9 ? ask_silent : ask_good, arg);
	for (int i = 0; i < CROWD; i++) {
		if (i % 10 == 9)
			CHECK_OK(hive_fiber_cancel(fibers[i]));
		CHECK_EQ(net_join(fibers[i]), i % 10 == 9 ? -ECANCELED : 2);
	}
	return 0;
}

TEST(many_questions_at_once)
{
	each(crowd, 10000);
	for (int i = 0; i < core_count(); i++) { /* on several workers, and from a thread */
		struct scene s = { .ticks = 0 };

		dns_open(&s.server);
		s.hive = net_start(core_names[i], 3, 1);
		s.dns = create(s.hive, s.server.port, 10000);
		CHECK_EQ(resolve(&s, "good.test", HIVE_FOREVER), 2);
		CHECK_OK(hive_block_on(s.hive, crowd, &s, HIVE_FOREVER, NULL));
		CHECK_OK(hive_dns_destroy(s.dns));
		real_end(s.hive, HIVE_DRAIN);
		dns_close(&s.server);
	}
}

/* A hive that stops at once with questions open, and a port where nobody listens. */
TEST(ends)
{
	for (int i = 0; i < core_count(); i++) {
		struct scene s = { .ticks = 0 };
		struct hive_fiber *fiber;
		int result;

		dns_open(&s.server);
		s.hive = net_start(core_names[i], 2, 1);
		s.dns = create(s.hive, s.server.port, 60000);
		CHECK_OK(hive_spawn(s.hive, ask_silent, &s, NULL, &fiber));
		WAIT_UNTIL(load_relaxed(&s.server.by_udp) > 0);
		CHECK_OK(hive_stop(s.hive, HIVE_NOW, HIVE_FOREVER));
		CHECK_OK(hive_join(s.hive, real_patience()));
		CHECK_OK(hive_fiber_join(fiber, HIVE_NOWAIT, &result));
		CHECK_ERR(result, -ECANCELED);
		CHECK_OK(hive_dns_destroy(s.dns));
		CHECK_OK(hive_destroy(s.hive));
		dns_hush(&s.server);
		s.hive = net_start(core_names[i], 1, 0);
		s.dns = create(s.hive, s.server.port, 20);
		CHECK_ERR(resolve(&s, "good.test", HIVE_FOREVER), -EAGAIN);
		CHECK_OK(hive_dns_destroy(s.dns));
		real_end(s.hive, HIVE_DRAIN);
		dns_close(&s.server);
	}
}

/* Each question has a socket of its own, most likely with the number of the last one. */
static int ask_often(void *arg)
{
	struct scene *s = arg;

	for (int i = 0; i < 20; i++)
		CHECK_EQ(resolve(s, "good.test", HIVE_FOREVER), 2);
	return 0;
}

TEST(sockets_of_old_questions_are_not_mistaken_for_new_ones)
{
	struct scene s = { .ticks = 0 };
	uint32_t there;

	dns_open(&s.server);
	s.hive = counted_start(0, &there);
	s.dns = create(s.hive, s.server.port, 60000);
	counted_run(s.hive, there, ask_often, &s);
	CHECK(atomic_load(&counted_added) > 1);
	CHECK_EQ(atomic_load(&counted_in_vain), 0);
	CHECK_OK(hive_dns_destroy(s.dns));
	counted_end(s.hive);
	dns_close(&s.server);
}

TEST(mistakes_are_told)
{
	struct hive *hive = net_start("epoll", 1, 0);
	struct hive_dns_options bad[] = {
		{ .reserved = { 1 } }, { .timeout_ms = -1 },        { .tries = -1 },
		{ .servers = "" },     { .servers = "no address" },
	};
	struct hive_dns *dns;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_ERR(hive_dns_create(hive, &bad[i], &dns), -EINVAL);
	CHECK_ERR(hive_dns_create(NULL, NULL, &dns), -EINVAL);
	CHECK_ERR(hive_dns_create(hive, NULL, NULL), -EINVAL);
	CHECK_OK(hive_dns_destroy(NULL));
	real_end(hive, HIVE_DRAIN);
}
