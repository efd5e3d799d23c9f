/* SPDX-License-Identifier: MIT */
#pragma once
/* A loop with poll(), of which a hive is the guest. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "support/corelist.h"
#include "support/real.h"
#include "test.h"

#include <rophive/hive.h>

struct host {
	struct hive *hive;
	int fd;
	int64_t wait_ns;
	bool over;
	int steps, polls; /* polls: that ended because of the descriptor */
};

static inline struct hive *host_create(const char *name, struct hive_worker_options io, struct hive_options options)
{
	CHECK_OK(hive_core_find(name, &io.core));
	options.io = &io;
	if (options.io_workers == 0)
		options.io_workers = 1;
	return real_create(options);
}

static inline void host_begin(struct host *h, struct hive *hive)
{
	*h = (struct host){ .hive = hive, .fd = -1 };
	CHECK_OK(hive_guest_start(hive, &h->fd));
	CHECK(h->fd >= 0);
}

static inline void host_step(struct host *h)
{
	int r = hive_guest_step(h->hive, &h->wait_ns);

	h->steps++;
	if (r == -ESHUTDOWN) {
		h->over = true;
		h->wait_ns = 0;
	} else {
		CHECK_OK(r);
		CHECK(h->wait_ns >= 0);
	}
}

/* One turn of the host's loop. */
static inline void host_turn(struct host *h)
{
	struct pollfd fds = { .fd = h->fd, .events = POLLIN };
	int64_t patience = HIVE_S(20);

	if (poll(&fds, 1, hive_poll_ms(h->wait_ns < patience ? h->wait_ns : patience)) > 0)
		h->polls++;
	host_step(h);
}

static inline bool host_readable(int fd)
{
	struct pollfd fds = { .fd = fd, .events = POLLIN };

	return poll(&fds, 1, 0) == 1 && (fds.revents & POLLIN);
}

/* Until it sleeps and its descriptor says so. */
static inline void host_settle(struct host *h)
{
	STEP_UNTIL(h->wait_ns > 0 && !host_readable(h->fd), host_step(h));
}

static inline void host_end_with(struct host *h, enum hive_stop_mode mode)
{
	struct hive_report report;

	CHECK_OK(hive_stop(h->hive, mode, HIVE_FOREVER));
	STEP_UNTIL(h->over, host_turn(h));
	CHECK_ERR(hive_guest_step(h->hive, &h->wait_ns), -ESHUTDOWN);
	CHECK_OK(hive_join(h->hive, HIVE_NOWAIT));
	CHECK_OK(hive_report_read(h->hive, &report));
	CHECK_EQ(report.posted, report.ran + report.cancelled + report.dropped);
	CHECK_OK(hive_destroy(h->hive));
}

static inline void host_end(struct host *h)
{
	host_end_with(h, HIVE_DRAIN);
}

/* For each core that has a descriptor. Each on a thread of its own: the end of a ring interrupts its thread some time later. */
struct host_check {
	const char *core;
	void (*check)(const char *core);
};

static inline void *host_call_check(void *arg)
{
	const struct host_check *what = arg;

	what->check(what->core);
	return NULL;
}

static inline void host_each_core(void (*check)(const char *core))
{
	const struct hive_core_ops *core;

	for (int i = 0; i < core_count(); i++) {
		struct host_check what = { core_names[i], check };
		pthread_t thread;

		CHECK_OK(hive_core_find(core_names[i], &core));
		if (!core->fd)
			continue;
		CHECK_EQ(pthread_create(&thread, NULL, host_call_check, &what), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
}

static inline void host_count(void *counter)
{
	atomic_fetch_add((atomic_int *)counter, 1);
}
