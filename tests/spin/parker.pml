/* SPDX-License-Identifier: MIT */
/* Protocol 6: the parker of the compute workers, and their beat around it.
 *
 * Mirrors  parker_park, parker_unpark (src/base/parker.h), futex wait and wake as the kernel does them: compare and sleep in
 * one step, wakes may come for nothing; hive__compute_beat, run_one, sleep_in_parker (src/sched/compute.c), hive__fall_asleep
 * (sleep.c), hive__kick (wake.c). The workers take one task at a time; the pool's hint is left out (stop.pml has it).
 *
 * Switches  N workers, POSTS posters, LONG (a task never ends), SPURIOUS futex returns, KICK.                           */
#ifndef N
#define N 1
#endif
#ifndef POSTS
#define POSTS 2
#endif
#define SETS 1
#define SET_OF(w) 0
#define FIRST(s) 0
#define LIMIT(s) N
#define EMPTY 0
#define WAITING 1
#define TOKEN 2

byte park[N];     /* parker.state */
bool in_futex[N]; /* the thread sleeps in the kernel */
byte pool, posted, begun;
bool kicked;

inline unpark(x) {
#ifdef BUG_WAKE_WITHOUT_TOKEN /* a signal that nobody waits for yet is lost, as with a condition variable alone */
	d_step { was = park[x] == WAITING; in_futex[x] = false }
#else
	d_step { was = park[x] == WAITING; park[x] = TOKEN }
	if
	:: d_step { was -> in_futex[x] = false; was = true }
	:: else
	fi
#endif
}
#define DELIVER(x) unpark(x)
#define LOOK(n) n = pool > 0
#include "idle.inc"

inline park_here(w) {
#ifdef BUG_TOKEN_OVERWRITTEN /* a store in place of the compare-and-swap */
	d_step { park[w] = WAITING; was = true }
#else
	d_step { was = park[w] == EMPTY; if :: was -> park[w] = WAITING :: else fi }
#endif
	if
	:: was ->
#ifdef BUG_WAIT_WITHOUT_COMPARE
		in_futex[w] = true;
#else
		d_step { in_futex[w] = park[w] == WAITING }
#endif
end_futex:
		if
		:: !in_futex[w]
#ifdef SPURIOUS
		:: atomic { in_futex[w] && !dozed -> in_futex[w] = false; dozed = true }
#endif
		fi
	:: else
	fi;
	d_step { park[w] = EMPTY; was = false }
}

proctype worker(byte w)
{
	USES_IDLE;
#ifdef SPURIOUS
	bool dozed;
#endif

beat:	get_up(w);
	if
	:: d_step { pool -> pool-- } ->
		end_search(w); /* run_one() */
#ifndef BUG_NO_HAND_ON
		if
		:: NEEDS_WAKE(0) ->
			LOOK(some);
			if
			:: some -> some = false; wake_one(0)
			:: else
			fi
		:: else
		fi;
#endif
		begun++;
#ifdef LONG
		goto end_long;
#endif
		goto beat
	:: !pool
	fi;
	/* sleep_in_parker(): hive__fall_asleep() */
	announce(w);
	if
	:: some -> some = false
	:: else -> LOOK(found)
	fi;
	if
#ifdef BUG_NO_LOOK_AFTER_FOUND /* S3 */
	:: found -> found = false; get_up(w); goto beat
#else
	:: found -> get_up(w); goto beat
#endif
	:: else
	fi;
	if
	:: COMMITS(w)
	:: else -> get_up(w); goto beat
	fi;
	park_here(w);
	goto beat;
#ifdef LONG
end_long:
	false
#endif
}

proctype poster()
{
	USES_IDLE;

	atomic { pool++; posted++ }
	wake_if_needed(0)
}

#ifdef KICK
active proctype kicker() { bool was; unpark(0); kicked = true }
#endif

init {
	byte i;

	atomic {
		for (i : 0 .. N - 1) { run worker(i) }
		for (i : 1 .. POSTS) { run poster() }
		i = 0
	}
}

#ifdef SAFETY
active proctype judge()
{
	byte i, n;

	timeout;
	d_step {
		assert(begun == POSTS && !pool);
		for (i : 0 .. N - 1) {
			assert(!owed[i] && !unseen[i] && (!asleep[i] || park[i] == WAITING));
			n = n + asleep[i]
		}
		assert(SLEEPERS(count[0]) == n && SEARCHERS(count[0]) == 0)
	}
}
#else
ltl all { <> (begun == POSTS) }
ltl first { [] (posted -> <> begun) }
#endif
