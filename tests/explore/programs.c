/* SPDX-License-Identifier: MIT */
/* Small worlds to be explored. Each draws its details from the seed, posts, lets others stop, detach or cancel meanwhile, and
 * compares the ledger with the report.                                                                                      */
#include "programs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "house.h"

/* Whatever is posted to sleepers runs before all sleep again. */
static void no_wake_is_lost(void *arg)
{
	static const enum door doors[] = { POST, POST_TO, COMPUTE, POST_MANY, THEN };
	enum door door = doors[explore_draw(5)];

	(void)arg;
	if (!open_hive((struct range){ 1, 3 }, (struct range){ 1, 1 }, 0))
		return;
	check_quiet();
	for (int i = 0; i < 3; i++)
		ledger_post_by(&ledger, door, 0);
	check_quiet();
	end_hive();
}

static struct {
	int wanted, there;
} meeting;

/* Holds its worker until all have come. */
static void meet(void *arg)
{
	(void)arg;
	meeting.there++;
	explore_unblock(&meeting, THREADS_MAX);
	while (meeting.there < meeting.wanted)
		explore_block(&meeting, HIVE_FOREVER);
}

static void meet_all(void *arg)
{
	(void)arg;
	for (int i = 1; i < meeting.wanted; i++)
		if (hive_post_local(meet, NULL) < 0)
			meeting.wanted--;
	meet(NULL);
}

static void post_meeting(void *arg)
{
	(void)arg;
	if (hive_post(ledger.hive, meet, NULL) < 0)
		meeting.wanted--, explore_unblock(&meeting, THREADS_MAX);
}

/* As many tasks as workers, each of which ends only when all run: nobody sleeps while a task waits behind another one. */
static void every_task_finds_a_worker(void *arg)
{
	struct hive_task tasks[4] = { { meet, NULL }, { meet, NULL }, { meet, NULL }, { meet, NULL } };
	int io = 2 + (int)explore_draw(3);
	int how = (int)explore_draw(4);
	int posters[4];

	(void)arg;
	if (!open_hive((struct range){ io, io }, (struct range){ 0, 0 }, 0))
		return;
	meeting.wanted = io;
	meeting.there = 0;
	if (explore_draw(2))
		explore_wait_quiet();
	if (how == 0 && hive_post_many(ledger.hive, tasks, (size_t)io) < 0)
		meeting.wanted = 0;
	if (how == 1 && hive_post(ledger.hive, meet_all, NULL) < 0)
		meeting.wanted = 0;
	for (int i = 0; i < io && how >= 2; i++)
		posters[i] = explore_spawn("poster", post_meeting, NULL);
	for (int i = 0; i < io && how >= 2; i++)
		explore_join(posters[i]);
	explore_wait_quiet();
	EXPECT(meeting.there >= meeting.wanted);
	stop(NULL);
	EXPECT(hive_join(ledger.hive, HIVE_FOREVER) == 0);
	explore_check_always(NULL, NULL);
	EXPECT(hive_destroy(ledger.hive) == 0);
}

/* Two posters at once, tasks that post more. */
static void posters_and_sleepers_meet(void *arg)
{
	int posters[2];

	(void)arg;
	if (!open_hive((struct range){ 1, 3 }, (struct range){ 1, 2 }, 0))
		return;
	ledger.fanout = (int)explore_draw(3);
	for (int i = 0; i < 2; i++)
		posters[i] = explore_spawn("poster", post_some, number(1 + (intptr_t)explore_draw(5)));
	for (int i = 0; i < 2; i++)
		explore_join(posters[i]);
	check_quiet();
	end_hive();
}

/* A stop in the middle of posts: each is run or dropped, or its caller was told. */
static void a_stop_races_with_posts(void *arg)
{
	int posters[2], stopper;

	(void)arg;
	if (!open_hive((struct range){ 1, 2 }, (struct range){ 0, 2 }, 0))
		return;
	ledger.fanout = (int)explore_draw(2);
	ledger.long_tasks = explore_draw(4) == 0;
	for (int i = 0; i < 2; i++)
		posters[i] = explore_spawn("poster", post_some, number(4));
	stopper = explore_spawn("stopper", stop, explore_draw(2) ? &ledger : NULL);
	for (int i = 0; i < 2; i++)
		explore_join(posters[i]);
	explore_join(stopper);
	close_hive();
}

static void detach_one(void *arg)
{
	int r;

	(void)arg;
	r = hive_detach(ledger.hive, ledger.workers[ledger.worker_count - 1],
	                explore_draw(2) ? HIVE_FOREVER : HIVE_NOWAIT);
	EXPECT(r == 0 || r == -EINPROGRESS || r == -ESHUTDOWN || r == -ESRCH);
}

static void attach_one(void *arg)
{
	struct hive_worker_options o = rings ? draw_options() : (struct hive_worker_options){ .local_capacity = 4 };
	uint32_t id;
	int r = hive_attach(ledger.hive, &o, &id);

	(void)arg;
	if (r == 0 && ledger.worker_count < 8)
		ledger.workers[ledger.worker_count++] = id;
	EXPECT(r == 0 || r == -ESHUTDOWN || r == -ENOMEM || r == -EAGAIN || r == -EMFILE);
}

