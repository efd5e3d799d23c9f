/* SPDX-License-Identifier: MIT */
/* Listeners, connections and their options, on each core; peers that refuse, reset, half-close, or never answer. */
#include <dirent.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/atomic.h"
#include "support/child.h"
#include "support/net.h"

static int option_of(int fd, int level, int option)
{
	int value = -1;
	socklen_t bytes = sizeof value;

	CHECK_OK(getsockopt(fd, level, option, &value, &bytes));
	return value;
}

static uint16_t port_of(int fd)
{
	struct hive_address address;

	CHECK_OK(hive_address_of(fd, false, &address));
	return hive_address_port(&address);
}

static int count_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	CHECK(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

struct trio {
	int listener, client, server;
};

/* A connection over loopback, both ends made by the library. */
static struct trio connect_both(const char *text, const struct hive_net_options *options)
{
	struct trio t = { .listener = hive_listen(text, 0, options) };

	CHECK(t.listener >= 0);
	t.client = hive_dial(text, port_of(t.listener), options, HIVE_FOREVER);
	CHECK(t.client >= 0);
	t.server = hive_accept(t.listener, HIVE_FOREVER);
	CHECK(t.server >= 0);
	return t;
}

static void close_trio(const struct trio *t)
{
	CHECK_OK(close(t->listener));
	CHECK_OK(close(t->client));
	CHECK_OK(close(t->server));
}

/* ---- options ---- */

static void check_plain(int fd)
{
	CHECK_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
}

static void check_tcp(int fd, bool delay, int keepalive_s)
{
	check_plain(fd);
	CHECK_EQ(option_of(fd, IPPROTO_TCP, TCP_NODELAY) != 0, !delay);
	CHECK_EQ(option_of(fd, SOL_SOCKET, SO_KEEPALIVE) != 0, keepalive_s > 0);
	if (keepalive_s == 0)
		return;
	CHECK_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), keepalive_s);
	CHECK_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL), keepalive_s < 6 ? 1 : keepalive_s / 3);
	CHECK_EQ(option_of(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
}

static int options(void *arg)
{
	static const int seconds[] = { 0, 1, 60, 32767 };

	(void)arg;
	for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
		for (int delay = 0; delay < 2; delay++) {
			struct hive_net_options how = { .delay = delay, .keepalive_s = seconds[i] };
			struct trio t = connect_both("127.0.0.1", &how);

			check_tcp(t.listener, delay, seconds[i]);
			check_tcp(t.client, delay, seconds[i]);
			check_tcp(t.server, delay, seconds[i]); /* by inheritance */
			close_trio(&t);
		}
	return 0;
}

TEST(options_are_those_of_both_ends)
{
	net_each(options);
	CHECK_EQ(options(NULL), 0);
}

TEST(bad_options_are_refused)
{
	static const struct hive_net_options bad[] = {
		{ .backlog = -1 },     { .keepalive_s = -1 },          { .keepalive_s = 32768 },
		{ .reserved = { 1 } }, { .reserved = { 0, 0, 0, 1 } },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK_ERR(hive_listen("127.0.0.1", 0, &bad[i]), -EINVAL);
		CHECK_ERR(hive_dial("127.0.0.1", 1, &bad[i], HIVE_FOREVER), -EINVAL);
	}
	CHECK_ERR(hive_listen("localhost", 0, NULL), -EINVAL); /* numbers only: it asks nobody */
	CHECK_ERR(hive_listen(NULL, 0, NULL), -EINVAL);
	CHECK_ERR(hive_dial(NULL, 0, NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_listen("192.0.2.1", 0, NULL), -EADDRNOTAVAIL); /* not of this machine */
	CHECK_ERR(hive_address_of(-1, false, &(struct hive_address){ 0 }), -EINVAL);
	CHECK_ERR(hive_address_of(0, false, NULL), -EINVAL);
	CHECK_ERR(hive_socket_pair(false, NULL), -EINVAL);
	CHECK_ERR(hive_pipe(NULL), -EINVAL);
}

TEST(a_port_is_shared_only_when_all_say_so)
{
	struct hive_net_options shared = { .reuse_port = true };
	int first = hive_listen("127.0.0.1", 0, NULL), second;

	CHECK(first >= 0);
	CHECK_ERR(hive_listen("127.0.0.1", port_of(first), NULL), -EADDRINUSE);
	CHECK_ERR(hive_listen("127.0.0.1", port_of(first), &shared), -EADDRINUSE);
	CHECK_OK(close(first));
	first = hive_listen("127.0.0.1", 0, &shared);
	second = hive_listen("127.0.0.1", port_of(first), &shared);
	CHECK(second >= 0);
	CHECK_ERR(hive_listen("127.0.0.1", port_of(first), NULL), -EADDRINUSE);
	CHECK_OK(close(first));
	CHECK_OK(close(second));
}

/* What the old connections have left does not keep the port. */
TEST(a_port_is_free_again_at_once)
{
	struct trio t = connect_both("127.0.0.1", NULL);
	uint16_t port = port_of(t.listener);
	int again;

	CHECK_OK(close(t.listener));
	CHECK_OK(close(t.server)); /* it closes first: TIME_WAIT is here */
	CHECK_OK(close(t.client));
	again = hive_listen("127.0.0.1", port, NULL);
	CHECK(again >= 0);
	CHECK_OK(close(again));
}

static int both_families(void *arg)
{
	struct hive_net_options v6_only = { .v6_only = true };
	int fd, listener = hive_listen("::", 0, NULL);

	(void)arg;
	CHECK(listener >= 0);
	CHECK_EQ(option_of(listener, IPPROTO_IPV6, IPV6_V6ONLY), 0);
	fd = hive_dial("127.0.0.1", port_of(listener), NULL, HIVE_FOREVER);
	CHECK(fd >= 0);
	CHECK_OK(close(fd));
	CHECK_OK(close(listener));
	listener = hive_listen("::", 0, &v6_only);
	CHECK(listener >= 0);
	CHECK_EQ(option_of(listener, IPPROTO_IPV6, IPV6_V6ONLY), 1);
	CHECK_ERR(hive_dial("127.0.0.1", port_of(listener), NULL, HIVE_FOREVER), -ECONNREFUSED);
	CHECK_OK(close(listener));
	return 0;
}

TEST(one_listener_serves_both_families_unless_told_otherwise)
{
	if (!net_has_v6()) {
		test_skip("no IPv6");
		return;
	}
	net_each(both_families);
}

/* ---- addresses ---- */

static int addresses(void *arg)
{
	static const char *const texts[] = { "127.0.0.1", "::1", "unix:@rophive.net" };

	(void)arg;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct hive_address mine, his;
		struct trio t;

		if (!net_has(texts[i]))
			continue;
		t = connect_both(texts[i], NULL);
		CHECK_OK(hive_address_of(t.client, true, &his));
		CHECK_OK(hive_address_of(t.listener, false, &mine));
		CHECK_EQ(his.bytes, mine.bytes);
		CHECK_EQ(memcmp(his.storage, mine.storage, mine.bytes), 0);
		CHECK_OK(hive_address_of(t.client, false, &mine));
		CHECK_OK(hive_address_of(t.server, true, &his));
		CHECK_EQ(his.bytes, mine.bytes);
		CHECK_EQ(memcmp(his.storage, mine.storage, mine.bytes), 0);
		CHECK_ERR(hive_address_of(t.listener, true, &his), -ENOTCONN);
		close_trio(&t);
	}
	CHECK_ERR(hive_address_of(4000, true, &(struct hive_address){ 0 }), -EBADF);
	return 0;
}

TEST(both_ends_know_their_addresses)
{
	if (!net_has_v6())
		test_skip("no IPv6: the other families alone");
	net_each(addresses);
	CHECK_EQ(addresses(NULL), 0);
}

static uint64_t file_number(const char *path)
{
	struct stat about;

	CHECK_OK(lstat(path, &about));
	return about.st_ino;
}

static int unix_paths(void *arg)
{
	char folder[] = "/tmp/rophive.XXXXXX", text[60];
	const char *path = text + 5;
	uint64_t number;
	struct trio t;

	(void)arg;
	CHECK(mkdtemp(folder));
	snprintf(text, sizeof text, "unix:%s/socket", folder);
	CHECK_ERR(hive_dial(text, 0, NULL, HIVE_FOREVER), -ENOENT);
	t = connect_both(text, NULL);
	check_plain(t.client);
	check_plain(t.server);
	number = file_number(path);
	CHECK_ERR(hive_listen(text, 0, NULL), -EADDRINUSE); /* somebody listens there, and goes on */
	CHECK_EQ(file_number(path), number);
	CHECK_EQ(hive_send(t.client, "x", 1, HIVE_FOREVER), 1);
	close_trio(&t);
	CHECK_ERR(hive_listen(text, 0, NULL), -EADDRINUSE); /* nobody does, and it is not ours to say so */
	CHECK_EQ(file_number(path), number);
	CHECK_ERR(hive_dial(text, 0, NULL, HIVE_FOREVER), -ECONNREFUSED);
	CHECK_OK(unlink(path));
	t = connect_both(text, NULL);
	close_trio(&t);
	CHECK_OK(unlink(path));
	CHECK_OK(rmdir(folder));
	return 0;
}

TEST(unix_paths_are_never_removed)
{
	net_each(unix_paths);
}

TEST(pairs_and_pipes_are_plain)
{
	int fds[2];
	char byte;

	for (int datagram = 0; datagram < 2; datagram++) {
		CHECK_OK(hive_socket_pair(datagram, fds));
		check_plain(fds[0]);
		check_plain(fds[1]);
		CHECK_EQ(option_of(fds[0], SOL_SOCKET, SO_TYPE), datagram ? SOCK_DGRAM : SOCK_STREAM);
		CHECK_EQ(hive_send(fds[0], "x", 1, HIVE_FOREVER), 1);
		CHECK_EQ(hive_recv(fds[1], &byte, 1, HIVE_FOREVER), 1);
		net_close(fds);
	}
	CHECK_OK(hive_pipe(fds));
	check_plain(fds[0]);
	check_plain(fds[1]);
	CHECK_EQ(hive_write(fds[1], "x", 1, -1, HIVE_FOREVER), 1);
	CHECK_EQ(hive_read(fds[0], &byte, 1, -1, HIVE_FOREVER), 1);
	net_close(fds);
}

/* ---- peers ---- */

static int send_singly(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		char byte = (char)i;

		CHECK_EQ(hive_send(*(int *)arg, &byte, 1, HIVE_FOREVER), 1);
	}
	return 0;
}

