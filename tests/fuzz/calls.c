/* SPDX-License-Identifier: MIT */
/* Sequences of public calls, from outside and from inside tasks, timers, events and hooks, against a reference scheduler that
 * says what each call must answer and what may run where and when. Workers make a beat when they were woken or their time
 * has come, so a lost wake-up shows as a task that never runs. At the end the ledger must balance.                       */
#include "calls_model.h"

#include <fcntl.h>
#include <unistd.h>

static struct task *new_task(enum door door, uint32_t target)
{
	struct task *k;

	if (m.task_count == TASKS)
		return NULL;
	k = &m.tasks[m.task_count];
	*k = (struct task){ .door = door, .target = target, .number = (uint64_t)m.task_count + 1 };
	return k;
}

/* What every door says, but for what is special to it. */
static int door_answer(int special)
{
	return stopping() ? -ESHUTDOWN : special;
}

/* The call has answered: as expected, or there was no memory. Accepted tasks from here on exist. */
static bool settled(int r, int expected, long failed_before, int tasks)
{
	if (expected == 0 && excused(&m.world.memory, failed_before, r))
		return false;
	EXPECT_EQ(r, expected);
	m.refused += r == -ESHUTDOWN ? (uint64_t)tasks : 0;
	for (int i = 0; r == 0 && i < tasks; i++)
		m.tasks[m.task_count++].state = WAITING;
	m.posted += r == 0 ? (uint64_t)tasks : 0;
	return r == 0;
}

static int own_answer(void)
{
	return on_io_worker() ? door_answer(0) : -EPERM;
}

static void post(enum door door)
{
	struct task *k = new_task(door, hive_worker_current());
	long failed = m.world.memory.failed;

	if (!k)
		return;
	switch (door) {
	case POOL:
		settled(hive_post(m.hive, on_task, k), door_answer(0), failed, 1);
		break;
	case COMPUTE:
		settled(hive_post_compute(m.hive, on_task, k), door_answer(0), failed, 1);
		break;
	case LOCAL:
		settled(hive_post_local(on_task, k), own_answer(), failed, 1);
		break;
	default:
		settled(hive_post_self(on_task, k), own_answer(), failed, 1);
	}
}

static void post_many(enum door door, int count)
{
	long failed = m.world.memory.failed;
	struct hive_task tasks[32];
	int r;

	if (m.task_count + count > TASKS)
		return;
	for (int i = 0; i < count; i++) {
		struct task *k = &m.tasks[m.task_count + i];

		*k = (struct task){ .door = door, .number = (uint64_t)(m.task_count + i) + 1 };
		tasks[i] = (struct hive_task){ on_task, k };
	}
	r = door == POOL ? hive_post_many(m.hive, tasks, (size_t)count)
	                 : hive_post_compute_many(m.hive, tasks, (size_t)count);
	settled(r, door_answer(0), failed, count);
}

/* An id, mostly of a worker that is or was there. */
static uint32_t some_worker(void)
{
	uint32_t i = input_byte(&m.in);

	if (i == 255)
		return (uint32_t)input_word(&m.in, 4);
	if (i >= 250)
		return i & 1 ? HIVE_WORKER_NONE : HIVE_WORKER_MAIN;
	return m.worker_count ? m.workers[(int)i % m.worker_count].id : 77u << 11;
}

static int address_answer(uint32_t id)
{
	struct worker_model *w = find_worker(id == HIVE_WORKER_MAIN ? m.main : id);

	if (id == HIVE_WORKER_NONE)
		return -EINVAL;
	if (!w || w->state > RUNNING)
		return -ESRCH;
	return w->compute ? -EINVAL : 0;
}

static void post_to(uint32_t id, bool then)
{
	struct task *k = new_task(then ? THEN : TO, id == HIVE_WORKER_MAIN ? m.main : id);
	long failed = m.world.memory.failed;
	int r;

	if (!k)
		return;
	k->sender = then ? 0 : sender_to(k->target);
	r = then ? hive_post_compute_then(m.hive, on_task, id, on_answer, k) : hive_post_to(m.hive, id, on_task, k);
	settled(r, door_answer(address_answer(id)), failed, 1);
}

