/* SPDX-License-Identifier: MIT */
/* Random programs in the simulator, with a ledger: whatever was accepted ran once, was cancelled, or was dropped.
 *   ROPHIVE_SIM_SEEDS=n   how many programs (2000)
 *   ROPHIVE_SIM_SEED=n    only this one: a failure prints its number
 *   ROPHIVE_SIM_HASHES=n  how many hashes are printed (1): tests/arch/hashes compares those of all builds       */
#include <sched.h>
#include <signal.h>
#include <stdio.h>

#include "base/rng.h"
#include "support/invariants.h"
#include "test.h"

#include <rophive/hive.h>
#include <rophive/sim.h>

enum { ENTRIES = 600, WORKERS = 12, FANOUT = 3 };

enum fate { UNUSED, ACCEPTED, WORKED, RAN, CANCELLED, DROPPED };
enum door { POST, POST_MANY, POST_TO, POST_AFTER, COMPUTE, COMPUTE_MANY, THEN, LOCAL, SELF, SELF_AFTER, DOORS };

struct program;

struct entry {
	struct program *program;
	enum door door;
	enum fate fate;
	uint32_t target;
	int64_t due_ns;
	uint64_t post;
};

struct program {
	struct hive_sim *sim;
	struct hive *hive;
	uint64_t seed, rng;
	struct entry entries[ENTRIES];
	int used, halves; /* halves: second parts of hive_post_compute_then() */
	uint64_t ran, cancelled, dropped;
	uint32_t workers[WORKERS];
	int worker_count;
	struct hive_timer ticker;
	int ticks;
	bool stopping;
};

static volatile uint64_t current_seed;

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

/* At most one in a list of arguments or of initial values: the compiler may make them in any order. */
static uint32_t draw(struct program *p, uint32_t below)
{
	return rng_below(rng_next(&p->rng), below);
}

static void act(struct program *p, bool inside);

/* ---- what becomes of a task ---- */

static bool is_compute(const struct entry *e)
{
	return e->door == COMPUTE || e->door == COMPUTE_MANY || e->door == THEN;
}

/* The rules that hold for each task wherever it runs. */
static void check_place(const struct entry *e)
{
	struct hive *hive = e->program->hive;
	struct hive_worker_stats s;
	uint32_t here = hive_worker_current();

	EXPECT(here != HIVE_WORKER_NONE && hive_current() == hive);
	EXPECT(hive_now(hive) >= e->due_ns);
	if (hive_worker_stats_read(hive, here, &s) == 0)
		EXPECT((s.kind == HIVE_WORKER_COMPUTE) == (is_compute(e) && e->fate != WORKED));
	if (e->door == POST_TO && hive_worker_stats_read(hive, e->target, &s) == 0)
		EXPECT(here == e->target); /* unless it has left the hive */
}

static void run(void *arg)
{
	struct entry *e = arg;
	struct program *p = e->program;

	EXPECT(e->fate == ACCEPTED);
	check_place(e);
	e->fate = RAN;
	p->ran++;
	for (uint32_t i = draw(p, FANOUT); i > 0; i--)
		act(p, true);
}

static void run_work(void *arg)
{
	struct entry *e = arg;

	EXPECT(e->fate == ACCEPTED);
	check_place(e);
	e->fate = WORKED;
	e->program->ran++;
	e->program->halves++;
}

static void run_done(void *arg)
{
	struct entry *e = arg;

	EXPECT(e->fate == WORKED);
	check_place(e);
	e->fate = RAN;
	e->program->ran++;
}

static void on_drop(void *arg, const struct hive_task *task)
{
	struct entry *e = task->arg;

	EXPECT(e->fate == (task->fn == run_done ? WORKED : ACCEPTED));
	EXPECT(e->program->stopping);
	e->fate = DROPPED;
	((struct program *)arg)->dropped++;
}

static void on_warn(void *arg, const char *text)
{
	(void)arg, (void)text;
}

static void tick(struct hive_timer *timer)
{
	struct program *p = timer->arg;

	EXPECT(!p->stopping);
	p->ticks++;
}

/* A task like any other; it starts a periodic timer on the worker where it runs. */
static void run_ticker(void *arg)
{
	struct program *p = ((struct entry *)arg)->program;
	int64_t delay = draw(p, 1000), period = 1 + draw(p, 500);
	int r;

	hive_timer_init(&p->ticker, tick, p);
	p->ticker.drift = (enum hive_drift)draw(p, 3);
	r = hive_timer_start(&p->ticker, delay, period);
	EXPECT(r == 0 || r == -ENOMEM || (r == -ESHUTDOWN && p->stopping));
	run(arg);
}

/* ---- what a program does ---- */

