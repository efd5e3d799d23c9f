/* SPDX-License-Identifier: MIT */
/* What the programs in C share: the flags and the output of `hive bench`, its clock and its checks. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { PLAIN_FAILED = 1, PLAIN_USAGE = 2, PLAIN_TIMEOUT = 3, PLAIN_WRONG = 4, PLAIN_UNKNOWN = 10 };

#define PLAIN_PATIENCE_NS INT64_C(60000000000)

struct plain_options {
	const char *scenario;
	int threads, producers, consumers;
	int64_t n;      /* 0: the scenario's own */
	double seconds; /* 0: the scenario's own */
};

/* Ends the program with a word where a flag is not as it should be. */
struct plain_options plain_parse(int argc, char **argv);

int64_t plain_now(void);
double plain_cpu_seconds(void); /* of the whole process */
void plain_sleep_until(int64_t moment_ns);
/* Once the threads of the peer are there, which would inherit it: who sleeps wakes when it meant to. */
void plain_sleep_exactly(void);

/* One hint to the CPU that this is a spin. */
static inline void plain_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Each of these ends the program with its exit code, and the first one only where the two differ. */
void plain_check(const char *what, uint64_t expected, uint64_t seen);
void plain_lost(const char *what);
void plain_failed(const char *what);

/* The line: begun, fields one after the other, ended. */
void plain_begin(const char *peer, const struct plain_options *options, double operations, int64_t elapsed_ns);
void plain_field(const char *name, double value);
/* p10_ns to max_ns with the prefix in front; sorts the times. */
void plain_percentiles(const char *prefix, int64_t *times, size_t count);
void plain_end(void);
