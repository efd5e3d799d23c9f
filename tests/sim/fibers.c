/* SPDX-License-Identifier: MIT */
/* Random programs of fibers in the simulator, with a ledger: whoever was spawned ends exactly once, or never begins and says so;
 * whoever joins gets the result; nobody wakes early; the books balance; the same seed gives the same run.
 *   ROPHIVE_SIM_SEEDS=n   how many programs (2000)
 *   ROPHIVE_SIM_SEED=n    only this one: a failure prints its number                                                       */
#include <signal.h>
#include <stdio.h>

#include "base/rng.h"
#include "support/invariants.h"
#include "test.h"

#include <rophive/hive.h>
#include <rophive/sim.h>

enum { FIBERS = 400, WORKERS = 8, ACTS = 5, DEPTH = 3, SEVERAL = 20, OUTSIDE = -1 };

struct program;

struct one {
	struct program *program;
	struct hive_fiber *handle;
	bool accepted, begun, ended, asked; /* asked: joined or detached, or somebody is at it */
	bool tracked;                       /* beneath a hive_block_on() */
	int depth;
	int value; /* of its local */
};

struct program {
	struct hive_sim *sim;
	struct hive *hive;
	uint64_t rng;
	struct one ones[FIBERS];
	int used;
	uint32_t workers[WORKERS];
	int worker_count;
	bool stopping, now, cancels, over, fails;
	int offloads, joins, cancelled_waits, late_waits, blocks, never_began, tasks;
};

static volatile uint64_t current_seed;
static char key;

static void tell_seed(void)
{
	char text[96];
	int n = snprintf(text, sizeof text, "seed %llu: replay with ROPHIVE_SIM_SEED=%llu\n",
	                 (unsigned long long)current_seed, (unsigned long long)current_seed);

	if (write(2, text, (size_t)n) < 0)
		_exit(1);
}

