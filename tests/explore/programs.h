/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

struct program {
	const char *name; /* a sentence, as with tests */
	void (*run)(void *arg);
};

extern const struct program programs[]; /* ends with a name of NULL */

/* lives.c */
void a_start_races_with_everything(void *arg);
void compute_workers_come_and_go(void *arg);
void levels_lose_nothing(void *arg);
void timers_move_with_their_worker(void *arg);
void resizes_race_with_each_other(void *arg);
void posts_are_rescued_from_their_keepers(void *arg);
void deadlines_are_rescued_from_their_keepers(void *arg);

/* guests.c */
void guests_lose_no_wake(void *arg);

/* letters.c */
void letters_keep_their_order(void *arg);
void letters_find_who_comes_and_goes(void *arg);
void keyed_posts_find_who_comes_and_goes(void *arg);

/* fibers.c */
void fibers_find_their_way(void *arg);
void cancels_race_with_parking(void *arg);
void cancels_race_with_everything(void *arg);
void a_stop_races_with_fibers(void *arg);
void a_drain_waits_for_fibers(void *arg);
void fibers_move_when_their_worker_leaves(void *arg);
void block_on_waits_for_all(void *arg);

/* objects.c, meeting.c, channels.c, selects.c, flows.c */
void fibers_and_threads_take_turns(void *arg);
void conditions_wake_who_waits(void *arg);
void parties_meet_or_give_up(void *arg);
void channels_lose_nothing(void *arg);
void selects_let_one_case_happen(void *arg);
void values_flow_and_limits_hold(void *arg);

/* strands.c, graphs.c */
void strands_take_turns(void *arg);
void strands_end_with_their_hive(void *arg);
void graphs_run_in_order(void *arg);

/* tokens.c */
void tokens_end_everything_once(void *arg);

/* groups.c */
void groups_come_to_their_end(void *arg);
void a_stop_races_with_groups(void *arg);
void forks_do_not_wait_behind_a_slow_one(void *arg);

/* buses.c */
void a_stop_races_with_a_bus(void *arg);

/* sockets.c, operations.c, lent.c */
void fibers_sit_at_one_socket(void *arg);
void fibers_sit_to_send(void *arg);
void operations_end_once(void *arg);
void served_operations_end_once(void *arg);
void buffers_come_back(void *arg);
