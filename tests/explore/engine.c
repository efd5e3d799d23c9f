/* SPDX-License-Identifier: MIT */
/* Virtual threads, and who runs next. */
#include "explore.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/atomic.h"
#include "base/rng.h"
#include "base/thread.h"
#include "sched/internal.h"

enum { STACK_BYTES = 256 * 1024, STEPS_MAX = 3000000, PREEMPTIONS_MAX = 16, STEP_NS = 5 };

enum thread_state { UNUSED, RUNNABLE, BLOCKED, WAITS_QUIET, DONE };

struct thread {
	ucontext_t context;
	char *stack;
	hive_fn *main;
	void *arg;
	char name[24];
	enum thread_state state;
	const void *key;       /* BLOCKED  what it waits for */
	int64_t wake_at_ns;    /* BLOCKED */
	bool busy;             /* BLOCKED  in the middle of something: the world is not quiet */
	struct worker *worker; /* thread-locals of the library, while it does not run */
	uint64_t number;
	const char *file; /* where it is */
	int line;
};

static struct {
	const struct plan *plan;
	struct schedule *record;
	struct outcome *outcome;
	struct thread threads[THREADS_MAX];
	int count, self;
	bool on;
	uint64_t choices; /* generator of decisions */
	uint64_t draws;   /* generator of the program and of the hive */
	int64_t now_ns, jumped_ns;
	uint32_t replayed;
	uint32_t crossroads;                  /* points at which somebody else could have gone on; BOUNDED */
	uint32_t preempt_at[PREEMPTIONS_MAX]; /* of these */
	const char *(*check)(void *arg);
	void *check_arg;
	ucontext_t driver;
} e;

bool explore_tells;

/* ---- failure, hash ---- */

static void fail(const char *format, va_list args)
{
	e.outcome->failed = true;
	vsnprintf(e.outcome->text, sizeof e.outcome->text, format, args);
	e.on = false;
}

/* Threads are left where they are; their stacks are used again by the next run. */
_Noreturn void explore_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fail(format, args);
	va_end(args);
	setcontext(&e.driver);
	abort();
}

void explore_note(uint64_t number)
{
	e.outcome->hash = rng_mix(e.outcome->hash ^ number) + number;
}

uint32_t explore_draw(uint32_t n)
{
	return rng_below(rng_next(&e.draws), n);
}

static uint32_t choose_below(uint32_t n)
{
	return rng_below(rng_next(&e.choices), n);
}

/* ---- decisions ---- */

static void record(int what)
{
	struct schedule *s = e.record;

	if (s->count < DECISIONS_MAX)
		s->decisions[s->count++] = (struct decision){ e.outcome->steps, what };
}

/* The recorded decision for this step, or -2. */
static int replayed(void)
{
	const struct schedule *s = e.plan->replay;

	while (e.replayed < s->count && s->decisions[e.replayed].step < e.outcome->steps)
		e.replayed++;
	if (e.replayed < s->count && s->decisions[e.replayed].step == e.outcome->steps)
		return s->decisions[e.replayed++].what;
	return -2;
}

static bool is_runnable(int thread)
{
	return thread >= 0 && thread < e.count && e.threads[thread].state == RUNNABLE;
}

/* Next in line after `thread`, itself last; -1: nobody can run. */
static int next_in_line(int thread)
{
	for (int i = 1; i <= e.count; i++)
		if (is_runnable((thread + i) % e.count))
			return (thread + i) % e.count;
	return -1;
}

/* Any other thread that can run, or -1. */
static int any_other(int thread)
{
	int others = 0, nth;

	for (int i = 0; i < e.count; i++)
		others += i != thread && is_runnable(i);
	if (others == 0)
		return -1;
	nth = (int)choose_below((uint32_t)others);
	for (int i = 0;; i++)
		if (i != thread && is_runnable(i) && nth-- == 0)
			return i;
}

static uint32_t masks[MASKS];

