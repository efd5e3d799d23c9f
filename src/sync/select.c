/* SPDX-License-Identifier: MIT */
/* Select: cases become arms, and one of them happens. */
#include "arm.h"
#include "ends.h"

enum { CASES_ON_STACK = 8 };

/* Exactly one thing per case; or none, and it never happens. A new kind of arm gets its line here. */
static int arm_of(const struct hive_select *c, struct arm *ret_arm)
{
	int kinds = !!c->channel + !!c->oneshot + !!c->watch + !!c->subscription + !!c->cancel + !!c->group +
	            (c->deadline_ns != 0);

	*ret_arm = (struct arm){ .ops = NULL };
	if (kinds > 1 || c->reserved[0] || c->reserved[1])
		return -EINVAL;
	if (c->channel)
		return hive__channel_arm(c->channel, c->send, c->recv, c->bytes, ret_arm);
	if (c->oneshot)
		return hive__oneshot_arm(c->oneshot, c->recv, c->bytes, ret_arm);
	if (c->watch)
		return hive__watch_arm(c->watch, c->version, c->recv, c->bytes, ret_arm);
	if (c->subscription)
		return hive__subscription_arm(c->subscription, c->recv, c->bytes, c->missed, ret_arm);
	if (c->cancel)
		return hive__cancel_arm_of(c->cancel, ret_arm);
	if (c->group)
		return hive__group_arm_of(c->group, ret_arm);
	if (c->deadline_ns != 0 && c->deadline_ns != HIVE_FOREVER)
		*ret_arm = (struct arm){ .ops = &hive__arm_time, .deadline_ns = c->deadline_ns };
	return 0;
}

static int select_among(struct arms *arms, const struct hive_select *cases, int64_t deadline_ns, size_t *ret_index)
{
	bool possible = deadline_ns != HIVE_FOREVER;

	for (uint32_t i = 0; i < arms->count; i++) {
		int r = arm_of(&cases[i], &arms->all[i]);

		if (r < 0)
			return r;
		arms->order[i] = i;
		possible = possible || arms->all[i].ops;
	}
	if (!possible)
		return -EDEADLK;
	checkpoint(deadline_ns);
	return hive__arms_wait(arms, deadline_ns, ret_index);
}

static __attribute__((noinline)) int select_among_many(const struct hive_select *cases, uint32_t count,
                                                       int64_t deadline_ns, size_t *ret_index)
{
	struct arm *all = (struct arm *)object_new(count * (sizeof(struct arm) + sizeof(uint32_t)));
	struct arms arms = { all, (uint32_t *)(void *)(all + count), count, "select" };
	int r = all ? select_among(&arms, cases, deadline_ns, ret_index) : -ENOMEM;

	object_free(all);
	return r;
}

int hive_select(const struct hive_select *cases, size_t count, int64_t deadline_ns, size_t *ret_index)
{
	struct arm all[CASES_ON_STACK];
	uint32_t order[CASES_ON_STACK];
	struct arms arms = { all, order, (uint32_t)count, "select" };

	if (!ret_index || (!cases && count > 0))
		return -EINVAL;
	if (count <= CASES_ON_STACK)
		return select_among(&arms, cases, deadline_ns, ret_index);
	if (count > UINT32_MAX / (sizeof(struct arm) + sizeof(uint32_t)))
		return -ENOMEM;
	return select_among_many(cases, (uint32_t)count, deadline_ns, ret_index);
}
