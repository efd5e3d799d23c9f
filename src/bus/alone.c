/* SPDX-License-Identifier: MIT */
/* What a program needs of the rest of the library when there is no rest: librophive-bus, for small systems. */
#if defined(HIVE_BUS_ALONE)
#include "base/clock.h"

int64_t hive_now(const struct hive *hive)
{
	(void)hive;
	return hive__clock_now();
}

int64_t hive_deadline(const struct hive *hive, int64_t delay_ns)
{
	return time_add(hive_now(hive), (delay_ns > 0) ? delay_ns : 0);
}
#else
typedef int hive__bus_is_not_alone; /* a file is not empty */
#endif
