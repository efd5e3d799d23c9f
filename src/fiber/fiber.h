/* SPDX-License-Identifier: MIT */
#pragma once
/* A fiber, and what the files of this folder offer each other.
 *
 * The object lies at the top of its stack, in memory that stays until the hive goes (stack.h): a stale pointer finds an old fiber
 * or a new one, never a hole. Handles name the life that was meant (fate.h), so both are told from it.
 *
 * Who may touch a field:
 *   I  constant from spawn on        O  whoever runs it: the fiber, or the loop that has just left it
 *   S  owner stores, anyone loads    A  any thread, atomic        L  under the lock named                           */
#include <string.h>

#include <rophive/fiber.h>

#include "base/fetch.h"
#include "base/lock.h"
#include "base/scope.h"
#include "fiber/cancel.h"
#include "fiber/cell.h"
#include "fiber/fate.h"
#include "fiber/once.h"
#include "fiber/stack.h"
#include "fiber/switch.h"
#include "fiber/wait.h"
#include "sched/guest.h"
#include "sched/state.h"

struct waiter { /* who can wait */
	struct cell cell;
	uint32_t thread;  /* I  the system's number of the thread; 0: a fiber */
	uint32_t mutexes; /* O  that it holds */
#if defined(HIVE_DEBUG)
	struct scope scope; /* O  groups that it has opened */
#endif
	ATOMIC(const char *) why; /* S  what it waits for, a number belongs to it if it ends with a blank, */
	ATOMIC(uintptr_t) detail; /* S  this one; for WAIT_MUTEX and WAIT_JOIN whom: wait.h */
};

struct locals; /* values by key, shared with children: local.c */

struct tracker { /* the end of a root and of all beneath it: block_on waits for that, */
	struct once once;
	int result;                             /* I once done */
	void (*ended)(struct tracker *tracker); /* I  or, not NULL: this is called, wherever it ends or is dropped */
};

/* Why it switches to the loop. NEXT: it is queued already, the next one shall run. */
enum fiber_request { REQUEST_PARK, REQUEST_MOVE, REQUEST_NEXT, REQUEST_END };

struct hive_fiber {         /* what a switch needs stands first, in as few cache lines as may be */
	struct guest guest; /* first */
	struct waiter waiter;
	struct context context;           /* O */
	struct context *loop;             /* O  who ran it */
	struct hive *hive;                /* I */
	const ATOMIC(uint32_t) *state;    /* I  of the hive */
	ATOMIC(struct hive_fiber *) root; /* S  under hive_block_on(), see below; NULL: nobody keeps track */
	ATOMIC(int32_t) cancelled;        /* A  why its waits end; 0: they do not */
	uint32_t pinned;                  /* O  worker, or HIVE_WORKER_NONE */
	enum fiber_request request;       /* O */
	ATOMIC(uint32_t) began;           /* S  for dumps: 0 not yet, 1 runs or waits, 2 it has ended */

	ATOMIC(uint64_t) fate;         /* A  latch, and what has become of it: fate.h */
	struct fibers *all;            /* I */
	ATOMIC(hive_fiber_fn *) fn;    /* S  of the spawner */
	void *arg;                     /* I */
	int result;                    /* O; anyone once ENDED was seen */
	struct stack stack;            /* I */
	struct locals *locals;         /* O */
	struct hive_cancel *cancel;    /* I  token that it is under, or NULL */
	struct hive_cancel_link under; /* L the token's latch */

	struct wait_list waits; /* L the latch of fate  who waits for its end */

	/* Under hive_block_on(): a tree of which each part stays until all beneath it have ended. */
	struct hive_fiber *parent;       /* I */
	ATOMIC(uint32_t) pending;        /* A  itself and its children that are not complete */
	ATOMIC(uint32_t) tree_cancelled; /* A  of a root */
	struct tracker *tracker;         /* I  of a root */

	uint64_t alarm_turn;         /* O */
	ATOMIC(uint32_t) alarm_rung; /* A */
	union {                      /* S  of the spawner; dumps read it whoever that is by now */
		char name[32];
		ATOMIC(uint64_t) name_words[4];
	};
};

/* Stacks begin at multiples of large powers of two, so the same fields of all fibers, and their frames, would compete for the same few
 * lines of the cache. Hence each lies a little lower than another one, by where its stack is.                              */
enum { FIBER_BYTES = 512, FIBER_COLOURS = 16 };

