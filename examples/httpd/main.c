/* SPDX-License-Identifier: MIT */
/* The server as a whole: listeners, workers, signals, its end. */
#include "httpd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { REFUSALS = 64, FLUSH_MS = 1000 };
#define PAUSE_NS HIVE_MS(50) /* after an accept that failed for want of descriptors or memory */

struct acceptor {
	struct worker *worker;
	int fd;
	struct hive_fiber *fiber;
};

static struct server server;
static struct acceptor acceptors[WORKERS_MAX * LISTEN_MAX];
static uint32_t acceptor_count;
static int listeners[WORKERS_MAX * LISTEN_MAX]; /* each once */
static uint32_t listener_count;

/* ---- accepting ---- */

/* 0, or why not; the descriptor is gone then. */
static int take_on(struct worker *worker, int fd)
{
	struct hive_fiber_options here = { .name = "connection", .worker = worker->id };
	uint32_t before = atomic_fetch_add_explicit(&server.connections, 1, memory_order_relaxed);
	struct connection *c = before < server.settings.connections + REFUSALS ? connection_new(worker, fd) : NULL;
	struct hive_address peer;
	int r;

	if (!c) {
		atomic_fetch_sub_explicit(&server.connections, 1, memory_order_relaxed);
		worker->refused++;
		close(fd);
		return 0;
	}
	c->refused = before >= server.settings.connections;
	worker->refused += c->refused;
	worker->accepted++;
	if (server.log.fd >= 0 && hive_address_of(fd, true, &peer) == 0)
		hive_address_format(&peer, c->client, sizeof c->client);
	r = hive_spawn(hive_current(), connection_serve, c, &here, NULL);
	if (r < 0) {
		connection_free(c);
		close(fd);
	}
	return r;
}

/* Out of descriptors or memory is no reason to give up, nor to ask again at once: what is served meanwhile will end. */
static int accept_all(void *arg)
{
	struct acceptor *a = arg;
	int fd, r;

	for (;;) {
		fd = hive_accept(a->fd, HIVE_FOREVER);
		r = fd < 0 ? fd : take_on(a->worker, fd);
		if (r == -ECANCELED || r == -ESHUTDOWN || (r < 0 && hive_sleep(PAUSE_NS) == -ECANCELED))
			return r;
	}
}

static int start_accepting(void)
{
	for (uint32_t i = 0; i < acceptor_count; i++) {
		struct hive_fiber_options there = { .name = "acceptor", .worker = acceptors[i].worker->id };
		int r = hive_spawn(hive_current(), accept_all, &acceptors[i], &there, &acceptors[i].fiber);

		if (r < 0)
			return r;
	}
	return 0;
}

static void stop_accepting(void)
{
	for (uint32_t i = 0; i < acceptor_count; i++)
		if (acceptors[i].fiber)
			hive_fiber_cancel(acceptors[i].fiber);
	for (uint32_t i = 0; i < acceptor_count; i++)
		if (acceptors[i].fiber)
			hive_fiber_join(acceptors[i].fiber, HIVE_FOREVER, NULL);
	for (uint32_t i = 0; i < listener_count; i++)
		hive_close(listeners[i], HIVE_FOREVER);
}

/* ---- the end ---- */

/* On its worker: who waits for requests goes now, others when they are done or when nobody waits any longer. */
static int end_worker(void *arg)
{
	struct worker *worker = arg;
	int64_t deadline_ns = hive_deadline(NULL, server.settings.stop_ns);
	const int signals[] = { SIGTERM, SIGINT };

	connections_end(worker, false);
	while (worker->count > 0 && hive_now(NULL) < deadline_ns &&
	       hive_signal_wait(signals, 2, hive_deadline(NULL, HIVE_MS(20))) == -ETIMEDOUT)
		;
	while (worker->count > 0 && hive_sleep(HIVE_MS(5)) == 0)
		connections_end(worker, true);
	cache_close(&worker->cache);
	return 0;
}

static void end_workers(void)
{
	struct hive_fiber *fibers[WORKERS_MAX] = { NULL };
	int32_t count = server.settings.workers;

	atomic_store(&server.stops, true);
	for (int32_t i = 0; i < count; i++) {
		struct hive_fiber_options there = { .name = "end", .worker = server.workers[i].id };

		while (hive_spawn(hive_current(), end_worker, &server.workers[i], &there, &fibers[i]) == -ENOMEM)
			hive_sleep(PAUSE_NS);
	}
	for (int32_t i = 0; i < count; i++)
		if (fibers[i])
			hive_fiber_join(fibers[i], HIVE_FOREVER, NULL);
}

