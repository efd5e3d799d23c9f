/* SPDX-License-Identifier: MIT */
/* io_uring: readiness and operations through one ring. A turn is one system call at most: it sends what has gathered since the last
 * one and fetches what is complete. With nothing to send and nothing complete, a turn that does not wait is none at all.        */
#if defined(HIVE_URING)
#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "base/fetch.h"
#include "core/uring.h"
#include "core/wakefd.h"

enum { OLDEST_MAJOR = 5, OLDEST_MINOR = 13 };
enum { ENTRIES = 256, ENTRIES_MAX = 32768, ANSWERS = 4 }; /* for each entry so many answers fit in */
enum { BATCH = 64 };                                      /* answers in one turn */
enum { NEXT = 1, SOON = 3 };                              /* answers to be made ready for */

#define NEEDED                                                                                             \
	(IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_RW_CUR_POS | IORING_FEAT_FAST_POLL | \
	 IORING_FEAT_POLL_32BITS | IORING_FEAT_EXT_ARG |                                                   \
	 IORING_FEAT_RSRC_TAGS)    /* as 5.13, with which came polls that go on */
#define TOO_LONG HIVE_S(100000000) /* the kernel adds the present to it */
#define FAMINE_NS HIVE_MS(1)       /* it had no memory for what we sent */

/* ---- opening ---- */

enum { WAY_BEST, WAY_POLLED }; /* with which one to begin: all, or those that can be polled by their descriptor */

static int set_up(struct io_uring *ring, uint32_t entries, size_t first_way, uint32_t *ret_features)
{
	/* What later kernels do better, flag by flag: answers are made when this thread asks for them, and nobody interrupts it
	 * for their sake; one bad entry does not keep the others from being sent.                                             */
	static const unsigned ways[] = {
		IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER |
			IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER |
			IORING_SETUP_COOP_TASKRUN,
		IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_COOP_TASKRUN,
		IORING_SETUP_SUBMIT_ALL,
		0,
	};
	int r = -EINVAL;

	for (size_t i = first_way; r == -EINVAL && i < sizeof ways / sizeof *ways; i++) {
		struct io_uring_params params = { .flags = ways[i] | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE,
			                          .cq_entries = entries * ANSWERS };

		r = io_uring_queue_init_params(entries, ring, &params);
		*ret_features = params.features;
	}
	if (r == 0 && (*ret_features & NEEDED) != NEEDED) {
		io_uring_queue_exit(ring);
		return -ENOSYS;
	}
	return r;
}

static bool kernel_is_new(void)
{
	struct utsname name;
	int major, minor;

	return uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	       (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR));
}

/* No ring is made: the end of one interrupts a later wait of this thread. One without entries is refused for that reason alone, where
 * others are not. What only a real one shows is found out when it is opened.                                                     */
int hive__uring_probe(void)
{
	struct io_uring_params params = { 0 };
	int r = io_uring_setup(0, &params);

	if (r >= 0)
		close(r);
	if (r < 0 && r != -EINVAL)
		return r;
	return kernel_is_new() ? 0 : -ENOSYS;
}

struct io_uring_sqe *hive__uring_entry(struct uring_core *c)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&c->ring);

	if (!sqe && io_uring_submit(&c->ring) > 0)
		sqe = io_uring_get_sqe(&c->ring);
	return sqe;
}

bool hive__uring_recall(struct uring_core *c, uint64_t user_data)
{
	struct io_uring_sqe *sqe = hive__uring_entry(c);

	if (!sqe)
		return false;
	io_uring_prep_cancel64(sqe, user_data, 0);
	sqe->user_data = FOR_NOBODY;
	if (c->skips)
		sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	return true;
}

/* The counter is never read: each write to it is told. */
static void arm_waker(struct uring_core *c)
{
	struct io_uring_sqe *sqe = c->waker_is_armed ? NULL : hive__uring_entry(c);

	if (!sqe)
		return;
	io_uring_prep_poll_multishot(sqe, c->wake_fd, POLLIN);
	sqe->user_data = FOR_WAKER;
	c->waker_is_armed = true;
}

/* An error after which it is worth while to send the same again. */
static bool is_passing(int error)
{
	return error == -EINTR || error == -EAGAIN || error == -EBUSY;
}

static int open_ring(struct uring_core *c, uint32_t entries, size_t first_way)
{
	uint32_t features;
	int r = set_up(&c->ring, entries, first_way, &features);

	if (r < 0)
		return r;
	c->skips = features & IORING_FEAT_CQE_SKIP;
	hive__uring_learn(c);
	io_uring_register_ring_fd(&c->ring); /* spares each call a look at the table of files; as well without */
	arm_waker(c);
	r = io_uring_submit(&c->ring);
	if (r >= 0 || is_passing(r)) /* then the first turn sends it */
		return 0;
	io_uring_queue_exit(&c->ring);
	return r;
}

