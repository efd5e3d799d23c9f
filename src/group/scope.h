/* SPDX-License-Identifier: MIT */
#pragma once
/* Leaving a scope with children alive is caught, in debug builds: a group that was initialised in a task or a fiber, and has had tasks run in it
 * from there, is open until it is waited for, or given to hive_group_then(). Its spare word has the number of the scope, and, in bit 0,
 * that it is open. Not for HIVE_GROUP_SHARED: that is anybody's. All three by any thread; they do nothing but in the scope itself.     */
#include "group/group.h"

#if defined(HIVE_DEBUG)
void hive__group_belongs_here(struct hive_group *group);
void hive__group_belongs_to_nobody(struct hive_group *group);
void hive__group_open(struct hive_group *group);
/* True: it was open. */
bool hive__group_close(struct hive_group *group);
#else
static inline void hive__group_belongs_here(struct hive_group *group)
{
	(void)group; /* the word stays as it is: nobody reads it */
}
static inline void hive__group_belongs_to_nobody(struct hive_group *group)
{
	(void)group;
}
static inline void hive__group_open(struct hive_group *group)
{
	(void)group;
}
static inline bool hive__group_close(struct hive_group *group)
{
	return (void)group, false;
}
#endif
