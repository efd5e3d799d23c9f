/* SPDX-License-Identifier: MIT */
/* The mesh: letters by a lane or, where there is no room, by the inbox; in order; to a worker that sleeps, or that leaves.
 *
 * Mirrors  mesh_reserve, mesh_commit, mesh_mark, mesh_is_empty, mesh_written, mesh_waiting, mesh_take, mesh_free, mesh_fell, mesh_return,
 * mesh_close (src/queue/mesh.h), inbox_push, inbox_take, inbox_close (queue/inbox.h), hive__send_by_lane, hive__send_parcel,
 * hive__take_letters, hive__close_letters (src/sched/mesh.c), hive__fall_asleep, hive__get_up (sleep.c), turn_core (worker.c).
 *
 * Switches  SENDERS, LETTERS of each, CAP: letters in a lane, LEAVE: the worker is told to leave.                           */
#ifndef SENDERS
#define SENDERS 1
#endif
#ifndef LETTERS
#define LETTERS 3
#endif
#ifndef CAP
#define CAP 1
#endif
#define N 1
#define SETS 1
#define SET_OF(w) 0
#define FIRST(s) 0
#define LIMIT(s) N

bool wake_flag[N];
byte cells[SENDERS * CAP];                      /* number of the letter */
byte tail[SENDERS], head[SENDERS], freed[SENDERS];
byte fell[SENDERS], returned[SENDERS];
byte written;                                   /* bit s: lane s was written to */
chan inbox = [SENDERS * LETTERS] of { byte, byte };
bool lanes_closed, inbox_closed, leave, left;
byte sent[SENDERS], arrived[SENDERS];           /* ghosts: accepted, and received, in this order */

#define DELIVER(x) wake_flag[x] = true
#define LOOK(n) n = false
#include "idle.inc"

/* hive__end_search(), where nobody else could have anything to do */
inline stop_search() {
	d_step {
		if
		:: searching -> count[0] = count[0] - SEARCHER; searching = false
		:: else
		fi
	}
}

inline arrive(s, number) { d_step { assert(number == arrived[s]); arrived[s]++ } }

/* The letters of one look at tail; each cell is free when its letter has run. */
inline read_lane(s) {
	waiting = tail[s] - head[s];
	do
	:: waiting > 0 ->
		arrive(s, cells[s * CAP + head[s] % CAP]);
		head[s]++;
		freed[s]++;
		waiting--
	:: else -> break
	od
}

/* All letters of the moment. */
inline take_inbox() {
	d_step {
		do
		:: inbox ? from, number -> chain ! from, number
		:: empty(inbox) -> break
		od;
		skip
	}
}

inline receive_chain() {
	do
	:: chain ? from, number -> arrive(from, number); returned[from]++
	:: empty(chain) -> break
	od
}

inline read_written() {
#ifdef BUG_CLEARED_LATE /* what is written between the look at tail and the clearing has no bit */
	bits = written;
#else
	d_step { bits = written; written = 0 }
#endif
	s = 0;
	do
	:: s < SENDERS ->
		if
		:: bits & (1 << s) -> read_lane(s)
		:: else
		fi;
		s++
	:: else -> break
	od;
#ifdef BUG_CLEARED_LATE
	written = written & ~bits;
#endif
	s = 0; bits = 0
}

#ifdef BUG_WORD_NOT_LOOKED_AT /* before it sleeps, it looks at the inbox alone */
#define HAS_LETTERS len(inbox) > 0
#else
#define HAS_LETTERS (len(inbox) > 0 || written)
#endif

active proctype worker()
{
	USES_IDLE;
	chan chain = [SENDERS * LETTERS] of { byte, byte };
	byte from, number, waiting, bits, s;

beat:	if
	:: len(inbox) > 0 || written || leave -> goto work
	:: else
	fi;
	announce(0);
	some = false;
	if
	:: HAS_LETTERS || leave -> get_up(0); goto work
	:: else
	fi;
	if
	:: COMMITS(0)
	:: else -> get_up(0); goto work
	fi;
end_asleep:
	atomic { wake_flag[0] -> wake_flag[0] = false }
	get_up(0);
work:	stop_search();
#ifdef BUG_LANES_FIRST /* what fell back meanwhile is younger than what the lane got meanwhile */
	read_written();
	take_inbox();
#else
	take_inbox();
	read_written();
#endif
	receive_chain();
#ifdef LEAVE
	if
	:: leave -> /* hive__close_letters() */
#ifndef BUG_LANES_STAY_OPEN
		lanes_closed = true;
#endif
		do
		:: s < SENDERS -> read_lane(s); s++
		:: else -> break
		od;
		s = 0;
		d_step {
			inbox_closed = true;
			do
			:: inbox ? from, number -> chain ! from, number
			:: empty(inbox) -> break
			od;
			skip
		}
		receive_chain();
		left = true;
		goto end
	:: else
	fi;
#endif
	goto beat;
end:	skip
}

proctype sender(byte me)
{
	USES_IDLE;
	byte i;

	for (i : 0 .. LETTERS - 1) {
		/* mesh_reserve() */
		if
#ifdef BUG_NOT_SETTLED /* there is room in the lane, and a letter in the inbox */
		:: !lanes_closed && tail[me] - freed[me] < CAP ->
#else
		:: !lanes_closed && fell[me] == returned[me] && tail[me] - freed[me] < CAP ->
#endif
			cells[me * CAP + tail[me] % CAP] = i;
#ifdef BUG_MARKED_FIRST /* the reader clears the bit, and finds nothing */
			d_step { written = written | (1 << me) }
#endif
			/* mesh_commit() */
			if
			:: d_step { !lanes_closed -> tail[me]++; sent[me]++ }
			:: else -> goto by_inbox
			fi;
#ifndef BUG_MARKED_FIRST
			/* mesh_mark(): a look, and only then a write */
			if
			:: written & (1 << me)
			:: else -> written = written | (1 << me)
			fi
#endif
		:: else ->
by_inbox:		if
			:: d_step { !inbox_closed -> inbox ! me, i; sent[me]++ }; fell[me]++
			:: else -> goto refused
			fi
		fi;
		wake_if_asleep(0)
	}
refused: skip
}

#ifdef LEAVE
/* A detach: told, and kicked. */
active proctype leaver() { leave = true; wake_flag[0] = true }
#endif

init {
	byte i;

	atomic {
		for (i : 0 .. SENDERS - 1) { run sender(i) }
		i = 0
	}
}

#ifdef SAFETY
/* When nothing moves any more: whatever was accepted has arrived; every wake was delivered and seen. */
active proctype judge()
{
	byte i;

	timeout;
	d_step {
		for (i : 0 .. SENDERS - 1) {
			assert(sent[i] == arrived[i]);
			assert(sent[i] == LETTERS || inbox_closed)
		}
		assert(!owed[0] && empty(inbox));
		assert(left == leave && (left || !unseen[0]))
	}
}
#else
ltl first { [] ((sent[0] > 0) -> <> (arrived[0] > 0)) }
ltl last { [] ((sent[SENDERS - 1] == LETTERS) -> <> (arrived[SENDERS - 1] == LETTERS)) }
ltl leaves { [] (leave -> <> left) }
#endif
