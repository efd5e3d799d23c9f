/* SPDX-License-Identifier: MIT */
/* What hive_dump() says of fibers, up to the functions in which they wait. Built with frame pointers (cmake/tests.cmake). */
#include <rophive/hive.h>

#include "support/dump.h"
#include "support/real.h"
#include "test.h"

#define OWN_FRAME __attribute__((noinline))

enum { FUNCTION_BYTES_MAX = 1024 };

static struct hive_semaphore nothing;
static void *in_middle, *in_outer; /* where inner() and middle() return to: addresses that the dump must name */
static volatile int after;         /* something to do after a call, so that it is not the last of its caller */

static OWN_FRAME int inner(void)
{
	int r;

	in_middle = __builtin_return_address(0);
	r = hive_semaphore_acquire(&nothing, 1, HIVE_FOREVER);
	after++;
	return r;
}

static OWN_FRAME int middle(void)
{
	int r;

	in_outer = __builtin_return_address(0);
	r = inner();
	after++;
	return r;
}

static OWN_FRAME int outer(void *arg)
{
	int r = middle();

	(void)arg;
	after++;
	return r;
}

/* The dump, once it has these words. */
static const char *dump_with(struct hive *hive, const char *words)
{
	const char *text;

	WAIT_UNTIL(strstr(text = dump_text(hive), words));
	return text;
}

static void check_says(const char *text, const char *words)
{
	if (!strstr(text, words))
		test_fail(__FILE__, __LINE__, "nothing of \"%s\" in: %s", words, text);
}

static struct hive *open_with(hive_fiber_fn *fn, const char *name, struct hive_fiber **ret_fiber)
{
	struct hive_fiber_options options = { .name = name };
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });

	hive_semaphore_init(&nothing, 0);
	CHECK_OK(hive_spawn(hive, fn, NULL, &options, ret_fiber));
	return hive;
}

static void close_with(struct hive *hive, struct hive_fiber *fiber)
{
	int result = 1;

	CHECK_OK(hive_semaphore_release(&nothing, 1));
	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
	CHECK_EQ(result, 0);
	if (strstr(dump_text(hive), "fibers:"))
		test_fail(__FILE__, __LINE__, "an ended fiber is still told of: %s", dump_text(hive));
	CHECK_OK(hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

TEST(a_dump_tells_name_reason_stack_and_function_of_a_fiber)
{
	struct hive_fiber *fiber;
	struct hive *hive = open_with(outer, "patient", &fiber);
	const char *text = dump_with(hive, "patient: waits: semaphore, stack ");
	char fn[64];

	snprintf(fn, sizeof fn, " KiB, fn %p", (void *)(uintptr_t)outer);
	check_says(text, fn);
	check_says(text, "  in all 1; names: addr2line");
	close_with(hive, fiber);
}

static int deaf(void *arg)
{
	struct block *block = (struct block *)arg;

	CHECK_ERR(hive_semaphore_acquire(&nothing, 1, HIVE_FOREVER), -ECANCELED);
	block_task(block); /* keeps its worker */
	return 7;
}

TEST(a_cancelled_fiber_is_told_of_as_such)
{
	struct hive_fiber_options options = { .name = "deaf" };
	struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
	struct hive_fiber *fiber;
	struct block block;
	int result = 0;

	hive_semaphore_init(&nothing, 0);
	block_init(&block);
	CHECK_OK(hive_spawn(hive, deaf, &block, &options, &fiber));
	CHECK_OK(hive_fiber_cancel(fiber));
	gate_pass(&block.entered);
	check_says(dump_text(hive), "deaf: runs or is queued, cancelled, stack ");
	gate_open(&block.leave);
	CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, &result));
	CHECK_EQ(result, 7);
	block_destroy(&block);
	CHECK_OK(hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
}

/* The addresses behind "at" in order; the walk passes through the library's own frames first. */
static void check_addresses(const char *text)
{
	const char *at = strstr(text, "\n    at 0x");
	uintptr_t before = 0, address = 0;
	char *end = NULL;

	if (!at) {
		printf("skipped: this switch tells no addresses\n");
		return;
	}
	for (at += strlen("\n    at "); address != (uintptr_t)in_middle; at = end) {
		before = address;
		address = (uintptr_t)strtoull(at, &end, 16);
		if (end == at)
			test_fail(__FILE__, __LINE__, "%p is missing in: %s", in_middle, text);
	}
	CHECK(before > (uintptr_t)inner && before - (uintptr_t)inner < FUNCTION_BYTES_MAX);
	CHECK_EQ((uintptr_t)strtoull(at, &end, 16), (uintptr_t)in_outer);
}

TEST(a_dump_leads_through_the_library_to_the_functions_that_wait)
{
	struct hive_fiber *fiber;
	struct hive *hive = open_with(outer, "patient", &fiber);
	char *text = strdup(dump_with(hive, "patient: waits: semaphore"));

	CHECK(text);
	close_with(hive, fiber); /* only now we know what the fiber has written down */
	check_addresses(text);
	free(text);
}

static int child(void *arg)
{
	(void)arg;
	return hive_yield();
}

/* Fibers come, wait and go on the same few stacks until there is an end. */
static int busy(void *arg)
{
	struct hive_fiber_options options = { .name = "one of many, with a long name" };
	struct hive_fiber *children[4];

	(void)arg;
	while (hive_semaphore_acquire(&nothing, 1, HIVE_NOWAIT) == -ETIMEDOUT) {
		for (int i = 0; i < 4; i++)
			CHECK_OK(hive_spawn(hive_current(), child, NULL, &options, &children[i]));
		for (int i = 0; i < 4; i++)
			CHECK_OK(hive_fiber_join(children[i], HIVE_FOREVER, NULL));
	}
	return 0;
}

TEST(dumps_disturb_nobody_while_fibers_come_and_go)
{
	struct hive_fiber *fiber;
	struct hive *hive = open_with(busy, "busy", &fiber);

	for (int i = 0; i < 50; i++)
		check_says(dump_with(hive, " busy: "), "  in all ");
	dump_with(hive, " one of many, with a long name: ");
	close_with(hive, fiber);
}
