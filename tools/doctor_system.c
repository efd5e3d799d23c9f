/* SPDX-License-Identifier: MIT */
#include "doctor.h"
#include "machine.h"
#include "sync.h"
#include <rophive/hive.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Kernel, container, CPUs and clock. */
#define CLOCK_READS 100000
#define CLOCK_SLOW_NS 200 /* beyond that a read of the clock is a system call */

static void put(struct record *record, const char *name, void (*read)(char *text, size_t size))
{
	char text[MACHINE_TEXT];
	read(text, sizeof text);
	record_text(record, name, text);
}

static void put_file(struct record *record, const char *name, const char *path)
{
	char text[MACHINE_TEXT];
	machine_read_line(path, text, sizeof text);
	record_text(record, name, text);
}

static bool cpu_has(const char *flag)
{
	char flags[8192], *rest = flags;
	FILE *file = fopen("/proc/cpuinfo", "re");
	bool has = false, seen = false;
	while (file && !seen && fgets(flags, sizeof flags, file))
		seen = strncmp(flags, "flags", 5) == 0;
	if (file)
		fclose(file);
	for (char *word; seen && !has && (word = strtok_r(rest, " \t\n", &rest));)
		has = strcmp(word, flag) == 0;
	return has;
}

static const char *container_hint(void)
{
	if (access("/.dockerenv", F_OK) == 0)
		return "docker";
	if (access("/run/.containerenv", F_OK) == 0)
		return "podman";
	if (getenv("KUBERNETES_SERVICE_HOST"))
		return "kubernetes";
	return getenv("container") ? getenv("container") : "none seen";
}

void doctor_look_at_system(struct checkup *checkup)
{
	struct record *record = checkup_section(checkup, "system");
	record_text(record, "library", hive_version());
	put(record, "compiler", machine_compiler);
	put(record, "kernel", machine_kernel);
	put(record, "libc", machine_libc);
	record_text(record, "container", container_hint());
	record_text(record, "virtual_machine", cpu_has("hypervisor") ? "yes" : "not seen");
}

static void judge_cpus(struct checkup *checkup, const char *quota, const char *governor)
{
	if (hive_cpus() == 1)
		checkup_warn(checkup, "one CPU: workers take turns, and none spins before it sleeps");
	if (machine_cpus_allowed() < machine_cpus_online())
		checkup_warn(checkup, "the affinity mask allows %d of %d CPUs", (int)machine_cpus_allowed(),
		             (int)machine_cpus_online());
	if (strncmp(quota, "none", 4) != 0)
		checkup_warn(checkup, "CPU quota %s: what exceeds it is stopped for the rest of its period", quota);
	if (strcmp(governor, "powersave") == 0)
		checkup_warn(checkup, "governor powersave: latencies depend on how busy the CPU has just been");
}

void doctor_look_at_cpus(struct checkup *checkup)
{
	struct record *record = checkup_section(checkup, "cpus");
	char quota[MACHINE_TEXT], governor[MACHINE_TEXT];
	machine_quota(quota, sizeof quota);
	machine_governor(governor, sizeof governor);
	put(record, "model", machine_cpu_model);
	record_count(record, "online", machine_cpus_online());
	record_count(record, "allowed_by_affinity", machine_cpus_allowed());
	record_text(record, "cgroup_quota", quota);
	record_count(record, "hive_cpus", hive_cpus());
	record_text(record, "governor", governor);
	put(record, "turbo", machine_turbo);
	record_flag(record, "waitpkg", cpu_has("waitpkg"));
	put_file(record, "load", "/proc/loadavg");
	judge_cpus(checkup, quota, governor);
}

static double clock_read_ns(void)
{
	int64_t begin = sync_now();
	for (int i = 0; i < CLOCK_READS; i++)
		sync_now();
	return (double)(sync_now() - begin) / CLOCK_READS;
}

void doctor_look_at_clock(struct checkup *checkup)
{
	struct record *record = checkup_section(checkup, "clock");
	char source[MACHINE_TEXT];
	struct timespec resolution = { 0 };
	machine_read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source);
	clock_getres(CLOCK_MONOTONIC, &resolution);
	double read_ns = clock_read_ns();
	record_text(record, "source", source);
	record_count(record, "resolution_ns", resolution.tv_nsec);
	record_real(record, "read_ns", read_ns);
	record_flag(record, "invariant_tsc", cpu_has("constant_tsc") && cpu_has("nonstop_tsc"));
	record_count(record, "timer_slack_ns", prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL));
	if (read_ns > CLOCK_SLOW_NS)
		checkup_warn(checkup, "reading the clock (%s) takes %.0f ns: every timer and time slice pays for it",
		             source, read_ns);
}