static struct entry *new_entry(struct program *p, enum door door)
{
	struct entry *e = p->used < ENTRIES ? &p->entries[p->used] : NULL;

	if (e)
		*e = (struct entry){ .program = p, .door = door };
	return e;
}

/* Fates are written before the call: inside it the world may go on. */
static void settle(struct program *p, struct entry *e, int r, int count)
{
	EXPECT(r == 0 || r == -ENOMEM || (r == -ESHUTDOWN && p->stopping) || (r == -ESRCH && e->door == POST_TO) ||
	       (r == -ESRCH && e->door == THEN));
	if (r == 0)
		p->used += count;
}

static void post_several(struct program *p, struct entry *e)
{
	struct hive_task tasks[5];
	int count = 1 + (int)draw(p, 5);

	for (int i = 0; i < count; i++) {
		if (p->used + i >= ENTRIES)
			count = i;
		else
			e[i] = (struct entry){ .program = p, .door = e->door, .fate = ACCEPTED };
		tasks[i] = (struct hive_task){ run, &e[i] };
	}
	settle(p, e,
	       e->door == POST_MANY ? hive_post_many(p->hive, tasks, (size_t)count)
	                            : hive_post_compute_many(p->hive, tasks, (size_t)count),
	       count);
}

static int post_one(struct program *p, struct entry *e)
{
	int64_t delay = (int64_t)draw(p, 4000) - 100;

	e->fate = ACCEPTED;
	switch (e->door) {
	case POST:
		return hive_post(p->hive, run, e);
	case POST_TO:
		e->target = p->workers[draw(p, (uint32_t)p->worker_count)];
		return hive_post_to(p->hive, e->target, run, e);
	case POST_AFTER:
		e->due_ns = hive_deadline(p->hive, delay);
		return hive_post_after(p->hive, delay, run, e, &e->post);
	case COMPUTE:
		return hive_post_compute(p->hive, run, e);
	case THEN:
		return hive_post_compute_then(p->hive, run_work, p->workers[draw(p, (uint32_t)p->worker_count)],
		                              run_done, e);
	case LOCAL:
		return hive_post_local(run, e);
	case SELF:
		return hive_post_self(run, e);
	default:
		e->due_ns = hive_deadline(p->hive, delay);
		return hive_post_self_after(delay, run, e, &e->post);
	}
}

static void post_something(struct program *p, bool on_io_worker)
{
	enum door door = (enum door)draw(p, on_io_worker ? DOORS : LOCAL);
	struct entry *e = new_entry(p, door);

	if (!e)
		return;
	if (door == POST_MANY || door == COMPUTE_MANY)
		post_several(p, e);
	else
		settle(p, e, post_one(p, e), 1);
}

static void cancel_something(struct program *p)
{
	struct entry *e = p->used ? &p->entries[draw(p, (uint32_t)p->used)] : NULL;
	int r;

	if (!e || (e->door != POST_AFTER && e->door != SELF_AFTER))
		return;
	r = hive_post_cancel(p->hive, e->post);
	EXPECT(r == 0 || r == -ESRCH);
	/* Exactly one of the two; but what was due when stop was asked for is queued, and cannot be called back. */
	EXPECT((r == 0) == (e->fate == ACCEPTED) || (r == -ESRCH && p->stopping && e->due_ns <= hive_now(p->hive)));
	if (r == 0) {
		e->fate = CANCELLED;
		p->cancelled++;
	}
}

static void attach_somebody(struct program *p)
{
	struct hive_worker_options o = { .local_capacity = 4 << draw(p, 3) };
	uint32_t id;
	int r;

	if (p->worker_count == WORKERS)
		return;
	o.no_outbox = draw(p, 8) == 0;
	o.no_steal = draw(p, 8) == 0;
	o.kind = draw(p, 3) ? HIVE_WORKER_IO : HIVE_WORKER_COMPUTE;
	r = hive_attach(p->hive, &o, &id);
	EXPECT(r == 0 || r == -ENOMEM || (r == -ESHUTDOWN && p->stopping));
	if (r == 0 && o.kind == HIVE_WORKER_IO)
		p->workers[p->worker_count++] = id;
}

static void detach_somebody(struct program *p, bool inside)
{
	uint32_t ids[2 * WORKERS], chosen;
	size_t n = hive_workers(p->hive, ids, 2 * WORKERS);
	int64_t deadline = inside || draw(p, 2) ? HIVE_NOWAIT : draw(p, 2) ? HIVE_FOREVER : hive_deadline(p->hive, 100);
	int r;

	if (n == 0 || n > 2 * WORKERS)
		return;
	chosen = ids[draw(p, (uint32_t)n)];
	r = hive_detach(p->hive, chosen, deadline);
	EXPECT(r == 0 || r == -EINPROGRESS || r == -EBUSY || (r == -ESHUTDOWN && p->stopping));
	EXPECT(deadline != HIVE_FOREVER || r != -EINPROGRESS);
}