_Static_assert(sizeof(struct hive_fiber) <= FIBER_BYTES, "fibers have room");
_Static_assert(FIBER_BYTES + (FIBER_COLOURS - 1) * 64 <= STACK_TOP, "a fiber lies in the top of its stack");

struct fibers {                        /* of one hive */
	struct hive *hive;             /* I */
	const ATOMIC(uint32_t) *state; /* I  of the hive */
	struct stacks *stacks;         /* I */
};

/* fiber.c */
struct fibers *hive__fibers(struct hive *hive); /* NULL: no memory */
struct hive_fiber *hive__fiber_here(void);      /* who runs on this thread, or NULL */
int hive__fiber_start(struct hive *hive, hive_fiber_fn *fn, void *arg, const struct hive_fiber_options *options,
                      struct tracker *tracker, struct hive_fiber **ret_fiber);
/* Any thread, who has asked the door. The same, of the library's own: it begins also while a worker of the hive drains, and is the child of
 * nobody.                                                                                                                  */
int hive__fiber_start_own(struct hive *hive, hive_fiber_fn *fn, void *arg, const struct hive_fiber_options *options,
                          struct tracker *tracker, struct hive_fiber **ret_fiber);
void hive__fiber_resume(struct hive_fiber *f);                          /* it was PARKED, and the caller claimed it */
void hive__fiber_free(struct hive_fiber *f, struct guest_place *place); /* place: the caller's, or NULL */
void hive__fiber_cancel_wait(struct hive_fiber *f);

/* wait.c */
/* hive__wait_deliver() where a fiber has ended, on the loop that asks for the next one then. */
void hive__wait_hand(struct wait wait, struct guest_place *loop);

/* end.c */
void hive__fiber_ended(struct hive_fiber *f, struct guest_place *loop);
bool hive__fiber_release(struct hive_fiber *f, uint64_t life);
void hive__fiber_cancel_tree(struct hive_fiber *root); /* itself and all beneath it */

/* under.c */
/* Who spawns it. It is under the token that the options name or, unless it is the library's own, the spawning fiber's. 0, or it must not begin. */
int hive__fiber_enter(struct hive_fiber *f, const struct hive_fiber_options *o, bool own);

/* local.c */
struct locals *hive__locals_share(struct locals *locals);
void hive__locals_drop(const struct memory *memory, struct locals *locals);

/* whom.c */
struct whom { /* as seen from outside, maybe a moment ago */
	uintptr_t waiter;
	uint32_t thread; /* 0: a fiber */
	char name[32];   /* of a fiber; empty: it has none */
};
/* Any thread, also a signal handler. False: it waits for nobody who could be named. */
bool hive__fiber_whom(struct hive_fiber *f, struct whom *ret_whom);
enum { WHOM_BYTES = 64 };
/* Any thread. "fiber reader", "fiber 0x7f…", "thread 1234". */
void hive__spell_whom(const struct whom *whom, char ret_text[WHOM_BYTES]);

/* standstill.c */
uint64_t hive__fibers_standstill(void *fibers, void *to, void (*say)(void *to, const char *line));

/* dump.c */
void hive__fibers_dump(void *fibers, void *to, void (*say)(void *to, const char *words));

static inline struct hive_fiber *fiber_of_stack(struct stack stack)
{
	char *top = (char *)stack.low + stack.bytes;
	uint64_t colour = (uint64_t)(uintptr_t)top * UINT64_C(0x9e3779b97f4a7c15) >> 60; /* tools/gdb does the same */

	return (struct hive_fiber *)(void *)(top - FIBER_BYTES - colour * CACHE_LINE);
}

/* Why it may not wait; 0: it may. */
static inline int hive__fiber_reason(struct hive_fiber *f)
{
	struct hive_fiber *root = load_relaxed(&f->root);
	int reason = load_relaxed(&f->cancelled);

	if (reason == 0 && ((root && load_relaxed(&root->tree_cancelled)) || load_relaxed(f->state) >= HIVE_LEAVING))
		reason = -ECANCELED;
	return reason;
}

/* It parked long ago, maybe, and goes on soon. */
static inline void fiber_warm_up(const struct hive_fiber *f)
{
	const char *sp = (const char *)f->context.sp;

	prefetch(sp);
	prefetch(sp + 128);
	prefetch(sp + 192);
}

