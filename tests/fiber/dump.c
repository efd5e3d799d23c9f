/* SPDX-License-Identifier: MIT */
/* hive_dump() names each fiber, and says what it does and what it waits for. */
#include <pthread.h>

#include "support/dump.h"
#include "support/real.h"
#include "support/world.h"

/* The line of the fiber of this name. */
static const char *line_of(struct hive *hive, const char *name)
{
	static char line[512];
	const char *text = dump_text(hive), *at = strstr(text, name);
	size_t n;

	if (!at)
		test_fail(__FILE__, __LINE__, "no fiber %s in: %s", name, text);
	n = strcspn(at, "\n");
	snprintf(line, sizeof line, "%.*s", (int)n, at);
	return line;
}

static void check_line(struct hive *hive, const char *name, const char *words)
{
	const char *line = line_of(hive, name);

	if (!strstr(line, words))
		test_fail(__FILE__, __LINE__, "nothing of \"%s\" in: %s", words, line);
}

static struct hive_fiber *spawn_named(struct world *w, const char *name, hive_fiber_fn *fn, void *arg)
{
	struct hive_fiber_options o = { .name = name };
	struct hive_fiber *fiber;

	CHECK_OK(hive_spawn(w->hive, fn, arg, &o, &fiber));
	return fiber;
}

static int sleep_long(void *arg)
{
	(void)arg;
	return hive_sleep(HIVE_S(10));
}

static int join_it(void *arg)
{
	return hive_fiber_join(*(struct hive_fiber **)arg, HIVE_FOREVER, NULL);
}

static int wait_any_of(void *arg)
{
	size_t index;

	return hive_wait_any(arg, 2, HIVE_FOREVER, &index);
}

static int look_at_self(void *arg)
{
	check_line(arg, "introvert", "runs or is queued");
	return 0;
}

TEST(a_dump_lists_fibers_with_state_and_reason)
{
	struct world w = world_open(1, 2, 1);
	struct hive_fiber *fibers[5];

	CHECK(!strstr(dump_text(w.hive), "fibers:"));
	fibers[0] = spawn_named(&w, "sleeper", sleep_long, NULL);
	fibers[1] = spawn_named(&w, "joiner", join_it, &fibers[0]);
	fibers[2] = spawn_named(&w, "chooser", wait_any_of, fibers);
	check_line(w.hive, "sleeper", "not begun");
	world_settle(&w);
	fibers[3] = spawn_named(&w, "newcomer", sleep_long, NULL);
	CHECK(strstr(dump_text(w.hive), "fibers:"));
	check_line(w.hive, "sleeper", "waits: sleep");
	check_line(w.hive, "joiner", "waits: join");
	check_line(w.hive, "chooser", "waits: wait_any");
	check_line(w.hive, "newcomer", "not begun");
	check_line(w.hive, "sleeper", "stack ");
	check_line(w.hive, "sleeper", ", fn 0x");
	fibers[4] = spawn_named(&w, "introvert", look_at_self, w.hive);
	CHECK_EQ(world_result(fibers[4]), 0);
	CHECK(!strstr(dump_text(w.hive), "introvert")); /* ended, joined */
	CHECK_EQ(world_result(fibers[1]), 0);
	CHECK_EQ(world_result(fibers[2]), 0);
	CHECK_EQ(world_result(fibers[3]), 0);
	CHECK(!strstr(dump_text(w.hive), "fibers:"));
	world_close(&w, HIVE_DRAIN);
}

static int do_nothing(void *arg)
{
	return arg != NULL;
}

/* One that ended and was not joined is no longer listed; one that could not be spawned never was. */
TEST(a_dump_lists_nobody_who_is_not_there)
{
	struct world w = world_open(1, 1, 0);
	struct hive_fiber *fiber = spawn_named(&w, "departed", do_nothing, NULL);

	world_settle(&w);
	CHECK(!strstr(dump_text(w.hive), "departed"));
	CHECK_EQ(world_result(fiber), 0);
	world_close(&w, HIVE_DRAIN);
	w = world_with((struct hive_sim_options){ .fail_percent = 100 }, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_spawn(w.hive, do_nothing, NULL, &(struct hive_fiber_options){ .name = "first" }, NULL));
	world_settle(&w); /* memory is good until the first beat */
	for (int i = 0; i < 10000; i++) {
		struct hive_fiber_options o = { .name = "ghost" };
		int r = hive_spawn(w.hive, do_nothing, NULL, &o, NULL);

		if (r == -ENOMEM)
			break;
		CHECK_OK(r);
		world_settle(&w);
	}
	CHECK(!strstr(dump_text(w.hive), "ghost"));
	world_close(&w, HIVE_DRAIN);
}

/* ---- while everybody runs ---- */

static _Atomic bool over;

static int come_and_go(void *arg)
{
	struct hive_fiber *child;

	(void)arg;
	while (!over) {
		CHECK_OK(hive_spawn(hive_current(), do_nothing, NULL, &(struct hive_fiber_options){ .name = "child" },
		                    &child));
		CHECK_OK(hive_yield());
		CHECK_OK(hive_fiber_join(child, HIVE_FOREVER, NULL));
	}
	return 0;
}

/* A dump disturbs nobody, and nobody disturbs a dump. */
TEST(a_dump_may_be_taken_while_fibers_come_and_go)
{
	struct hive *hive = real_start((struct hive_options){ .io_workers = 2 });
	struct hive_fiber *parents[4];
	int rounds = 200 / test_slowness();

	over = false;
	for (int i = 0; i < 4; i++)
		CHECK_OK(hive_spawn(hive, come_and_go, NULL, &(struct hive_fiber_options){ .name = "parent" },
		                    &parents[i]));
	for (int i = 0; i < rounds; i++)
		CHECK(strstr(dump_text(hive), "hive running"));
	over = true;
	for (int i = 0; i < 4; i++) /* before the stop: it would refuse their last children */
		CHECK_OK(hive_fiber_join(parents[i], real_patience(), NULL));
	real_end(hive, HIVE_DRAIN);
}
