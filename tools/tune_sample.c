/* SPDX-License-Identifier: MIT */
#include "sync.h"
#include "terminal.h"
#include "tune.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process for each sample, in a group of its own: whatever it has started ends with it. */
#define ARGUMENTS_MOST 64
#define LOOK_MS 50 /* between two looks for a signal to us */

int tune_job_sources(const struct tune_job *job)
{
	return job->command ? 1 : job->scenario_count;
}

const char *tune_job_name(const struct tune_job *job, int source)
{
	return job->command ? "command" : job->scenarios[source]->name;
}

const char *tune_job_figure(const struct tune_job *job, int source)
{
	return job->command ? "hive-tune" : job->scenarios[source]->headline;
}

bool tune_job_more(const struct tune_job *job, int source)
{
	return job->command ? !job->less : bench_more_is_better(job->scenarios[source]);
}

/* What it wrote, or the end of that: the figure stands in the last line that has one. */
struct heard {
	char text[1 << 16];
	size_t count;
};

static bool hear(int fd, struct heard *heard)
{
	size_t half = sizeof heard->text / 2;
	if (heard->count == sizeof heard->text - 1) { /* the older half goes */
		memmove(heard->text, heard->text + half, heard->count - half);
		heard->count -= half;
	}
	ssize_t got = read(fd, heard->text + heard->count, sizeof heard->text - 1 - heard->count);
	if (got > 0)
		heard->count += (size_t)got;
	heard->text[heard->count] = '\0';
	return got > 0 || (got < 0 && errno == EINTR);
}

_Noreturn static void become(const struct tune_job *job, int source, const char *candidate, uint64_t number, int out,
                             int err)
{
	static char self[] = "/proc/self/exe", bench[] = "bench", option[] = "--scenario";
	char text[24], name[64], *arguments[ARGUMENTS_MOST] = { self, bench, option, name };
	int nothing = open("/dev/null", O_RDONLY);
	snprintf(text, sizeof text, "%llu", (unsigned long long)number);
	setpgid(0, 0);
	if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(err, STDERR_FILENO) < 0 || setenv("HIVE_TUNE", candidate, 1) != 0 ||
	    setenv("HIVE_TUNE_SAMPLE", text, 1) != 0)
		_exit(126);
	signal(SIGPIPE, SIG_DFL);
	if (job->command)
		execvp(job->command[0], job->command);
	else {
		snprintf(name, sizeof name, "%s", job->scenarios[source]->name);
		for (int i = 0; job->extra[i] && i + 5 < ARGUMENTS_MOST; i++)
			arguments[4 + i] = job->extra[i];
		execv(self, arguments);
	}
	dprintf(STDERR_FILENO, "%s: %s", job->command ? job->command[0] : self, strerror(errno));
	_exit(127);
}