/* Far away, or soon: the clock of this target goes on by milliseconds. */
static int64_t some_delay(void)
{
	uint8_t byte = input_byte(&m.in);

	return byte < 240 ? HIVE_MS(byte % 16) : byte < 248 ? -1 : INT64_MAX - byte;
}

static int64_t later(int64_t delay_ns)
{
	delay_ns = delay_ns > 0 ? delay_ns : 0;
	return delay_ns > HIVE_FOREVER - m.world.now_ns ? HIVE_FOREVER : m.world.now_ns + delay_ns;
}

static void post_after(bool to_self)
{
	int64_t delay_ns = some_delay();
	struct task *k = new_task(AFTER, 0);
	long failed = m.world.memory.failed;
	int r, expected = to_self ? own_answer() : door_answer(m.main ? 0 : -ESRCH);
	uint64_t id = 0;

	if (!k)
		return;
	k->due_ns = later(delay_ns);
	r = to_self ? hive_post_self_after(delay_ns, on_task, k, &id)
	            : hive_post_after(m.hive, delay_ns, on_task, k, &id);
	settled(r, expected, failed, 1);
	EXPECT_EQ(id != 0, r == 0);
	k->id = id;
}

static void cancel(void)
{
	uint32_t i = (uint32_t)input_word(&m.in, 2);
	struct task *k = m.task_count ? &m.tasks[i % (uint32_t)m.task_count] : NULL;
	uint64_t id = k ? k->id : input_word(&m.in, 8);
	bool waits = k && id && k->state == WAITING;
	int r = hive_post_cancel(m.hive, id);

	if (waits && stopping() && r == -ESRCH && k->due_ns <= m.stop_ns)
		return; /* it was due: queued, no longer delayed */
	EXPECT_EQ(r, waits ? 0 : -ESRCH);
	if (!waits)
		return;
	k->state = CANCELLED;
	m.cancelled++;
}

static void start_timer(void)
{
	uint8_t how = input_byte(&m.in);
	int i = how % TIMERS;
	int64_t delay_ns = some_delay(), period_ns = how & 0x80 ? HIVE_MS(50 + how % 64) : 0;
	long failed = m.world.memory.failed;
	bool armed = m.timer[i].armed, foreign = armed && m.timer[i].owner != hive_worker_current();
	int r;

	if (!armed)
		m.timers[i].drift = (enum hive_drift)(how / 4 % 3);
	r = hive_timer_start(&m.timers[i], delay_ns, period_ns);
	armed = armed && !in_doubt(i);
	if (!on_io_worker() || (foreign && !stopping() && (armed || r == -EPERM))) {
		EXPECT_EQ(r, -EPERM);
		return;
	}
	if (stopping()) {
		EXPECT(r == -ESHUTDOWN || (foreign && r == -EPERM)); /* it may not have fallen silent yet */
		return;
	}
	if (!armed && excused(&m.world.memory, failed, r))
		return;
	EXPECT_EQ(r, 0);
	m.timer[i].armed = true;
	m.timer[i].moving = m.timer[i].doubtful = false;
	m.timer[i].owner = hive_worker_current();
	m.timer[i].due_ns = later(delay_ns);
	m.timer[i].period_ns = period_ns;
}

static void stop_timer(void)
{
	int i = (int)input_below(&m.in, TIMERS), r = hive_timer_stop(&m.timers[i]);
	bool foreign = m.timer[i].owner != hive_worker_current();

	if (stopping()) {
		EXPECT(r == 0 ||
		       (m.timer[i].armed && r == (foreign ? -EPERM : 1))); /* it may not have fallen silent yet */
		return;
	}
	if (m.timer[i].armed && foreign && !(in_doubt(i) && r == 0)) {
		EXPECT_EQ(r, -EPERM);
		return;
	}
	EXPECT(r == m.timer[i].armed || (in_doubt(i) && r == 0));
	m.timer[i].armed = m.timer[i].moving = m.timer[i].doubtful = false;
}

