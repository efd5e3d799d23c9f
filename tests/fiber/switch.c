/* SPDX-License-Identifier: MIT */
/* Contexts alone, on stacks from malloc. Built twice: with the library's switch, and with ucontext (fiber.switch_ucontext). */
#include "fiber/switch.h"

#include "test.h"

enum { STACK = 64 << 10 };

struct side {
	struct context home, away;
	int steps;
	void *stack;
};

static void side_open(struct side *side, context_fn *fn)
{
	memset(side, 0, sizeof *side);
	side->stack = malloc(STACK);
	CHECK(side->stack);
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
		context_switch(&side.home, &side.away);
		CHECK_EQ(side.steps, i);
	}
	side_close(&side);
}
