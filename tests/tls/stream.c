/* SPDX-License-Identifier: MIT */
/* The middle of a connection: bytes, both ways at once, in pieces of any size; its ends; who may call. */
#include <pthread.h>

#include "relay.h"

enum { CHUNK = 50000 };

static struct hive_tls_context *server_context, *client_context;

static void contexts_make(uint32_t minimum)
{
	certs_make();
	server_context = context_server("server");
	client_context = context_make(
		&(struct hive_tls_options){ .ca_file = certs_path("ca.pem"), .minimum = minimum });
}

static void contexts_free(void)
{
	hive_tls_context_destroy(server_context);
	hive_tls_context_destroy(client_context);
}

/* fn with a connection, on each core. */
struct scene {
	struct side server, client;
};

static void (*scene_fn)(struct scene *);

static int scene_run(void *arg)
{
	struct scene scene;

	(void)arg;
	meet_well(server_context, client_context, &scene.server, &scene.client);
	scene_fn(&scene);
	hive_tls_destroy(scene.client.tls, HIVE_NOWAIT);
	hive_tls_destroy(scene.server.tls, HIVE_NOWAIT);
	return 0;
}

static void scene_each(void (*fn)(struct scene *))
{
	contexts_make(0);
	scene_fn = fn;
	net_each(scene_run);
	contexts_free();
}

/* ---- bytes ---- */

struct flow {
	struct hive_tls *tls;
	uint64_t bytes;
	uint32_t seed;
};

static uint32_t next(uint32_t *seed)
{
	return *seed = *seed * 1664525 + 1013904223;
}

static int flow_write(void *arg)
{
	struct flow *f = arg;
	char *buffer = malloc(CHUNK);

	CHECK(buffer);
	for (uint64_t at = 0; at < f->bytes;) {
		size_t n = 1 + next(&f->seed) % CHUNK;
		int64_t done;

		n = n < f->bytes - at ? n : (size_t)(f->bytes - at);
		pattern_fill(buffer, n, at);
		done = hive_tls_write(f->tls, buffer, n, HIVE_FOREVER);
		if (done <= 0)
			test_fail(__FILE__, __LINE__, "write: %s", test_error(done));
		at += (uint64_t)done;
	}
	free(buffer);
	CHECK_OK(hive_tls_shutdown(f->tls, HIVE_FOREVER));
	CHECK_ERR(hive_tls_write(f->tls, "x", 1, HIVE_FOREVER), -EPIPE);
	return 0;
}

static int flow_read(void *arg)
{
	struct flow *f = arg;
	char *buffer = malloc(CHUNK);
	uint64_t at = 0;
	int64_t n;

	CHECK(buffer);
	while ((n = hive_tls_read(f->tls, buffer, 1 + next(&f->seed) % CHUNK, HIVE_FOREVER)) > 0) {
		pattern_check(buffer, (size_t)n, at);
		at += (uint64_t)n;
	}
	free(buffer);
	CHECK_EQ(n, 0);
	CHECK_EQ(at, f->bytes);
	CHECK_EQ(hive_tls_read(f->tls, &n, 1, HIVE_FOREVER), 0); /* it stays so */
	return 0;
}

/* Readers and writers on both ends, at the same time. */
static void pump(struct hive_tls *one, struct hive_tls *two, uint64_t bytes)
{
	struct flow flows[4] = { { one, bytes, 1 }, { two, bytes, 2 }, { two, bytes, 3 }, { one, bytes, 4 } };
	struct hive_fiber *fibers[4];

	for (int i = 0; i < 4; i++)
		fibers[i] = net_spawn(i % 2 ? flow_read : flow_write, &flows[i]);
	for (int i = 0; i < 4; i++)
		net_join(fibers[i]);
}

static void pump_scene(struct scene *s)
{
	pump(s->client.tls, s->server.tls, (uint64_t)(20 << 20) / (uint64_t)test_slowness());
}

