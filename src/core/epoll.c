/* SPDX-License-Identifier: MIT */
/* Readiness by epoll. The wake-up descriptor is edge-triggered and never read: one system call less per wake. */
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/atomic.h"
#include "base/fetch.h"
#include "base/memory.h"
#include "core/alarmfd.h"
#include "core/bed.h"
#include "core/cores.h"
#include "core/wakefd.h"

enum { BATCH = 64, AHEAD = 2 }; /* AHEAD: so far behind its end is looked, too */

struct epoll_core {
	struct hive_core core;
	struct memory memory;
	int epoll_fd, wake_fd;
	uint32_t sources; /* added ones */
	bool coarse;      /* the kernel has no epoll_pwait2 */
	bool polled;      /* somebody else waits for epoll_fd */
	struct bed bed;   /* where it sleeps without any source */
	struct alarmfd alarm;
	struct hive_source waker, ringer; /* never started: nothing is delivered for events of the core itself */
	struct epoll_event *next, *end;   /* of the batch under way */
	struct epoll_event batch[BATCH + AHEAD];
};

static struct epoll_core *of(struct hive_core *core)
{
	return (struct epoll_core *)(void *)core;
}

static int watch_wakefd(struct epoll_core *c)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.ptr = &c->waker };

	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, c->wake_fd, &event) < 0 ? -errno : 0;
}

/* What rings is told as an event of the core itself. Without it each wait has a timer of its own. */
static void open_alarm(struct epoll_core *c)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.ptr = &c->ringer };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0 && epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		close(fd);
		fd = -1;
	}
	c->alarm.fd = fd;
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
	} else {
		open_alarm(c);
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
	bed_init(&c->bed);
	c->next = c->end = c->batch;
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
	if (c->alarm.fd >= 0)
		close(c->alarm.fd);
	hive__memory_free(&memory, c);
}

static int wait_coarse(struct epoll_core *c, int64_t timeout_ns)
{
	return epoll_wait(c->epoll_fd, c->batch, BATCH, hive_poll_ms(timeout_ns));
}

static int wait_fine(struct epoll_core *c, int64_t timeout_ns)
{
	struct timespec limit = { timeout_ns / HIVE_S(1), timeout_ns % HIVE_S(1) };
	int n;

	if (c->coarse)
		return wait_coarse(c, timeout_ns);
	n = epoll_pwait2(c->epoll_fd, c->batch, BATCH, &limit, NULL);
	if (n < 0 &&
	    errno != EINTR) { /* ENOSYS, or a sandbox that has never heard of it: let the old call say what is wrong */
		c->coarse = true;
		return wait_coarse(c, timeout_ns);
	}
	return n;
}

static bool has_alarm(struct epoll_core *c, int64_t now_ns, int64_t deadline_ns)
{
	if (alarmfd_covers(&c->alarm, now_ns, deadline_ns))
		return true;
	return alarmfd_would_pay(&c->alarm, now_ns, deadline_ns) && alarmfd_start(&c->alarm, deadline_ns);
}

static bool only_alarm_rang(const struct epoll_core *c, int n)
{
	return n == 1 && c->batch[0].data.ptr == &c->ringer;
}

/* An alarm may have been set for an earlier end than this one: then the wait goes on. */
static int wait_until(struct epoll_core *c, int64_t now_ns, int64_t deadline_ns)
{
	int n;

	do {
		if (has_alarm(c, now_ns, deadline_ns)) {
			n = wait_coarse(c, HIVE_FOREVER);
		} else {
			n = wait_fine(c, deadline_ns - now_ns);
			alarmfd_note(&c->alarm, n > 0);
		}
		if (!only_alarm_rang(c, n))
			return n;
		now_ns = hive__clock_now();
	} while (now_ns < deadline_ns);
	return 0;
}

static int wait_for_events(struct epoll_core *c, int64_t timeout_ns)
{
	int64_t now;
	int n;

	if (timeout_ns > 0 && timeout_ns < HIVE_FOREVER) {
		now = hive__clock_now();
		return wait_until(c, now, time_add(now, timeout_ns));
	}
	do
		n = wait_coarse(c, timeout_ns);
	while (only_alarm_rang(c, n) && timeout_ns != 0);
	return n;
}

static uint32_t to_hive(uint32_t events)
{
	if (!(events & ~(uint32_t)(EPOLLIN | EPOLLOUT))) /* nearly always */
		return (events & EPOLLIN ? HIVE_EVENT_IN : 0u) | (events & EPOLLOUT ? HIVE_EVENT_OUT : 0u);
	return (events & EPOLLIN ? HIVE_EVENT_IN : 0u) | (events & EPOLLOUT ? HIVE_EVENT_OUT : 0u) |
	       (events & EPOLLPRI ? HIVE_EVENT_PRI : 0u) | (events & EPOLLHUP ? HIVE_EVENT_HUP : 0u) |
	       (events & EPOLLERR ? HIVE_EVENT_ERR : 0u) | (events & EPOLLRDHUP ? HIVE_EVENT_END : 0u);
}

