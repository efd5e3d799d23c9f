/* SPDX-License-Identifier: MIT */
/* A server's process: started, asked for its port, watched, ended. */
#include "echo.h"
#include "machine.h"
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* With --pin the load has the last CPU to itself, whoever serves. */
static void keep_off_load(const struct bench_params *params)
{
	cpu_set_t cpus;
	int32_t count = machine_cpus_allowed();
	if (!params->pin || count < 2 || sched_getaffinity(0, sizeof cpus, &cpus) < 0)
		return;
	CPU_CLR(machine_allowed_cpu((size_t)count - 1), &cpus);
	sched_setaffinity(0, sizeof cpus, &cpus);
}

static void be_server(const char *command, int (*serve)(const struct bench_params *), const struct bench_params *params)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	keep_off_load(params);
	if (command) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	_exit(serve(params));
}

/* `PORT n`, the first line that it says. */
static int32_t hear_port(int fd)
{
	char line[64] = { 0 };
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	for (size_t have = 0; have + 1 < sizeof line && !strchr(line, '\n');) {
		ssize_t n = poll(&ready, 1, hive_poll_ms(BENCH_PATIENCE_NS)) > 0
		                    ? read(fd, line + have, sizeof line - 1 - have)
		                    : -1;
		if (n <= 0)
			return -1;
		have += (size_t)n;
	}
	return strncmp(line, "PORT ", 5) == 0 ? atoi(line + 5) : -1;
}

int rival_start(struct rival *rival, const char *name, const char *command, int (*serve)(const struct bench_params *),
                const struct bench_params *params)
{
	int input[2], output[2];
	*rival = (struct rival){ .input = -1 };
	snprintf(rival->name, sizeof rival->name, "%s", name);
	if (pipe(input) < 0 || pipe(output) < 0)
		return bench_failed("pipe", -errno);
	fflush(NULL);
	rival->pid = fork();
	if (rival->pid < 0)
		return bench_failed("fork", -errno);
	if (rival->pid == 0) {
		dup2(input[0], 0);
		dup2(output[1], 1);
		for (int fd = 3; fd < 256; fd++) /* another server's input among them, whose end would not be seen */
			close(fd);
		be_server(command, serve, params);
	}
	close(input[0]);
	close(output[1]);
	rival->input = input[1];
	rival->port = hear_port(output[0]);
	rival->output = output[0];
	return rival->port > 0 ? BENCH_OK : bench_failed("a server did not say its PORT", -EPROTO);
}

int rival_start_foreign(struct rival *rival, const char *server, const struct bench_params *params)
{
	char name[16];
	const char *command = strchr(server, '=') + 1;
	snprintf(name, sizeof name, "%.*s", (int)(command - 1 - server), server);
	return rival_start(rival, name, command, NULL, params);
}

void rival_put(const struct rival *rival, struct record *result, const char *what, double value)
{
	char name[32];
	snprintf(name, sizeof name, "%s_%s", rival->name, what);
	record_metric(result, name, value);
}

int rival_stop(struct rival *rival)
{
	int64_t limit = sync_now() + BENCH_PATIENCE_NS;
	int status = 0;
	pid_t gone;
	if (rival->pid <= 0)
		return BENCH_OK;
	close(rival->input);
	while ((gone = waitpid(rival->pid, &status, WNOHANG)) == 0 && sync_now() < limit)
		sync_sleep(HIVE_MS(1));
	if (gone == 0) {
		kill(rival->pid, SIGKILL);
		waitpid(rival->pid, &status, 0);
		return bench_timeout("the end of a server", 1, 0);
	}
	rival->pid = 0;
	close(rival->output);
	if (gone > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return BENCH_OK;
	return bench_failed(rival->name, -ECHILD);
}

int64_t rival_cpu_ns(const struct rival *rival)
{
	clockid_t clock;
	struct timespec used = { 0 };
	if (clock_getcpuclockid(rival->pid, &clock) == 0)
		clock_gettime(clock, &used);
	return (int64_t)used.tv_sec * HIVE_S(1) + used.tv_nsec;
}

int64_t rival_memory_kb(const struct rival *rival)
{
	char path[64], text[MACHINE_TEXT];
	snprintf(path, sizeof path, "/proc/%d/status", (int)rival->pid);
	return machine_read_key(path, "VmRSS", text, sizeof text) ? atoll(text) : 0;
}
