/* SPDX-License-Identifier: MIT */
/* How many CPUs we may use, read from made-up cgroup trees. */
#include "base/cpus.h"

#include <sched.h>

#include "support/tree.h"
#include "unit.h"

TEST(no_membership_no_limit)
{
	tree_begin();
	CHECK_EQ(hive__cpus_quota(tree_root, ""), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(tree_root, "\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(tree_root, "nonsense\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(tree_root, "0:\n:\n"), INT32_MAX);
	tree_end();
}

TEST(missing_files_mean_no_limit)
{
	tree_begin();
	CHECK_EQ(hive__cpus_quota(tree_root, "0::/a/b\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(tree_root, "4:cpu,cpuacct:/a/b\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota("/nonexistent/cgroup", "0::/\n"), INT32_MAX);
	tree_end();
}

TEST(v2_quota_of_the_own_group)
{
	tree_begin();
	tree_put("a/b/cpu.max", "200000 100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "0::/a/b\n"), 2);
	tree_end();
}

TEST(v2_quota_of_a_parent_counts)
{
	tree_begin();
	tree_put("a/b/c/cpu.max", "max 100000\n");
	tree_put("a/b/cpu.max", "800000 100000\n");
	tree_put("a/cpu.max", "300000 100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "0::/a/b/c\n"), 3);
	tree_end();
}

TEST(v2_quota_of_a_sibling_or_child_does_not_count)
{
	tree_begin();
	tree_put("a/b/cpu.max", "100000 100000\n");
	tree_put("a/c/cpu.max", "100000 100000\n");
	tree_put("ab/cpu.max", "100000 100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "0::/a\n"), INT32_MAX);
	tree_end();
}

TEST(v2_max_means_no_limit)
{
	tree_begin();
	tree_put("a/cpu.max", "max 100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "0::/a\n"), INT32_MAX);
	tree_end();
}

/* Inside a cgroup namespace the own group is the tree_root, and its file is there. */
TEST(v2_root_group_reads_the_file_of_the_mount)
{
	tree_begin();
	tree_put("cpu.max", "150000 100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "0::/\n"), 2);
	tree_end();
}

TEST(fractions_are_rounded_up)
{
	static const struct {
		const char *text;
		int32_t cpus;
	} cases[] = { { "1 100000", 1 },      { "50000 100000", 1 },  { "100000 100000", 1 },  { "100001 100000", 2 },
		      { "199999 100000", 2 }, { "250000 100000", 3 }, { "1000000 100000", 10 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		tree_begin();
		tree_put("a/cpu.max", cases[i].text);
		CHECK_EQ(hive__cpus_quota(tree_root, "0::/a\n"), cases[i].cpus);
		tree_end();
	}
}

TEST(broken_files_mean_no_limit)
{
	static const char *const texts[] = {
		"", "x", "100000", "0 100000", "100000 0", "-1 100000", "100000 -1", "\n"
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		tree_begin();
		tree_put("a/cpu.max", texts[i]);
		CHECK_EQ(hive__cpus_quota(tree_root, "0::/a\n"), INT32_MAX);
		tree_end();
	}
}

TEST(absurd_quota_does_not_overflow)
{
	tree_begin();
	tree_put("a/cpu.max", "9223372036854775807 100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "0::/a\n"), INT32_MAX);
	tree_put("a/cpu.max", "9223372036854775807 9223372036854775807\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "0::/a\n"), 1);
	tree_end();
}

TEST(v1_quota_and_period_are_two_files)
{
	tree_begin();
	tree_put("cpu/a/cpu.cfs_quota_us", "350000\n");
	tree_put("cpu/a/cpu.cfs_period_us", "100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "3:cpu:/a\n"), 4);
	tree_end();
}

TEST(v1_minus_one_means_no_limit)
{
	tree_begin();
	tree_put("cpu/a/cpu.cfs_quota_us", "-1\n");
	tree_put("cpu/a/cpu.cfs_period_us", "100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "3:cpu:/a\n"), INT32_MAX);
	tree_end();
}

TEST(v1_quota_of_a_parent_counts)
{
	tree_begin();
	tree_put("cpu/a/b/cpu.cfs_quota_us", "-1\n");
	tree_put("cpu/a/b/cpu.cfs_period_us", "100000\n");
	tree_put("cpu/a/cpu.cfs_quota_us", "20000\n");
	tree_put("cpu/a/cpu.cfs_period_us", "10000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "3:cpu:/a/b\n"), 2);
	tree_end();
}

TEST(v1_period_missing_means_no_limit)
{
	tree_begin();
	tree_put("cpu/a/cpu.cfs_quota_us", "100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "3:cpu:/a\n"), INT32_MAX);
	tree_end();
}

TEST(v1_joint_mount_is_found_by_its_name)
{
	tree_begin();
	tree_put("cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n");
	tree_put("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "3:cpu,cpuacct:/a\n"), 2);
	CHECK_EQ(hive__cpus_quota(tree_root, "3:cpuacct,cpu:/a\n"), 2);
	tree_end();
}

TEST(controllers_with_similar_names_are_not_the_cpu)
{
	tree_begin();
	tree_put("cpu/a/cpu.cfs_quota_us", "200000\n");
	tree_put("cpu/a/cpu.cfs_period_us", "100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "3:cpuset:/a\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(tree_root, "3:cpuacct:/a\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(tree_root, "3:name=cpu:/a\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(tree_root, "3:gpu:/a\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(tree_root, "3:memory,cpu:/a\n"), 2);
	tree_end();
}

TEST(hybrid_looks_at_both)
{
	static const char memberships[] = "5:cpu,cpuacct:/a\n1:name=systemd:/s\n0::/u\n";

	tree_begin();
	tree_put("cpu/a/cpu.cfs_quota_us", "400000\n");
	tree_put("cpu/a/cpu.cfs_period_us", "100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, memberships), 4);
	tree_put("unified/u/cpu.max", "300000 100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, memberships), 3);
	tree_put("unified/u/cpu.max", "max 100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, memberships), 4);
	tree_end();
}

TEST(smallest_of_all_lines_wins_and_the_last_needs_no_newline)
{
	tree_begin();
	tree_put("a/cpu.max", "500000 100000\n");
	tree_put("b/cpu.max", "200000 100000\n");
	CHECK_EQ(hive__cpus_quota(tree_root, "0::/a\n0::/b"), 2);
	CHECK_EQ(hive__cpus_quota(tree_root, "0::/b\n0::/a"), 2);
	tree_end();
}

TEST(group_names_may_be_long_and_odd)
{
	char path[300], line[300];

	tree_begin();
	snprintf(path, sizeof path, "%0150d/x:y z/cpu.max", 7);
	tree_put(path, "200000 100000\n");
	snprintf(line, sizeof line, "0::/%0150d/x:y z\n", 7);
	CHECK_EQ(hive__cpus_quota(tree_root, line), 2);
	tree_end();
}

TEST(root_may_be_a_name_without_a_slash)
{
	tree_begin();
	tree_put("here/cpu.max", "200000 100000\n");
	CHECK_OK(chdir(tree_root));
	CHECK_EQ(hive__cpus_quota("here", "0::/\n"), 2);
	CHECK_EQ(hive__cpus_quota("nowhere", "0::/\n"), INT32_MAX);
	CHECK_OK(chdir("/"));
	tree_end();
}

TEST(at_least_one_cpu_and_no_more_than_affinity)
{
	cpu_set_t set;

	CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
	CHECK(hive__cpus_allowed() >= 1);
	CHECK(hive__cpus_allowed() <= CPU_COUNT(&set));
}
