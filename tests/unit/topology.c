/* SPDX-License-Identifier: MIT */
/* Which CPUs are near each other, read from made-up trees of sysfs. */
#include "base/topology.h"

#include "support/tree.h"
#include "unit.h"

static struct topology t;

static void put(const char *path, const char *text)
{
	char full[256], line[256];

	snprintf(full, sizeof full, "devices/system/%s", path);
	snprintf(line, sizeof line, "%s\n", text);
	tree_put(full, line);
}

static void put_of_cpu(int cpu, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof path, "cpu/cpu%d/%s", cpu, file);
	put(path, text);
}

static int distance(uint32_t a, uint32_t b)
{
	CHECK_EQ(hive__topology_distance(&t, a, b), hive__topology_distance(&t, b, a));
	return hive__topology_distance(&t, a, b);
}

/* Two nodes of eight CPUs. Siblings are n and n + 8, as many machines number them; two cores share an L2, a node its L3. */
static void put_machine(void)
{
	char pair[16], four[32];

	put("cpu/online", "0-15");
	put("node/online", "0-1");
	put("node/node0/cpulist", "0-3,8-11");
	put("node/node1/cpulist", "4-7,12-15");
	for (int cpu = 0; cpu < 16; cpu++) {
		int core = cpu % 8, even = core & ~1;

		snprintf(pair, sizeof pair, "%d,%d", core, core + 8);
		snprintf(four, sizeof four, "%d-%d,%d-%d", even, even + 1, even + 8, even + 9);
		put_of_cpu(cpu, "topology/thread_siblings_list", pair);
		put_of_cpu(cpu, "cache/index0/level", "1");
		put_of_cpu(cpu, "cache/index0/shared_cpu_list", pair);
		put_of_cpu(cpu, "cache/index1/level", "2");
		put_of_cpu(cpu, "cache/index1/shared_cpu_list", four);
		put_of_cpu(cpu, "cache/index2/level", "3");
		put_of_cpu(cpu, "cache/index2/shared_cpu_list", core < 4 ? "0-3,8-11" : "4-7,12-15");
	}
}

/* V-28: core, L2, L3, node, rest. */
TEST(what_two_cpus_share_is_their_distance)
{
	tree_begin();
	put_machine();
	hive__topology_read(&t, tree_root);
	for (uint32_t a = 0; a < 16; a++)
		for (uint32_t b = 0; b < 16; b++) {
			uint32_t core = a % 8, other = b % 8;

			CHECK_EQ(distance(a, b), core == other           ? TOPOLOGY_CORE
			                         : core / 2 == other / 2 ? TOPOLOGY_L2
			                         : core / 4 == other / 4 ? TOPOLOGY_L3
			                                                 : TOPOLOGY_FAR);
		}
	tree_end();
}

/* Caches of several complexes on one node, one of them without an L3. */
TEST(cpus_of_one_node_that_share_no_cache_are_as_far_as_the_node)
{
	tree_begin();
	put("cpu/online", "0-2");
	put("node/online", "0");
	put("node/node0/cpulist", "0-2");
	put_of_cpu(0, "cache/index0/level", "3");
	put_of_cpu(0, "cache/index0/shared_cpu_list", "0-1");
	hive__topology_read(&t, tree_root);
	CHECK_EQ(distance(0, 1), TOPOLOGY_L3);
	CHECK_EQ(distance(0, 2), TOPOLOGY_NODE);
	CHECK_EQ(distance(1, 2), TOPOLOGY_NODE);
	tree_end();
}

TEST(where_nothing_can_be_read_all_are_equally_far)
{
	errno = 77;
	hive__topology_read(&t, "/no/such/folder");
	CHECK_EQ(errno, 77);
	CHECK_EQ(distance(0, 0), TOPOLOGY_CORE);
	for (uint32_t a = 0; a < 8; a++)
		for (uint32_t b = 0; b < a; b++)
			CHECK_EQ(distance(a, b), TOPOLOGY_NODE);
	CHECK_EQ(distance(0, TOPOLOGY_CPUS), TOPOLOGY_NODE);
	CHECK_EQ(distance(UINT32_MAX, 3), TOPOLOGY_NODE);
}

/* Lists as no kernel writes them: what can be read counts, the rest is unknown, and nothing is written beyond the table. */
TEST(nonsense_in_the_files_is_unknown)
{
	static const char *const lists[] = { "",   "-",   "x", "3-1", "0-", "99999999999999999999", "0-4000000000",
		                             ",,", "1,,2" };

	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		tree_begin();
		put("cpu/online", "0-3");
		put("node/online", lists[i]);
		put("node/node0/cpulist", lists[i]);
		put_of_cpu(2, "topology/thread_siblings_list", lists[i]);
		put_of_cpu(2, "cache/index0/level", lists[i]);
		put_of_cpu(3, "cache/index0/level", "3");
		put_of_cpu(3, "cache/index0/shared_cpu_list", lists[i]);
		hive__topology_read(&t, tree_root);
		for (uint32_t a = 0; a < 4; a++)
			CHECK(distance(0, a) >= TOPOLOGY_CORE && distance(0, a) <= TOPOLOGY_FAR);
		tree_end();
	}
}

/* One of each core before its sibling. */
TEST(workers_are_spread_over_cores_before_siblings)
{
	uint16_t cpus[] = { 0, 1, 2, 8, 9, 11 }, alone[] = { 5 };
	static const uint16_t expected[] = { 0, 1, 2, 11, 8, 9 };

	tree_begin();
	put_machine();
	hive__topology_read(&t, tree_root);
	hive__topology_spread(&t, cpus, 6);
	for (int i = 0; i < 6; i++)
		CHECK_EQ(cpus[i], expected[i]);
	hive__topology_spread(&t, alone, 1);
	hive__topology_spread(&t, alone, 0);
	CHECK_EQ(alone[0], 5);
	tree_end();
}

/* This machine, whatever it is. */
TEST(the_systems_own_tree_can_be_read)
{
	hive__topology_read(&t, "/sys");
	for (uint32_t a = 0; a < 64; a++)
		for (uint32_t b = 0; b < 64; b++)
			CHECK(distance(a, b) >= TOPOLOGY_CORE && distance(a, b) <= TOPOLOGY_FAR);
}