static int write_log(void *arg)
{
	(void)arg;
	while (hive_sleep(HIVE_MS(FLUSH_MS)) == 0)
		log_flush(&server.log);
	return 0;
}

static int root(void *arg)
{
	const int signals[] = { SIGTERM, SIGINT };
	struct hive_fiber *log = NULL;
	int r = hive_signal_watch(signals, 2);

	(void)arg;
	if (r == 0 && server.log.fd >= 0)
		r = hive_spawn(hive_current(), write_log, NULL, NULL, &log);
	if (r == 0)
		r = start_accepting();
	if (r == 0) {
		r = hive_signal_wait(signals, 2, HIVE_FOREVER);
		r = r < 0 ? r : 0;
	}
	stop_accepting();
	end_workers();
	if (log) {
		hive_fiber_cancel(log);
		hive_fiber_join(log, HIVE_FOREVER, NULL);
	}
	log_flush(&server.log);
	return r;
}

/* ---- the beginning ---- */

static int fail(const char *what, int error)
{
	fprintf(stderr, "httpd: %s: %s\n", what, hive_error_text(error));
	return 1;
}

/* Each worker listens to each address: with a descriptor of its own, among which the system deals out connections, or with one for all. */
static int listen_at(const char *address, uint16_t *port)
{
	int32_t workers = server.settings.workers;
	struct hive_net_options options = { .reuse_port = workers > 1 && !server.settings.shared_listener };
	struct hive_address where;
	char text[80];
	int fd = -1;

	for (int32_t i = 0; i < workers; i++) {
		if (fd < 0 || options.reuse_port) {
			fd = hive_listen(address, *port, &options);
			if (fd < 0)
				return fd;
			listeners[listener_count++] = fd;
		}
		if (i == 0 && hive_address_of(fd, false, &where) == 0) {
			*port = hive_address_port(&where);
			hive_address_format(&where, text, sizeof text);
			printf("listening on %s\n", text);
		}
		acceptors[acceptor_count++] = (struct acceptor){ &server.workers[i], fd, NULL };
	}
	fflush(stdout);
	return 0;
}

static int open_all(void)
{
	const struct settings *s = &server.settings;
	uint16_t port = s->port;
	int r = log_open(&server.log, s->access_log);

	if (r < 0)
		return fail(s->access_log, r);
	server.upload = s->upload ? open(s->upload, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (s->upload && server.upload < 0)
		return fail(s->upload, -errno);
	for (int32_t i = 0; i < s->workers; i++) {
		server.workers[i].server = &server;
		r = cache_open(&server.workers[i].cache, s->root, s->cache_files);
		if (r < 0)
			return fail(s->root, r);
	}
	for (uint32_t i = 0; i < s->listen_count; i++) {
		r = listen_at(s->listen[i], &port);
		if (r < 0)
			return fail(s->listen[i], r);
	}
	return 0;
}

static void tell(void)
{
	for (int32_t i = 0; i < server.settings.workers; i++)
		fprintf(stderr, "worker %d: %llu connections, %llu requests, %llu refused\n", (int)i,
		        (unsigned long long)server.workers[i].accepted, (unsigned long long)server.workers[i].requests,
		        (unsigned long long)server.workers[i].refused);
	if (server.log.lost > 0)
		fprintf(stderr, "access log: %llu times lines were lost\n", (unsigned long long)server.log.lost);
}

static int run(void)
{
	struct hive_worker_options io = { .timers = HIVE_TIMERS_WHEEL };
	struct hive_options options = { .io_workers = server.settings.workers, .compute_workers = 2, .io = &io };
	uint32_t ids[WORKERS_MAX];
	struct hive *hive;
	int result = 0, r = server.settings.core ? hive_core_find(server.settings.core, &io.core) : 0;

	if (r < 0)
		return fail(server.settings.core, r);
	r = hive_runtime_start(&options, &hive);
	if (r < 0)
		return fail("no runtime", r);
	hive_workers(hive, ids, WORKERS_MAX);
	for (int32_t i = 0; i < server.settings.workers; i++)
		server.workers[i].id = ids[i];
	r = hive_block_on(hive, root, NULL, HIVE_FOREVER, &result);
	hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER);
	if (!server.settings.quiet)
		tell();
	return r < 0 || result < 0 ? fail("it ended", r < 0 ? r : result) : 0;
}

/* Workers do so by themselves. With this thread too there is no system call left that a signal could interrupt. */
static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char **argv)
{
	int r = settings_read(&server.settings, argc, argv);

	if (r != 0)
		return r < 0 ? 2 : 0;
	block_signals();
	return open_all() != 0 ? 1 : run();
}
