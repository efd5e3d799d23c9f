/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "sync.h"
#include <rophive/sim.h>
#include <stdio.h>

/* numa_sim: a machine of four sockets in the simulator, with 16 and with 64 workers, one task a beat. One worker of each socket posts a
 * quarter of the tasks to itself; how many of those that others steal cross from one socket to another, with each policy. What is
 * counted depends on the seed alone, and not on the machine that it runs on; so the warm-up is one more run.                       */
#define SOCKETS 4
#define WORKERS_MOST 64
#define BURST 400 /* tasks at a time: the local queue takes them all */

struct machine_sim {
	uint32_t workers;
	enum hive_victim victim;
	int64_t n;
	uint64_t ran, stolen, far, rounds;
};

struct feeder {
	int64_t left;
	int error;
};

static int distance(void *arg, uint32_t a, uint32_t b)
{
	uint32_t socket = *(const uint32_t *)arg / SOCKETS;
	return a == b ? 0 : a / 2 == b / 2 ? 1 : a / socket == b / socket ? 3 : 4;
}

static void work(void *arg)
{
	(void)arg;
}

static void feed(void *arg)
{
	struct feeder *feeder = arg;
	for (int i = 0; i < BURST && feeder->left > 0 && !feeder->error; i++, feeder->left--)
		feeder->error = hive_post_local(work, NULL);
	if (feeder->left > 0 && !feeder->error)
		feeder->error = hive_post_self_after(HIVE_US(1), feed, feeder, NULL); /* when all of it is done */
}

static int count(const struct hive *hive, struct machine_sim *machine, const uint32_t *ids)
{
	for (uint32_t i = 0; i < machine->workers; i++) {
		struct hive_worker_stats stats;
		int error = hive_worker_stats_read(hive, ids[i], &stats);
		if (error)
			return bench_failed("hive_worker_stats_read", error);
		machine->ran += stats.ran;
		machine->stolen += stats.stolen;
		machine->far += stats.stolen_far;
		machine->rounds += stats.steal_rounds;
	}
	return BENCH_OK;
}

static int load(struct hive *hive, struct hive_sim *sim, struct machine_sim *machine)
{
	struct feeder feeders[SOCKETS] = { { 0 } };
	uint32_t ids[WORKERS_MOST];
	hive_workers(hive, ids, WORKERS_MOST);
	for (int i = 0; i < SOCKETS; i++) {
		feeders[i].left = machine->n / SOCKETS + (i < machine->n % SOCKETS);
		int error = hive_post_to(hive, ids[(uint32_t)i * machine->workers / SOCKETS], feed, &feeders[i]);
		if (error)
			return bench_failed("hive_post_to", error);
	}
	hive_sim_advance(sim, HIVE_FOREVER);
	for (int i = 0; i < SOCKETS; i++)
		if (feeders[i].error || feeders[i].left > 0)
			return bench_failed("hive_post_local", feeders[i].error);
	int code = count(hive, machine, ids);
	return code || machine->ran >= (uint64_t)machine->n
	               ? code
	               : bench_wrong("tasks run", (uint64_t)machine->n, machine->ran);
}

static int simulate(struct machine_sim *machine)
{
	struct hive_sim_options how = { .seed = 1, .cpu_distance = distance, .cpu_arg = &machine->workers };
	struct hive_worker_options io = { .victim = machine->victim, .local_budget = 1 };
	struct hive_options options = { .io_workers = (int32_t)machine->workers, .io = &io };
	struct hive_sim *sim;
	struct hive *hive;
	int error = hive_sim_create(&how, &sim);
	if (error)
		return bench_failed("hive_sim_create", error);
	options.host = hive_sim_host(sim);
	error = hive_create(&options, &hive);
	if (!error)
		error = hive_start(hive);
	if (error)
		return bench_failed("hive_start", error);
	int code = load(hive, sim, machine);
	hive_stop(hive, HIVE_NOW, HIVE_FOREVER);
	hive_join(hive, HIVE_FOREVER);
	hive_destroy(hive);
	hive_sim_destroy(sim);
	return code;
}

static void put(struct record *result, const char *policy, const struct machine_sim *machine)
{
	char name[32];
	snprintf(name, sizeof name, "%s_%u_steals", policy, machine->workers);
	record_metric(result, name, (double)machine->stolen);
	snprintf(name, sizeof name, "%s_%u_far", policy, machine->workers);
	record_metric(result, name, (double)machine->far);
	snprintf(name, sizeof name, "%s_%u_rounds", policy, machine->workers);
	record_metric(result, name, (double)machine->rounds);
}

int bench_numa_sim(const struct bench_params *params, struct record *result)
{
	static const struct {
		const char *name;
		enum hive_victim victim;
	} policies[] = { { "random", HIVE_VICTIM_RANDOM },
		         { "busiest", HIVE_VICTIM_BUSIEST },
		         { "near", HIVE_VICTIM_NEAR } };
	struct machine_sim warm_up = { .workers = SOCKETS, .victim = HIVE_VICTIM_NEAR, .n = params->n / 10 + 1 };
	int code = simulate(&warm_up);
	int64_t begin = sync_now(), tasks = 0;
	for (uint32_t workers = 16; workers <= WORKERS_MOST; workers *= 4)
		for (size_t i = 0; i < sizeof policies / sizeof *policies && !code; i++) {
			struct machine_sim machine = { .workers = workers,
				                       .victim = policies[i].victim,
				                       .n = params->n };
			code = simulate(&machine);
			put(result, policies[i].name, &machine);
			tasks += params->n;
		}
	bench_put_rate(result, (double)tasks, sync_now() - begin);
	bench_put_memory(result);
	return code;
}
