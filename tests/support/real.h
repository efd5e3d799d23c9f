/* SPDX-License-Identifier: MIT */
#pragma once
/* For tests that need real threads: waits that end, one way or the other, and an end of the hive that checks its books.
 * Nothing here measures time; the limits are so far away that only a hang reaches them.                               */
#include <rophive/hive.h>

#include <sched.h>
#include <semaphore.h>

struct gate {
	sem_t sem;
};

void gate_init(struct gate *g);
void gate_destroy(struct gate *g);
void gate_open(struct gate *g); /* lets one through */
void gate_pass(struct gate *g); /* a wait without end fails the test */
/* As tasks. */
void gate_open_task(void *gate);
void gate_pass_task(void *gate);

/* A task that occupies its worker: it reports and then waits. */
struct block {
	struct gate entered, leave;
	uint32_t worker; /* where it is */
};
void block_init(struct block *b);
void block_destroy(struct block *b);
void block_task(void *block);

/* A point of the system's clock that only a hang reaches. */
int64_t real_patience(void);
struct hive *real_create(struct hive_options options);
struct hive *real_start(struct hive_options options);
/* Stops, joins, compares posted with ran, cancelled and dropped, destroys. The report is returned. */
struct hive_report real_end(struct hive *hive, enum hive_stop_mode mode);
struct hive_report real_join(struct hive *hive);
/* Until so many workers sleep. */
void real_wait_asleep(struct hive *hive, uint32_t workers);

/* Lets others do something for a moment, where nothing says when they have. Awake: who yields on a full machine comes back much later. */
static inline void real_pass_time(int64_t ns)
{
	int64_t end_ns = hive_deadline(NULL, ns);

	while (hive_now(NULL) < end_ns)
		;
}

/* Takes this step again and again until the condition holds. By time and not by count: what is waited for may need a processor. */
#define STEP_UNTIL(condition, step)                                                                 \
	do {                                                                                        \
		int64_t wait_limit = real_patience();                                               \
		while (!(condition)) {                                                              \
			if (hive_now(NULL) > wait_limit)                                            \
				test_fail(__FILE__, __LINE__, "STEP_UNTIL(%s): never", #condition); \
			step;                                                                       \
		}                                                                                   \
	} while (0)
/* Polls, yielding the CPU, until the condition holds. */
#define WAIT_UNTIL(condition) STEP_UNTIL(condition, sched_yield())
