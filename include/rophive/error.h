/* SPDX-License-Identifier: MIT */
#pragma once
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define HIVE_BEGIN extern "C" {
#define HIVE_END }
#else
#define HIVE_BEGIN
#define HIVE_END
#endif

#if defined(__GNUC__)
#define HIVE_CHECKED __attribute__((warn_unused_result)) /* ignoring this result can lose your memory */
#else
#define HIVE_CHECKED
#endif

#if defined(HIVE_ATOMIC) /* the model checker has its own */
#elif defined(__cplusplus)
#define HIVE_ATOMIC(T) T /* the same size; only the library touches it */
#else
#define HIVE_ATOMIC(T) _Atomic(T)
#endif

#define HIVE_AUTO (-1) /* in options: as many as affinity mask and cgroup quota give us */
#define HIVE_OFF (-1)  /* in options: none, never; because 0 always means "the default" */
#define HIVE_NONE (-2) /* compute_workers of hive_runtime_start(): none, where 0 and -1 mean HIVE_AUTO */

/* One meaning per code, in every module. On failure nothing was done and no output was written.
 *   -EINVAL      argument out of its domain, object never initialised, reserved field not zero
 *   -ENOMEM      the allocator said no; the object works as before
 *   -EPERM       not on the thread that the call's rule names (debug builds: assertion)
 *   -EDEADLK     the wait would wait for itself: on a worker of the same hive, …
 *   -ESHUTDOWN   stop has begun; what you passed is still yours
 *   -ESRCH       no such worker or post any more (a stale id never reaches a stranger)
 *   -EBUSY       still armed, running or referenced; stop it first
 *   -EALREADY    already armed or started
 *   -ETIMEDOUT   the deadline passed first (HIVE_NOWAIT: it would have had to wait)
 *   -EINPROGRESS the deadline passed, what was asked for goes on by itself
 *   -ENOBUFS     the bus refuses this priority at its present fill
 *   -ENOTSUP     this core, platform or build cannot do it
 *   -ENOSPC      no slot left: HIVE_WORKERS_MAX workers of one kind
 *   -ELOOP       nodes of a graph wait for each other
 *   -EOWNERDEAD  used in a child after fork()
 * Calls that reach the system (threads, descriptors) return its own codes as well. */
HIVE_BEGIN
/* Any thread. "ESHUTDOWN" for -ESHUTDOWN (the sign does not matter); "?" for an unknown code; never NULL. */
const char *hive_error_name(int error);
/* Any thread. What the code means here, in a few words; never NULL, static storage. */
const char *hive_error_text(int error);
HIVE_END
