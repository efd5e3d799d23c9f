/* SPDX-License-Identifier: MIT */
/* Names, on each core, with a resolver of our own in place of the system's: it answers what the name says, or hangs until it is let go. */
#include <netdb.h>

#include "base/atomic.h"
#include "support/net.h"

static ATOMIC(uint32_t) asked, answered, freed;
static struct gate hanging, go_on;

static struct addrinfo *new_info(int family, unsigned char last)
{
	struct addrinfo *info = calloc(1, sizeof *info + sizeof(struct sockaddr_in6));

	CHECK(info);
	info->ai_family = family;
	info->ai_addr = (struct sockaddr *)(void *)(info + 1);
	info->ai_addr->sa_family = (sa_family_t)family;
	if (family == AF_INET) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)info->ai_addr;

		info->ai_addrlen = sizeof *v4;
		v4->sin_addr.s_addr = htonl(0x7f000000u | last);
	} else {
		struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)info->ai_addr;

		info->ai_addrlen = sizeof *v6;
		v6->sin6_addr.s6_addr[15] = 1; /* nothing leaves this machine */
	}
	return info;
}

static struct addrinfo *new_list(int count)
{
	struct addrinfo *list = NULL;

	for (int i = count; i > 0; i--) {
		struct addrinfo *info = new_info(i % 2 ? AF_INET : AF_INET6, (unsigned char)i);

		info->ai_next = list;
		list = info;
	}
	return list;
}

