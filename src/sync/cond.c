/* SPDX-License-Identifier: MIT */
/* The condition: a list of those who wait. One enters it while it holds the mutex; so whoever signals after that mutex was unlocked
 * finds it there. A signal is for one whose wait it ends: one that was late or cancelled is passed over, and the next one is
 * woken in its place.                                                                                                         */
#include "inside.h"
#include "fiber/wakes.h"
#include "words.h"

void hive_cond_init(struct hive_cond *cond)
{
	if (!cond)
		return;
	store_relaxed(&cond->state, 0);
	cond->magic = COND_MAGIC;
	cond->spare = 0;
	cond->waiters[0] = cond->waiters[1] = NULL;
}

static void give(struct hive_cond *cond)
{
	latch_give(&cond->state, list_in(cond->waiters)->first ? WORD_WAITERS : 0);
}

int hive_cond_wait(struct hive_cond *cond, struct hive_mutex *mutex, int64_t deadline_ns)
{
	uint64_t self = (uint64_t)(uintptr_t)hive__wait_self();
	struct wait_node node = { 0 };
	struct wait wait;
	int r;

	if (!cond || cond->magic != COND_MAGIC || !mutex || mutex->magic != MUTEX_MAGIC)
		return -EINVAL;
	if (!hive__mutex_is_held(mutex, self))
		return -EPERM;
	if (is_past(deadline_ns))
		return -ETIMEDOUT;
	r = hive__wait_begin(&wait, "condition");
	if (r < 0)
		return r;
	latch_take(&cond->state);
	node_add(list_in(cond->waiters), &node, wait);
	give(cond);
	hive_mutex_unlock(mutex);
	r = hive__wait_end(wait, deadline_ns);
	if (r == 0) {
		latch_pass(&cond->state);
	} else {
		latch_take(&cond->state);
		node_remove(list_in(cond->waiters), &node);
		give(cond);
	}
	hive__mutex_lock_again(mutex, self);
	return r;
}

static void wake(struct hive_cond *cond, bool all)
{
	struct wakes wakes;
	struct wait_node *node;

	/* Nobody: one that waits had entered the list before the mutex was unlocked, and the caller knows of that unlock. */
	if (!cond || cond->magic != COND_MAGIC || !(load_relaxed(&cond->state) & WORD_WAITERS))
		return;
	wakes_init(&wakes);
	latch_take(&cond->state);
	while ((node = node_take(list_in(cond->waiters))))
		if (wakes_claim(&wakes, node) && !all)
			break;
	give(cond);
	wakes_deliver(&wakes);
}

void hive_cond_signal(struct hive_cond *cond)
{
	wake(cond, false);
}

void hive_cond_broadcast(struct hive_cond *cond)
{
	wake(cond, true);
}
