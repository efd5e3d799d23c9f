/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

/* What two threads wait that do nothing but hand numbers over and spin: one each gap_ns, each of which takes work_ns. The p99 of the median
 * window, in ns; negative: there was no thread.                                                                              */
double bus_floor(double seconds, int64_t gap_ns, int64_t work_ns);