/* For those who want to try every other thread at every step. */
static void remember_runnable(void)
{
	uint32_t mask = 0;

	if (e.plan->strategy != REPLAY || e.plan->replay->count > 0 || e.outcome->steps >= MASKS)
		return;
	for (int i = 0; i < e.count; i++)
		mask |= i != e.self && is_runnable(i) ? 1u << i : 0;
	masks[e.outcome->steps] = mask;
}

uint32_t explore_runnable_at(uint32_t step)
{
	return step < MASKS ? masks[step] : UINT32_MAX;
}

/* A hive takes thousands of steps before it has threads. Were those counted, hardly a preemption would come later. */
static bool wants_preemption(void)
{
	if (e.plan->strategy == RANDOM)
		return choose_below(e.plan->rate) == 0;
	if (next_in_line(e.self) == e.self)
		return false;
	e.crossroads++;
	for (uint32_t i = 0; i < e.plan->preemptions && i < PREEMPTIONS_MAX; i++)
		if (e.preempt_at[i] == e.crossroads)
			return true;
	return false;
}

/* Who goes on when `self` could. */
static int decide_at_point(void)
{
	int other;

	remember_runnable();
	if (e.plan->strategy == REPLAY) {
		other = replayed();
		return is_runnable(other) ? other : e.self;
	}
	if (!wants_preemption())
		return e.self;
	other = any_other(e.self);
	return other < 0 ? e.self : other;
}

/* Who goes on when `self` cannot or does not want to; -1: nobody can. */
static int decide_at_wait(void)
{
	int usual = next_in_line(e.self), other;

	remember_runnable();
	if (e.plan->strategy == REPLAY) {
		other = replayed();
		return is_runnable(other) ? other : usual;
	}
	other = any_other(e.self);
	return other < 0 ? usual : other;
}

static void tell(int to)
{
	struct thread *t = &e.threads[e.self];

	printf("%8u  %-12s %s:%d%s -> %s\n", e.outcome->steps, t->name, t->file ? t->file : "-", t->line,
	       t->state == RUNNABLE ? ""
	       : t->state == DONE   ? " ends"
	                            : " waits",
	       e.threads[to].name);
}

/* ---- switching ---- */

static void check_now(void)
{
	const char *text;

	if (!e.check)
		return;
	e.on = false;
	text = e.check(e.check_arg);
	e.on = true;
	if (text)
		explore_fail("invariant broken: %s", text);
}

static void switch_to(int to)
{
	struct thread *from = &e.threads[e.self];

	check_now();
	e.outcome->switches++;
	if (explore_tells)
		tell(to);
	from->worker = hive__current();
	from->number = hive__thread_own_number;
	e.self = to;
	hive__set_current(e.threads[to].worker);
	hive__thread_own_number = e.threads[to].number;
	if (from->state == DONE)
		setcontext(&e.threads[to].context);
	else
		swapcontext(&from->context, &e.threads[to].context);
}

/* Time moves by itself while threads run; who has waited long enough can run again. */
static void time_passes(int64_t ns)
{
	e.now_ns += ns;
	for (int i = 0; i < e.count; i++) {
		struct thread *t = &e.threads[i];

		if (t->state == BLOCKED && t->wake_at_ns <= e.now_ns)
			t->state = RUNNABLE;
	}
}

/* Who has not ended, and where it is. */
static const char *places(void)
{
	static char text[400];
	int n = 0;

	text[0] = 0;
	for (int i = 0; i < e.count && n < (int)sizeof text - 64; i++)
		if (e.threads[i].state != DONE)
			n += snprintf(text + n, sizeof text - (size_t)n, " %s(%d) %s:%d", e.threads[i].name, i,
			              e.threads[i].file ? e.threads[i].file : "-", e.threads[i].line);
	return text;
}

static void step(void)
{
	if (++e.outcome->steps > STEPS_MAX)
		explore_fail("no end after %d steps:%s", STEPS_MAX, places());
}

