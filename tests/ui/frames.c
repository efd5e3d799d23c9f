/* SPDX-License-Identifier: MIT */
/* The frame clock in virtual time: lateness to the nanosecond, frames that are left out, timers that go with them. */
#include "test.h"

#include <rophive/hive.h>
#include <rophive/sim.h>

#define PERIOD HIVE_MS(16)

static struct hive_sim *sim;
static struct hive *hive;
static struct hive_frames frames;
static struct hive_frame seen[512];
static int count;
static int64_t busy_ns[512]; /* what the callback of each frame takes */
static int stop_at;
static char trail[256];

static void trace(char c)
{
	size_t n = strlen(trail);

	if (n + 1 < sizeof trail)
		trail[n] = c;
}

static void on_frame(struct hive_frames *which, const struct hive_frame *frame)
{
	CHECK(which == &frames && which->arg == &sim);
	CHECK_EQ(frame->now_ns, hive_now(NULL));
	CHECK_EQ(frame->late_ns, frame->now_ns - frame->due_ns);
	CHECK_EQ(frame->period_ns, PERIOD);
	trace('F');
	seen[count] = *frame;
	if (busy_ns[count] > 0)
		CHECK_OK(hive_sim_spend(sim, busy_ns[count]));
	count++;
	if (stop_at == count)
		CHECK_EQ(hive_frames_stop(which), 1);
}

static void start(void *arg)
{
	(void)arg;
	CHECK_OK(hive_frames_start(&frames, PERIOD));
}

static void open_world(void)
{
	memset(busy_ns, 0, sizeof busy_ns);
	memset(trail, 0, sizeof trail);
	count = stop_at = 0;
	CHECK_OK(hive_sim_create(&(struct hive_sim_options){ .seed = 3 }, &sim));
	CHECK_OK(hive_create(&(struct hive_options){ .io_workers = 1, .host = hive_sim_host(sim) }, &hive));
	CHECK_OK(hive_start(hive));
	hive_frames_init(&frames, on_frame, &sim);
}

static void close_world(void)
{
	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_OK(hive_destroy(hive));
	CHECK_OK(hive_sim_destroy(sim));
}

static void post(hive_fn *fn, void *arg)
{
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, fn, arg));
	hive_sim_advance(sim, 0);
}

TEST(frames_come_on_a_grid_and_on_time)
{
	struct hive_frame_stats stats;
	int64_t began;

	open_world();
	began = hive_now(hive);
	post(start, NULL);
	hive_sim_advance(sim, 100 * PERIOD);
	CHECK_EQ(count, 100);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(seen[i].number, i + 1);
		CHECK_EQ(seen[i].due_ns, began + (i + 1) * PERIOD);
		CHECK_EQ(seen[i].late_ns, 0);
		CHECK_EQ(seen[i].missed, 0);
	}
	hive_frames_read(&frames, &stats);
	CHECK_EQ(stats.frames, 100);
	CHECK_EQ(stats.on_time, 100);
	CHECK_EQ(stats.missed + (uint64_t)stats.late_max_ns + (uint64_t)stats.late_p99_ns, 0);
	CHECK_EQ(stats.tolerance_ns, HIVE_MS(2));
	close_world();
}

static void spend(void *arg)
{
	CHECK_OK(hive_sim_spend(sim, *(int64_t *)arg));
}

/* A task in the way: the frame is as late as that takes longer, and not one nanosecond more. */
TEST(lateness_is_what_was_in_the_way)
{
	struct hive_frame_stats stats;
	int64_t takes = PERIOD + HIVE_MS(3);

	open_world();
	post(start, NULL);
	post(spend, &takes);
	hive_sim_advance(sim, 10 * PERIOD);
	CHECK_EQ(seen[0].late_ns, HIVE_MS(3));
	CHECK_EQ(seen[0].number, 1);
	CHECK_EQ(seen[1].late_ns, 0);
	hive_frames_read(&frames, &stats);
	CHECK_EQ(stats.frames, 10);
	CHECK_EQ(stats.on_time, 9);
	CHECK_EQ(stats.late_max_ns, HIVE_MS(3));
	CHECK_EQ(stats.late_p50_ns, 0);
	CHECK_EQ(stats.late_p99_ns, HIVE_MS(3));
	close_world();
}

