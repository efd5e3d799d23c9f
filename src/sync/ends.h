/* SPDX-License-Identifier: MIT */
#pragma once
/* Arms of what ends: see ends.c. */
struct arm;
struct hive_cancel;
struct hive_group;

/* 0; -EINVAL: not one; -EPERM: a group that belongs to a worker. */
int hive__cancel_arm_of(struct hive_cancel *cancel, struct arm *ret_arm);
int hive__group_arm_of(struct hive_group *group, struct arm *ret_arm);
