/* SPDX-License-Identifier: MIT */
#include "house.h"

#include <errno.h>
#include <string.h>

#include "support/invariants.h"

struct ledger ledger;
int warnings;
bool rings, meshed;
hive_drop_fn *drop_hook;
const char *(*watched)(void);

static const char *check(void *hive)
{
	const char *wrong = watched ? watched() : NULL;

	return wrong ? wrong : invariants_always(hive);
}

static void quiet_warning(void *arg, const char *text)
{
	(void)arg, (void)text;
	warnings++;
}

static int32_t draw(struct range range)
{
	return range.least + (int32_t)explore_draw((uint32_t)(range.most - range.least + 1));
}

/* Draws come one after the other, or the compiler would decide which is which. */
struct hive_worker_options draw_options(void)
{
	struct hive_worker_options o = { .local_capacity = 4, .pool_probe_interval = 2 };

	o.pool_batch = (int32_t)explore_draw(4);
	o.spin_ns = explore_draw(2) ? HIVE_OFF : HIVE_US(1);
	o.no_outbox = explore_draw(2) == 0;
	if (!rings)
		return o;
	o.order = explore_draw(4) ? HIVE_ORDER_OLDEST : HIVE_ORDER_NEWEST;
	o.victim = (enum hive_victim)(1 + explore_draw(3));
	o.io_interval = 1 + (int32_t)explore_draw(2);
	o.local_budget = (int32_t)explore_draw(2);
	return o;
}

/* Not yet started. False: a fault was in the way, and nothing is left of it. */
bool make_hive(struct range io_range, struct range compute_range, int core)
{
	static struct hive_host host;
	static struct hive_worker_options worker;
	int32_t io = draw(io_range), compute = draw(compute_range);
	struct hive_options o = { .io_workers = io, .compute_workers = compute };
	uint32_t ids[16];
	size_t n;

	memset(&ledger, 0, sizeof ledger);
	warnings = 0;
	watched = NULL;
	host = explore_host(core);
	worker = draw_options();
	if (rings && explore_draw(2))
		o.preset = HIVE_PRESET_FAIO;
	o.placement = explore_draw(4) == 0 ? HIVE_PLACE_TWO_CHOICES : HIVE_PLACE_POOL;
	o.mesh = explore_draw(2) || meshed ? HIVE_MESH_ON : HIVE_MESH_OFF;
	o.host = &host;
	o.io = &worker;
	o.hook_arg = &ledger;
	o.on_drop = drop_hook ? drop_hook : ledger_on_drop;
	o.on_warn = quiet_warning;
	if (hive_create(&o, &ledger.hive) < 0)
		return false;
	ledger.compute_workers = compute;
	n = hive_workers(ledger.hive, ids, 16);
	for (size_t i = 0; i < n && i < (size_t)io; i++)
		ledger.workers[ledger.worker_count++] = ids[i];
	explore_check_always(check, ledger.hive);
	return true;
}

/* A running hive, or false as above. */
bool open_hive(struct range io, struct range compute, int core)
{
	if (!make_hive(io, compute, core))
		return false;
	if (hive_start(ledger.hive) == 0)
		return true;
	explore_check_always(NULL, NULL);
	EXPECT(hive_destroy(ledger.hive) == 0);
	return false;
}

void stop(void *mode)
{
	int r;

	ledger.draining = !mode;
	r = hive_stop(ledger.hive, mode ? HIVE_NOW : HIVE_DRAIN, HIVE_FOREVER);
	EXPECT(r == 0 || r == -EALREADY);
}

void close_hive(void)
{
	EXPECT(hive_join(ledger.hive, HIVE_FOREVER) == 0);
	ledger.joined = true;
	ledger_check_end(&ledger);
	explore_check_always(NULL, NULL);
	EXPECT(hive_destroy(ledger.hive) == 0);
}

void end_hive(void)
{
	stop(explore_draw(2) ? &ledger : NULL);
	close_hive();
}

void post_some(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--)
		if (!ledger_post(&ledger, false, 0))
			return;
}

/* Nobody is inside a call any more. Delayed posts get their time, every other one sees the moment before. */
void check_quiet(void)
{
	explore_wait_quiet();
	ledger_check_quiet(&ledger);
	if (explore_draw(2))
		return;
	explore_sleep(HIVE_S(2));
	explore_wait_quiet();
	ledger_check_quiet(&ledger);
}

void *number(intptr_t n)
{
	return (void *)n;
}