/* As the system would: whoever waits for this event gets up. */
static void make_ready(int i, uint32_t events)
{
	m.source[i].ready |= events;
	for (int w = 0; w < m.world.count; w++)
		if (m.source[i].started && m.world.workers[w].id == m.source[i].owner)
			m.world.workers[w].woken = true;
}

static void use_source(void)
{
	static const uint32_t events[] = { HIVE_EVENT_IN, HIVE_EVENT_OUT, HIVE_EVENT_IN | HIVE_EVENT_OUT, 0 };
	uint8_t how = input_byte(&m.in);
	int i = how % SOURCES, r;
	bool mine = m.source[i].owner == hive_worker_current();

	if (how / 4 % 4 == 0) {
		make_ready(i, events[how / 16 % 4] | (how & 0x80 ? HIVE_EVENT_HUP : 0));
		return;
	}
	if (stopping() || !on_io_worker()) {
		r = how & 0x80 ? hive_source_start(&m.sources[i]) : hive_source_modify(&m.sources[i], HIVE_EVENT_IN);
		EXPECT(r < 0 || (stopping() && on_io_worker() && r == 0));
		return;
	}
	if (how / 4 % 4 == 1) {
		r = hive_source_start(&m.sources[i]);
		EXPECT_EQ(r, m.source[i].started ? -EALREADY : 0);
		if (r == 0)
			m.source[i].started = true, m.source[i].owner = hive_worker_current();
	} else if (how / 4 % 4 == 2) {
		r = hive_source_modify(&m.sources[i], events[how / 16 % 4]);
		EXPECT_EQ(r, !m.source[i].started ? -EINVAL : mine ? 0 : -EPERM);
	} else {
		r = hive_source_stop(&m.sources[i]);
		EXPECT_EQ(r, !m.source[i].started ? 0 : mine ? 1 : -EPERM);
		m.source[i].started = m.source[i].started && !mine;
		if (r >= 0)
			hive_source_init(&m.sources[i], HIVE_SOURCE_USER, (intptr_t)&m.source[i].ready, HIVE_EVENT_IN,
			                 on_ready, NULL);
	}
	if (r >= 0)
		make_ready(i, 0);
}

static void note_worker(uint32_t id, bool compute, bool reads_seldom)
{
	m.workers[m.worker_count++] = (struct worker_model){ .id = id,
		                                             .compute = compute,
		                                             .state = m.state == STARTED ? RUNNING : ATTACHED };
	if (!compute && !m.main)
		m.main = id, m.reads_seldom = reads_seldom;
}

static void attach(uint32_t how)
{
	struct hive_worker_options o = { .kind = how & 1 ? HIVE_WORKER_COMPUTE : HIVE_WORKER_IO,
		                         .local_capacity = how & 2 ? 8 : 4,
		                         .local_budget = (int32_t)(how >> 2 & 3),
		                         .private_budget = (int32_t)(how >> 4 & 1),
		                         .pool_batch = (int32_t)(how >> 3 & 7),
		                         .no_outbox = how & 32,
		                         .no_steal = how & 64,
		                         .steal_attempts = how % 5 == 4 ? HIVE_OFF : 0,
		                         .order = (enum hive_order)(how % 3),
		                         .victim = (enum hive_victim)(how % 7 % 4),
		                         .io_interval = (int32_t)(how % 11 / 4),
		                         .on_start = how & 128 ? on_hook : NULL,
		                         .on_stop = how & 128 ? on_hook : NULL,
		                         .hook_arg = &m.world };
	long failed = m.world.memory.failed;
	uint32_t id = 0;
	int r;

	if (m.worker_count == WORKERS)
		return;
	r = hive_attach(m.hive, &o, &id);
	if (excused(&m.world.memory, failed, r))
		return;
	EXPECT_EQ(r, door_answer(0));
	EXPECT_EQ(id != 0, r == 0);
	EXPECT(r < 0 || !find_worker(id));
	if (r == 0)
		note_worker(id, o.kind == HIVE_WORKER_COMPUTE, o.io_interval > 1 || m.preset == HIVE_PRESET_FAIO);
}

