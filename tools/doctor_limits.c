/* SPDX-License-Identifier: MIT */
#include "doctor.h"
#include "machine.h"
#include <errno.h>
#include <rophive/hive.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Limits of this process and of the system; what priorities this user may ask for. */
#define FILES_FEW 1024
#define BACKLOG_FEW 1024

static void limit_text(rlim_t limit, char *text, size_t size)
{
	if (limit == RLIM_INFINITY)
		snprintf(text, size, "unlimited");
	else
		snprintf(text, size, "%llu", (unsigned long long)limit);
}

static rlim_t put_limit(struct record *record, const char *name, unsigned resource)
{
	struct rlimit limit;
	char soft[32], hard[32], both[80];
	if (getrlimit(resource, &limit) != 0) {
		record_text(record, name, "unknown");
		return RLIM_INFINITY;
	}
	limit_text(limit.rlim_cur, soft, sizeof soft);
	limit_text(limit.rlim_max, hard, sizeof hard);
	snprintf(both, sizeof both, "%s (hard limit %s)", soft, hard);
	record_text(record, name, both);
	return limit.rlim_cur;
}

static void put_setting(struct record *record, const char *name, const char *path)
{
	char text[MACHINE_TEXT];
	machine_read_line(path, text, sizeof text);
	record_text(record, name, text);
}

/* Longer queues of a listener are cut to it without a word. */
static void warn_of_backlog(struct checkup *checkup)
{
	char text[MACHINE_TEXT];
	if (machine_read_line("/proc/sys/net/core/somaxconn", text, sizeof text) && atoi(text) < BACKLOG_FEW)
		checkup_warn(checkup, "%s connections may wait to be accepted: a burst loses some (net.core.somaxconn)",
		             text);
}

void doctor_look_at_limits(struct checkup *checkup)
{
	struct record *record = checkup_section(checkup, "limits");
	rlim_t files = put_limit(record, "open_files", RLIMIT_NOFILE);
	rlim_t processes = put_limit(record, "processes_and_threads", RLIMIT_NPROC);
	put_limit(record, "locked_memory", RLIMIT_MEMLOCK);
	put_limit(record, "stack", RLIMIT_STACK);
	put_setting(record, "threads_max", "/proc/sys/kernel/threads-max");
	put_setting(record, "pid_max", "/proc/sys/kernel/pid_max");
	put_setting(record, "max_map_count", "/proc/sys/vm/max_map_count");
	put_setting(record, "open_files_max", "/proc/sys/fs/nr_open");
	put_setting(record, "somaxconn", "/proc/sys/net/core/somaxconn");
	warn_of_backlog(checkup);
	if (files <= FILES_FEW)
		checkup_warn(checkup, "%llu open files at most: a server may want more (ulimit -n)",
		             (unsigned long long)files);
	if (processes < 4 * (rlim_t)hive_cpus())
		checkup_warn(checkup, "%llu threads at most: too few for a hive of this machine's size (ulimit -u)",
		             (unsigned long long)processes);
}

static int try_lower_nice(void)
{
	return setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 1) == 0 ? 0 : errno;
}

static int try_realtime(void)
{
	const struct sched_param lowest = { .sched_priority = 1 };
	return sched_setscheduler(0, SCHED_FIFO, &lowest) == 0 ? 0 : errno;
}

/* In a child, as what is tried cannot always be taken back. 0: allowed, else an errno. */
static int try_in_child(int (*attempt)(void))
{
	int status = 0;
	fflush(NULL);
	pid_t child = fork();
	if (child < 0)
		return errno;
	if (child == 0)
		_exit(attempt());
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static int put_attempt(struct record *record, const char *name, int (*attempt)(void))
{
	char text[64];
	int error = try_in_child(attempt);
	snprintf(text, sizeof text, error ? "not allowed (%s)" : "allowed", hive_error_name(-error));
	record_text(record, name, text);
	return error;
}

void doctor_look_at_priorities(struct checkup *checkup)
{
	struct record *record = checkup_section(checkup, "priorities");
	char autogroup[MACHINE_TEXT];
	bool known = machine_read_line("/proc/sys/kernel/sched_autogroup_enabled", autogroup, sizeof autogroup);
	record_count(record, "own_nice", getpriority(PRIO_PROCESS, 0));
	put_attempt(record, "nice_below_own", try_lower_nice);
	struct rlimit timed = { 0 };
	getrlimit(RLIMIT_RTTIME, &timed);
	bool realtime = put_attempt(record, "sched_fifo", try_realtime) == 0 && hive_cpus() > 1 &&
	                getpriority(PRIO_PROCESS, 0) <= 0 && sched_getscheduler(0) == SCHED_OTHER &&
	                timed.rlim_cur == RLIM_INFINITY; /* worker.h, realtime */
	record_text(record, "ui_workers", realtime ? "real-time priority" : "ordinary");
	record_text(record, "autogroup", !known ? "unknown" : autogroup[0] == '1' ? "on" : "off");
	if (known && autogroup[0] == '1')
		checkup_warn(checkup,
		             "autogroup is on: that compute workers are nice weighs within their own session only");
}
