/* SPDX-License-Identifier: MIT */
/* Blocks of a file at random places, so many at a time: by fibers or operations of a hive, in turns with plain threads that call
 * pread or pwrite, in one process on one file. Each block begins with its own number, which is looked at.                   */
#include "fibers.h"
#include "machine.h"
#include <fcntl.h>
#include <pthread.h>
#include <rophive/io.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 4096, TURN_MS = 50, DEPTH_MOST = 4096 };

struct turn_sum { /* over the turns of one side */
	int64_t ns, cpu_ns;
	uint64_t done;
	double *rates, *cpus; /* of each turn: blocks a second, ns of CPU for each */
};

struct reader { /* one of `depth`, of either side */
	struct hive_op op;
	struct file_run *run;
	uint64_t done, random, at;
	int error;
	_Alignas(BLOCK) char block[BLOCK];
};

struct file_run {
	const struct bench_params *params;
	struct rig rig;
	int fd;
	bool writes;
	int32_t depth;
	uint64_t blocks;
	_Atomic int64_t until_ns;
	_Atomic int64_t left; /* operations that go on */
	struct reader *readers;
	pthread_barrier_t begin;
};

static void choose(struct reader *reader)
{
	reader->random ^= reader->random << 13;
	reader->random ^= reader->random >> 7;
	reader->random ^= reader->random << 17;
	reader->at = reader->random % reader->run->blocks;
	if (reader->run->writes)
		memcpy(reader->block, &reader->at, sizeof reader->at);
}

/* False: that was the last one. */
static bool check(struct reader *reader, int64_t result)
{
	if (result != BLOCK || (!reader->run->writes && memcmp(reader->block, &reader->at, sizeof reader->at) != 0)) {
		reader->error = result < 0 ? (int)result : -EIO;
		return false;
	}
	reader->done++;
	return sync_now() < reader->run->until_ns;
}

/* ---- the threads ---- */

static void *thread_main(void *arg)
{
	struct reader *reader = arg;
	ssize_t r;
	pthread_barrier_wait(&reader->run->begin);
	do {
		off_t place;
		choose(reader);
		place = (off_t)(reader->at * BLOCK);
		r = reader->run->writes ? pwrite(reader->run->fd, reader->block, BLOCK, place)
		                        : pread(reader->run->fd, reader->block, BLOCK, place);
	} while (check(reader, r < 0 ? -errno : r));
	return NULL;
}

static int run_threads(struct file_run *run, int64_t *ret_begin_ns)
{
	pthread_t threads[DEPTH_MOST];
	pthread_barrier_init(&run->begin, NULL, (unsigned)run->depth + 1);
	for (int32_t i = 0; i < run->depth; i++)
		if (pthread_create(&threads[i], NULL, thread_main, &run->readers[i]) != 0)
			return bench_failed("a thread", -EAGAIN);
	*ret_begin_ns = sync_now();
	run->until_ns = *ret_begin_ns + HIVE_MS(TURN_MS);
	pthread_barrier_wait(&run->begin);
	for (int32_t i = 0; i < run->depth; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&run->begin);
	return BENCH_OK;
}

/* ---- the hive ---- */

static int fiber_main(void *arg)
{
	struct reader *reader = arg;
	int fd = reader->run->fd;
	int64_t r;
	do {
		choose(reader);
		r = reader->run->writes
		            ? hive_write(fd, reader->block, BLOCK, (int64_t)reader->at * BLOCK, HIVE_FOREVER)
		            : hive_read(fd, reader->block, BLOCK, (int64_t)reader->at * BLOCK, HIVE_FOREVER);
	} while (check(reader, r));
	return 0;
}

static int all_fibers(void *arg)
{
	struct file_run *run = arg;
	struct hive_fiber *handles[DEPTH_MOST];
	return fibers_spawn_and_join(fiber_main, run->readers, sizeof *run->readers, run->depth, handles);
}