static int detach_answer(const struct worker_model *w, uint32_t id, bool wait)
{
	if (id == HIVE_WORKER_NONE)
		return -EINVAL;
	if (here() && wait)
		return -EDEADLK;
	if (!w || w->state > RUNNING)
		return -ESRCH;
	if (stopping())
		return -ESHUTDOWN;
	if (w->id == m.main)
		return -EBUSY;
	if (w->compute && count_tasks(COMPUTE) + count_tasks(THEN) > 0 &&
	    count_workers(true, RUNNING) + count_workers(true, ATTACHED) == 1)
		return -EBUSY;
	return wait || w->state == ATTACHED ? 0 : -EINPROGRESS;
}

static void detach(uint32_t id, bool wait)
{
	struct worker_model *w = find_worker(id == HIVE_WORKER_MAIN ? m.main : id);
	int expected = detach_answer(w, id, wait);

	if (expected == 0 || expected == -EINPROGRESS) {
		w->unstarted = w->state == ATTACHED;
		w->state = w->state == ATTACHED ? GONE : LEAVING;
	}
	EXPECT_EQ(hive_detach(m.hive, id, wait ? HIVE_FOREVER : HIVE_NOWAIT), expected);
}

static void start(void)
{
	int expected = here()                           ? -EDEADLK
	               : stopping()                     ? -ESHUTDOWN
	               : m.state == STARTED             ? -EALREADY
	               : count_workers(false, ATTACHED) ? 0
	                                                : -EINVAL;

	EXPECT_EQ(hive_start(m.hive), expected);
	if (expected < 0)
		return;
	m.state = STARTED;
	for (int i = 0; i < m.worker_count; i++)
		if (m.workers[i].state == ATTACHED)
			m.workers[i].state = RUNNING;
}

/* A second call may only hurry. */
static int stop_answer(bool now, int64_t deadline_ns)
{
	if (m.state == LEFT_NOW || (m.state == DRAINING && m.world.running == 0))
		return -EALREADY;
	return m.state == DRAINING && !now && deadline_ns >= m.deadline_ns ? -EALREADY : 0;
}

static void stop(bool now, int64_t deadline_ns)
{
	int expected = stop_answer(now, deadline_ns), r;
	bool late = m.state == DRAINING && m.world.now_ns >= m.deadline_ns;
	enum hive_model_state before = m.state;

	if (!stopping())
		m.stop_ns = m.world.now_ns;
	if (expected == 0) { /* before the call: a hive that never ran drops all it has inside it */
		m.state = now || before == CREATED ? LEFT_NOW : DRAINING;
		m.deadline_ns = deadline_ns;
	}
	r = hive_stop(m.hive, now ? HIVE_NOW : HIVE_DRAIN, deadline_ns);
	EXPECT(r == expected || (late && r == -EALREADY)); /* late: draining may have turned into leaving */
}

