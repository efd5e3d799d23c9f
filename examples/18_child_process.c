/* SPDX-License-Identifier: MIT */
/* Runs `sort`, or the program that is named, in a child process: one fiber feeds it lines, another one prints what comes back, and
 * Ctrl-C ends it. Neither pipe can stop the other one, for neither fiber blocks a worker.                                        */
#include <rophive/hive.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 20000 };

struct job {
	const char *const *argv;
	int to, from, process; /* our ends of its pipes */
	long lines, bytes;
};

/* All of it, however often the pipe is full in between. */
static int64_t put(int fd, const char *text, size_t bytes)
{
	for (size_t sent = 0; sent < bytes;) {
		int64_t n = hive_write(fd, text + sent, bytes - sent, -1, HIVE_FOREVER);
		if (n < 0)
			return n; /* -EPIPE: it has ended, or closed its input; no signal comes */
		sent += (size_t)n;
	}
	return 0;
}

static int feed(void *arg)
{
	struct job *job = arg;
	char line[64];
	int64_t r = 0;

	for (int i = 0; i < LINES && r == 0; i++) {
		int n = snprintf(line, sizeof line, "line %05d of what we feed it\n", (int)(i * 7919L % LINES));
		r = put(job->to, line, (size_t)n);
	}
	int closed = hive_close(job->to, HIVE_FOREVER); /* the end of its input */
	return r < 0 ? (int)r : closed;
}

static int collect(void *arg)
{
	struct job *job = arg;
	char text[4096];
	int64_t n;

	while ((n = hive_read(job->from, text, sizeof text, -1, HIVE_FOREVER)) > 0) {
		if (job->bytes == 0)
			printf("%.*s", (int)(strcspn(text, "\n") + 1), text);
		for (int64_t i = 0; i < n; i++)
			job->lines += text[i] == '\n';
		job->bytes += n;
	}
	int closed = hive_close(job->from, HIVE_FOREVER);
	return n < 0 ? (int)n : closed;
}

/* Until it is cancelled. The child would get Ctrl-C from the terminal, too; kill -TERM is for us alone. */
static int pass_signals_on(void *arg)
{
	static const int signals[] = { SIGINT, SIGTERM };
	struct job *job = arg;
	int number;

	while ((number = hive_signal_wait(signals, 2, HIVE_FOREVER)) > 0)
		hive_process_signal(job->process, number);
	return number;
}

static int root(void *arg)
{
	struct job *job = arg;
	int fds[3], result, r;
	struct hive_process_options options = { .redirect = { true, true, false }, .ret_fds = fds };
	struct hive_fiber *signals, *feeder, *collector;

	r = hive_process_start(job->argv, &options, &job->process);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", job->argv[0], hive_error_text(r));
		return r;
	}
	job->to = fds[0];
	job->from = fds[1];
	if (hive_spawn(hive_current(), pass_signals_on, job, NULL, &signals) < 0 ||
	    hive_spawn(hive_current(), feed, job, NULL, &feeder) < 0 ||
	    hive_spawn(hive_current(), collect, job, NULL, &collector) < 0)
		return -1; /* no memory for a stack: not handled further in an example */
	hive_fiber_join(feeder, HIVE_FOREVER, &result);
	hive_fiber_join(collector, HIVE_FOREVER, &result);
	int status = hive_process_wait(job->process, HIVE_FOREVER);
	hive_fiber_cancel(signals);
	hive_fiber_join(signals, HIVE_FOREVER, &result);
	return status;
}

int main(int argc, char **argv)
{
	const char *const sort[] = { "sort", NULL };
	struct job job = { .argv = argc > 1 ? (const char *const *)(argv + 1) : sort };
	struct hive *hive;
	int status = -1;

	if (hive_runtime_start(NULL, &hive) < 0 || hive_block_on(hive, root, &job, HIVE_FOREVER, &status) < 0)
		return 1;
	if (status >= 256)
		printf("%s was ended by signal %d\n", job.argv[0], status - 256);
	else if (status >= 0)
		printf("%s gave %ld lines, %ld bytes, and ended with %d\n", job.argv[0], job.lines, job.bytes, status);
	if (hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0)
		return 1;
	return argc > 1 ? status != 0 : status != 0 || job.lines != LINES;
}
