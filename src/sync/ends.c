/* SPDX-License-Identifier: MIT */
/* Cases of a select that bring nothing but their end: a cancel token that has fired, a group of which nothing is left. */
#include "arm.h"
#include "ends.h"

#include <rophive/worker.h>

#include "fiber/cancel.h"
#include "group/enlist.h"

static int attempt_cancel(struct arm *arm)
{
	return hive__cancel_reason((struct hive_cancel *)arm->object) != 0 ? 0 : -EAGAIN;
}

static bool enlist_cancel(struct arm *arm, struct wait wait)
{
	return hive__cancel_enlist((struct hive_cancel *)arm->object, &arm->node.node, wait);
}

static bool delist_cancel(struct arm *arm, int *ret_result)
{
	(void)ret_result;
	hive__cancel_delist((struct hive_cancel *)arm->object, &arm->node.node);
	return false;
}

int hive__cancel_arm_of(struct hive_cancel *cancel, struct arm *ret_arm)
{
	static const struct arm_ops ops = { attempt_cancel, enlist_cancel, delist_cancel };
	struct hive *hive = hive_current();
	int r;

	if (!cancel_is_valid(cancel))
		return -EINVAL;
	r = hive ? hive_cancel_arm(cancel, hive) : 0; /* somebody has to watch its deadline */
	if (r < 0 && hive__cancel_reason(cancel) == 0)
		return r;
	*ret_arm = (struct arm){ .ops = &ops, .object = cancel };
	return 0;
}

static int attempt_group(struct arm *arm)
{
	return hive__group_is_over((struct hive_group *)arm->object) ? 0 : -EAGAIN;
}

static bool enlist_group(struct arm *arm, struct wait wait)
{
	return hive__group_enlist((struct hive_group *)arm->object, &arm->node.node, wait);
}

static bool delist_group(struct arm *arm, int *ret_result)
{
	(void)ret_result;
	hive__group_delist((struct hive_group *)arm->object, &arm->node.node);
	return false;
}

int hive__group_arm_of(struct hive_group *group, struct arm *ret_arm)
{
	static const struct arm_ops ops = { attempt_group, enlist_group, delist_group };
	int r = hive__group_check(group);

	if (r == 0)
		*ret_arm = (struct arm){ .ops = &ops, .object = group };
	return r;
}