/* Whole frames that passed are told with the next one, which is the last that is due. */
TEST(frames_that_are_left_out_are_counted)
{
	struct hive_frame_stats stats;

	open_world();
	busy_ns[2] = 5 * PERIOD + HIVE_MS(1); /* frames 4 to 7 pass, 8 is a millisecond late */
	post(start, NULL);
	hive_sim_advance(sim, 20 * PERIOD);
	CHECK_EQ(seen[2].number, 3);
	CHECK_EQ(seen[3].number, 8);
	CHECK_EQ(seen[3].missed, 4);
	CHECK_EQ(seen[3].late_ns, HIVE_MS(1));
	CHECK_EQ(seen[3].due_ns, seen[2].due_ns + 5 * PERIOD);
	CHECK_EQ(seen[4].number, 9);
	CHECK_EQ(seen[4].missed, 0);
	hive_frames_read(&frames, &stats);
	CHECK_EQ(stats.frames + stats.missed, 20);
	CHECK_EQ(stats.missed, 4);
	CHECK_EQ(stats.on_time, 16);
	close_world();
}

/* Percentiles are at most 1/16 above what they are; the tolerance is the user's. */
TEST(percentiles_are_close)
{
	struct hive_frame_stats stats;

	open_world();
	for (int i = 0; i < 200; i++)
		busy_ns[i] = PERIOD + HIVE_US(10) * (i + 1); /* the next one is so late, and then one is not */
	frames.tolerance_ns = HIVE_US(500);
	post(start, NULL);
	hive_sim_advance(sim, 400 * PERIOD);
	hive_frames_read(&frames, &stats);
	CHECK_EQ(stats.tolerance_ns, HIVE_US(500));
	CHECK(stats.on_time < stats.frames && stats.on_time > 0);
	for (uint64_t i = 0, on_time = 0; i < stats.frames; i++) {
		on_time += seen[i].late_ns <= HIVE_US(500);
		if (i + 1 == stats.frames)
			CHECK_EQ(on_time, stats.on_time);
	}
	for (int percent = 50; percent <= 99; percent += 49) {
		int64_t told = percent == 50 ? stats.late_p50_ns : stats.late_p99_ns;
		uint64_t below = 0, within = 0;

		for (uint64_t i = 0; i < stats.frames; i++) {
			below += seen[i].late_ns <= told;
			within += seen[i].late_ns <= told - told / 16 - 1;
		}
		CHECK(below * 100 >= stats.frames * (uint64_t)percent);
		CHECK(within * 100 <= stats.frames * (uint64_t)percent);
	}
	close_world();
}

TEST(it_may_be_stopped_in_its_frame_and_started_again)
{
	struct hive_frame_stats stats;

	open_world();
	stop_at = 3;
	post(start, NULL);
	hive_sim_advance(sim, 10 * PERIOD);
	CHECK_EQ(count, 3);
	hive_frames_read(&frames, &stats);
	CHECK_EQ(stats.frames, 3);
	post(start, NULL);
	hive_sim_advance(sim, 2 * PERIOD);
	CHECK_EQ(count, 5);
	CHECK_EQ(seen[3].number, 1);
	hive_frames_read(&frames, &stats);
	CHECK_EQ(stats.frames, 2);
	close_world();
}

/* ---- timers that go with frames ---- */

struct aligned {
	struct hive_timer timer;
	int64_t delay_ns, period_ns, asked_ns, fired_ns[64];
	int fired;
};

static void on_aligned(struct hive_timer *timer)
{
	struct aligned *a = timer->arg;

	trace('a');
	a->fired_ns[a->fired++] = hive_now(NULL);
}

static void align(void *arg)
{
	struct aligned *a = arg;

	a->asked_ns = hive_now(NULL);
	CHECK_OK(hive_frames_align(&frames, &a->timer, a->delay_ns, a->period_ns));
}

