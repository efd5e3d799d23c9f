/* SPDX-License-Identifier: MIT */
/* How many CPUs we may use, read from made-up cgroup trees. */
#include "base/cpus.h"

#include <ftw.h>
#include <sched.h>
#include <sys/stat.h>

#include "unit.h"

static char root[64];

static void start(void)
{
	strcpy(root, "/tmp/rophive-cpus-XXXXXX");
	CHECK(mkdtemp(root));
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status, (void)kind, (void)where;
	return remove(path);
}

static void end(void)
{
	CHECK_EQ(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* A file below the root, with all directories on the way. */
static void put(const char *path, const char *text)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof full, "%s/%s", root, path);
	for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		CHECK(mkdir(full, 0700) == 0 || errno == EEXIST);
		*at = '/';
	}
	file = fopen(full, "w");
	CHECK(file);
	fputs(text, file);
	fclose(file);
}

TEST(no_membership_no_limit)
{
	start();
	CHECK_EQ(hive__cpus_quota(root, ""), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(root, "\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(root, "nonsense\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(root, "0:\n:\n"), INT32_MAX);
	end();
}

TEST(missing_files_mean_no_limit)
{
	start();
	CHECK_EQ(hive__cpus_quota(root, "0::/a/b\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(root, "4:cpu,cpuacct:/a/b\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota("/nonexistent/cgroup", "0::/\n"), INT32_MAX);
	end();
}

TEST(v2_quota_of_the_own_group)
{
	start();
	put("a/b/cpu.max", "200000 100000\n");
	CHECK_EQ(hive__cpus_quota(root, "0::/a/b\n"), 2);
	end();
}

TEST(v2_quota_of_a_parent_counts)
{
	start();
	put("a/b/c/cpu.max", "max 100000\n");
	put("a/b/cpu.max", "800000 100000\n");
	put("a/cpu.max", "300000 100000\n");
	CHECK_EQ(hive__cpus_quota(root, "0::/a/b/c\n"), 3);
	end();
}

TEST(v2_quota_of_a_sibling_or_child_does_not_count)
{
	start();
	put("a/b/cpu.max", "100000 100000\n");
	put("a/c/cpu.max", "100000 100000\n");
	put("ab/cpu.max", "100000 100000\n");
	CHECK_EQ(hive__cpus_quota(root, "0::/a\n"), INT32_MAX);
	end();
}

TEST(v2_max_means_no_limit)
{
	start();
	put("a/cpu.max", "max 100000\n");
	CHECK_EQ(hive__cpus_quota(root, "0::/a\n"), INT32_MAX);
	end();
}

/* Inside a cgroup namespace the own group is the root, and its file is there. */
TEST(v2_root_group_reads_the_file_of_the_mount)
{
	start();
	put("cpu.max", "150000 100000\n");
	CHECK_EQ(hive__cpus_quota(root, "0::/\n"), 2);
	end();
}

TEST(fractions_are_rounded_up)
{
	static const struct {
		const char *text;
		int32_t cpus;
	} cases[] = { { "1 100000", 1 },      { "50000 100000", 1 },  { "100000 100000", 1 },  { "100001 100000", 2 },
		      { "199999 100000", 2 }, { "250000 100000", 3 }, { "1000000 100000", 10 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		start();
		put("a/cpu.max", cases[i].text);
		CHECK_EQ(hive__cpus_quota(root, "0::/a\n"), cases[i].cpus);
		end();
	}
}

TEST(broken_files_mean_no_limit)
{
	static const char *const texts[] = {
		"", "x", "100000", "0 100000", "100000 0", "-1 100000", "100000 -1", "\n"
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		start();
		put("a/cpu.max", texts[i]);
		CHECK_EQ(hive__cpus_quota(root, "0::/a\n"), INT32_MAX);
		end();
	}
}

TEST(absurd_quota_does_not_overflow)
{
	start();
	put("a/cpu.max", "9223372036854775807 100000\n");
	CHECK_EQ(hive__cpus_quota(root, "0::/a\n"), INT32_MAX);
	put("a/cpu.max", "9223372036854775807 9223372036854775807\n");
	CHECK_EQ(hive__cpus_quota(root, "0::/a\n"), 1);
	end();
}

TEST(v1_quota_and_period_are_two_files)
{
	start();
	put("cpu/a/cpu.cfs_quota_us", "350000\n");
	put("cpu/a/cpu.cfs_period_us", "100000\n");
	CHECK_EQ(hive__cpus_quota(root, "3:cpu:/a\n"), 4);
	end();
}

TEST(v1_minus_one_means_no_limit)
{
	start();
	put("cpu/a/cpu.cfs_quota_us", "-1\n");
	put("cpu/a/cpu.cfs_period_us", "100000\n");
	CHECK_EQ(hive__cpus_quota(root, "3:cpu:/a\n"), INT32_MAX);
	end();
}

TEST(v1_quota_of_a_parent_counts)
{
	start();
	put("cpu/a/b/cpu.cfs_quota_us", "-1\n");
	put("cpu/a/b/cpu.cfs_period_us", "100000\n");
	put("cpu/a/cpu.cfs_quota_us", "20000\n");
	put("cpu/a/cpu.cfs_period_us", "10000\n");
	CHECK_EQ(hive__cpus_quota(root, "3:cpu:/a/b\n"), 2);
	end();
}

TEST(v1_period_missing_means_no_limit)
{
	start();
	put("cpu/a/cpu.cfs_quota_us", "100000\n");
	CHECK_EQ(hive__cpus_quota(root, "3:cpu:/a\n"), INT32_MAX);
	end();
}

TEST(v1_joint_mount_is_found_by_its_name)
{
	start();
	put("cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n");
	put("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
	CHECK_EQ(hive__cpus_quota(root, "3:cpu,cpuacct:/a\n"), 2);
	CHECK_EQ(hive__cpus_quota(root, "3:cpuacct,cpu:/a\n"), 2);
	end();
}

TEST(controllers_with_similar_names_are_not_the_cpu)
{
	start();
	put("cpu/a/cpu.cfs_quota_us", "200000\n");
	put("cpu/a/cpu.cfs_period_us", "100000\n");
	CHECK_EQ(hive__cpus_quota(root, "3:cpuset:/a\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(root, "3:cpuacct:/a\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(root, "3:name=cpu:/a\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(root, "3:gpu:/a\n"), INT32_MAX);
	CHECK_EQ(hive__cpus_quota(root, "3:memory,cpu:/a\n"), 2);
	end();
}

TEST(hybrid_looks_at_both)
{
	static const char memberships[] = "5:cpu,cpuacct:/a\n1:name=systemd:/s\n0::/u\n";

	start();
	put("cpu/a/cpu.cfs_quota_us", "400000\n");
	put("cpu/a/cpu.cfs_period_us", "100000\n");
	CHECK_EQ(hive__cpus_quota(root, memberships), 4);
	put("unified/u/cpu.max", "300000 100000\n");
	CHECK_EQ(hive__cpus_quota(root, memberships), 3);
	put("unified/u/cpu.max", "max 100000\n");
	CHECK_EQ(hive__cpus_quota(root, memberships), 4);
	end();
}

TEST(smallest_of_all_lines_wins_and_the_last_needs_no_newline)
{
	start();
	put("a/cpu.max", "500000 100000\n");
	put("b/cpu.max", "200000 100000\n");
	CHECK_EQ(hive__cpus_quota(root, "0::/a\n0::/b"), 2);
	CHECK_EQ(hive__cpus_quota(root, "0::/b\n0::/a"), 2);
	end();
}

TEST(group_names_may_be_long_and_odd)
{
	char path[300], line[300];

	start();
	snprintf(path, sizeof path, "%0150d/x:y z/cpu.max", 7);
	put(path, "200000 100000\n");
	snprintf(line, sizeof line, "0::/%0150d/x:y z\n", 7);
	CHECK_EQ(hive__cpus_quota(root, line), 2);
	end();
}

TEST(root_may_be_a_name_without_a_slash)
{
	start();
	put("here/cpu.max", "200000 100000\n");
	CHECK_OK(chdir(root));
	CHECK_EQ(hive__cpus_quota("here", "0::/\n"), 2);
	CHECK_EQ(hive__cpus_quota("nowhere", "0::/\n"), INT32_MAX);
	CHECK_OK(chdir("/"));
	end();
}

TEST(at_least_one_cpu_and_no_more_than_affinity)
{
	cpu_set_t set;

	CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
	CHECK(hive__cpus_allowed() >= 1);
	CHECK(hive__cpus_allowed() <= CPU_COUNT(&set));
}