/* Everybody waits: first those who wait for just that, then time moves on. */
static void nobody_can_run(void)
{
	int64_t earliest = HIVE_FOREVER;
	struct thread *waits = NULL;
	bool busy = false;

	for (int i = 0; i < e.count; i++) {
		struct thread *t = &e.threads[i];

		if (t->state == BLOCKED && t->wake_at_ns < earliest)
			earliest = t->wake_at_ns;
		if (t->state == WAITS_QUIET)
			waits = t;
		busy |= t->state == BLOCKED && t->busy;
	}
	if (waits && !busy) {
		waits->state = RUNNABLE;
		return;
	}
	if (earliest == HIVE_FOREVER)
		explore_fail("deadlock, all wait for ever:%s", places());
	time_passes(earliest > e.now_ns ? earliest - e.now_ns : 0);
}

/* The running thread cannot or will not go on just now. */
static void give_way(void)
{
	int to;

	step();
	while (next_in_line(e.self) < 0)
		nobody_can_run();
	to = decide_at_wait();
	if (e.plan->strategy != REPLAY && to != next_in_line(e.self))
		record(to);
	if (to != e.self)
		switch_to(to);
}

void hive__explore_point(const char *file, int line)
{
	int to;

	if (!e.on)
		return;
	step();
	e.threads[e.self].file = file;
	e.threads[e.self].line = line;
	explore_note((uint64_t)e.outcome->steps << 8 |
	             (uint64_t)e.self); /* not the line: compilers count differently */
	time_passes(STEP_NS);
	to = decide_at_point();
	if (to == e.self)
		return;
	if (e.plan->strategy != REPLAY)
		record(to);
	switch_to(to);
}

void hive__explore_pause(void)
{
	if (e.on)
		explore_yield();
}

void explore_yield(void)
{
	time_passes(STEP_NS);
	give_way();
}

bool hive__explore_fault(const char *name)
{
	uint32_t rate;
	bool happens;

	if (!e.on || e.plan->fault_rate == 0)
		return false;
	step();
	rate = fault_is_akin(name, e.plan->often) ? e.plan->fault_rate / 8 + 1 : e.plan->fault_rate;
	happens = e.plan->strategy == REPLAY ? replayed() == FAULT : choose_below(rate) == 0;
	if (!happens)
		return false;
	if (e.plan->strategy != REPLAY)
		record(FAULT);
	if (explore_tells)
		printf("%8u  %2d %-10s fault: %s\n", e.outcome->steps, e.self, e.threads[e.self].name, name);
	e.outcome->faults++;
	fault_note(name);
	return true;
}

/* ---- waiting ---- */

bool explore_is_on(void)
{
	return e.on;
}

int explore_self(void)
{
	return e.self;
}

int64_t explore_now(void)
{
	return e.now_ns;
}

void explore_jump(int64_t ns)
{
	e.jumped_ns += ns;
	time_passes(ns);
}

int64_t explore_jumped(void)
{
	return e.jumped_ns;
}

void explore_block(const void *key, int64_t timeout_ns)
{
	struct thread *t = &e.threads[e.self];

	t->state = BLOCKED;
	t->key = key;
	t->wake_at_ns = timeout_ns >= HIVE_FOREVER - e.now_ns ? HIVE_FOREVER : e.now_ns + timeout_ns;
	give_way();
}

void explore_nap(const void *key, int64_t timeout_ns)
{
	struct thread *t = &e.threads[e.self];

	t->busy = true;
	explore_block(key, timeout_ns);
	t->busy = false;
}

void explore_unblock(const void *key, int count)
{
	for (int i = 0; i < e.count && count > 0; i++) {
		if (e.threads[i].state != BLOCKED || e.threads[i].key != key)
			continue;
		e.threads[i].state = RUNNABLE;
		count--;
	}
}

bool explore_thread_is_done(int thread)
{
	return e.threads[thread].state == DONE;
}

