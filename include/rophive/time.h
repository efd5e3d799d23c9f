/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/error.h>

/* Nanoseconds in int64_t everywhere. The name says which: delay_ns counts from the call, deadline_ns is a
 * point of the hive's clock. What starts takes a delay; what waits takes a deadline, so that one budget
 * spans several calls. A negative delay counts as 0, a deadline in the past as HIVE_NOWAIT.             */
#define HIVE_FOREVER INT64_MAX /* deadline: wait without limit */
#define HIVE_NOWAIT INT64_C(0) /* deadline: answer at once; any past point does the same */
#define HIVE_US(n) ((int64_t)(n)*1000)
#define HIVE_MS(n) ((int64_t)(n)*1000000)
#define HIVE_S(n) ((int64_t)(n)*1000000000)

HIVE_BEGIN
struct hive;
/* Any thread. Now, on the hive's clock. NULL: that of the hive this thread works for, else CLOCK_MONOTONIC. */
int64_t hive_now(const struct hive *hive);
/* Any thread. hive_now() + delay_ns, saturating at HIVE_FOREVER. */
int64_t hive_deadline(const struct hive *hive, int64_t delay_ns);
/* Any thread. For poll() and its kin: milliseconds rounded up and clamped to int; HIVE_FOREVER gives -1. */
int hive_poll_ms(int64_t wait_ns);
HIVE_END
