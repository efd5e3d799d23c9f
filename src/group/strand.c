/* SPDX-License-Identifier: MIT */
/* Strands: a line of tasks, and guests that drain it (turns.h says whose turn it is).
 *
 * A strand holds its hive while something is queued or runs, and each drain has memory of its own; so what was accepted needs nothing more
 * to run, and the end of the hive waits for it. Who joins waits for numbers: the first task that has not ended tells which have.     */
#include <errno.h>

#include "base/memory.h"
#include "fiber/wakes.h"
#include "group/ready.h"
#include "group/turns.h"

#include <rophive/strand.h>
#include <rophive/worker.h>

#define STRAND_MAGIC 0x73747261u
_Static_assert(HIVE_STRAND_WIDTH_MAX == TURNS_WIDTH_MAX, "a bit for each drain");

enum { BUDGET = 32 }; /* tasks, before others have a turn */

struct drain {
	struct guest guest;         /* first */
	struct hive_strand *strand; /* I */
	const void *who;            /* L turns.word  who runs a task of it, while numbers[index] says that it does */
	int index;                  /* I */
};

struct hive_strand {
	uint32_t magic;       /* I */
	enum hive_kind kind;  /* I */
	struct hive *hive;    /* I */
	struct memory memory; /* I */
	alignas(CACHE_LINE) struct turns turns;
	struct wait_list joiners; /* L turns.word */
	struct drain drains[];
};

struct joiner {
	struct wait_node node; /* first */
	uint64_t until;        /* I  tasks with smaller numbers have to end */
};

enum step { TAKEN, LATER, RESTS };

static bool is_strand(const struct hive_strand *strand)
{
	return strand && strand->magic == STRAND_MAGIC;
}

/* Under the latch. */
static void claim_joiners(struct hive_strand *s, struct wakes *wakes)
{
	uint64_t ended = s->joiners.first ? turns_ended(&s->turns) : 0;

	for (struct wait_node *node = s->joiners.first, *next; node; node = next) {
		next = node->next;
		if (((struct joiner *)(void *)node)->until > ended)
			continue;
		node_remove(&s->joiners, node);
		wakes_claim(wakes, node);
	}
}

/* Nobody touches it any more. Of an empty line there is one chunk at most, and a spare. */
static void free_strand(struct hive_strand *s)
{
	struct memory memory = s->memory;

	hive__memory_free(&memory, s->turns.line.first);
	hive__memory_free(&memory, s->turns.line.spare);
	hive__memory_free(&memory, s);
}

/* What this drain has taken has ended, if it had; and what it does next. Who rests must not touch the strand any more. */
static enum step go_on(struct drain *d, bool had, bool tired, struct hive_task *ret_task)
{
	struct hive_strand *s = d->strand;
	struct hive *hive = s->hive;
	struct line_chunk *empty = NULL;
	const void *self = hive__wait_self();
	enum step step = RESTS;
	bool is_last = false;
	int called = TURNS_NOBODY;
	struct wakes wakes;
	uint64_t word;

	wakes_init(&wakes);
	word = latch_take(&s->turns.word);
	if (had)
		turns_end(&s->turns, &word, d->index);
	if (tired && turns_may_take(&s->turns, word))
		step = LATER;
	else if (turns_take(&s->turns, &word, d->index, ret_task, &empty))
		step = TAKEN;
	d->who = self;
	if (step == RESTS)
		is_last = turns_rest(&s->turns, &word, d->index);
	else
		called = turns_call(&s->turns, word);
	claim_joiners(s, &wakes);
	latch_give(&s->turns.word, word);
	wakes_deliver(&wakes);
	if (empty)
		hive__memory_free(&s->memory, empty);
	if (called != TURNS_NOBODY)
		hive__group_ready(hive, &s->drains[called].guest, s->kind);
	if (is_last && (word & TURNS_GONE))
		free_strand(s);
	if (is_last)
		hive__unhold(hive);
	return step;
}

/* Nothing begins once the hive leaves. */
static bool run_or_drop(struct hive *hive, struct hive_task task, bool drops)
{
	if (drops || hive__group_is_leaving(hive)) {
		hive__guest_drop_task(hive, task);
		return false;
	}
	task.fn(task.arg);
	return true;
}

