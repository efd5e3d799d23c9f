/* SPDX-License-Identifier: MIT */
/* Protocol 8: one wait, for fibers and threads: begin, look again, park; against wakes, a deadline, a cancel. Around an object that
 * holds things and a list of those who want one, as a semaphore, a channel or a join are.
 *
 * Mirrors  cell_begin, cell_park, cell_claim, cell_cancel, cell_end (src/fiber/cell.h), wait_begin, wait_claim, wait_deliver,
 * wait_end (wait.c), and how acquire_slowly, serve (src/sync/semaphore.c), send_slowly, recv_slowly (channel.c) use them. What is
 * done under the latch of the object is one step: nobody else changes object or list meanwhile. A deadline passes when it likes.
 *
 * Switches  N waiters, ROUNDS waits of each, GIVES givers, LATE (waiter 0 has a deadline), CANCEL (waiter 0 is cancelled once),
 * SHIELD (its waits are not cancelled).                                                                                  */
#ifndef N
#define N 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef GIVES
#define GIVES 2
#endif
#define AWAKE 0
#define WAITING 1
#define PARKED 2
#define WOKEN 3
#define TIMED_OUT 4
#define CANCELLED 5

byte phase[N], turn[N];
bool runs[N];                   /* somebody made a parked one runnable */
bool cancelled;                 /* waiter 0, for good */
byte armed;                     /* the turn that the deadline of waiter 0 is for; 0: none */
byte rung;                      /* ghost: the turn for which the deadline ended the wait */
byte things, given, got, gave_up, ended;
chan list = [N] of { byte, byte }; /* who, turn */

/* cell_claim(): into ours, parked */
#ifdef BUG_NO_TURN
#define SAME_TURN(w, t) true
#else
#define SAME_TURN(w, t) (turn[w] == t)
#endif
inline claim(w, t, as) {
	d_step {
		ours = SAME_TURN(w, t) && (phase[w] == WAITING || phase[w] == PARKED);
		parked = ours && phase[w] == PARKED;
		if
		:: ours -> phase[w] = as
		:: else
		fi
	}
}
inline deliver(w) {
	if
	:: parked -> d_step { assert(!runs[w]); runs[w] = true; parked = false }
	:: else
	fi
}

#if GIVES
proctype giver()
{
	bool ours, parked;
	byte w, t, x;

	atomic { /* under the latch */
		given++;
		do
		:: list?w,t ->
			claim(w, t, WOKEN);
#ifdef BUG_SPENT_ON_THE_LATE
			break
#else
			if
			:: ours -> break
			:: else
			fi
#endif
		:: empty(list) -> things++; break
		od
	}
	x = w;
	deliver(x)
}
#endif

proctype waiter(byte me)
{
	bool ours, parked, has;
	byte rounds, end;

	do
	:: rounds == ROUNDS -> break
	:: rounds < ROUNDS && me == 0 && cancelled -> gave_up++; rounds++ /* refused by wait_begin() */
	:: rounds < ROUNDS && !(me == 0 && cancelled) ->
		d_step { rounds++; turn[me]++; phase[me] = WAITING }
#ifdef BUG_LOOKS_BEFORE
		d_step { has = things > 0; if :: has -> things-- :: else fi }
		atomic { if :: has :: else -> list!me,turn[me] fi }
#else
		atomic { /* under the latch */
			if
			:: things > 0 -> things--; has = true
			:: else -> list!me,turn[me]
			fi
		}
#endif
		if
		:: has -> phase[me] = AWAKE; got++; has = false
		:: else ->
#ifdef LATE
			if
			:: me == 0 -> armed = turn[me]
			:: else
			fi;
#endif
#ifdef BUG_PARKS_BLIND
			d_step { phase[me] = PARKED; parked = true }
#else
			d_step { parked = phase[me] == WAITING; if :: parked -> phase[me] = PARKED :: else fi }
#endif
			if
			:: parked ->
				parked = false;
#if defined(CANCEL) && !defined(SHIELD) && !defined(BUG_PARKED_DOES_NOT_LOOK)
				if
				:: me == 0 && cancelled -> claim(me, turn[me], CANCELLED); deliver(me)
				:: else
				fi;
#endif
end_parked:			d_step { runs[me] -> runs[me] = false }
			:: else
			fi;
			d_step { end = phase[me]; assert(end >= WOKEN && (end != TIMED_OUT || rung == turn[me])); phase[me] = AWAKE; armed = (me == 0 -> 0 : armed) }
			if
			:: end == WOKEN -> got++
			:: else ->
#ifndef BUG_STAYS_IN_THE_LIST
				atomic { /* under the latch */
					if
					:: list??[eval(me),eval(turn[me])] -> list??eval(me),eval(turn[me])
					:: else
					fi
				}
#endif
				gave_up++
			fi;
			end = 0
		fi
	od;
	ended++
}

#ifdef LATE
active proctype clock()
{
	bool ours, parked;
	byte t;

end:	do
	:: atomic { armed && armed != t -> t = armed }
		atomic { claim(0, t, TIMED_OUT); rung = (ours -> t : rung) }
		deliver(0)
	od
}
#endif

#ifdef CANCEL
active proctype canceller()
{
	bool ours, parked;
	byte t, was;

#ifdef BUG_CANCELLER_LOOKS_FIRST
	d_step { was = phase[0]; t = turn[0] }
	cancelled = true;
#else
	cancelled = true;
	d_step { was = phase[0]; t = turn[0] }
#endif
	if
#ifdef SHIELD
	:: true
#else
	:: was == WAITING || was == PARKED -> claim(0, t, CANCELLED); deliver(0)
	:: else
#endif
	fi
}
#endif

init {
	byte i;

	atomic {
		for (i : 0 .. N - 1) { run waiter(i) }
#if GIVES
		for (i : 1 .. GIVES) { run giver() }
#endif
		i = 0
	}
}

#ifdef SAFETY
active proctype judge()
{
	byte i;

	timeout;
	d_step {
		assert(given == GIVES && things + got == given); /* nothing lost, nothing twice */
		assert(len(list) + ended == N);                  /* who has not ended waits, in the list */
		assert(len(list) == 0 || things == 0);
#ifdef CANCEL
		assert(phase[0] == AWAKE || got >= ROUNDS || list??[0,1]);
#ifndef SHIELD
		assert(phase[0] == AWAKE); /* one that was cancelled does not stay */
#endif
#endif
		for (i : 0 .. N - 1) { assert(!runs[i]) }
	}
}
#else
ltl all { <> (ended == N) }
ltl first { <> (got + gave_up > 0) }
#endif
