/* SPDX-License-Identifier: MIT */
#pragma once
/* What the scheduler and the library's own cores know of each other beyond <rophive/core.h>. */
#include <stdint.h>

#include "base/memory.h"

/* Bits of hive_core_ops.flags. */
enum {
	CORE_TAKES_SETUP = 1, /* with core_arg NULL, open() gets a struct core_setup */
	CORE_KEEPS_FILES = 2, /* whatever a source waits for stays open until the source is removed, closed or not */
	CORE_WAKES_ONE = 4,   /* CORE_EVENT_ALONE is understood */
};

/* For add(), beside HIVE_EVENT_IN and HIVE_EVENT_EDGE: of several workers that wait for this one is told. Not for modify(). */
#define CORE_EVENT_ALONE (1u << 16)

struct core_setup {
	struct memory memory;  /* of the hive */
	uint32_t ring_entries; /* 0: the core's default */
};

/* Any thread. Why hive_core_find() does not give this core: -ENOENT, there is none in this build; else what the system said.
 * 0: it does.                                                                                                             */
int hive__core_refusal(const char *name);