static void work(struct drain *d, bool called, bool drops)
{
	struct hive *hive = d->strand->hive;
	enum hive_kind kind = d->strand->kind;
	bool had = false, tired = false;
	struct hive_task task;
	uint32_t ran = 0;
	enum step step;

	while ((step = go_on(d, had, tired, &task)) == TAKEN) {
		had = true;
		if (run_or_drop(hive, task, drops))
			tired = ++ran == BUDGET || hive_should_yield();
	}
	if (!drops)
		hive__guest_ran(ran, called);
	if (step == LATER)
		hive__group_again(hive, &d->guest, kind);
}

static void run(struct guest *guest)
{
	struct drain *d = (struct drain *)(void *)guest;

	if (!hive__group_goes_on(d->strand->hive, guest, d->strand->kind))
		work(d, true, false);
}

/* Where an IO worker drains the hive in place of compute workers that have left it goes on. */
static void drop(struct guest *guest)
{
	struct drain *d = (struct drain *)(void *)guest;

	hive__guest_not_dropped(d->strand->hive);
	work(d, false, !hive__place());
}

static int check_options(const struct hive_strand_options *o)
{
	if (o->width > HIVE_STRAND_WIDTH_MAX)
		return -EINVAL;
	for (size_t i = 0; i < sizeof o->reserved / sizeof *o->reserved; i++)
		if (o->reserved[i] != 0)
			return -EINVAL;
	return 0;
}

static void init(struct hive_strand *s, uint32_t width)
{
	turns_init(&s->turns, width, (uint64_t *)(void *)&s->drains[width]);
	for (uint32_t i = 0; i < width; i++) {
		s->drains[i].guest.run = run;
		s->drains[i].guest.drop = drop;
		s->drains[i].strand = s;
		s->drains[i].index = (int)i;
	}
	s->magic = STRAND_MAGIC;
}

int hive_strand_create(struct hive *hive, const struct hive_strand_options *options, struct hive_strand **ret_strand)
{
	struct hive_strand_options o = options ? *options : (struct hive_strand_options){ 0 };
	uint32_t width = o.width > 0 ? o.width : 1;
	enum hive_kind kind = o.kind ? o.kind : HIVE_MICRO;
	struct hive_strand *s;
	int r = ret_strand ? check_options(&o) : -EINVAL;

	if (r == 0)
		r = hive__group_admit(hive, kind);
	if (r < 0)
		return r;
	s = (struct hive_strand *)hive__memory_new(hive__guest_memory(hive),
	                                           sizeof *s + width * (sizeof *s->drains + sizeof *s->turns.numbers));
	if (!s)
		return -ENOMEM;
	s->kind = kind;
	s->hive = hive;
	s->memory = *hive__guest_memory(hive);
	init(s, width);
	*ret_strand = s;
	return 0;
}

int hive_strand_destroy(struct hive_strand *strand)
{
	uint64_t word;
	bool is_over;

	if (!strand)
		return 0;
	if (!is_strand(strand))
		return -EINVAL;
	word = latch_take(&strand->turns.word);
	is_over = turns_are_over(&strand->turns, word) && !strand->joiners.first;
	if (is_over) {
		strand->magic = 0;
		word |= TURNS_GONE;
	}
	latch_give(&strand->turns.word, word);
	if (is_over && !(word & TURNS_HELD)) /* else a drain is out, and frees it */
		free_strand(strand);
	return is_over ? 0 : -EBUSY;
}

/* What a post has to have before it may put. Both are asked for without the latch. */
struct means {
	struct line_chunk *fresh;
	bool holds;
};

static int get_chunk(struct hive_strand *s, struct means *means)
{
	means->fresh = (struct line_chunk *)hive__memory_new(&s->memory, sizeof *means->fresh);
	return means->fresh ? 0 : -ENOMEM;
}

