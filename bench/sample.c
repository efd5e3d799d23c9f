/* SPDX-License-Identifier: MIT */
#include "sample.h"
#include "machine.h"
#include "sync.h"
#include "tally.h"
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_here(const struct bench_scenario *scenario, const struct bench_params *params, int32_t repeat,
                    struct record *ret_result)
{
	*ret_result = (struct record){ 0 };
	record_text(ret_result, "peer", "rophive");
	record_text(ret_result, "scenario", scenario->name);
	record_count(ret_result, "threads", params->threads);
	record_count(ret_result, "producers", params->producers);
	record_count(ret_result, "consumers", params->consumers);
	record_count(ret_result, "n", params->n);
	record_count(ret_result, "repeat", repeat);
	double own = machine_cpu_seconds(), all = machine_busy_seconds();
	uint64_t ran = tally_total();
	int64_t begin = sync_now();
	int code = scenario->run(params, ret_result);
	double seconds = (double)(sync_now() - begin) / 1e9;
	own = machine_cpu_seconds() - own, all = machine_busy_seconds() - all;
	ran = tally_total() - ran;
	if (ran > 0)
		record_metric(ret_result, "tasks_ran", (double)ran); /* those of the warm-up as well */
	/* What others did to the machine meanwhile: a sample that had company is not worth much. Ticks are coarse, so
	 * little of it in a short sample means nothing.                                                              */
	record_metric(ret_result, "foreign_cpu_percent", all > own ? (all - own) * 100 / seconds : 0);
	return code;
}

static bool write_whole(int fd, const void *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t wrote = write(fd, (const char *)data + done, size - done);
		if (wrote < 0)
			return false;
		done += (size_t)wrote;
	}
	return true;
}

enum hearing { HEARD, HEARD_NOTHING, HEARD_TOO_LATE };

static enum hearing read_whole(int fd, void *data, size_t size, int limit_ms)
{
	struct pollfd pipe_end = { .fd = fd, .events = POLLIN };
	for (size_t done = 0; done < size;) {
		int ready = poll(&pipe_end, 1, limit_ms);
		if (ready == 0)
			return HEARD_TOO_LATE;
		ssize_t got = ready > 0 ? read(fd, (char *)data + done, size - done) : -1;
		if (got == 0)
			return HEARD_NOTHING;
		if (got > 0)
			done += (size_t)got;
		else if (errno != EINTR)
			return HEARD_TOO_LATE;
	}
	return HEARD;
}

static int watch_child(pid_t child, int fd, const struct bench_params *params, struct record *ret_result)
{
	int limit_ms = (int)(params->seconds * 3000) + 3 * hive_poll_ms(BENCH_PATIENCE_NS), status = 0;
	enum hearing hearing = read_whole(fd, ret_result, sizeof *ret_result, limit_ms);
	if (hearing == HEARD_TOO_LATE)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return bench_failed("waitpid", -errno);
	if (hearing == HEARD_TOO_LATE)
		return bench_timeout("the sample's process", 1, 0);
	if (WIFEXITED(status) && (hearing == HEARD || WEXITSTATUS(status) != BENCH_OK))
		return WEXITSTATUS(status);
	fprintf(stderr, "hive bench: the sample's process ended by signal %d\n", WTERMSIG(status));
	return BENCH_FAILED;
}

int sample_take(const struct bench_scenario *scenario, const struct bench_params *params, int32_t repeat,
                bool in_process, struct record *ret_result)
{
	int ends[2];
	if (in_process)
		return run_here(scenario, params, repeat, ret_result);
	fflush(NULL);
	if (pipe(ends) != 0)
		return bench_failed("pipe", -errno);
	pid_t child = fork();
	if (child < 0)
		return close(ends[0]), close(ends[1]), bench_failed("fork", -errno);
	if (child == 0) {
		close(ends[0]);
		int code = run_here(scenario, params, repeat, ret_result);
		if (code == BENCH_OK && !write_whole(ends[1], ret_result, sizeof *ret_result))
			code = BENCH_FAILED;
		_exit(code);
	}
	close(ends[1]);
	int code = watch_child(child, ends[0], params, ret_result);
	close(ends[0]);
	return code;
}