static uint32_t to_epoll(uint32_t events)
{
	return (events & HIVE_EVENT_IN ? EPOLLIN : 0u) | (events & HIVE_EVENT_OUT ? EPOLLOUT : 0u) |
	       (events & HIVE_EVENT_PRI ? EPOLLPRI : 0u) | (events & HIVE_EVENT_EDGE ? (uint32_t)EPOLLET : 0u) |
	       (events & HIVE_EVENT_ONCE ? (uint32_t)EPOLLONESHOT : 0u) |
	       (events & HIVE_EVENT_END ? (uint32_t)EPOLLRDHUP : 0u) |
	       (events & CORE_EVENT_ALONE ? (uint32_t)EPOLLEXCLUSIVE : 0u);
}

static struct hive_source *source_of(const struct epoll_event *event)
{
	return (struct hive_source *)event->data.ptr;
}

/* Sources are many, and come in no order: they are not in the cache, nor is what they belong to. */
static void fetch_owner(const struct hive_source *source)
{
	const char *soon = (const char *)source->soon;

	if (!soon)
		return;
	fetch_ahead(soon);
	fetch_ahead(soon + 128);
}

static void deliver_batch(struct epoll_core *c, int n)
{
	struct epoll_event *event = c->batch;

	c->end = event + n;
	c->end[0].data.ptr = c->end[1].data.ptr = &c->waker;
	fetch_ahead(source_of(&event[0]));
	fetch_ahead(source_of(&event[1]));
	fetch_owner(source_of(&event[0]));
	for (; event < c->end; event = c->next) {
		c->next = event + 1;
		fetch_ahead(source_of(&event[2]));
		fetch_owner(source_of(&event[1]));
		hive_source_deliver(source_of(event), to_hive(event->events));
	}
	c->next = c->end = c->batch;
}

static int epoll_core_turn(struct hive_core *core, int64_t timeout_ns)
{
	struct epoll_core *c = of(core);
	int n;

	if (timeout_ns == 0 && c->sources == 0 && !c->polled)
		return 0; /* nothing can be ready: no system call */
	if (bed_is_used(&c->bed)) {
		bed_sleep(&c->bed, timeout_ns);
		return 0;
	}
	n = wait_for_events(c, timeout_ns);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	deliver_batch(c, n);
	return 0;
}

static void epoll_core_wake(struct hive_core *core)
{
	if (!bed_wake(&of(core)->bed))
		wakefd_signal(of(core)->wake_fd);
}

/* From here on it sleeps where events come. */
static void leave_bed(struct epoll_core *c)
{
	if (bed_leave(&c->bed))
		wakefd_signal(c->wake_fd);
}

/* By number, which may have been closed meanwhile, and be another descriptor: then there is nothing to change, and that is all. The
 * plain system call, because a checker of threads would take the number for memory that is used after its end.            */
static int control(struct hive_core *core, int operation, struct hive_source *source)
{
	struct epoll_event event = { .events = to_epoll(source->events), .data.ptr = source };

	return syscall(SYS_epoll_ctl, of(core)->epoll_fd, operation, (int)source->handle, &event) < 0 ? -errno : 0;
}

static int epoll_core_add(struct hive_core *core, struct hive_source *source)
{
	int r = control(core, EPOLL_CTL_ADD, source);

	if (r == 0) {
		of(core)->sources++;
		leave_bed(of(core));
	}
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

	control(core, EPOLL_CTL_DEL, source);
	c->sources--;
	for (struct epoll_event *event = c->next; event < c->end; event++)
		if (event->data.ptr == source)
			event->data.ptr = &c->waker;
}

/* A wake that nobody has fetched leaves it readable: from here on each turn looks. */
static int epoll_core_fd(struct hive_core *core)
{
	of(core)->polled = true;
	leave_bed(of(core));
	return of(core)->epoll_fd;
}

const struct hive_core_ops hive__core_epoll = {
	.name = "epoll",
	.kinds = 1u << HIVE_SOURCE_FD,
	.flags = CORE_TAKES_SETUP | CORE_WAKES_ONE,
	.open = epoll_core_open,
	.close = epoll_core_close,
	.turn = epoll_core_turn,
	.wake = epoll_core_wake,
	.add = epoll_core_add,
	.modify = epoll_core_modify,
	.remove = epoll_core_remove,
	.fd = epoll_core_fd,
};
