/* SPDX-License-Identifier: MIT */
#pragma once
/* A fiber that runs out of its stack hits the guard, and the kernel sends SIGSEGV: without a word, and to a handler that
 * has no stack to run on. Who watches gets a line on stderr that names the fiber; then the signal takes the course that
 * it would have taken without us: the handler that was there before, else the end of the process, with a core dump of
 * the faulting place.
 *
 * A program that has a handler for this signal keeps it, and we stay away (hive__overflow_may_watch). The handler is the
 * process's, so its state is the one exception from "nothing global".
 *
 * Each thread that runs fibers needs an alternate stack for it: hive__overflow_thread_begin(). */
#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"
#include "fiber/stack.h"

/* In the signal handler: writes the name of what runs on this stack. Async-signal-safe; must bear any content of the
 * stack. */
typedef void overflow_name_fn(void *arg, struct stack stack, char *ret_name, size_t bytes);

enum { OVERFLOW_WATCHED = 64 }; /* so many at once in a process */

/* Any thread. Nobody but us handles the signal. */
bool hive__overflow_may_watch(void);
/* Any thread. From now on overflows of these stacks are told. The first watch installs the handler, the last unwatch
 * takes it away if it is still ours. 0, -ENOSPC (too many), -EEXIST (watched already). */
int hive__overflow_watch(struct stacks *s, overflow_name_fn *name, void *arg);
/* Any thread, before the stacks are destroyed. Nothing happens for stacks that are not watched. */
void hive__overflow_unwatch(struct stacks *s);

/* On the thread itself: an alternate stack, if it has none. *ret_stack is what to give to the end, maybe NULL. 0 or
 * -ENOMEM. */
int hive__overflow_thread_begin(const struct memory *memory, void **ret_stack);
void hive__overflow_thread_end(const struct memory *memory, void *stack);
