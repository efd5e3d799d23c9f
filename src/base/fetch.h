/* SPDX-License-Identifier: MIT */
#pragma once
/* What is needed soon comes into the cache meanwhile. Any address will do. */
#include <stdint.h>

#include "base/atomic.h"

/* gcc takes a function that only fetches ahead for one without effect, and leaves its calls out: hence the volatile nothing. */
static inline void prefetch(const void *p)
{
	__builtin_prefetch(p, 0);
	__asm__ volatile("" : : "r"(p));
}

/* The beginning of something. */
static inline void fetch_ahead(const void *p)
{
	prefetch(p);
	prefetch((const void *)((uintptr_t)p + CACHE_LINE));
}
