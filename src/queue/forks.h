/* SPDX-License-Identifier: MIT */
#pragma once
/* Forks: tasks of groups, kept by the worker that forked them. The owner works at the bottom, newest first, and nearly always alone; thieves
 * take the oldest at the top.
 *
 *     top ----- public ----- split = guard ----- private ----- bottom
 *
 *   F1  The public part is the deque of Chase and Lev with `split` for its bottom, and its proof holds (deque.h). The owner moves split, or who
 *       has the lock; while the lock is free, guard is split.
 *   F2  The private part has one user. A push and a pop there are plain stores, and one comparison each: with `limit`, with `guard`.
 *   F3  Who finds nothing public makes the owner's limit HUNGRY. The next push is a slow one then: it shows the oldest fork, which is the
 *       biggest piece of work, and its caller looks for sleepers.
 *   F4  Who is hungry while the owner is busy with something long opens half of the private part himself (forks_rescue): he raises guard, and looks
 *       where the owner is; the owner lowers bottom, and looks at guard. One of them sees the other: between the two accesses the
 *       owner has a barrier that costs nothing, since the thief's interrupts all processors (barrier.h). Hence two words: guard is what the
 *       owner heeds, split what thieves may take, and that is raised only when the owner is known to be above.
 *   F5  Full means refuse. What cannot be kept is run in place by who forks.
 *
 * Without such a barrier the limit stays HUNGRY for good: each fork is public at once, and nothing has to be rescued.
 *
 * Indices do not wrap: 2^63 forks take centuries.                                                                       */
#include "base/barrier.h"
#include "base/lock.h"
#include "queue/slot.h"

struct fork {
	struct hive_task task;
	void *group;
};

struct fork_slot {
	struct slot task;
	ATOMIC(void *) group;
	uint64_t pad; /* two of them in a line */
};

#define FORKS_HUNGRY INT64_MIN

struct forks {
	struct fork_slot *slots;                   /* I */
	int64_t capacity;                          /* I  a power of two */
	bool all_public;                           /* I */
	ATOMIC(int64_t) bottom;                    /* S */
	ATOMIC(int64_t) limit;                     /* A  here begins the slow push: full, or HUNGRY */
	ATOMIC(int64_t) guard;                     /* A  below it the owner needs the lock */
	alignas(CACHE_LINE) ATOMIC(int64_t) split; /* A */
	alignas(CACHE_LINE) ATOMIC(int64_t) top;   /* A */
	struct lock lock;
};

enum forks_push { FORKS_FULL, FORKS_KEPT, FORKS_SHOWN };

/* Before anybody uses it. */
static inline void forks_init(struct forks *f, struct fork_slot *slots, int64_t capacity, bool all_public)
{
	f->slots = slots;
	f->capacity = capacity;
	f->all_public = all_public;
	store_relaxed(&f->bottom, (int64_t)0);
	store_relaxed(&f->limit, FORKS_HUNGRY);
	store_relaxed(&f->guard, (int64_t)0);
	store_relaxed(&f->split, (int64_t)0);
	store_relaxed(&f->top, (int64_t)0);
	lock_init(&f->lock);
}

static inline struct fork_slot *forks_slot(struct forks *f, int64_t index)
{
	return &f->slots[index & (f->capacity - 1)];
}

static inline void forks_write(struct forks *f, int64_t index, struct fork fork)
{
	struct fork_slot *slot = forks_slot(f, index);

	slot_write(&slot->task, fork.task);
	store_relaxed(&slot->group, fork.group);
}

static inline struct fork forks_read(struct forks *f, int64_t index)
{
	struct fork_slot *slot = forks_slot(f, index);
	struct fork fork;

	fork.task = slot_read(&slot->task);
	fork.group = load_relaxed(&slot->group);
	return fork;
}

/* ---- the owner ---- */

/* False: the slow way. */
static inline bool forks_push(struct forks *f, struct fork fork)
{
	int64_t bottom = load_relaxed(&f->bottom);

	if (bottom >= load_relaxed(&f->limit))
		return false;
	forks_write(f, bottom, fork);
	store_release(&f->bottom, bottom + 1); /* FORKS-1 (pairs with FORKS-2) */
	return true;
}

/* The caller has the lock. One more, never beyond the bottom. Whether there was one. */
static inline bool forks_show(struct forks *f, int64_t bottom, int64_t top)
{
	int64_t split = load_relaxed(&f->split), shown = f->all_public || split == bottom ? bottom : split + 1;

	if (!f->all_public)
		store_relaxed(&f->limit, top + f->capacity);
	store_relaxed(&f->guard, shown);
	store_release(&f->split, shown); /* FORKS-3 (pairs with FORKS-4) */
	return shown != split;
}

/* Full, or somebody is hungry. SHOWN: the caller looks for sleepers. */
static inline enum forks_push forks_push_slowly(struct forks *f, struct fork fork)
{
	int64_t bottom = load_relaxed(&f->bottom), top = load_acquire(&f->top); /* FORKS-5 (pairs with FORKS-6) */
	bool shown;

	if (bottom - top >= f->capacity)
		return FORKS_FULL;
	forks_write(f, bottom, fork);
	store_release(&f->bottom, bottom + 1); /* FORKS-1 (pairs with FORKS-2) */
	lock_acquire(&f->lock);
	shown = forks_show(f, bottom + 1, top);
	lock_release(&f->lock);
	return shown ? FORKS_SHOWN : FORKS_KEPT;
}

/* The newest is public, or there is none, or somebody was about to open it. The caller has the lock, and bottom is lowered already; so is split
 * before top is looked at.                                                                                                */
