/* SPDX-License-Identifier: MIT */
#pragma once
/* One thread, many stacks. A context is a place where somebody went away and will go on; a switch leaves one and goes on in
 * another. It is a plain function call: what the ABI lets a callee destroy is not kept. What is kept: the callee-saved
 * registers, and the control words of the floating-point unit (rounding, exception masks).
 *
 * What a switch does not touch:
 *  - The signal mask. It belongs to the thread; keeping one for each context would cost two system calls a switch. (The
 *    ucontext implementation does carry it along, because ucontext does: do not count on either.)
 *  - Thread-locals and errno. They are the thread's, and after a switch the thread may be another one. A compiler is free to
 *    compute the address of a thread-local once and to use it before and after the call. So code that runs on a context
 *    reads a thread-local only through a function that is not inlined, and takes errno at once into a variable, in the function
 *    that made the system call and before anything that can switch. tests/fiber/migrate.c shows the hazard and the cure.
 *  - Shadow stacks (CET) and landing pads (CET, BTI): the code is built without, and a process that enforces them cannot
 *    run it. The linker sees that by the missing notes and turns them off.
 *
 * A new context begins with the floating-point control words of who made it.
 *
 * Debuggers: the saved stack pointer is where the frame of hive__context_swap lies. With it and the address
 * hive__context_resume as the program counter, the unwind information leads to the caller of context_switch(); for the
 * ucontext implementation the pointer is that of a ucontext_t. */
#include <stddef.h>
#include <stdint.h>

#include "fiber/annotate.h"

typedef void context_fn(void *arg);

struct context { /* O  of the thread that runs it, or that is about to switch to it */
	void *sp;
	struct context_notes notes; /* for sanitizers and valgrind; empty without them */
};

/* The implementation: switch_<machine>.S or switch_ucontext.c. */
void hive__context_swap(void **ret_saved, void *go_on);
/* The saved place that, gone to, begins fn(arg) on that stack. */
void *hive__context_frame(void *stack_low, size_t stack_bytes, context_fn *fn, void *arg);

/* A context that will begin fn(arg) on the given stack (low address, bytes) at the first switch to it. fn never returns: its
 * last act is context_leave(). The top of the stack need not be aligned.                                                  */
static inline void context_make(struct context *c, void *stack_low, size_t stack_bytes, context_fn *fn, void *arg)
{
	context_note_make(&c->notes, stack_low, stack_bytes, &fn, &arg);
	c->sp = hive__context_frame(stack_low, stack_bytes, fn, arg);
}

/* The context of a thread's own stack (the worker's loop), to be filled on that thread before its first switch away. */
static inline void context_here(struct context *c)
{
	c->sp = NULL;
	context_note_here(&c->notes);
}

/* Leaves `from` (saved), goes on in `to`. Returns when somebody switches back to `from`, maybe on another thread. */
static inline void context_switch(struct context *from, struct context *to)
{
	context_note_switch(&from->notes, &to->notes);
	hive__context_swap(&from->sp, to->sp);
	context_note_return(&from->notes);
}

/* As context_switch, but `from` never goes on: its last switch (sanitizers let go of it). */
static inline void context_leave(struct context *from, struct context *to)
{
	context_note_leave(&from->notes, &to->notes);
	hive__context_swap(&from->sp, to->sp);
	__builtin_unreachable();
}

/* After its last switch, on another context, before the stack is used for anything else. The stack is not touched. */
static inline void context_destroy(struct context *c)
{
	context_note_destroy(&c->notes, c->sp);
}
