/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/core.h>

/* For tests of your code: a whole hive, any number of workers, on one thread, in virtual time, from a seed.
 *
 *     struct hive_sim_options how = { .seed = 7 };
 *     hive_sim_create(&how, &sim);
 *     struct hive_options options = { .io_workers = 4, .host = hive_sim_host(sim) };
 *     hive_create(&options, &hive); hive_start(hive);
 *     …posts, hive_sim_advance(sim, HIVE_S(10)), assertions…
 *     hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER); hive_join(hive, HIVE_FOREVER); hive_destroy(hive);
 *     hive_sim_destroy(sim);
 *
 * The seed decides which runnable worker makes the next beat, every random choice of the hive, and now and then a
 * beat without reason (a spurious wake-up). File descriptors can be used as sources; they are looked at with a
 * zero time-out before virtual time moves on. Code takes no time, unless a task says so: hive_sim_spend().        */
HIVE_BEGIN
struct hive_sim;

struct hive_sim_options {
	uint64_t seed;
	uint32_t fail_percent;     /* of allocations, from the first beat on */
	uint32_t spurious_percent; /* beats that nobody asked for; 0: 3 */
	/* hive_host.cpu_distance of the simulated machine, and its argument; NULL: all CPUs on one node */
	int (*cpu_distance)(void *cpu_arg, uint32_t a, uint32_t b);
	void *cpu_arg;
	/* What a beat takes beside its tasks, for questions of how long something takes. With it there are no beats that nobody asked for,
	 * and file descriptors are looked at in those beats only that there are. 0: no time                                       */
	int64_t beat_ns;
	uint64_t reserved[1]; /* must be zero */
};

/* Foreign thread. options NULL: seed 0. */
HIVE_CHECKED int hive_sim_create(const struct hive_sim_options *options, struct hive_sim **ret_sim);
/* Foreign thread. Put it into hive_options.host; then hive_start() makes virtual workers. One hive or several. */
const struct hive_host *hive_sim_host(struct hive_sim *sim);
/* Foreign thread. Everything that happens within the next delay_ns; time stands exactly there afterwards.
 * HIVE_FOREVER: until nothing is left to happen. Returns the number of beats made. */
int64_t hive_sim_advance(struct hive_sim *sim, int64_t delay_ns);
/* Worker thread. What runs takes so long: it is later now for this worker, which makes no other beat before that time, while others do.
 * A beat happens at its beginning as far as others can see; so let a beat have one task (local_budget, private_budget), if what they
 * steal from each other matters. -EPERM: no worker of this simulator is about anything.                                      */
int hive_sim_spend(struct hive_sim *sim, int64_t spent_ns);
/* Foreign thread. Same seed, same program: same number. */
uint64_t hive_sim_hash(const struct hive_sim *sim);
/* Foreign thread. -EBUSY: a hive still has workers in it. NULL is fine. */
int hive_sim_destroy(struct hive_sim *sim);
HIVE_END
