/* SPDX-License-Identifier: MIT */
/* Readiness by epoll. The wake-up descriptor is edge-triggered and never read: one system call less per wake. */
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/memory.h"
#include "core/cores.h"
#include "core/wakefd.h"

enum { BATCH = 64 };

struct epoll_core {
	struct hive_core core;
	struct memory memory;
	int epoll_fd, wake_fd;
	uint32_t sources; /* added ones */
	bool coarse;      /* the kernel has no epoll_pwait2 */
	int next, count;  /* of the batch under way */
	struct epoll_event batch[BATCH];
};

static struct epoll_core *of(struct hive_core *core)
{
	return (struct epoll_core *)(void *)core;
}

static int watch_wakefd(struct epoll_core *c)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.ptr = NULL };

	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, c->wake_fd, &event) < 0 ? -errno : 0;
}

static int open_fds(struct epoll_core *c)
{
	int r;

	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll_fd < 0)
		return -errno;
	c->wake_fd = wakefd_open();
	if (c->wake_fd < 0) {
		close(c->epoll_fd);
		return c->wake_fd;
	}
	r = watch_wakefd(c);
	if (r < 0) {
		close(c->epoll_fd);
		close(c->wake_fd);
	}
	return r;
}

static int epoll_core_open(void *arg, struct hive_core **ret_core)
{
	struct memory memory = core_memory(arg);
	struct epoll_core *c = (struct epoll_core *)hive__memory_new(&memory, sizeof *c);
	int r;

	if (!c)
		return -ENOMEM;
	r = open_fds(c);
	if (r < 0) {
		hive__memory_free(&memory, c);
		return r;
	}
	c->core.ops = &hive__core_epoll;
	c->memory = memory;
	*ret_core = &c->core;
	return 0;
}

static void epoll_core_close(struct hive_core *core)
{
	struct epoll_core *c = of(core);
	struct memory memory = c->memory;

	close(c->epoll_fd);
	close(c->wake_fd);
	hive__memory_free(&memory, c);
}

static int wait_coarse(struct epoll_core *c, int64_t timeout_ns)
{
	return epoll_wait(c->epoll_fd, c->batch, BATCH, hive_poll_ms(timeout_ns));
}

static int wait_for_events(struct epoll_core *c, int64_t timeout_ns)
{
	struct timespec limit = { timeout_ns / HIVE_S(1), timeout_ns % HIVE_S(1) };
	int n;

	if (timeout_ns == 0 || timeout_ns == HIVE_FOREVER || c->coarse)
		return wait_coarse(c, timeout_ns);
	n = epoll_pwait2(c->epoll_fd, c->batch, BATCH, &limit, NULL);
	if (n < 0 &&
	    errno != EINTR) { /* ENOSYS, or a sandbox that has never heard of it: let the old call say what is wrong */
		c->coarse = true;
		return wait_coarse(c, timeout_ns);
	}
	return n;
}

static uint32_t to_hive(uint32_t events)
{
	return (events & EPOLLIN ? HIVE_EVENT_IN : 0u) | (events & EPOLLOUT ? HIVE_EVENT_OUT : 0u) |
	       (events & EPOLLPRI ? HIVE_EVENT_PRI : 0u) | (events & EPOLLHUP ? HIVE_EVENT_HUP : 0u) |
	       (events & EPOLLERR ? HIVE_EVENT_ERR : 0u);
}

static uint32_t to_epoll(uint32_t events)
{
	return (events & HIVE_EVENT_IN ? EPOLLIN : 0u) | (events & HIVE_EVENT_OUT ? EPOLLOUT : 0u) |
	       (events & HIVE_EVENT_PRI ? EPOLLPRI : 0u) | (events & HIVE_EVENT_EDGE ? (uint32_t)EPOLLET : 0u) |
	       (events & HIVE_EVENT_ONCE ? (uint32_t)EPOLLONESHOT : 0u);
}

static int epoll_core_turn(struct hive_core *core, int64_t timeout_ns)
{
	struct epoll_core *c = of(core);
	int n;

	if (timeout_ns == 0 && c->sources == 0)
		return 0; /* nothing can be ready: no system call */
	n = wait_for_events(c, timeout_ns);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	c->count = n;
	for (c->next = 0; c->next < c->count;) {
		struct epoll_event *event = &c->batch[c->next++];

		if (event->data.ptr)
			hive_source_deliver((struct hive_source *)event->data.ptr, to_hive(event->events));
	}
	c->next = c->count = 0;
	return 0;
}

static void epoll_core_wake(struct hive_core *core)
{
	wakefd_signal(of(core)->wake_fd);
}

static int control(struct hive_core *core, int operation, struct hive_source *source)
{
	struct epoll_event event = { .events = to_epoll(source->events), .data.ptr = source };

	return epoll_ctl(of(core)->epoll_fd, operation, (int)source->handle, &event) < 0 ? -errno : 0;
}

static int epoll_core_add(struct hive_core *core, struct hive_source *source)
{
	int r = control(core, EPOLL_CTL_ADD, source);

	if (r == 0)
		of(core)->sources++;
	return r;
}

static int epoll_core_modify(struct hive_core *core, struct hive_source *source)
{
	return control(core, EPOLL_CTL_MOD, source);
}

/* Events of this source that are still in the batch must not be delivered: its memory may be gone, or be a new source with
 * the same descriptor number. A descriptor that was closed too early is out of the set already, hence no look at the result. */
static void epoll_core_remove(struct hive_core *core, struct hive_source *source)
{
	struct epoll_core *c = of(core);

	epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, (int)source->handle, NULL);
	c->sources--;
	for (int i = c->next; i < c->count; i++)
		if (c->batch[i].data.ptr == source)
			c->batch[i].data.ptr = NULL;
}

const struct hive_core_ops hive__core_epoll = {
	.name = "epoll",
	.kinds = 1u << HIVE_SOURCE_FD,
	.flags = CORE_TAKES_MEMORY,
	.open = epoll_core_open,
	.close = epoll_core_close,
	.turn = epoll_core_turn,
	.wake = epoll_core_wake,
	.add = epoll_core_add,
	.modify = epoll_core_modify,
	.remove = epoll_core_remove,
};
