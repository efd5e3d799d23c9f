/* SPDX-License-Identifier: MIT */
/* The host of an explored hive: memory that notices late writes, and cores whose waiting is virtual. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "explore.h"
#include "io/op.h"
#include "sched/internal.h"

/* ---- memory: freed blocks are kept until the end of the run, full of a pattern that must still be there then ---- */

enum { PATTERN = 0xa5 };

struct block {
	struct block *next;
	size_t bytes;
	bool freed;
	alignas(16) unsigned char memory[];
};

static struct block *blocks;

void explore_memory_begin(void)
{
	blocks = NULL;
}

static bool is_spoilt(const struct block *b)
{
	for (size_t i = 0; i < b->bytes; i++)
		if (b->memory[i] != PATTERN)
			return true;
	return false;
}

uint64_t explore_memory_end(void)
{
	uint64_t leaked = 0;

	while (blocks) {
		struct block *b = blocks;

		leaked += !b->freed || is_spoilt(b);
		blocks = b->next;
		free(b);
	}
	return leaked;
}

static struct block *block_of(void *memory)
{
	return (struct block *)(void *)((char *)memory - offsetof(struct block, memory));
}

static void *give(size_t bytes)
{
	struct block *b = malloc(sizeof *b + bytes);

	if (!b)
		abort();
	b->next = blocks;
	b->bytes = bytes;
	b->freed = false;
	blocks = b;
	return b->memory;
}

static void take_back(void *memory)
{
	struct block *b;

	if (!memory)
		return;
	b = block_of(memory);
	EXPECT(!b->freed);
	b->freed = true;
	memset(b->memory, PATTERN, b->bytes);
}

void *explore_allocate(void *arg, void *old, size_t bytes)
{
	void *new;

	(void)arg;
	if (bytes == 0) {
		take_back(old);
		return NULL;
	}
	new = give(bytes);
	if (old) {
		size_t before = block_of(old)->bytes;

		memcpy(new, old, before < bytes ? before : bytes);
		take_back(old);
	}
	return new;
}

/* ---- cores: a real one inside (or none) looks without waiting; the waiting itself is the explorer's ---- */

enum { OWN_OPS = 6 };

struct explored_core {
	struct hive_core core;
	struct hive_core *inner;
	bool woken;
	bool stirred;                 /* some descriptor has become ready since it began to look */
	struct hive_op *ops[OWN_OPS]; /* that it does by itself */
	bool asked[OWN_OPS];          /* to end it */
	int op_count;
};

static const struct hive_core_ops *inner_ops;
static const struct memory inner_memory = { explore_allocate, NULL };
static struct explored_core *open_cores[THREADS_MAX];

static struct explored_core *of(struct hive_core *core)
{
	return (struct explored_core *)core;
}

static struct hive_core_ops explored_ops;

static void remember(struct explored_core *old, struct explored_core *new)
{
	int i = 0;

	while (open_cores[i] != old)
		i++;
	open_cores[i] = new;
}

static int core_open(void *arg, struct hive_core **ret_core)
{
	struct explored_core *c = explore_allocate(NULL, NULL, sizeof *c);
	int r = 0;

	(void)arg;
	memset(c, 0, sizeof *c);
	c->core.ops = &explored_ops;
	if (HIVE_FAULT("core"))
		r = -EMFILE;
	else if (inner_ops)
		r = inner_ops->open((void *)(uintptr_t)&inner_memory, &c->inner);
	if (r < 0) {
		explore_allocate(NULL, c, 0);
		return r;
	}
	remember(NULL, c);
	*ret_core = &c->core;
	return 0;
}

static void core_close(struct hive_core *core)
{
	remember(of(core), NULL);
	if (of(core)->inner)
		inner_ops->close(of(core)->inner);
	explore_allocate(NULL, core, 0);
}

static uint64_t events_so_far(void)
{
	struct worker *w = hive__current();
	uint64_t events;

	explore_hold();
	events = w ? load_relaxed(&w->stats.events) : 0;
	explore_go_on();
	return events;
}

/* An op that was submitted may be done, end because somebody wants that, or go back to be done by readiness. */
static bool ends(struct explored_core *c, int i, int64_t *ret_result)
{
	*ret_result = c->asked[i] && explore_draw(2) ? -ECANCELED : hive__op_try(c->ops[i]);
	if (*ret_result == -EAGAIN && c->asked[i])
		*ret_result = -ECANCELED;
	return *ret_result != -EAGAIN || explore_draw(8) == 0;
}

/* Who is told may submit others: then it begins anew. */
static void do_ops(struct explored_core *c)
{
	for (int i = 0; i < c->op_count; i++) {
		struct hive_op *op = c->ops[i];
		int64_t result;

		if (!ends(c, i, &result))
			continue;
		c->op_count--;
		c->ops[i] = c->ops[c->op_count];
		c->asked[i] = c->asked[c->op_count];
		hive_op_deliver(op, result, false);
		i = -1;
	}
}

