/* SPDX-License-Identifier: MIT */
#pragma once
/* What sanitizers and valgrind want to be told of stacks. In builds without them every function here is empty, and so is the
 * struct.
 *
 *  ThreadSanitizer  a context is a thread of its own to it; each switch orders what was before it and what comes after. gcc 12
 *                   bears 8,128 live contexts and threads, clang more.
 *  AddressSanitizer must know on which stack it is; a context's last switch drops its fake stack; frames that were never
 *                   returned from stay poisoned in the shadow, so destroying a context cleans the stack above its last frame.
 *  valgrind         a registered stack is one that may be switched to. Costs a few instructions when a context is made,
 *                   whether valgrind is there or not; NVALGRIND leaves it out.                                             */
#include <stdbool.h>
#include <stddef.h>

#ifndef __has_feature
#define __has_feature(x) 0
#define FIBER_UNDEFINE_HAS_FEATURE
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#include <sanitizer/tsan_interface.h>
#endif
/* The explorer's threads are stacks of its own, of which nothing is told: then half of the truth is worse than none. */
#if (defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)) && !defined(HIVE_EXPLORE)
#define FIBER_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(FIBER_UNDEFINE_HAS_FEATURE)
#undef __has_feature
#undef FIBER_UNDEFINE_HAS_FEATURE
#endif
#if !defined(NVALGRIND) && __has_include(<valgrind/valgrind.h>)
#define FIBER_VALGRIND 1
#include <valgrind/valgrind.h>
#endif

/* In a function of its own ThreadSanitizer would count the entry for one context and the exit for another. */
#define CONTEXT_INLINE static inline __attribute__((always_inline))

struct context_notes {
#if defined(FIBER_TSAN)
	void *tsan;
#endif
#if defined(FIBER_ASAN)
	const void *low; /* NULL: a thread's stack that was not left yet */
	size_t bytes;
	void *fake_stack;
	struct context_notes *came_from; /* who switched to us */
	void (*fn)(void *arg);
	void *arg;
#endif
#if defined(FIBER_VALGRIND)
	unsigned valgrind_id; /* O */
#endif
};

#if defined(FIBER_ASAN)
/* On arrival. A thread's stack is known from the first time that it was left. */
static inline void context_note_arrive(struct context_notes *n, void *fake_stack)
{
	const void *low;
	size_t bytes;

	__sanitizer_finish_switch_fiber(fake_stack, &low, &bytes);
	if (n->came_from && !n->came_from->low) {
		n->came_from->low = low;
		n->came_from->bytes = bytes;
	}
}

static inline void context_note_begin(void *arg)
{
	struct context_notes *n = (struct context_notes *)arg;

	context_note_arrive(n, NULL);
	n->fn(n->arg);
}
#endif

static inline void context_note_make(struct context_notes *n, void *low, size_t bytes, void (**fn)(void *), void **arg)
{
	(void)n, (void)low, (void)bytes, (void)fn, (void)arg;
#if defined(FIBER_TSAN)
	n->tsan = __tsan_create_fiber(0);
#endif
#if defined(FIBER_ASAN)
	n->low = low;
	n->bytes = bytes;
	n->fake_stack = NULL;
	n->came_from = NULL;
	n->fn = *fn;
	n->arg = *arg;
	*fn = context_note_begin;
	*arg = n;
#endif
#if defined(FIBER_VALGRIND)
	n->valgrind_id = VALGRIND_STACK_REGISTER(low, (char *)low + bytes);
#endif
}

static inline void context_note_here(struct context_notes *n)
{
	(void)n;
#if defined(FIBER_TSAN)
	n->tsan = __tsan_get_current_fiber();
#endif
#if defined(FIBER_ASAN)
	n->low = NULL;
	n->bytes = 0;
	n->fake_stack = NULL;
	n->came_from = NULL;
#endif
}

CONTEXT_INLINE void context_note_switch(struct context_notes *from, struct context_notes *to)
{
	(void)from, (void)to;
#if defined(FIBER_ASAN)
	to->came_from = from;
	__sanitizer_start_switch_fiber(&from->fake_stack, to->low, to->bytes);
#endif
#if defined(FIBER_TSAN)
	__tsan_switch_to_fiber(to->tsan, 0);
#endif
}

CONTEXT_INLINE void context_note_leave(struct context_notes *from, struct context_notes *to)
{
	(void)from, (void)to;
#if defined(FIBER_ASAN)
	to->came_from = NULL; /* only contexts that were made leave: their stack is known */
	__sanitizer_start_switch_fiber(NULL, to->low, to->bytes);
#endif
#if defined(FIBER_TSAN)
	__tsan_switch_to_fiber(to->tsan, 0);
#endif
}

CONTEXT_INLINE void context_note_return(struct context_notes *n)
{
	(void)n;
#if defined(FIBER_ASAN)
	context_note_arrive(n, n->fake_stack);
#endif
}

static inline void context_note_destroy(struct context_notes *n, void *sp)
{
	(void)n, (void)sp;
#if defined(FIBER_TSAN)
	__tsan_destroy_fiber(n->tsan);
#endif
#if defined(FIBER_ASAN)
	const char *top = (const char *)n->low + n->bytes;
	if ((const char *)sp > (const char *)n->low && (const char *)sp < top)
		__asan_unpoison_memory_region(sp, (size_t)(top - (const char *)sp));
#endif
#if defined(FIBER_VALGRIND)
	VALGRIND_STACK_DEREGISTER(n->valgrind_id);
#endif
}