TEST(both_ways_at_once)
{
	scene_each(pump_scene);
}

/* Every read ends within a record, a header even. */
static int crumbs(void *arg)
{
	struct line l = { .up = { .piece = 1, .limit = -1, .change = -1 },
		          .down = { .piece = 1, .limit = -1, .change = -1 } };

	(void)arg;
	line_start(&l, server_context, client_context);
	net_join(l.fibers[2]);
	CHECK_OK(l.server.result);
	CHECK_OK(l.client.result);
	pump(l.client.tls, l.server.tls, 3000);
	line_end(&l);
	return 0;
}

TEST(one_byte_at_a_time)
{
	contexts_make(0);
	net_each(crumbs);
	contexts_free();
}

/* ---- ends ---- */

static void end_well(struct scene *s)
{
	char buffer[8];

	CHECK_OK(hive_tls_write_all(s->client.tls, "abc", 3, HIVE_FOREVER));
	CHECK_OK(hive_tls_shutdown(s->client.tls, HIVE_FOREVER));
	CHECK_OK(hive_tls_shutdown(s->client.tls, HIVE_FOREVER)); /* once is enough */
	CHECK_EQ(hive_tls_read(s->server.tls, buffer, sizeof buffer, HIVE_FOREVER), 3);
	CHECK_EQ(hive_tls_read(s->server.tls, buffer, sizeof buffer, HIVE_FOREVER), 0);
	CHECK_ERR(hive_tls_read_all(s->server.tls, buffer, 1, HIVE_FOREVER), -ENODATA);
	/* half of it is still there */
	CHECK_OK(hive_tls_write_all(s->server.tls, "defg", 4, HIVE_FOREVER));
	CHECK_OK(hive_tls_destroy(s->server.tls, HIVE_FOREVER));
	s->server.tls = NULL;
	CHECK_OK(hive_tls_read_all(s->client.tls, buffer, 4, HIVE_FOREVER));
	CHECK_EQ(hive_tls_read(s->client.tls, buffer, sizeof buffer, HIVE_FOREVER), 0);
	CHECK_EQ(hive_tls_reason(s->client.tls, NULL, 0), 0);
}

TEST(an_end_is_told_and_half_of_it_stays)
{
	scene_each(end_well);
}

static void end_badly(struct scene *s)
{
	char buffer[100];

	CHECK_OK(hive_tls_write_all(s->client.tls, "abc", 3, HIVE_FOREVER));
	CHECK_OK(shutdown(hive_tls_fd(s->client.tls), SHUT_WR));
	CHECK_EQ(hive_tls_read(s->server.tls, buffer, sizeof buffer, HIVE_FOREVER), 3);
	CHECK_ERR(hive_tls_read(s->server.tls, buffer, sizeof buffer, HIVE_FOREVER), -ENODATA);
	CHECK_ERR(hive_tls_read(s->server.tls, buffer, sizeof buffer, HIVE_FOREVER), -ENODATA);
	CHECK(hive_tls_reason(s->server.tls, buffer, sizeof buffer) > 0);
	CHECK_STR(buffer, "the peer ended without saying so");
	/* the other half is not concerned */
	CHECK_OK(hive_tls_write_all(s->server.tls, "defg", 4, HIVE_FOREVER));
	CHECK_OK(hive_tls_read_all(s->client.tls, buffer, 4, HIVE_FOREVER));
	CHECK_ERR(hive_tls_write(s->client.tls, "x", 1, HIVE_FOREVER), -EPIPE); /* and no signal */
	CHECK_ERR(hive_tls_destroy(s->client.tls, HIVE_FOREVER), -EPIPE);
	s->client.tls = NULL;
}

TEST(a_stream_that_is_cut_short_is_no_end)
{
	scene_each(end_badly);
}

/* ---- deadlines, cancels ---- */