static void stop_now(struct program *p)
{
	enum hive_stop_mode mode = draw(p, 2) ? HIVE_DRAIN : HIVE_NOW;
	int64_t deadline = draw(p, 2) ? HIVE_FOREVER : hive_deadline(p->hive, draw(p, 2000));
	int r;

	p->stopping = true;
	r = hive_stop(p->hive, mode, deadline);
	EXPECT(r == 0 || r == -EALREADY);
}

static bool wanders;
static cpu_set_t allowed_cpus;

/* To the next CPU. Draws nothing: the program must not notice. */
static void wander(void)
{
	static size_t cpu;
	cpu_set_t one;

	do
		cpu = (cpu + 1) % CPU_SETSIZE;
	while (!CPU_ISSET(cpu, &allowed_cpus));
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	EXPECT(sched_setaffinity(0, sizeof one, &one) == 0);
}

/* One thing, inside of a task or outside. */
static void act(struct program *p, bool inside)
{
	struct hive_worker_stats s;
	uint32_t what = draw(p, 100);
	bool on_io = inside && hive_worker_stats_read(p->hive, hive_worker_current(), &s) == 0 &&
	             s.kind == HIVE_WORKER_IO;

	if (wanders)
		wander();
	EXPECT(invariants_always(p->hive) == NULL);
	if (what < 75)
		post_something(p, on_io);
	else if (what < 88)
		cancel_something(p);
	else if (what < 92)
		attach_somebody(p);
	else if (what < 96)
		detach_somebody(p, inside);
	else if (!inside)
		hive_sim_advance(p->sim, draw(p, 1500));
	else if (what == 99 && draw(p, 40) == 0)
		stop_now(p);
}

/* ---- one program from beginning to end ---- */

/* How far CPUs are from each other in every other program: two on a node. */
static int by_pairs(void *arg, uint32_t a, uint32_t b)
{
	(void)arg;
	return a / 2 == b / 2 ? 2 : 4;
}

static void begin(struct program *p, uint64_t seed)
{
	struct hive_sim_options how = { .seed = seed };
	struct hive_worker_options io = { 0 };
	struct hive_options options = { .on_drop = on_drop, .on_warn = on_warn, .hook_arg = p, .io = &io };
	struct entry *e;

	memset(p, 0, sizeof *p);
	current_seed = p->seed = seed;
	p->rng = rng_mix(seed * 3 + 1);
	if (draw(p, 4) == 0)
		how.fail_percent = 1 + draw(p, 30);
	how.spurious_percent = draw(p, 3) ? 0 : 1 + draw(p, 60);
	how.cpu_distance = draw(p, 2) ? by_pairs : NULL;
	EXPECT(hive_sim_create(&how, &p->sim) == 0);
	options.host = hive_sim_host(p->sim);
	options.preset = (enum hive_preset)draw(p, 4);
	options.placement = (enum hive_placement)draw(p, 3);
	options.io_workers = 1 + (int32_t)draw(p, 4);
	options.compute_workers = 1 + (int32_t)draw(p, 2);
	io.local_capacity = 4 << draw(p, 3);
	io.order = (enum hive_order)draw(p, 3);
	io.victim = (enum hive_victim)draw(p, 4);
	EXPECT(hive_create(&options, &p->hive) == 0);
	p->worker_count = (int)hive_workers(p->hive, p->workers, WORKERS) - options.compute_workers;
	for (uint32_t i = draw(p, 5); i > 0; i--)
		post_something(p, false);
	EXPECT(hive_start(p->hive) == 0);
	e = new_entry(p, POST);
	e->fate = ACCEPTED;
	settle(p, e, hive_post(p->hive, run_ticker, e), 1);
}

static void check_books(const struct program *p)
{
	struct hive_report report;
	uint64_t fates[DROPPED + 1] = { 0 };

	EXPECT(hive_report_read(p->hive, &report) == 0);
	for (int i = 0; i < p->used; i++)
		fates[p->entries[i].fate]++;
	EXPECT(fates[UNUSED] == 0 && fates[ACCEPTED] == 0 && fates[WORKED] == 0);
	EXPECT(fates[CANCELLED] == p->cancelled && fates[DROPPED] == p->dropped);
	EXPECT(report.posted == report.ran + report.cancelled + report.dropped);
	EXPECT(report.ran == p->ran);
	EXPECT(report.cancelled == p->cancelled);
	EXPECT(report.dropped == p->dropped);
	EXPECT(report.posted == (uint64_t)p->used + (uint64_t)p->halves);
}

