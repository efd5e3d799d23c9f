/* SPDX-License-Identifier: MIT */
#include "machine.h"
#include <rophive/hive.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#define UNKNOWN "unknown"

bool machine_read_line(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	bool good = file && fgets(text, (int)size, file);
	if (file)
		fclose(file);
	if (good)
		text[strcspn(text, "\n")] = 0;
	else
		snprintf(text, size, UNKNOWN);
	return good;
}

bool machine_read_key(const char *path, const char *key, char *text, size_t size)
{
	char line[512];
	bool found = false;
	FILE *file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof line, file))
		found = strncmp(line, key, strlen(key)) == 0 && strchr(line, ':');
	if (file)
		fclose(file);
	const char *value = found ? strchr(line, ':') + 1 : UNKNOWN;
	value += strspn(value, " \t");
	snprintf(text, size, "%.*s", (int)strcspn(value, "\n"), value);
	return found;
}

void machine_kernel(char *text, size_t size)
{
	struct utsname name;
	if (uname(&name) == 0)
		snprintf(text, size, "%s %s %s", name.sysname, name.release, name.machine);
	else
		snprintf(text, size, UNKNOWN);
}

void machine_cpu_model(char *text, size_t size)
{
	if (!machine_read_key("/proc/cpuinfo", "model name", text, size))
		machine_read_key("/proc/cpuinfo", "CPU implementer", text, size);
}

void machine_governor(char *text, size_t size)
{
	machine_read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text, size);
}

void machine_turbo(char *text, size_t size)
{
	char flag[32];
	if (machine_read_line("/sys/devices/system/cpu/intel_pstate/no_turbo", flag, sizeof flag))
		snprintf(text, size, flag[0] == '0' ? "on" : "off");
	else if (machine_read_line("/sys/devices/system/cpu/cpufreq/boost", flag, sizeof flag))
		snprintf(text, size, flag[0] == '1' ? "on" : "off");
	else
		snprintf(text, size, UNKNOWN);
}

void machine_compiler(char *text, size_t size)
{
#if defined(__clang__)
	snprintf(text, size, "clang %d.%d.%d", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
	snprintf(text, size, "gcc %d.%d.%d", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
	snprintf(text, size, UNKNOWN);
#endif
}

void machine_libc(char *text, size_t size)
{
#ifdef __GLIBC__
	snprintf(text, size, "glibc %s", gnu_get_libc_version());
#else
	snprintf(text, size, UNKNOWN);
#endif
}

int32_t machine_cpus_online(void)
{
	return (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
}

int32_t machine_cpus_allowed(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : machine_cpus_online();
}

uint16_t machine_allowed_cpu(size_t index)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) == 0)
		return 0;
	size_t skip = index % (size_t)CPU_COUNT(&set);
	for (uint16_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && skip-- == 0)
			return cpu;
	return 0;
}

int64_t machine_peak_memory_kb(void)
{
	char text[64];
	return machine_read_key("/proc/self/status", "VmHWM", text, sizeof text) ? strtoll(text, NULL, 10) : 0;
}

int64_t machine_memory_kb(void)
{
	char text[64];
	return machine_read_key("/proc/self/status", "VmRSS", text, sizeof text) ? strtoll(text, NULL, 10) : 0;
}

static double seconds_of(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

double machine_cpu_seconds(void)
{
	struct rusage usage;
	if (getrusage(RUSAGE_SELF, &usage) != 0)
		return 0;
	return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

int64_t machine_context_switches(void)
{
	struct rusage usage;
	return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nvcsw + usage.ru_nivcsw : 0;
}

/* "cpu user nice system idle iowait irq softirq steal …", in ticks. Stolen time is somebody's work too. */
double machine_busy_seconds(void)
{
	char line[256], *rest = line;
	double ticks = 0;
	if (!machine_read_line("/proc/stat", line, sizeof line) || strncmp(line, "cpu ", 4) != 0)
		return 0;
	rest += 4;
	for (int column = 0; column < 8; column++) {
		double value = strtod(rest, &rest);
		if (column != 3 && column != 4)
			ticks += value;
	}
	return ticks / (double)sysconf(_SC_CLK_TCK);
}

static void describe_text(struct record *record, const char *name, void (*read)(char *text, size_t size))
{
	char text[MACHINE_TEXT];
	read(text, sizeof text);
	record_text(record, name, text);
}

static void describe_file(struct record *record, const char *name, const char *path)
{
	char text[MACHINE_TEXT];
	machine_read_line(path, text, sizeof text);
	record_text(record, name, text);
}

void machine_describe(struct record *record)
{
	record_text(record, "version", hive_version());
	describe_text(record, "compiler", machine_compiler);
	describe_text(record, "libc", machine_libc);
	describe_text(record, "kernel", machine_kernel);
	describe_text(record, "cpu", machine_cpu_model);
	record_count(record, "cpus_online", machine_cpus_online());
	record_count(record, "cpus_allowed", machine_cpus_allowed());
	describe_text(record, "cgroup_quota", machine_quota);
	record_count(record, "hive_cpus", hive_cpus());
	describe_text(record, "governor", machine_governor);
	describe_text(record, "turbo", machine_turbo);
	describe_file(record, "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	describe_file(record, "loadavg", "/proc/loadavg");
}
