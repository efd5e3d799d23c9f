/* SPDX-License-Identifier: MIT */
/* What hive_dump() says of fibers: each one with what it does, what it waits for, how much of its stack it has used, and where it
 * stands. Reads memory of others without asking: what it says may be of this moment or the one before, but it never hangs.  */
#include <string.h>

#include "fiber/fiber.h"

enum { FRAMES_MAX = 12, NUMBER_DIGITS = 24 };

/* Where in the frame of a switch (switch_*.S) the frame pointer and the return address lie side by side; 0: they do not. */
#if defined(HIVE_SWITCH_UCONTEXT)
enum { SAVED_FRAME = 0 };
#elif defined(__x86_64__)
enum { SAVED_FRAME = 48 };
#elif defined(__aarch64__)
enum { SAVED_FRAME = 80 };
#else
enum { SAVED_FRAME = 0 };
#endif

struct speech {
	void *to;
	void (*say)(void *to, const char *words);
	uint64_t fibers;
};

static void say_number(struct speech *s, const char *words, uint64_t number, unsigned base)
{
	char digits[NUMBER_DIGITS], *at = digits + sizeof digits;

	*--at = 0;
	do
		*--at = "0123456789abcdef"[number % base];
	while ((number /= base) != 0);
	s->say(s->to, words);
	s->say(s->to, at);
}

static const char *doing(struct hive_fiber *f, uint32_t began)
{
	static const char *const words[] = { "runs or is queued", "about to wait", "waits", "woken",
		                             "woken, late",       "cancelled" };
	enum cell_phase phase = cell_phase_of(load_relaxed(&f->waiter.cell.word));

	if (began == 0)
		return "not begun";
	return phase < sizeof words / sizeof *words ? words[phase] : "?";
}

/* A word of a stack whose owner may be running by now; it may be any word, so nothing depends on it but what is said. */
static __attribute__((no_sanitize("thread", "address"))) uintptr_t peek(uintptr_t at)
{
	return *(const volatile uintptr_t *)at;
}

/* Follows the frame pointers, as far as they stay on the stack and go up: code that was built without them ends the walk early.
 * A debugger sees more (tools/gdb).                                                                                        */
static void say_frames(struct speech *s, struct hive_fiber *f, struct stack stack)
{
	uintptr_t low = (uintptr_t)stack.low, high = low + stack.bytes - STACK_TOP;
	uintptr_t frame = peek((uintptr_t)&f->context.sp) + SAVED_FRAME;

	if (SAVED_FRAME == 0)
		return;
	s->say(s->to, "\n    at");
	for (int i = 0;
	     i < FRAMES_MAX && frame >= low && frame <= high - 2 * sizeof(void *) && frame % sizeof(void *) == 0; i++) {
		uintptr_t next = peek(frame), return_to = peek(frame + sizeof next);

		if (return_to == 0)
			break;
		say_number(s, " 0x", return_to, 16);
		if (next <= frame)
			break;
		frame = next;
	}
}

static void visit(void *arg, struct stack stack)
{
	struct speech *s = (struct speech *)arg;
	struct hive_fiber *f = fiber_of_stack(stack);
	uint32_t began = load_relaxed(&f->began), generation = load_relaxed(&f->generation);
	const char *why = load_relaxed(&f->waiter.why);
	char name[32];

	if (generation == 0 || began == 2)
		return;
	if (s->fibers++ == 0)
		s->say(s->to, "fibers:\n");
	say_number(s, "  0x", (uintptr_t)f, 16);
	fiber_name_read(f, name);
	s->say(s->to, name[0] ? " " : "");
	s->say(s->to, name);
	s->say(s->to, ": ");
	s->say(s->to, doing(f, began));
	s->say(s->to, why ? ": " : "");
	s->say(s->to, why ? why : "");
	say_number(s, ", fn 0x", (uintptr_t)load_relaxed(&f->fn), 16);
	say_number(s, ", stack ", hive__stack_used(stack), 10);
	say_number(s, " of ", stack.bytes, 10);
	if (cell_phase_of(load_relaxed(&f->waiter.cell.word)) == CELL_PARKED)
		say_frames(s, f, stack);
	s->say(s->to, "\n");
}

void hive__fibers_dump(void *fibers, void *to, void (*say)(void *to, const char *words))
{
	struct speech speech = { to, say, 0 };

	hive__stacks_visit(((struct fibers *)fibers)->stacks, visit, &speech);
}
