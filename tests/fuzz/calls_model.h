/* SPDX-License-Identifier: MIT */
#pragma once
/* The reference scheduler of calls.c: what is known of each task, worker, timer and source, and what each running task, timer
 * and event is held against.                                                                                             */
#include "world.h"

enum { TASKS = 1500, WORKERS = 40, TIMERS = 4, SOURCES = 4, BEATS = 1500 };

/* Beats in a row that somebody wanted and that led to nothing: more than every worker looking for work in vain a few times,
 * or missing the one who has some; a worker that spins has no end.                                                        */
enum { PATIENCE = 400 };

enum task_state { WAITING = 1, RAN, CANCELLED, DROPPED };
enum door { POOL, TO, SELF, LOCAL, AFTER, COMPUTE, THEN };

struct task {
	enum task_state state, answer; /* answer: the second half of a THEN; 0 before its work ran */
	enum door door;
	uint32_t target; /* TO, SELF: where it must run; THEN: where its answer must */
	int64_t due_ns;  /* AFTER */
	uint64_t id;     /* AFTER */
	uint64_t number; /* order of posting */
	int sender;      /* TO, with a mesh: place of the worker that sent it among the workers, + 1; 0: whoever else */
};

enum worker_state { ATTACHED = 1, RUNNING, LEAVING, GONE };

struct worker_model {
	uint32_t id;
	bool compute, unstarted; /* unstarted: detached before it ever ran */
	enum worker_state state;
	uint64_t last_self,
		last_to[WORKERS + 1]; /* numbers of the last private tasks that ran here; letters by sender */
};

enum hive_model_state { CREATED, STARTED, DRAINING, LEFT_NOW };

static struct {
	struct world world;
	struct hive *hive;
	struct input in;
	enum hive_model_state state;
	enum hive_preset preset;
	struct task tasks[TASKS];
	int task_count;
	struct worker_model workers[WORKERS];
	int worker_count;
	uint32_t main;       /* id; 0: none yet */
	bool reads_seldom;   /* that one, what is in its inbox: not in each beat */
	int64_t deadline_ns; /* of the drain under way */
	int64_t stop_ns;     /* when stop was first asked for */
	struct hive_timer timers[TIMERS];
	struct {
		bool armed, moving; /* moving: its worker left, the main worker has not taken it over yet */
		bool doubtful;      /* there may have been no memory to take it over: then it was stopped */
		long failed_before; /* requests for memory that had failed when it was handed over, */
		uint64_t moved;     /* and the last beat that had begun then, anybody's */
		uint32_t owner;
		int64_t due_ns, period_ns;
	} timer[TIMERS];
	struct hive_source sources[SOURCES];
	struct {
		bool started;
		uint32_t owner, ready;
	} source[SOURCES];
	uint64_t posted, ran, cancelled, dropped, refused;
	bool mesh; /* letters of different workers have no order */
} m;

static void operations(void);

static bool stopping(void)
{
	return m.state >= DRAINING;
}

static struct worker_model *find_worker(uint32_t id)
{
	for (int i = 0; i < m.worker_count; i++)
		if (m.workers[i].id == id)
			return &m.workers[i];
	return NULL;
}

/* The worker that this code runs on, NULL: outside. */
static struct worker_model *here(void)
{
	struct worker_model *w = find_worker(hive_worker_current());

	EXPECT_EQ(w != NULL, m.world.stepping > 0);
	EXPECT(hive_current() == (w ? m.hive : NULL));
	return w;
}

static bool on_io_worker(void)
{
	struct worker_model *w = here();

	return w && !w->compute;
}

/* Who sends, as far as the order of letters is concerned. To itself a worker writes as everybody else does. */
static int sender_to(uint32_t target)
{
	struct worker_model *w = here();

	return m.mesh && w && !w->compute && w->id != target ? (int)(w - m.workers) + 1 : 0;
}

static int count_workers(bool compute, enum worker_state state)
{
	int n = 0;

	for (int i = 0; i < m.worker_count; i++)
		n += m.workers[i].compute == compute && m.workers[i].state == state;
	return n;
}

