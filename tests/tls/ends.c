/* SPDX-License-Identifier: MIT */
/* Handshakes that come to nothing: late, cancelled, cut off at any byte, changed on the way, with somebody who speaks otherwise. */
#include <netinet/tcp.h>

#include "relay.h"

static struct hive_tls_context *server_context, *client_context;

static void each(hive_fiber_fn *fn)
{
	server_context = context_server("server");
	client_context = context_client();
	net_each(fn);
	hive_tls_context_destroy(server_context);
	hive_tls_context_destroy(client_context);
}

/* ---- deadlines, cancels ---- */

static int shake_on(void *side)
{
	return side_shake(side);
}

/* The middle holds everything back; each side waits until its deadline, and goes on afterwards. */
static int late(void *arg)
{
	struct side server = { .context = server_context }, client = { .context = client_context, .host = "localhost" };
	struct hive_fiber *other;
	char hello[2000];
	int one[2], two[2];
	int64_t n;

	(void)arg;
	net_pair(one);
	net_pair(two);
	client.fd = one[0];
	server.fd = two[0];
	client.deadline_ns = HIVE_NOWAIT;
	side_run(&client);
	CHECK_EQ(client.result, -ETIMEDOUT);
	do { /* until it was quick enough to say hello */
		client.deadline_ns = hive_deadline(NULL, HIVE_MS(2));
		CHECK_ERR(side_shake(&client), -ETIMEDOUT);
		n = hive_recv(one[1], hello, sizeof hello, HIVE_NOWAIT);
	} while (n == -ETIMEDOUT);
	CHECK(n > 50);
	server.deadline_ns = hive_deadline(NULL, HIVE_MS(2));
	side_run(&server);
	CHECK_EQ(server.result, -ETIMEDOUT);
	/* half of the hello, and it still waits */
	CHECK_OK(hive_send_all(two[1], hello, 40, HIVE_FOREVER));
	server.deadline_ns = hive_deadline(NULL, HIVE_MS(2));
	CHECK_ERR(side_shake(&server), -ETIMEDOUT);
	CHECK_OK(hive_send_all(two[1], hello + 40, (size_t)(n - 40), HIVE_FOREVER));
	struct relay up = { .from = one[1], .to = two[1], .piece = 100, .limit = -1, .change = -1 };
	struct relay down = { .from = two[1], .to = one[1], .piece = 100, .limit = -1, .change = -1 };
	struct hive_fiber *relays[2] = { net_spawn(relay_run, &up), net_spawn(relay_run, &down) };
	server.deadline_ns = client.deadline_ns = real_patience();
	other = net_spawn(shake_on, &server);
	CHECK_OK(side_shake(&client));
	CHECK_EQ(net_join(other), 0);
	CHECK_OK(hive_tls_destroy(client.tls, real_patience()));
	CHECK_OK(hive_tls_destroy(server.tls, real_patience()));
	net_join(relays[0]);
	net_join(relays[1]);
	net_close((int[]){ one[1], two[1] });
	return 0;
}

TEST(a_handshake_that_was_late_goes_on)
{
	each(late);
}

static int cancel(void *arg)
{
	(void)arg;
	for (int turns = 0; turns < 12; turns++) {
		struct side server = { .context = server_context, .deadline_ns = HIVE_FOREVER };
		struct side client = { .context = client_context, .host = "localhost", .deadline_ns = HIVE_FOREVER };
		struct hive_fiber *fibers[2];
		int fds[2];

		net_pair(fds);
		server.fd = fds[0];
		client.fd = fds[1];
		fibers[0] = net_spawn(side_run, &server);
		fibers[1] = net_spawn(side_run, &client);
		for (int i = 0; i < turns * turns; i++)
			CHECK_OK(hive_yield());
		CHECK_OK(hive_fiber_cancel(fibers[turns % 2]));
		net_join(fibers[turns % 2]);
		CHECK_OK(shutdown(fds[turns % 2], SHUT_RDWR));
		net_join(fibers[1 - turns % 2]);
		CHECK(server.result == 0 || server.result == -ECANCELED || client.result == 0 ||
		      client.result == -ECANCELED);
		part(&server, &client);
	}
	return 0;
}

TEST(a_handshake_is_cancelled)
{
	each(cancel);
}

/* ---- cut off, changed ---- */

static void check_failure(const struct side *s, int64_t at)
{
	static const int good[] = { -ENODATA, -ECONNRESET, -EPIPE, -EPROTO, -EACCES, -EKEYREJECTED };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (s->result == good[i] && s->reason[0])
			return;
	test_fail(__FILE__, __LINE__, "%s, at byte %lld: %s, \"%s\"", s->host ? "client" : "server", (long long)at,
	          test_error(s->result), s->reason);
}

/* How many bytes a whole handshake has. */
static void measure(int64_t *ret_up, int64_t *ret_down)
{
	struct line l = { .up = { .piece = 4096, .limit = -1, .change = -1 },
		          .down = { .piece = 4096, .limit = -1, .change = -1 } };

	line_start(&l, server_context, client_context);
	net_join(l.fibers[2]);
	CHECK_OK(l.client.result);
	CHECK_OK(l.server.result);
	*ret_up = load_relaxed(&l.up.passed);
	line_end(&l);
	*ret_down = load_relaxed(&l.down.passed);
}

