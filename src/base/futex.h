/* SPDX-License-Identifier: MIT */
#pragma once
/* Wait on a word. The kernel compares and sleeps in one move, so a change between look and wait is not missed. */
#include "base/atomic.h"

/* Any thread. Blocks while *word == expected, at most timeout_ns (HIVE_FOREVER: without limit). May return early. */
void hive__futex_wait(ATOMIC(uint32_t) *word, uint32_t expected, int64_t timeout_ns);
/* Any thread. Wakes up to count waiters. */
void hive__futex_wake(ATOMIC(uint32_t) *word, int count);