static void detach_and_attach(void *arg)
{
	detach_one(arg);
	if (explore_draw(2))
		attach_one(arg);
}

/* A worker leaves while it is written to; its slot may get a new owner. */
static void a_worker_leaves_under_load(void *arg)
{
	int posters[2], leaver;

	(void)arg;
	if (!open_hive((struct range){ 2, 3 }, (struct range){ 0, 1 }, 0))
		return;
	ledger.fanout = 1 + (int)explore_draw(2);
	for (int i = 0; i < 2; i++)
		posters[i] = explore_spawn("poster", post_some, number(1 + (intptr_t)explore_draw(5)));
	leaver = explore_spawn("leaver", detach_and_attach, NULL);
	for (int i = 0; i < 2; i++)
		explore_join(posters[i]);
	explore_join(leaver);
	if (explore_draw(2))
		check_quiet();
	end_hive();
}

static void attach_some(void *arg)
{
	attach_one(arg);
	attach_one(arg);
}

/* Workers come while others post, leave and stop. */
static void workers_come_and_go(void *arg)
{
	int threads[4];

	(void)arg;
	if (!open_hive((struct range){ 2, 2 }, (struct range){ 1, 1 }, 0))
		return;
	ledger.fanout = 1;
	threads[0] = explore_spawn("poster", post_some, number(4));
	threads[1] = explore_spawn("comer", attach_some, NULL);
	threads[2] = explore_spawn("leaver", detach_and_attach, NULL);
	threads[3] = explore_spawn("stopper", stop, explore_draw(2) ? &ledger : NULL);
	for (int i = 0; i < 4; i++)
		explore_join(threads[i]);
	close_hive();
}

static void post_later(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--)
		if (!ledger_post_by(&ledger, POST_AFTER, 0))
			return;
}

static void cancel_some(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--)
		ledger_cancel(&ledger);
}

/* A delayed post is run, cancelled or dropped, whoever is faster. */
static void cancels_race_with_timers(void *arg)
{
	int threads[4], n = 0;

	(void)arg;
	if (!open_hive((struct range){ 1, 2 }, (struct range){ 0, 0 }, 0))
		return;
	threads[n++] = explore_spawn("poster", post_later, number(4));
	threads[n++] = explore_spawn("canceller", cancel_some, number(3));
	threads[n++] = explore_spawn("canceller", cancel_some, number(3));
	if (explore_draw(2) && ledger.worker_count > 1)
		threads[n++] = explore_spawn("leaver", detach_one, NULL);
	for (int i = 0; i < n; i++)
		explore_join(threads[i]);
	if (explore_draw(2))
		check_quiet();
	end_hive();
}

/* ---- a real core inside: descriptors and eventfd wake-ups beside posts ---- */

static struct {
	struct hive_source source;
	int fds[2];
	int bytes, written;
	bool started;
} pipe_end;

static void on_ready(struct hive_source *source, uint32_t events)
{
	char buffer[8];
	ssize_t n;

	(void)events;
	while ((n = read((int)source->handle, buffer, sizeof buffer)) > 0)
		pipe_end.bytes += (int)n;
}

static void start_source(void *arg)
{
	int r;

	(void)arg;
	hive_source_init(&pipe_end.source, HIVE_SOURCE_FD, pipe_end.fds[0], HIVE_EVENT_IN, on_ready, NULL);
	r = hive_source_start(&pipe_end.source);
	EXPECT(r == 0 || r == -ENOMEM);
	pipe_end.started = r == 0;
}

static void write_some(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--) {
		EXPECT(write(pipe_end.fds[1], "x", 1) == 1);
		pipe_end.written++;
		explore_fd_event();
		explore_yield();
	}
}

/* Events of descriptors and wakes come to the same sleeper. */
static void descriptors_and_posts_meet(void *arg)
{
	int threads[2];

	(void)arg;
	memset(&pipe_end, 0, sizeof pipe_end);
	if (!open_hive((struct range){ 2, 2 }, (struct range){ 1, 1 }, 1 + (int)explore_draw(2)))
		return;
	if (pipe2(pipe_end.fds, O_NONBLOCK | O_CLOEXEC) < 0)
		abort();
	EXPECT(hive_post_to(ledger.hive, ledger.workers[0], start_source, NULL) <= 0);
	explore_wait_quiet();
	threads[0] = explore_spawn("poster", post_some, number(4));
	threads[1] = explore_spawn("writer", write_some, number(3));
	for (int i = 0; i < 2; i++)
		explore_join(threads[i]);
	check_quiet();
	EXPECT(!pipe_end.started || pipe_end.bytes == pipe_end.written);
	end_hive();
	close(pipe_end.fds[0]);
	close(pipe_end.fds[1]);
}

/* The same worlds with the other local queue, the other victims, and rarer looks outside. */
static void with_rings(void (*world)(void *))
{
	rings = true;
	world(NULL);
	rings = false;
}

