/* SPDX-License-Identifier: MIT */
/* The limiter: so many inside, and a list of those who wait. Under the latch: while somebody waits there is no room; so nobody is overtaken. */
#include "fiber/wakes.h"
#include "inside.h"
#include "words.h"

void hive_limiter_init(struct hive_limiter *limiter, uint32_t limit)
{
	if (!limiter)
		return;
	store_relaxed(&limiter->state, 0);
	limiter->magic = LIMITER_MAGIC;
	limiter->limit = limit;
	limiter->inside = limiter->waiting = 0;
	limiter->waiters[0] = limiter->waiters[1] = NULL;
}

static bool is_one(const struct hive_limiter *limiter)
{
	return limiter && limiter->magic == LIMITER_MAGIC;
}

/* Under the latch, which it gives back: whoever has room enters. */
static void serve(struct hive_limiter *limiter)
{
	struct wait_list *list = list_in(limiter->waiters);
	struct wakes wakes;

	wakes_init(&wakes);
	while (list->first && limiter->inside < limiter->limit) {
		limiter->waiting--;
		limiter->inside += wakes_claim(&wakes, node_take(list));
	}
	latch_give(&limiter->state, 0);
	wakes_deliver(&wakes);
}

/* Under the latch. */
static bool enter_now(struct hive_limiter *limiter)
{
	bool room = limiter->inside < limiter->limit;

	limiter->inside += room;
	return room;
}

/* In the list. Whoever takes a node out of it counts it out, too. */
static int wait_in(struct hive_limiter *limiter, struct wait_node *mine, struct wait wait, int64_t deadline_ns)
{
	int r = hive__wait_end(wait, deadline_ns);

	if (r == 0) {
		latch_pass(&limiter->state);
		return 0;
	}
	latch_take(&limiter->state);
	limiter->waiting -= mine->link != NULL;
	node_remove(list_in(limiter->waiters), mine);
	latch_give(&limiter->state, 0);
	return r;
}

int hive_limiter_enter(struct hive_limiter *limiter, int64_t deadline_ns)
{
	struct wait_node mine;
	struct wait wait;
	bool entered;
	int r;

	if (!is_one(limiter))
		return -EINVAL;
	checkpoint(deadline_ns);
	latch_take(&limiter->state);
	entered = enter_now(limiter);
	latch_give(&limiter->state, 0);
	if (entered)
		return 0;
	r = is_past(deadline_ns) ? -ETIMEDOUT : hive__wait_begin(&wait, "limiter");
	if (r < 0)
		return r;
	latch_take(&limiter->state);
	entered = enter_now(limiter);
	if (!entered) {
		node_add(list_in(limiter->waiters), &mine, wait);
		limiter->waiting++;
	}
	latch_give(&limiter->state, 0);
	if (!entered)
		return wait_in(limiter, &mine, wait, deadline_ns);
	hive__wait_give_up(wait);
	return 0;
}

int hive_limiter_leave(struct hive_limiter *limiter)
{
	if (!is_one(limiter))
		return -EINVAL;
	latch_take(&limiter->state);
	if (limiter->inside == 0) {
		latch_give(&limiter->state, 0);
		return -EPERM;
	}
	limiter->inside--;
	serve(limiter);
	return 0;
}

int hive_limiter_resize(struct hive_limiter *limiter, uint32_t limit)
{
	if (!is_one(limiter))
		return -EINVAL;
	latch_take(&limiter->state);
	limiter->limit = limit;
	serve(limiter);
	return 0;
}

int hive_limiter_read(struct hive_limiter *limiter, struct hive_limiter_counts *ret_counts)
{
	if (!is_one(limiter) || !ret_counts)
		return -EINVAL;
	latch_take(&limiter->state);
	*ret_counts = (struct hive_limiter_counts){ limiter->limit, limiter->inside, limiter->waiting };
	latch_give(&limiter->state, 0);
	return 0;
}
