/* SPDX-License-Identifier: MIT */
/* What hive_dump() says of fibers: each one with what it does, what it waits for, how much of its stack it has used, and where it
 * stands. Reads memory of others without asking: what it says may be of this moment or the one before, but it never hangs.  */
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "fiber/fiber.h"

enum { FRAMES_MAX = 16, NUMBER_DIGITS = 24, KIBI = 1024 };

/* From where a frame pointer points to the caller's frame pointer; behind that lies the return address. */
#if defined(__riscv)
enum { FRAME_LINK = -2 * (int)sizeof(uintptr_t) };
#else
enum { FRAME_LINK = 0 };
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
	s->say(s->to, base == 16 ? "0x" : "");
	s->say(s->to, at);
}

/* What its owner may be changing: old, new, or of another time than its neighbour. Whoever looks at what hangs cannot ask. */
#define PEEK __attribute__((noinline, no_sanitize_thread, no_sanitize_address))

static PEEK uintptr_t peek(const void *at)
{
	return *(const volatile uintptr_t *)at;
}

static void say_name(struct speech *s, struct hive_fiber *f)
{
	char name[sizeof f->name];

	fiber_name_read(f, name);
	s->say(s->to, name[0] ? " " : "");
	s->say(s->to, name);
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

/* Follows the frame pointers, as far as they stay on the stack and go up. This folder and src/sync are built with them, so the callers
 * of hive_sleep() and its like are found; code that was built without them ends the walk. A debugger sees more (tools/gdb).  */
static void say_frames(struct speech *s, struct hive_fiber *f, struct stack stack)
{
	uintptr_t low = (uintptr_t)stack.low, high = (uintptr_t)f - 2 * sizeof(uintptr_t);
	uintptr_t saved = peek(&f->context.sp), frame, next;

	if (CONTEXT_FRAME == 0 || saved < low || saved > high - CONTEXT_FRAME || saved % sizeof saved != 0)
		return;
	say_number(s, "\n    at ", peek((const void *)(saved + CONTEXT_PC)), 16);
	frame = peek((const void *)(saved + CONTEXT_FP)) + (uintptr_t)FRAME_LINK;
	for (int i = 1; i < FRAMES_MAX && frame >= low && frame <= high && frame % sizeof frame == 0; i++) {
		uintptr_t return_to = peek((const void *)(frame + sizeof frame));

		if (return_to == 0)
			break;
		say_number(s, " ", return_to, 16);
		next = peek((const void *)frame) + (uintptr_t)FRAME_LINK;
		frame = next > frame ? next : 0;
	}
}

/* Only once it is parked: before, it may not have said whom. */
static void say_whom(struct speech *s, struct hive_fiber *f)
{
	struct whom whom;

	if (cell_phase_of(load_relaxed(&f->waiter.cell.word)) != CELL_PARKED || !hive__fiber_whom(f, &whom))
		return;
	if (whom.thread)
		say_number(s, ", for thread ", whom.thread, 10);
	else if (!whom.name[0])
		say_number(s, ", for fiber ", whom.waiter - offsetof(struct hive_fiber, waiter), 16);
	else
		s->say(s->to, ", for fiber ");
	s->say(s->to, whom.thread ? "" : whom.name);
}

static void say_reason(struct speech *s, struct hive_fiber *f, const char *why)
{
	s->say(s->to, ": ");
	if (why[0] && why[strlen(why) - 1] == ' ')
		say_number(s, why, load_relaxed(&f->waiter.detail), 10);
	else
		s->say(s->to, why);
	say_whom(s, f);
}

static void visit(void *arg, struct stack stack)
{
	struct speech *s = (struct speech *)arg;
	struct hive_fiber *f = fiber_of_stack(stack);
	uint64_t life = load_relaxed(&f->fate) & FATE_LIFE;
	uint32_t began = load_relaxed(&f->began);
	const char *why = load_relaxed(&f->waiter.why);

	if (life == 0 || began == 2)
		return;
	if (s->fibers++ == 0)
		s->say(s->to, "fibers:\n");
	say_number(s, "  ", (uintptr_t)f, 16);
	say_name(s, f);
	s->say(s->to, ": ");
	s->say(s->to, doing(f, began));
	if (why)
		say_reason(s, f, why);
	s->say(s->to, load_relaxed(&f->cancelled) ? ", cancelled" : "");
	say_number(s, ", stack ", hive__stack_used(stack) / KIBI, 10);
	say_number(s, " of ", stack.bytes / KIBI, 10);
	say_number(s, " KiB, fn ", (uintptr_t)load_relaxed(&f->fn), 16);
	if (cell_phase_of(load_relaxed(&f->waiter.cell.word)) == CELL_PARKED)
		say_frames(s, f, stack);
	s->say(s->to, "\n");
}

/* How far the program lies from the addresses in its file; 0 also when they are the same. */
static uintptr_t program_offset(void)
{
	const ElfW(Phdr) *header = (const ElfW(Phdr) *)getauxval(AT_PHDR);

	for (unsigned long i = header ? getauxval(AT_PHNUM) : 0; i > 0; i--, header++)
		if (header->p_type == PT_PHDR)
			return getauxval(AT_PHDR) - header->p_vaddr;
	return 0;
}

void hive__fibers_dump(void *fibers, void *to, void (*say)(void *to, const char *words))
{
	struct speech speech = { to, say, 0 };

	hive__stacks_visit(((struct fibers *)fibers)->stacks, visit, &speech);
	if (speech.fibers == 0)
		return;
	say_number(&speech, "  in all ", speech.fibers, 10);
	say_number(&speech, "; names: addr2line -fpe PROGRAM, of addresses less ", program_offset(), 16);
	say(to, "\n");
}
