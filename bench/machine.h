/* SPDX-License-Identifier: MIT */
#pragma once
#include "record.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Facts about the machine and this process, for the headers of results and for the doctor. What cannot be read is
 * "unknown", never a failure.                                                                                    */
#define MACHINE_TEXT 160

/* First line of a file without its end; "unknown" and false when it cannot be read. */
bool machine_read_line(const char *path, char *text, size_t size);
/* The rest of the first line of a file that begins with `key`, behind its colon. */
bool machine_read_key(const char *path, const char *key, char *text, size_t size);

void machine_kernel(char *text, size_t size);
void machine_cpu_model(char *text, size_t size);
void machine_governor(char *text, size_t size);
void machine_turbo(char *text, size_t size); /* "on", "off" or "unknown" */
void machine_compiler(char *text, size_t size);
void machine_libc(char *text, size_t size);
/* CPU quota of this process's cgroup and all above it, v1 or v2: "1.50 CPUs (/some/group)", "none", "none found". */
void machine_quota(char *text, size_t size);

int32_t machine_cpus_online(void);
int32_t machine_cpus_allowed(void);
/* The index-th CPU that the affinity mask allows, wrapping round. */
uint16_t machine_allowed_cpu(size_t index);

int64_t machine_peak_memory_kb(void); /* VmHWM */
int64_t machine_memory_kb(void);      /* VmRSS */
double machine_cpu_seconds(void);     /* of all threads of this process, user and system */
int64_t machine_context_switches(void);
double machine_busy_seconds(void); /* CPU time that all programs of the machine have used since it started */

/* Everything that decides whether two results can be compared. */
void machine_describe(struct record *record);