static void look(void)
{
	static int null_file = -1;
	struct hive_worker_stats worker;
	struct hive_report report;
	struct hive_stats stats;
	uint32_t ids[WORKERS], id = some_worker();
	bool over = stopping() && m.world.running == 0;
	size_t n = hive_workers(m.hive, ids, WORKERS);
	int r = hive_worker_stats_read(m.hive, id, &worker);

	EXPECT_EQ(hive_stats_read(m.hive, &stats), 0);
	EXPECT_EQ(stats.ran, m.ran);
	EXPECT_EQ(stats.cancelled, m.cancelled);
	EXPECT_EQ(stats.dropped, m.dropped);
	EXPECT_EQ(stats.refused, m.refused);
	EXPECT_EQ(n, stats.io_workers + stats.compute_workers);
	EXPECT_EQ(hive_report_read(m.hive, &report), over ? 0 : -EBUSY);
	if (!stopping()) {
		EXPECT_EQ(stats.io_workers, count_workers(false, ATTACHED) + count_workers(false, RUNNING));
		EXPECT_EQ(stats.compute_workers, count_workers(true, ATTACHED) + count_workers(true, RUNNING));
		EXPECT(r == 0 ? worker.worker == id || id == HIVE_WORKER_MAIN : r == (id ? -ESRCH : -EINVAL));
	}
	if (null_file < 0)
		null_file = open("/dev/null", O_WRONLY | O_CLOEXEC);
	EXPECT_EQ(hive_stats_write(m.hive, null_file, id & 1 ? HIVE_FORMAT_JSON : HIVE_FORMAT_TEXT), 0);
}

/* Calls that are wrong here and now, and say so. */
static void misuse(void)
{
	bool over = stopping() && m.world.running == 0;

	EXPECT_EQ(hive_post(m.hive, NULL, NULL), -EINVAL);
	EXPECT_EQ(hive_post_many(m.hive, NULL, 3), -EINVAL);
	EXPECT_EQ(hive_post_compute_then(m.hive, on_task, m.main, NULL, NULL), -EINVAL);
	EXPECT_EQ(hive_post_kind(m.hive, HIVE_COMPUTE, 1, on_task, NULL), -EINVAL);
	EXPECT_EQ(hive_stop(m.hive, (enum hive_stop_mode)0, 0), -EINVAL);
	EXPECT_EQ(hive_timer_stop(&(struct hive_timer){ .arg = NULL }), -EINVAL);
	EXPECT_EQ(hive_join(m.hive, HIVE_NOWAIT), here()               ? -EDEADLK
	                                          : m.state == CREATED ? -EINVAL
	                                          : over               ? 0
	                                                               : -ETIMEDOUT);
	if (here())
		EXPECT_EQ(hive_destroy(m.hive), -EDEADLK);
	else if (m.state != CREATED && !over)
		EXPECT_EQ(hive_destroy(m.hive), -EBUSY);
}

/* Only outside: time and beats. */
static void world_operation(void)
{
	uint8_t how = input_byte(&m.in);

	if (how % 4 == 0) {
		m.world.now_ns += HIVE_MS(how / 4 % 32);
	} else if (how % 4 == 1 && m.world.count > 0) {
		int i = how / 4 % 32 % m.world.count;

		if (m.world.workers[i].step && m.world.beats_left-- > 0)
			world_step(&m.world, i);
		if (how & 0x80) /* all others are busy, so to speak: it rests once it has done what it can */
			world_settle_one(&m.world, i, &m.world.beats_left);
	} else if (m.world.beats_left > 200) {
		m.world.beats_left -= 200;
		if (world_settle(&m.world, 2000))
			check_idle();
	}
}

/* The next request or one of those after it; perhaps not only that one. */
static void fail_memory(uint8_t how)
{
	m.world.memory.fail_in = how % 4;
	m.world.memory.fail_more = how < 128 ? 0 : how / 4 % 32;
}

