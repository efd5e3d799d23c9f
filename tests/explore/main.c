/* SPDX-License-Identifier: MIT */
/* usage: explore [option...]
 *   --seeds N          explore N seeds (1000), from --from S (0); one program each, all programs in turn
 *   --program NAME     only this program
 *   --seed N           only this seed; --replay SCHEDULE: with these decisions, told one by one
 *   --systematic N     every schedule with one switch that nobody needs, for N seeds of each program
 *   --jobs N           processes (2)
 *   --no-shrink 1      do not look for the least schedule that fails
 * After 10000 seeds of all programs each fault that has a name must have happened.
 * Ends with "N passed, M failed". A failure is shrunk, told, and comes with the command that replays it. "hash" stands for every
 * point of every run: the same seeds give the same number whatever compiler built this, and however many jobs there are.     */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "explore.h"
#include "programs.h"
#include "shrink.h"

enum { JOBS_MAX = 64, SECONDS_PER_RUN = 60, SEEDS_FOR_ALL_FAULTS = 10000 };

static struct options {
	const char *self, *program, *replay;
	uint64_t seeds, from, systematic;
	bool one_seed, no_shrink;
	int jobs;
} options = { .seeds = 1000, .jobs = 2 };

/* What a job tells its parent, also when it dies. */
struct job {
	uint64_t seed, done, hash, steps, switches, faults;
	const struct program *program;
	uint64_t fault_counts[FAULT_NAMES];
	struct outcome outcome;
	struct schedule schedule;
};

static int count_programs(void)
{
	int n = 0;

	while (programs[n].name)
		n++;
	return n;
}

