/* SPDX-License-Identifier: MIT */
/* What waits on an IO worker while its fibers read large files: one that sleeps 100 us again and again says how late it was woken. In turns with
 * the same fibers calling pread, which is what blocks, and before both without any, for what the machine does by itself. Each fiber has its own part of the file (--files: a file of its own), and reads it
 * round and round. --splice: by hive_splice() to /dev/null, against sendfile(); who would receive it shall not be in the way.
 *
 * On a busy machine most of what is late has waited for a CPU. The system tells how long that was, and `stall` is what is left of
 * each: time in which the worker was kept by what it did.                                                                  */
#include "fibers.h"
#include "machine.h"
#include <fcntl.h>
#include <rophive/io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { TURN_MS = 500, DEPTH_MOST = 1024, FILL = 1 << 20 };
#define PING_NS HIVE_US(100)

enum side { ALONE, BY_HIVE, BY_PREAD }; /* who reads: nobody, the library, or pread on the IO worker */
static const char *const late_names[] = { "alone", "late", "pread" };
static const char *const stall_names[] = { "alone_stall", "stall", "pread_stall" };

struct reader {
	struct stall_run *run;
	int64_t at, from, bytes; /* its part */
	int64_t done;
	int fd;
	char *buffer;
	int error;
};

struct stall_run {
	const struct bench_params *params;
	struct rig rig;
	int null;
	enum side side;
	int32_t depth;
	int64_t piece;
	_Atomic int64_t begin_ns, until_ns;
	struct reader *readers;
	struct stats late, stall;
	int64_t pings, long_stalls; /* of these over 1 ms */
};

static int64_t read_piece(const struct reader *reader)
{
	const struct stall_run *run = reader->run;
	int64_t left = reader->from + reader->bytes - reader->at;
	size_t bytes = (size_t)(left < run->piece ? left : run->piece);
	off_t at = reader->at;
	ssize_t r;
	if (run->side == BY_HIVE && run->params->splice)
		return hive_splice(reader->fd, at, run->null, -1, bytes, HIVE_FOREVER);
	if (run->side == BY_HIVE)
		return hive_read(reader->fd, reader->buffer, bytes, at, HIVE_FOREVER);
	r = run->params->splice ? sendfile(run->null, reader->fd, &at, bytes)
	                        : pread(reader->fd, reader->buffer, bytes, at);
	hive_yield(); /* as polite as it can be */
	return r < 0 ? -EIO : r;
}

static int reader_main(void *arg)
{
	struct reader *reader = arg;
	while (sync_now() < reader->run->until_ns) {
		int64_t n = read_piece(reader);
		if (n <= 0) {
			reader->error = n < 0 ? (int)n : -EIO;
			break;
		}
		reader->done += n;
		reader->at += n;
		if (reader->at >= reader->from + reader->bytes)
			reader->at = reader->from;
	}
	return 0;
}

/* How long this thread has waited for a CPU, of all its life. */
static int64_t queued_ns(int schedstat)
{
	char text[64] = "";
	long long ran, queued;
	if (schedstat < 0 || pread(schedstat, text, sizeof text - 1, 0) <= 0)
		return 0;
	return sscanf(text, "%lld %lld", &ran, &queued) == 2 ? queued : 0;
}

static int ping(struct stall_run *run, int schedstat)
{
	int64_t queued = queued_ns(schedstat);
	for (int64_t now = run->begin_ns; now < run->until_ns;) { /* it may come late */
		int64_t due = now + PING_NS;
		int r = hive_sleep(due - sync_now());
		if (r < 0)
			return r;
		now = sync_now();
		stats_add(&run->late, now - due);
		int64_t until_now = queued_ns(schedstat), own = now - due - (until_now - queued);
		stats_add(&run->stall, own > 0 ? own : 0);
		run->pings++;
		run->long_stalls += own > HIVE_MS(1);
		queued = until_now;
	}
	return 0;
}

static int pinger_main(void *arg)
{
	int schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC), r = ping(arg, schedstat);
	if (schedstat >= 0)
		close(schedstat);
	return r;
}

static int all_fibers(void *arg)
{
	struct stall_run *run = arg;
	struct hive_fiber_options there = { .worker = run->rig.io[0] };
	struct hive_fiber *handles[DEPTH_MOST], *pinger;
	int late = -1, r = hive_spawn(run->rig.hive, pinger_main, run, &there, &pinger);
	if (r < 0)
		return r;
	r = run->side == ALONE
	            ? 0
	            : fibers_spawn_and_join(reader_main, run->readers, sizeof *run->readers, run->depth, handles);
	hive_fiber_join(pinger, HIVE_FOREVER, &late);
	return r < 0 ? r : late;
}

static int32_t files(const struct stall_run *run)
{
	return run->params->files ? run->depth : 1;
}