/* In place of the system's. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list)
{
	int code = 0;

	CHECK(!service && hints && hints->ai_family == AF_UNSPEC);
	add_relaxed(&asked, 1u);
	if (strcmp(name, "hangs") == 0) {
		gate_open(&hanging);
		gate_pass(&go_on);
	}
	if (sscanf(name, "error%d.", &code) == 1) {
		errno = ENETDOWN;
	} else {
		int count = 1;

		sscanf(name, "has%d.", &count);
		*ret_list = new_list(count);
	}
	add_relaxed(&answered, 1u);
	return -code;
}

void freeaddrinfo(struct addrinfo *list)
{
	if (list)
		add_relaxed(&freed, 1u);
	while (list) {
		struct addrinfo *next = list->ai_next;

		free(list);
		list = next;
	}
}

static void check_text(const struct hive_address *address, const char *text)
{
	char shown[100];

	hive_address_format(address, shown, sizeof shown);
	CHECK_STR(shown, text);
}

static int without(void *arg)
{
	static const char *const local[] = { "localhost", "LocalHost", "localhost.", "x.localhost", "a.b.LOCALHOST." };
	struct hive_address addresses[3];
	uint32_t before = load_relaxed(&asked);

	(void)arg;
	CHECK_EQ(hive_resolve("127.0.0.1", 80, addresses, 3, HIVE_NOWAIT), 1);
	check_text(&addresses[0], "127.0.0.1:80");
	CHECK_EQ(hive_resolve("::1", 80, addresses, 3, HIVE_NOWAIT), 1);
	check_text(&addresses[0], "[::1]:80");
	CHECK_EQ(hive_resolve("unix:@x", 80, addresses, 3, HIVE_NOWAIT), 1);
	CHECK_EQ(hive_resolve("::1", 80, NULL, 0, HIVE_NOWAIT), 1);
	for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
		memset(addresses, 0, sizeof addresses);
		CHECK_EQ(hive_resolve(local[i], 7, addresses, 3, HIVE_NOWAIT), 2);
		check_text(&addresses[0], "127.0.0.1:7");
		check_text(&addresses[1], "[::1]:7");
		CHECK_EQ(addresses[2].bytes, 0);
		CHECK_EQ(hive_resolve(local[i], 7, addresses, 0, HIVE_NOWAIT), 2);
	}
	CHECK_EQ(load_relaxed(&asked), before);
	return 0;
}

TEST(numbers_and_localhost_ask_nobody)
{
	net_each(without);
	CHECK_EQ(without(NULL), 0);
}

static int refused(void *arg)
{
	static const char *const texts[] = { "",      ".",       "1",      "127.1", "10.0.0.256", "x.0x7f", "::g",
		                             "unix:", "[::1]:1", "a.b.1.", "a:1",   "x%lo",       "unix:@" };
	struct hive_address address;
	uint32_t before = load_relaxed(&asked);
	char name[300];

	(void)arg;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		CHECK_ERR(hive_resolve(texts[i], 80, &address, 1, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_resolve("fe80::1%no-such-interface", 80, &address, 1, HIVE_FOREVER), -ENODEV);
	CHECK_ERR(hive_resolve(NULL, 80, &address, 1, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_resolve("name", 80, NULL, 1, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_resolve("name", 80, &address, 1, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_resolve("name", 80, &address, 1, 1), -ETIMEDOUT);
	memset(name, 'x', sizeof name);
	name[256] = 0;
	CHECK_ERR(hive_resolve(name, 80, &address, 1, HIVE_FOREVER), -ENAMETOOLONG);
	CHECK_EQ(load_relaxed(&asked), before);
	name[255] = 0;
	CHECK_EQ(hive_resolve(name, 80, &address, 1, HIVE_FOREVER), 1);
	CHECK_EQ(load_relaxed(&asked), before + 1);
	return 0;
}

TEST(what_is_no_name_is_not_asked_for)
{
	net_each(refused);
	CHECK_EQ(refused(NULL), 0);
}

static const struct {
	int code, error;
} errors[] = { { EAI_NONAME, -ENOENT },   { EAI_NODATA, -ENOENT }, { EAI_ADDRFAMILY, -ENOENT },
	       { EAI_AGAIN, -EAGAIN },    { EAI_MEMORY, -ENOMEM }, { EAI_FAIL, -EIO },
	       { EAI_SYSTEM, -ENETDOWN }, { EAI_FAMILY, -EIO },    { EAI_BADFLAGS, -EIO } };

static int answers(void *arg)
{
	struct hive_address addresses[100];
	char name[40];

	(void)arg;
	for (int count = 1; count <= 70; count += 23) {
		int known = count < 64 ? count : 64;

		for (int capacity = 0; capacity <= 100; capacity += 20) {
			memset(addresses, 0, sizeof addresses);
			snprintf(name, sizeof name, "has%d.example", count);
			CHECK_EQ(hive_resolve(name, 443, addresses, (size_t)capacity, HIVE_FOREVER), known);
			for (int i = 0; i < 100; i++)
				CHECK_EQ(hive_address_port(&addresses[i]), i < known && i < capacity ? 443 : 0);
		}
	}
	check_text(&addresses[0], "127.0.0.1:443");
	check_text(&addresses[1], "[::1]:443");
	memset(addresses, 0x5a, sizeof *addresses);
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		snprintf(name, sizeof name, "error%d.example", -errors[i].code);
		CHECK_ERR(hive_resolve(name, 443, addresses, 1, HIVE_FOREVER), errors[i].error);
		CHECK_EQ(addresses[0].bytes, 0x5a5a5a5a);
	}
	CHECK_ERR(hive_resolve("has0.example", 443, addresses, 1, HIVE_FOREVER), -ENOENT);
	return 0;
}

TEST(the_answer_is_told)
{
	net_each(answers);
	CHECK_EQ(answers(NULL), 0);
}

static int ask_hanging(void *arg)
{
	struct hive_address address;

	return hive_resolve("hangs", 1, &address, 1, *(int64_t *)arg);
}

static void yield_until_asked(uint32_t count)
{
	for (int64_t limit = real_patience(); load_relaxed(&asked) < count;) {
		CHECK(hive_now(NULL) < limit);
		CHECK_OK(hive_yield());
	}
}

/* The caller goes on while the resolver does not. What it answers in the end is nobody's any more. */
static int abandon(void *arg)
{
	uint32_t before = load_relaxed(&asked), unanswered = load_relaxed(&answered);
	int64_t forever = HIVE_FOREVER;
	struct hive_fiber *fiber;

	(void)arg;
	fiber = net_spawn(ask_hanging, &forever);
	yield_until_asked(before + 1);
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_EQ(net_join(fiber), -ECANCELED);
	/* Until the other compute worker was quick enough to begin. */
	for (int64_t patience = HIVE_MS(1); load_relaxed(&asked) < before + 2; patience *= 2) {
		int64_t deadline = hive_deadline(NULL, patience);

		CHECK_ERR(ask_hanging(&deadline), -ETIMEDOUT);
		CHECK(hive_now(NULL) >= deadline);
	}
	fiber = net_spawn(ask_hanging, &forever); /* queued behind them, and never asked for */
	CHECK_OK(hive_yield());
	CHECK_OK(hive_fiber_cancel(fiber));
	CHECK_EQ(net_join(fiber), -ECANCELED);
	CHECK_EQ(load_relaxed(&answered), unanswered);
	gate_open(&go_on);
	gate_open(&go_on);
	return 0;
}

