/* SPDX-License-Identifier: MIT */
/* Who is near whom, and who is pinned where. Distances are those of base/topology.h, from the host or from the system. */
#include "base/cpus.h"
#include "sched/internal.h"

/* Under registry_lock, or before anybody else knows the hive. In worlds that are not the system's own nothing is read: the same
 * seed would do other things on other machines. 0 or -ENOMEM.                                                            */
int hive__learn_topology(struct hive *hive)
{
	struct topology *t;

	if (hive->host.cpu_distance || hive->stepped || hive->exact_clock || hive->topology)
		return 0;
	t = (struct topology *)hive__memory_new(&hive->memory, sizeof *t);
	if (!t)
		return -ENOMEM;
	hive__topology_read(t, "/sys");
	hive->topology = t;
	return 0;
}

/* Owner thread of w. Where they are may be old; nothing depends on it but the order of victims. */
int hive__distance(struct worker *w, struct worker *other)
{
	struct hive *hive = w->hive;
	uint32_t a = load_relaxed(&w->cpu), b = load_relaxed(&other->cpu);
	const struct topology *t = w->setup.topology;
	int distance;

	if (hive->host.cpu_distance) {
		distance = hive->host.cpu_distance(hive->host.arg, a, b);
		return distance < 0 ? 0 : distance > TOPOLOGY_FAR ? TOPOLOGY_FAR : distance;
	}
	return t ? hive__topology_distance(t, a, b) : TOPOLOGY_NODE;
}

/* Under registry_lock, before it has begun. */
void hive__settle_place(struct worker *w)
{
	store_relaxed(&w->cpu, w->setup.cpu_count > 0 ? w->setup.cpus[0] : w->index);
}

/* Before anybody else knows the hive. Where CPUs cannot be known, nobody is pinned. 0 or -ENOMEM. */
int hive__plan_pins(struct hive *hive, uint32_t io_workers)
{
	uint16_t *cpus;
	size_t n;
	int r = hive->stepped ? 0 : hive__learn_topology(hive);

	if (r < 0 || hive->stepped)
		return r;
	cpus = (uint16_t *)hive__memory_new(&hive->memory, TOPOLOGY_CPUS * sizeof *cpus);
	if (!cpus)
		return -ENOMEM;
	n = hive__cpus_list(cpus, TOPOLOGY_CPUS);
	if (n == 0) {
		hive__memory_free(&hive->memory, cpus);
		return 0;
	}
	if (hive->topology)
		hive__topology_spread(hive->topology, cpus, n);
	hive->pin_cpus = cpus;
	hive->pin_count = (uint32_t)n;
	hive->pin_io = io_workers;
	return 0;
}