static const struct program *find_program(const char *name)
{
	for (const struct program *p = programs; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	fprintf(stderr, "explore: no program named %s\n", name);
	exit(2);
}

static const struct program *program_of(uint64_t seed)
{
	return options.program ? find_program(options.program) : &programs[seed % (uint64_t)count_programs()];
}

static int count_faults(void)
{
	int n = 0;

	while (explore_fault_name(n))
		n++;
	return n;
}

/* Half of the seeds switch often, half of them seldom; a third has bad luck as well, and half of these of one kind above all. */
static struct plan plan_of(uint64_t seed)
{
	static const uint32_t rates[] = { 2, 4, 8, 16, 64, 256 };
	uint64_t random = rng_mix(seed + 0x5eed);
	struct plan plan = { .strategy = random & 1 ? RANDOM : BOUNDED, .seed = seed, .often = -1 };

	plan.rate = rates[(random >> 8) % 6];
	plan.preemptions = 1 + (uint32_t)(random >> 16) % 5;
	plan.length = 500u << ((random >> 24) % 4);
	plan.fault_rate = (random >> 32) % 3 == 0 ? 20u << ((random >> 40) % 5) : 0;
	if (random >> 48 & 1)
		plan.often = (int)((random >> 49) % (uint64_t)count_faults());
	return plan;
}

/* By the time of a processor: who is stopped for a while, or hardly let in, does not hang. Who waits for something real does. */
static void limit_run(void)
{
	struct itimerval limit = { .it_value.tv_sec = SECONDS_PER_RUN };

	setitimer(ITIMER_PROF, &limit, NULL);
	alarm(SECONDS_PER_RUN * 20);
}

static bool run_one(struct job *job, uint64_t seed, const struct plan *plan)
{
	job->seed = seed;
	job->program = program_of(seed);
	limit_run();
	explore_run(plan, job->program->run, NULL, &job->schedule, &job->outcome);
	job->done++;
	job->hash += rng_mix(job->outcome.hash ^ seed); /* a sum: jobs may come in any order */
	job->steps += job->outcome.steps;
	job->switches += job->outcome.switches;
	job->faults += job->outcome.faults;
	return !job->outcome.failed;
}

/* Every run that differs from the default one by one switch. */
static bool run_systematic(struct job *job, uint64_t seed)
{
	static struct schedule one;
	static uint32_t could[MASKS];
	struct plan plan = { .strategy = REPLAY, .seed = seed, .often = -1, .replay = &one };
	uint32_t steps;

	one.count = 0;
	if (!run_one(job, seed, &plan))
		return false;
	steps = job->outcome.steps;
	for (uint32_t step = 0; step < MASKS; step++)
		could[step] = explore_runnable_at(step);
	one.count = 1;
	for (uint32_t step = 1; step <= steps; step++)
		for (int thread = 0; thread < THREADS_MAX; thread++) {
			if (step < MASKS && !(could[step] & 1u << thread))
				continue;
			one.decisions[0] = (struct decision){ step, thread };
			if (!run_one(job, seed, &plan)) {
				job->schedule = one;
				return false;
			}
		}
	return true;
}

static void job_main(struct job *job, int nth)
{
	uint64_t end = options.from +
	               (options.systematic ? options.systematic * (uint64_t)count_programs() : options.seeds);

	for (uint64_t seed = options.from + (uint64_t)nth; seed < end; seed += (uint64_t)options.jobs) {
		struct plan plan = plan_of(seed);

		if (!(options.systematic ? run_systematic(job, seed) : run_one(job, seed, &plan)))
			_exit(1);
	}
	for (int i = 0; explore_fault_name(i); i++)
		job->fault_counts[i] = explore_fault_count(i);
	_exit(0);
}

static void *shared(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

/* ---- when something was found ---- */

static struct job *trial_job;

/* In a child: a run may crash or never end. True: it fails. */
static bool fails(const struct schedule *schedule, void *arg)
{
	const struct job *found = arg;
	struct plan plan = plan_of(found->seed);
	int status = 0;
	pid_t child;

	plan.strategy = REPLAY;
	plan.replay = schedule;
	if (options.systematic)
		plan.fault_rate = 0;
	fflush(NULL);
	memset(&trial_job->outcome, 0, sizeof trial_job->outcome);
	child = fork();
	if (child == 0) {
		bool good = run_one(trial_job, found->seed, &plan);

		fflush(NULL);
		_exit(good ? 0 : 1);
	}
	waitpid(child, &status, 0);
	return status != 0;
}

static void print_schedule(const struct schedule *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		printf("%s%u", i ? "," : "", s->decisions[i].step);
		if (s->decisions[i].what == FAULT)
			printf("!");
		else
			printf(":%d", s->decisions[i].what);
	}
}

static void report(struct job *found, int status)
{
	static struct schedule least;

	if (WIFSIGNALED(status))
		snprintf(found->outcome.text, sizeof found->outcome.text, "%s", strsignal(WTERMSIG(status)));
	printf("FAILED %s, seed %llu: %s\n", found->program->name, (unsigned long long)found->seed,
	       found->outcome.text);
	if (options.no_shrink)
		return;
	trial_job = shared(sizeof *trial_job);
	least = found->schedule;
	if (!fails(&least, found)) {
		printf("  the recorded schedule does not fail again: this is a defect of the explorer\n");
		return;
	}
	shrink(&least, fails, found);
	printf("  %u decisions of %u are enough:\n", least.count, found->schedule.count);
	explore_tells = true;
	fails(&least, found);
	explore_tells = false;
	printf("  %s\n  replay: %s --program %s --seed %llu%s --replay '", trial_job->outcome.text, options.self,
	       found->program->name, (unsigned long long)found->seed, options.systematic ? " --systematic 1" : "");
	print_schedule(&least);
	printf("'\n");
}

/* In a child: it leaves behind what it had not finished. */
static int run_in_child(struct job *job, const struct plan *plan)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		setvbuf(stdout, NULL, _IOLBF, 0);
		_exit(run_one(job, options.from, plan) ? 0 : 1);
	}
	waitpid(child, &status, 0);
	return status;
}