static uint64_t count_tasks(enum door door)
{
	uint64_t n = 0;

	for (int i = 0; i < m.task_count; i++)
		n += m.tasks[i].state == WAITING && m.tasks[i].door == door;
	return n;
}

/* Detached before it ran, a worker leaves its private tasks to anybody. */
static bool is_at_home(const struct task *k)
{
	const struct worker_model *home = find_worker(k->target);

	return hive_worker_current() == k->target || (home && home->unstarted);
}

static void check_private_order(struct task *k, uint64_t *last)
{
	if (find_worker(k->target)->unstarted)
		return;
	EXPECT(k->number > *last);
	*last = k->number;
}

/* Armed, as far as can be known from outside: only a failed request for memory can have stopped it on its way. */
static bool in_doubt(int i)
{
	return m.timer[i].doubtful || (m.timer[i].moving && m.world.memory.failed > m.timer[i].failed_before);
}

static uint64_t beat_of_main(void)
{
	for (int i = 0; i < m.world.count; i++)
		if (m.world.workers[i].id == m.main)
			return m.world.workers[i].beat;
	return 0;
}

/* The main worker reads its letters after the events and before all else: from the first task of its next beat on, the timers that others
 * left are its own. (They may have left inside one of its tasks.) Unless it does not read them in each beat: then nobody knows when. */
static void take_over(void)
{
	for (int i = 0; i < TIMERS && !m.reads_seldom; i++) {
		if (hive_worker_current() != m.main || !m.timer[i].moving || beat_of_main() <= m.timer[i].moved)
			continue;
		m.timer[i].doubtful = in_doubt(i);
		m.timer[i].moving = false;
	}
}

/* After HIVE_NOW nothing begins, wherever it waits and whoever has it. */
static bool may_begin(void)
{
	return m.state == STARTED || m.state == DRAINING;
}

/* A drain drops nothing before its deadline but delayed posts that were not due yet, and compute tasks that nobody runs. */
static bool may_be_dropped(const struct task *k)
{
	if (m.state == LEFT_NOW || (m.state == DRAINING && m.world.now_ns >= m.deadline_ns))
		return true;
	if (m.state != DRAINING || k->state != WAITING)
		return false;
	if (k->door == COMPUTE || k->door == THEN)
		return count_workers(true, RUNNING) == 0;
	return k->door == AFTER && k->due_ns > m.stop_ns;
}

/* A task begins. It was accepted, runs once, where and when it may. */
static void on_task(void *arg)
{
	struct task *k = (struct task *)arg;
	struct worker_model *w = here();

	m.world.progress++;
	take_over();
	EXPECT(w && w->state != GONE);
	EXPECT(may_begin());
	EXPECT_EQ(k->state, WAITING);
	EXPECT_EQ(w->compute, k->door == COMPUTE || k->door == THEN);
	if (k->door == TO || k->door == SELF)
		EXPECT(is_at_home(k));
	if (k->door == TO)
		check_private_order(k, &w->last_to[k->sender]);
	if (k->door == SELF)
		check_private_order(k, &w->last_self);
	if (k->door == AFTER)
		EXPECT(k->due_ns <= (stopping() ? m.stop_ns : m.world.now_ns));
	k->state = RAN;
	m.ran++;
	operations();
	if (k->door == THEN) {
		k->answer = WAITING;
		m.posted++;
	}
}

/* The answer of a computation: on the worker that was named, or on the main worker if that one has left. */
static void on_answer(void *arg)
{
	struct task *k = (struct task *)arg;
	const struct worker_model *w = here(), *home = find_worker(k->target);

	m.world.progress++;
	take_over();
	EXPECT(w && !w->compute && k->door == THEN);
	EXPECT(may_begin());
	EXPECT_EQ(k->state, RAN);
	EXPECT_EQ(k->answer, WAITING);
	if (home->state <= RUNNING)
		EXPECT_EQ(w->id, k->target);
	else
		EXPECT(w->id == k->target || w->id == m.main);
	k->answer = RAN;
	m.ran++;
	operations();
}

