/* SPDX-License-Identifier: MIT */
/* The first frame of a context, as the assembly of this machine expects it. */
#include "fiber/switch.h"

void hive__context_entry(void);

/* Indices of the frame's words; the pictures are at the heads of switch_x86_64.h and of switch_<machine>.S. */
#if defined(__x86_64__)
enum { FRAME_CONTROL = 0, FRAME_BACK = 1, FRAME_FP = 2, FRAME_FN = 19, FRAME_ARG = 20, FRAME_WORDS = 21 };
#elif defined(__aarch64__)
enum { FRAME_FN = 0, FRAME_ARG = 1, FRAME_FP = 10, FRAME_BACK = 11, FRAME_CONTROL = 20, FRAME_WORDS = 22 };
#else
enum { FRAME_BACK = 0, FRAME_FP = 1, FRAME_FN = 2, FRAME_ARG = 3, FRAME_CONTROL = 25, FRAME_WORDS = 26 };
#endif

void *hive__context_frame(void *stack_low, size_t stack_bytes, context_fn *fn, void *arg, uint64_t control)
{
	uintptr_t top = ((uintptr_t)stack_low + stack_bytes) & ~(uintptr_t)15;
	uintptr_t *frame = (uintptr_t *)top - FRAME_WORDS;

	/* The other registers begin with what happens to be there. */
	frame[FRAME_FN] = (uintptr_t)fn;
	frame[FRAME_ARG] = (uintptr_t)arg;
	frame[FRAME_BACK] = (uintptr_t)hive__context_entry;
	frame[FRAME_FP] = 0; /* where a backtrace by frame pointers ends */
	frame[FRAME_CONTROL] = control;
	return frame;
}
