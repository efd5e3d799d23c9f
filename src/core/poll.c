/* SPDX-License-Identifier: MIT */
/* Readiness by poll(): the reference. Nothing clever, so that it is easy to see what a core must do. */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "core/cores.h"
#include "core/wakefd.h"

enum { FIRST_CAPACITY = 16, WAKE = 0 }; /* entry 0 is the wake-up descriptor */

struct poll_core {
	struct hive_core core;
	struct memory memory;
	int wake_fd; /* also in entry 0; others may not look there, as the entries move when they grow */
	uint32_t count, capacity;
	bool dispatching, has_holes; /* holes: removed while dispatching, fd -1 and no source */
	struct pollfd *fds;
	struct hive_source **sources;
};

static struct poll_core *of(struct hive_core *core)
{
	return (struct poll_core *)(void *)core;
}

static int grow(struct poll_core *c)
{
	uint32_t capacity = c->capacity ? c->capacity * 2 : FIRST_CAPACITY;
	struct pollfd *fds = (struct pollfd *)hive__memory_new(&c->memory, capacity * sizeof *fds);
	struct hive_source **sources = (struct hive_source **)hive__memory_new(&c->memory, capacity * sizeof *sources);

	if (!fds || !sources) {
		hive__memory_free(&c->memory, fds);
		hive__memory_free(&c->memory, sources);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < c->count; i++) {
		fds[i] = c->fds[i];
		sources[i] = c->sources[i];
	}
	hive__memory_free(&c->memory, c->fds);
	hive__memory_free(&c->memory, c->sources);
	c->fds = fds;
	c->sources = sources;
	c->capacity = capacity;
	return 0;
}

static void free_core(struct poll_core *c)
{
	struct memory memory = c->memory;

	hive__memory_free(&memory, c->fds);
	hive__memory_free(&memory, c->sources);
	hive__memory_free(&memory, c);
}

static int poll_core_open(void *arg, struct hive_core **ret_core)
{
	struct memory memory = core_memory(arg);
	struct poll_core *c = (struct poll_core *)hive__memory_new(&memory, sizeof *c);
	int fd;

	if (!c)
		return -ENOMEM;
	c->memory = memory;
	c->core.ops = &hive__core_poll;
	fd = grow(c) < 0 ? -ENOMEM : wakefd_open();
	if (fd < 0) {
		free_core(c);
		return fd;
	}
	c->wake_fd = fd;
	c->fds[WAKE] = (struct pollfd){ .fd = fd, .events = POLLIN };
	c->count = 1;
	*ret_core = &c->core;
	return 0;
}

static void poll_core_close(struct hive_core *core)
{
	close(of(core)->wake_fd);
	free_core(of(core));
}

static uint32_t to_hive(short events)
{
	return (events & POLLIN ? HIVE_EVENT_IN : 0u) | (events & POLLOUT ? HIVE_EVENT_OUT : 0u) |
	       (events & POLLPRI ? HIVE_EVENT_PRI : 0u) | (events & POLLHUP ? HIVE_EVENT_HUP : 0u) |
	       (events & (POLLERR | POLLNVAL) ? HIVE_EVENT_ERR : 0u);
}

static short to_poll(uint32_t events)
{
	return (short)((events & HIVE_EVENT_IN ? POLLIN : 0) | (events & HIVE_EVENT_OUT ? POLLOUT : 0) |
	               (events & HIVE_EVENT_PRI ? POLLPRI : 0));
}

static void close_holes(struct poll_core *c)
{
	uint32_t kept = 1;

	for (uint32_t i = 1; i < c->count; i++) {
		if (!c->sources[i])
			continue;
		c->fds[kept] = c->fds[i];
		c->sources[kept] = c->sources[i];
		c->sources[kept]->index = kept;
		kept++;
	}
	c->count = kept;
	c->has_holes = false;
}

/* Sources may be added and removed meanwhile: new ones stand behind `count`, removed ones leave a hole. */
static void dispatch(struct poll_core *c)
{
	uint32_t count = c->count;

	c->dispatching = true;
	for (uint32_t i = 1; i < count; i++) {
		struct hive_source *source = c->sources[i];
		uint32_t events = source ? to_hive(c->fds[i].revents) : 0;

		if (events == 0)
			continue;
		if (source->events & HIVE_EVENT_ONCE)
			c->fds[i].fd = -1; /* until modify */
		hive_source_deliver(source, events);
	}
	c->dispatching = false;
	if (c->has_holes)
		close_holes(c);
}

static int poll_core_turn(struct hive_core *core, int64_t timeout_ns)
{
	struct poll_core *c = of(core);
	struct timespec limit = { timeout_ns / HIVE_S(1), timeout_ns % HIVE_S(1) };
	int n;

	if (timeout_ns == 0 && c->count == 1)
		return 0;
	n = ppoll(c->fds, c->count, timeout_ns == HIVE_FOREVER ? NULL : &limit, NULL);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (c->fds[WAKE].revents)
		wakefd_clear(c->wake_fd);
	if (n > 0)
		dispatch(c);
	return 0;
}

static void poll_core_wake(struct hive_core *core)
{
	wakefd_signal(of(core)->wake_fd);
}

static int poll_core_add(struct hive_core *core, struct hive_source *source)
{
	struct poll_core *c = of(core);

	if (source->events & HIVE_EVENT_EDGE)
		return -ENOTSUP;
	if (fcntl((int)source->handle, F_GETFD) < 0) /* poll() itself would only tell in each turn */
		return -errno;
	for (uint32_t i = 1; i < c->count; i++)
		if (c->sources[i] && c->sources[i]->handle == source->handle)
			return -EEXIST;
	if (c->count == c->capacity) {
		int r = grow(c);

		if (r < 0)
			return r;
	}
	source->index = c->count;
	c->sources[c->count] = source;
	c->fds[c->count++] = (struct pollfd){ .fd = (int)source->handle, .events = to_poll(source->events) };
	return 0;
}

static int poll_core_modify(struct hive_core *core, struct hive_source *source)
{
	struct pollfd *entry = &of(core)->fds[source->index];

	if (source->events & HIVE_EVENT_EDGE)
		return -ENOTSUP;
	entry->fd = (int)source->handle;
	entry->events = to_poll(source->events);
	return 0;
}

static void poll_core_remove(struct hive_core *core, struct hive_source *source)
{
	struct poll_core *c = of(core);

	c->sources[source->index] = NULL;
	c->fds[source->index].fd = -1;
	c->has_holes = true;
	if (!c->dispatching)
		close_holes(c);
}

const struct hive_core_ops hive__core_poll = {
	.name = "poll",
	.kinds = 1u << HIVE_SOURCE_FD,
	.flags = CORE_TAKES_SETUP,
	.open = poll_core_open,
	.close = poll_core_close,
	.turn = poll_core_turn,
	.wake = poll_core_wake,
	.add = poll_core_add,
	.modify = poll_core_modify,
	.remove = poll_core_remove,
};
