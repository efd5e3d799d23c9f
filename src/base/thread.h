/* SPDX-License-Identifier: MIT */
#pragma once
/* Threads and what the system knows of them. All return 0 or -errno. */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rophive/task.h>

/* Any thread. main(main_arg) on a new thread that starts with all signals blocked; join exactly once. */
int hive__thread_start(hive_fn *main, void *main_arg, uint64_t *ret_thread);
/* The same without an allocation of ours: `start` is the new thread's until main begins. */
struct thread_start {
	hive_fn *main;
	void *arg;
};
int hive__thread_start_in(struct thread_start *start, hive_fn *main, void *main_arg, uint64_t *ret_thread);
void hive__thread_join(uint64_t thread);

/* Each of these acts on the calling thread. */
void hive__thread_name(const char *name);
int hive__thread_pin(const uint16_t *cpus, size_t count);
int hive__thread_nice(int nice);
/* At least this nice; as it is if it is nicer already, or if the system refuses. */
void hive__thread_nice_at_least(int nice);
/* Asks for time slices of this length (0: the default again). With short ones a thread is let in sooner when it wakes, with long ones it gives
 * way to these. For normal threads on kernels that know it (Linux 6.12); elsewhere nothing happens.                        */
void hive__thread_slices(int64_t slice_ns);
/* First in, first out. What it starts, threads and processes, is ordinary again. */
int hive__thread_realtime(int priority);
/* The same, if the system allows it and nobody has asked for anything else: for an ordinary thread that is not nice, in a process whose real-time
 * threads may run for as long as they like. True: so it is now.                                                            */
bool hive__thread_realtime_if_allowed(int priority);
/* There is such a limit by now. */
bool hive__thread_is_timed(void);
/* How it is scheduled, to be put back later. */
struct thread_policy {
	int policy;
	int priority;
};
struct thread_policy hive__thread_policy(void);
void hive__thread_restore_policy(struct thread_policy before);
int hive__thread_batch(void);
/* Scheduled as a thread of the program and not as one of ours, for what inherits from it: policy, slices, timer slack. */
void hive__thread_ordinary(void);
/* Blocks every signal that stands for something outside; what a fault raises stays as it is. */
void hive__thread_block_signals(void);
/* Lets this one through. */
void hive__thread_unblock_signal(int number);
/* The mask of this thread, and setting it again, there or on another one. */
void hive__thread_save_signals(sigset_t *ret_mask);
void hive__thread_restore_signals(const sigset_t *mask);
/* The kernel may delay time-outs by this much; returns what it was. Where that cannot be known (it is not positive), nothing is
 * changed, and giving it back changes nothing.                                                                             */
int64_t hive__thread_timer_slack(int64_t slack_ns);
extern __thread uint64_t hive__thread_own_number __attribute__((tls_model("initial-exec"))); /* 0: none yet */
uint64_t hive__thread_give_number(void);
/* Number of the calling thread, never 0, never given twice in this process. Its low half counts threads in the order in which
 * they first ask, so that neighbours differ in the low bits.                                                               */
static inline uint64_t hive__thread_number(void)
{
	return hive__thread_own_number ? hive__thread_own_number : hive__thread_give_number();
}
/* The system's number of the calling thread. A system call. */
uint32_t hive__thread_system_number(void);
/* May the thread with this number still exist? A system call. False is certain. */
bool hive__thread_lives(uint64_t number);
/* CPU that the caller runs on now; 0 when unknown. */
uint32_t hive__thread_cpu(void);
void hive__thread_yield(void);
/* For who waits, awake, for a thread that is about to be through: it may be kept from this very CPU. After some tries it sleeps for a moment, since one
 * with real-time priority yields to its like alone.                                                                        */
void hive__thread_give_way(uint32_t tries);
/* The lowest address of the calling thread's stack; NULL when unknown. */
char *hive__thread_stack_low(void);
/* Moves the calling thread to another of its CPUs, once, and leaves its affinity as it was. False: there is none. */
bool hive__thread_step_aside(void);
/* Moves the calling thread to this CPU, if it is one of its own, and leaves its affinity as it was. */
void hive__thread_move_to(uint32_t cpu);