static int open_fds(struct uring_core *c, uint32_t entries)
{
	int r;

	c->wake_fd = wakefd_open();
	if (c->wake_fd < 0)
		return c->wake_fd;
	r = open_ring(c, entries, WAY_BEST);
	if (r < 0)
		close(c->wake_fd);
	return r;
}

static int uring_open(void *arg, struct hive_core **ret_core)
{
	struct core_setup setup = core_setup(arg);
	uint32_t entries = setup.ring_entries ? setup.ring_entries : ENTRIES;
	struct uring_core *c = (struct uring_core *)hive__memory_new(&setup.memory, sizeof *c);
	int r;

	if (!c)
		return -ENOMEM;
	r = open_fds(c, entries < ENTRIES_MAX ? entries : ENTRIES_MAX);
	if (r < 0) {
		hive__memory_free(&setup.memory, c);
		return r;
	}
	c->core.ops = &hive__core_uring;
	c->memory = setup.memory;
	c->listed_last = &c->listed;
	*ret_core = &c->core;
	return 0;
}

/* What is still in the kernel is nothing but polls, which write nowhere. They are let go of now and not when the kernel gets round to
 * it, for they keep files open.                                                                                               */
static void uring_close(struct hive_core *core)
{
	struct uring_core *c = uring_of(core);
	struct memory memory = c->memory;
	struct io_uring_sqe *sqe = hive__uring_entry(c);

	if (sqe) {
		io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
		sqe->user_data = FOR_NOBODY;
		io_uring_submit_and_get_events(&c->ring);
	}
	io_uring_queue_exit(&c->ring);
	close(c->wake_fd);
	hive__watches_free(c);
	hive__memory_free(&memory, c);
}

/* ---- turning ---- */

static uint32_t events_of(int poll_events)
{
	return (poll_events & POLLIN ? HIVE_EVENT_IN : 0u) | (poll_events & POLLOUT ? HIVE_EVENT_OUT : 0u) |
	       (poll_events & POLLPRI ? HIVE_EVENT_PRI : 0u) | (poll_events & POLLHUP ? HIVE_EVENT_HUP : 0u) |
	       (poll_events & (POLLERR | POLLNVAL) ? HIVE_EVENT_ERR : 0u) |
	       (poll_events & POLLRDHUP ? HIVE_EVENT_END : 0u);
}

uint32_t hive__uring_events_of(int poll_events, uint32_t asked)
{
	uint32_t events = events_of(poll_events);

	return events & (asked | HIVE_EVENT_HUP | HIVE_EVENT_ERR);
}

/* Urgent bytes alone do not wake a poll of the ring, but they come with an event of others. */
unsigned hive__uring_poll_of(uint32_t events)
{
	return (events & HIVE_EVENT_IN ? (unsigned)POLLIN : 0u) | (events & HIVE_EVENT_OUT ? (unsigned)POLLOUT : 0u) |
	       (events & HIVE_EVENT_PRI ? (unsigned)(POLLPRI | POLLIN) : 0u) |
	       (events & HIVE_EVENT_END ? (unsigned)POLLRDHUP : 0u);
}

static bool kernel_has_something(const struct uring_core *c)
{
	return IO_URING_READ_ONCE(*c->ring.sq.kflags) & (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN);
}

static int look(struct uring_core *c)
{
	if (io_uring_sq_ready(&c->ring) == 0 && !kernel_has_something(c))
		return 0;
	return io_uring_submit_and_get_events(&c->ring);
}

static int wait_for(struct uring_core *c, int64_t timeout_ns)
{
	int64_t ns = timeout_ns < TOO_LONG ? timeout_ns : TOO_LONG;
	struct __kernel_timespec limit = { ns / HIVE_S(1), ns % HIVE_S(1) };
	struct io_uring_cqe *cqe;

	return io_uring_submit_and_wait_timeout(&c->ring, &cqe, 1, timeout_ns == HIVE_FOREVER ? NULL : &limit, NULL);
}

/* The kernel could not take what we sent: it is sent again in the next turn, after a while, or as soon as something is complete. */
static int wait_out_famine(struct uring_core *c, int64_t timeout_ns)
{
	struct __kernel_timespec limit = { 0, timeout_ns < FAMINE_NS ? timeout_ns : FAMINE_NS };
	struct io_uring_cqe *cqe;

	return io_uring_wait_cqe_timeout(&c->ring, &cqe, &limit);
}

static void answer(struct uring_core *c, uint64_t user_data, int result, uint32_t flags)
{
	void *whose = (void *)(uintptr_t)(user_data & ~(uint64_t)FOR_BITS);
	bool more = flags & IORING_CQE_F_MORE;

	switch (user_data & FOR_BITS) {
	case FOR_OP:
		hive__op_told(c, (struct hive_op *)whose, result, flags);
		break;
	case FOR_WATCH:
		hive__watch_told(c, (struct watch *)whose, result, more);
		break;
	case FOR_WAKER:
		c->waker_is_armed = more;
		break;
	default:
		break;
	}
}

