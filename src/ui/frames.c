/* SPDX-License-Identifier: MIT */
/* The frame clock: a periodic timer that stays on its grid, and what is known of its lateness.
 *
 * When its function is called, the timer is armed for the first point of the grid after that beat: one period before it is the frame that is
 * due. What lies between that one and the last was left out.                                                             */
#include <rophive/hive.h>

#include "base/clock.h"
#include "sched/guest.h"

enum { FRAMES = 0x0f3a3e5 };
enum { FINE_BITS = 4, FINE = 1 << FINE_BITS }; /* buckets of 1/16 */
#define TOLERANCE_NS HIVE_MS(2)

/* a * b for neither below 0, stopping at HIVE_FOREVER. */
static int64_t time_times(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? HIVE_FOREVER : product;
}

/* Below 16 ns each has its own bucket, then 16 for each power of two; the last one takes the rest. */
static uint32_t bucket_of(int64_t late_ns)
{
	uint64_t v = late_ns > 0 ? (uint64_t)late_ns : 0;
	uint32_t power, bucket;

	if (v < FINE)
		return (uint32_t)v;
	power = 63u - (uint32_t)__builtin_clzll(v);
	bucket = (power - FINE_BITS + 1) * FINE + (uint32_t)(v >> (power - FINE_BITS) & (FINE - 1));
	return bucket < HIVE_FRAME_BUCKETS ? bucket : HIVE_FRAME_BUCKETS - 1;
}

/* The longest that is in it. */
static int64_t end_of_bucket(uint32_t bucket)
{
	uint32_t power = bucket / FINE;

	if (power == 0)
		return bucket;
	return (int64_t)(((uint64_t)FINE + bucket % FINE + 1) << (power - 1)) - 1;
}

static int64_t tolerance_of(const struct hive_frames *frames)
{
	return frames->tolerance_ns > 0 ? frames->tolerance_ns : TOLERANCE_NS;
}

static void note(struct hive_frames *frames, const struct hive_frame *frame)
{
	frames->frames++;
	frames->missed += frame->missed;
	frames->late[bucket_of(frame->late_ns)]++;
	if (frame->late_ns <= tolerance_of(frames))
		frames->on_time++;
	if (frame->late_ns > frames->late_max_ns)
		frames->late_max_ns = frame->late_ns;
}

static void on_fire(struct hive_timer *timer)
{
	struct hive_frames *frames = (struct hive_frames *)timer->arg;
	int64_t due_ns = timer->due_ns - frames->period_ns, now_ns = hive_now(NULL);
	uint64_t passed = (uint64_t)((due_ns - frames->due_ns) / frames->period_ns);
	struct hive_frame frame = {
		frames->number + passed, due_ns, now_ns, now_ns > due_ns ? now_ns - due_ns : 0, passed - 1,
		frames->period_ns
	};

	frames->due_ns = due_ns;
	frames->number = frame.number;
	note(frames, &frame);
	frames->on_frame(frames, &frame);
}

void hive_frames_init(struct hive_frames *frames, hive_frame_fn *on_frame, void *arg)
{
	if (!frames)
		return;
	*frames = (struct hive_frames){ .arg = arg, .on_frame = on_frame, .magic = FRAMES };
	hive_timer_init(&frames->timer, on_fire, frames);
}

static bool are_frames(const struct hive_frames *frames)
{
	return frames && frames->magic == FRAMES;
}

static void begin_counts(struct hive_frames *frames)
{
	frames->number = frames->frames = frames->on_time = frames->missed = 0;
	frames->late_max_ns = 0;
	for (int i = 0; i < HIVE_FRAME_BUCKETS; i++)
		frames->late[i] = 0;
}

int hive_frames_start(struct hive_frames *frames, int64_t period_ns)
{
	int r;

	if (!are_frames(frames) || !frames->on_frame || frames->tolerance_ns < 0 || period_ns <= 0)
		return -EINVAL;
	r = hive_timer_start(&frames->timer, period_ns, period_ns);
	if (r < 0)
		return r;
	frames->period_ns = period_ns;
	frames->due_ns = frames->timer.due_ns - period_ns;
	frames->running = 1;
	begin_counts(frames);
	return 0;
}

int hive_frames_stop(struct hive_frames *frames)
{
	int r;

	if (!are_frames(frames))
		return -EINVAL;
	r = hive_timer_stop(&frames->timer);
	if (r >= 0)
		frames->running = 0;
	return r;
}

/* The first frame whose time is after this one. */
static int64_t frame_after(const struct hive_frames *frames, int64_t from_ns)
{
	int64_t next_ns = frames->timer.due_ns, behind;

	if (from_ns < next_ns)
		return next_ns;
	behind = (from_ns - next_ns) / frames->period_ns + 1;
	return time_add(next_ns, time_times(behind, frames->period_ns));
}

/* A nanosecond before its frame: so it comes before on_frame, whichever was started first. */
int hive_frames_align(struct hive_frames *frames, struct hive_timer *timer, int64_t delay_ns, int64_t period_ns)
{
	int64_t due_ns, whole;

	if (!are_frames(frames) || !frames->running || period_ns < 0)
		return -EINVAL;
	due_ns = frame_after(frames, hive_deadline(NULL, delay_ns));
	whole = period_ns > 0 ? (period_ns - 1) / frames->period_ns + 1 : 0;
	return hive__timer_start_at(timer, due_ns == HIVE_FOREVER ? due_ns : due_ns - 1,
	                            time_times(whole, frames->period_ns));
}

/* Up to so many of them, counted from the least late, were not later. */
static int64_t lateness_of(const struct hive_frames *frames, uint64_t rank)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < HIVE_FRAME_BUCKETS; i++) {
		int64_t end_ns = end_of_bucket(i);

		n += frames->late[i];
		if (n >= rank)
			return end_ns < frames->late_max_ns ? end_ns : frames->late_max_ns;
	}
	return frames->late_max_ns;
}

void hive_frames_read(const struct hive_frames *frames, struct hive_frame_stats *ret_stats)
{
	if (!ret_stats)
		return;
	*ret_stats = (struct hive_frame_stats){ 0 };
	if (!are_frames(frames))
		return;
	ret_stats->tolerance_ns = tolerance_of(frames);
	ret_stats->frames = frames->frames;
	ret_stats->on_time = frames->on_time;
	ret_stats->missed = frames->missed;
	ret_stats->late_max_ns = frames->late_max_ns;
	if (frames->frames == 0)
		return;
	ret_stats->late_p50_ns = lateness_of(frames, (frames->frames + 1) / 2);
	ret_stats->late_p99_ns = lateness_of(frames, frames->frames - frames->frames / 100);
}