TEST(aligned_timers_fire_right_before_the_first_frame_that_is_late_enough)
{
	static const int64_t delays[] = { -5,         0,          1,
		                          HIVE_MS(1), PERIOD - 1, PERIOD,
		                          PERIOD + 1, 3 * PERIOD, 3 * PERIOD + HIVE_MS(7) };

	for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
		struct aligned a = { .delay_ns = delays[i] };
		int64_t wanted, base;

		open_world();
		base = hive_now(hive);
		post(start, NULL);
		hive_sim_advance(sim, 2 * PERIOD + HIVE_MS(5));
		hive_timer_init(&a.timer, on_aligned, &a);
		memset(trail, 0, sizeof trail);
		post(align, &a);
		wanted = base + ((a.asked_ns - base + (delays[i] > 0 ? delays[i] : 0)) / PERIOD + 1) * PERIOD;
		hive_sim_advance(sim, 8 * PERIOD);
		CHECK_EQ(a.fired, 1);
		CHECK_EQ(a.fired_ns[0], wanted - 1);
		CHECK(a.fired_ns[0] >= a.asked_ns + delays[i]);
		CHECK(strstr(trail, "aF") != NULL);
		close_world();
	}
}

TEST(periods_are_rounded_up_to_frames_and_stay_with_them)
{
	struct aligned a = { .period_ns = PERIOD + 1 };

	open_world();
	busy_ns[6] = 3 * PERIOD; /* some are left out, and the grid is the same afterwards */
	post(start, NULL);
	hive_timer_init(&a.timer, on_aligned, &a);
	post(align, &a);
	hive_sim_advance(sim, 30 * PERIOD);
	CHECK(a.fired >= 12);
	for (int i = 1; i < a.fired; i++)
		if (a.fired_ns[i] % PERIOD == a.fired_ns[0] % PERIOD)
			CHECK_EQ((a.fired_ns[i] - a.fired_ns[0]) % (2 * PERIOD), 0);
		else
			CHECK(a.fired_ns[i] - a.fired_ns[i - 1] > 2 * PERIOD); /* the one that was in the way */
	close_world();
}

/* ---- errors ---- */

static void try_wrong(void *arg)
{
	struct hive_frames none = { 0 };
	struct hive_timer timer;

	(void)arg;
	hive_timer_init(&timer, on_aligned, NULL);
	CHECK_ERR(hive_frames_start(NULL, PERIOD), -EINVAL);
	CHECK_ERR(hive_frames_start(&none, PERIOD), -EINVAL);
	CHECK_ERR(hive_frames_start(&frames, 0), -EINVAL);
	CHECK_ERR(hive_frames_start(&frames, -1), -EINVAL);
	frames.tolerance_ns = -1;
	CHECK_ERR(hive_frames_start(&frames, PERIOD), -EINVAL);
	frames.tolerance_ns = 0;
	CHECK_ERR(hive_frames_stop(NULL), -EINVAL);
	CHECK_ERR(hive_frames_stop(&none), -EINVAL);
	CHECK_EQ(hive_frames_stop(&frames), 0);
	CHECK_ERR(hive_frames_align(&frames, &timer, 0, 0), -EINVAL); /* it does not run */
	CHECK_OK(hive_frames_start(&frames, PERIOD));
	CHECK_ERR(hive_frames_align(&frames, &timer, 0, -1), -EINVAL);
	CHECK_ERR(hive_frames_align(&frames, NULL, 0, 0), -EINVAL);
	CHECK_OK(hive_frames_align(&frames, &timer, HIVE_FOREVER, HIVE_FOREVER)); /* never */
	CHECK_EQ(hive_timer_stop(&timer), 1);
	CHECK_EQ(hive_frames_stop(&frames), 1);
	hive_frames_init(&frames, NULL, NULL);
	CHECK_ERR(hive_frames_start(&frames, PERIOD), -EINVAL);
}

TEST(what_makes_no_sense_is_refused)
{
	struct hive_frame_stats stats;

	open_world();
	CHECK_MISUSE(hive_frames_start(&frames, PERIOD), -EPERM);
	post(try_wrong, NULL);
	hive_frames_init(NULL, on_frame, NULL);
	hive_frames_read(NULL, &stats);
	CHECK_EQ(stats.frames, 0);
	hive_frames_read(&frames, NULL);
	close_world();
}
