/* SPDX-License-Identifier: MIT */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Any thread. CPUs that this process may use at one time: affinity mask and cgroup quota (v1 and v2, rounded up,
 * all levels up to the root). At least 1.                                                                       */
int32_t hive__cpus_allowed(void);

/* Any thread. The CPUs that the caller may run on, in order, at most `capacity`. How many; 0: it cannot be known. */
size_t hive__cpus_list(uint16_t *ret_cpus, size_t capacity);

/* For tests: the quota found in cgroup directories below `root` for the memberships in the text of a
 * /proc/self/cgroup file; INT32_MAX: no limit. */
int32_t hive__cpus_quota(const char *root, const char *memberships);