static void start_op(struct reader *reader)
{
	int fd = reader->run->fd, error;
	choose(reader);
	error = reader->run->writes ? hive_op_write(&reader->op, fd, reader->block, BLOCK, (int64_t)reader->at * BLOCK,
	                                            HIVE_FOREVER)
	                            : hive_op_read(&reader->op, fd, reader->block, BLOCK, (int64_t)reader->at * BLOCK,
	                                           HIVE_FOREVER);
	if (error) {
		reader->error = error;
		reader->run->left--;
	}
}

static void on_done(struct hive_op *op, int64_t result)
{
	struct reader *reader = op->arg;
	if (check(reader, result))
		start_op(reader);
	else
		reader->run->left--;
}

static int run_ops(struct file_run *run)
{
	int64_t limit = sync_now() + BENCH_PATIENCE_NS;
	run->left = run->depth;
	for (int32_t i = 0; i < run->depth; i++) {
		hive_op_init(&run->readers[i].op, run->rig.hive, on_done, &run->readers[i]);
		start_op(&run->readers[i]);
	}
	while (run->left > 0 && sync_now() < limit)
		sync_sleep(HIVE_MS(1));
	return run->left ? bench_timeout("operations", (uint64_t)run->depth, (uint64_t)(run->depth - run->left))
	                 : BENCH_OK;
}

static int run_hive(struct file_run *run, int64_t *ret_begin_ns)
{
	*ret_begin_ns = sync_now();
	run->until_ns = *ret_begin_ns + HIVE_MS(TURN_MS);
	return run->params->style == BENCH_OPS ? run_ops(run) : fibers_run(&run->rig, all_fibers, run);
}

/* ---- in turns ---- */

static int take_turn(struct file_run *run, struct turn_sum *sum, int32_t turn,
                     int (*side)(struct file_run *, int64_t *))
{
	if (run->params->cold && (fdatasync(run->fd) < 0 || posix_fadvise(run->fd, 0, 0, POSIX_FADV_DONTNEED) != 0))
		return bench_failed("to drop the file from memory", -errno);
	for (int32_t i = 0; i < run->depth; i++)
		run->readers[i].done = 0;
	double cpu = machine_cpu_seconds();
	int64_t begin;
	int code = side(run, &begin);
	if (code)
		return code;
	int64_t ns = sync_now() - begin, cpu_ns = (int64_t)((machine_cpu_seconds() - cpu) * 1e9);
	uint64_t done = 0;
	for (int32_t i = 0; i < run->depth; i++) {
		if (run->readers[i].error)
			return bench_failed("a block", run->readers[i].error);
		done += run->readers[i].done;
	}
	sum->ns += ns;
	sum->cpu_ns += cpu_ns;
	sum->done += done;
	sum->rates[turn] = (double)done * 1e9 / (double)ns;
	sum->cpus[turn] = (double)cpu_ns / (double)(done ? done : 1);
	return BENCH_OK;
}

static int prepare_file(struct file_run *run)
{
	char path[] = "/tmp/hive-bench-XXXXXX", block[BLOCK] = { 0 };
	run->fd = mkstemp(path);
	if (run->fd < 0)
		return bench_failed("mkstemp", -errno);
	unlink(path);
	posix_fadvise(run->fd, 0, 0, POSIX_FADV_RANDOM);
	for (uint64_t i = 0; i < run->blocks; i++) {
		memcpy(block, &i, sizeof i);
		if (write(run->fd, block, BLOCK) != BLOCK)
			return bench_failed("write", -errno);
	}
	return BENCH_OK;
}

/* Whatever was written, each block must still have its number. */
static int check_file(struct file_run *run)
{
	for (uint64_t i = 0; i < run->blocks; i++) {
		uint64_t found = ~i;
		if (pread(run->fd, &found, sizeof found, (off_t)(i * BLOCK)) != sizeof found || found != i)
			return bench_wrong("a block's number", i, found);
	}
	return BENCH_OK;
}

