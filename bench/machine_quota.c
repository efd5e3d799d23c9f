/* SPDX-License-Identifier: MIT */
#include "machine.h"
#include <stdlib.h>
#include <string.h>

/* A cgroup can use no more than the tightest group on its way to the root, so the whole way is looked at. */
struct quota_search {
	double cpus; /* 0: no limit found */
	char group[256];
	bool readable; /* there was a controller to ask */
};

static void consider(struct quota_search *search, double quota, double period, const char *group)
{
	search->readable = true;
	if (quota <= 0 || period <= 0 || (search->cpus > 0 && quota / period >= search->cpus))
		return;
	search->cpus = quota / period;
	snprintf(search->group, sizeof search->group, "%s", group[0] ? group : "/");
}

static void look_v2(struct quota_search *search, const char *group)
{
	char path[512], text[64], *rest;
	snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
	if (!machine_read_line(path, text, sizeof text))
		return;
	double quota = strtod(text, &rest); /* "max 100000" gives 0: no limit */
	consider(search, quota, strncmp(text, "max", 3) == 0 ? 1 : strtod(rest, NULL), group);
}

static void look_v1(struct quota_search *search, const char *group)
{
	char path[512], quota[64], period[64];
	snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", group);
	if (!machine_read_line(path, quota, sizeof quota))
		return;
	snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", group);
	machine_read_line(path, period, sizeof period);
	consider(search, strtod(quota, NULL), strtod(period, NULL), group);
}

static void walk_up(struct quota_search *search, const char *group, void (*look)(struct quota_search *, const char *))
{
	char path[256];
	snprintf(path, sizeof path, "%s", strcmp(group, "/") == 0 ? "" : group);
	for (;;) {
		look(search, path);
		char *last = strrchr(path, '/');
		if (!last)
			return;
		*last = 0;
	}
}

/* "0::/group" is version 2; "4:cpu,cpuacct:/group" is version 1. */
static void look_line(struct quota_search *search, char *line)
{
	char *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return;
	*group++ = 0;
	group[strcspn(group, "\n")] = 0;
	if (controllers[1] == 0)
		walk_up(search, group, look_v2);
	else if (strstr(controllers, "cpu"))
		walk_up(search, group, look_v1);
}

void machine_quota(char *text, size_t size)
{
	struct quota_search search = { 0 };
	char line[512];
	FILE *file = fopen("/proc/self/cgroup", "re");
	while (file && fgets(line, sizeof line, file))
		look_line(&search, line);
	if (file)
		fclose(file);
	if (search.cpus > 0)
		snprintf(text, size, "%.2f CPUs (%.120s)", search.cpus, search.group);
	else
		snprintf(text, size, search.readable ? "none" : "none found");
}
