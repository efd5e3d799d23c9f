/* SPDX-License-Identifier: MIT */
#pragma once
/* The only door to atomics. Shared fields are declared ATOMIC(T) and touched through these verbs, so that the
 * same headers run as C11, under a model checker (HIVE_MODEL: tests/model supplies the verbs), under mutation, and in
 * the explorer (HIVE_EXPLORE: before each access another virtual thread may get its turn, see tests/explore).
 *
 * Sleep and wake need store-load order. ThreadSanitizer does not understand fences, so there are none here: both
 * sides use seq_cst read-modify-writes or loads on the variables themselves.                                      */
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_LINE 64

#if defined(HIVE_MODEL)
#include "model_atomic.h"
#else
#include <stdatomic.h>

#define ATOMIC(T) _Atomic(T)

#if defined(HIVE_EXPLORE)
void hive__explore_point(const char *file, int line);
void hive__explore_pause(void);
#define AT(p) (hive__explore_point(__FILE__, __LINE__), (p))
#else
#define AT(p) (p)
#endif

#define load_relaxed(p) atomic_load_explicit(AT(p), memory_order_relaxed)
#define load_acquire(p) atomic_load_explicit(AT(p), memory_order_acquire)
#define load_seq(p) atomic_load_explicit(AT(p), memory_order_seq_cst)

/* For what nothing depends on: no moment of the explorer's. */
#define load_hint(p) atomic_load_explicit((p), memory_order_relaxed)

#define store_relaxed(p, v) atomic_store_explicit(AT(p), (v), memory_order_relaxed)
#define store_release(p, v) atomic_store_explicit(AT(p), (v), memory_order_release)
#define store_seq(p, v) atomic_store_explicit(AT(p), (v), memory_order_seq_cst)

#define exchange_relaxed(p, v) atomic_exchange_explicit(AT(p), (v), memory_order_relaxed)
#define exchange_acquire(p, v) atomic_exchange_explicit(AT(p), (v), memory_order_acquire)
#define exchange_release(p, v) atomic_exchange_explicit(AT(p), (v), memory_order_release)
#define exchange_seq(p, v) atomic_exchange_explicit(AT(p), (v), memory_order_seq_cst)

#define add_relaxed(p, v) atomic_fetch_add_explicit(AT(p), (v), memory_order_relaxed)
#define add_release(p, v) atomic_fetch_add_explicit(AT(p), (v), memory_order_release)
#define add_seq(p, v) atomic_fetch_add_explicit(AT(p), (v), memory_order_seq_cst)
#define sub_relaxed(p, v) atomic_fetch_sub_explicit(AT(p), (v), memory_order_relaxed)
#define sub_seq(p, v) atomic_fetch_sub_explicit(AT(p), (v), memory_order_seq_cst)
#define or_relaxed(p, v) atomic_fetch_or_explicit(AT(p), (v), memory_order_relaxed)
#define or_acquire(p, v) atomic_fetch_or_explicit(AT(p), (v), memory_order_acquire)
#define or_release(p, v) atomic_fetch_or_explicit(AT(p), (v), memory_order_release)
#define or_seq(p, v) atomic_fetch_or_explicit(AT(p), (v), memory_order_seq_cst)
#define or_acq_rel(p, v) atomic_fetch_or_explicit(AT(p), (v), memory_order_acq_rel)
#define sub_release(p, v) atomic_fetch_sub_explicit(AT(p), (v), memory_order_release)
#define sub_acq_rel(p, v) atomic_fetch_sub_explicit(AT(p), (v), memory_order_acq_rel)
#define and_relaxed(p, v) atomic_fetch_and_explicit(AT(p), (v), memory_order_relaxed)
#define and_acquire(p, v) atomic_fetch_and_explicit(AT(p), (v), memory_order_acquire)
#define and_release(p, v) atomic_fetch_and_explicit(AT(p), (v), memory_order_release)
#define and_acq_rel(p, v) atomic_fetch_and_explicit(AT(p), (v), memory_order_acq_rel)
#define and_seq(p, v) atomic_fetch_and_explicit(AT(p), (v), memory_order_seq_cst)

/* Compare and swap; on failure *expected holds what was found. Failure is relaxed unless the name says otherwise. */
#define cas_relaxed(p, expected, v) \
	atomic_compare_exchange_strong_explicit(AT(p), (expected), (v), memory_order_relaxed, memory_order_relaxed)
#define cas_acquire(p, expected, v) \
	atomic_compare_exchange_strong_explicit(AT(p), (expected), (v), memory_order_acquire, memory_order_relaxed)
#define cas_release(p, expected, v) \
	atomic_compare_exchange_strong_explicit(AT(p), (expected), (v), memory_order_release, memory_order_relaxed)
#define cas_acq_rel(p, expected, v) \
	atomic_compare_exchange_strong_explicit(AT(p), (expected), (v), memory_order_acq_rel, memory_order_acquire)
#define cas_seq(p, expected, v) \
	atomic_compare_exchange_strong_explicit(AT(p), (expected), (v), memory_order_seq_cst, memory_order_seq_cst)
#endif

/* Counters with one writer and many readers: no read-modify-write needed. Owner thread only. */
#define bump(p, n) store_relaxed((p), load_relaxed(p) + (n))

/* Fetches a line for writing, so that others lose it at once. __builtin_prefetch() does that on some processors only: compilers that know of old
 * x86 ones fetch for reading.                                                                                              */
#if defined(__x86_64__) && !defined(HIVE_MODEL)
#define prefetch_alone(p) __asm__ volatile("prefetchw %0" : : "m"(*(const char *)(p)))
#else
#define prefetch_alone(p) __builtin_prefetch((p), 1)
#endif

static inline void cpu_pause(void)
{
#if defined(HIVE_EXPLORE)
	hive__explore_pause();
#elif defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}