static int single_bytes(void *arg)
{
	struct trio t = connect_both("127.0.0.1", NULL);
	struct hive_fiber *fiber = net_spawn(send_singly, &t.client);
	char all[1000];

	(void)arg;
	CHECK_OK(hive_recv_all(t.server, all, sizeof all, HIVE_FOREVER));
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(all[i], (char)i);
	CHECK_EQ(net_join(fiber), 0);
	close_trio(&t);
	return 0;
}

TEST(segments_of_one_byte_make_a_whole)
{
	net_each(single_bytes);
}

static void reset(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
	CHECK_OK(close(fd));
}

static int receive_one(void *arg)
{
	char byte;

	return (int)hive_recv(*(int *)arg, &byte, 1, HIVE_FOREVER);
}

static int resets(void *arg)
{
	char text[10];

	(void)arg;
	for (int sent = 0; sent < 5; sent++) {
		struct trio t = connect_both("127.0.0.1", NULL);
		struct hive_fiber *fiber;

		CHECK_OK(hive_send_all(t.client, "01234", (size_t)sent, HIVE_FOREVER));
		if (sent > 0)
			CHECK_OK(hive_recv_all(t.server, text, (size_t)sent, HIVE_FOREVER));
		fiber = net_spawn(receive_one, &t.server);
		if (sent % 2)
			CHECK_OK(hive_yield());
		reset(t.client);
		CHECK_EQ(net_join(fiber), -ECONNRESET);
		CHECK_EQ(hive_recv(t.server, text, 1, HIVE_FOREVER), 0);
		CHECK_ERR(hive_send(t.server, "x", 1, HIVE_FOREVER), -EPIPE);
		CHECK_OK(close(t.listener));
		CHECK_OK(close(t.server));
	}
	return 0;
}