static double median_ratio(const double *ours, const double *theirs, double *scratch, int32_t turns)
{
	for (int32_t i = 0; i < turns; i++)
		scratch[i] = theirs[i] > 0 ? ours[i] / theirs[i] : 0;
	return stats_median(scratch, (size_t)turns);
}

static void report(const struct file_run *run, struct turn_sum *ours, struct turn_sum *theirs, double *scratch,
                   int32_t turns, struct record *result)
{
	record_text(result, "style", run->params->style == BENCH_OPS ? "ops" : "fibers");
	record_count(result, "depth", run->depth);
	record_count(result, "bytes", (int64_t)run->blocks * BLOCK);
	record_flag(result, "cold", run->params->cold);
	bench_put_rate(result, (double)ours->done, ours->ns);
	record_metric(result, "cpu_ns_each", (double)ours->cpu_ns / (double)(ours->done ? ours->done : 1));
	record_metric(result, "threads_ops_per_s", (double)theirs->done * 1e9 / (double)(theirs->ns ? theirs->ns : 1));
	record_metric(result, "threads_cpu_ns_each",
	              (double)theirs->cpu_ns / (double)(theirs->done ? theirs->done : 1));
	record_metric(result, "threads_ratio", median_ratio(ours->rates, theirs->rates, scratch, turns));
	record_metric(result, "threads_cpu_ratio", median_ratio(ours->cpus, theirs->cpus, scratch, turns));
	bench_put_memory(result);
}

static int take_turns(struct file_run *run, struct record *result)
{
	int32_t turns = (int32_t)(run->params->seconds * 1000 / TURN_MS / 2) + 1;
	double *values = calloc((size_t)turns * 5, sizeof *values);
	if (!values)
		return bench_failed("memory for the turns", -ENOMEM);
	struct turn_sum ours = { .rates = values, .cpus = values + turns };
	struct turn_sum theirs = { .rates = values + 2 * turns, .cpus = values + 3 * turns };
	struct turn_sum warm_up = ours; /* thrown away */
	int code = take_turn(run, &warm_up, 0, run_hive);
	if (!code)
		code = take_turn(run, &warm_up, 0, run_threads);
	for (int32_t turn = 0; turn < turns && !code; turn++) {
		code = take_turn(run, &ours, turn, run_hive);
		if (!code)
			code = take_turn(run, &theirs, turn, run_threads);
	}
	report(run, &ours, &theirs, values + 4 * turns, turns, result);
	free(values);
	return code;
}

static int measure(const struct bench_params *params, struct record *result, bool writes)
{
	struct file_run run = { .params = params, .writes = writes, .depth = params->depth ? params->depth : 16 };
	int32_t helpers = params->threads > 1 ? params->threads : 2; /* compute workers, for what is not in memory */
	run.blocks = (uint64_t)(params->bytes ? params->bytes : 64 << 20) / BLOCK;
	run.readers = aligned_alloc(BLOCK, (size_t)run.depth * sizeof *run.readers);
	if (run.blocks == 0 || !run.readers)
		return bench_failed("memory, or a file without a block", -EINVAL);
	memset(run.readers, 0, (size_t)run.depth * sizeof *run.readers);
	for (int32_t i = 0; i < run.depth; i++) {
		run.readers[i].run = &run;
		run.readers[i].random = (uint64_t)i + 88172645463325252u;
	}
	int code = prepare_file(&run);
	if (!code)
		code = rig_open(&run.rig, params, params->threads, helpers);
	if (code)
		return code;
	code = rig_close(&run.rig, take_turns(&run, result));
	if (!code)
		code = check_file(&run);
	close(run.fd);
	free(run.readers);
	return code;
}

int bench_file_read(const struct bench_params *params, struct record *result)
{
	return measure(params, result, false);
}

int bench_file_write(const struct bench_params *params, struct record *result)
{
	return measure(params, result, true);
}
