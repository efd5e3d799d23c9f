/* SPDX-License-Identifier: MIT */
#pragma once
/* What the fuzz targets share: bytes that become decisions, expectations that stop the run, and memory that is counted and
 * can run out. When the bytes are used up, all further decisions are zeros: every input comes to an end.                  */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include <rophive/task.h>
#include <rophive/time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define EXPECT(x)                                                                         \
	do {                                                                              \
		if (!(x)) {                                                               \
			fprintf(stderr, "%s:%d: expected: %s\n", __FILE__, __LINE__, #x); \
			abort();                                                          \
		}                                                                         \
	} while (0)

#define EXPECT_EQ(a, b)                                                                                          \
	do {                                                                                                     \
		int64_t expect_a = (int64_t)(a), expect_b = (int64_t)(b);                                        \
		if (expect_a != expect_b) {                                                                      \
			fprintf(stderr, "%s:%d: expected: %s == %s, but %" PRId64 " != %" PRId64 "\n", __FILE__, \
			        __LINE__, #a, #b, expect_a, expect_b);                                           \
			abort();                                                                                 \
		}                                                                                                \
	} while (0)

struct input {
	const uint8_t *at, *end;
};

static inline struct input input_of(const uint8_t *data, size_t size)
{
	return (struct input){ data, data + size };
}

static inline bool input_more(const struct input *in)
{
	return in->at < in->end;
}

static inline uint8_t input_byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* A number below n, n <= 256. */
static inline uint32_t input_below(struct input *in, uint32_t n)
{
	return input_byte(in) % n;
}

static inline uint64_t input_word(struct input *in, int bytes)
{
	uint64_t word = 0;

	while (bytes-- > 0)
		word = word << 8 | input_byte(in);
	return word;
}

/* A span of time: mostly short and colliding, sometimes near an end of the range, sometimes anything. */
static inline int64_t input_time(struct input *in)
{
	uint8_t how = input_byte(in);

	switch (how % 8) {
	case 0:
	case 1:
	case 2:
		return how / 8;
	case 3:
		return HIVE_MS(how / 8);
	case 4:
		return HIVE_S(1) * (how / 8) * (how / 8) * 1000;
	case 5:
		return INT64_MAX - how / 8;
	case 6:
		return how < 128 ? -(how / 8) : INT64_MAX / 2 + how;
	default:
		return (int64_t)input_word(in, 8);
	}
}

struct counted_memory {
	struct memory memory;
	long live;      /* blocks given and not taken back */
	long fail_in;   /* n: the n-th request from now fails, once; 0: none */
	long fail_more; /* and so many after it */
	long failed;    /* requests that failed */
	size_t limit;   /* requests larger than this fail, and all while there are too many blocks; 0: no limit */
};

static inline void *counted_allocate(void *arg, void *old, size_t bytes)
{
	struct counted_memory *m = (struct counted_memory *)arg;

	if (bytes == 0) {
		m->live -= old != NULL;
		free(old);
		return NULL;
	}
	if ((m->fail_in > 0 && --m->fail_in == 0) || (m->limit > 0 && (bytes > m->limit || m->live > 5000))) {
		if (m->fail_in == 0 && m->fail_more > 0)
			m->fail_in = 1, m->fail_more--;
		m->failed++;
		return NULL;
	}
	m->live += old == NULL;
	return realloc(old, bytes);
}

static inline void counted_memory_init(struct counted_memory *m)
{
	*m = (struct counted_memory){ .memory = { counted_allocate, m } };
}

/* -ENOMEM with a request that failed since `before`: nothing else is an excuse. */
static inline bool excused(const struct counted_memory *m, long before, int r)
{
	return r == -ENOMEM && m->failed > before;
}

/* Tasks of the container targets are numbers. */
static inline void fuzz_nop(void *arg)
{
	(void)arg;
}

static inline struct hive_task task_of(uint64_t number)
{
	return (struct hive_task){ fuzz_nop, (void *)(uintptr_t)number };
}

static inline uint64_t number_of(struct hive_task task)
{
	EXPECT(task.fn == fuzz_nop);
	return (uint64_t)(uintptr_t)task.arg;
}
