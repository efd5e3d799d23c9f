/* SPDX-License-Identifier: MIT */
/* The barrier: a list of those who have come, under the latch of its word, which counts them. The last one empties it and wakes all. Who gives up
 * takes itself out; if it is no longer in the list, the last one has come, and it has passed like the others.             */
#include "fiber/wakes.h"
#include "inside.h"
#include "words.h"

#define COME_SHIFT 2

void hive_barrier_init(struct hive_barrier *barrier, uint32_t parties)
{
	if (!barrier)
		return;
	store_relaxed(&barrier->state, 0);
	barrier->magic = BARRIER_MAGIC;
	barrier->parties = parties;
	barrier->waiters[0] = barrier->waiters[1] = NULL;
}

/* Under the latch, which it gives back. */
static void let_all_pass(struct hive_barrier *barrier)
{
	struct wait_list *list = list_in(barrier->waiters);
	struct wait_node *node;
	struct wakes wakes;

	wakes_init(&wakes);
	while ((node = node_take(list)))
		wakes_claim(&wakes, node);
	latch_give(&barrier->state, 0);
	wakes_deliver(&wakes);
}

/* It could not wait any longer. 0: it need not have. */
static int give_up(struct hive_barrier *barrier, struct wait_node *mine, int r)
{
	uint64_t word = latch_take(&barrier->state);
	bool passed = !mine->link;

	if (!passed) {
		node_remove(list_in(barrier->waiters), mine);
		word -= UINT64_C(1) << COME_SHIFT;
	}
	latch_give(&barrier->state, word);
	return passed ? 0 : r;
}

int hive_barrier_wait(struct hive_barrier *barrier, int64_t deadline_ns)
{
	struct wait_node mine;
	struct wait wait;
	uint64_t word;
	int r;

	if (!barrier || barrier->magic != BARRIER_MAGIC || barrier->parties == 0)
		return -EINVAL;
	checkpoint(deadline_ns);
	r = is_past(deadline_ns) ? -ETIMEDOUT : hive__wait_begin(&wait, "barrier");
	word = latch_take(&barrier->state);
	if ((word >> COME_SHIFT) + 1 == barrier->parties) {
		let_all_pass(barrier);
		if (r == 0)
			hive__wait_give_up(wait);
		return 1;
	}
	if (r < 0) {
		latch_give(&barrier->state, word);
		return r;
	}
	node_add(list_in(barrier->waiters), &mine, wait);
	latch_give(&barrier->state, word + (UINT64_C(1) << COME_SHIFT));
	r = hive__wait_end(wait, deadline_ns);
	if (r < 0)
		return give_up(barrier, &mine, r);
	latch_pass(&barrier->state);
	return 0;
}
