/* SPDX-License-Identifier: MIT */
/* Timers and delayed posts of one worker against a list that is searched from end to end: never early, in the order of
 * (due time, start), cancelled exactly once, periods as their drift says, nothing forgotten. The worker makes its beats
 * when the input says so; operations are made from outside, from tasks and from the callbacks themselves.              */
#include "world.h"

enum { ENTRIES = 300, TIMERS = 8, BEATS = 200 };

enum state { FREE, WAITING, RAN, CANCELLED, DROPPED };

struct entry { /* a delayed post, or one arming of a timer */
	enum state state;
	bool placed; /* among the worker's timers; else still on its way */
	int64_t due_ns;
	uint64_t sequence, id;
};

static struct {
	struct world world;
	struct hive *hive;
	struct input in;
	struct entry posts[ENTRIES];
	int post_count;
	struct hive_timer timers[TIMERS];
	struct entry armed[TIMERS];
	int64_t period_ns[TIMERS];
	uint64_t sequence;
	int64_t beat_now_ns; /* the time that the timers of this beat go by; -1: none fired yet */
	bool stopping;
	long told; /* failed requests for memory that a call of ours has answered for */
	uint64_t posted, ran, cancelled, dropped;
} t;

static void operations(void);

static int64_t later(int64_t delay_ns)
{
	delay_ns = delay_ns > 0 ? delay_ns : 0;
	return delay_ns > HIVE_FOREVER - t.world.now_ns ? HIVE_FOREVER : t.world.now_ns + delay_ns;
}

static void place(struct entry *e, int64_t due_ns)
{
	e->state = WAITING;
	e->placed = true;
	e->due_ns = due_ns;
	e->sequence = t.sequence++;
}

/* What was on its way has arrived when the worker begins a beat. */
static void arrivals(void)
{
	for (int i = 0; i < t.post_count; i++)
		if (!t.posts[i].placed) {
			t.posts[i].placed = true;
			t.posts[i].sequence = t.sequence++;
		}
}

