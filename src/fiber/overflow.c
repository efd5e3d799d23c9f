/* SPDX-License-Identifier: MIT */
#include "fiber/overflow.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/inherited.h"
#include "base/lock.h"

enum {
	ALTERNATE_BYTES = 64 << 10
}; /* the largest signal frames (AMX) have 11 KiB; a chained handler wants some, too */

struct watch {
	ATOMIC(struct stacks *) stacks; /* stored under the lock, loaded by the handler; NULL: free */
	overflow_name_fn *name;         /* constant while stacks is set */
	void *arg;
};

static struct {
	struct lock lock;
	struct watch watches[OVERFLOW_WATCHED];
	unsigned count;            /* L */
	struct sigaction previous; /* L  constant while count > 0 */
} watching;

/* snprintf() is not async-signal-safe. */
static char *put_text(char *at, const char *end, const char *text)
{
	while (*text && at < end)
		*at++ = *text++;
	return at;
}

static char *put_number(char *at, const char *end, uintptr_t number, unsigned base)
{
	char digits[24];
	size_t i = sizeof digits;

	digits[--i] = 0;
	do {
		digits[--i] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	return put_text(at, end, &digits[i]);
}

static void tell(const struct watch *watch, struct stack stack, const void *address)
{
	char line[256], name[96] = "", *at = line;
	const char *end = line + sizeof line - 1;

	watch->name(watch->arg, stack, name, sizeof name);
	name[sizeof name - 1] = 0;
	at = put_text(at, end, "rophive: stack overflow in fiber ");
	at = put_text(at, end, name[0] ? name : "(no name)");
	at = put_text(at, end, ": access to 0x");
	at = put_number(at, end, (uintptr_t)address, 16);
	at = put_text(at, end, ", below its stack of ");
	at = put_number(at, end, stack.bytes, 10);
	at = put_text(at, end, " bytes at 0x");
	at = put_number(at, end, (uintptr_t)stack.low, 16);
	*at++ = '\n';
	if (fd_is_inherited(STDERR_FILENO) && write(STDERR_FILENO, line, (size_t)(at - line)) < 0)
		return; /* nobody to tell */
}

/* What would have happened without us. Returning with the default action in place repeats the access, and that ends the
 * process. */
static void go_on(int number, siginfo_t *info, void *context)
{
	const struct sigaction *previous = &watching.previous;

	if (previous->sa_flags & SA_SIGINFO) {
		previous->sa_sigaction(number, info, context);
	} else if (previous->sa_handler != SIG_DFL && previous->sa_handler != SIG_IGN) {
		previous->sa_handler(number);
	} else {
		signal(number, SIG_DFL);
		if (info->si_code <= 0) /* somebody sent it: nothing would repeat it */
			raise(number);
	}
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	int error = errno;

	for (int i = 0; i < OVERFLOW_WATCHED && info->si_code > 0; i++) {
		struct stacks *s = load_acquire(&watching.watches[i].stacks); /* WATCH-1 (pairs with WATCH-2) */
		struct stack stack;

		if (s && hive__stack_owns_guard(s, info->si_addr, &stack))
			tell(&watching.watches[i], stack, info->si_addr);
	}
	go_on(number, info, context);
	errno = error;
}

static void install(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, &action, &watching.previous);
}

static void uninstall(void)
{
	struct sigaction now;

	/* Somebody who came after us may call us: then we must stay. */
	if (sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault)
		sigaction(SIGSEGV, &watching.previous, NULL);
}

bool hive__overflow_may_watch(void)
{
	struct sigaction now;

	if (sigaction(SIGSEGV, NULL, &now) < 0)
		return false;
	return now.sa_flags & SA_SIGINFO ? now.sa_sigaction == on_fault : now.sa_handler == SIG_DFL;
}

static struct watch *find_locked(struct stacks *s)
{
	for (int i = 0; i < OVERFLOW_WATCHED; i++)
		if (load_relaxed(&watching.watches[i].stacks) == s)
			return &watching.watches[i];
	return NULL;
}

int hive__overflow_watch(struct stacks *s, overflow_name_fn *name, void *arg)
{
	struct watch *watch;
	int r = 0;

	lock_acquire(&watching.lock);
	watch = find_locked(NULL);
	if (find_locked(s)) {
		r = -EEXIST;
	} else if (!watch) {
		r = -ENOSPC;
	} else {
		watch->name = name;
		watch->arg = arg;
		store_release(&watch->stacks, s); /* WATCH-2 (pairs with WATCH-1) */
		if (watching.count++ == 0)
			install();
	}
	lock_release(&watching.lock);
	return r;
}

void hive__overflow_unwatch(struct stacks *s)
{
	struct watch *watch;

	lock_acquire(&watching.lock);
	watch = find_locked(s);
	if (watch) {
		store_relaxed(&watch->stacks, (struct stacks *)NULL);
		if (--watching.count == 0)
			uninstall();
	}
	lock_release(&watching.lock);
}

int hive__overflow_thread_begin(const struct memory *memory, void **ret_stack)
{
	stack_t stack;

	*ret_stack = NULL;
	if (sigaltstack(NULL, &stack) < 0 || !(stack.ss_flags & SS_DISABLE))
		return 0; /* the program's own, or a sanitizer's */
	memset(&stack, 0, sizeof stack);
	stack.ss_sp = hive__memory_new(memory, ALTERNATE_BYTES);
	stack.ss_size = ALTERNATE_BYTES;
	if (!stack.ss_sp)
		return -ENOMEM;
	if (sigaltstack(&stack, NULL) < 0) {
		hive__memory_free(memory, stack.ss_sp);
		return -ENOMEM;
	}
	*ret_stack = stack.ss_sp;
	return 0;
}

void hive__overflow_thread_end(const struct memory *memory, void *stack)
{
	stack_t off = { .ss_flags = SS_DISABLE };

	if (!stack)
		return;
	sigaltstack(&off, NULL);
	hive__memory_free(memory, stack);
}