/* True: something was delivered. If not, nothing has become ready before the waiting. */
static bool look(struct explored_core *c)
{
	uint64_t before = events_so_far();

	do {
		c->stirred = false;
		if (c->inner)
			inner_ops->turn(c->inner, 0);
		do_ops(c);
	} while (c->stirred && events_so_far() == before);
	return events_so_far() != before;
}

static int core_turn(struct hive_core *core, int64_t timeout_ns)
{
	struct explored_core *c = of(core);
	int64_t until_ns = timeout_ns < HIVE_FOREVER - explore_now() ? explore_now() + timeout_ns : HIVE_FOREVER;
	bool waits;

	hive__explore_point(__FILE__, __LINE__);
	waits = !look(c) && timeout_ns > 0 && !c->woken && !HIVE_FAULT("spurious return");
	while (waits) {
		explore_block(c, until_ns == HIVE_FOREVER ? HIVE_FOREVER : until_ns - explore_now());
		waits = !look(c) && !c->woken && explore_now() < until_ns; /* else others were meant */
	}
	c->woken = false;
	return HIVE_FAULT("core turn") ? -EINTR : 0;
}

/* A number that nobody uses: who waits for it calls explore_wait_core(). */
static int core_fd(struct hive_core *core)
{
	(void)core;
	return 1000;
}

void explore_wait_core(struct hive_core *core, int64_t wait_ns)
{
	struct explored_core *c = of(core);
	int64_t until_ns = wait_ns < HIVE_FOREVER - explore_now() ? explore_now() + wait_ns : HIVE_FOREVER;

	hive__explore_point(__FILE__, __LINE__);
	if (HIVE_FAULT("spurious return"))
		return;
	while (!c->woken && !c->stirred && explore_now() < until_ns)
		explore_block(c, until_ns == HIVE_FOREVER ? HIVE_FOREVER : until_ns - explore_now());
}

static void core_wake(struct hive_core *core)
{
	struct explored_core *c = of(core);

	if (HIVE_FAULT("delayed wake"))
		explore_yield();
	hive__explore_point(__FILE__, __LINE__);
	if (c->inner)
		inner_ops->wake(c->inner);
	c->woken = true;
	explore_unblock(c, 1);
}

static int core_add(struct hive_core *core, struct hive_source *source)
{
	return of(core)->inner ? inner_ops->add(of(core)->inner, source) : -ENOTSUP;
}

static int core_modify(struct hive_core *core, struct hive_source *source)
{
	return of(core)->inner ? inner_ops->modify(of(core)->inner, source) : -ENOTSUP;
}

static void core_remove(struct hive_core *core, struct hive_source *source)
{
	if (of(core)->inner)
		inner_ops->remove(of(core)->inner, source);
}

static int core_submit(struct hive_core *core, struct hive_op *op)
{
	struct explored_core *c = of(core);

	if (op->repeat || c->op_count == OWN_OPS || explore_draw(4) == 0)
		return -ENOTSUP;
	c->asked[c->op_count] = false;
	c->ops[c->op_count++] = op;
	return 0;
}

static void core_cancel(struct hive_core *core, struct hive_op *op)
{
	struct explored_core *c = of(core);
	int i = 0;

	while (i < c->op_count && c->ops[i] != op)
		i++;
	EXPECT(i < c->op_count);
	EXPECT(!c->asked[i]); /* a core is asked once */
	c->asked[i] = true;
}

static struct hive_core_ops explored_ops = { .name = "explored",
	                                     .kinds = 1u << HIVE_SOURCE_FD,
	                                     .open = core_open,
	                                     .close = core_close,
	                                     .turn = core_turn,
	                                     .wake = core_wake,
	                                     .add = core_add,
	                                     .modify = core_modify,
	                                     .remove = core_remove,
	                                     .submit = core_submit,
	                                     .cancel = core_cancel,
	                                     .fd = core_fd };

static const char fd_events;

void explore_fd_event(void)
{
	explore_unblock(&fd_events, THREADS_MAX);
	for (int i = 0; i < THREADS_MAX; i++) {
		if (!open_cores[i])
			continue;
		open_cores[i]->stirred = true;
		explore_unblock(open_cores[i], 1);
	}
}

void explore_wait_fd_event(void)
{
	explore_block(&fd_events, HIVE_FOREVER);
}

static uint64_t host_random(void *arg, uint32_t worker)
{
	(void)arg, (void)worker;
	return (uint64_t)explore_draw(UINT32_MAX) << 32; /* rng_below() looks at the upper half */
}

struct hive_host explore_host(int core)
{
	static const char *const names[] = { NULL, "epoll", "poll", "epoll" };
	struct hive_host host = { .allocate = explore_allocate, .random = host_random, .core = &explored_ops };

	memset(open_cores, 0, sizeof open_cores);
	inner_ops = NULL;
	if (core != CORE_EMPTY && hive_core_find(names[core], &inner_ops) < 0)
		abort();
	explored_ops.native_ops = 0;
	if (core == CORE_DOES_OPS)
		explored_ops.native_ops = 1u << HIVE_OP_RECV | 1u << HIVE_OP_SEND | 1u << HIVE_OP_READ |
		                          1u << HIVE_OP_WRITE | 1u << HIVE_OP_POLL;
	return host;
}
