/* SPDX-License-Identifier: MIT */
/* Protocol 13: a bus that is paused, flushed, resumed and stopped while messages come.
 *
 * Mirrors  hive__bus_work, take (src/bus/worker.c), hive__bus_rest, hive__bus_up (rest.c), wake_for, wait_for_room (submit.c), pause_now, pause_flushed,
 * hive_bus_resume, stop_running, wait_quiet (control.c), event_look, event_tells (event.h), parker_park (base/parker.h). The ring is a
 * count of what came and of what was taken; a message is a number. Sleepers are bits (queue/idle.h without searchers: hive__bus_wake).
 *
 * Switches  N workers, MESSAGES of one producer, DEPTH of the ring, and what the controller does: FLUSH (flush and pause), NOW (pause), then
 * resume; DRAIN or, without it, stop now; FOREVER: no stop.                                                                                 */
#ifndef N
#define N 1
#endif
#ifndef MESSAGES
#define MESSAGES 2
#endif
#ifndef DEPTH
#define DEPTH 1
#endif
#define NOWHERE 255

byte tail, head;        /* numbers: what came, what was taken */
byte begun, handled;    /* handlers that began, that have ended */
byte dropped, refused;
bool closed, hold, ending;
byte end = NOWHERE;
bool busy[N], asleep[N], token[N];
bool paused;            /* pause has returned 0, resume has not been called */
byte must;              /* what was accepted before the flush */
bool stopped, producer_done;

/* An event: one who waits at each; has the sequence changed since he looked; has somebody been told. */
bool news[2], waits[2], told[2];
#define ROOM 0
#define SETTLED 1

#ifdef BUG_TELL_ONCE /* told is never taken back */
#define LOOK(e) news[e] = false
#else
#define LOOK(e) news[e] = false; told[e] = false
#endif
inline tell(e) {
	if
	:: waits[e] ->
		d_step { was = told[e]; told[e] = true }
		if
		:: d_step { !was -> news[e] = true }
		:: else -> was = false
		fi
	:: else
	fi
}
#define WAIT(e) news[e]

#define MAY (!hold && head < tail && head < end)

/* Claim and token in one step: who is claimed waits for the token in any case. */
inline wake_each() {
	d_step {
		for (i : 0 .. N - 1) { token[i] = token[i] || asleep[i]; asleep[i] = false }
		i = 0
	}
}

proctype worker(byte w)
{
	bool was;

beat:	if
	:: ending -> goto out
	:: else
	fi;
#ifndef BUG_BUSY_LATE
	busy[w] = true;
#endif
	do
	:: hold -> break
	:: !hold ->
		if
		:: atomic { head < tail && head < end -> head++ } ->
#ifdef BUG_BUSY_LATE /* says so when it has taken */
			busy[w] = true;
#endif
			begun++;
			assert(!paused); /* no handler begins in a pause */
			tell(ROOM);
			handled++
		:: !(head < tail && head < end) -> break
		fi
	od;
	busy[w] = false;
#ifndef BUG_NOBODY_TELLS
	tell(SETTLED);
#endif
	/* rest: announce, look again */
#ifdef BUG_LOOK_THEN_ANNOUNCE
	if
	:: MAY || ending -> goto beat
	:: else
	fi;
	asleep[w] = true;
#else
	asleep[w] = true;
	if
	:: MAY || ending ->
		if
		:: d_step { asleep[w] -> asleep[w] = false } -> goto beat
		:: !asleep[w] /* claimed: the token comes */
		fi
	:: else
	fi;
#endif
end_park:
	token[w];
	token[w] = false;
	goto beat;
out:	skip
}

/* It never gives up: each message comes in, or the door is closed. */
proctype producer()
{
	byte n, i;
	bool in;

	for (n : 1 .. MESSAGES) {
		waits[ROOM] = true;
		in = false;
		do
		:: in || closed -> break
		:: !in && !closed ->
			LOOK(ROOM);
			if
			:: atomic { !closed && tail - head < DEPTH -> tail++; in = true }
			:: atomic { closed -> skip }
			:: else ->
end_room:			WAIT(ROOM)
			fi
		od;
		waits[ROOM] = false;
		if
		:: in ->
#ifndef BUG_WAKES_NOBODY
			if
			:: !hold && tail <= end -> /* else who lifts that wakes everybody */
				wake_each()
			:: else
			fi
#endif
		:: else -> refused++
		fi
	}
	producer_done = true
}

inline wait_quiet(flush) {
	waits[SETTLED] = true;
	do
	:: LOOK(SETTLED);
		quiet = !flush || head >= end;
		for (i : 0 .. N - 1) { quiet = quiet && !busy[i] }
		i = 0;
		if
		:: quiet -> break
		:: else ->
end_quiet:		WAIT(SETTLED)
		fi
	od;
	waits[SETTLED] = false; quiet = false
}

active proctype controller()
{
	byte i;
	bool was, quiet;

	atomic {
		for (i : 0 .. N - 1) { run worker(i) }
		i = 0;
		run producer()
	}
#ifdef NOW
	hold = true;
	wait_quiet(false);
	paused = true;
	paused = false;
	hold = false;
	wake_each();
#endif
#ifdef FLUSH
	must = tail;
#ifdef BUG_END_BEFORE /* what came since is not waited for: the end is older than the promise */
	end = (tail > 0 -> tail - 1 : 0);
#else
	end = tail;
#endif
	hold = false;
	wake_each();
	wait_quiet(true);
	hold = true;
	wait_quiet(false);
	paused = true;
	assert(handled >= must);
	end = NOWHERE;
	wake_each();
	paused = false;
	hold = false;
#ifndef BUG_RESUME_WAKES_NOBODY
	wake_each();
#endif
#endif
#ifndef FOREVER
	/* stop */
	closed = true;
	tell(ROOM);
#ifdef DRAIN
	end = tail;
	wake_each();
	wait_quiet(true);
	assert(handled == tail);
#endif
	hold = true;
	wait_quiet(false);
	ending = true;
	wake_each();
	d_step { for (i : 0 .. N - 1) { token[i] = true } i = 0 } /* end_threads() */
	dropped = tail - head;
	stopped = true
#else
	stopped = false
#endif
}

#ifdef SAFETY
active proctype judge()
{
	timeout;
	d_step {
#ifdef FOREVER /* nobody stops it: all is handled */
		assert(producer_done && !stopped && tail == MESSAGES && handled == MESSAGES && dropped + refused == 0 && begun == handled);
#else
		assert(stopped && producer_done);
		assert(tail + refused == MESSAGES);
		assert(handled + dropped == tail && begun == handled)
#endif
	}
}
#else
ltl stops { <> stopped }
ltl all { <> (producer_done && stopped) }
#endif