static void tasks_in_rings_find_a_worker(void *arg)
{
	(void)arg;
	with_rings(explore_draw(3) ? every_task_finds_a_worker : no_wake_is_lost);
}

static void rings_are_robbed_under_load(void *arg)
{
	(void)arg;
	with_rings(explore_draw(2) ? posters_and_sleepers_meet : a_stop_races_with_posts);
}

/* Two workers have more local tasks than fit, the others none. */
static void more_than_fits(void *arg)
{
	int leaver = -1;

	(void)arg;
	if (!open_hive((struct range){ 2, 4 }, (struct range){ 0, 0 }, 0))
		return;
	ledger.flood = 5 + (int)explore_draw(8);
	for (int i = 0; i < 2; i++)
		ledger_post_by(&ledger, explore_draw(2) ? POST : POST_TO, 0);
	if (explore_draw(4) == 0)
		leaver = explore_spawn("leaver", detach_and_attach, NULL);
	if (leaver >= 0)
		explore_join(leaver);
	check_quiet();
	end_hive();
}

static void full_rings_are_robbed(void *arg)
{
	(void)arg;
	with_rings(more_than_fits);
}

static void workers_with_rings_come_and_go(void *arg)
{
	(void)arg;
	with_rings(explore_draw(2) ? a_worker_leaves_under_load : workers_come_and_go);
}

const struct program programs[] = {
	{ "no_wake_is_lost", no_wake_is_lost },
	{ "every_task_finds_a_worker", every_task_finds_a_worker },
	{ "posters_and_sleepers_meet", posters_and_sleepers_meet },
	{ "a_stop_races_with_posts", a_stop_races_with_posts },
	{ "a_worker_leaves_under_load", a_worker_leaves_under_load },
	{ "workers_come_and_go", workers_come_and_go },
	{ "cancels_race_with_timers", cancels_race_with_timers },
	{ "descriptors_and_posts_meet", descriptors_and_posts_meet },
	{ "a_start_races_with_everything", a_start_races_with_everything },
	{ "compute_workers_come_and_go", compute_workers_come_and_go },
	{ "timers_move_with_their_worker", timers_move_with_their_worker },
	{ "resizes_race_with_each_other", resizes_race_with_each_other },
	{ "posts_are_rescued_from_their_keepers", posts_are_rescued_from_their_keepers },
	{ "guests_lose_no_wake", guests_lose_no_wake },
	{ "letters_keep_their_order", letters_keep_their_order },
	{ "letters_find_who_comes_and_goes", letters_find_who_comes_and_goes },
	{ "keyed_posts_find_who_comes_and_goes", keyed_posts_find_who_comes_and_goes },
	{ "deadlines_are_rescued_from_their_keepers", deadlines_are_rescued_from_their_keepers },
	{ "fibers_find_their_way", fibers_find_their_way },
	{ "cancels_race_with_parking", cancels_race_with_parking },
	{ "cancels_race_with_everything", cancels_race_with_everything },
	{ "a_stop_races_with_fibers", a_stop_races_with_fibers },
	{ "a_drain_waits_for_fibers", a_drain_waits_for_fibers },
	{ "fibers_move_when_their_worker_leaves", fibers_move_when_their_worker_leaves },
	{ "block_on_waits_for_all", block_on_waits_for_all },
	{ "tasks_in_rings_find_a_worker", tasks_in_rings_find_a_worker },
	{ "rings_are_robbed_under_load", rings_are_robbed_under_load },
	{ "full_rings_are_robbed", full_rings_are_robbed },
	{ "workers_with_rings_come_and_go", workers_with_rings_come_and_go },
	{ "fibers_and_threads_take_turns", fibers_and_threads_take_turns },
	{ "conditions_wake_who_waits", conditions_wake_who_waits },
	{ "parties_meet_or_give_up", parties_meet_or_give_up },
	{ "channels_lose_nothing", channels_lose_nothing },
	{ "selects_let_one_case_happen", selects_let_one_case_happen },
	{ "values_flow_and_limits_hold", values_flow_and_limits_hold },
	{ "strands_take_turns", strands_take_turns },
	{ "strands_end_with_their_hive", strands_end_with_their_hive },
	{ "graphs_run_in_order", graphs_run_in_order },
	{ "groups_come_to_their_end", groups_come_to_their_end },
	{ "a_stop_races_with_groups", a_stop_races_with_groups },
	{ "forks_do_not_wait_behind_a_slow_one", forks_do_not_wait_behind_a_slow_one },
	{ "fibers_sit_at_one_socket", fibers_sit_at_one_socket },
	{ "fibers_sit_to_send", fibers_sit_to_send },
	{ "operations_end_once", operations_end_once },
	{ "served_operations_end_once", served_operations_end_once },
	{ "buffers_come_back", buffers_come_back },
	{ "levels_lose_nothing", levels_lose_nothing },
	{ "tokens_end_everything_once", tokens_end_everything_once },
	{ "a_stop_races_with_a_bus", a_stop_races_with_a_bus },
	{ NULL, NULL },
};
