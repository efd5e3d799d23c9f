/* SPDX-License-Identifier: MIT */
/* Testing your own code: the real hive on one thread in virtual time: a minute of retries in microseconds, a thousand schedules
 * from a thousand seeds.                                                                                                     */
#include <rophive/hive.h>
#include <rophive/sim.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(x)                                      \
	do {                                         \
		if (!(x)) {                          \
			fprintf(stderr, "%s\n", #x); \
			exit(1);                     \
		}                                    \
	} while (0)

/* The code under test: retries every 10 s, gives up after a minute. */
struct client {
	struct hive *hive;
	int tries;
	bool gave_up;
};

static void attempt(void *arg)
{
	struct client *c = arg;

	c->gave_up = ++c->tries == 6;
	if (!c->gave_up && hive_post_after(c->hive, HIVE_S(10), attempt, c, NULL) < 0)
		c->gave_up = true;
}

static void try_schedule(uint64_t seed)
{
	struct hive_sim_options how = { .seed = seed };
	struct hive_sim *sim;
	struct client client = { 0 };

	MUST(hive_sim_create(&how, &sim) == 0);
	struct hive_options options = { .io_workers = 4, .host = hive_sim_host(sim) };
	MUST(hive_create(&options, &client.hive) == 0 && hive_start(client.hive) == 0);
	MUST(hive_post(client.hive, attempt, &client) == 0);
	hive_sim_advance(sim, HIVE_S(10) - 1);
	MUST(client.tries == 1);
	hive_sim_advance(sim, 1); /* exactly ten seconds: not early, not late */
	MUST(client.tries == 2 && !client.gave_up);
	hive_sim_advance(sim, HIVE_FOREVER);
	MUST(client.tries == 6 && client.gave_up && hive_now(client.hive) >= HIVE_S(50));
	hive_stop(client.hive, HIVE_DRAIN, HIVE_FOREVER);
	MUST(hive_join(client.hive, HIVE_FOREVER) == 0 && hive_destroy(client.hive) == 0);
	MUST(hive_sim_destroy(sim) == 0);
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 1000; seed++)
		try_schedule(seed);
	puts("a thousand schedules, each a minute long");
	return 0;
}
