/* SPDX-License-Identifier: MIT */
/* Contexts alone, on stacks from malloc. Built twice: with the library's switch, and with ucontext (fiber.switch_ucontext). */
#include "fiber/switch.h"

#include <execinfo.h>
#include <fenv.h>

#include "test.h"

enum { STACK = 256 << 10 };

struct side {
	struct context home, away;
	int steps;
	uint64_t sum;
	char *stack;
	uintptr_t above[8]; /* what lies above the stack looks like return addresses, to mislead a backtrace */
};

static void side_open(struct side *side, context_fn *fn)
{
	memset(side, 0, sizeof *side);
	side->stack = malloc(STACK + sizeof side->above);
	CHECK(side->stack);
	for (size_t i = 0; i < sizeof side->above / sizeof *side->above; i++)
		side->above[i] = (uintptr_t)fn + 1;
	memcpy(side->stack + STACK, side->above, sizeof side->above);
	context_here(&side->home);
	context_make(&side->away, side->stack, STACK, fn, side);
}

static void side_close(struct side *side)
{
	context_destroy(&side->away);
	free(side->stack);
}

static void three_steps(void *arg)
{
	struct side *side = arg;

	for (int i = 0; i < 3; i++) {
		side->steps++;
		context_switch(&side->away, &side->home);
	}
	side->steps++;
	context_leave(&side->away, &side->home);
}

TEST(a_context_goes_on_where_it_left)
{
	struct side side;

	side_open(&side, three_steps);
	for (int i = 1; i <= 4; i++) {
		CHECK_EQ(side.steps, i - 1);
		if (i % 2)
			context_switch(&side.home, &side.away);
		else
			context_enter(&side.home, &side.away);
		CHECK_EQ(side.steps, i);
	}
	side_close(&side);
}

/* More integers and floating-point numbers than any machine has registers to keep over a call, all alive over each switch; the
 * two sides have different ones. noinline and volatile: the compiler must not know that they are constant.               */
static volatile uint64_t seed = 0x9e3779b97f4a7c15;

#define EACH16(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define DECLARE(n)                              \
	uint64_t i##n = (seed >> n) ^ salt * n; \
	double d##n = (double)(i##n % 1000003) + 0.5;
#define SWITCH_AND_CHANGE(n)      \
	context_switch(from, to); \
	i##n += salt;             \
	d##n *= 1.5;
#define ADD_UP(n) sum = sum * 31 + i##n + (uint64_t)d##n;

static __attribute__((noinline)) uint64_t keep_many(struct context *from, struct context *to, uint64_t salt)
{
	uint64_t sum = 0;

	EACH16(DECLARE)
	EACH16(SWITCH_AND_CHANGE)
	EACH16(ADD_UP)
	return sum;
}

static __attribute__((noinline)) uint64_t expect_many(uint64_t salt)
{
	uint64_t sum = 0;

	EACH16(DECLARE)
#define CHANGE(n)     \
	i##n += salt; \
	d##n *= 1.5;
	EACH16(CHANGE)
	EACH16(ADD_UP)
	return sum;
}

static void keep_away(void *arg)
{
	struct side *side = arg;

	side->sum = keep_many(&side->away, &side->home, 77);
	context_leave(&side->away, &side->home);
}

TEST(a_switch_keeps_what_a_call_keeps)
{
	struct side side;

	side_open(&side, keep_away);
	CHECK_EQ(keep_many(&side.home, &side.away, 5), expect_many(5));
	context_switch(&side.home, &side.away);
	CHECK_EQ(side.sum, expect_many(77));
	side_close(&side);
}

/* The rounding that is in force in both units (x86 has two): bit 0 and 1 of the result tell which way a third was rounded. */
static __attribute__((noinline)) int rounding(void)
{
	volatile double one = 1, minus = -1, three = 3;
	volatile long double long_one = 1, long_minus = -1, long_three = 3;
	volatile double up = one / three, down = minus / three;
	volatile long double long_up = long_one / long_three, long_down = long_minus / long_three;
	/* upward: |up| > |down|; downward: the other way round; nearest: equal */
	int plain = up > -down ? FE_UPWARD : up < -down ? FE_DOWNWARD : FE_TONEAREST;
	int extended = long_up > -long_down ? FE_UPWARD : long_up < -long_down ? FE_DOWNWARD : FE_TONEAREST;

	CHECK_EQ(plain, extended);
	CHECK_EQ(plain, fegetround());
	return plain;
}

