/* SPDX-License-Identifier: MIT */
#include "group/scope.h"

#if defined(HIVE_DEBUG)
#include "base/scope.h"

/* Of the task or the fiber that runs here; NULL: a thread of the program. */
static struct scope *scope_here(void)
{
	struct worker *w = hive__current_worker;

	if (!w)
		return NULL;
	return w->place.now ? hive__wait_scope() : &w->scope;
}

void hive__group_belongs_here(struct hive_group *group)
{
	static ATOMIC(uint64_t) numbers;
	struct scope *scope = scope_here();

	if (scope && scope->number == 0)
		scope->number = add_relaxed(&numbers, UINT64_C(1)) + 1;
	store_relaxed(&group->spare, scope ? scope->number << 1 : 0);
}

void hive__group_belongs_to_nobody(struct hive_group *group)
{
	store_relaxed(&group->spare, UINT64_C(0));
}

static struct scope *scope_of(struct hive_group *group)
{
	struct scope *scope = scope_here();

	return scope && scope->number != 0 && load_relaxed(&group->spare) >> 1 == scope->number ? scope : NULL;
}

void hive__group_open(struct hive_group *group)
{
	struct scope *scope = scope_of(group);

	if (!scope || (load_relaxed(&group->spare) & 1))
		return;
	store_relaxed(&group->spare, scope->number << 1 | 1);
	scope->open++;
}

bool hive__group_close(struct hive_group *group)
{
	struct scope *scope = scope_of(group);

	if (!scope || !(load_relaxed(&group->spare) & 1))
		return false;
	store_relaxed(&group->spare, scope->number << 1);
	scope->open--;
	return true;
}
#else
typedef int hive__no_scopes; /* a file must not be empty */
#endif
