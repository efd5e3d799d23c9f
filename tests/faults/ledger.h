/* SPDX-License-Identifier: MIT */
#pragma once
/* Every task of a fault sweep has an entry here. Accepted means: it ran, or was dropped, or was cancelled, exactly once;
 * refused means: none of these. What the hive reports must be the sum of what the entries saw.                           */
#include "base/atomic.h"
#include "test.h"

#include <rophive/hive.h>

enum { LEDGER_ENTRIES = 24000 };

/* Of the n in a sweep without threads, each so-many-th: ThreadSanitizer has nothing to see there and takes its time. */
#if TEST_TSAN
enum { LONELY_STRIDE = 7 };
#else
enum { LONELY_STRIDE = 1 };
#endif

struct ledger;
struct entry {
	struct ledger *ledger;
	void (*body)(void *arg);      /* what the task does, if anything */
	bool is_then, is_far;         /* far: not expected to end before it is cancelled or dropped */
	ATOMIC(uint32_t) accepted;    /* by the call that posted it */
	ATOMIC(uint32_t) ran, worked; /* worked: first half of a compute_then */
	ATOMIC(uint32_t) dropped, cancelled;
};

struct ledger {
	void *arg;                         /* for the bodies */
	ATOMIC(int32_t) open;              /* accepted or being posted, not yet at their end; without the far ones */
	ATOMIC(uint32_t) count;            /* entries in use */
	ATOMIC(uint32_t) errors, warnings; /* calls that returned an error */
	uint64_t fibers_ran, fibers_cancelled; /* what fibers add to the hive's books */
	struct entry entries[LEDGER_ENTRIES];
};

static inline void ledger_clear(struct ledger *l, void *arg)
{
	uint32_t used = load_relaxed(&l->count);

	l->arg = arg;
	l->fibers_ran = l->fibers_cancelled = 0;
	store_relaxed(&l->open, 0);
	store_relaxed(&l->errors, 0u);
	store_relaxed(&l->warnings, 0u);
	for (uint32_t i = 0; i < used; i++) {
		struct entry *e = &l->entries[i];

		e->body = NULL;
		e->is_then = e->is_far = false;
		store_relaxed(&e->accepted, 0u);
		store_relaxed(&e->ran, 0u);
		store_relaxed(&e->worked, 0u);
		store_relaxed(&e->dropped, 0u);
		store_relaxed(&e->cancelled, 0u);
	}
	store_relaxed(&l->count, 0u);
}

/* Before the post: its task may be over before the post returns. */
static inline struct entry *ledger_open(struct ledger *l, bool is_far)
{
	uint32_t at = add_seq(&l->count, 1u);
	struct entry *e;

	CHECK(at < LEDGER_ENTRIES);
	e = &l->entries[at];
	e->ledger = l;
	e->is_far = is_far;
	if (!is_far)
		add_seq(&l->open, 1);
	return e;
}

static inline void ledger_close(struct entry *e)
{
	if (!e->is_far)
		sub_seq(&e->ledger->open, 1);
}

static inline void ledger_answered(struct entry *e, int r)
{
	if (r == 0)
		store_seq(&e->accepted, 1u);
	else
		ledger_close(e);
}

/* As tasks. */
static inline void ledger_run(void *entry)
{
	struct entry *e = entry;

	add_seq(&e->ran, 1u);
	if (e->body)
		e->body(e->ledger->arg);
	ledger_close(e);
}

static inline void ledger_work(void *entry)
{
	struct entry *e = entry;

	add_seq(&e->worked, 1u);
}

/* The drop hook; its argument is the ledger. */
static inline void ledger_drop(void *hook_arg, const struct hive_task *task)
{
	struct entry *e = task->arg;

	CHECK_EQ(e->ledger, hook_arg);
	add_seq(&e->dropped, 1u);
	ledger_close(e);
}

static inline void ledger_warn(void *hook_arg, const char *text)
{
	struct ledger *l = hook_arg;

	CHECK(text[0] != '\0');
	add_seq(&l->warnings, 1u);
}

static inline void ledger_cancel(struct hive *hive, struct entry *e, uint64_t post)
{
	int r = hive_post_cancel(hive, post);

	CHECK(r == 0 || r == -ESRCH);
	if (r == 0) {
		add_seq(&e->cancelled, 1u);
		ledger_close(e);
	}
}

static inline void check_entry(struct entry *e)
{
	uint32_t ran = load_seq(&e->ran), worked = load_seq(&e->worked), dropped = load_seq(&e->dropped);
	uint32_t cancelled = load_seq(&e->cancelled);

	if (!load_seq(&e->accepted))
		CHECK_EQ(ran + worked + dropped + cancelled, 0);
	else
		CHECK_EQ(ran + dropped + cancelled, 1);
	if (e->is_then && load_seq(&e->accepted))
		CHECK(worked == 1 || (worked == 0 && dropped == 1));
	else
		CHECK_EQ(worked, 0);
}

/* After the end: each entry for itself, and all of them against the hive's own books. */
static inline void ledger_check(struct ledger *l, const struct hive_report *report)
{
	uint64_t ran = l->fibers_ran, dropped = 0, cancelled = l->fibers_cancelled;

	for (uint32_t i = 0; i < load_seq(&l->count); i++) {
		struct entry *e = &l->entries[i];

		check_entry(e);
		ran += load_seq(&e->ran) + load_seq(&e->worked);
		dropped += load_seq(&e->dropped);
		cancelled += load_seq(&e->cancelled);
	}
	CHECK_EQ(report->ran, ran);
	CHECK_EQ(report->dropped, dropped);
	CHECK_EQ(report->cancelled, cancelled);
	CHECK_EQ(report->posted, ran + dropped + cancelled);
}
