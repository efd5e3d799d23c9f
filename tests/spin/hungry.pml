/* SPDX-License-Identifier: MIT */
/* Protocol 12: operations that wait for a buffer. Who finds none stands in a line at the share of its worker; who returns one sends a letter
 * there, one at a time, and the letter has those of the line go on for whom there is something. The worker may leave meanwhile: its
 * operations go to another one, which has a share of its own or takes over this one; the letter comes to where the share was, or
 * anywhere. Nobody stays hungry while there is a buffer.
 *
 * Mirrors  hive__share_begin, join, find_share, part, hive__share_starve, hive__share_leave, settle, begin_letter, feed, arrive, hive_buffer_return
 * (src/io/buffers.c), buffers_take, buffers_look, buffers_return, buffers_adopt (src/base/buffers.h). What is done under the lock of the
 * share is one step, and what its owner alone sees is done on the side. There is one share, lent out at the beginning.
 *
 * Switches  BUFFERS of the share, OPS that want one, all at worker 1; LEAVE: worker 1 leaves, and its operations and the share go to
 * worker 0. Worker 2 has nothing to do with it, but may get the letter.                                                       */
#ifndef BUFFERS
#define BUFFERS 1
#endif
#ifndef OPS
#define OPS 1
#endif
#define NOBODY 3
#define NONE 0 /* where the letter is */
#define INBOX(w) (1 + (w))
#define POOL 4

byte desk = 1;       /* L of the share: whose it is */
bool wanted, mail;   /* L */
byte lent = BUFFERS, back; /* back: L; looked at by the owner without it */
byte idle;           /* O */
byte hungry;         /* O: in the line */
byte letter = NONE;
byte to_come[3];     /* operations on their way to a desk */
byte fed;
bool left;           /* worker 1 has left: what is sent there goes anywhere */

#define ARE_THERE (idle || back)

/* Under the lock: begin_letter(), into `goes`. */
inline begin_letter() {
	if
	:: wanted && !mail -> mail = true; goes = true
	:: else -> goes = false
	fi
}
inline send(w) { /* hive__guest_ready_at() */
	if
	:: goes -> d_step { assert(letter == NONE); letter = (w == 1 && left -> POOL : INBOX(w)); goes = false }
	:: else
	fi
}

inline settle(w) {
#ifdef BUG_LOOKS_FIRST /* what comes back before it is wanted stays there */
	got = ARE_THERE;
#endif
	d_step {
#ifdef BUG_LOOKS_FIRST
		has = got;
		got = false;
#else
		has = ARE_THERE;
#endif
		wanted = hungry > 0;
		if
		:: has -> has = false; begin_letter()
		:: else -> goes = false
		fi
	}
	send(w)
}

/* hive__op_work(): an operation gets one, which its user returns later, or starves. */
inline work(w) {
	d_step { /* buffers_take() */
		if
		:: !idle -> idle = back; back = 0
		:: else
		fi;
		got = idle > 0;
		if
		:: got -> idle--; lent++; fed++
		:: else -> hungry++
		fi
	}
	if
	:: got -> got = false
	:: else -> settle(w)
	fi
}

inline feed(w) {
	do
	:: hungry && ARE_THERE -> hungry--; work(w)
	:: !(hungry && ARE_THERE) -> break
	od;
	settle(w)
}

inline arrive(w) {
	d_step {
#ifndef BUG_LETTER_STAYS
		mail = false;
#endif
		home = desk == w;
		to = desk;
		if
#ifdef BUG_LETTER_GETS_LOST
		:: false
#else
		:: !home -> begin_letter()
#endif
		:: else -> goes = false
		fi
	}
	send(to);
	if
	:: home -> home = false; feed(w)
	:: else
	fi
}

proctype worker(byte w)
{
	bool goes, got, home, has;
	byte to;

end_beat:
	do
	:: d_step { letter == INBOX(w) || letter == POOL -> letter = NONE } arrive(w)
	:: to_come[w] && desk == w -> to_come[w]--; work(w)
	:: to_come[w] && desk == NOBODY -> /* join() */
		d_step { desk = w; wanted = false }
#ifdef LEAVE
	:: w == 1 -> break /* at any time */
#endif
	od;
#ifdef LEAVE
	/* its inbox is closed, and what it was about to do goes elsewhere */
	to = 0;
	d_step { left = true; to = letter == INBOX(w) }
	if
	:: to -> to = 0; letter = NONE; arrive(w)
	:: else
	fi;
	do /* hive__share_leave(), and move on */
	:: hungry ->
		d_step { hungry--; to_come[0]++ }
		if
		:: hungry
		:: !hungry -> settle(w)
		fi
	:: !hungry && to_come[w] -> d_step { to_come[0] = to_come[0] + to_come[w]; to_come[w] = 0 }
	:: !hungry && !to_come[w] -> break
	od;
	if
	:: desk == w -> d_step { desk = NOBODY; wanted = false } /* part() */
	:: else
	fi
#endif
}

/* Those who have buffers; each returns those that it has got. */
active [2] proctype user()
{
	bool goes;
	byte to;

end_user:
	do
	:: d_step { lent -> lent--; back++; begin_letter(); to = desk } send(to)
	od
}

init {
	atomic { to_come[1] = OPS; run worker(0); run worker(1); run worker(2) }
}

#ifdef SAFETY
active proctype judge()
{
	timeout;
	d_step { assert(fed == OPS && !hungry && letter == NONE && !mail && !lent && !wanted) }
}
#else
ltl all { <> (fed == OPS) }
#endif