#define EXPECT(condition)                                                        \
	do {                                                                     \
		if (!(condition)) {                                              \
			tell_seed();                                             \
			test_fail(__FILE__, __LINE__, "EXPECT(%s)", #condition); \
		}                                                                \
	} while (0)

/* At most one in a list of arguments or of initial values. */
static uint32_t draw(struct program *p, uint32_t below)
{
	return rng_below(rng_next(&p->rng), below);
}

static void act(struct program *p, int self);

/* ---- waits ---- */

static int64_t some_deadline(struct program *p)
{
	uint32_t how = draw(p, 5);

	if (how == 0)
		return HIVE_NOWAIT;
	return how < 3 ? HIVE_FOREVER : hive_deadline(p->hive, (int64_t)draw(p, 3000));
}

/* What a wait may say, when: never late without a deadline, never late before it. */
static void check_wait(struct program *p, int r, int64_t deadline_ns)
{
	if (r == -ETIMEDOUT) {
		EXPECT(deadline_ns != HIVE_FOREVER && hive_now(p->hive) >= deadline_ns);
		p->late_waits++;
	} else if (r == -ECANCELED) {
		EXPECT(p->now || p->cancels);
		p->cancelled_waits++;
	} else {
		EXPECT(r == 0 || (r == -ENOMEM && p->fails));
	}
}

/* Somebody after `self` whose handle nobody has asked for. */
static struct one *find_free(struct program *p, int self)
{
	uint32_t n = (uint32_t)(p->used - self - 1), at = n ? draw(p, n) : 0;

	for (uint32_t i = 0; i < n; i++) {
		struct one *o = &p->ones[self + 1 + (int)((at + i) % n)];

		if (o->accepted && o->handle && !o->asked)
			return o;
	}
	return NULL;
}

static void check_result(struct one *o, int result)
{
	EXPECT(o->begun == o->ended);
	EXPECT(o->begun || o->program->now);
	EXPECT(result == (o->begun ? (int)(o - o->program->ones) : -ECANCELED));
}

static void join_one(struct program *p, int self)
{
	struct one *o = find_free(p, self);
	int64_t deadline = some_deadline(p);
	int result = -1, r;

	if (!o)
		return;
	o->asked = true;
	r = hive_fiber_join(o->handle, deadline, &result);
	check_wait(p, r, deadline);
	if (r < 0) {
		o->asked = false;
		return;
	}
	check_result(o, result);
	EXPECT(hive_fiber_join(o->handle, HIVE_NOWAIT, NULL) == -ESRCH);
	p->joins++;
}

static void detach_one(struct program *p, int self)
{
	struct one *o = find_free(p, self);

	if (!o)
		return;
	o->asked = true;
	EXPECT(hive_fiber_detach(o->handle) == 0);
	EXPECT(hive_fiber_detach(o->handle) == -ESRCH);
}

/* Several, none of which anybody joins meanwhile. */
static void wait_for_some(struct program *p, int self)
{
	struct hive_fiber *handles[SEVERAL];
	struct one *ones[SEVERAL];
	size_t n = 0, index = SEVERAL, most = 1 + draw(p, SEVERAL);
	int64_t deadline = some_deadline(p);
	bool any = draw(p, 2);
	int r;

	while (n < most && (ones[n] = find_free(p, self)) != NULL) {
		ones[n]->asked = true;
		handles[n] = ones[n]->handle;
		n++;
	}
	if (n == 0)
		return;
	r = any ? hive_wait_any(handles, n, deadline, &index) : hive_wait_all(handles, n, deadline);
	check_wait(p, r, deadline);
	for (size_t i = 0; i < n; i++) {
		if (r == 0 && (!any || i == index))
			EXPECT(ones[i]->ended || !ones[i]->begun);
		ones[i]->asked = false;
	}
	EXPECT(!any || (r == 0) == (index < n));
}

static void sleep_some(struct program *p)
{
	int64_t delay = (int64_t)draw(p, 2500) - 200, due = hive_deadline(p->hive, delay);
	int r = hive_sleep(delay);

	EXPECT(r == 0 || (r == -ENOMEM && p->fails) || (r == -ECANCELED && (p->now || p->cancels)));
	EXPECT(r < 0 || hive_now(p->hive) >= due);
}

static void yield_some(struct program *p)
{
	int r = hive_yield();

	EXPECT(r == 0 || (r == -ECANCELED && (p->now || p->cancels)));
}

/* ---- offloads ---- */

static int compute(void *arg)
{
	struct program *p = arg;
	struct hive_worker_stats s;

	EXPECT(!p->over && !hive_fiber_current());
	if (hive_worker_stats_read(p->hive, hive_worker_current(), &s) == 0)
		EXPECT(s.kind == HIVE_WORKER_COMPUTE);
	p->offloads++;
	return p->offloads;
}

static void offload_some(struct program *p)
{
	int64_t deadline = some_deadline(p);
	int result = -1, before = p->offloads, r = hive_offload(compute, p, deadline, &result);

	if (r == -ENOMEM)
		EXPECT(p->fails);
	else if (r != -ENOTSUP && !(r == -ECANCELED && p->stopping))
		check_wait(p, r, deadline);
	EXPECT(r == 0 ? result > before : result == -1);
}

/* ---- births ---- */

static int live(void *arg)
{
	struct one *o = arg;
	struct program *p = o->program;
	int self = (int)(o - p->ones);

	EXPECT(!p->over && !o->begun && hive_fiber_current());
	EXPECT(!o->handle || o->handle == hive_fiber_current());
	o->begun = true;
	o->value = (int)(intptr_t)hive_fiber_get(&key); /* inherited */
	for (uint32_t i = draw(p, ACTS); i > 0; i--) {
		act(p, self);
		EXPECT((int)(intptr_t)hive_fiber_get(&key) == o->value);
	}
	EXPECT(!p->over && !o->ended);
	o->ended = true;
	return self;
}

static struct one *new_one(struct program *p, int parent)
{
	struct one *o;

	if (p->used == FIBERS || (parent != OUTSIDE && p->ones[parent].depth == DEPTH))
		return NULL;
	o = &p->ones[p->used++];
	o->program = p;
	o->depth = parent == OUTSIDE ? 0 : p->ones[parent].depth + 1;
	o->tracked = parent != OUTSIDE && p->ones[parent].tracked;
	return o;
}

static void spawn_one(struct program *p, int parent)
{
	struct hive_fiber_options options = { .stack_bytes = draw(p, 4) ? 0 : 1 + draw(p, 100000) };
	struct one *o = new_one(p, parent);
	int r;

	if (!o)
		return;
	if (draw(p, 4) == 0)
		options.worker = p->workers[draw(p, (uint32_t)p->worker_count)];
	o->asked = draw(p, 3) == 0; /* detached from birth */
	r = hive_spawn(p->hive, live, o, draw(p, 2) ? &options : NULL, o->asked ? NULL : &o->handle);
	EXPECT(r == 0 || (r == -ENOMEM && p->fails) || (r == -ESHUTDOWN && p->stopping) ||
	       (r == -ESRCH && options.worker));
	EXPECT(r == 0 || (!o->handle && !o->begun));
	o->accepted = r == 0;
}

/* All beneath have ended when it returns, and nobody else was touched. */
static void block_on_one(struct program *p)
{
	struct one *root = new_one(p, OUTSIDE);
	int64_t deadline = draw(p, 2) ? HIVE_FOREVER : hive_deadline(p->hive, (int64_t)draw(p, 3000));
	int first = p->used, result = -1, r;
	bool cancels = p->cancels;

	if (!root)
		return;
	root->tracked = root->asked = root->accepted = true;
	p->cancels |= deadline != HIVE_FOREVER; /* a wait of theirs may be */
	r = hive_block_on(p->hive, live, root, deadline, &result);
	if (r == -ENOMEM || r == -ESHUTDOWN) {
		EXPECT((p->fails || p->stopping) && !root->begun);
		root->accepted = false;
	} else {
		EXPECT(r == 0 || (r == -ETIMEDOUT && hive_now(p->hive) >= deadline));
		check_result(root, result);
		for (int i = first; i < p->used; i++)
			EXPECT(!p->ones[i].tracked || p->ones[i].begun == p->ones[i].ended);
		p->blocks++;
	}
	p->cancels = cancels || p->cancels; /* what was cancelled stays so */
}

/* ---- what else happens ---- */

static void cancel_one(struct program *p, int self)
{
	struct one *o = find_free(p, OUTSIDE);

	if (!o || o == &p->ones[self < 0 ? 0 : self])
		return;
	p->cancels = true;
	EXPECT(hive_fiber_cancel(o->handle) == 0);
}

static void set_value(struct program *p, int self)
{
	int value = (int)draw(p, 1000), r;

	if (self == OUTSIDE) {
		EXPECT(hive_fiber_set(&key, NULL) == -EPERM);
		return;
	}
	r = hive_fiber_set(&key, (void *)(intptr_t)value);
	EXPECT(r == 0 || (r == -ENOMEM && p->fails));
	if (r == 0)
		p->ones[self].value = value;
}

static void task(void *arg)
{
	struct program *p = arg;

	EXPECT(!p->over && !hive_fiber_current());
	p->tasks++;
	if (draw(p, 2))
		spawn_one(p, OUTSIDE);
}

static void post_task(struct program *p)
{
	int r = draw(p, 2) ? hive_post(p->hive, task, p) : hive_post_compute(p->hive, task, p);

	EXPECT(r == 0 || r == -ENOMEM || r == -ESHUTDOWN);
}

static void change_workers(struct program *p, int self)
{
	uint32_t ids[2 * WORKERS];
	size_t n = hive_workers(p->hive, ids, 2 * WORKERS);
	int r;

	if (draw(p, 2) && p->worker_count < WORKERS) {
		r = hive_attach(p->hive, NULL, &p->workers[p->worker_count]);
		p->worker_count += r == 0;
		EXPECT(r == 0 || r == -ENOMEM || r == -ESHUTDOWN);
	} else if (n > 0 && n <= 2 * WORKERS) {
		r = hive_detach(p->hive, ids[draw(p, (uint32_t)n)], self == OUTSIDE ? HIVE_FOREVER : HIVE_NOWAIT);
		EXPECT(r == 0 || r == -EINPROGRESS || r == -EBUSY || r == -ESHUTDOWN);
	}
}

static void stop_it(struct program *p)
{
	enum hive_stop_mode mode = draw(p, 2) ? HIVE_DRAIN : HIVE_NOW;
	int64_t deadline = draw(p, 2) ? HIVE_FOREVER : hive_deadline(p->hive, (int64_t)draw(p, 4000));
	int r;

	p->stopping = true;
	p->now |= mode == HIVE_NOW || deadline != HIVE_FOREVER;
	r = hive_stop(p->hive, mode, deadline);
	EXPECT(r == 0 || r == -EALREADY);
}

/* One thing, in a fiber or outside. */
static void act(struct program *p, int self)
{
	uint32_t what = draw(p, 100);

	EXPECT(invariants_always(p->hive) == NULL);
	if (what < 30)
		spawn_one(p, self);
	else if (what < 42)
		join_one(p, self);
	else if (what < 50)
		wait_for_some(p, self);
	else if (what < 60)
		sleep_some(p);
	else if (what < 68)
		yield_some(p);
	else if (what < 74 && self != OUTSIDE)
		offload_some(p);
	else if (what < 78)
		detach_one(p, self);
	else if (what < 82)
		cancel_one(p, self);
	else if (what < 88)
		set_value(p, self);
	else if (what < 91)
		post_task(p);
	else if (what < 94)
		change_workers(p, self);
	else if (what < 98 && self == OUTSIDE)
		block_on_one(p);
	else if (self == OUTSIDE)
		hive_sim_advance(p->sim, (int64_t)draw(p, 2000));
	else if (what == 99 && draw(p, 60) == 0)
		stop_it(p);
}

/* ---- one program from beginning to end ---- */

static void on_warn(void *arg, const char *text)
{
	(void)arg, (void)text;
}

static void begin(struct program *p, uint64_t seed)
{
	struct hive_sim_options how = { .seed = seed };
	struct hive_worker_options io = { 0 };
	struct hive_options options = { .io = &io, .on_warn = on_warn };

	memset(p, 0, sizeof *p);
	current_seed = seed;
	p->rng = rng_mix(seed * 5 + 3);
	p->fails = draw(p, 4) == 0;
	if (p->fails)
		how.fail_percent = 1 + draw(p, 30);
	how.spurious_percent = draw(p, 3) ? 0 : 1 + draw(p, 60);
	EXPECT(hive_sim_create(&how, &p->sim) == 0);
	options.host = hive_sim_host(p->sim);
	options.preset = draw(p, 2) ? HIVE_PRESET_ROPHIVE : HIVE_PRESET_DEFAULT;
	options.io_workers = 1 + (int32_t)draw(p, 4);
	options.compute_workers = (int32_t)draw(p, 3);
	io.local_capacity = 4 << draw(p, 3);
	EXPECT(hive_create(&options, &p->hive) == 0);
	p->worker_count = (int)hive_workers(p->hive, p->workers, WORKERS) - options.compute_workers;
	for (uint32_t i = draw(p, 5); i > 0; i--)
		spawn_one(p, OUTSIDE);
	EXPECT(hive_start(p->hive) == 0);
}

/* Everybody has ended, and what nobody asked for is there to be asked for. */
static void check_end(struct program *p)
{
	struct hive_report report;
	int result;

	p->over = true;
	for (int i = 0; i < p->used; i++) {
		struct one *o = &p->ones[i];

		EXPECT(o->begun == o->ended && (o->accepted || !o->begun));
		EXPECT(!o->accepted || o->begun || p->now);
		p->never_began += o->accepted && !o->begun;
		if (!o->accepted || o->asked)
			continue;
		EXPECT(hive_fiber_join(o->handle, HIVE_NOWAIT, &result) == 0);
		check_result(o, result);
	}
	EXPECT(hive_report_read(p->hive, &report) == 0);
	EXPECT(report.posted == report.ran + report.cancelled + report.dropped);
	EXPECT(report.dropped >= (uint64_t)p->never_began);
}

static uint64_t run_program(struct program *p, uint64_t seed)
{
	uint64_t hash;

	begin(p, seed);
	for (uint32_t i = 10 + draw(p, 40); i > 0; i--)
		act(p, OUTSIDE);
	if (!p->stopping && draw(p, 3) == 0) { /* nobody waits for ever: no cycles, no sleep without end */
		hive_sim_advance(p->sim, HIVE_FOREVER);
		EXPECT(p->stopping || p->fails || invariants_quiet(p->hive) == NULL);
		for (int i = 0; i < p->used; i++)
			EXPECT(p->stopping || p->ones[i].ended || !p->ones[i].accepted);
	}
	if (!p->stopping)
		stop_it(p);
	EXPECT(hive_join(p->hive, HIVE_FOREVER) == 0);
	check_end(p);
	EXPECT(hive_destroy(p->hive) == 0);
	hash = hive_sim_hash(p->sim);
	EXPECT(hive_sim_destroy(p->sim) == 0);
	return hash;
}

/* ---- the tests ---- */

static void on_crash(int number_of_signal)
{
	tell_seed();
	signal(number_of_signal, SIG_DFL);
	raise(number_of_signal);
}

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static struct program program;

/* F-6, F-11, F-12, F-13, F-14, F-64 */
TEST(random_programs_of_fibers_keep_their_books)
{
	long only = test_env("ROPHIVE_SIM_SEED", -1), seeds = test_env("ROPHIVE_SIM_SEEDS", 2000 / test_slowness());
	int offloads = 0, joins = 0, cancelled = 0, late = 0, blocks = 0, never = 0;

	signal(SIGSEGV, on_crash);
	signal(SIGABRT, on_crash);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(tell_seed);
	for (long seed = only >= 0 ? only : 1; seed <= (only >= 0 ? only : seeds); seed++) {
		run_program(&program, (uint64_t)seed);
		offloads += program.offloads;
		joins += program.joins;
		cancelled += program.cancelled_waits;
		late += program.late_waits;
		blocks += program.blocks;
		never += program.never_began;
	}
	if (only < 0 && seeds >= 100) /* a program that does nothing shows nothing */
		CHECK(offloads > 0 && joins > 0 && cancelled > 0 && late > 0 && blocks > 0 && never > 0);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
}

TEST(the_same_seed_gives_the_same_run_of_fibers)
{
	static struct program second;

	for (uint64_t seed = 1; seed <= 100; seed++) {
		uint64_t hash = run_program(&program, seed);

		EXPECT(run_program(&second, seed) == hash);
		EXPECT(program.used == second.used && program.joins == second.joins && program.tasks == second.tasks);
		EXPECT(program.offloads == second.offloads && program.late_waits == second.late_waits);
		for (int i = 0; i < program.used; i++)
			EXPECT(program.ones[i].begun == second.ones[i].begun &&
			       program.ones[i].asked == second.ones[i].asked);
	}
}

TEST(different_seeds_give_different_runs_of_fibers)
{
	static uint64_t hashes[100];

	for (uint64_t seed = 0; seed < 100; seed++) {
		hashes[seed] = run_program(&program, seed);
		for (uint64_t i = 0; i < seed; i++)
			EXPECT(hashes[i] != hashes[seed]);
	}
}