/* To the loop, and back. Inline, as each function between a switch and the fiber's own code is a return that is guessed wrong. */
static inline void fiber_leave(struct hive_fiber *f, enum fiber_request request)
{
	f->request = request;
	context_switch(&f->context, f->loop);
}

#define fiber_of_guest(g) ((struct hive_fiber *)(void *)(g))
#define fiber_of_waiter(w) ((struct hive_fiber *)(void *)((char *)(w)-offsetof(struct hive_fiber, waiter)))
#define fiber_of_link(l) ((struct hive_fiber *)(void *)((char *)(l)-offsetof(struct hive_fiber, under)))

/* Who waited goes on: how its wait ended. Only fibers are cancelled, and who does so has written why. */
static inline int waiter_result(struct waiter *who)
{
	enum cell_phase phase = cell_end(&who->cell);

	store_relaxed(&who->why, (const char *)NULL);
	if (phase == CELL_LATE)
		return -ETIMEDOUT;
	return phase == CELL_CANCELLED ? hive__fiber_reason(fiber_of_waiter(who)) : 0;
}

/* hive__wait_end() of a fiber (or of a thread that has a deadline), with the switch inside its caller where that is all there is to do (see fiber_leave). */
static inline __attribute__((always_inline)) int fiber_wait_end(struct wait wait, int64_t deadline_ns)
{
	if (deadline_ns != HIVE_FOREVER)
		return hive__wait_end(wait, deadline_ns);
	fiber_leave(fiber_of_waiter(wait.who), REQUEST_PARK);
	return waiter_result(wait.who);
}

static inline void fiber_name_write(struct hive_fiber *f, const char *name)
{
	uint64_t words[4] = { 0 };

	if (!name) {
		store_relaxed(&f->name_words[0], UINT64_C(0)); /* the others may say what they like */
		return;
	}
	strncat((char *)words, name, sizeof words - 1);
	for (int i = 0; i < 4; i++)
		store_relaxed(&f->name_words[i], words[i]);
}

/* Maybe half of an old one and half of a new one, but a name of at most 31 bytes. */
static inline void fiber_name_read(struct hive_fiber *f, char ret_name[32])
{
	for (int i = 0; i < 4; i++) {
		uint64_t word = load_relaxed(&f->name_words[i]);

		memcpy(ret_name + i * 8, &word, sizeof word);
	}
}

/* Handles: the life stands in bits that no address of a process uses, as far as there is room. */
#if UINTPTR_MAX > UINT32_MAX
enum { HANDLE_SHIFT = 48, HANDLE_BITS = 16 };
#define HANDLE_GENERATION(h) ((uint32_t)((h) >> HANDLE_SHIFT))
#define HANDLE_ADDRESS(h) ((h) & (((uintptr_t)1 << HANDLE_SHIFT) - 1))
#define HANDLE_MAKE(address, g) ((address) | (uintptr_t)((g) & ((1u << HANDLE_BITS) - 1)) << HANDLE_SHIFT)
#else
enum { HANDLE_BITS = 6 };
#define HANDLE_GENERATION(h) ((uint32_t)(h)&63u)
#define HANDLE_ADDRESS(h) ((h) & ~(uintptr_t)63)
#define HANDLE_MAKE(address, g) ((address) | ((g)&63u))
#endif

static inline struct hive_fiber *fiber_handle(struct hive_fiber *f)
{
	return (struct hive_fiber *)HANDLE_MAKE((uintptr_t)f, (uint32_t)(load_relaxed(&f->fate) >> 32));
}

/* The fiber that a handle names, and which of its lives. 0; -EINVAL: no handle; -ESRCH: of one that is gone. */
static inline int fiber_find(struct hive_fiber *handle, struct hive_fiber **ret_fiber, uint64_t *ret_life)
{
	struct hive_fiber *f = (struct hive_fiber *)HANDLE_ADDRESS((uintptr_t)handle);
	uint64_t fate;

	if (!f || (uintptr_t)f % alignof(struct hive_fiber) != 0)
		return -EINVAL;
	fate = load_relaxed(&f->fate);
	if (((fate >> 32) & ((1u << HANDLE_BITS) - 1)) != HANDLE_GENERATION((uintptr_t)handle))
		return -ESRCH;
	*ret_fiber = f;
	*ret_life = fate & FATE_LIFE;
	return fate & FATE_RELEASED ? -ESRCH : 0;
}
