/* SPDX-License-Identifier: MIT */
#pragma once
/* The explorer: the whole library on virtual threads of one system thread. Every shared access (base/atomic.h), every fault
 * point (base/fault.h) and every wait is a decision, made from a seed or from a recorded schedule:
 *
 *   stay      the default: the thread that runs goes on; one that waits or yields is followed by the next in line
 *   switch    another thread is let in here
 *   fault     the misfortune that this place has a name for happens
 *
 * A schedule is the list of decisions that were not the default. The same program, seed and schedule give the same run.    */
#include <stdbool.h>
#include <stdint.h>

#include <rophive/core.h>

enum { MASKS = 1 << 14, THREADS_MAX = 24, DECISIONS_MAX = 1 << 16, FAULT = -1 };

struct decision {
	uint32_t step;
	int32_t what; /* a thread to switch to, or FAULT */
};

struct schedule {
	uint32_t count;
	struct decision decisions[DECISIONS_MAX];
};

enum strategy {
	RANDOM,  /* at each point, one time in `rate`, another thread */
	BOUNDED, /* at most `preemptions` switches that nobody needs, among the first `length` that there can be */
	REPLAY,  /* what `replay` says, the default elsewhere */
};

struct plan {
	enum strategy strategy;
	uint64_t seed;
	uint32_t rate;        /* RANDOM */
	uint32_t preemptions; /* BOUNDED */
	uint32_t length;      /* BOUNDED  how many choices the run is expected to have */
	uint32_t fault_rate;  /* one time in this many a fault happens; 0: never */
	int often;            /* these come more often: the n-th name, and those with the same first word; -1: none */
	const struct schedule *replay;
};

struct outcome {
	bool failed;
	char text[512];
	uint64_t hash; /* of every point that was passed, and of what the program noted */
	uint32_t steps, switches, faults;
};

/* ---- the driver's side ---- */

/* Runs program(arg) as the first virtual thread until all threads have ended. Records what was decided in *ret_schedule. */
void explore_run(const struct plan *plan, void (*program)(void *arg), void *arg, struct schedule *ret_schedule,
                 struct outcome *ret_outcome);
/* Tells decisions as they are made: where the thread was that lost its turn, and who got it. For a replay. */
extern bool explore_tells;
/* Which threads could have run at this step of the last run without decisions, a bit each. Steps from MASKS on: all. */
uint32_t explore_runnable_at(uint32_t step);
/* The n-th name of a fault of all that this program knows, in the order of the alphabet; NULL after the last. */
enum { FAULT_NAMES = 32 };
const char *explore_fault_name(int n);
/* How often it happened in this process. */
uint64_t explore_fault_count(int n);

/* ---- the program's side: virtual threads only ---- */

/* A new thread. Its number, by which it can be joined. */
int explore_spawn(const char *name, hive_fn *main, void *arg);
void explore_join(int thread);
/* Waits until everybody else waits, and time would have to move on for anything to happen. */
void explore_wait_quiet(void);
/* Looks at the world without letting it go on: no access is a point between these two. */
void explore_hold(void);
void explore_go_on(void);
/* In the middle of something, for this long. */
void explore_sleep(int64_t ns);
/* The run ends here, as a failure. */
_Noreturn void explore_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define EXPECT(condition)                                                                  \
	do {                                                                               \
		if (!(condition))                                                          \
			explore_fail("%s:%d: EXPECT(%s)", __FILE__, __LINE__, #condition); \
	} while (0)
/* Becomes part of the hash. */
void explore_note(uint64_t number);
/* A number below n from the run's seed; the schedule has no influence on the first ones that the first thread draws. */
uint32_t explore_draw(uint32_t n);
/* Called at every switch with points switched off; a text is a failure. NULL: no check. */
void explore_check_always(const char *(*check)(void *arg), void *arg);
/* Memory, core and random numbers from the explorer. */
enum { CORE_EMPTY, CORE_EPOLL, CORE_POLL, CORE_DOES_OPS /* epoll, and most operations by itself */ };
struct hive_host explore_host(int core);
/* As one who polls the descriptor of a core: until it was woken, something has become ready, or so long. */
void explore_wait_core(struct hive_core *core, int64_t wait_ns);
/* A pair of sockets that are connected, without blocking; `tcp`: the library takes them for those. */
void explore_wire(bool tcp, int ret_fds[2]);
/* A descriptor has become ready: workers that wait in their cores look again, and so do threads that wait for just that. */
void explore_fd_event(void);
void explore_wait_fd_event(void);

/* ---- between the explorer's own files ---- */

bool explore_is_on(void);
int64_t explore_now(void);
void explore_jump(int64_t ns);
int64_t explore_jumped(void); /* how far in all, in this run */
/* Waits until somebody wakes `key`, or `timeout_ns` have passed (HIVE_FOREVER: without limit). Not a point itself. */
void explore_block(const void *key, int64_t timeout_ns);
/* The same for who is in the middle of something: the world is not quiet. */
void explore_nap(const void *key, int64_t timeout_ns);
void explore_unblock(const void *key, int count);
void explore_yield(void);
bool explore_thread_is_done(int thread);
int explore_self(void);
void explore_memory_begin(void);
/* Blocks that were not freed. */
uint64_t explore_memory_end(void);
void *explore_allocate(void *arg, void *old, size_t bytes);
bool hive__explore_fault(const char *name);
/* It has happened. */
void fault_note(const char *name);
/* It is the n-th one, or begins with the same word. */
bool fault_is_akin(const char *name, int n);
