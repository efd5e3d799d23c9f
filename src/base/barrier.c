/* SPDX-License-Identifier: MIT */
#include "base/barrier.h"

#include "base/fault.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

/* Of the process: a second time does no harm. A child of fork() has to ask anew. */
bool hive__barrier_open(void)
{
	if (HIVE_FAULT("memory barrier"))
		return false;
	return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

/* Cannot fail once it was opened. */
void hive__barrier_all(void)
{
	membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
