/* SPDX-License-Identifier: MIT */
/* Protocol 11: an operation whose worker leaves. It goes to the pool and lands at another desk, whose worker may leave, too; one that the
 * core has comes back first. Meanwhile somebody asks for its end, by a letter in the operation's own memory, whose addressee may
 * be gone; its descriptor becomes ready; and the hive stops. It ends exactly once, with a result that somebody has asked for, and is
 * at no desk that is closed.
 *
 * Mirrors  hive__ops_move, hive__ops_cancel, come_home (src/io/leave.c), ask, arrive_wish, land, land_from_afar, begin_move, go_on_elsewhere,
 * hive__op_move_on, hive__op_finish, hive__op_finish_soon, hive__op_end_here (op.c), state.h, hive__guest_ready_at, hive__guest_move,
 * hive__move_guests, hive__stop_guests (src/sched/guest.c), hive__hand_over, parting_at_once, hive__drop_queues (leave.c), end_io (thread.c).
 * Sleep and wake are sleep.pml's: here nobody sleeps while there is something to do. What the desk's thread alone sees is done on the
 * side of the next step that others see.
 *
 * Switches  N workers, of which all but the first leave; READY: its descriptor becomes ready; CANCEL: somebody asks for its end; STOP: the
 * hive stops now; NATIVE: the core does it; COLLECTED: somebody waits for it, and it is not told from a queue; AFAR: begun by
 * no worker; AGAIN: who is told of its end begins it again, once; NO_MEMORY: the pool has no room for it.                          */
#ifndef N
#define N 2
#endif
#define NONE 255
#define INBOX(w) (1 + (w)) /* where the operation's way is */
#define LOCAL(w) (11 + (w))
#define POOL 21
#define LAND 1 /* what it is */
#define BACK 2
#define WISH 3
#ifdef AGAIN
#define MOST 2
#else
#define MOST 1
#endif
#define RESULT 1
#define CANCELLED 2

#ifdef AFAR
#define FROM_AFAR true
#else
#define FROM_AFAR false
#endif
#ifdef NATIVE
#define BY_CORE true
#else
#define BY_CORE false
#endif

/* the operation: its state, */
bool under_way = true, moving = FROM_AFAR, asked, mail, over;
/* what its desk's thread has to do with it, */
byte owner = (FROM_AFAR -> NONE : N - 1); /* read by others, too */
bool linked = !FROM_AFAR, waits = !FROM_AFAR && !BY_CORE, native = !FROM_AFAR && BY_CORE;
bool told, returns; /* returns: `leaves` */
/* the guest in its memory, and how it ended */
byte way = (FROM_AFAR -> LAND : 0), at = (FROM_AFAR -> POOL : 0), done, of_result;
byte begins = NONE; /* where its user begins it again */

bool nameless[N], leave[N], shut[N], desk_left[N], gone[N], silenced[N];
bool ready, stop;

/* deliver(), on the thread of w; its user may begin again. */
inline deliver(w, r) {
	d_step {
		assert(done < MOST && under_way && (r != RESULT || ready) && (r != CANCELLED || asked || stop));
		assert(!linked && !way);
		under_way = false; moving = false; asked = false; over = false; mail = false; done++;
		begins = (done < MOST -> w : NONE)
	}
}

/* The caller has the operation's memory, and sends it. */
inline send(what, to) { d_step { assert(!way); way = what; at = to } }
inline move_away() { /* go_on_elsewhere() */
#ifdef NO_MEMORY
	send(LAND, INBOX(0))
#else
	send(LAND, POOL)
#endif
}

inline finish(w, r) {
	d_step { assert(linked && owner == w); linked = false; waits = false; of_result = r; mine = mail; over = true }
#ifdef BUG_END_TELLS_ITSELF
	mine = false;
#endif
	if
	:: !mine -> deliver(w, r)
	:: else -> mine = false /* the letter tells */
	fi
}