static uint64_t run_program(struct program *p, uint64_t seed)
{
	uint64_t hash;

	begin(p, seed);
	for (uint32_t i = 10 + draw(p, 60); i > 0; i--)
		act(p, false);
	if (!p->stopping && draw(p, 4) == 0) {
		hive_sim_advance(p->sim, HIVE_US(20)); /* all that could happen by now has happened */
		EXPECT(p->stopping || invariants_quiet(p->hive) == NULL);
	}
	if (!p->stopping)
		stop_now(p);
	EXPECT(hive_join(p->hive, HIVE_FOREVER) == 0);
	EXPECT(hive_now(p->hive) >= 0);
	check_books(p);
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

/* whatever happens in whatever order, each accepted task has exactly one fate. */
TEST(random_programs_keep_their_books)
{
	long only = test_env("ROPHIVE_SIM_SEED", -1), seeds = test_env("ROPHIVE_SIM_SEEDS", 2000 / test_slowness());
	uint64_t ran = 0, cancelled = 0, dropped = 0, ticks = 0, halves = 0;

	signal(SIGSEGV, on_crash);
	signal(SIGABRT, on_crash);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(tell_seed);
	for (long seed = only >= 0 ? only : 1; seed <= (only >= 0 ? only : seeds); seed++) {
		run_program(&program, (uint64_t)seed);
		ran += program.ran;
		cancelled += program.cancelled;
		dropped += program.dropped;
		ticks += (uint64_t)program.ticks;
		halves += (uint64_t)program.halves;
	}
	if (only < 0 && seeds >= 100) /* a program that does nothing shows nothing */
		CHECK(ran > 0 && cancelled > 0 && dropped > 0 && ticks > 0 && halves > 0);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGABRT, SIG_DFL);
}

/* same seed, same program: the same run, beat for beat. */
TEST(the_same_seed_gives_the_same_run)
{
	static struct program second;

	for (uint64_t seed = 1; seed <= 100; seed++) {
		uint64_t hash = run_program(&program, seed);

		EXPECT(run_program(&second, seed) == hash);
		EXPECT(program.ran == second.ran && program.cancelled == second.cancelled);
		EXPECT(program.dropped == second.dropped && program.ticks == second.ticks &&
		       program.used == second.used);
		for (int i = 0; i < program.used; i++)
			EXPECT(program.entries[i].fate == second.entries[i].fate);
	}
}

/* other seeds, other runs. */
TEST(different_seeds_give_different_runs)
{
	static uint64_t hashes[100];

	for (uint64_t seed = 0; seed < 100; seed++) {
		hashes[seed] = run_program(&program, seed);
		for (uint64_t i = 0; i < seed; i++)
			EXPECT(hashes[i] != hashes[seed]);
	}
}

/* nor does it matter on which CPU the kernel lets us run, and how often it moves us. */
TEST(the_same_seed_gives_the_same_run_on_whatever_cpus)
{
	CHECK_OK(sched_getaffinity(0, sizeof allowed_cpus, &allowed_cpus));
	for (uint64_t seed = 0; seed < 10; seed++) {
		uint64_t hash = run_program(&program, seed);

		wanders = true;
		EXPECT(run_program(&program, seed) == hash);
		wanders = false;
		CHECK_OK(sched_setaffinity(0, sizeof allowed_cpus, &allowed_cpus));
	}
}

/* Prints hashes; the test below runs it in other processes, tests/arch/hashes in other builds. */
TEST(hashes_from_seed_seven_on_are_printed)
{
	uint64_t end = 7 + (uint64_t)test_env("ROPHIVE_SIM_HASHES", 1);

	for (uint64_t seed = 7; seed < end; seed++)
		printf("hash %d %llx\n", (int)seed, (unsigned long long)run_program(&program, seed));
}

static unsigned long long hash_in_another_process(const char *path)
{
	const char *emulator = getenv("ROPHIVE_EMULATOR");
	char command[4096], line[256];
	unsigned long long hash = 0;
	FILE *output;

	snprintf(command, sizeof command, "%s '%s' hashes_from_seed_seven_on_are_printed", emulator ? emulator : "",
	         path);
	fflush(NULL);
	output = popen(command, "r");
	CHECK(output);
	while (fgets(line, sizeof line, output))
		sscanf(line, "hash 7 %llx", &hash);
	CHECK_EQ(pclose(output), 0);
	return hash;
}

/* nothing of the process goes into a run: neither its addresses, nor its time, nor its number. */
TEST(another_process_comes_to_the_same_run)
{
	unsigned long long here = run_program(&program, 7);
	char path[2048];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	CHECK(n > 0);
	path[n] = '\0';
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hash_in_another_process(path), here);
}
