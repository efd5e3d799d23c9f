/* SPDX-License-Identifier: MIT */
/* Echo servers in turns: ours, the raw loop, those of others. All of them live all the time, each with its connections; the load asks one
 * after the other for a short while, again and again, so that what the machine does meanwhile befalls all of them alike. */
#include "echo.h"
#include "machine.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURN_MS = 50, CONTESTANTS = BENCH_SERVERS + 2 };

struct contestant {
	struct rival rival;
	struct load load;
	int64_t asked_ns, cpu_ns;      /* sums over its turns */
	double *rates, *cpus;          /* of each turn: answers a second, server's ns for each */
	double busy_bytes, idle_bytes; /* resident, for each connection */
	pid_t idler; /* has the idle connections: one process may not have descriptors enough for all servers */
	int idler_end;
};

struct contest {
	const struct bench_params *params;
	int32_t count, turns, connections;
	int64_t bytes;
	struct contestant all[CONTESTANTS]; /* ours is the first */
};

/* For a server's connections, or all that the load has; what the hard limit does not allow is said by whoever needs it. */
static void raise_limit(const struct contest *contest)
{
	rlim_t busy = (rlim_t)(contest->connections * contest->count), idle = (rlim_t)contest->params->idle;
	rlim_t need = busy + idle + 1000;
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
		return;
	limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void pin_load(const struct bench_params *params)
{
	cpu_set_t cpus;
	int32_t count = machine_cpus_allowed();
	if (!params->pin || count < 2)
		return;
	CPU_ZERO(&cpus);
	CPU_SET(machine_allowed_cpu((size_t)count - 1), &cpus);
	sched_setaffinity(0, sizeof cpus, &cpus);
}

static bool raw_beside(const struct bench_params *params)
{
	return params->style != BENCH_RAW && !params->alone;
}

static int begin_servers(struct contest *contest)
{
	const struct bench_params *params = contest->params;
	bool raw = params->style == BENCH_RAW;
	struct contestant *next = contest->all;
	int code = rival_start(&next++->rival, raw ? "raw" : "hive", NULL, raw ? echo_serve_raw : echo_serve_hive,
	                       params);
	if (!code && raw_beside(params))
		code = rival_start(&next++->rival, "raw", NULL, echo_serve_raw, params);
	for (int32_t i = 0; i < params->server_count && !code; i++)
		code = rival_start_foreign(&next++->rival, params->servers[i], params);
	return code;
}

/* Idle connections, each of which has had one answer, until the other end of the pipe is closed. */
static void be_idle(const struct contest *contest, const struct contestant *contestant, int told, int end)
{
	struct load load;
	char byte = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int code = load_open(&load, contest->params->idle, contest->bytes);
	if (!code)
		code = load_connect(&load, contestant->rival.port, contest->params->idle);
	if (!code && write(told, &byte, 1) == 1)
		code = (int)read(end, &byte, 1);
	_exit(code);
}

static int start_idler(struct contest *contest, struct contestant *contestant)
{
	int told[2], end[2];
	char byte;
	if (pipe2(told, O_CLOEXEC) < 0 || pipe2(end, O_CLOEXEC) < 0)
		return bench_failed("pipe", -errno);
	contestant->idler = fork();
	if (contestant->idler < 0)
		return bench_failed("fork", -errno);
	if (contestant->idler == 0) {
		close(end[1]);
		be_idle(contest, contestant, told[1], end[0]);
	}
	close(told[1]);
	close(end[0]);
	contestant->idler_end = end[1];
	bool ready = read(told[0], &byte, 1) == 1;
	close(told[0]);
	return ready ? BENCH_OK : bench_failed("idle connections", -ECHILD);
}

static void stop_idler(struct contestant *contestant)
{
	if (contestant->idler <= 0)
		return;
	close(contestant->idler_end);
	kill(contestant->idler, SIGKILL); /* another idler may have a copy of that end */
	waitpid(contestant->idler, NULL, 0);
}

static int warm_up(struct contest *contest, struct contestant *contestant)
{
	int code = load_run(&contestant->load, contest->connections, sync_now() + HIVE_MS(TURN_MS));
	load_reset(&contestant->load);
	return code;
}

/* Memory for idle connections is looked at when the busy ones have had theirs. */
static int connect_all(struct contest *contest, struct contestant *contestant)
{
	int32_t idle = contest->params->idle;
	int64_t empty_kb = rival_memory_kb(&contestant->rival);
	int code = load_open(&contestant->load, contest->connections, contest->bytes);
	if (!code)
		code = load_connect(&contestant->load, contestant->rival.port, contest->connections);
	if (!code)
		code = warm_up(contest, contestant);
	int64_t before_kb = rival_memory_kb(&contestant->rival);
	contestant->busy_bytes = (double)(before_kb - empty_kb) * 1024 / (double)contest->connections;
	if (!code && idle > 0)
		code = start_idler(contest, contestant);
	if (idle > 0)
		contestant->idle_bytes = (double)(rival_memory_kb(&contestant->rival) - before_kb) * 1024 /
		                         (double)idle;
	return code;
}

static int take_turn(struct contest *contest, struct contestant *contestant, int32_t turn)
{
	struct load *load = &contestant->load;
	uint64_t answers = load->answers;
	int64_t cpu = rival_cpu_ns(&contestant->rival), begin = sync_now();
	int code = load_run(load, contest->connections, begin + HIVE_MS(TURN_MS));
	int64_t asked = sync_now() - begin;
	cpu = rival_cpu_ns(&contestant->rival) - cpu;
	answers = load->answers - answers;
	contestant->asked_ns += asked;
	contestant->cpu_ns += cpu;
	contestant->rates[turn] = (double)answers * 1e9 / (double)asked;
	contestant->cpus[turn] = answers ? (double)cpu / (double)answers : 0;
	return code;
}

/* Every other round backwards: who comes after whom changes. */
static int take_turns(struct contest *contest)
{
	int code = BENCH_OK;
	for (int32_t turn = 0; turn < contest->turns && !code; turn++)
		for (int32_t i = 0; i < contest->count && !code; i++) {
			int32_t who = turn % 2 ? contest->count - 1 - i : i;
			code = take_turn(contest, &contest->all[who], turn);
		}
	return code;
}

static double median_ratio(const struct contest *contest, const double *ours, const double *theirs)
{
	double *ratios = calloc((size_t)contest->turns, sizeof *ratios), median = 0;
	for (int32_t i = 0; ratios && i < contest->turns; i++)
		ratios[i] = theirs[i] > 0 ? ours[i] / theirs[i] : 0;
	if (ratios)
		median = stats_median(ratios, (size_t)contest->turns);
	free(ratios);
	return median;
}

static double answers(const struct contestant *contestant)
{
	return contestant->load.answers ? (double)contestant->load.answers : 1;
}

static void report_ours(const struct contest *contest, struct record *result)
{
	static const char *const styles[] = {
		"fibers", "ops", "raw", "lent", "sources", "edges"
	}; /* no others: below */
	const struct contestant *ours = &contest->all[0];
	record_text(result, "style", styles[contest->params->style]);
	record_text(result, "core", contest->params->core ? contest->params->core->name : "best");
	record_count(result, "connections", contest->connections);
	record_count(result, "idle", contest->params->idle);
	record_count(result, "bytes", contest->bytes);
	record_count(result, "deadline_ms", contest->params->deadline_ms);
	bench_put_rate(result, (double)ours->load.answers, ours->asked_ns);
	record_metric(result, "cpu_ns_each", (double)ours->cpu_ns / answers(ours));
	record_metric(result, "cpu_share", (double)ours->cpu_ns / (double)(ours->asked_ns ? ours->asked_ns : 1));
	bench_put_percentiles(result, &ours->load.times);
	record_metric(result, "bytes_each", ours->busy_bytes);
	if (contest->params->idle > 0)
		record_metric(result, "idle_bytes_each", ours->idle_bytes);
}

/* Ratios are ours by theirs, the median of those of each round: above 1 we answer more; above 1 we use more CPU. */
static void report_other(const struct contest *contest, const struct contestant *other, struct record *result)
{
	const struct contestant *ours = &contest->all[0];
	rival_put(&other->rival, result, "ops_per_s",
	          answers(other) * 1e9 / (double)(other->asked_ns ? other->asked_ns : 1));
	rival_put(&other->rival, result, "cpu_ns_each", (double)other->cpu_ns / answers(other));
	char whose[sizeof other->rival.name + 1];
	snprintf(whose, sizeof whose, "%s_", other->rival.name);
	bench_put_percentiles_of(result, whose, &other->load.times);
	rival_put(&other->rival, result, "bytes_each", other->busy_bytes);
	if (contest->params->idle > 0)
		rival_put(&other->rival, result, "idle_bytes_each", other->idle_bytes);
	rival_put(&other->rival, result, "ratio", median_ratio(contest, ours->rates, other->rates));
	rival_put(&other->rival, result, "cpu_ratio", median_ratio(contest, ours->cpus, other->cpus));
}

static int hold_contest(struct contest *contest, struct record *result)
{
	int code = begin_servers(contest);
	for (int32_t i = 0; i < contest->count && !code; i++) {
		struct contestant *contestant = &contest->all[i];
		contestant->rates = calloc((size_t)contest->turns, sizeof *contestant->rates);
		contestant->cpus = calloc((size_t)contest->turns, sizeof *contestant->cpus);
		if (!contestant->rates || !contestant->cpus)
			return bench_failed("memory for the turns", -ENOMEM);
		code = connect_all(contest, contestant);
	}
	if (!code)
		code = take_turns(contest);
	if (!code)
		report_ours(contest, result);
	for (int32_t i = 1; i < contest->count && !code; i++)
		report_other(contest, &contest->all[i], result);
	for (int32_t i = 0; i < contest->count; i++)
		stop_idler(&contest->all[i]); /* all of them first: each has copies of all ends */
	for (int32_t i = 0; i < contest->count; i++) {
		if (contest->all[i].load.links)
			load_close(&contest->all[i].load);
		int end = rival_stop(&contest->all[i].rival);
		code = code ? code : end;
		free(contest->all[i].rates);
		free(contest->all[i].cpus);
	}
	bench_put_memory(result);
	return code;
}

int bench_echo_server(const struct bench_params *params, struct record *result)
{
	if (params->style > BENCH_EDGES)
		return bench_failed("the echo server has no such style", -EINVAL);
	if (params->serve)
		return params->style == BENCH_RAW ? echo_serve_raw(params) : echo_serve_hive(params);
	struct contest *contest = calloc(1, sizeof *contest);
	if (!contest)
		return bench_failed("memory", -ENOMEM);
	contest->params = params;
	contest->count = 1 + raw_beside(params) + params->server_count;
	contest->turns = (int32_t)(params->seconds * 1000 / TURN_MS / contest->count) + 1;
	contest->connections = params->connections ? params->connections : 64;
	contest->bytes = params->bytes ? params->bytes : 64;
	if (contest->bytes > 16384)
		return free(contest), bench_failed("a request has 16 KiB at most", -EINVAL);
	raise_limit(contest);
	pin_load(params);
	int code = hold_contest(contest, result);
	free(contest);
	return code;
}
