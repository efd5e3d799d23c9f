/* SPDX-License-Identifier: MIT */
#pragma once
/* While an operation waits, in the kernel, at a seat or for a compute worker, what it will fill is nobody's: AddressSanitizer reports who touches
 * it. (What it sends its user may still read.) Nothing in other builds.                                                     */
#include <rophive/op.h>

#include "base/poison.h"

/* lend.c: poisons what it fills, or lets everybody have it again. */
void hive__op_lend(struct hive_op *op, bool lends);

static inline void op_lends(struct hive_op *op)
{
	if (POISONS)
		hive__op_lend(op, true);
}

static inline void op_returns(struct hive_op *op)
{
	if (POISONS)
		hive__op_lend(op, false);
}