/* The connection breaks after so many bytes of one direction: each side ends with an error, or was through by then. */
static void break_at(int64_t up, int64_t down)
{
	struct line l = { .up = { .piece = 4096, .limit = up, .change = -1 },
		          .down = { .piece = 4096, .limit = down, .change = -1 } };
	char byte;

	line_start(&l, server_context, client_context);
	net_join(l.fibers[2]);
	if (up >= 0) /* the server never got the last of it */
		check_failure(&l.server, up);
	if (l.client.result == 0)
		CHECK(hive_tls_read(l.client.tls, &byte, 1, real_patience()) < 0);
	else
		check_failure(&l.client, up >= 0 ? up : down);
	line_end(&l);
}

static int break_all(void *arg)
{
	int64_t up, down, step = test_slowness() > 1 ? 97 : 23;

	(void)arg;
	measure(&up, &down);
	for (int64_t at = 0; at < up; at += at < 8 ? 1 : step)
		break_at(at, -1);
	for (int64_t at = 0; at < down / 2; at += at < 8 ? 1 : step)
		break_at(-1, at);
	return 0;
}

TEST(the_peer_goes_away_at_any_byte)
{
	each(break_all);
}

/* A byte is another one. Nobody believes that all is well. */
static int change_all(void *arg)
{
	int64_t up, down, step = test_slowness() > 1 ? 61 : 17;

	(void)arg;
	measure(&up, &down);
	for (int64_t at = 0; at < up + down / 2; at += step) {
		struct line l = { .up = { .piece = 4096, .limit = -1, .change = at < up ? at : -1 },
			          .down = { .piece = 4096, .limit = -1, .change = at < up ? -1 : at - up } };
		char byte;

		l.patience_ns = HIVE_MS(200); /* a changed length makes them wait for more than there is */
		line_start(&l, server_context, client_context);
		if (l.client.result < 0) {
			if (l.client.result != -ETIMEDOUT)
				check_failure(&l.client, at);
			shutdown(l.client.fd, SHUT_RDWR);
		} else if (at < up) {
			l.client.result = (int)hive_tls_read(l.client.tls, &byte, 1, hive_deadline(NULL, HIVE_MS(1)));
			shutdown(l.client.fd, SHUT_RDWR);
		}
		net_join(l.fibers[2]);
		CHECK(l.client.result < 0 || l.server.result < 0);
		line_end(&l);
	}
	return 0;
}

/* ---- others ---- */

static int speak(void *arg)
{
	static const char *const words[] = {
		"GET / HTTP/1.0\r\n\r\n",       "\x16\x03\x01\xff\xff", "\x16\x03\x01\x00\x04\x01\x00\x00\x00",
		"\x15\x03\x03\x00\x02\x02\x28", "\x80\x2e\x01\x03\x01", "SSH-2.0-x\r\n"
	};
	static const size_t sizes[] = { 18, 5, 9, 7, 5, 11 };

	(void)arg;
	for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
		struct side side = { .context = i % 2 ? server_context : client_context,
			             .host = i % 2 ? NULL : "localhost",
			             .deadline_ns = real_patience() };
		int fds[2];

		net_pair(fds);
		side.fd = fds[0];
		CHECK_OK(hive_send_all(fds[1], words[i / 2], sizes[i / 2], HIVE_FOREVER));
		if (i / 2 > 2) /* the others are enough to know */
			CHECK_OK(shutdown(fds[1], SHUT_WR));
		side_run(&side);
		check_failure(&side, (int64_t)i);
		hive_tls_destroy(side.tls, HIVE_NOWAIT);
		CHECK_OK(close(fds[1]));
	}
	return 0;
}

TEST(somebody_speaks_otherwise)
{
	each(speak);
}

/* A real reset, of TCP, in the middle of a handshake and of a stream. */
static int reset(void *arg)
{
	struct hive_address address;
	int listener = hive_listen("127.0.0.1", 0, NULL);

	(void)arg;
	CHECK(listener >= 0);
	CHECK_OK(hive_address_of(listener, false, &address));
	for (int connected = 0; connected < 2; connected++) {
		struct side server = { .context = server_context, .deadline_ns = real_patience() };
		struct side client = { .context = client_context, .host = "localhost", .deadline_ns = real_patience() };
		struct linger hard = { .l_onoff = 1 };
		struct hive_fiber *other;
		char buffer[4000];
		int64_t r = 0;

		client.fd = hive_dial("127.0.0.1", hive_address_port(&address), NULL, real_patience());
		server.fd = hive_accept(listener, real_patience());
		CHECK(client.fd >= 0 && server.fd >= 0);
		CHECK_OK(setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard));
		other = net_spawn(side_run, &server);
		if (connected) {
			side_run(&client);
			CHECK_OK(client.result);
			CHECK_EQ(net_join(other), 0);
			CHECK_OK(server.result);
			CHECK_OK(hive_tls_destroy(client.tls, HIVE_NOWAIT));
			while (r >= 0)
				r = hive_tls_write(server.tls, buffer, sizeof buffer, real_patience());
			CHECK(r == -ECONNRESET || r == -EPIPE);
		} else {
			CHECK_OK(hive_send_all(client.fd, "\x16\x03\x01\x01\x00", 5, real_patience()));
			CHECK_OK(close(client.fd));
			net_join(other);
			CHECK_EQ(server.result, -ECONNRESET);
		}
		hive_tls_destroy(server.tls, HIVE_NOWAIT);
	}
	CHECK_OK(close(listener));
	return 0;
}

TEST(a_reset_is_told)
{
	each(reset);
}

TEST(a_changed_byte_is_noticed)
{
	each(change_all);
}
