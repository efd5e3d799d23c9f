/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>
struct record;

/* What two threads wait that do nothing but hand numbers over and spin: one each gap_ns, each of which takes work_ns. Puts the p99 of the median
 * window and that of the whole run, in ns; -EAGAIN: there was no thread.                                                      */
int bus_floor(double seconds, int64_t gap_ns, int64_t work_ns, struct record *result);
