/* SPDX-License-Identifier: MIT */
#pragma once
/* The machine's part of switch.h:
 *   context_swap(&saved, go_on)                  saves here, goes on there
 *   context_swap_known(&saved, go_on, control)   the same with control words that need not be read
 *   context_control()                            the floating-point control words of now
 *   CONTEXT_PC, CONTEXT_FP, CONTEXT_FRAME        where a saved frame has program counter and frame pointer, and its size */
#include <stddef.h>
#include <stdint.h>

#if !defined(HIVE_SWITCH_UCONTEXT) && defined(__x86_64__)
#include "fiber/switch_x86_64.h"
#else
/* switch_<machine>.S or switch_ucontext.c */
void hive__context_swap(void **ret_saved, void *go_on);

static inline __attribute__((always_inline)) void context_swap(void **ret_saved, void *go_on)
{
	hive__context_swap(ret_saved, go_on);
}

/* Reading them costs next to nothing on these. */
static inline __attribute__((always_inline)) void context_swap_known(void **ret_saved, void *go_on, uint64_t control)
{
	(void)control;
	hive__context_swap(ret_saved, go_on);
}

#if !defined(HIVE_SWITCH_UCONTEXT) && defined(__aarch64__)
enum { CONTEXT_PC = 88, CONTEXT_FP = 80, CONTEXT_FRAME = 176 };
static inline uint64_t context_control(void)
{
	uint64_t fpcr;

	__asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
	return fpcr;
}
#elif !defined(HIVE_SWITCH_UCONTEXT) && defined(__riscv)
enum { CONTEXT_PC = 0, CONTEXT_FP = 8, CONTEXT_FRAME = 208 };
static inline uint64_t context_control(void)
{
	uint64_t fcsr;

	__asm__ volatile("frcsr %0" : "=r"(fcsr));
	return fcsr;
}
#else
enum { CONTEXT_PC = 0, CONTEXT_FP = 0, CONTEXT_FRAME = 0 }; /* unknown */
static inline uint64_t context_control(void)
{
	return 0; /* ucontext keeps them by itself */
}
#endif
#endif