static int take_turn(struct stall_run *run, enum side side, int64_t *bytes, int64_t *ns)
{
	for (int32_t i = 0; run->params->cold && i < files(run); i++)
		if (fdatasync(run->readers[i].fd) < 0 ||
		    posix_fadvise(run->readers[i].fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
			return bench_failed("to drop the file from memory", -errno);
	run->side = side;
	for (int32_t i = 0; i < run->depth; i++)
		run->readers[i].done = 0;
	int64_t begin = sync_now();
	run->begin_ns = begin;
	run->until_ns = begin + HIVE_MS(TURN_MS);
	int code = fibers_run(&run->rig, all_fibers, run);
	*ns += sync_now() - begin;
	for (int32_t i = 0; i < run->depth && !code; i++) {
		if (run->readers[i].error)
			code = bench_failed("a read", run->readers[i].error);
		*bytes += run->readers[i].done;
	}
	return code;
}

static void put(struct record *result, const char *side, const struct stats *late)
{
	static const struct {
		const char *name;
		double share;
	} marks[] = { { "p50_ns", 0.5 }, { "p99_ns", 0.99 }, { "p999_ns", 0.999 } };
	char name[32];
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		snprintf(name, sizeof name, "%s_%s", side, marks[i].name);
		record_metric(result, name, (double)stats_quantile(late, marks[i].share));
	}
	snprintf(name, sizeof name, "%s_max_ns", side);
	record_metric(result, name, (double)late->max);
}

static void put_side(struct record *result, const struct stall_run *run, int64_t bytes, int64_t ns)
{
	char name[40];
	put(result, late_names[run->side], &run->late);
	put(result, stall_names[run->side], &run->stall);
	snprintf(name, sizeof name, "%s_over_1ms", stall_names[run->side]);
	record_count(result, name, run->long_stalls);
	snprintf(name, sizeof name, "%s_pings", late_names[run->side]);
	record_count(result, name, run->pings);
	snprintf(name, sizeof name, "%s_mb_per_s", late_names[run->side]);
	if (run->side != ALONE)
		record_metric(result, name, (double)bytes * 1e3 / (double)(ns ? ns : 1));
}

static int measure_side(struct stall_run *run, enum side side, struct record *result)
{
	int64_t bytes = 0, ns = 0;
	int32_t turns = (int32_t)(run->params->seconds * 1000 / TURN_MS / 2) + 1;
	int code = take_turn(run, side, &bytes, &ns); /* to warm up: thrown away */
	bytes = ns = 0;
	stats_reset(&run->late);
	stats_reset(&run->stall);
	run->pings = run->long_stalls = 0;
	for (int32_t turn = 0; turn < turns && !code; turn++)
		code = take_turn(run, side, &bytes, &ns);
	if (!code)
		put_side(result, run, bytes, ns);
	return code;
}

static int make_file(int64_t bytes, int *ret_fd)
{
	char path[] = "/tmp/hive-bench-XXXXXX";
	*ret_fd = mkstemp(path);
	if (*ret_fd < 0)
		return bench_failed("mkstemp", -errno);
	unlink(path);
	return ftruncate(*ret_fd, bytes) < 0 ? bench_failed("ftruncate", -errno) : BENCH_OK;
}

/* As large as asked for; of zeros that take no room on the disk, unless it is to be fetched from there. */
static int fill_file(const struct stall_run *run, int fd, int64_t bytes)
{
	char *fill = malloc(FILL);
	int code = fill ? BENCH_OK : bench_failed("memory", -ENOMEM);
	for (int64_t at = 0; !code && at < bytes; at += FILL) {
		ssize_t n = run->params->cold ? pwrite(fd, memset(fill, (int)(at / FILL), FILL), FILL, at)
		                              : pread(fd, fill, FILL, at); /* in memory from the start */
		if (n <= 0)
			code = bench_failed("to prepare the file", -errno);
	}
	free(fill);
	return code;
}

/* Many files are neither filled nor fetched: all of them together are more than there is room for. */
static int prepare_files(struct stall_run *run, int64_t bytes)
{
	int code = (run->null = open("/dev/null", O_WRONLY | O_CLOEXEC)) < 0 ? bench_failed("/dev/null", -errno)
	                                                                     : BENCH_OK;
	for (int32_t i = 0; !code && i < files(run); i++)
		code = make_file(bytes, &run->readers[i].fd);
	if (!code && !run->params->files)
		code = fill_file(run, run->readers[0].fd, bytes);
	for (int32_t i = files(run); i < run->depth; i++)
		run->readers[i].fd = run->readers[0].fd;
	return code;
}

static int prepare_readers(struct stall_run *run, int64_t bytes)
{
	run->readers = calloc((size_t)run->depth, sizeof *run->readers);
	for (int32_t i = 0; run->readers && i < run->depth; i++) {
		struct reader *reader = &run->readers[i];
		reader->run = run;
		reader->bytes = run->params->files ? bytes : bytes / run->depth;
		reader->from = reader->at = run->params->files ? 0 : reader->bytes * i;
		reader->buffer = malloc((size_t)run->piece);
		if (!reader->buffer || reader->bytes < 1)
			return bench_failed("memory, or a file without a part for each", -EINVAL);
	}
	return run->readers ? BENCH_OK : bench_failed("memory", -ENOMEM);
}

int bench_file_stall(const struct bench_params *params, struct record *result)
{
	struct stall_run run = { .params = params, .depth = params->depth ? params->depth : 64, .piece = params->n };
	int32_t spare = machine_cpus_allowed() - params->threads; /* whoever copies shall not be in the way */
	int64_t bytes = params->bytes ? params->bytes : (int64_t)1 << 30;
	int code = run.depth > DEPTH_MOST || run.piece < 1 ? bench_failed("depth or n", -EINVAL)
	                                                   : prepare_readers(&run, bytes);
	if (!code)
		code = prepare_files(&run, bytes);
	if (!code)
		code = rig_open(&run.rig, params, params->threads, spare > 0 ? spare : 1);
	if (code)
		return code;
	record_count(result, "depth", run.depth);
	record_count(result, "bytes", bytes);
	record_count(result, "files", files(&run));
	record_flag(result, "cold", params->cold);
	record_flag(result, "splice", params->splice);
	record_count(result, "piece", run.piece);
	for (int side = ALONE; side <= BY_PREAD && !code; side++)
		code = measure_side(&run, (enum side)side, result);
	bench_put_memory(result);
	code = rig_close(&run.rig, code);
	for (int32_t i = 0; i < files(&run); i++)
		close(run.readers[i].fd);
	for (int32_t i = 0; i < run.depth; i++)
		free(run.readers[i].buffer);
	free(run.readers);
	close(run.null);
	return code;
}
