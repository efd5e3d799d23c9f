/* SPDX-License-Identifier: MIT */
/* Protocol 2: the chain of wakes. A burst is posted while workers sleep or are about to; one post wakes one
 * sleeper, which hands the search on. LONG: a task never ends, so as many workers must be found as there are
 * tasks.
 *
 * Mirrors  hive__beat (src/sched/worker.c), hive__fall_asleep (sleep.c), hive__take_from_pool, hive__steal_some,
 * rob, may_search (steal.c), hive__end_search_now (wake.c), hive_post_many, hive_post (post.c), all of
 * queue/idle.h. Which task is which does not matter here: queues are numbers. The pool's hint is left out:
 * sleep.pml and stop.pml have it.
 *
 * Switches  N workers, BURST tasks in the first post, SINGLES more posters of one each, BATCH, LONG, KICK, ASLEEP. */
#ifndef N
#define N 2
#endif
#ifndef BURST
#define BURST 2
#endif
#ifndef SINGLES
#define SINGLES 0
#endif
#ifndef BATCH
#define BATCH 2
#endif
#define TASKS (BURST + SINGLES)
#define SETS 1
#define SET_OF(w) 0
#define FIRST(s) 0
#define LIMIT(s) N

bool wake_flag[N];
byte pool, queue[N]; /* queue[w]: the deque of w */
byte begun;

#define DELIVER(x) wake_flag[x] = true
/* The own queue (only hive__end_search_now() has more than one there), the pool, then the deques of the others */
#define LOOK(n) look(n)
#if N == 2
inline look(n) { n = queue[w] > 1 || pool > 0; if :: !n -> n = queue[1 - w] > 0 :: else fi }
#else
inline look(n) {
	n = queue[w] > 1 || pool > 0;
	if :: !n -> n = queue[(w + 1) % N] > 0 :: else fi;
	if :: !n -> n = queue[(w + 2) % N] > 0 :: else fi
}
#endif
#include "idle.inc"

inline begin() {
	end_search(w);
	begun++;
#ifdef LONG
	goto end_long
#endif
}

inline take_from_pool() {
	d_step { n = (pool < BATCH -> pool : BATCH); pool = pool - n };
	if
	:: n ->
		queue[w] = queue[w] + n;
		busy = true;
		end_search(w);
#ifndef BUG_NO_HAND_ON /* W3 */
		if
		:: NEEDS_WAKE(0) ->
			some = n > 1;
			if
			:: !some -> some = pool > 0
			:: else
			fi;
			if
			:: some -> some = false; wake_one(0)
			:: else
			fi
		:: else
		fi;
#endif
		n = 0
	:: else
	fi
}

#ifdef BUG_STEAL_LESS_THAN_HALF /* rounded down: a single task is never stolen */
#define HALF(x) ((x) / 2)
#else
#define HALF(x) (((x) + 1) / 2)
#endif
/* rob(): at most half, one compare-and-swap each; loot counts, the first is to be run, the others are queued */
inline rob(x) {
	half = HALF(queue[x]);
	do
	:: d_step { loot < half && queue[x] -> queue[x]--; loot++ };
		if
		:: loot > 1 -> queue[w]++
		:: else
		fi
	:: atomic { loot >= half || !queue[x] -> break }
	od;
	half = 0
}

inline steal_some() {
	if
	:: !searching -> search_begin(w, N)
	:: else
	fi;
	if
	:: searching ->
		rob((w + 1) % N);
#if N > 2
		if
		:: !loot -> rob((w + 2) % N)
		:: else
		fi;
#endif
		if
		:: loot ->
			busy = true;
			end_search(w);
			if
			:: loot > 1 -> wake_if_needed(0)
			:: else
			fi;
			loot = 0;
			begin()
		:: else
		fi
	:: else
	fi
}

proctype worker(byte w)
{
	USES_IDLE;
	bool busy;
	byte n, loot, half;

#ifdef ASLEEP
	announced = true; goto end_asleep;
#endif
beat:	if
	:: busy || queue[w] -> goto work
	:: else
	fi;
	announce(w);
	if
	:: some -> some = false
	:: else -> LOOK(found)
	fi;
	if
#ifdef BUG_NO_LOOK_AFTER_FOUND /* S3 */
	:: found -> found = false; get_up(w); goto work
#else
	:: found -> get_up(w); goto work
#endif
	:: else
	fi;
	if
	:: COMMITS(w)
	:: else -> get_up(w); goto work
	fi;
end_asleep:
	atomic { wake_flag[w] -> wake_flag[w] = false }
	get_up(w);
work:	busy = false;
	do
	:: d_step { queue[w] -> queue[w]--; busy = true }; begin()
	:: !queue[w] -> break
	od;
	if
	:: busy
	:: else ->
		take_from_pool();
		if
		:: busy
		:: else -> steal_some()
		fi
	fi;
	goto beat;
#ifdef LONG
end_long:
	false
#endif
}

proctype poster(byte n)
{
	USES_IDLE;

	pool = pool + n;
	wake_if_needed(0)
}

#ifdef KICK
active proctype kicker() { wake_flag[0] = true } /* up without a claim, as after an event: no searcher */
#endif

init {
	byte i;

	atomic {
		for (i : 0 .. N - 1) { run worker(i); START_ASLEEP(i) }
		if
		:: BURST > 0 -> run poster(BURST)
		:: else
		fi;
		i = 0;
		do
		:: i < SINGLES -> run poster(1); i++
		:: else -> break
		od;
		i = 0
	}
}

#ifdef SAFETY
active proctype judge()
{
	byte i, n;

	timeout;
	d_step {
		assert(begun == TASKS && !pool);
		for (i : 0 .. N - 1) { assert(!queue[i] && !owed[i] && !unseen[i]); n = n + asleep[i] }
		assert(SLEEPERS(count[0]) == n && SEARCHERS(count[0]) == 0)
	}
}
#else
ltl all { <> (begun == TASKS) }
#endif
