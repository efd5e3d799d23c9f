/* SPDX-License-Identifier: MIT */
#pragma once
/* Every parameter of the scheduler, with unit, meaning and the bench that decides it. They trade throughput against
 * responsiveness and never change a rule. Each can be set per worker (struct hive_worker_options), unless it says "fixed". */
#include <stdint.h>

/* Local queue. [tasks, power of two]  Larger: fewer spills; smaller: work spreads sooner. Bench: spawn_local, steal. */
#define TUNE_LOCAL_CAPACITY 1024

/* Local tasks per beat, a function of the queue's capacity. [tasks]  Larger: fewer looks at the system; smaller: events
 * wait less. Bench: spawn_local against mixed_ui.                                                                     */
static inline int32_t tune_local_budget(int32_t capacity)
{
	if (capacity <= 64)
		return capacity;
	return capacity <= 1024 ? 64 : 128;
}

/* Adaptive budget: local tasks in the first beat; the fewest, while events or private tasks keep coming; the most, while they do not.
 * [tasks, fixed]  Bench: flood.                                                                                            */
#define TUNE_ADAPTIVE_FIRST 64
#define TUNE_ADAPTIVE_LEAST 8
#define TUNE_ADAPTIVE_MOST 1024

/* Private tasks and timers per beat. [tasks]  What keeps a private task that re-posts itself from starving step 1; long ones end with their
 * slice. Fibers that yield are private: a beat for each 64 of them cost 8 % (docs/tuning.md). Bench: yield, flood.          */
#define TUNE_PRIVATE_BUDGET 256
#define TUNE_TIMER_BUDGET 64

/* How a worker keeps its timers. [enum hive_timers]  The wheel starts and stops them in O(1) and never fails; the heap takes memory
 * by need and always knows the next deadline exactly. The wheel's own parameters stand in queue/wheel.h, all fixed:
 *   WHEEL_SLOTS 64 [slots a level]  the bits of a word.
 *   WHEEL_SHIFT 3 [bits]  each level is 8 times as coarse as the one below, a slot at most 1/8 of a delay wide. Larger: fewer
 *     levels to look at and fewer bytes; smaller: fewer timers in one slot.
 *   WHEEL_CROWD 32, WHEEL_AHEAD 8 [timers]  from how many on a slot is dealt out ahead of its time, and how many with each look.
 *     Larger: fewer moves; smaller: shorter pauses.
 * Bench: timer and timer_cancel, with --timers.                                                                              */
#define TUNE_TIMERS HIVE_TIMERS_HEAP

/* Longest time a step goes on after its first task. [ns]  Bench: mixed_ui. */
#define TUNE_SLICE_NS 500000

/* Tasks between two looks at the clock while they are short, that is below 1/64 of the slice, and while they are tiny. So many
 * that turn out to be long make a step longer than its slice. [tasks, fixed]  Bench: post, yield. */
#define TUNE_SHORT 64
#define TUNE_SHORT_STRIDE 8
#define TUNE_TINY 1024
#define TUNE_TINY_STRIDE 16

/* For tasks that ask whether their slice is over: looks at the clock in a slice, about; questions between two looks at most.
 * [looks], [questions, fixed]  Bench: ask. */
#define TUNE_SLICE_LOOKS 16
#define TUNE_SLICE_STRIDE 256

/* Busy beats between two looks at the shared pool. [beats]  Bench: steal, mixed. */
#define TUNE_POOL_PROBE_INTERVAL 47

/* Tasks taken from the pool at once. [tasks]  Bench: post. */
#define TUNE_POOL_BATCH 16
#define TUNE_POOL_BATCH_MAX 256
/* The same of tiny tasks, while each batch is full: others may steal what is too much. No more than TUNE_POOL_PROBE_INTERVAL: each beat runs one of them at
 * least, so they are gone when the pool is looked at again, and one worker keeps the order of those who post. [tasks, fixed]  Bench: post, spawn_local. */
#define TUNE_POOL_CROWD 47

/* Batches below so many tasks are thin; after such a row of them the worker pauses so often before its next look at the pool.
 * [tasks], [batches], [pauses of the CPU]  Fixed. Bench: post against ping_hot.                                             */
#define TUNE_THIN_BATCH 4
#define TUNE_THIN_ROW 4
#define TUNE_THIN_PAUSES 48

