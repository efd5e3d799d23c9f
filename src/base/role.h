/* SPDX-License-Identifier: MIT */
#pragma once
/* A part that one plays at a time: nobody waits for it, who finds it taken is told so. 0: nobody plays it. */
#include "base/atomic.h"

/* False: somebody plays it. */
static inline bool role_enter(ATOMIC(uint32_t) *role)
{
	uint32_t nobody = 0;

	return cas_acquire(role, &nobody, 1u); /* ROLE-2 (pairs with ROLE-1) */
}

static inline void role_leave(ATOMIC(uint32_t) *role)
{
	store_release(role, 0u); /* ROLE-1 (pairs with ROLE-2) */
}
