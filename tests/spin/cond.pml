/* SPDX-License-Identifier: MIT */
/* Protocol 10: the condition. Unlocking and beginning to wait are one step for whoever signals; a signal is for one who waits, not
 * for one who gave up; and everybody comes back with the mutex.
 *
 * Mirrors  hive_cond_wait, wake (src/sync/cond.c). The mutex is mutex.pml's business: here it is one word. A permit is what they wait
 * for: given under the mutex, signalled after it or under it.
 *
 * Switches  PATIENT and HURRIED waiters (these have a deadline, and hand on a signal they do not use), PERMITS, ALL (broadcast),
 * INSIDE (signals under the mutex).                                                                                       */
#ifndef PATIENT
#define PATIENT 1
#endif
#ifndef HURRIED
#define HURRIED 1
#endif
#ifndef PERMITS
#define PERMITS 1
#endif
#ifndef ALL
#define ALL false
#endif
#define N (PATIENT + HURRIED)
#define WAITING 1
#define WOKEN 2
#define TIMED_OUT 3

bool locked;
byte phase[N];
byte permits, given, used, late, ended;
chan list = [N] of { byte };

#define LOCK atomic { !locked -> locked = true }
#define UNLOCK locked = false

inline signal(all) {
	if
	:: nempty(list) ->
		atomic { /* under the latch */
			do
			:: nempty(list) ->
				list?x;
				if
				:: phase[x] == WAITING ->
					phase[x] = WOKEN;
					if
					:: all
					:: else -> break
					fi
#ifdef BUG_SPENT_ON_THE_LATE
				:: else -> break
#else
				:: else
#endif
				fi
			:: empty(list) -> break
			od;
			x = 0
		}
	:: empty(list) /* a look without the latch */
	fi
}

/* hive_cond_wait(), into in_time */
inline wait(me, hurried) {
#ifdef BUG_UNLOCKS_FIRST
	UNLOCK;
	atomic { phase[me] = WAITING; list!me };
#else
	atomic { phase[me] = WAITING; list!me };
	UNLOCK;
#endif
	if
	:: atomic { phase[me] == WOKEN -> phase[me] = 0; in_time = true }
	:: atomic { hurried && phase[me] == WAITING -> phase[me] = TIMED_OUT };
		atomic { /* under the latch */
			phase[me] = 0;
			in_time = false;
			if
			:: list??[eval(me)] -> list??eval(me)
			:: else
			fi
		}
	fi;
#ifdef BUG_COMES_BACK_WITHOUT
	if
	:: in_time -> LOCK
	:: else
	fi
#else
	LOCK
#endif
}

proctype patient(byte me)
{
	byte x;
	bool in_time;

	LOCK;
	do
	:: permits > 0 -> break
	:: else -> wait(me, false)
	od;
	assert(locked);
	d_step { permits--; used++; in_time = false };
	UNLOCK;
	ended++
}

#if HURRIED
proctype hurried(byte me)
{
	byte x;
	bool in_time;

	LOCK;
	if
	:: permits > 0
	:: else -> wait(me, true)
	fi;
	assert(locked);
	UNLOCK;
	if
	:: in_time -> signal(false) /* it had a signal, and did not use what it was for */
	:: else -> late++
	fi;
	d_step { in_time = false; ended++ }
}
#endif

proctype giver()
{
	byte x;

	LOCK;
	permits++;
#ifdef INSIDE
	given++;
	signal(ALL);
	UNLOCK
#else
	UNLOCK;
	given++;
	signal(ALL)
#endif
}

init {
	byte i;

	atomic {
		for (i : 0 .. PATIENT - 1) { run patient(i) }
#if HURRIED
		for (i : PATIENT .. N - 1) { run hurried(i) }
#endif
		for (i : 1 .. PERMITS) { run giver() }
		i = 0
	}
}

#ifdef SAFETY
active proctype judge()
{
	timeout;
	d_step { assert(!locked && given == PERMITS && used + permits == PERMITS && ended == N && len(list) == 0) }
}
#else
ltl all { <> (ended == N) }
ltl woken { [] (given == PERMITS -> <> (used == PATIENT)) }
#endif
