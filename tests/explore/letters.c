/* SPDX-License-Identifier: MIT */
/* Letters from worker to worker, with a mesh whose lanes hold two: most overflow. The ledger knows their order. */
#include <errno.h>

#include "house.h"
#include "programs.h"

static bool open_mesh(int most)
{
	bool opened;

	meshed = true;
	opened = open_hive((struct range){ 2, most }, (struct range){ 0, 1 }, 0);
	meshed = false;
	return opened;
}

static void send_some(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--)
		if (!ledger_post_by(&ledger, POST_TO, 0))
			return;
}

/* Workers that sleep are sent something that sends more, to each other and to themselves. */
void letters_keep_their_order(void *arg)
{
	int posters[2];

	(void)arg;
	if (!open_mesh(4))
		return;
	ledger.letters = 3 + (int)explore_draw(6);
	if (explore_draw(2))
		explore_wait_quiet();
	for (int i = 0; i < 2; i++)
		posters[i] = explore_spawn("poster", send_some, number(1 + (intptr_t)explore_draw(3)));
	for (int i = 0; i < 2; i++)
		explore_join(posters[i]);
	check_quiet();
	end_hive();
}

static void leave_and_come(void *arg)
{
	struct hive_worker_options o = { .local_capacity = 4 };
	int r = hive_detach(ledger.hive, ledger.workers[1], explore_draw(2) ? HIVE_FOREVER : HIVE_NOWAIT);

	(void)arg;
	EXPECT(r == 0 || r == -EINPROGRESS || r == -ESHUTDOWN || r == -ESRCH);
	r = hive_attach(ledger.hive, &o, &ledger.workers[1]);
	EXPECT(r == 0 || r == -ESHUTDOWN || r == -ENOMEM || r == -EAGAIN || r == -EMFILE);
}

/* The same while one of them leaves and another takes its place, or all stop. */
void letters_find_who_comes_and_goes(void *arg)
{
	int threads[3], n = 0;

	(void)arg;
	if (!open_mesh(3))
		return;
	ledger.letters = 2 + (int)explore_draw(4);
	threads[n++] = explore_spawn("poster", send_some, number(2 + (intptr_t)explore_draw(2)));
	if (explore_draw(3))
		threads[n++] = explore_spawn("leaver", leave_and_come, NULL);
	if (explore_draw(3) == 0)
		threads[n++] = explore_spawn("stopper", stop, explore_draw(2) ? &ledger : NULL);
	for (int i = 0; i < n; i++)
		explore_join(threads[i]);
	stop(explore_draw(2) ? &ledger : NULL);
	close_hive();
}

static void post_by_key(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--)
		if (!ledger_post_by(&ledger, KEYED, 0))
			return;
}

/* Keys move when a worker leaves or comes: each post finds somebody, and none is refused but by a stop. */
void keyed_posts_find_who_comes_and_goes(void *arg)
{
	int threads[3], n = 0;

	(void)arg;
	if (!open_hive((struct range){ 2, 3 }, (struct range){ 0, 0 }, CORE_EMPTY))
		return;
	for (int i = 0; i < 2; i++)
		threads[n++] = explore_spawn("poster", post_by_key, number(2 + (intptr_t)explore_draw(4)));
	threads[n++] = explore_spawn("leaver", leave_and_come, NULL);
	for (int i = 0; i < n; i++)
		explore_join(threads[i]);
	check_quiet();
	end_hive();
}
