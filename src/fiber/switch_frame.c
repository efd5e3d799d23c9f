/* SPDX-License-Identifier: MIT */
/* The first frame of a context, as the assembly of this machine expects it. */
#include <string.h>

#include "fiber/switch.h"

void hive__context_entry(void);
/* The current floating-point control words, in the form in which a frame holds them. */
void hive__context_fp(void *ret_words);

/* Indices of the frame's words; the picture is at the head of switch_<machine>.S. */
#if defined(__x86_64__)
enum { FRAME_FP = 0, FRAME_ARG = 3, FRAME_FN = 4, FRAME_BACK = 7, FRAME_WORDS = 8 };
#elif defined(__aarch64__)
enum { FRAME_FN = 0, FRAME_ARG = 1, FRAME_BACK = 11, FRAME_FP = 20, FRAME_WORDS = 22 };
#elif defined(__riscv)
enum { FRAME_BACK = 0, FRAME_FN = 1, FRAME_ARG = 2, FRAME_FP = 25, FRAME_WORDS = 26 };
#else
#error "no assembly for this machine: configure with -DROPHIVE_SWITCH=ucontext"
#endif

void *hive__context_frame(void *stack_low, size_t stack_bytes, context_fn *fn, void *arg)
{
	uintptr_t top = ((uintptr_t)stack_low + stack_bytes) & ~(uintptr_t)15;
	uintptr_t *frame = (uintptr_t *)top - FRAME_WORDS;

	memset(frame, 0, FRAME_WORDS * sizeof *frame);
	frame[FRAME_FN] = (uintptr_t)fn;
	frame[FRAME_ARG] = (uintptr_t)arg;
	frame[FRAME_BACK] = (uintptr_t)hive__context_entry;
	hive__context_fp(&frame[FRAME_FP]);
	return frame;
}
