/* SPDX-License-Identifier: MIT */
/* A hive as the guest of another loop, whose thread waits for the core between steps and for nothing else: a wake that is lost is a post that never runs. */
#include <errno.h>

#include "house.h"
#include "programs.h"
#include "sched/internal.h"

static int started; /* 0: not yet; 1: it is; else the error */

static void host(void *arg)
{
	int64_t wait_ns;
	int fd, r = hive_guest_start(ledger.hive, &fd);

	(void)arg;
	started = r < 0 ? r : 1;
	if (r < 0)
		return;
	while ((r = hive_guest_step(ledger.hive, &wait_ns)) == 0)
		if (wait_ns > 0)
			explore_wait_core(hive__main(ledger.hive)->core, wait_ns);
	EXPECT(r == -ESHUTDOWN);
}

/* Others post and stop while it steps and waits. */
void guests_lose_no_wake(void *arg)
{
	int threads[3], n = 0, loop;

	(void)arg;
	started = 0;
	if (!make_hive((struct range){ 1, 2 }, (struct range){ 0, 1 }, CORE_EMPTY))
		return;
	loop = explore_spawn("host", host, NULL);
	while (started == 0)
		explore_yield();
	if (started < 0) {
		explore_join(loop);
		explore_check_always(NULL, NULL);
		EXPECT(hive_destroy(ledger.hive) == 0);
		return;
	}
	if (explore_draw(2))
		explore_wait_quiet();
	for (int i = 0; i < 2; i++)
		threads[n++] = explore_spawn("poster", post_some, number(1 + (intptr_t)explore_draw(4)));
	if (explore_draw(3) == 0)
		threads[n++] = explore_spawn("stopper", stop, explore_draw(2) ? &ledger : NULL);
	for (int i = 0; i < n; i++)
		explore_join(threads[i]);
	if (n == 2) {
		check_quiet();
		end_hive();
	} else {
		close_hive();
	}
	explore_join(loop);
}
