/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/task.h>
#include <rophive/timer.h>

/* For the thread that shows something to somebody: posts that are worth one run however many there were, and a clock for frames that knows how late it
 * is. docs/scheduling.md has the options of a worker that go with them (ui, frame_ns, pool_share). */
HIVE_BEGIN
struct hive;
struct hive_frames;

/* "Update this once": ten thousand posts from all sides, and one run. Embed it. */
struct hive_update {
	/* yours */
	void *arg;
	/* private */
	hive_fn *fn;
	struct hive *hive;
	HIVE_ATOMIC(void *) post;
	uint32_t worker;
	uint32_t magic;
};

/* Any thread. fn(arg) runs on that IO worker; HIVE_WORKER_MAIN is the UI thread of most programs. */
void hive_update_init(struct hive_update *update, struct hive *hive, uint32_t worker, hive_fn *fn, void *arg);
/* Any thread. fn runs once after this, for all calls that came since it last began, and sees what was written before any of them. 0: it was
 * posted. 1: one is on its way already; or another thread is just posting it, and then it is refused if that is. Refused as hive_post_to(), and
 * the next call tries again. -EINVAL also: never initialised.                                                            */
int hive_update_post(struct hive_update *update);
/* Owner thread: on the worker of which fn runs, or between two steps on the thread of a guest. fn does not run any more for what was posted
 * before this; what is posted later counts again. When nobody posts any more its memory is yours. 1: one was on its way; 0. -EPERM.      */
int hive_update_stop(struct hive_update *update);

/* One frame, as its callback sees it. */
struct hive_frame {
	uint64_t number;        /* of this frame, since the start: the first one is 1 */
	int64_t due_ns, now_ns; /* its time, and when its callback was called; on the hive's clock */
	int64_t late_ns;        /* now_ns - due_ns; never negative */
	uint64_t missed;        /* whole frames left out before this one */
	int64_t period_ns;
};

/* Since the start. Of frames + missed that were due, on_time were called within the tolerance. */
struct hive_frame_stats {
	uint64_t frames, on_time, missed;
	int64_t late_p50_ns, late_p99_ns,
		late_max_ns; /* of those that were called; the first two within 1/16 above what they were, 0: none yet */
	int64_t tolerance_ns;
	uint64_t reserved[8];
};

/* On the worker on which it was started. It may stop the clock, start it again, and free it after a stop. */
typedef void hive_frame_fn(struct hive_frames *frames, const struct hive_frame *frame);

#define HIVE_FRAME_BUCKETS 512

/* Frame clock: a periodic callback, on a grid, that knows how late it is. Embed it. */
struct hive_frames {
	/* yours */
	void *arg;
	int64_t tolerance_ns; /* a frame is on time up to so late; 0: 2 ms */
	/* private */
	hive_frame_fn *on_frame;
	struct hive_timer timer;
	int64_t due_ns, period_ns; /* of the last frame */
	uint64_t number, frames, on_time, missed;
	int64_t late_max_ns;
	uint32_t magic, running;
	uint32_t late[HIVE_FRAME_BUCKETS]; /* how many were so late: buckets of 1/16 */
};

/* Any thread. */
void hive_frames_init(struct hive_frames *frames, hive_frame_fn *on_frame, void *arg);
/* Owner thread (this worker becomes it). The first frame is due one period from now; started again: from now, with all counts at zero.
 * -EINVAL: period_ns is not above 0, negative tolerance, never initialised, no function; else as hive_timer_start().     */
HIVE_CHECKED int hive_frames_start(struct hive_frames *frames, int64_t period_ns);
/* Owner thread. No frame comes after it; the counts stay. 1: it ran; 0: it did not. */
int hive_frames_stop(struct hive_frames *frames);
/* Owner thread. Starts a timer that fires with a frame: with the first one that is due at or after delay_ns from now; a period is rounded up to
 * whole frames, and timers with HIVE_DRIFT_SKIP or HIVE_DRIFT_BURST stay with them. It fires right before on_frame, which so shows what it
 * did. To stop it: hive_timer_stop(). The clock may stop before it. -EINVAL: the clock does not run; else as hive_timer_start(). */
HIVE_CHECKED int hive_frames_align(struct hive_frames *frames, struct hive_timer *timer, int64_t delay_ns,
                                   int64_t period_ns);
/* Owner thread. */
void hive_frames_read(const struct hive_frames *frames, struct hive_frame_stats *ret_stats);
HIVE_END