TEST(a_busy_resolver_does_not_keep_anybody)
{
	uint32_t before = load_relaxed(&asked);

	gate_init(&hanging);
	gate_init(&go_on);
	net_each(abandon);
	CHECK_EQ(load_relaxed(&asked), before + 2 * 2 * (uint32_t)core_count());
	CHECK_EQ(load_relaxed(&asked), load_relaxed(&answered));
	gate_destroy(&hanging);
	gate_destroy(&go_on);
}

static int forever_hanging(void *arg)
{
	static int64_t forever = HIVE_FOREVER;

	(void)arg;
	return ask_hanging(&forever);
}

/* Stop now: who waits is let go, the compute worker comes back when the resolver lets it. */
TEST(a_hive_stops_with_a_question_open)
{
	gate_init(&hanging);
	gate_init(&go_on);
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 1);
		struct hive_fiber *begun, *queued;
		int result;

		CHECK_OK(hive_spawn(hive, forever_hanging, NULL, NULL, &begun));
		gate_pass(&hanging);
		CHECK_OK(hive_spawn(hive, forever_hanging, NULL, NULL, &queued));
		CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		CHECK_OK(hive_fiber_join(begun, HIVE_FOREVER, &result));
		CHECK_EQ(result, -ECANCELED);
		CHECK_OK(hive_fiber_join(queued, HIVE_FOREVER, &result));
		CHECK_EQ(result, -ECANCELED);
		gate_open(&go_on);
		real_end(hive, HIVE_NOW);
	}
	gate_destroy(&hanging);
	gate_destroy(&go_on);
}

static int alone(void *arg)
{
	struct hive_address address;

	(void)arg;
	CHECK_ERR(hive_resolve("name", 80, &address, 1, HIVE_FOREVER), -ENOTSUP);
	CHECK_EQ(hive_resolve("localhost", 80, &address, 1, HIVE_FOREVER), 2);
	return 0;
}

static void in_task(void *gate)
{
	struct hive_address address;

	CHECK_ERR(hive_resolve("name", 80, &address, 1, HIVE_FOREVER), -EDEADLK);
	CHECK_EQ(hive_resolve("localhost", 80, &address, 1, HIVE_FOREVER), 2);
	gate_open(gate);
}

TEST(without_compute_workers_and_in_a_task_names_are_refused)
{
	struct hive *hive = net_start("epoll", 1, 0);
	struct gate gate;
	int result = -1;

	gate_init(&gate);
	CHECK_OK(hive_block_on(hive, alone, NULL, HIVE_FOREVER, &result));
	CHECK_EQ(result, 0);
	CHECK_OK(hive_post(hive, in_task, &gate));
	gate_pass(&gate);
	gate_destroy(&gate);
	real_end(hive, HIVE_DRAIN);
}

/* Four addresses, of which the third has a listener: the others are refused, or there is no such family here. */
static int dial_by_name(void *arg)
{
	struct hive_address at;
	int fd, server = hive_listen("127.0.0.3", 0, NULL);

	(void)arg;
	CHECK(server >= 0);
	CHECK_OK(hive_address_of(server, false, &at));
	fd = hive_dial("has4.example", hive_address_port(&at), NULL, HIVE_FOREVER);
	CHECK(fd >= 0);
	CHECK_OK(hive_address_of(fd, true, &at));
	CHECK_OK(close(server));
	CHECK_OK(close(fd));
	CHECK_ERR(hive_dial("has3.example", hive_address_port(&at), NULL, HIVE_FOREVER), -ECONNREFUSED);
	CHECK_ERR(hive_dial("error2.example", 1, NULL, HIVE_FOREVER), -ENOENT);
	CHECK_ERR(hive_dial("error3.example", 1, NULL, HIVE_FOREVER), -EAGAIN);
	return 0;
}

TEST(dial_tries_one_address_after_the_other)
{
	net_each(dial_by_name);
	CHECK_EQ(dial_by_name(NULL), 0);
	CHECK_EQ(load_relaxed(&asked), load_relaxed(&answered));
	CHECK(load_relaxed(&freed) > 0);
}