static inline bool forks_pop_public(struct forks *f, int64_t bottom, struct fork *ret_fork)
{
	int64_t top;
	bool won;

	store_relaxed(&f->guard, bottom);
	exchange_seq(&f->split, bottom); /* FORKS-7 (pairs with FORKS-4) */
	top = load_seq(&f->top);         /* FORKS-10 (pairs with FORKS-6) */
	*ret_fork = forks_read(f, bottom);
	if (top < bottom)
		return true;
	won = top == bottom && cas_release(&f->top, &top, bottom + 1); /* FORKS-8 (pairs with FORKS-9) */
	store_relaxed(&f->guard, bottom + 1);
	store_release(&f->split, bottom + 1);   /* FORKS-3 (pairs with FORKS-4) */
	store_release(&f->bottom, bottom + 1);  /* FORKS-1 (pairs with FORKS-2) */
	store_relaxed(&f->limit, FORKS_HUNGRY); /* nothing is public: the next one shall be */
	return won;
}

static __attribute__((noinline, unused)) bool forks_pop_slowly(struct forks *f, int64_t bottom, struct fork *ret_fork)
{
	bool won;

	lock_acquire(&f->lock);
	won = forks_pop_public(f, bottom, ret_fork);
	lock_release(&f->lock);
	return won;
}

/* The newest; false: there is none. What is private stays in registers: only the slow way needs a place in memory. */
static inline __attribute__((always_inline)) bool forks_pop(struct forks *f, struct fork *ret_fork)
{
	int64_t bottom = load_relaxed(&f->bottom) - 1;
	struct fork slow;
	bool won;

	store_release(&f->bottom, bottom); /* FORKS-1 (pairs with FORKS-2) */
	light_barrier();                   /* FORKS-11 (pairs with FORKS-12) */
	if (bottom < load_relaxed(&f->guard)) {
		won = forks_pop_slowly(f, bottom, &slow);
		*ret_fork = slow;
		return won;
	}
	*ret_fork = forks_read(f, bottom);
	return true;
}

/* The newest, if it is private and nobody is about to open it; else false, and forks_pop() has to find out. */
static inline bool forks_pop_private(struct forks *f, struct fork *ret_fork)
{
	return load_relaxed(&f->bottom) > load_relaxed(&f->guard) && forks_pop(f, ret_fork);
}

/* ---- a stack that is made with the first fork ---- */

struct fork_stack; /* with room in it */

/* The owner, before its first push: who falls asleep without having seen it is found by who shows a fork (idle.h). */
static inline void forks_appear(ATOMIC(struct fork_stack *) *place, struct fork_stack *stack)
{
	store_seq(place, stack); /* FORKS-13 (pairs with FORKS-14) */
}

/* NULL: there is none yet. */
static inline struct fork_stack *forks_seen(ATOMIC(struct fork_stack *) *place)
{
	return load_seq(place); /* FORKS-14 (pairs with FORKS-13) */
}

/* ---- others ---- */

static inline void forks_hunger(struct forks *f)
{
	if (load_relaxed(&f->limit) != FORKS_HUNGRY)
		store_relaxed(&f->limit, FORKS_HUNGRY);
}

/* Who is about to sleep and has said so. How many there are. If the owner has shown something before, it is found now; else he shows something
 * later, and finds who sleeps: one of the two had the lock first. A push that has just passed the limit is not seen; the next one is. */
static inline int64_t forks_call(struct forks *f)
{
	int64_t length;

	lock_acquire(&f->lock);
	store_relaxed(&f->limit, FORKS_HUNGRY);
	length = load_relaxed(&f->bottom) - load_relaxed(&f->top);
	lock_release(&f->lock);
	return length;
}

/* The oldest; false: there was none, or somebody else was faster. */
static inline bool forks_steal(struct forks *f, struct fork *ret_fork)
{
	int64_t top = load_seq(&f->top);     /* FORKS-9 (pairs with FORKS-8) */
	int64_t split = load_seq(&f->split); /* FORKS-4 (pairs with FORKS-3 and FORKS-7) */

	if (top >= split) {
		forks_hunger(f);
		return false;
	}
	*ret_fork = forks_read(f, top);       /* before the claim: afterwards the slot is the owner's */
	if (!cas_seq(&f->top, &top, top + 1)) /* FORKS-6 (pairs with FORKS-5 and FORKS-10) */
		return false;
	if (top + 1 >= split)
		forks_hunger(f);
	return true;
}

/* About. Those that are nobody else's. */
static inline int64_t forks_hidden(struct forks *f)
{
	int64_t split = load_relaxed(&f->split);

	return load_relaxed(&f->bottom) - split;
}

/* About. All of them. */
static inline int64_t forks_length(struct forks *f)
{
	int64_t top = load_relaxed(&f->top);

	return load_relaxed(&f->bottom) - top;
}

/* The caller has the lock. */
static inline bool forks_open(struct forks *f, int64_t split, int64_t up_to)
{
	store_relaxed(&f->guard, up_to);
	heavy_barrier();                        /* FORKS-12 (pairs with FORKS-11) */
	if (load_acquire(&f->bottom) < up_to) { /* FORKS-2 (pairs with FORKS-1) */
		store_relaxed(&f->guard, split);
		return false;
	}
	store_release(&f->split, up_to); /* FORKS-3 (pairs with FORKS-4) */
	return true;
}

/* Half of the private part becomes public. False: there was nothing, or the owner was faster. */
static inline bool forks_rescue(struct forks *f)
{
	int64_t split, hidden;
	bool opened;

	if (forks_hidden(f) <= 0 || !lock_try(&f->lock))
		return false;
	split = load_relaxed(&f->split);
	hidden = load_relaxed(&f->bottom) - split;
	opened = hidden > 0 && forks_open(f, split, split + (hidden + 1) / 2);
	lock_release(&f->lock);
	return opened;
}