static void on_drop(void *hook_arg, const struct hive_task *task)
{
	struct task *k = (struct task *)task->arg;

	m.world.progress++;
	EXPECT(hook_arg == &m.world);
	EXPECT(may_be_dropped(k));
	EXPECT(task->fn == on_task || task->fn == on_answer);
	if (task->fn == on_task) {
		EXPECT_EQ(k->state, WAITING);
		k->state = DROPPED;
	} else {
		EXPECT_EQ(k->answer, WAITING);
		k->answer = DROPPED;
	}
	m.dropped++;
}

static void on_timer(struct hive_timer *timer)
{
	int i = (int)(timer - m.timers);

	m.world.progress++;
	take_over();
	EXPECT(!stopping());
	EXPECT(m.timer[i].armed && (!m.timer[i].moving || m.reads_seldom));
	EXPECT_EQ(m.timer[i].owner, hive_worker_current());
	EXPECT(m.timer[i].due_ns <= m.world.now_ns);
	m.timer[i].moving = m.timer[i].doubtful = false;
	if (m.timer[i].period_ns == 0)
		m.timer[i].armed = false;
	else
		m.timer[i].due_ns += m.timer[i].period_ns; /* at the earliest, whatever its drift */
	operations();
}

static void on_ready(struct hive_source *source, uint32_t events)
{
	int i = (int)(source - m.sources);

	m.world.progress++;
	EXPECT(!stopping());
	EXPECT(m.source[i].started);
	EXPECT_EQ(m.source[i].owner, hive_worker_current());
	EXPECT(events != 0 && (events & ~(source->events | HIVE_EVENT_HUP | HIVE_EVENT_ERR)) == 0);
	operations();
}

static void on_hook(void *arg)
{
	m.world.progress++;
	EXPECT(arg == &m.world);
	EXPECT(here());
	operations();
}

static void after_last_beat(uint32_t worker)
{
	struct worker_model *w = find_worker(worker);

	EXPECT(stopping() || w->state == LEAVING);
	if (w->state == LEAVING) /* else the hive has stopped, and it is still known */
		w->state = GONE;
	for (int i = 0; i < TIMERS && !stopping(); i++) {
		if (m.timer[i].armed && m.timer[i].owner == worker) {
			m.timer[i].owner = m.main;
			m.timer[i].moving = true;
			m.timer[i].failed_before = m.world.memory.failed;
			m.timer[i].moved = m.world.begun;
		}
	}
	for (int i = 0; i < SOURCES; i++)
		if (m.source[i].owner == worker)
			m.source[i].started = false;
}

/* Everybody rests: nothing that could run is left, and the books balance. */
static void check_idle(void)
{
	uint64_t waiting = 0;
	struct hive_stats stats;

	if (m.state != STARTED)
		return;
	for (int i = 0; i < m.task_count; i++) {
		const struct task *k = &m.tasks[i];

		if (k->state == WAITING && (k->door == COMPUTE || k->door == THEN))
			EXPECT_EQ(count_workers(true, RUNNING), 0);
		else if (k->state == WAITING)
			EXPECT(k->door == AFTER && k->due_ns > m.world.now_ns);
		EXPECT(k->answer != WAITING);
		waiting += k->state == WAITING;
	}
	for (int i = 0; i < TIMERS; i++)
		EXPECT(!m.timer[i].armed || m.timer[i].due_ns > m.world.now_ns || m.timer[i].period_ns > 0 ||
		       in_doubt(i));
	for (int i = 0; i < SOURCES; i++)
		EXPECT(!m.source[i].started || !(m.source[i].ready & m.sources[i].events));
	EXPECT_EQ(hive_stats_read(m.hive, &stats), 0);
	EXPECT_EQ(stats.posted, m.posted);
	EXPECT_EQ(stats.posted, stats.ran + stats.cancelled + stats.dropped + waiting);
}
