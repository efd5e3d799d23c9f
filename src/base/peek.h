/* SPDX-License-Identifier: MIT */
#pragma once
/* Memory that others may change, or give back, at any moment. */
#include <stdbool.h>
#include <stddef.h>

/* Any thread, also a signal handler. A copy made by the system, which minds neither. False: there is nothing, or it does not let us. */
bool hive__peek(const void *from, void *ret_copy, size_t bytes);