/* With the latch when it returns 0: *ret_word. */
static int enter(struct hive_strand *s, struct means *means, uint64_t *ret_word)
{
	int r = 0;

	while (r == 0) {
		uint64_t word = latch_take(&s->turns.word);
		bool has_hold = means->holds || (word & TURNS_HELD);

		if (has_hold && (means->fresh || line_has_room(&s->turns.line))) {
			*ret_word = word;
			return 0;
		}
		latch_give(&s->turns.word, word);
		r = has_hold ? get_chunk(s, means) : hive__guest_begin(s->hive);
		means->holds |= r == 0 && !has_hold;
	}
	return r;
}

/* What was not needed goes back. */
static void return_means(struct hive *hive, const struct memory *memory, const struct means *means)
{
	if (means->fresh)
		hive__memory_free(memory, means->fresh);
	if (means->holds)
		hive__unhold(hive);
}

static int post(struct hive_strand *s, hive_fn *fn, void *arg, bool alone)
{
	struct hive_task task = { fn, arg };
	struct means means = { NULL, false };
	struct memory memory;
	struct hive *hive;
	uint64_t word = 0;
	bool was_held;
	int r, called;

	if (!is_strand(s) || !fn)
		return -EINVAL;
	hive = s->hive;
	memory = s->memory;
	r = hive__guest_door(hive);
	if (r == 0)
		r = enter(s, &means, &word);
	if (r < 0) {
		return_means(hive, &memory, &means);
		return r;
	}
	called = turns_put(&s->turns, &word, task, alone, &means.fresh, &was_held);
	means.holds = means.holds && was_held;
	latch_give(&s->turns.word, word);
	if (called !=
	    TURNS_NOBODY) /* it is out, so the strand is there until it has run; from then on it may be gone */
		hive__group_ready(hive, &s->drains[called].guest, s->kind);
	return_means(hive, &memory, &means);
	return 0;
}

int hive_strand_post(struct hive_strand *strand, hive_fn *fn, void *arg)
{
	return post(strand, fn, arg, false);
}

int hive_strand_barrier(struct hive_strand *strand, hive_fn *fn, void *arg)
{
	return post(strand, fn, arg, true);
}

/* Under the latch. */
static bool is_inside(const struct hive_strand *s, const void *self)
{
	for (uint32_t i = 0; i < s->turns.width; i++)
		if (s->turns.numbers[i] != UINT64_MAX && s->drains[i].who == self)
			return true;
	return false;
}

/* Its wait ended otherwise. 0: what it waited for has come all the same. */
static int give_up(struct hive_strand *s, struct joiner *mine, int r)
{
	uint64_t word = latch_take(&s->turns.word);
	bool was_called = !mine->node.link;

	node_remove(&s->joiners, &mine->node);
	latch_give(&s->turns.word, word);
	return was_called ? 0 : r;
}

static bool is_past(int64_t deadline_ns)
{
	return deadline_ns <= HIVE_NOWAIT || (deadline_ns != HIVE_FOREVER && deadline_ns <= hive_now(NULL));
}

int hive_strand_join(struct hive_strand *strand, int64_t deadline_ns)
{
	struct joiner mine;
	struct wait wait;
	uint64_t word;
	bool begun, ended;
	int r;

	if (!is_strand(strand))
		return -EINVAL;
	if (deadline_ns > HIVE_NOWAIT)
		hive__wait_checkpoint();
	r = is_past(deadline_ns) ? -ETIMEDOUT : hive__wait_begin(&wait, "strand");
	begun = r == 0;
	word = latch_take(&strand->turns.word);
	mine.until = strand->turns.taken + strand->turns.line.count;
	ended = turns_ended(&strand->turns) >= mine.until;
	if (r == 0 && !ended && is_inside(strand, hive__wait_self()))
		r = -EDEADLK;
	if (r == 0 && !ended)
		node_add(&strand->joiners, &mine.node, wait);
	latch_give(&strand->turns.word, word);
	if (ended || r < 0) {
		if (begun)
			hive__wait_give_up(wait);
		return ended ? 0 : r;
	}
	r = hive__wait_end(wait, deadline_ns);
	if (r < 0)
		return give_up(strand, &mine, r);
	latch_pass(&strand->turns.word);
	return 0;
}