TEST(a_reset_is_told)
{
	net_each(resets);
}

static int half(void *arg)
{
	struct trio t = connect_both("127.0.0.1", NULL);
	char text[10];

	(void)arg;
	CHECK_OK(hive_send_all(t.client, "question", 8, HIVE_FOREVER));
	CHECK_OK(hive_shutdown(t.client, SHUT_WR, HIVE_FOREVER));
	CHECK_OK(hive_recv_all(t.server, text, 8, HIVE_FOREVER));
	CHECK_EQ(hive_recv(t.server, text, 1, HIVE_FOREVER), 0);
	CHECK_OK(hive_send_all(t.server, "answer", 6, HIVE_FOREVER));
	CHECK_OK(hive_shutdown(t.server, SHUT_WR, HIVE_FOREVER));
	CHECK_OK(hive_recv_all(t.client, text, 6, HIVE_FOREVER));
	CHECK_EQ(memcmp(text, "answer", 6), 0);
	CHECK_ERR(hive_recv_all(t.client, text, 1, HIVE_FOREVER), -ENODATA);
	CHECK_ERR(hive_send(t.client, "x", 1, HIVE_FOREVER), -EPIPE);
	close_trio(&t);
	return 0;
}

TEST(half_a_connection_is_still_one)
{
	net_each(half);
}

/* ---- dialling in vain ---- */