/* Whose turn it is among the levels of the compute pool (High, Normal, Low) while several have something: a round, and again. How often
 * a letter stands in it is the level's share, 16 : 4 : 1; its length is how long a level waits at most, in tasks. Spread evenly, so that
 * no level waits for a row of another. [turns, fixed]  Test: tests/sched/priority.c, tests/sim/shares.c.                                */
#if !defined(TUNE_LEVEL_TURNS)
#define TUNE_LEVEL_TURNS "HHHHNHHHHNHHHHNHHHHNL"
#endif

/* Empty pieces of 4 KiB that a pool keeps for its next backlog instead of giving them back. [pieces, fixed] */
#define TUNE_KEEP_CHUNKS 256

/* Victims tried per theft; tasks taken from one at most. [workers], [tasks, fixed]  Bench: steal. */
#define TUNE_STEAL_ATTEMPTS 4
#define TUNE_STEAL_BATCH 16

/* Pauses before the next round of a thief that saw something and got nothing: after the first failure, and at most, both powers of
 * two. Larger: busy workers are left alone; smaller: work spreads sooner. [pauses of the CPU, fixed]  Bench: steal. */
#if !defined(TUNE_BACKOFF_MOST)
#define TUNE_BACKOFF_MOST 256
#endif
#define TUNE_BACKOFF_LEAST 4

/* After so many newest-first tasks in a row, or after a row and so much time, the oldest local task has its turn, so that two tasks
 * which keep posting each other cannot starve the rest. Often: a tree of tasks is opened at its top again and again, and all of it
 * is alive at once. A row is longer than a batch from the pool, which runs in its order. [tasks], [ns], [tasks]  [fixed; off under
 * HIVE_PRESET_ROPHIVE]  Bench: skynet_fiber.                                                                               */
#define TUNE_NEWEST_RUN 1021
#define TUNE_NEWEST_NS 2000000
#define TUNE_NEWEST_ROW 61

/* With the oldest first: after so many turns in a row of the task that was posted last, the ring has its turn. [tasks, fixed] */
#define TUNE_SLOT_RUN 3

/* Beats between two looks at the system, at letters and timers while there are local tasks. [beats]  Larger: cheaper; smaller:
 * events wait less. Bench: spawn_local against mixed_ui.                                                                     */
#define TUNE_IO_INTERVAL 1

/* Longest beat of a UI worker, and longest step of a guest: a quarter of a frame at 60 Hz, so that input and the frame that is due wait no
 * longer. [ns]  And what a UI worker takes from the pool in one beat. [tasks]  Bench: mixed_ui. */
#define TUNE_FRAME_NS 4000000
#define TUNE_UI_POOL_SHARE 1
/* A guest whose core could not send all it had looks again after so long. [ns, fixed] */
#define TUNE_GUEST_RETRY_NS 1000000

/* HIVE_PRESET_FAIO: one task a beat; beats between two looks at the system; beats between two at the pool, which then comes
 * first. A batch from the pool is half of the local queue's capacity, as far as TUNE_POOL_BATCH_MAX. [tasks], [beats], [beats] */
#define TUNE_FAIO_LOCAL_BUDGET 1
#define TUNE_FAIO_IO_INTERVAL 61
#define TUNE_FAIO_POOL_INTERVAL 61

/* Tasks that wait at a worker to which they were sent by load; more go to the pool. [tasks, power of two, fixed] */
#if !defined(TUNE_TRAY)
#define TUNE_TRAY 256
#endif

/* Letters in a lane of the mesh; more go to the inbox until these have run. [letters, power of two, fixed]  Larger: fewer go by the inbox;
 * smaller: less memory, 64 bytes a letter. Bench: post_to, mesh. And lanes in a hive, at most; who comes later has the inbox: 4096 are 64
 * workers who all write to each other, and about 17 MiB. A worker has MESH_LANES lanes to it at most (queue/mesh.h). [lanes, fixed] */
#if !defined(TUNE_MESH)
#define TUNE_MESH 64
#endif
#if !defined(TUNE_MESH_LANES)
#define TUNE_MESH_LANES 4096
#endif

/* HIVE_PRESET_VELOQ: tasks a beat. [tasks]  Local tasks have a budget of their own in each beat; so have private ones. */
#define TUNE_VELOQ_BUDGET 64

