/* SPDX-License-Identifier: MIT */
/* Posts by key: of all IO workers the one that ranks highest for this key has its tasks (rendezvous hashing). When a worker comes, the keys for
 * which it ranks highest move to it; when one leaves, its own keys move; all others stay where they are.                    */
#include <errno.h>

#include "base/rng.h"
#include "sched/guest.h"

#include <rophive/post.h>

enum { TRIES = 64 }; /* workers may come and go for as long as one is unlucky; the main worker stays */

/* By place, not by name: who comes in the place of another one has its keys. The key is mixed first, or neighbours would share their ranks. */
static uint64_t rank(uint64_t key, uint32_t place)
{
	return rng_mix(rng_mix(key) + place);
}

uint32_t hive_keyed_worker(const struct hive *hive, uint64_t key)
{
	return hive ? hive__guest_choose(hive, rank, key) : HIVE_WORKER_NONE;
}

int hive_post_keyed(struct hive *hive, uint64_t key, hive_fn *fn, void *arg)
{
	int r = hive && fn ? -ESRCH : -EINVAL;

	for (int tries = 0; r == -ESRCH && tries < TRIES; tries++) {
		uint32_t worker = hive__guest_choose(hive, rank, key);

		if (worker != HIVE_WORKER_NONE)
			r = hive_post_to(hive, worker, fn, arg);
	}
	return r == -ESRCH ? hive_post_to(hive, HIVE_WORKER_MAIN, fn, arg) : r;
}
