/* SPDX-License-Identifier: MIT */
/* The rate. Time is not counted in tokens, but tokens in time: the bucket was full at full_ns, and so many were taken since, also by those
 * who still wait for theirs. From these two it follows when the last of them has fallen, to the nanosecond, whatever came in between: nothing
 * is added up that could drift. When it is full again, they begin anew.
 *
 * Who has to wait has taken its tokens, and knows when they will have fallen: it sleeps until then, and nobody has to wake it. Only who
 * gives up gives them back: those behind it move up, and are woken to sleep less.                                          */
#include "fiber/wakes.h"
#include "inside.h"
#include "words.h"

struct rate_node {
	struct wait_node node; /* first; L  it stays in the list until its owner is through */
	struct wait_node bell; /* L  by which it is woken, as the other is in use */
	uint64_t end;          /* L  what was taken with its own: the last one must have fallen */
	bool granted;          /* L  it has, and the count began anew */
};

int hive_rate_init(struct hive_rate *rate, const struct hive_rate_options *options)
{
	int64_t per_ns;

	if (!rate || !options || options->rate == 0 || options->burst == 0 || options->per_ns < 0 ||
	    options->reserved[0] || options->reserved[1])
		return -EINVAL;
	per_ns = options->per_ns ? options->per_ns : HIVE_S(1);
	if (per_ns > INT64_MAX / options->rate)
		return -EINVAL;
	store_relaxed(&rate->state, 0);
	rate->magic = RATE_MAGIC;
	rate->rate = options->rate;
	rate->burst = options->burst;
	rate->spare = 0;
	rate->per_ns = per_ns;
	rate->full_ns = 0;
	rate->taken = 0;
	rate->waiters[0] = rate->waiters[1] = NULL;
	return 0;
}

/* All of these under the latch. When so many have fallen, since it was full. */
static int64_t fallen_ns(const struct hive_rate *rate, uint64_t tokens)
{
	uint64_t periods = tokens / rate->rate, rest = tokens % rate->rate * (uint64_t)rate->per_ns;
	uint64_t ns = rest / rate->rate + (rest % rate->rate != 0);
	uint64_t most = (uint64_t)(HIVE_FOREVER - rate->full_ns);

	if (ns > most || periods > (most - ns) / (uint64_t)rate->per_ns)
		return HIVE_FOREVER;
	return rate->full_ns + (int64_t)(periods * (uint64_t)rate->per_ns + ns);
}

/* When one that takes up to the end-th may go. */
static int64_t due_ns(const struct hive_rate *rate, uint64_t end)
{
	return end <= rate->burst ? rate->full_ns : fallen_ns(rate, end - rate->burst);
}

/* The bucket may be full again: then all who wait have theirs. */
static void refill(struct hive_rate *rate, int64_t now)
{
	if (now <= rate->full_ns || fallen_ns(rate, rate->taken) > now)
		return;
	rate->full_ns = now;
	rate->taken = 0;
	for (struct wait_node *node = list_in(rate->waiters)->first; node; node = node->next)
		((struct rate_node *)node)->granted = true;
}

/* 0: there they are. -EAGAIN: it has to wait. -ETIMEDOUT: that would take too long. */
static int take_now(struct hive_rate *rate, uint32_t n, int64_t deadline_ns)
{
	int64_t now = hive_now(NULL), due;

	refill(rate, now);
	due = due_ns(rate, rate->taken + n);
	if (due > now)
		return due > deadline_ns ? -ETIMEDOUT : -EAGAIN;
	rate->taken += n;
	return 0;
}

/* It will not wait any longer. Those behind it move up. */
static void give_back(struct hive_rate *rate, struct rate_node *mine, uint32_t n, struct wakes *wakes)
{
	rate->taken -= n;
	for (struct wait_node *node = mine->node.next; node; node = node->next) {
		struct rate_node *behind = (struct rate_node *)node;

		behind->end -= n;
		wakes_claim(wakes, &behind->bell);
	}
}

static void enter(struct rate_node *mine, struct wait wait)
{
	mine->node.wait = mine->bell.wait = wait;
}

/* It is in the list. Its tokens will have fallen by its deadline. */
static int wait_in(struct hive_rate *rate, struct rate_node *mine, uint32_t n, struct wait wait, int64_t due)
{
	struct wakes wakes;
	bool mine_now;
	int r;

	do {
		r = hive__wait_end(wait, due);
		if (r == 0 || r == -ETIMEDOUT)
			r = hive__wait_begin(&wait, "rate");
		wakes_init(&wakes);
		latch_take(&rate->state);
		due = due_ns(rate, mine->end);
		mine_now = mine->granted || due <= hive_now(NULL);
		if (r == 0)
			enter(mine, wait);
		if (!mine_now && r < 0)
			give_back(rate, mine, n, &wakes);
		if (mine_now || r < 0)
			node_remove(list_in(rate->waiters), &mine->node);
		latch_give(&rate->state, 0);
		wakes_deliver(&wakes);
	} while (!mine_now && r == 0);
	if (r == 0)
		hive__wait_give_up(wait);
	return mine_now ? 0 : r;
}

int hive_rate_acquire(struct hive_rate *rate, uint32_t n, int64_t deadline_ns)
{
	struct rate_node mine = { .granted = false };
	struct wait wait;
	int64_t due = 0;
	int r;

	if (!rate || rate->magic != RATE_MAGIC || n > rate->burst)
		return -EINVAL;
	checkpoint(deadline_ns);
	latch_take(&rate->state);
	r = n == 0 ? 0 : take_now(rate, n, deadline_ns);
	latch_give(&rate->state, 0);
	if (r == -EAGAIN)
		r = hive__wait_begin(&wait, "rate");
	else
		return r;
	if (r < 0)
		return r;
	latch_take(&rate->state);
	r = take_now(rate, n, deadline_ns);
	if (r == -EAGAIN) {
		mine.end = rate->taken += n;
		due = due_ns(rate, mine.end);
		node_add(list_in(rate->waiters), &mine.node, wait);
		enter(&mine, wait);
	}
	latch_give(&rate->state, 0);
	if (r == -EAGAIN)
		return wait_in(rate, &mine, n, wait, due);
	hive__wait_give_up(wait);
	return r;
}
