/* SPDX-License-Identifier: MIT */
/* Many connections at once on two workers, through a listener; and one that runs against its own end. */
#include "meet.h"

enum { LINES = 20, BYTES = 3000 };

static struct hive_tls_context *server_context, *client_context;
static uint16_t port;
static int clients;

static int serve(void *arg)
{
	struct side s = { .context = server_context, .fd = (int)(intptr_t)arg, .deadline_ns = real_patience() };
	char buffer[BYTES];
	int64_t n;

	side_run(&s);
	CHECK_OK(s.result);
	while ((n = hive_tls_read(s.tls, buffer, sizeof buffer, real_patience())) > 0)
		CHECK_OK(hive_tls_write_all(s.tls, buffer, (size_t)n, real_patience()));
	CHECK_EQ(n, 0);
	CHECK_OK(hive_tls_destroy(s.tls, real_patience()));
	return 0;
}

static int listener(void *arg)
{
	int server = *(int *)arg, fd;

	while ((fd = hive_accept(server, HIVE_FOREVER)) >= 0)
		CHECK_OK(hive_spawn(hive_current(), serve, (void *)(intptr_t)fd, NULL, NULL));
	CHECK_EQ(fd, -ECANCELED);
	return 0;
}

static int ask(void *arg)
{
	struct side s = { .context = client_context, .host = "localhost", .deadline_ns = real_patience() };
	char out[BYTES], in[BYTES];

	s.fd = hive_dial("127.0.0.1", port, NULL, real_patience());
	CHECK(s.fd >= 0);
	side_run(&s);
	CHECK_OK(s.result);
	for (intptr_t i = 0; i < LINES; i++) {
		size_t bytes = (size_t)(1 + (i * 577 + (intptr_t)arg) % BYTES);

		pattern_fill(out, bytes, (uint64_t)i);
		CHECK_OK(hive_tls_write_all(s.tls, out, bytes, real_patience()));
		CHECK_OK(hive_tls_read_all(s.tls, in, bytes, real_patience()));
		CHECK_EQ(memcmp(in, out, bytes), 0);
	}
	CHECK_OK(hive_tls_shutdown(s.tls, real_patience()));
	CHECK_EQ(hive_tls_read(s.tls, in, 1, real_patience()), 0);
	CHECK_OK(hive_tls_destroy(s.tls, real_patience()));
	return 0;
}

static int crowd(void *arg)
{
	struct hive_fiber *server, **fibers = calloc((size_t)clients, sizeof(struct hive_fiber *));
	struct hive_address address;
	int fd = hive_listen("127.0.0.1", 0, NULL);

	(void)arg;
	CHECK(fibers && fd >= 0);
	CHECK_OK(hive_address_of(fd, false, &address));
	port = hive_address_port(&address);
	server = net_spawn(listener, &fd);
	for (int i = 0; i < clients; i++)
		fibers[i] = net_spawn(ask, (void *)(intptr_t)i);
	for (int i = 0; i < clients; i++)
		CHECK_EQ(net_join(fibers[i]), 0);
	free(fibers);
	CHECK_OK(hive_fiber_cancel(server));
	CHECK_EQ(net_join(server), 0);
	CHECK_OK(close(fd));
	return 0;
}

TEST(many_at_once_on_two_workers)
{
	clients = 300 / test_slowness() + 10;
	server_context = context_server("server");
	client_context = context_client();
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 2, 2);
		int result = -1;

		CHECK_OK(hive_block_on(hive, crowd, NULL, HIVE_FOREVER, &result));
		CHECK_EQ(result, 0);
		real_end(hive, HIVE_DRAIN);
	}
	hive_tls_context_destroy(server_context);
	hive_tls_context_destroy(client_context);
}

/* ---- a hive that stops at once ---- */

static struct hive_semaphore began;

static int endless(void *arg)
{
	struct side *s = arg;
	char byte;

	hive_semaphore_release(&began, 1);
	side_run(s);
	while (s->result == 0)
		s->result = hive_tls_read(s->tls, &byte, 1, HIVE_FOREVER) > 0 ? 0 : -1;
	hive_tls_destroy(s->tls, HIVE_NOWAIT);
	return 0;
}

/* In the middle of handshakes or after them: everybody comes back, nothing is left. */
TEST(a_hive_stops_now)
{
	server_context = context_server("server");
	client_context = context_client();
	for (int round = 0; round < 12; round++) {
		struct hive *hive = net_start(core_names[round % core_count()], 2, 1);
		struct side sides[8];

		hive_semaphore_init(&began, 0);
		for (int i = 0; i < 8; i += 2) {
			int fds[2];

			net_pair(fds);
			sides[i] = (struct side){ .context = server_context,
				                  .fd = fds[0],
				                  .deadline_ns = HIVE_FOREVER };
			sides[i + 1] = (struct side){ .context = client_context,
				                      .fd = fds[1],
				                      .host = "localhost",
				                      .deadline_ns = HIVE_FOREVER };
			CHECK_OK(hive_spawn(hive, endless, &sides[i], NULL, NULL));
			CHECK_OK(hive_spawn(hive, endless, &sides[i + 1], NULL, NULL));
		}
		CHECK_OK(hive_semaphore_acquire(&began, 8, real_patience()));
		for (int i = 0; i < round * round; i++)
			sched_yield();
		real_end(hive, HIVE_NOW);
	}
	hive_tls_context_destroy(server_context);
	hive_tls_context_destroy(client_context);
}
