/* SPDX-License-Identifier: MIT */
#pragma once
/* A real core in the fake world: the worker never beats by itself, the test turns its core. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/corelist.h"
#include "support/lone.h"

struct rig {
	const char *name;
	const struct hive_core_ops *ops;
	struct lone l;
	struct hive_core *core;
};

/* The caller is the worker from here on. */
static inline void rig_open_with(struct rig *r, const char *name, struct hive_worker_options options)
{
	memset(r, 0, sizeof *r);
	r->name = name;
	CHECK_OK(core_find(name, &r->ops));
	options.core = r->ops;
	fake_create(&r->l.f, (struct hive_options){ 0 });
	CHECK_OK(hive_attach(r->l.f.hive, &options, &r->l.ids[0]));
	fake_start(&r->l.f);
	r->l.w[0] = hive__slot(&r->l.f.hive->io, 0);
	r->l.w[0]->started = true;
	r->core = r->l.w[0]->core;
	lone_become(&r->l, 0);
}

static inline void rig_open(struct rig *r, const char *name)
{
	rig_open_with(r, name, (struct hive_worker_options){ 0 });
}

static inline void rig_close(struct rig *r)
{
	lone_close(&r->l);
}

struct rig_check {
	const char *name;
	void (*check)(struct rig *r);
};

static inline void *rig_check(void *arg)
{
	const struct rig_check *what = arg;
	static struct rig r;

	rig_open(&r, what->name);
	what->check(&r);
	rig_close(&r);
	return NULL;
}

/* The same check for every core of this build. Each on a thread of its own: the end of a ring interrupts its thread some time later,
 * and waits that are measured would be too short.                                                                               */
static inline void each_core(void (*check)(struct rig *r))
{
	for (int i = 0; i < core_count(); i++) {
		struct rig_check what = { core_names[i], check };
		pthread_t thread;

		CHECK_EQ(pthread_create(&thread, NULL, rig_check, &what), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
}

static inline bool rig_is(const struct rig *r, const char *name)
{
	return strcmp(r->name, name) == 0;
}

static inline bool rig_has_edges(const struct rig *r)
{
	return !rig_is(r, "poll");
}

/* It is a loop with sources of its own, which are looked at in each turn. */
static inline bool rig_is_foreign(const struct rig *r)
{
	return rig_is(r, "glib");
}

static inline void rig_turn(struct rig *r, int64_t timeout_ns)
{
	CHECK_OK(r->ops->turn(r->core, timeout_ns));
}

/* A source that remembers what it was told. */
struct ear {
	struct hive_source source;
	int heard;
	uint32_t events;
	void (*then)(struct ear *ear);
	void *arg;
};

static inline void ear_hear(struct hive_source *source, uint32_t events)
{
	struct ear *ear = source->arg;

	ear->heard++;
	ear->events = events;
	if (ear->then)
		ear->then(ear);
}

static inline void ear_init(struct ear *ear, int fd, uint32_t events)
{
	memset(ear, 0, sizeof *ear);
	hive_source_init(&ear->source, HIVE_SOURCE_FD, fd, events, ear_hear, ear);
}

static inline void ear_start(struct ear *ear, int fd, uint32_t events)
{
	ear_init(ear, fd, events);
	CHECK_OK(hive_source_start(&ear->source));
}

static inline void ear_stop(struct ear *ear)
{
	CHECK_EQ(hive_source_stop(&ear->source), 1);
}

static inline void put_byte(int fd)
{
	CHECK_EQ(write(fd, "x", 1), 1);
}

static inline void take_byte(int fd)
{
	char byte;

	CHECK_EQ(read(fd, &byte, 1), 1);
}

static inline void make_pipe(int fds[2])
{
	CHECK_OK(pipe2(fds, O_NONBLOCK | O_CLOEXEC));
}

static inline void close_both(int fds[2])
{
	CHECK_OK(close(fds[0]));
	CHECK_OK(close(fds[1]));
}