static int write_much(void *arg)
{
	struct flow *f = arg;
	char buffer[1000];
	int64_t n = 0;

	memset(buffer, 'x', sizeof buffer);
	while (n >= 0) {
		n = hive_tls_write(f->tls, buffer, sizeof buffer, f->seed ? HIVE_FOREVER : HIVE_NOWAIT);
		f->bytes += n > 0 ? (uint64_t)n : 0;
	}
	return (int)n;
}

static int read_one(void *arg)
{
	char byte;

	return (int)hive_tls_read(arg, &byte, 1, HIVE_FOREVER);
}

static void read_exactly(struct hive_tls *tls, uint64_t bytes)
{
	char buffer[1000];

	while (bytes > 0) {
		int64_t n = hive_tls_read(tls, buffer, bytes < sizeof buffer ? bytes : sizeof buffer, HIVE_FOREVER);

		CHECK(n > 0);
		bytes -= (uint64_t)n;
	}
}

static int flush_it(void *arg)
{
	return hive_tls_flush(arg, HIVE_FOREVER);
}

/* What was taken arrives, also the part that the deadline or the cancel left over. */
static void interrupt(struct scene *s)
{
	struct hive_fiber *fiber;
	int64_t began = hive_now(NULL);
	char byte;

	CHECK_ERR(hive_tls_read(s->client.tls, &byte, 1, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_tls_read(s->client.tls, &byte, 1, began + HIVE_MS(2)), -ETIMEDOUT);
	CHECK(hive_now(NULL) >= began + HIVE_MS(2));
	for (uint32_t cancelled = 0; cancelled < 2; cancelled++) {
		struct flow f = { s->client.tls, 0, cancelled };

		fiber = net_spawn(write_much, &f);
		if (cancelled) {
			CHECK_OK(hive_sleep(HIVE_MS(1)));
			CHECK_OK(hive_fiber_cancel(fiber));
		}
		CHECK_EQ(net_join(fiber), cancelled ? -ECANCELED : -ETIMEDOUT);
		CHECK(cancelled || f.bytes > 1000);
		fiber = net_spawn(flush_it, s->client.tls);
		read_exactly(s->server.tls, f.bytes);
		CHECK_OK(net_join(fiber));
	}
	for (int turns = 0; turns < 4; turns++) {
		fiber = net_spawn(read_one, s->client.tls);
		for (int i = 0; i < turns; i++)
			CHECK_OK(hive_yield());
		CHECK_OK(hive_fiber_cancel(fiber));
		CHECK_EQ(net_join(fiber), -ECANCELED);
	}
	CHECK_OK(hive_tls_write_all(s->server.tls, "z", 1, HIVE_FOREVER));
	CHECK_EQ(hive_tls_read(s->client.tls, &byte, 1, HIVE_FOREVER), 1);
	CHECK_EQ(byte, 'z');
}

TEST(interrupted_calls_lose_nothing)
{
	scene_each(interrupt);
}

/* ---- who may call ---- */

static int read_in_the_end(void *arg)
{
	int r;

	while ((r = read_one(arg)) == -EBUSY) /* the other one is just asking */
		CHECK_OK(hive_yield());
	return r;
}

static void crowd(struct scene *s)
{
	struct hive_fiber *fiber = net_spawn(read_in_the_end, s->client.tls);
	char byte;
	int64_t r;

	while ((r = hive_tls_read(s->client.tls, &byte, 1, HIVE_NOWAIT)) == -ETIMEDOUT)
		CHECK_OK(hive_yield());
	CHECK_EQ(r, -EBUSY);
	CHECK_ERR(hive_tls_destroy(s->client.tls, HIVE_FOREVER), -EBUSY);
	CHECK_ERR(hive_tls_connect(s->client.tls, "localhost", HIVE_FOREVER), -EBUSY);
	CHECK_OK(hive_tls_write_all(s->client.tls, "a", 1, HIVE_FOREVER)); /* the other role is free */
	CHECK_OK(hive_tls_write_all(s->server.tls, "b", 1, HIVE_FOREVER));
	CHECK_EQ(net_join(fiber), 1);
}

TEST(one_reader_and_one_writer)
{
	scene_each(crowd);
}

static void *thread_echo(void *arg)
{
	struct side *s = arg;
	char buffer[1000];
	int64_t n;

	side_run(s);
	CHECK_OK(s->result);
	while ((n = hive_tls_read(s->tls, buffer, sizeof buffer, real_patience())) > 0)
		CHECK_OK(hive_tls_write_all(s->tls, buffer, (size_t)n, real_patience()));
	CHECK_EQ(n, 0);
	CHECK_OK(hive_tls_destroy(s->tls, real_patience()));
	return NULL;
}

/* Two threads, no hive. Descriptors that block are as good. */
TEST(threads_talk_without_a_hive)
{
	struct side server, client;
	char out[3000], in[3000];
	pthread_t thread;
	int fds[2];

	contexts_make(13);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	server = (struct side){ .context = server_context, .fd = fds[0], .deadline_ns = real_patience() };
	client = (struct side){
		.context = client_context, .fd = fds[1], .host = "localhost", .deadline_ns = real_patience()
	};
	CHECK_OK(pthread_create(&thread, NULL, thread_echo, &server));
	side_run(&client);
	CHECK_OK(client.result);
	for (int i = 0; i < 20; i++) {
		pattern_fill(out, sizeof out, (uint64_t)i);
		CHECK_OK(hive_tls_write_all(client.tls, out, sizeof out, real_patience()));
		CHECK_OK(hive_tls_read_all(client.tls, in, sizeof in, real_patience()));
		CHECK_EQ(memcmp(in, out, sizeof in), 0);
	}
	CHECK_ERR(hive_tls_read(client.tls, in, 1, hive_now(NULL) + HIVE_MS(1)), -ETIMEDOUT);
	CHECK_OK(hive_tls_shutdown(client.tls, real_patience()));
	CHECK_EQ(hive_tls_read(client.tls, in, 1, real_patience()), 0);
	CHECK_OK(hive_tls_destroy(client.tls, real_patience()));
	CHECK_OK(pthread_join(thread, NULL));
	contexts_free();
}

struct task {
	struct scene *scene;
	struct hive_semaphore done;
};

/* On an IO worker, outside a fiber: it may ask, and must not wait. */
static void in_task(void *arg)
{
	struct task *t = arg;
	struct hive_tls_context *context;
	char buffer[8];

	CHECK_ERR(hive_tls_read(t->scene->client.tls, buffer, 8, HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_tls_read(t->scene->client.tls, buffer, 8, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(hive_tls_write(t->scene->client.tls, "hello", 5, HIVE_NOWAIT), 5);
	CHECK_EQ(hive_tls_read(t->scene->server.tls, buffer, 8, HIVE_NOWAIT), 5);
	CHECK_ERR(hive_tls_context_create(NULL, &context), -EDEADLK);
	hive_semaphore_release(&t->done, 1);
}

static void in_compute_task(void *arg)
{
	struct task *t = arg;
	char buffer[8];

	CHECK_OK(hive_tls_write_all(t->scene->server.tls, "hello", 5, HIVE_FOREVER));
	CHECK_OK(hive_tls_read_all(t->scene->client.tls, buffer, 5, HIVE_FOREVER));
	hive_semaphore_release(&t->done, 1);
}

static void tasks(struct scene *s)
{
	struct task t = { .scene = s };

	hive_semaphore_init(&t.done, 0);
	CHECK_OK(hive_post(hive_current(), in_task, &t));
	CHECK_OK(hive_semaphore_acquire(&t.done, 1, HIVE_FOREVER));
	CHECK_OK(hive_post_compute(hive_current(), in_compute_task, &t));
	CHECK_OK(hive_semaphore_acquire(&t.done, 1, HIVE_FOREVER));
}

TEST(tasks_ask_and_compute_tasks_block)
{
	scene_each(tasks);
}