/* A listener that lets nobody in any more: the first few fill its queue, and nobody answers the next. */
static int full_listener(int fill[8], int *ret_count)
{
	struct hive_net_options narrow = { .backlog = 1 };
	int listener = hive_listen("127.0.0.1", 0, &narrow), fd = 0;

	CHECK(listener >= 0);
	for (*ret_count = 0; *ret_count < 8; fill[(*ret_count)++] = fd) {
		fd = hive_dial("127.0.0.1", port_of(listener), NULL, hive_deadline(NULL, HIVE_MS(50)));
		if (fd == -ETIMEDOUT)
			return listener;
		CHECK(fd >= 0);
	}
	test_fail(__FILE__, __LINE__, "the queue is never full");
}

static int dial_port(void *arg)
{
	return hive_dial("127.0.0.1", *(uint16_t *)arg, NULL, HIVE_FOREVER);
}

static int in_vain(void *arg)
{
	int fill[8], count, listener, before, free_port = hive_listen("127.0.0.1", 0, NULL);
	uint16_t port = port_of(free_port);
	struct hive_fiber *fiber;
	int64_t deadline;

	(void)arg;
	CHECK_OK(close(free_port));
	CHECK_ERR(hive_dial("127.0.0.1", port, NULL, HIVE_FOREVER), -ECONNREFUSED);
	CHECK_ERR(hive_dial("localhost", port, NULL, HIVE_FOREVER), -ECONNREFUSED);
	listener = full_listener(fill, &count);
	port = port_of(listener);
	before = count_open();
	deadline = hive_deadline(NULL, HIVE_MS(5));
	CHECK_ERR(hive_dial("127.0.0.1", port, NULL, deadline), -ETIMEDOUT);
	CHECK(hive_now(NULL) >= deadline);
	CHECK_ERR(hive_dial("127.0.0.1", port, NULL, HIVE_NOWAIT), -ETIMEDOUT);
	for (int i = 0; hive_fiber_current() && i < 5; i++) {
		fiber = net_spawn(dial_port, &port);
		for (int turns = i; turns > 0; turns--)
			CHECK_OK(hive_yield());
		CHECK_OK(hive_fiber_cancel(fiber));
		CHECK_EQ(net_join(fiber), -ECANCELED);
	}
	CHECK_EQ(count_open(), before);
	CHECK_OK(close(listener));
	while (count > 0)
		CHECK_OK(close(fill[--count]));
	return 0;
}

TEST(refused_timed_out_and_cancelled)
{
	net_each(in_vain);
	CHECK_EQ(in_vain(NULL), 0);
}

/* The first address of the name never answers, the second one does: it gets its share of the time. */
static int shares(void *arg)
{
	int fill[8], count, fd, listener = full_listener(fill, &count), second;
	int64_t deadline = hive_deadline(NULL, HIVE_MS(200));

	(void)arg;
	second = hive_listen("::1", port_of(listener), NULL);
	CHECK(second >= 0);
	fd = hive_dial("localhost", port_of(listener), NULL, deadline);
	CHECK(fd >= 0);
	CHECK_OK(close(fd));
	CHECK_OK(close(second));
	CHECK_OK(close(listener));
	while (count > 0)
		CHECK_OK(close(fill[--count]));
	return 0;
}

TEST(an_address_that_never_answers_leaves_time_for_the_next)
{
	if (!net_has_v6()) {
		test_skip("no IPv6");
		return;
	}
	net_each(shares);
}

/* ---- tasks ---- */

static void ask_in_task(void *arg)
{
	struct gate *gate = arg;
	int fds[2], listener = hive_listen("unix:@rophive.task", 0, NULL), fd, accepted;
	char byte;

	CHECK_OK(hive_socket_pair(false, fds));
	CHECK_ERR(hive_recv(fds[0], &byte, 1, HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_recv(fds[0], &byte, 1, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(hive_send(fds[1], "x", 1, HIVE_NOWAIT), 1);
	CHECK_EQ(hive_recv(fds[0], &byte, 1, HIVE_NOWAIT), 1);
	CHECK_ERR(hive_open(AT_FDCWD, "/dev/null", O_RDONLY, 0, HIVE_NOWAIT), -EDEADLK);
	CHECK_ERR(hive_dial("unix:@rophive.task", 0, NULL, HIVE_FOREVER), -EDEADLK);
	fd = hive_dial("unix:@rophive.task", 0, NULL, HIVE_NOWAIT);
	CHECK(fd >= 0);
	accepted = hive_accept(listener, HIVE_NOWAIT);
	CHECK(accepted >= 0);
	CHECK_ERR(hive_accept(listener, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_OK(close(fd));
	CHECK_OK(close(accepted));
	CHECK_OK(close(listener));
	net_close(fds);
	gate_open(gate);
}

TEST(a_task_may_ask_but_not_wait)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 0);
		struct gate gate;

		gate_init(&gate);
		CHECK_OK(hive_post(hive, ask_in_task, &gate));
		gate_pass(&gate);
		gate_destroy(&gate);
		real_end(hive, HIVE_DRAIN);
	}
}
