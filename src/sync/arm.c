/* SPDX-License-Identifier: MIT */
/* Waiting for one of several: arm.h says how. */
#include "arm.h"

#include "base/rng.h"

/* What can be done at once is done with equal chances: the order is a fair draw. */
static void shuffle(struct arms *arms)
{
	uint64_t state;

	if (arms->count < 2)
		return;
	state = hive__wait_random();
	for (uint32_t left = arms->count; left > 1; left--) {
		uint32_t other = rng_below(rng_next(&state), left), swap = arms->order[other];

		arms->order[other] = arms->order[left - 1];
		arms->order[left - 1] = swap;
	}
}

/* By the addresses of their objects, in place and without recursion: Shell's way, by gaps that shrink. */
static void sort(struct arms *arms)
{
	uint32_t *order = arms->order, gap = 1;

	while (gap < arms->count / 3)
		gap = gap * 3 + 1;
	for (; gap > 0; gap /= 3)
		for (uint32_t i = gap; i < arms->count; i++) {
			uint32_t mine = order[i], at = i;

			while (at >= gap &&
			       (uintptr_t)arms->all[order[at - gap]].object > (uintptr_t)arms->all[mine].object) {
				order[at] = order[at - gap];
				at -= gap;
			}
			order[at] = mine;
		}
}

static int attempt_all(struct arms *arms, size_t *ret_index)
{
	shuffle(arms);
	for (uint32_t i = 0; i < arms->count; i++) {
		struct arm *arm = &arms->all[arms->order[i]];
		int r = arm->ops ? arm->ops->attempt(arm) : -EAGAIN;

		if (r != -EAGAIN) {
			*ret_index = arms->order[i];
			return r;
		}
	}
	return -EAGAIN;
}

/* False: one of them could be done at once by now. */
static bool enlist_all(struct arms *arms, struct wait wait)
{
	sort(arms);
	for (uint32_t i = 0; i < arms->count; i++) {
		struct arm *arm = &arms->all[arms->order[i]];

		if (!arm->ops || !arm->ops->enlist)
			continue;
		arm->enlisted = arm->ops->enlist(arm, wait);
		if (!arm->enlisted)
			return false;
	}
	return true;
}

/* What the one says that was done for us; -EAGAIN: none was. */
static int delist_all(struct arms *arms, size_t *ret_index)
{
	int r = -EAGAIN;

	for (uint32_t i = 0; i < arms->count; i++) {
		struct arm *arm = &arms->all[i];

		if (arm->enlisted && arm->ops->delist(arm, &r))
			*ret_index = i;
		arm->enlisted = false;
	}
	return r;
}

/* The first of those that are times and come before the deadline, or with it; NULL: there is none. */
static const struct arm *first_time(const struct arms *arms, int64_t deadline_ns)
{
	const struct arm *first = NULL;

	for (const struct arm *arm = arms->all; arm < arms->all + arms->count; arm++)
		if (arm->ops == &hive__arm_time && arm->deadline_ns <= (first ? first->deadline_ns - 1 : deadline_ns))
			first = arm;
	return first;
}

enum { LOOK_AGAIN = 1 }; /* no error: those may be anything that a token was fired with */

/* 0, an error, or LOOK_AGAIN. */
static int wait_for_one(struct arms *arms, int64_t deadline_ns, size_t *ret_index)
{
	const struct arm *time = first_time(arms, deadline_ns);
	struct wait wait;
	int r = hive__wait_begin(&wait, arms->why), done;

	if (r < 0)
		return r;
	if (enlist_all(arms, wait))
		r = hive__wait_end(wait, time ? time->deadline_ns : deadline_ns);
	else
		hive__wait_give_up(wait); /* or we were woken meanwhile: a node says so, or it is to look again */
	done = delist_all(arms, ret_index);
	if (done != -EAGAIN)
		return done;
	if (r == -ETIMEDOUT && time && is_past(time->deadline_ns)) { /* else that is why we are cancelled */
		*ret_index = (size_t)(time - arms->all);
		return 0;
	}
	return r == 0 ? LOOK_AGAIN : r;
}

int hive__arms_wait(struct arms *arms, int64_t deadline_ns, size_t *ret_index)
{
	int r;

	do {
		r = attempt_all(arms, ret_index);
		if (r != -EAGAIN)
			return r;
		if (is_past(deadline_ns))
			return -ETIMEDOUT;
		r = wait_for_one(arms, deadline_ns, ret_index);
	} while (r == LOOK_AGAIN);
	return r;
}

static int attempt_time(struct arm *arm)
{
	return is_past(arm->deadline_ns) ? 0 : -EAGAIN;
}

const struct arm_ops hive__arm_time = { attempt_time, NULL, NULL };
