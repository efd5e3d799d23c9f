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
 * A new context begins with the floating-point control words of who made it, or of a thread's own context.
 *
 * Debuggers and dumps: context_place() tells where a context will go on. */
#include <stddef.h>
#include <stdint.h>

#include "fiber/annotate.h"
#include "fiber/switch_machine.h"

typedef void context_fn(void *arg);

struct context { /* O  of the thread that runs it, or that is about to switch to it */
	void *sp;
	uint64_t control;           /* of a thread's own context: its floating-point control words */
	struct context_notes notes; /* for sanitizers and valgrind; empty without them */
};

/* The saved place that, gone to, begins fn(arg) on that stack. */
void *hive__context_frame(void *stack_low, size_t stack_bytes, context_fn *fn, void *arg, uint64_t control);

/* A context that will begin fn(arg) on the given stack (low address, bytes) at the first switch to it. fn never returns: its
 * last act is context_leave(). The top of the stack need not be aligned.                                                  */
static inline void context_make(struct context *c, void *stack_low, size_t stack_bytes, context_fn *fn, void *arg)
{
	context_note_make(&c->notes, stack_low, stack_bytes, &fn, &arg);
	c->sp = hive__context_frame(stack_low, stack_bytes, fn, arg, context_control());
}

/* The same with the control words of `like`, which context_here() filled: they need not be read again. */
static inline void context_make_like(struct context *c, void *stack_low, size_t stack_bytes, context_fn *fn, void *arg,
                                     const struct context *like)
{
	context_note_make(&c->notes, stack_low, stack_bytes, &fn, &arg);
	c->sp = hive__context_frame(stack_low, stack_bytes, fn, arg, like->control);
}

/* The context of a thread's own stack (the worker's loop), to be filled on that thread before its first switch away. */
static inline void context_here(struct context *c)
{
	c->sp = NULL;
	c->control = context_control();
	context_note_here(&c->notes);
}

/* Leaves `from` (saved), goes on in `to`. Returns when somebody switches back to `from`, maybe on another thread. */
CONTEXT_INLINE void context_switch(struct context *from, struct context *to)
{
	context_note_switch(&from->notes, &to->notes);
	context_swap(&from->sp, to->sp);
	context_note_return(&from->notes);
}

/* As context_switch for a `from` that context_here() filled: quicker on x86-64, because the thread's own control words
 * are not read again. Code on the thread's own stack does not change them (or fills `from` anew). */
CONTEXT_INLINE void context_enter(struct context *from, struct context *to)
{
	context_note_switch(&from->notes, &to->notes);
	context_swap_known(&from->sp, to->sp, from->control);
	context_note_return(&from->notes);
}

/* As context_switch, but `from` never goes on: its last switch (sanitizers let go of it). */
CONTEXT_INLINE void context_leave(struct context *from, struct context *to)
{
	context_note_leave(&from->notes, &to->notes);
	context_swap_known(&from->sp, to->sp, 0); /* nobody asks for what it had */
	__builtin_unreachable();
}

/* After its last switch, on another context, before the stack is used for anything else. The stack is not touched. */
static inline void context_destroy(struct context *c)
{
	context_note_destroy(&c->notes, c->sp);
}

/* Where a context that is not running will go on: enough to begin a backtrace, with frame pointers or with unwind
 * information. False: not known (ucontext). In a context that never ran, pc is hive__context_entry. */
static inline bool context_place(const struct context *c, uintptr_t *ret_pc, uintptr_t *ret_sp, uintptr_t *ret_fp)
{
	const char *frame = (const char *)c->sp;

	if (CONTEXT_FRAME == 0 || !frame)
		return false;
	*ret_pc = *(const uintptr_t *)(const void *)(frame + CONTEXT_PC);
	*ret_fp = *(const uintptr_t *)(const void *)(frame + CONTEXT_FP);
	*ret_sp = (uintptr_t)frame + CONTEXT_FRAME;
	return true;
}