static void one_operation(void)
{
	uint32_t what = input_below(&m.in, 32);

	m.world.idle_beats = 0;
	switch (what) {
	case 0:
	case 1:
	case 2:
		post(POOL);
		break;
	case 3:
		post_many(input_below(&m.in, 2) ? POOL : COMPUTE, (int)input_below(&m.in, 32));
		break;
	case 4:
	case 5:
		post_to(some_worker(), false);
		break;
	case 6:
		post_to(some_worker(), true);
		break;
	case 7:
	case 8:
		post_after(false);
		break;
	case 9:
		post_after(true);
		break;
	case 10:
	case 11:
		cancel();
		break;
	case 12:
	case 13:
		post(COMPUTE);
		break;
	case 14:
	case 15:
		post(LOCAL);
		break;
	case 16:
	case 17:
		post(SELF);
		break;
	case 18:
		start_timer();
		break;
	case 19:
		stop_timer();
		break;
	case 20:
		use_source();
		break;
	case 21:
		attach(input_byte(&m.in));
		break;
	case 22:
		what = some_worker();
		detach(what, input_below(&m.in, 4) == 3);
		break;
	case 23:
		start();
		break;
	case 24:
		what = input_byte(&m.in);
		if (what % 8 == 7)
			stop(what & 128, what & 64 ? HIVE_FOREVER : later(some_delay()));
		break;
	case 25:
		look();
		break;
	case 26:
		fail_memory(input_byte(&m.in));
		break;
	case 27:
		misuse();
		break;
	default:
		if (!here())
			world_operation();
	}
}

static void operations(void)
{
	for (uint32_t n = input_below(&m.in, 5); n > 0 && input_more(&m.in); n--)
		one_operation();
}

static void finish(void)
{
	struct hive_report report;

	m.world.memory.fail_in = 0;
	if (m.state == STARTED && world_settle(&m.world, 5000))
		check_idle();
	if (!stopping())
		stop(input_below(&m.in, 2), input_below(&m.in, 2) ? later(some_delay()) : HIVE_FOREVER);
	EXPECT_EQ(hive_join(m.hive, HIVE_FOREVER), 0);
	for (int i = 0; i < m.task_count; i++)
		EXPECT(m.tasks[i].state != WAITING && m.tasks[i].answer != WAITING);
	EXPECT_EQ(hive_report_read(m.hive, &report), 0);
	EXPECT_EQ(report.posted, m.posted);
	EXPECT_EQ(report.ran, m.ran);
	EXPECT_EQ(report.cancelled, m.cancelled);
	EXPECT_EQ(report.dropped, m.dropped);
	EXPECT_EQ(report.refused, m.refused);
	EXPECT_EQ(report.posted, report.ran + report.cancelled + report.dropped);
	EXPECT_EQ(m.world.running, 0);
	EXPECT_EQ(hive_destroy(m.hive), 0);
	EXPECT_EQ(m.world.memory.live, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hive_options options = { .hook_arg = &m.world, .on_drop = on_drop, .on_warn = world_warn };
	uint8_t how;

	memset(&m, 0, sizeof m);
	m.in = input_of(data, size);
	how = input_byte(&m.in);
	world_init(&m.world, how, HIVE_S(1000));
	m.world.beats_left = BEATS;
	m.world.on_left = after_last_beat;
	m.world.patience = PATIENCE;
	options.host = &m.world.host;
	m.preset = (how & 0xc1) == 0xc1 ? HIVE_PRESET_FAIO : how & 1 ? HIVE_PRESET_ROPHIVE : HIVE_PRESET_DEFAULT;
	options.preset = m.preset;
	m.mesh = (how & 0xc0) == 0x80;
	options.mesh = m.mesh ? HIVE_MESH_ON : HIVE_MESH_OFF;
	EXPECT_EQ(hive_create(&options, &m.hive), 0);
	for (int i = 0; i < TIMERS; i++)
		hive_timer_init(&m.timers[i], on_timer, NULL);
	for (int i = 0; i < SOURCES; i++)
		hive_source_init(&m.sources[i], HIVE_SOURCE_USER, (intptr_t)&m.source[i].ready, HIVE_EVENT_IN, on_ready,
		                 NULL);
	for (uint32_t n = how >> 1 & 3; n > 0; n--)
		attach(how & 0x10 ? input_byte(&m.in) : 0);
	for (uint32_t n = how >> 3 & 1; n > 0; n--)
		attach(1);
	if (how & 0x20)
		start();
	while (input_more(&m.in))
		one_operation();
	finish();
	return 0;
}