inline finish_soon(w, r) {
#ifdef COLLECTED
	finish(w, r)
#else
	d_step { mine = !mail; if :: mine -> moving = true; linked = false; waits = false; of_result = r :: else fi }
	if
	:: mine -> mine = false; send(BACK, LOCAL(w))
	:: else -> finish(w, r)
	fi
#endif
}

inline move_on(w) {
#ifdef BUG_MOVES_WHAT_WAS_ASKED
	d_step { mine = true; moving = true; linked = false; waits = false }
#else
	d_step {
		mine = !moving && !asked && !mail && !over;
		if :: mine -> moving = true; linked = false; waits = false :: else fi
	}
#endif
	if
	:: mine -> mine = false; move_away()
	:: else -> finish_soon(w, CANCELLED)
	fi
}

inline end_here(w) {
	assert(linked && owner == w); /* nobody else touches it */
	if
	:: native -> told = true /* the core is asked, once */
	:: else -> finish_soon(w, CANCELLED)
	fi
}

inline land(w) {
#ifdef BUG_LANDS_WHERE_ALL_HAVE_LEFT
	if
	:: false
#else
	if
	:: desk_left[w] -> move_away()
#endif
	:: else ->
		d_step { owner = w; linked = true; told = false; returns = false; mine = asked; moving = false }
		if
		:: mine || stop -> mine = false; finish_soon(w, CANCELLED)
		:: else ->
#ifdef NATIVE
			native = true
#else
			if
			:: ready -> finish_soon(w, RESULT)
			:: else -> waits = true
			fi
#endif
		fi
	fi
}

/* begin_here(), inside of what told its user */
inline begin_again(w) {
	if
	:: d_step { !stop -> begins = NONE; under_way = true; moving = true } land(w)
	:: stop -> begins = NONE /* -ESHUTDOWN */
	fi
}

inline arrive_wish(w) {
	mine = owner == w;
	d_step { mail = false; has = over }
	if
	:: has ->
		has = false; mine = false;
#ifndef BUG_LETTER_JUST_GOES
		deliver(w, of_result)
#endif
	:: else ->
#ifdef BUG_LETTER_ENDS_IT_ANYWHERE
		mine = true;
#endif
		if
		:: mine -> mine = false; end_here(w)
		:: else
		fi
	fi
}

/* hive__run_task(), or hive__drop() once nothing may begin; the caller has taken it from where it was. */
inline run_guest(w) {
	d_step { what = way; way = 0; at = 0 }
	if
	:: what == WISH -> arrive_wish(w)
	:: what == BACK -> deliver(w, of_result)
	:: what == LAND && stop -> deliver(w, CANCELLED)
	:: what == LAND && !stop -> land(w)
	fi;
	what = 0
}

/* The core, inside a turn: come_home() */
inline turn(w) {
	if
	:: ready -> has = true
	:: told -> has = false
	fi;
	native = false;
#ifdef BUG_LEAVING_CANCELS
	mine = true;
#else
	mine = asked || (told && !returns);
#endif
	if
	:: returns && !mine && !has -> move_on(w)
	:: else ->
		mine = false;
		if
		:: has -> has = false; finish(w, RESULT)
		:: else -> finish(w, CANCELLED)
		fi
	fi
}
#define HAS_IT(w) (linked && owner == w)
#define CORE_RETURNS (native && (ready || told))

inline ops_move(w) { /* hive__move_guests() */
	desk_left[w] = true;
	if
	:: HAS_IT(w) && native ->
		d_step {
			returns = true;
#ifndef BUG_CORE_IS_NOT_ASKED
			told = true
#endif
		}
	:: HAS_IT(w) && !native -> move_on(w)
	:: !HAS_IT(w)
	fi;
	do
	:: HAS_IT(w) && CORE_RETURNS -> turn(w)
	:: begins == w -> begin_again(w)
	:: !HAS_IT(w) && begins != w -> break
	od
}

/* What is private runs here, what is local goes to the pool; without room for it, it runs here. */
inline hand_over_tasks(w) {
	do
	:: at == LOCAL(w) -> run_guest(w)
	:: d_step { at == LOCAL(w) -> at = POOL }
	:: begins == w -> begin_again(w)
	:: at != LOCAL(w) && begins != w -> break
	od
}

