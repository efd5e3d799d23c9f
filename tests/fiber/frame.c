/* SPDX-License-Identifier: MIT */
/* Fibers on a worker with a frame, or with slices: events wait for one frame and one turn of a fiber at most, in whatever way fibers follow each
 * other. The clock is the test's.                                                                                           */
#include <rophive/fiber.h>
#include <rophive/sync.h>

#include "support/lone.h"

enum { FIBERS = 64, BEATS = 300 };
#define SLICE HIVE_US(500)

static struct lone l;
static struct hive_semaphore turns[FIBERS];
static int64_t task_ns, last_turn_ns, longest_ns;
static int fibers, begun, ran, pairs; /* so many play */
static bool over;

static void work(void)
{
	ran++;
	l.f.now_ns += task_ns;
}

static int yield_often(void *arg)
{
	(void)arg;
	begun++;
	while (!over) {
		work();
		CHECK_OK(hive_yield());
	}
	return 0;
}

/* To and fro with one other. */
static int play(void *arg)
{
	size_t i = (size_t)(intptr_t)arg;

	begun++;
	do {
		CHECK_OK(hive_semaphore_acquire(&turns[i], 1, HIVE_FOREVER));
		if (!over)
			work();
		CHECK_OK(hive_semaphore_release(&turns[i ^ 1], 1));
	} while (!over);
	return 0;
}

static int nest(void *arg)
{
	intptr_t depth = (intptr_t)arg;
	struct hive_fiber *child;

	if (depth > 0 && !over) {
		CHECK_OK(hive_spawn(l.f.hive, nest, (void *)(depth - 1), NULL, &child));
		CHECK_OK(hive_fiber_join(child, HIVE_FOREVER, NULL));
	}
	work();
	return 0;
}

/* Who has waited for an end is handed over, without a queue in between; here each of them ends then. */
static int nest_often(void *arg)
{
	(void)arg;
	begun++;
	while (!over)
		nest((void *)FIBERS);
	return 0;
}

static void look_at_clock(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)script, (void)timeout_ns;
	if (last_turn_ns != 0 && l.f.now_ns - last_turn_ns > longest_ns)
		longest_ns = l.f.now_ns - last_turn_ns;
	last_turn_ns = l.f.now_ns;
}

static void beat_until_all_ended(void)
{
	over = true;
	for (int i = 0; i < FIBERS; i++)
		CHECK_OK(hive_semaphore_release(&turns[i], 1));
	for (int i = 0; i < 1000; i++)
		CHECK(lone_beat(&l, 0));
}

/* How long events had to wait at most. */
static int64_t flood(hive_fiber_fn *fn, int64_t each_ns, struct hive_worker_options options, enum hive_preset preset)
{
	memset(&l, 0, sizeof l);
	lone_open_preset(&l, 1, options, preset);
	l.f.now_ns = HIVE_S(1);
	task_ns = each_ns;
	begun = ran = 0;
	fibers = fn == play ? 2 * pairs : fn == nest_often ? 1 : FIBERS;
	over = false;
	for (int i = 0; i < FIBERS; i++)
		hive_semaphore_init(&turns[i], i % 2 == 0);
	lone_become(&l, 0);
	for (intptr_t i = 0; i < fibers; i++)
		CHECK_OK(hive_spawn(l.f.hive, fn, (void *)i, NULL, NULL));
	lone_become(&l, LONE_NOBODY);
	for (int i = 0; i < 100 * FIBERS && !options.ui && begun < FIBERS;
	     i++) /* who has begun takes no time at first */
		CHECK(lone_beat(&l, 0));
	last_turn_ns = longest_ns = 0;
	l.scripts[0].in_turn = look_at_clock;
	for (int i = 0; i < BEATS; i++)
		CHECK(lone_beat(&l, 0));
	CHECK(ran >= BEATS / 4);
	beat_until_all_ended();
	lone_close(&l);
	return longest_ns;
}

static void check_one(hive_fiber_fn *fn, int64_t each_ns, int64_t limit_ns, struct hive_worker_options options,
                      enum hive_preset preset)
{
	int64_t waited_ns = flood(fn, each_ns, options, preset);

	if (waited_ns > limit_ns + each_ns)
		fprintf(stderr, "preset %d, %d pairs, %lld ns each: events waited for %lld ns\n", (int)preset, pairs,
		        (long long)each_ns, (long long)waited_ns);
	CHECK(waited_ns <= limit_ns + each_ns);
}

static void check_all(int64_t limit_ns, struct hive_worker_options options)
{
	static const int64_t each_ns[] = { 100, HIVE_US(40), HIVE_US(700), HIVE_US(1700), HIVE_MS(5) };

	for (enum hive_preset preset = HIVE_PRESET_DEFAULT; preset <= HIVE_PRESET_VELOQ; preset++)
		for (size_t i = 0; i < sizeof each_ns / sizeof *each_ns; i++) {
			check_one(yield_often, each_ns[i], limit_ns, options, preset);
			if (options.ui) /* who takes no time at first, and then does, is noticed at once only where there is a frame */
				check_one(nest_often, each_ns[i], limit_ns, options, preset);
			for (pairs = 1; pairs <= FIBERS / 2; pairs *= 32)
				check_one(play, each_ns[i], limit_ns, options, preset);
		}
}

TEST(under_any_flood_of_fibers_events_wait_for_a_frame_and_a_turn_at_most)
{
	check_all(HIVE_MS(4), (struct hive_worker_options){ .ui = true });
}

/* Both steps, that of private tasks and that of local ones, may have something. */
TEST(slices_end_with_the_turn_of_a_fiber)
{
	check_all(2 * SLICE + HIVE_MS(5), (struct hive_worker_options){ .slice_ns = SLICE, .io_interval = 1 });
}
