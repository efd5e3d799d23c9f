/* SPDX-License-Identifier: MIT */
/* The switch for machines without assembly of ours. A saved place is a ucontext_t that lies on the context's own stack:
 * in the frame of the swap that left it or, before its first run, at the top. Costs two system calls a switch (the
 * signal mask). */
#include <string.h>
#include <ucontext.h>

#include "fiber/switch.h"

/* makecontext() passes ints; a pointer is two of them. */
static void begin(unsigned fn_high, unsigned fn_low, unsigned arg_high, unsigned arg_low)
{
	context_fn *fn = (context_fn *)(uintptr_t)((uint64_t)fn_high << 32 | fn_low);

	fn((void *)(uintptr_t)((uint64_t)arg_high << 32 | arg_low));
}

void *hive__context_frame(void *stack_low, size_t stack_bytes, context_fn *fn, void *arg, uint64_t control)
{
	uintptr_t top = ((uintptr_t)stack_low + stack_bytes - sizeof(ucontext_t)) & ~(uintptr_t)63;
	ucontext_t *place = (ucontext_t *)top;
	uint64_t f = (uint64_t)(uintptr_t)fn, a = (uint64_t)(uintptr_t)arg;

	(void)control; /* a copy of ours is in it */
	memset(place, 0, sizeof *place);
	getcontext(place);
	place->uc_stack.ss_sp = stack_low;
	place->uc_stack.ss_size = top - (uintptr_t)stack_low;
	place->uc_link = NULL;
	makecontext(place, (void (*)(void))begin, 4, (unsigned)(f >> 32), (unsigned)f, (unsigned)(a >> 32),
	            (unsigned)a);
	return place;
}

/* Not instrumented: a frame that is entered on one stack and left on another is none of a sanitizer's business. */
__attribute__((no_sanitize("address", "thread"))) void hive__context_swap(void **ret_saved, void *go_on)
{
	ucontext_t here;

	*ret_saved = &here;
	swapcontext(&here, (ucontext_t *)go_on);
}
