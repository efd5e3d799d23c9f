/* SPDX-License-Identifier: MIT */
#pragma once
/* For who waits for several things at once, of which the end of a group is one. */
#include <rophive/group.h>

#include "fiber/wait.h"

/* Any thread. 0; -EINVAL: not a group; -EPERM: it belongs to a worker, and only that one can tell. */
int hive__group_check(struct hive_group *group);
/* Any thread. Nothing of it is left, and what it did is seen. */
bool hive__group_is_over(struct hive_group *group);
/* Any thread. In its list until hive__group_delist(). False: it is over. */
bool hive__group_enlist(struct hive_group *group, struct wait_node *node, struct wait wait);
void hive__group_delist(struct hive_group *group, struct wait_node *node);