static int replay(void)
{
	static struct schedule schedule;
	struct job *job = shared(sizeof *job);
	struct plan plan = plan_of(options.from);
	int status;

	if (options.replay) {
		if (!parse_schedule(options.replay, &schedule)) {
			fprintf(stderr, "explore: not a schedule: %s\n", options.replay);
			return 2;
		}
		plan.strategy = REPLAY;
		plan.replay = &schedule;
		if (options.systematic)
			plan.fault_rate = 0;
		explore_tells = true;
		options.no_shrink = true;
	}
	status = run_in_child(job, &plan);
	if (status != 0) {
		report(job, status);
		return 1;
	}
	printf("ok %s, seed %llu: %u steps, hash %016llx\n", job->program->name, (unsigned long long)options.from,
	       job->outcome.steps, (unsigned long long)job->outcome.hash);
	return 0;
}

/* ---- all seeds ---- */

/* How many of them never happened, though there was time enough for all. */
static int print_faults(struct job *const *jobs)
{
	bool all = !options.program && !options.systematic && options.seeds >= SEEDS_FOR_ALL_FAULTS;
	int missing = 0;

	for (int i = 0; explore_fault_name(i); i++) {
		uint64_t count = 0;

		for (int j = 0; j < options.jobs; j++)
			count += jobs[j]->fault_counts[i];
		printf("fault %-20s %10llu\n", explore_fault_name(i), (unsigned long long)count);
		if (count > 0 || !all)
			continue;
		printf("FAILED: the fault \"%s\" has never happened\n", explore_fault_name(i));
		missing++;
	}
	return missing;
}

static int explore_all(void)
{
	struct job *jobs[JOBS_MAX], sum = { 0 };
	pid_t children[JOBS_MAX];
	int failed = 0, missing = 0;

	fflush(NULL);
	for (int i = 0; i < options.jobs; i++) {
		jobs[i] = shared(sizeof *jobs[i]);
		children[i] = fork();
		if (children[i] == 0)
			job_main(jobs[i], i);
	}
	for (int i = 0; i < options.jobs; i++) {
		int status = 0;

		waitpid(children[i], &status, 0);
		sum.done += jobs[i]->done;
		sum.hash += jobs[i]->hash;
		sum.steps += jobs[i]->steps;
		sum.switches += jobs[i]->switches;
		sum.faults += jobs[i]->faults;
		if (status == 0)
			continue;
		failed++;
		report(jobs[i], status);
	}
	if (failed == 0)
		missing = print_faults(jobs);
	printf("steps %llu\nswitches %llu\nfaults %llu\nhash %016llx\n", (unsigned long long)sum.steps,
	       (unsigned long long)sum.switches, (unsigned long long)sum.faults, (unsigned long long)sum.hash);
	printf("%llu passed, %d failed\n", (unsigned long long)sum.done - (unsigned)failed, failed + missing);
	return failed + missing ? 1 : 0;
}

static void usage(void)
{
	fprintf(stderr, "usage: explore [--seeds N] [--from N] [--program NAME] [--seed N [--replay SCHEDULE]]\n"
	                "               [--systematic N] [--jobs N]\n");
	exit(2);
}

static void parse(int argc, char **argv)
{
	options.self = argv[0];
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!value)
			usage();
		i++;
		if (strcmp(argv[i - 1], "--seeds") == 0)
			options.seeds = strtoull(value, NULL, 10);
		else if (strcmp(argv[i - 1], "--from") == 0)
			options.from = strtoull(value, NULL, 10);
		else if (strcmp(argv[i - 1], "--seed") == 0)
			options.from = strtoull(value, NULL, 10), options.one_seed = true;
		else if (strcmp(argv[i - 1], "--program") == 0)
			options.program = value;
		else if (strcmp(argv[i - 1], "--replay") == 0)
			options.replay = value;
		else if (strcmp(argv[i - 1], "--systematic") == 0)
			options.systematic = strtoull(value, NULL, 10);
		else if (strcmp(argv[i - 1], "--no-shrink") == 0)
			options.no_shrink = atoi(value) != 0;
		else if (strcmp(argv[i - 1], "--jobs") == 0)
			options.jobs = atoi(value);
		else
			usage();
	}
	if (options.jobs < 1 || options.jobs > JOBS_MAX)
		usage();
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	signal(SIGPIPE, SIG_IGN); /* workers block it; here they are no threads */
	return options.one_seed ? replay() : explore_all();
}
