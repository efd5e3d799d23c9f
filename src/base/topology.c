/* SPDX-License-Identifier: MIT */
#include "base/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_BYTES = 4096, CACHES = 8, NODES = 1024 };

static bool read_below(const char *root, const char *path, char *ret_text)
{
	char full[512];
	ssize_t n;
	int fd, length = snprintf(full, sizeof full, "%s/devices/system/%s", root, path);

	fd = length < (int)sizeof full ? open(full, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return false;
	n = read(fd, ret_text, LIST_BYTES - 1);
	close(fd);
	ret_text[n < 0 ? 0 : n] = '\0';
	return n > 0;
}

/* The next range of a list such as "0-3,8,10-11". False: there is none, or it is no list. */
static bool next_range(const char **at, unsigned long *ret_first, unsigned long *ret_last)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	*ret_first = *ret_last = strtoul(*at, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		*ret_last = strtoul(end + 1, &end, 10);
	*at = *end == ',' ? end + 1 : end;
	return *ret_first <= *ret_last;
}

/* Those in the list share something. */
static void share(uint16_t *group, const char *list)
{
	unsigned long first, last, name = 0;

	while (next_range(&list, &first, &last))
		for (; first <= last && first < TOPOLOGY_CPUS; first++) {
			if (name == 0)
				name = first + 1;
			group[first] = (uint16_t)name;
		}
}

static void read_shared(const char *root, const char *path, uint16_t *group)
{
	char list[LIST_BYTES];

	if (read_below(root, path, list))
		share(group, list);
}

static void read_caches(struct topology *t, const char *root, unsigned long cpu)
{
	char path[128], level[LIST_BYTES];

	for (int i = 0; i < CACHES && !(t->group[TOPOLOGY_L2][cpu] && t->group[TOPOLOGY_L3][cpu]); i++) {
		snprintf(path, sizeof path, "cpu/cpu%lu/cache/index%d/level", cpu, i);
		if (!read_below(root, path, level))
			return;
		snprintf(path, sizeof path, "cpu/cpu%lu/cache/index%d/shared_cpu_list", cpu, i);
		if (level[0] == '2')
			read_shared(root, path, t->group[TOPOLOGY_L2]);
		else if (level[0] == '3')
			read_shared(root, path, t->group[TOPOLOGY_L3]);
	}
}

/* What a neighbour's files have told is not read again. */
static void read_cpu(struct topology *t, const char *root, unsigned long cpu)
{
	char path[128];

	snprintf(path, sizeof path, "cpu/cpu%lu/topology/thread_siblings_list", cpu);
	if (!t->group[TOPOLOGY_CORE][cpu])
		read_shared(root, path, t->group[TOPOLOGY_CORE]);
	read_caches(t, root, cpu);
}

static void read_nodes(struct topology *t, const char *root)
{
	char nodes[LIST_BYTES], path[64];
	const char *at = nodes;
	unsigned long first, last;

	if (!read_below(root, "node/online", nodes))
		return;
	while (next_range(&at, &first, &last))
		for (; first <= last && first < NODES; first++) {
			snprintf(path, sizeof path, "node/node%lu/cpulist", first);
			read_shared(root, path, t->group[TOPOLOGY_NODE]);
		}
}

void hive__topology_read(struct topology *t, const char *root)
{
	char online[LIST_BYTES];
	const char *at = online;
	unsigned long first, last;
	int saved = errno;

	memset(t, 0, sizeof *t);
	read_nodes(t, root);
	if (read_below(root, "cpu/online", online))
		while (next_range(&at, &first, &last))
			for (; first <= last && first < TOPOLOGY_CPUS; first++)
				read_cpu(t, root, first);
	errno = saved;
}

int hive__topology_distance(const struct topology *t, uint32_t a, uint32_t b)
{
	if (a == b)
		return TOPOLOGY_CORE;
	if (a >= TOPOLOGY_CPUS || b >= TOPOLOGY_CPUS)
		return TOPOLOGY_NODE;
	for (int level = 0; level < TOPOLOGY_LEVELS; level++)
		if (t->group[level][a] && t->group[level][a] == t->group[level][b])
			return level;
	return t->group[TOPOLOGY_NODE][a] && t->group[TOPOLOGY_NODE][b] ? TOPOLOGY_FAR : TOPOLOGY_NODE;
}

/* How many before it in the row are on its core. */
static size_t rank_on_core(const struct topology *t, const uint16_t *cpus, size_t at)
{
	size_t rank = 0;

	for (size_t i = 0; i < at; i++)
		rank += hive__topology_distance(t, cpus[i], cpus[at]) == TOPOLOGY_CORE;
	return rank;
}

void hive__topology_spread(const struct topology *t, uint16_t *cpus, size_t count)
{
	uint16_t rank[TOPOLOGY_CPUS];

	if (count > TOPOLOGY_CPUS)
		count = TOPOLOGY_CPUS;
	for (size_t i = 0; i < count; i++)
		rank[i] = (uint16_t)rank_on_core(t, cpus, i);
	for (size_t i = 1; i < count; i++) /* lower ranks first; equals keep their order */
		for (size_t j = i; j > 0 && rank[j - 1] > rank[j]; j--) {
			uint16_t cpu = cpus[j], its = rank[j];

			cpus[j] = cpus[j - 1], rank[j] = rank[j - 1];
			cpus[j - 1] = cpu, rank[j - 1] = its;
		}
}