void explore_join(int thread)
{
	while (!explore_thread_is_done(thread))
		explore_block(&e.threads[thread], HIVE_FOREVER);
}

void explore_hold(void)
{
	e.on = false;
}

void explore_go_on(void)
{
	e.on = true;
}

void explore_sleep(int64_t ns)
{
	explore_nap(&e.threads[e.self].wake_at_ns, ns);
}

void explore_wait_quiet(void)
{
	e.threads[e.self].state = WAITS_QUIET;
	give_way();
}

/* ---- the life of a thread, of a run ---- */

static bool anybody_left(void)
{
	for (int i = 0; i < e.count; i++)
		if (e.threads[i].state != DONE)
			return true;
	return false;
}

static void thread_begin(void)
{
	struct thread *t = &e.threads[e.self];

	t->main(t->arg);
	t->state = DONE;
	explore_unblock(t, THREADS_MAX);
	if (anybody_left())
		give_way(); /* for good */
	setcontext(&e.driver);
}

int explore_spawn(const char *name, hive_fn *main, void *arg)
{
	struct thread *t = &e.threads[e.count];

	if (e.count == THREADS_MAX)
		explore_fail("more than %d threads", THREADS_MAX);
	if (!t->stack) {
		t->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (t->stack == MAP_FAILED || mprotect(t->stack, 4096, PROT_NONE) < 0)
			abort();
	}
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = t->stack;
	t->context.uc_stack.ss_size = STACK_BYTES;
	t->context.uc_link = NULL;
	makecontext(&t->context, thread_begin, 0);
	t->main = main;
	t->arg = arg;
	t->worker = NULL;
	t->number = 0;
	t->busy = false;
	t->file = NULL;
	t->line = 0;
	t->state = RUNNABLE;
	snprintf(t->name, sizeof t->name, "%s", name);
	return e.count++;
}

void explore_check_always(const char *(*check)(void *arg), void *arg)
{
	e.check = check;
	e.check_arg = arg;
}

static void begin(const struct plan *plan, struct schedule *ret_schedule, struct outcome *ret_outcome)
{
	memset(ret_outcome, 0, sizeof *ret_outcome);
	ret_schedule->count = 0;
	e.plan = plan;
	e.record = ret_schedule;
	e.outcome = ret_outcome;
	e.count = 0;
	e.self = 0;
	e.choices = rng_mix(plan->seed * 2 + 1);
	e.draws = rng_mix(plan->seed * 2 + 2);
	e.now_ns = HIVE_S(1000);
	e.jumped_ns = 0;
	e.replayed = 0;
	e.crossroads = 0;
	e.check = NULL;
	if (plan->strategy == REPLAY && plan->replay->count == 0)
		memset(masks, 0, sizeof masks);
	for (int i = 0; i < PREEMPTIONS_MAX; i++)
		e.preempt_at[i] = plan->length ? 1 + choose_below(plan->length) : 0;
	explore_memory_begin();
}

void explore_run(const struct plan *plan, void (*program)(void *arg), void *arg, struct schedule *ret_schedule,
                 struct outcome *ret_outcome)
{
	struct worker *outer = hive__current();
	volatile bool started = false;
	uint64_t leaked;

	begin(plan, ret_schedule, ret_outcome);
	explore_spawn("main", program, arg);
	getcontext(&e.driver); /* comes back here at the end, or when something has failed */
	if (!started) {
		started = true;
		hive__set_current(NULL);
		hive__thread_own_number = 0;
		e.on = true;
		setcontext(&e.threads[0].context);
	}
	e.on = false;
	hive__set_current(outer);
	hive__thread_own_number = 0;
	leaked = explore_memory_end();
	if (!ret_outcome->failed && leaked > 0) {
		ret_outcome->failed = true;
		snprintf(ret_outcome->text, sizeof ret_outcome->text, "%llu blocks of memory were not freed",
		         (unsigned long long)leaked);
	}
}
