/* SPDX-License-Identifier: MIT */
/* The mutex. Locking and unlocking without others is one compare-and-swap each (sync/words.h). Who has to wait enters the list;
 * an unlock with somebody in the list takes the first one out, lets the mutex free, and wakes him: he tries as everybody does, and
 * goes back to the front if somebody was quicker. That is quick (the mutex is never idle while a sleeper gets up), and not fair:
 * after PASSED_LIMIT times it is not set free but handed over.
 *
 * While one is WAKING no other is woken: each unlock would only add another one that comes too late.                          */
#include "base/check.h"
#include "inside.h"
#include "fiber/wakes.h"
#include "words.h"

#if !defined(PASSED_LIMIT)
#define PASSED_LIMIT 4 /* less for the model checker */
#endif

struct mutex_node {
	struct wait_node node; /* first */
	uint64_t self;
	uint32_t passed; /* how often it was woken and found it taken */
	bool handed;     /* it was woken, and has it */
};

void hive_mutex_init(struct hive_mutex *mutex)
{
	if (!mutex)
		return;
	store_relaxed(&mutex->state, 0);
	mutex->magic = MUTEX_MAGIC;
	mutex->spare = 0;
	mutex->waiters[0] = mutex->waiters[1] = NULL;
}

static uint64_t self_number(void)
{
	return (uint64_t)(uintptr_t)hive__wait_self();
}

static uint64_t if_any(struct hive_mutex *mutex)
{
	return list_in(mutex->waiters)->first ? WORD_WAITERS : 0;
}

/* It could not wait any longer, and nobody had woken it. */
static int leave_list(struct hive_mutex *mutex, struct mutex_node *mine, int r)
{
	uint64_t word = latch_take(&mutex->state);

	node_remove(list_in(mutex->waiters), &mine->node);
	latch_give(&mutex->state, (word & ~WORD_WAITERS) | if_any(mutex));
	return r;
}

/* One turn: takes it, or waits until woken. 1: woken, try again. */
static int take_or_wait(struct hive_mutex *mutex, struct mutex_node *mine, int64_t deadline_ns, bool shielded)
{
	struct wait wait;
	bool woken = mine->passed > 0;
	int r = shielded ? hive__wait_begin_shielded(&wait, WAIT_MUTEX) : hive__wait_begin(&wait, WAIT_MUTEX);
	uint64_t word;

	if (r < 0 && !woken)
		return r;
	if (mutex_take_latched(latch_take(&mutex->state), mine->self, woken, &word)) {
		latch_give(&mutex->state, word);
		if (r == 0)
			hive__wait_give_up(wait);
		return 0;
	}
	if (r < 0) { /* its holder wakes another one */
		latch_give(&mutex->state, word);
		return r;
	}
	if (woken)
		node_add_first(list_in(mutex->waiters), &mine->node, wait);
	else
		node_add(list_in(mutex->waiters), &mine->node, wait);
	latch_give(&mutex->state, word | WORD_WAITERS);
	hive__wait_whom(wait, whom_holds(&mutex->state));
	r = hive__wait_end_whom(wait, deadline_ns, shielded);
	if (r < 0)
		return leave_list(mutex, mine, r);
	if (!mine->handed)
		return 1;
	latch_pass(&mutex->state);
	return 0;
}

static int lock_slowly(struct hive_mutex *mutex, uint64_t self, int64_t deadline_ns, bool shielded)
{
	struct mutex_node mine = { .self = self };
	int r;

	while ((r = take_or_wait(mutex, &mine, deadline_ns, shielded)) == 1)
		mine.passed++;
	return r;
}

/* Debug builds count, so that somebody who ends while he holds one can be told. */
static void count_held(int32_t n)
{
#if defined(HIVE_DEBUG)
	hive__wait_held(n);
#else
	(void)n;
#endif
}

int hive_mutex_lock(struct hive_mutex *mutex, int64_t deadline_ns)
{
	uint64_t self;
	int r = 0;

	if (!mutex || mutex->magic != MUTEX_MAGIC)
		return -EINVAL;
	checkpoint(deadline_ns);
	self = self_number();
	if (!mutex_take(&mutex->state, self)) {
		if (hive__mutex_is_held(mutex, self))
			return -EDEADLK;
		r = is_past(deadline_ns) ? -ETIMEDOUT : lock_slowly(mutex, self, deadline_ns, false);
	}
	if (r == 0)
		count_held(1);
	return r;
}

/* Under the latch: the word without its holder, and one waiter claimed, if there is need of one. */
static uint64_t wake_next(struct hive_mutex *mutex, uint64_t word, struct wakes *wakes)
{
	struct wait_list *list = list_in(mutex->waiters);
	struct wait_node *node;

	if (word & MUTEX_WAKING)
		return word & (MUTEX_WAKING | WORD_WAITERS);
	while ((node = node_take(list))) {
		struct mutex_node *next = (struct mutex_node *)node;
		uint64_t heir = next->passed >= PASSED_LIMIT ? next->self : 0;

		next->handed = heir != 0;
		if (wakes_claim(wakes, node))
			return (heir ? heir : MUTEX_WAKING) | if_any(mutex);
	}
	return 0;
}

static void unlock_slowly(struct hive_mutex *mutex)
{
	struct wakes wakes;
	uint64_t word = latch_take(&mutex->state);

	wakes_init(&wakes);
	latch_give(&mutex->state, wake_next(mutex, word, &wakes));
	wakes_deliver(&wakes);
}

int hive_mutex_unlock(struct hive_mutex *mutex)
{
	enum mutex_leave left;

	if (!mutex || mutex->magic != MUTEX_MAGIC)
		return -EINVAL;
	left = mutex_leave(&mutex->state, self_number());
	if (left == MUTEX_NOT_HELD)
		return -EPERM;
	count_held(-1);
	if (left == MUTEX_MUST_WAKE)
		unlock_slowly(mutex);
	return 0;
}

bool hive__mutex_is_held(struct hive_mutex *mutex, uint64_t self)
{
	return mutex_holder(load_relaxed(&mutex->state)) == self;
}

void hive__mutex_lock_again(struct hive_mutex *mutex, uint64_t self)
{
	int r = mutex_take(&mutex->state, self) ? 0 : lock_slowly(mutex, self, HIVE_FOREVER, true);

	CHECK(r == 0);
	(void)r;
	count_held(1);
}
