/* SPDX-License-Identifier: MIT */
#include "rig.h"
#include "tally.h"

/* mesh: letters that go from worker to worker, to each of the others in turn, 16 for each worker, for the throughput; then a single one, for the
 * latency of a hop. With --mesh on they go by lanes, with --mesh off by the inbox.                                            */
#define POLL_NS HIVE_US(50)
#define LETTERS 16 /* under way for each worker */
#define HOPS_MAX 20000

struct traveller {
	_Alignas(SYNC_LINE) int64_t hops; /* left */
	int32_t at;                       /* index of the worker */
	int64_t sent_ns;                  /* 0: nobody measures */
};

struct post_office {                      /* of one worker */
	_Alignas(SYNC_LINE) int32_t step; /* how far the last letter went */
};

static struct {
	struct rig rig;
	struct traveller travellers[RIG_IO_MAX * LETTERS];
	struct post_office offices[RIG_IO_MAX];
	struct stats *stats;
} mesh;

/* On the worker where the letter is. */
static void hop(void *arg)
{
	struct traveller *letter = arg;
	struct post_office *office = &mesh.offices[letter->at];
	if (letter->sent_ns && mesh.stats)
		stats_add(mesh.stats, sync_now() - letter->sent_ns);
	if (letter->hops-- == 0) {
		tally_add();
		return;
	}
	office->step = office->step + 1 < mesh.rig.io_count ? office->step + 1 : 1;
	letter->at = (letter->at + office->step) % mesh.rig.io_count;
	if (letter->sent_ns)
		letter->sent_ns = sync_now();
	int error = hive_post_to(mesh.rig.hive, mesh.rig.io[letter->at], hop, letter);
	if (error)
		tally_fail(error);
}

/* So many letters, so many hops each, measured or not. */
static int travel(int32_t letters, int64_t hops, struct stats *stats, int64_t *ret_elapsed_ns)
{
	uint64_t target = tally_total() + (uint64_t)letters;
	int64_t begin = sync_now();
	mesh.stats = stats;
	for (int32_t i = 0; i < letters; i++) {
		struct traveller *letter = &mesh.travellers[i];
		*letter = (struct traveller){ hops, i % mesh.rig.io_count, stats ? sync_now() : 0 };
		int error = hive_post_to(mesh.rig.hive, mesh.rig.io[letter->at], hop, letter);
		if (error)
			return bench_failed("hive_post_to", error);
	}
	int code = tally_wait(target, BENCH_PATIENCE_NS, POLL_NS);
	*ret_elapsed_ns = sync_now() - begin;
	return code;
}

static void put_ways(struct record *result)
{
	struct hive_worker_stats stats;
	uint64_t by_lane = 0, by_inbox = 0;
	for (int32_t i = 0; i < mesh.rig.io_count; i++)
		if (hive_worker_stats_read(mesh.rig.hive, mesh.rig.io[i], &stats) == 0)
			by_lane += stats.lane_letters, by_inbox += stats.lane_falls;
	record_metric(result, "by_lane", (double)by_lane);
	record_metric(result, "past_lane", (double)by_inbox);
}

int bench_mesh(const struct bench_params *params, struct record *result)
{
	static struct stats stats;
	int64_t elapsed_ns = 0, unused, hops = params->n / 10 < HOPS_MAX ? params->n / 10 + 1 : HOPS_MAX;
	stats_reset(&stats);
	int code = rig_open(&mesh.rig, params, params->threads < 2 ? 2 : params->threads, 0);
	if (code)
		return code;
	int32_t letters = LETTERS * mesh.rig.io_count;
	int64_t each = params->n / letters + 1;
	code = travel(letters, each / 10 + 1, NULL, &elapsed_ns);
	if (!code)
		code = travel(letters, each, NULL, &elapsed_ns);
	bench_put_rate(result, (double)(each * letters), elapsed_ns);
	put_ways(result);
	if (!code)
		code = travel(1, hops / 10 + 1, NULL, &unused);
	if (!code)
		code = travel(1, hops, &stats, &unused);
	bench_put_percentiles(result, &stats);
	bench_put_memory(result);
	return rig_close(&mesh.rig, code);
}