/* The operation of an answer that comes in a moment; NULL: it is not one. It is lent to us until it was answered. */
static const struct hive_op *op_ahead(const struct uring_core *c, unsigned ahead)
{
	const struct io_uring_cq *cq = &c->ring.cq;
	uint64_t user_data = cq->cqes[(*cq->khead + ahead) & *cq->kring_mask].user_data;

	return (user_data & FOR_BITS) == FOR_OP ? (const struct hive_op *)(uintptr_t)user_data : NULL;
}

/* Operations are many, and come in no order: they are not in the cache, nor are their neighbours in the list that each is taken out
 * of. The end of an operation is a compare-and-swap, which waits for all that was written before it.                        */
static void look_ahead(const struct uring_core *c, unsigned ready)
{
	const struct hive_op *next = ready > NEXT ? op_ahead(c, NEXT) : NULL;
	const struct hive_op *soon = ready > SOON ? op_ahead(c, SOON) : NULL;

	if (soon) {
		fetch_ahead(soon);
		fetch_ahead((const char *)soon + 128);
	}
	if (next && next->next)
		prefetch_alone(&((const struct hive_op *)next->next)->prev);
	if (next && next->prev)
		prefetch_alone(&((const struct hive_op *)next->prev)->next);
}

/* Only what is there at the beginning: what callbacks ask for has its turn in the next one. So has what is left when it is enough: the
 * next turn finds it without waiting. And who is woken by these runs before who is woken by the next ones.                     */
static void answer_some(struct uring_core *c)
{
	unsigned ready = io_uring_cq_ready(&c->ring);

	c->turns++;
	c->enough = false;
	for (unsigned n = ready < BATCH ? ready : BATCH; n > 0 && !c->enough; n--) {
		struct io_uring_cqe *cqe, copy;

		if (io_uring_peek_cqe(&c->ring, &cqe) != 0)
			return;
		look_ahead(c, n);
		copy = *cqe;
		io_uring_cq_advance(&c->ring, 1); /* before the callback, which may need the room */
		answer(c, copy.user_data, copy.res, copy.flags);
	}
}

/* Who waits elsewhere sends nothing when he begins to wait: what answers have asked for goes off now. -EAGAIN: the kernel does not take all of
 * it at the moment, and a later turn has to send it.                                                                    */
static int send_rest(struct uring_core *c)
{
	hive__ops_send(c);
	hive__watches_send(c);
	arm_waker(c);
	if (io_uring_sq_ready(&c->ring) > 0)
		io_uring_submit(&c->ring);
	return io_uring_sq_ready(&c->ring) > 0 || c->listed || c->late || !c->waker_is_armed ? -EAGAIN : 0;
}

static int uring_turn(struct hive_core *core, int64_t timeout_ns)
{
	struct uring_core *c = uring_of(core);
	int r;

	if (hive__ops_send(c) || io_uring_cq_ready(&c->ring) > 0)
		timeout_ns = 0;
	hive__watches_send(c);
	hive__uring_refill_all(c);
	arm_waker(c);
	r = timeout_ns == 0 ? look(c) : wait_for(c, timeout_ns);
	if ((r == -EAGAIN || r == -EBUSY) && timeout_ns != 0)
		r = wait_out_famine(c, timeout_ns);
	answer_some(c);
	if (r < 0 && r != -ETIME && !is_passing(r))
		return r;
	return c->polled ? send_rest(c) : 0;
}

static void uring_wake(struct hive_core *core)
{
	wakefd_signal(uring_of(core)->wake_fd);
}

/* A ring whose answers are made when this thread asks for them tells nobody who polls it that there is something to ask for; nor does, on all kernels, a
 * counter that is registered with it. So this one becomes a ring whose answers are made as soon as the thread is in the kernel, and a wait there is interrupted
 * for that. Nothing but the waker is in it yet.                                                                         */
static int uring_fd(struct hive_core *core)
{
	struct uring_core *c = uring_of(core);
	struct io_uring old = c->ring;
	bool armed = c->waker_is_armed;
	int r = 0;

	if (old.flags & IORING_SETUP_DEFER_TASKRUN) {
		c->waker_is_armed = false;
		r = open_ring(c, old.sq.ring_entries, WAY_POLLED);
	}
	if (r < 0) {
		c->ring = old;
		c->waker_is_armed = armed;
		return r;
	}
	if (old.flags & IORING_SETUP_DEFER_TASKRUN)
		io_uring_queue_exit(&old);
	c->polled = true;
	return c->ring.ring_fd;
}

const struct hive_core_ops hive__core_uring = {
	.name = "uring",
	.kinds = 1u << HIVE_SOURCE_FD,
	.flags = CORE_TAKES_SETUP | CORE_KEEPS_FILES,
	.open = uring_open,
	.close = uring_close,
	.turn = uring_turn,
	.wake = uring_wake,
	.add = hive__uring_add,
	.modify = hive__uring_modify,
	.remove = hive__uring_remove,
	.native_ops = URING_OPS,
	.submit = hive__uring_submit,
	.cancel = hive__uring_cancel,
	.fd = uring_fd,
};
#endif