/* Posts made inside a beat that wait for its end; a full outbox is given to the pool at once. [tasks, fixed] */
#define TUNE_OUTBOX 256

/* Fibers that one turn of the core makes ready before they enter the local queue, all at once. [fibers, fixed]  Bench: echo_server. */
#define TUNE_BROUGHT 64

/* Longest spin before sleep: about twice what a wake-up of another CPU costs. [ns]  Bench: ping, ping_hot, mixed. */
#define TUNE_SPIN_NS 50000
#define TUNE_SPIN_MAX_NS 1000000000

/* Shortest time between two wake-ups for timers: a crowd of timers is served together, a lone one at once. [ns, fixed]
 * Bench: timer.                                                                                                       */
#define TUNE_TIMER_GAP_NS 50000

/* Time slice that the threads of IO workers ask of the system's scheduler: short ones are let in sooner. [ns, fixed]
 * Bench: ping, mixed.                                                                                                */
#define TUNE_IO_SLICE_NS 1000000

/* Wakes from another CPU in a row, on a machine that is full, before a worker moves to the waker's. [wakes, fixed]
 * Bench: mixed.                                                                                                   */
#define TUNE_FAR_WAKES 8

/* How much lower compute workers stand with the system's scheduler. [nice]  Bench: mixed. */
#define TUNE_COMPUTE_NICE 5
/* The same beside a worker with the manners of a UI thread: with four of them for each CPU, and frames of a millisecond, 96 % of the frames are on time
 * with 5, 99 % with 10, 99.7 % with this and the slice below. [nice]  Bench: hive-bench-ui.                                */
#define TUNE_UI_COMPUTE_NICE 19
/* And the slice that they ask for: a thread with a long one has a late deadline, and is not protected against one with a short one. 99.7 % with this in
 * seven runs of seven, 97.8 to 99.7 % with the system's own (2.8 ms), 99.0 to 99.7 % with 5 and 20 ms. [ns]  Bench: hive-bench-ui. */
#define TUNE_UI_COMPUTE_SLICE_NS 10000000
/* The slice that such a worker asks for, as TUNE_IO_SLICE_NS: the shortest that the system gives. [ns]  Bench: hive-bench-ui. */
#define TUNE_UI_SLICE_NS 100000
/* The real-time priority that it asks for, the lowest there is: before all that is ordinary, behind all that is real-time on purpose (decision 0024). [priority, fixed] */
#define TUNE_UI_REALTIME 1
/* How often it looks whether a limit on the time of real-time threads has been set meanwhile. [ns, fixed] */
#define TUNE_UI_REVIEW_NS 100000000

/* Fibers that a worker may begin without a write that all workers share. [fibers, fixed]  Bench: skynet_fiber. */
#define TUNE_HOLDS 64

/* Private tasks that a leaving worker still runs itself; the rest goes to the pool. [tasks, fixed] */
#define TUNE_LAST_PRIVATE 65536

/* Between two looks at how many CPUs there are, for hive_resize(HIVE_AUTO). [ns, fixed] */
#define TUNE_FOLLOW_NS 1000000000

/* Time in one task after which a worker counts as stuck, in debug builds that nobody tells otherwise. [ns] */
#define TUNE_STALL_NS 100000000
/* Shortest time between two looks at the workers. [ns, fixed] */
#define TUNE_WATCH_MIN_NS 1000000

/* Forks that a worker keeps; more are run in place. [forks, power of two, fixed]  Larger: deeper trees of waiting forks; smaller: 32 bytes
 * less for each. Bench: fib, skynet. */
#if !defined(TUNE_FORKS)
#define TUNE_FORKS 1024
#endif
/* How long a compute worker looks for forks before it opens what others keep to themselves: that interrupts them. [ns, fixed]  Bench: fib,
 * leaves. And when it looks once more after it fell asleep beside somebody who forks. [ns, fixed] */
#define TUNE_FORK_SPIN_NS 50000
#define TUNE_FORK_LOOK_NS 1000000
/* Stack that must be left for a task that waits to run others meanwhile; and how many of these may be inside each other where that is not known.
 * [bytes], [tasks]  fixed */
#define TUNE_HELP_STACK (256 * 1024)
#define TUNE_HELP_DEPTH 64