static bool rounds_as_told(void)
{
	volatile double one = 1, minus = -1, three = 3, up = one / three, down = minus / three;

	return up != -down;
}

static void round_upward(void *arg)
{
	struct side *side = arg;

	CHECK_EQ(rounding(), FE_DOWNWARD); /* that of who made us */
	fesetround(FE_UPWARD);
	context_switch(&side->away, &side->home);
	CHECK_EQ(rounding(), FE_UPWARD);
	context_switch(&side->away, &side->home);
	CHECK_EQ(rounding(), FE_UPWARD);
	context_leave(&side->away, &side->home);
}

TEST(each_context_has_its_own_rounding)
{
	struct side side;

	fesetround(FE_DOWNWARD);
	if (!rounds_as_told()) { /* valgrind */
		fesetround(FE_TONEAREST);
		test_skip("arithmetic does not round as it is told to");
		return;
	}
	side_open(&side, round_upward);
	fesetround(FE_TONEAREST);
	context_here(&side.home);
	CHECK_EQ(rounding(), FE_TONEAREST);
	context_switch(&side.home, &side.away);
	CHECK_EQ(rounding(), FE_TONEAREST);
	context_enter(&side.home, &side.away);
	CHECK_EQ(rounding(), FE_TONEAREST);
	fesetround(FE_DOWNWARD);
	context_switch(&side.home, &side.away); /* reads them anew, other than context_enter() */
	CHECK_EQ(rounding(), FE_DOWNWARD);
	fesetround(FE_TONEAREST);
	side_close(&side);
}

/* ---- many ---- */

enum { RING_ROUNDS = 3, RING_STACK = 16 << 10 };

struct ring {
	struct context *members, home;
	int count, turns;
};

struct ring_member {
	struct ring *ring;
	int number;
};

static void pass_on(void *arg)
{
	struct ring_member *me = arg;
	struct ring *ring = me->ring;
	struct context *own = &ring->members[me->number], *next = &ring->members[(me->number + 1) % ring->count];

	for (int i = 0; i < RING_ROUNDS; i++) {
		CHECK_EQ(ring->turns, i * ring->count + me->number);
		ring->turns++;
		context_switch(own, me->number + 1 == ring->count && i + 1 == RING_ROUNDS ? &ring->home : next);
	}
	context_leave(own, &ring->home);
}

TEST(ten_thousand_contexts_pass_a_token)
{
	struct ring ring = { .count = test_slowness() > 1 ? 2000 : 10000 }; /* gcc's ThreadSanitizer bears 8,128 */
	struct ring_member *me = calloc((size_t)ring.count, sizeof *me);
	char *stacks = malloc((size_t)ring.count * RING_STACK);

	ring.members = calloc((size_t)ring.count, sizeof *ring.members);
	CHECK(me && stacks && ring.members);
	context_here(&ring.home);
	for (int i = 0; i < ring.count; i++) {
		me[i] = (struct ring_member){ &ring, i };
		context_make(&ring.members[i], stacks + (size_t)i * RING_STACK, RING_STACK, pass_on, &me[i]);
	}
	context_switch(&ring.home, &ring.members[0]);
	CHECK_EQ(ring.turns, ring.count * RING_ROUNDS);
	for (int i = 0; i < ring.count; i++) {
		context_switch(&ring.home, &ring.members[i]); /* to its end */
		context_destroy(&ring.members[i]);
	}
	free(me), free(stacks), free(ring.members);
}

/* ---- depth, and the way back ---- */

static __attribute__((noinline)) int go_down(struct side *side, int left)
{
	volatile unsigned char frame[1024];
	int below;

	for (size_t i = 0; i < sizeof frame; i++)
		frame[i] = (unsigned char)(left + (int)i);
	context_switch(&side->away, &side->home);
	below = left > 0 ? go_down(side, left - 1) : 0;
	for (size_t i = 0; i < sizeof frame; i++)
		CHECK_EQ(frame[i], (unsigned char)(left + (int)i));
	return below + 1;
}

static void dive(void *arg)
{
	struct side *side = arg;

	side->steps = go_down(side, 99);
	context_leave(&side->away, &side->home);
}

TEST(a_deep_stack_is_kept_over_switches)
{
	struct side side;

	side_open(&side, dive);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(side.steps, 0);
		context_switch(&side.home, &side.away);
	}
	context_switch(&side.home, &side.away);
	CHECK_EQ(side.steps, 100);
	side_close(&side);
}