/* Its remains are left for later: as long as they are there, nobody else has its number. */
static bool has_ended(pid_t child)
{
	siginfo_t info = { 0 };
	return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

/* Until both pipes are closed, and then until it has ended. */
static enum tune_end watch(pid_t child, const int *ends, struct heard *heard, int64_t until_ns)
{
	struct pollfd pipes[2] = { { .fd = ends[0], .events = POLLIN }, { .fd = ends[1], .events = POLLIN } };
	for (;;) {
		bool open = pipes[0].fd >= 0 || pipes[1].fd >= 0;
		if (terminal_interrupted())
			return TUNE_INTERRUPTED;
		if (sync_now() >= until_ns)
			return TUNE_LATE;
		if (!open && has_ended(child))
			return TUNE_GOOD;
		if (poll(pipes, 2, open ? LOOK_MS : 1) <= 0)
			continue;
		for (int i = 0; i < 2; i++)
			if (pipes[i].revents && !hear(ends[i], &heard[i]))
				pipes[i].fd = -1;
	}
}

static bool read_figure(const struct tune_job *job, int source, const char *text, double *ret_figure)
{
	char mark[96];
	const char *last = NULL;
	char *end;
	if (job->command)
		snprintf(mark, sizeof mark, "hive-tune:");
	else
		snprintf(mark, sizeof mark, "\"%s\":", job->scenarios[source]->headline);
	for (const char *at = text; (at = strstr(at, mark)) != NULL; at++)
		if (!job->command || at == text || at[-1] == '\n')
			last = at;
	if (!last)
		return false;
	double figure = strtod(last + strlen(mark), &end);
	if (end == last + strlen(mark) || (job->command && *end != '\n' && *end != '\0' && *end != '\r'))
		return false;
	*ret_figure = figure;
	return isfinite(figure) && figure > 0; /* ratios are made of it */
}

/* The last line that has something in it. */
static const char *last_words(struct heard *heard)
{
	while (heard->count > 0 && strchr("\n\r\t ", heard->text[heard->count - 1]))
		heard->text[--heard->count] = '\0';
	const char *line = strrchr(heard->text, '\n');
	line = line ? line + 1 : heard->text;
	return strlen(line) > 200 ? line + strlen(line) - 200 : line;
}

static enum tune_end judge(const struct tune_job *job, int source, struct heard *heard, int status, double *ret_figure,
                           char *why, size_t size)
{
	const char *words = heard[1].count ? last_words(&heard[1]) : "";
	const char *sign = words[0] ? ": " : "";
	if (WIFSIGNALED(status))
		snprintf(why, size, "ended by signal %d%s%s", WTERMSIG(status), sign, words);
	else if (WEXITSTATUS(status) != 0)
		snprintf(why, size, "exit code %d%s%s", WEXITSTATUS(status), sign, words);
	else if (!read_figure(job, source, heard[0].text, ret_figure))
		snprintf(why, size, "printed no line \"%s: F\" with a number F above 0%s%s",
		         tune_job_figure(job, source), sign, words);
	else
		return TUNE_GOOD;
	return TUNE_FAILED;
}

static enum tune_end run(const struct tune_job *job, int source, const char *candidate, uint64_t number,
                         int pipes[2][2], double *ret_figure, char *why, size_t size)
{
	static struct heard heard[2]; /* one sample at a time */
	int status = 0, ends[2] = { pipes[0][0], pipes[1][0] };
	heard[0].count = heard[1].count = 0;
	heard[0].text[0] = heard[1].text[0] = '\0';
	fflush(NULL);
	pid_t child = fork();
	if (child < 0)
		return snprintf(why, size, "fork: %s", strerror(errno)), TUNE_FAILED;
	if (child == 0)
		become(job, source, candidate, number, pipes[0][1], pipes[1][1]);
	setpgid(child, child); /* whoever comes first */
	close(pipes[0][1]), close(pipes[1][1]);
	pipes[0][1] = pipes[1][1] = -1;
	enum tune_end end = watch(child, ends, heard, sync_now() + (int64_t)(job->limit_s * 1e9));
	kill(-child, SIGKILL); /* also what it has left behind */
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (end == TUNE_LATE)
		snprintf(why, size, "no end after %g seconds", job->limit_s);
	if (end == TUNE_INTERRUPTED)
		snprintf(why, size, "interrupted");
	return end == TUNE_GOOD ? judge(job, source, heard, status, ret_figure, why, size) : end;
}

enum tune_end tune_sample_take(const struct tune_job *job, int source, const char *candidate, uint64_t number,
                               double *ret_figure, char *why, size_t size)
{
	int pipes[2][2] = { { -1, -1 }, { -1, -1 } };
	enum tune_end end = TUNE_FAILED;
	if (pipe2(pipes[0], O_CLOEXEC) == 0 && pipe2(pipes[1], O_CLOEXEC) == 0)
		end = run(job, source, candidate, number, pipes, ret_figure, why, size);
	else
		snprintf(why, size, "pipe: %s", strerror(errno));
	for (int i = 0; i < 4; i++)
		if (pipes[i / 2][i % 2] >= 0)
			close(pipes[i / 2][i % 2]);
	return end;
}
