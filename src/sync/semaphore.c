/* SPDX-License-Identifier: MIT */
/* The semaphore. While nobody waits, a compare-and-swap each (sync/words.h). Who waits wants so many, in a list; who releases
 * gives to the first as long as there is enough for it. So a large request is served when its turn has come, and those behind it
 * wait for it, even if there would be enough for them.                                                                       */
#include "semaphore.h"

#include "inside.h"
#include "fiber/wakes.h"
#include "words.h"

void hive_semaphore_init(struct hive_semaphore *semaphore, uint32_t count)
{
	if (!semaphore)
		return;
	store_relaxed(&semaphore->state, (uint64_t)count << SEMAPHORE_SHIFT);
	semaphore->magic = SEMAPHORE_MAGIC;
	semaphore->spare = 0;
	semaphore->waiters[0] = semaphore->waiters[1] = NULL;
}

/* Under the latch: serves who can be served, and gives the latch back. */
static void serve(struct hive_semaphore *semaphore, uint64_t count)
{
	struct wait_list *list = list_in(semaphore->waiters);
	struct wakes wakes;

	wakes_init(&wakes);
	while (list->first && ((struct semaphore_node *)list->first)->wants <= count) {
		struct semaphore_node *next = (struct semaphore_node *)node_take(list);
		uint32_t wants = next->wants;

		if (wakes_claim(&wakes, &next->node))
			count -= wants;
	}
	latch_give(&semaphore->state, count << SEMAPHORE_SHIFT | (list->first ? WORD_WAITERS : 0));
	wakes_deliver(&wakes);
}

static int acquire_slowly(struct hive_semaphore *semaphore, uint32_t n, int64_t deadline_ns)
{
	struct semaphore_node mine = { .wants = n };
	struct wait wait;
	int r = hive__wait_begin(&wait, "semaphore");
	uint64_t word;

	if (r < 0)
		return r;
	word = latch_take(&semaphore->state);
	if (!(word & WORD_WAITERS) && semaphore_count(word) >= n) {
		latch_give(&semaphore->state, word - ((uint64_t)n << SEMAPHORE_SHIFT));
		hive__wait_give_up(wait);
		return 0;
	}
	node_add(list_in(semaphore->waiters), &mine.node, wait);
	latch_give(&semaphore->state, word | WORD_WAITERS);
	r = hive__wait_end(wait, deadline_ns);
	if (r == 0) {
		latch_pass(&semaphore->state);
		return 0;
	}
	/* Those behind it may have waited for nothing but its turn. */
	word = latch_take(&semaphore->state);
	node_remove(list_in(semaphore->waiters), &mine.node);
	serve(semaphore, semaphore_count(word));
	return r;
}

int hive_semaphore_acquire(struct hive_semaphore *semaphore, uint32_t n, int64_t deadline_ns)
{
	if (!semaphore || semaphore->magic != SEMAPHORE_MAGIC)
		return -EINVAL;
	checkpoint(deadline_ns);
	if (n == 0 || semaphore_take(&semaphore->state, n))
		return 0;
	return is_past(deadline_ns) ? -ETIMEDOUT : acquire_slowly(semaphore, n, deadline_ns);
}

int hive_semaphore_release(struct hive_semaphore *semaphore, uint32_t n)
{
	uint64_t word;

	if (!semaphore || semaphore->magic != SEMAPHORE_MAGIC)
		return -EINVAL;
	switch (semaphore_give(&semaphore->state, n)) {
	case SEMAPHORE_GIVEN:
		return 0;
	case SEMAPHORE_FULL:
		return -EOVERFLOW;
	case SEMAPHORE_MUST_WAKE:
		break;
	}
	word = latch_take(&semaphore->state);
	if (semaphore_count(word) + n > UINT32_MAX) {
		latch_give(&semaphore->state, word);
		return -EOVERFLOW;
	}
	serve(semaphore, semaphore_count(word) + n);
	return 0;
}
