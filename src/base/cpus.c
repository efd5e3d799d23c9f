/* SPDX-License-Identifier: MIT */
#include "base/cpus.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_small(const char *path, char *ret_text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, ret_text, bytes - 1);
	close(fd);
	ret_text[n < 0 ? 0 : n] = '\0';
	return n > 0;
}

static int32_t whole_cpus(long long quota, long long period)
{
	long long cpus;

	if (quota <= 0 || period <= 0)
		return INT32_MAX;
	cpus = quota / period + (quota % period != 0);
	return cpus > INT32_MAX ? INT32_MAX : (int32_t)cpus;
}

/* v2: "max 100000" or "200000 100000" */
static int32_t quota_v2(const char *directory)
{
	char path[4200], text[64], *rest;
	long long quota;

	snprintf(path, sizeof path, "%s/cpu.max", directory);
	if (!read_small(path, text, sizeof text) || strncmp(text, "max", 3) == 0)
		return INT32_MAX;
	quota = strtoll(text, &rest, 10);
	return whole_cpus(quota, strtoll(rest, NULL, 10));
}

/* v1: two files, quota -1 means none */
static int32_t quota_v1(const char *directory)
{
	char path[4200], text[64];
	long long quota;

	snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
	if (!read_small(path, text, sizeof text))
		return INT32_MAX;
	quota = strtoll(text, NULL, 10);
	snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
	if (!read_small(path, text, sizeof text))
		return INT32_MAX;
	return whole_cpus(quota, strtoll(text, NULL, 10));
}

/* The smallest quota on the way from `group` up to the mount point: each level limits those below it. */
static int32_t smallest(const char *mount, const char *group, int32_t (*quota)(const char *directory))
{
	char directory[4096];
	size_t base = strlen(mount);
	int32_t least = INT32_MAX, here;

	snprintf(directory, sizeof directory, "%s%s", mount, group);
	for (;;) {
		char *slash;

		here = quota(directory);
		if (here < least)
			least = here;
		slash = strrchr(directory, '/');
		if (!slash || (size_t)(slash - directory) < base)
			return least;
		*slash = '\0';
	}
}

static bool names_cpu(const char *controllers, size_t length)
{
	for (const char *at = controllers; at < controllers + length;) {
		const char *comma = memchr(at, ',', (size_t)(controllers + length - at));
		size_t n = (size_t)((comma ? comma : controllers + length) - at);

		if (n == 3 && memcmp(at, "cpu", 3) == 0)
			return true;
		at += n + 1;
	}
	return false;
}

/* One line of /proc/self/cgroup: "hierarchy:controllers:/group"; v2 has no controllers. */
static int32_t quota_of_line(const char *root, const char *line, size_t length)
{
	const char *first = memchr(line, ':', length);
	const char *second = first ? memchr(first + 1, ':', length - (size_t)(first + 1 - line)) : NULL;
	char mount[512], group[2048];
	int32_t least;

	if (!second)
		return INT32_MAX;
	snprintf(group, sizeof group, "%.*s", (int)(line + length - second - 1), second + 1);
	if (strcmp(group, "/") == 0)
		group[0] = '\0';
	if (second == first + 1) {
		int32_t hybrid;

		least = smallest(root, group, quota_v2);
		snprintf(mount, sizeof mount, "%s/unified", root);
		hybrid = smallest(mount, group, quota_v2);
		return hybrid < least ? hybrid : least;
	}
	if (!names_cpu(first + 1, (size_t)(second - first - 1)))
		return INT32_MAX;
	snprintf(mount, sizeof mount, "%s/cpu", root);
	least = smallest(mount, group, quota_v1);
	snprintf(mount, sizeof mount, "%s/cpu,cpuacct", root);
	if (smallest(mount, group, quota_v1) < least)
		least = smallest(mount, group, quota_v1);
	return least;
}

int32_t hive__cpus_quota(const char *root, const char *memberships)
{
	int32_t least = INT32_MAX;

	for (const char *line = memberships; *line;) {
		size_t length = strcspn(line, "\n");
		int32_t here = quota_of_line(root, line, length);

		if (here < least)
			least = here;
		line += length + (line[length] == '\n');
	}
	return least;
}

static int32_t affinity(void)
{
	cpu_set_t set;
	long online;

	if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
		return CPU_COUNT(&set);
	online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? (int32_t)online : 1;
}

int32_t hive__cpus_allowed(void)
{
	char text[4096];
	int32_t cpus = affinity(), quota = INT32_MAX;

	if (read_small("/proc/self/cgroup", text, sizeof text))
		quota = hive__cpus_quota("/sys/fs/cgroup", text);
	return quota < cpus ? quota : cpus;
}

size_t hive__cpus_list(uint16_t *ret_cpus, size_t capacity)
{
	cpu_set_t set;
	size_t n = 0;

	if (sched_getaffinity(0, sizeof set, &set) < 0)
		return 0;
	for (size_t cpu = 0; cpu < CPU_SETSIZE && n < capacity; cpu++)
		if (CPU_ISSET(cpu, &set))
			ret_cpus[n++] = (uint16_t)cpu;
	return n;
}
