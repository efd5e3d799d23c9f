/* SPDX-License-Identifier: MIT */
#pragma once
/* How many groups a task or a fiber has opened and not closed. In debug builds only: what ends with one of them open has left children behind
 * whose parent's stack is gone.                                                                                          */
#include <stdint.h>

#include "base/check.h"

struct scope {
	uint64_t number; /* of this task or fiber; 0: nobody has asked yet */
	uint32_t open;
};

/* One begins inside what `s` was about until now, which is given back to scope_end(). */
static inline struct scope scope_begin(struct scope *s)
{
	struct scope outer = { 0, 0 };

#if defined(HIVE_DEBUG)
	outer = *s;
	*s = (struct scope){ 0, 0 };
#else
	(void)s;
#endif
	return outer;
}

static inline void scope_end(struct scope *s, struct scope outer)
{
#if defined(HIVE_DEBUG)
	MISUSE(s->open > 0, "a task or fiber ended, and a group in which it has run tasks was neither waited for "
	                    "nor given to hive_group_then()");
	*s = outer;
#else
	(void)s, (void)outer;
#endif
}