static void end_at_depth(void *arg)
{
	volatile char frame[4096];
	struct side *side = arg;

	frame[0] = frame[sizeof frame - 1] = 1;
	context_leave(&side->away, &side->home);
}

static bool on_valgrind(void)
{
#if defined(FIBER_VALGRIND)
	return RUNNING_ON_VALGRIND;
#else
	return false;
#endif
}

/* AddressSanitizer would complain about what the first user's frames left behind. */
TEST(a_stack_is_used_again_after_a_context_that_never_returned)
{
	struct side side;

	side_open(&side, end_at_depth);
	for (int i = 0; i < 10; i++) {
		context_switch(&side.home, &side.away);
		context_destroy(&side.away);
		if (!on_valgrind()) /* to which what is below a stack pointer is out of bounds */
			memset(side.stack, i, STACK);
		context_make(&side.away, side.stack, STACK, i % 2 ? dive : end_at_depth, &side);
		if (i % 2 == 0)
			continue;
		for (int k = 0; k < 100; k++)
			context_switch(&side.home, &side.away);
	}
	context_switch(&side.home, &side.away);
	side_close(&side);
}

static __attribute__((noinline)) int leave_from_below(struct side *side, int depth)
{
	if (seed == 0) /* never; but the compiler shall not see that this has no end */
		return 0;
	if (depth == 0)
		context_leave(&side->away, &side->home);
	return leave_from_below(side, depth - 1) + 1;
}

static void leave_from_deep(void *arg)
{
	((struct side *)arg)->steps = leave_from_below(arg, 100);
}

/* ThreadSanitizer counts calls, 65,536 at most; those of a context must go with it. */
TEST(a_thousand_contexts_end_deep_in_their_calls)
{
	struct side side;

	side_open(&side, leave_from_deep);
	for (int i = 0; i < 1000; i++) {
		context_switch(&side.home, &side.away);
		context_destroy(&side.away);
		context_make(&side.away, side.stack, STACK, leave_from_deep, &side);
	}
	side_close(&side);
}

#if defined(FIBER_ASAN)
TEST(the_sanitizer_knows_the_stack_of_the_thread)
{
	struct side side;
	char *low;

	side_open(&side, end_at_depth);
	CHECK_EQ(side.home.notes.low, NULL);
	context_switch(&side.home, &side.away);
	low = (char *)(uintptr_t)side.home.notes.low;
	CHECK((char *)__builtin_frame_address(0) > low);
	CHECK((char *)__builtin_frame_address(0) < low + side.home.notes.bytes);
	side_close(&side);
}
#endif

static __attribute__((noinline)) int count_callers(void **ret_last)
{
	void *frames[64];
	int count = backtrace(frames, 64);

	*ret_last = frames[count - 1];
	return count;
}

static void look_back(void *arg)
{
	struct side *side = arg;
	void *last;

	side->steps = count_callers(&last);
	side->sum = (uint64_t)(uintptr_t)last;
	context_leave(&side->away, &side->home);
}

#if !defined(HIVE_SWITCH_UCONTEXT)
void hive__context_entry(void);
#define ENTRY (uint64_t)(uintptr_t) hive__context_entry
#endif

TEST(a_backtrace_ends_at_the_entry)
{
	struct side side;
	uintptr_t pc = 0, sp = 0, fp = 1;
	void *last;

	side_open(&side, look_back);
#if defined(ENTRY)
	CHECK(context_place(&side.away, &pc, &sp, &fp));
	CHECK_EQ(pc, ENTRY);
	CHECK_EQ(fp % 1024, fp); /* not a place */
	CHECK((char *)sp > side.stack && (char *)sp <= side.stack + STACK);
#else
	CHECK(!context_place(&side.away, &pc, &sp, &fp));
#endif
	context_switch(&side.home, &side.away);
	side_close(&side);
#if defined(ENTRY) /* with ucontext it is the C library's affair */
	if (count_callers(&last) < 2) {
		test_skip("no unwind tables in this build"); /* gcc for riscv64 */
		return;
	}
	CHECK(side.steps >= 2 && side.steps < 10);
	CHECK(side.sum > ENTRY && side.sum < ENTRY + 32);
#else
	CHECK(count_callers(&last) < 64);
#endif
}
