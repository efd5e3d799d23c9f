/* SPDX-License-Identifier: MIT */
/* Sources on io_uring: each is a poll request. */
#if defined(HIVE_URING)
#include <errno.h>
#include <fcntl.h>

#include "core/uring.h"

enum { FIRST_FDS = 64 };

static uint64_t mark_of(struct watch *w)
{
	return (uint64_t)(uintptr_t)w | FOR_WATCH;
}

/* ---- the books ---- */

static int make_room(struct uring_core *c, int fd)
{
	uint32_t fds = c->fds ? c->fds : FIRST_FDS;
	struct watch **by_fd;

	if ((uint32_t)fd < c->fds)
		return 0;
	while (fds <= (uint32_t)fd)
		fds *= 2;
	by_fd = (struct watch **)hive__memory_new(&c->memory, fds * sizeof *by_fd);
	if (!by_fd)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->fds; i++)
		by_fd[i] = c->by_fd[i];
	hive__memory_free(&c->memory, c->by_fd);
	c->by_fd = by_fd;
	c->fds = fds;
	return 0;
}

static struct watch *new_watch(struct uring_core *c, struct hive_source *source)
{
	struct watch *w = c->spare, *next_of_all;

	if (w) {
		c->spare = w->next;
		next_of_all = w->next_of_all;
	} else {
		w = (struct watch *)hive__memory_new(&c->memory, sizeof *w);
		if (!w)
			return NULL;
		next_of_all = c->all;
		c->all = w;
	}
	*w = (struct watch){ .source = source, .fd = (int)source->handle, .next_of_all = next_of_all };
	return w;
}

static void keep_as_spare(struct uring_core *c, struct watch *w)
{
	w->next = c->spare;
	c->spare = w;
}

void hive__watches_free(struct uring_core *c)
{
	while (c->all) {
		struct watch *w = c->all;

		c->all = w->next_of_all;
		hive__memory_free(&c->memory, w);
	}
	hive__memory_free(&c->memory, c->by_fd);
}

static void list(struct uring_core *c, struct watch *w)
{
	if (w->listed)
		return;
	w->listed = true;
	w->next = NULL;
	*c->listed_last = w;
	c->listed_last = &w->next;
}

/* ---- to the kernel ---- */

static bool is_by_edges(const struct watch *w)
{
	return (w->source->events & (HIVE_EVENT_EDGE | HIVE_EVENT_ONCE)) == HIVE_EVENT_EDGE;
}

static bool arm(struct uring_core *c, struct watch *w)
{
	struct io_uring_sqe *sqe = hive__uring_entry(c);

	if (!sqe)
		return false;
	if (w->quiet || is_by_edges(w))
		io_uring_prep_poll_multishot(sqe, w->fd, hive__uring_poll_of(w->source->events));
	else
		io_uring_prep_poll_add(sqe, w->fd, hive__uring_poll_of(w->source->events));
	sqe->user_data = mark_of(w);
	w->in_kernel = true;
	return true;
}

/* False: not now. */
static bool send_watch(struct uring_core *c, struct watch *w)
{
	if (w->in_kernel)
		return !w->recalled || hive__uring_recall(c, mark_of(w));
	return !w->source || w->off || arm(c, w);
}

void hive__watches_send(struct uring_core *c)
{
	struct watch *w;

	while ((w = c->listed) != NULL && send_watch(c, w)) {
		c->listed = w->next;
		if (!c->listed)
			c->listed_last = &c->listed;
		w->listed = false;
		if (!w->source && !w->in_kernel)
			keep_as_spare(c, w);
	}
}

/* ---- from the kernel ---- */

/* A level that was waited for in a quiet way came true: from now on it is looked at in each turn. */
static void end_quiet(struct uring_core *c, struct watch *w)
{
	w->quiet = false;
	w->recalled = w->in_kernel;
	list(c, w);
}

/* Nothing of the watch is touched after the delivery: it may be somebody else's by then. */
static void tell(struct uring_core *c, struct watch *w, uint32_t events)
{
	struct hive_source *source = w->source;

	if (source->events & HIVE_EVENT_ONCE)
		w->off = true;
	if (w->quiet)
		end_quiet(c, w);
	else if (!w->in_kernel)
		list(c, w);
	hive_source_deliver(source, events);
}

void hive__watch_told(struct uring_core *c, struct watch *w, int result, bool more)
{
	uint32_t events = result < 0 || !w->source ? 0 : hive__uring_events_of(result, w->source->events);

	w->in_kernel = more;
	if (!w->source) {
		if (!more && !w->listed)
			keep_as_spare(c, w);
		return;
	}
	if (w->recalled) {
		w->recalled = more;
		if (!more)
			list(c, w);
	} else if (result == -EBADF) { /* closed before its time */
		w->off = true;
		hive_source_deliver(w->source, HIVE_EVENT_ERR);
	} else if (events != 0) {
		tell(c, w, events);
	} else if (
		!more) { /* the kernel tells what nobody asked for, as that the peer has ended: not again and again */
		w->quiet = result >= 0;
		list(c, w);
	}
}

/* ---- the worker's calls ---- */

int hive__uring_add(struct hive_core *core, struct hive_source *source)
{
	struct uring_core *c = uring_of(core);
	int fd = (int)source->handle, r;
	struct watch *w;

	if (fcntl(fd, F_GETFD) < 0) /* the kernel would only tell in the next turn */
		return -errno;
	r = make_room(c, fd);
	if (r < 0)
		return r;
	if (c->by_fd[fd])
		return -EEXIST;
	w = new_watch(c, source);
	if (!w)
		return -ENOMEM;
	c->by_fd[fd] = w;
	c->watching++;
	list(c, w);
	return 0;
}

/* In the kernel it would go on by the old events: somebody else takes its place. */
static int replace(struct uring_core *c, struct watch *old)
{
	struct watch *w = new_watch(c, old->source);

	if (!w)
		return -ENOMEM;
	old->source = NULL;
	old->recalled = true;
	list(c, old);
	c->by_fd[w->fd] = w;
	list(c, w);
	return 0;
}

int hive__uring_modify(struct hive_core *core, struct hive_source *source)
{
	struct uring_core *c = uring_of(core);
	struct watch *w = c->by_fd[source->handle];

	if (w->in_kernel)
		return replace(c, w);
	w->off = w->quiet = false;
	list(c, w);
	return 0;
}

/* A request in the kernel keeps the descriptor open, so it is recalled at once: the caller is about to close it. */
void hive__uring_remove(struct hive_core *core, struct hive_source *source)
{
	struct uring_core *c = uring_of(core);
	struct watch *w = c->by_fd[source->handle];

	c->by_fd[source->handle] = NULL;
	c->watching--;
	w->source = NULL;
	if (!w->in_kernel) {
		if (!w->listed)
			keep_as_spare(c, w);
		return;
	}
	if (hive__uring_recall(c, mark_of(w))) {
		io_uring_submit_and_get_events(&c->ring);
		return;
	}
	w->recalled = true;
	list(c, w);
}
#endif