inline close_inbox(w) { d_step { shut[w] = true; if :: at == INBOX(w) -> at = LOCAL(w) :: else fi } }

inline go(w) { /* hive__place_leave() */
	d_step { assert(!HAS_IT(w) && at != INBOX(w) && at != LOCAL(w)); gone[w] = true }
}

proctype worker(byte w)
{
	bool mine, has;
	byte what;

end_beat:
	do
	:: d_step { at == INBOX(w) -> at = LOCAL(w) }
	:: at == LOCAL(w) -> run_guest(w)
	:: begins == w -> begin_again(w)
	:: d_step { at == POOL -> at = LOCAL(w) }
	:: HAS_IT(w) && waits && ready -> finish(w, RESULT)
	:: HAS_IT(w) && CORE_RETURNS -> turn(w)
#ifdef STOP
	:: stop && !silenced[w] -> /* parting_at_once() */
		silenced[w] = true;
		if
		:: HAS_IT(w) -> end_here(w)
		:: !HAS_IT(w)
		fi;
		if
		:: w > 0 -> close_inbox(w)
		:: else
		fi
	:: silenced[w] && !under_way && begins == NONE -> goto out /* nothing holds the hive */
#endif
	:: leave[w] && !stop && begins != w -> break
	od;
	/* end_io(), which asks for the state once more */
	if
	:: stop ->
#ifndef BUG_STOP_COMES_LATE
		ops_move(w);
#endif
		close_inbox(w);
		do
		:: at == LOCAL(w) -> run_guest(w)
		:: at != LOCAL(w) -> begins = (begins == w -> NONE : begins); break /* nothing begins any more */
		od
	:: !stop -> /* hive__hand_over() */
#ifndef BUG_CLOSES_LATE
		close_inbox(w);
#endif
		hand_over_tasks(w);
		ops_move(w);
		hand_over_tasks(w);
#ifdef BUG_CLOSES_LATE
		shut[w] = true;
#endif
	fi;
out:	go(w)
}

#if N > 1
active proctype detacher()
{
	byte w = 1;

	do
	:: w == N -> break
	:: w < N && stop -> break /* -ESHUTDOWN */
	:: w < N && !stop -> nameless[w] = true; leave[w] = true; w++
	od
}
#endif

#ifdef CANCEL
/* ask(), of a thread that is no worker */
active proctype canceller()
{
	byte to;
	bool by_mail;

	d_step { /* op_state_ask() */
		if
		:: under_way && !over && !asked -> asked = true; by_mail = !moving; mail = by_mail; to = owner
		:: else
		fi
	}
	if
	:: by_mail -> /* hive__guest_ready_at() */
		d_step { assert(!way); way = WISH }
		if
		:: !nameless[to] ->
			d_step {
				if
				:: !shut[to] -> at = INBOX(to)
				:: else -> at = POOL
				fi
			}
		:: nameless[to] -> at = POOL
		fi
	:: else
	fi
}
#endif
#ifdef READY
active proctype peer() { ready = true }
#endif
#ifdef STOP
active proctype stopper() { stop = true }
#endif

init {
	byte w;

	atomic {
		for (w : 0 .. N - 1) { run worker(w) }
		w = 0
	}
}

#if defined(READY) || defined(CANCEL) || defined(STOP)
#define ENDS MOST
#else
#define ENDS 0
#endif
#ifdef SAFETY
active proctype judge()
{
	byte w;

	timeout;
	d_step {
#ifdef STOP
		assert(done == MOST || done && !under_way);
#else
		assert(done == ENDS);
#endif
		assert(!under_way || (linked && owner == 0)); /* it waits where somebody is left */
		assert(!way && !at);
		for (w : 1 .. N - 1) { assert(gone[w]) }
#ifdef STOP
		assert(gone[0])
#endif
	}
}
#else
ltl ends { <> (done == MOST) }
ltl leaves { <> gone[N - 1] }
#endif
