/* SPDX-License-Identifier: MIT */
/* `hive bench` from outside: what it does beside printing figures. Where its workers run, which parameters they have, how it ends. */
#include <arpa/inet.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "support/tool.h"

/* what `hive tune` puts into the environment, for the hive and for its workers. */
TEST(bench_obeys_the_parameters_of_the_environment)
{
	if (!find_tool())
		return;
	CHECK_OK(setenv("HIVE_TUNE", "mesh=on", 1));
	CHECK(json_number(sample("mesh", "--n 1000 --threads 2"), "by_lane", 0) > 0);
	CHECK_OK(setenv("HIVE_TUNE", "mesh=off", 1));
	CHECK_EQ(json_number(sample("mesh", "--n 1000 --threads 2"), "by_lane", -1), 0);
	CHECK_OK(setenv("HIVE_TUNE", "steal_attempts=off", 1));
	CHECK_EQ(json_number(sample("steal", "--n 20000 --threads 2"), "steals", -1), 0);
	CHECK_OK(setenv("HIVE_TUNE", "local_capacity=3", 1)); /* no power of two */
	CHECK_EQ(run_tool("bench --scenario post --n 500", false), 1);
	CHECK_OK(unsetenv("HIVE_TUNE"));
}

/* more tasks ran than were asked for: a tenth of them in advance. Of the other scenarios the sources are looked at
 * (each_scenario_warms_up_and_none_prints).                                                                               */
TEST(bench_runs_tasks_before_those_that_count)
{
	static const char *const scenarios[] = { "post", "post_to", "spawn_local", "steal" };

	if (!find_tool())
		return;
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
		const char *line = sample(scenarios[i], "--n 2000 --threads 1");

		if (json_number(line, "tasks_ran", 0) < 2200)
			test_fail(__FILE__, __LINE__, "no warm-up in %s", line);
	}
}

/* How many threads of the process may use one CPU only; *ret_cpus: which. */
static int threads_on_one_cpu(pid_t pid, cpu_set_t *ret_cpus)
{
	char path[64];
	struct dirent *entry;
	DIR *tasks;
	int count = 0;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	CHECK(tasks);
	CPU_ZERO(ret_cpus);
	while ((entry = readdir(tasks)) != NULL) {
		cpu_set_t cpus;

		if (atoi(entry->d_name) <= 0 || sched_getaffinity(atoi(entry->d_name), sizeof cpus, &cpus) != 0)
			continue; /* it has ended */
		count += CPU_COUNT(&cpus) == 1;
		if (CPU_COUNT(&cpus) == 1)
			CPU_OR(ret_cpus, ret_cpus, &cpus);
	}
	closedir(tasks);
	return count;
}

/* Two workers for events and two that compute, told to stay on a CPU each. */
static void check_pinned(void)
{
	cpu_set_t mine, theirs;
	pid_t child;
	int status;

	CHECK_OK(sched_getaffinity(0, sizeof mine, &mine));
	if (CPU_COUNT(&mine) < 2) {
		printf("skipped: one CPU, where all threads look pinned\n");
		return;
	}
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* should this test fail */
		execl(tool, tool, "bench", "--scenario", "idle", "--threads", "2", "--seconds", "30", "--in-process",
		      "--pin", (char *)NULL);
		_exit(127);
	}
	/* A worker that is not there yet, or has not bound itself yet, will be; one that never does is found by the end of its scenario. */
	while (threads_on_one_cpu(child, &theirs) < 4) {
		CHECK_EQ(waitpid(child, &status, WNOHANG), 0);
		usleep(1000);
	}
	CHECK_OK(kill(child, SIGKILL));
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(CPU_COUNT(&theirs), 2);
	CPU_AND(&theirs, &theirs, &mine);
	CHECK_EQ(CPU_COUNT(&theirs), 2);
}

/* fixed threads, pinning; the machine with governor and turbo is part of the record. */
TEST(bench_pins_and_describes_the_machine)
{
	char *lines[3];

	if (!find_tool())
		return;
	check_pinned();
	CHECK_EQ(run_tool("bench --scenario post --n 500 --threads 1 --pin --env", true), 0);
	CHECK_EQ(split(lines, 3), 2);
	CHECK(json_is_valid(lines[0]) && json_is_valid(lines[1]));
	CHECK(json_find(lines[0], "governor") && json_find(lines[0], "turbo") && json_find(lines[0], "kernel"));
	CHECK(json_number(lines[0], "hive_cpus", 0) >= 1);
	CHECK_EQ(json_number(lines[1], "threads", 0), 1);
}

/* Answers each question upon one connection by its opposite, until that ends. */
static void *lie(void *listener)
{
	unsigned char bytes[4096];
	int fd = accept(*(int *)listener, NULL, NULL);

	CHECK(fd >= 0);
	for (ssize_t n; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
		for (ssize_t i = 0; i < n; i++)
			bytes[i] = (unsigned char)~bytes[i];
		if (send(fd, bytes, (size_t)n, MSG_NOSIGNAL) != n)
			break;
	}
	close(fd);
	return NULL;
}

/* 4: a result is wrong. Here an echo that is none. */
static void check_wrong_result(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t liar;
	char arguments[256];

	CHECK(listener >= 0);
	CHECK_OK(bind(listener, (struct sockaddr *)&at, sizeof at));
	CHECK_OK(listen(listener, 1));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&at, &size));
	CHECK_OK(pthread_create(&liar, NULL, lie, &listener));
	snprintf(arguments, sizeof arguments,
	         "bench --scenario echo_server --alone --connections 1 --seconds 0.1 --threads 1 "
	         "--server 'liar=echo PORT %d; exec cat'",
	         ntohs(at.sin_port));
	CHECK_EQ(run_tool(arguments, true), 4);
	CHECK(strstr(output, "wrong count of an answer's bytes"));
	CHECK_OK(pthread_join(liar, NULL));
	CHECK_OK(close(listener));
}

/* exit codes: 10 for a scenario that does not exist, 2 for a wrong command line, 4 for a wrong result, 1 where the hive says no. That of a
 * wait that ran out, 3, would take as long as the wait: a minute.                                                                       */
TEST(bench_exit_codes_tell_what_went_wrong)
{
	if (!find_tool())
		return;
	check_wrong_result();
	CHECK_EQ(run_tool("bench --scenario no_such_scenario", true), 10);
	CHECK(strstr(output, "no_such_scenario"));
	CHECK_EQ(run_tool("bench", false), 2);
	CHECK_EQ(run_tool("bench --threads none", false), 2);
	CHECK_EQ(run_tool("bench --n -5 --scenario post", false), 2);
	CHECK_EQ(run_tool("bench --scenario post surplus", false), 2);
	CHECK_EQ(run_tool("bench --help", false), 0);
	CHECK_EQ(run_tool("no_such_command", false), 2);
	CHECK_EQ(run_tool("help", false), 0);
	CHECK_EQ(run_tool("--version", false), 0);
	CHECK(strncmp(output, "hive ", 5) == 0);
}