static bool before(const struct entry *a, const struct entry *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

static const struct entry *first_waiting(void)
{
	const struct entry *first = NULL;

	for (int i = 0; i < t.post_count; i++)
		if (t.posts[i].state == WAITING && t.posts[i].placed && (!first || before(&t.posts[i], first)))
			first = &t.posts[i];
	for (int i = 0; i < TIMERS; i++)
		if (t.armed[i].state == WAITING && (!first || before(&t.armed[i], first)))
			first = &t.armed[i];
	return first;
}

/* Something fires. It must be the first of all that wait, and its time must have come. */
static void check_turn(const struct entry *e)
{
	EXPECT(t.world.stepping);
	EXPECT_EQ(e->state, WAITING);
	if (t.beat_now_ns < 0)
		t.beat_now_ns = t.world.now_ns;
	EXPECT(e->due_ns <= t.beat_now_ns);
	EXPECT(e->due_ns != HIVE_FOREVER);
	/* A post that found no memory among the timers waits beside them, and comes when its time has come, in no order. */
	if (t.world.memory.failed == t.told)
		EXPECT(first_waiting() == e);
}

/* After each call that may need memory: 0, or it says that there was none. */
static bool no_memory(long failed_before, int r)
{
	t.told += t.world.memory.failed - failed_before;
	return excused(&t.world.memory, failed_before, r);
}

static void on_post(void *arg)
{
	struct entry *e = (struct entry *)arg;

	if (t.stopping) /* it was due when stop was asked for, so it counts as queued */
		EXPECT(e->state == WAITING && e->due_ns <= t.world.now_ns);
	else
		check_turn(e);
	e->state = RAN;
	t.ran++;
	operations();
}

static void on_drop(void *hook_arg, const struct hive_task *task)
{
	struct entry *e = (struct entry *)task->arg;

	(void)hook_arg;
	EXPECT(t.stopping);
	t.dropped++;
	if (!e)
		return;
	EXPECT(task->fn == on_post && e->state == WAITING);
	e->state = DROPPED;
}

/* The grid of a period, the slow way round where that is possible. */
static int64_t next_on_grid(int64_t due_ns, int64_t period_ns, int64_t now_ns)
{
	int64_t skipped = (now_ns - due_ns) / period_ns;

	if (due_ns + skipped * period_ns > HIVE_FOREVER - period_ns)
		return HIVE_FOREVER;
	return due_ns + (skipped + 1) * period_ns;
}

static void on_timer(struct hive_timer *timer)
{
	int i = (int)(timer - t.timers);
	struct entry *e = &t.armed[i];
	uint64_t mine;

	EXPECT(timer->arg == e);
	EXPECT(!t.stopping);
	check_turn(e);
	if (t.period_ns[i] == 0)
		e->state = FREE;
	else if (timer->drift == HIVE_DRIFT_SKIP)
		place(e, next_on_grid(e->due_ns, t.period_ns[i], t.beat_now_ns));
	else if (timer->drift == HIVE_DRIFT_BURST)
		place(e, e->due_ns > HIVE_FOREVER - t.period_ns[i] ? HIVE_FOREVER : e->due_ns + t.period_ns[i]);
	else
		place(e, HIVE_FOREVER);
	mine = e->sequence;
	operations();
	/* Neither stopped nor started anew in its callback: the next period counts from the end. */
	if (t.period_ns[i] > 0 && timer->drift == HIVE_DRIFT_DELAY && e->state == WAITING && e->sequence == mine)
		place(e, later(t.period_ns[i]));
}

static void script(void *arg)
{
	(void)arg;
	t.ran++;
	operations();
}

static bool inside(void)
{
	return t.world.stepping > 0;
}

static void post(int64_t delay_ns, bool to_self)
{
	struct entry *e = &t.posts[t.post_count];
	long failed = t.world.memory.failed;
	uint64_t id = 0;
	int r;

	if (t.post_count == ENTRIES)
		return;
	r = to_self ? hive_post_self_after(delay_ns, on_post, e, &id)
	            : hive_post_after(t.hive, delay_ns, on_post, e, &id);
	if (t.stopping || (to_self && !inside())) {
		EXPECT_EQ(r, to_self && !inside() ? -EPERM : -ESHUTDOWN);
		EXPECT_EQ(id, 0);
		return;
	}
	if (no_memory(failed, r))
		return;
	EXPECT_EQ(r, 0);
	EXPECT(id != 0);
	*e = (struct entry){ .state = WAITING, .due_ns = later(delay_ns), .id = id };
	if (to_self)
		place(e, e->due_ns);
	t.post_count++;
	t.posted++;
}

static void cancel(uint64_t id)
{
	struct entry *e = NULL;
	int r = hive_post_cancel(t.hive, id);

	for (int i = 0; i < t.post_count; i++)
		if (t.posts[i].id == id && t.posts[i].state == WAITING)
			e = &t.posts[i];
	if (t.stopping && r == -ESRCH && e)
		return; /* due while the hive drains */
	EXPECT_EQ(r, e ? 0 : -ESRCH);
	if (!e)
		return;
	e->state = CANCELLED;
	t.cancelled++;
}

static void start(int i, int64_t delay_ns, int64_t period_ns, uint32_t drift)
{
	struct entry *e = &t.armed[i];
	long failed = t.world.memory.failed;
	int r;

	if (e->state != WAITING)
		t.timers[i].drift = (enum hive_drift)drift;
	r = hive_timer_start(&t.timers[i], delay_ns, period_ns);
	if (period_ns < 0 || !inside() || t.stopping) {
		EXPECT_EQ(r, period_ns < 0 ? -EINVAL : !inside() ? -EPERM : -ESHUTDOWN);
		return;
	}
	if (no_memory(failed, r) && e->state != WAITING)
		return;
	EXPECT_EQ(r, 0);
	place(e, later(delay_ns));
	t.period_ns[i] = period_ns;
}

static void stop(int i)
{
	struct entry *e = &t.armed[i];
	int r = hive_timer_stop(&t.timers[i]);

	if (e->state == WAITING && !inside()) {
		EXPECT_EQ(r, -EPERM);
		return;
	}
	if (!t.stopping) /* else it may have fallen silent already */
		EXPECT_EQ(r, e->state == WAITING);
	e->state = FREE;
	/* The memory is the caller's again, whatever he makes of it. */
	memset(&t.timers[i], 0x5a, sizeof t.timers[i]);
	EXPECT_EQ(hive_timer_stop(&t.timers[i]), -EINVAL);
	hive_timer_init(&t.timers[i], on_timer, e);
}

/* A beat. If it asks for a rest, then nothing that waits is due, and the rest ends no later than the first is due. */
static bool beat(void)
{
	const struct entry *first;
	int64_t wait_ns;

	if (t.world.beats_left-- <= 0)
		return false;
	arrivals();
	t.beat_now_ns = -1;
	wait_ns = world_step(&t.world, 0);
	if (wait_ns <= 0)
		return wait_ns == 0;
	first = first_waiting();
	EXPECT(!first || first->due_ns == HIVE_FOREVER || first->due_ns - t.world.now_ns >= wait_ns);
	return false;
}

static void advance(int64_t ns)
{
	if (ns > 0)
		t.world.now_ns = ns > INT64_MAX - 1 - t.world.now_ns ? INT64_MAX - 1 : t.world.now_ns + ns;
}

static void post_script(void)
{
	long failed = t.world.memory.failed;
	int r = hive_post_to(t.hive, HIVE_WORKER_MAIN, script, NULL);

	if (t.stopping)
		EXPECT_EQ(r, -ESHUTDOWN);
	else
		EXPECT(no_memory(failed, r) || r == 0);
	t.posted += r == 0;
}

static void cancel_some(uint32_t from, uint32_t step)
{
	for (int i = (int)from; i < t.post_count; i += (int)step + 1)
		cancel(t.posts[i].id);
}

static void one_operation(void)
{
	uint32_t what = input_below(&t.in, 16), i;

	switch (what) {
	case 0:
	case 1:
		for (i = 0; i < 20 && !inside() && beat(); i++)
			;
		break;
	case 2:
		advance(input_time(&t.in));
		break;
	case 3:
		cancel(input_below(&t.in, 8) ? t.posts[input_word(&t.in, 2) % ENTRIES].id : input_word(&t.in, 8));
		break;
	case 4:
		cancel_some(input_byte(&t.in), input_below(&t.in, 3));
		break;
	case 5: /* a crowd with equal times */
		for (i = input_below(&t.in, 100); i-- > 0;)
			post(i % 3, inside() && i % 2);
		break;
	case 6:
	case 7:
		post(input_time(&t.in), input_byte(&t.in) & 1);
		break;
	case 8:
	case 9:
	case 10:
		i = input_byte(&t.in);
		start((int)i % TIMERS, input_time(&t.in), i & 0x80 ? input_time(&t.in) : 0, i / TIMERS % 3);
		break;
	case 11:
		stop((int)input_below(&t.in, TIMERS));
		break;
	case 12:
		t.world.memory.fail_in = input_below(&t.in, 4);
		break;
	default:
		post_script();
	}
}

/* A few of the input's operations, made here and now. */
static void operations(void)
{
	for (uint32_t n = input_below(&t.in, 6); n > 0 && input_more(&t.in); n--)
		one_operation();
}

static void finish(void)
{
	enum hive_stop_mode mode = input_below(&t.in, 2) ? HIVE_DRAIN : HIVE_NOW;
	struct hive_report report;
	int64_t stop_ns = t.world.now_ns;

	t.world.memory.fail_in = 0;
	EXPECT_EQ(hive_stop(t.hive, mode, HIVE_FOREVER), 0);
	t.stopping = true;
	EXPECT_EQ(hive_join(t.hive, HIVE_FOREVER), 0);
	for (int i = 0; i < t.post_count; i++) {
		EXPECT(t.posts[i].state != WAITING);
		if (t.posts[i].state == DROPPED)
			EXPECT(mode == HIVE_NOW || t.posts[i].due_ns > stop_ns);
	}
	EXPECT_EQ(hive_report_read(t.hive, &report), 0);
	EXPECT_EQ(report.posted, t.posted);
	EXPECT_EQ(report.ran, t.ran);
	EXPECT_EQ(report.cancelled, t.cancelled);
	EXPECT_EQ(report.dropped, t.dropped);
	EXPECT_EQ(report.posted, report.ran + report.cancelled + report.dropped);
	EXPECT_EQ(hive_destroy(t.hive), 0);
	EXPECT_EQ(t.world.memory.live, 0);
}

static void run_with(enum hive_timers kind, const uint8_t *data, size_t size)
{
	static const int32_t budgets[] = { 64, 1, 3, 0 };
	struct hive_worker_options worker = { .timers = kind, .local_capacity = 4, .slice_ns = INT64_MAX };
	struct hive_options options = { .io_workers = 1, .io = &worker, .hook_arg = &t.world, .on_drop = on_drop };
	uint8_t how;

	memset(&t, 0, sizeof t);
	t.in = input_of(data, size);
	how = input_byte(&t.in);
	world_init(&t.world, how, how & 0x80 ? INT64_MAX - 100 : how & 0x40 ? 0 : HIVE_S(1000));
	t.world.beats_left = BEATS;
	worker.timer_budget = budgets[how & 3];
	worker.private_budget = budgets[how >> 2 & 3];
	options.host = &t.world.host;
	options.on_warn = world_warn;
	for (int i = 0; i < TIMERS; i++)
		hive_timer_init(&t.timers[i], on_timer, &t.armed[i]);
	EXPECT_EQ(hive_create(&options, &t.hive), 0);
	EXPECT_EQ(hive_start(t.hive), 0);
	while (input_more(&t.in))
		one_operation();
	finish();
}

/* The same with the timers in a heap and in a wheel. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	run_with(HIVE_TIMERS_HEAP, data, size);
	run_with(HIVE_TIMERS_WHEEL, data, size);
	return 0;
}
