/* SPDX-License-Identifier: MIT */
/* Protocol 4: stop. Pools are closed, then the state is set, then everybody is kicked; posters, letters and the
 * answers of compute tasks are under way meanwhile. Each accepted task is run or dropped, once; each other one is
 * refused; it ends.
 *
 * Mirrors  stop_locked, hive__finish (src/sched/run.c), hive__parting, parting_while_draining,
 * hurry_if_late, hive__drop_pool, hive__drop_queues, hive__hand_over (leave.c), end_io, sign_off (thread.c), hive__beat (worker.c),
 * hive__compute_beat, hive__run_then, hive__reply_received, hive__cancel_then (compute.c), hive_post,
 * hive_post_to, hive_post_compute_then (post.c), hive__door (internal.h), receive_task (private.c), pool_give,
 * pool_take_many, pool_is_empty, pool_close (pool.h), lane_give, lane_close (lane.h), the closing of inbox.h. A
 * kick of all is one step: it happens under the lock, and tokens stay. Timers: timer.pml.
 *
 * Switches  IO workers (0 is the main one), COMPUTE workers (0 or 1), POST, LETTER, THEN: which posters there are,
 * HOME (to whom the letter and the answer go), NOW (no draining), DEADLINE (it may pass while draining), ASLEEP. */
#ifndef IO
#define IO 1
#endif
#ifndef COMPUTE
#define COMPUTE 0
#endif
#ifndef HOME
#define HOME 0
#endif
#define N (IO + COMPUTE)
#define SETS 2
#define SET_OF(w) (w >= IO)
#define FIRST(s) (s * IO)
#define LIMIT(s) (s == 0 -> IO : N)
#define RUNNING 0
#define DRAINING 1
#define LEAVING 2
#define STOPPED 3
#ifdef NOW
#define TARGET LEAVING
#else
#define TARGET DRAINING
#endif
#define POSTED 1 /* tasks: by hive_post, by hive_post_to, by hive_post_compute_then */
#define LETTERED 2
#define REPLY 4

byte state, replies, alive = N, compute_alive = COMPUTE;
bool locked, late;
bool wake_flag[N];
byte lane[2], inbox[IO];
bool closed[2], ready[2], shut[IO]; /* shut: the inbox is closed */
byte accepted, refused, ran, dropped;

#define LOCK atomic { !locked -> locked = true }
#define UNLOCK locked = false
#define DELIVER(x) wake_flag[x] = true
inline kick_all() { d_step { wake_flag[0] = true; wake_flag[IO - 1] = true; wake_flag[N - 1] = true } }

inline look(p, n) { /* pool_is_empty() */
	if
	:: atomic { lane[p] -> n = true }; ready[p] = true
	:: atomic { !lane[p] -> n = false }
	fi
}
#define LOOK(n) look(set, n)
#include "idle.inc"

inline pool_take(p) { /* into mine */
	if
	:: ready[p] ->
		do
		:: d_step { lane[p] -> mine = lane[p] & ~(lane[p] - 1); lane[p] = lane[p] & ~mine }; break
		:: !lane[p] ->
			ready[p] = false;
			if
			:: lane[p] -> ready[p] = true
			:: !lane[p] -> break
			fi
		od
	:: !ready[p]
	fi
}

inline run_tasks(set) { d_step { assert(!((ran | dropped) & set) && state != STOPPED); ran = ran | set; set = 0 } }
inline drop(tasks) { d_step { assert(!((ran | dropped) & tasks)); dropped = dropped | tasks; tasks = 0 } }

inline reply_received() {
	d_step { replies--; some = replies == 0 }
	if
	:: some ->
		some = false;
#ifndef BUG_LAST_REPLY_IS_SILENT
		if
		:: state >= DRAINING -> LOCK; kick_all(); UNLOCK
		:: else
		fi
#endif
	:: else
	fi
}

/* hive__drop_pool() */
inline drop_pool(p) {
	do
#ifdef BUG_EMPTIES_BY_HINT /* a poster that has put its task and not yet set the bit is forgotten */
	:: pool_take(p);
		if
		:: !mine -> break
#else
	:: look(p, some);
		if
		:: !some -> break
		:: else
		fi;
		some = false;
		pool_take(p);
		if
		:: !mine
#endif
		:: mine & REPLY -> reply_received(); drop(mine)
		:: else -> drop(mine)
		fi
	od
}

/* inbox_take() or inbox_close(), then receive_task() */
inline receive(w, close) {
	d_step { mail = mail | inbox[w]; answered = (inbox[w] & REPLY) != 0; inbox[w] = 0; shut[w] = shut[w] || close }
	if
	:: answered -> answered = false; reply_received()
	:: else
	fi
}

/* The main worker's inbox is open until it leaves */
inline drop_queues(w, leaves) {
#ifdef BUG_INBOX_STAYS_OPEN
	receive(w, false);
#else
	receive(w, leaves || w != 0);
#endif
	if
	:: mail -> drop(mail)
	:: else
	fi;
	if
	:: mine -> drop(mine)
	:: else
	fi
}

/* hive__parting(), into leave. The step that reads the state is the first; parting_while_draining() in the middle */
inline should_leave(w) {
	leave = false; quiet = true;
	if
	:: state < DRAINING
	:: else ->
		is_last = w != 0 || alive == 1; /* before the look at what the others left */
		if
		:: state == DRAINING && late ->
			LOCK;
			d_step { if :: state == DRAINING -> state = LEAVING :: else fi }
			kick_all();
			UNLOCK
		:: else
		fi;
		if
		:: state == DRAINING ->
			if
			:: mail || mine || inbox[w] -> quiet = false
			:: else ->
				look(0, some);
#ifndef BUG_SLEEPS_UNQUIET /* somebody else takes what is there, and nobody tells the sleeper that it may leave now */
				found = found || some;
#endif
				quiet = !some; some = false
			fi;
			if
			:: quiet ->
				if
				:: replies > 0 ->
					if
					:: compute_alive == 0 -> drop_pool(1)
					:: else
					fi
				:: else
				fi;
				quiet = replies == 0;
				if
				:: quiet -> quiet = !inbox[w]
				:: else
				fi
			:: else
			fi
		:: else
		fi;
		if
		:: quiet ->
			if
			:: state >= LEAVING -> drop_queues(w, false); drop_pool(0)
			:: else
			fi;
#ifdef BUG_MAIN_DOES_NOT_WAIT
			leave = true
#else
			leave = is_last
#endif
		:: else
		fi
	fi;
	quiet = false; is_last = false
}

/* hive__hand_over(): what came to a worker that leaves runs, unless nothing may begin any more */
inline hand_over(w) {
	receive(w, true);
	mail = mail | mine; mine = 0;
	if
	:: mail && state < LEAVING -> run_tasks(mail)
	:: mail && state >= LEAVING -> drop(mail)
	:: !mail
	fi
}

inline sign_off(n) {
	LOCK;
	compute_alive = compute_alive - n;
	alive--;
#ifndef BUG_LEAVES_SILENTLY
	wake_flag[0] = true;
#endif
	UNLOCK
}

proctype io(byte w)
{
	USES_IDLE;
	bool busy, leave, quiet, answered, is_last;
	byte mine, mail, set;

#ifdef ASLEEP
	announced = true; goto end_asleep;
#endif
beat:	if
	:: busy || mine || mail || inbox[w] || (late && state == DRAINING) -> goto work
	:: else
	fi;
	announce(w);
	if
	:: some -> some = false
	:: else -> LOOK(found)
	fi;
	if
	:: found || inbox[w] -> get_up(w); goto work
	:: else
	fi;
	should_leave(w);
	if
	:: leave || found -> get_up(w); goto work
	:: else
	fi;
	if
	:: COMMITS(w)
	:: else -> get_up(w); goto work
	fi;
end_asleep:
	atomic { wake_flag[w] || (late && state == DRAINING) -> wake_flag[w] = false }
	get_up(w);
work:	busy = false;
	if
	:: state < LEAVING ->
		receive(w, false);
		if
		:: mail && state < LEAVING -> end_search(w); run_tasks(mail)
		:: else
		fi;
		if
		:: mine && state < LEAVING -> end_search(w); run_tasks(mine); busy = true
		:: mine && state >= LEAVING
		:: !mine ->
			pool_take(0);
			if
			:: mine ->
				busy = true;
				end_search(w);
				if
				:: NEEDS_WAKE(0) ->
					LOOK(some);
					if
					:: some -> some = false; wake_one(0)
					:: else
					fi
				:: else
				fi
			:: else
			fi
		fi
	:: else
	fi;
	should_leave(w);
	if
	:: !leave -> goto beat
	:: else
	fi;
	/* hive__worker_end() */
	get_up(w);
	end_search(w);
	if
	:: w != 0 && state < LEAVING -> hand_over(w)
	:: w == 0 || state >= LEAVING -> drop_queues(w, true)
	fi;
	if
	:: w == 0 -> /* hive__finish() */
		assert(alive == 1);
		drop_pool(0);
		drop_pool(1);
		state = STOPPED
	:: else -> sign_off(0)
	fi
}

#if COMPUTE
inline send_home(x) { /* deliver_reply() */
	d_step {
		was = false; home = !shut[x];
		if
		:: home -> inbox[x] = inbox[x] | REPLY
		:: else
		fi
	}
	if
	:: home -> wake_if_asleep(x)
	:: else
	fi
}

proctype compute(byte w)
{
	USES_IDLE;
	bool home;
	byte mine, set = 1;

beat:	get_up(w);
	if
	:: state >= LEAVING -> goto leave
	:: else
	fi;
	pool_take(1);
	if
	:: mine ->
		end_search(w);
		mine = 0;
		send_home(HOME); /* hive__run_then() */
		if
		:: !home -> send_home(0) /* the main worker stands in */
		:: else
		fi;
		if
		:: !home -> reply_received(); mine = REPLY; drop(mine)
		:: else
		fi;
		home = false;
		goto beat
	:: else
	fi;
	if
	:: state >= DRAINING ->
#ifndef BUG_COMPUTE_BELIEVES_HINT
		LOOK(some);
		if
		:: some -> some = false; goto beat
		:: else
		fi;
#endif
		goto leave
	:: else
	fi;
	announce(w);
	if
	:: some -> some = false
	:: else -> LOOK(found)
	fi;
	if
	:: found || state >= DRAINING -> get_up(w); goto beat
	:: else
	fi;
	if
	:: COMMITS(w)
	:: else -> get_up(w); goto beat
	fi;
end_asleep:
	atomic { wake_flag[w] -> wake_flag[w] = false }
	goto beat;
leave:	get_up(w);
	end_search(w);
	sign_off(1)
}
#endif

inline refuse(t) { d_step { refused = refused | t; assert(!(accepted & t)) } }

/* pool_give() with fresh, after hive__door() */
inline give(p, t) {
	d_step { was = closed[p]; if :: was :: else -> lane[p] = lane[p] | t; accepted = accepted | t fi }
	if
	:: was -> was = false; no = true
	:: else -> ready[p] = true; wake_if_needed(p)
	fi
}

#ifdef POST
active proctype poster()
{
	USES_IDLE;
	bool no;

	if
	:: state >= DRAINING -> no = true
	:: else -> give(0, POSTED)
	fi;
	if
	:: no -> refuse(POSTED)
	:: else
	fi;
}
#endif
#ifdef THEN
active proctype then_poster()
{
	USES_IDLE;
	bool no;

	if
	:: state >= DRAINING -> no = true
	:: else ->
		replies++;
		give(1, REPLY);
		if
		:: no -> reply_received()
		:: else
		fi
	fi;
	if
	:: no -> refuse(REPLY)
	:: else
	fi;
}
#endif
#ifdef LETTER
active proctype sender()
{
	USES_IDLE;
	bool no;

	if
	:: state >= DRAINING -> no = true
	:: else ->
		d_step {
			no = shut[HOME];
			if
			:: no
			:: else -> inbox[HOME] = inbox[HOME] | LETTERED; accepted = accepted | LETTERED
			fi
		}
		if
		:: no
		:: else -> wake_if_asleep(HOME)
		fi
	fi;
	if
	:: no -> refuse(LETTERED)
	:: else
	fi;
}
#endif
#ifdef DEADLINE
active proctype clock() { late = true }
#endif

active proctype stopper()
{
	LOCK;
#ifndef BUG_STATE_BEFORE_POOLS
	closed[0] = true;
	closed[1] = true;
#endif
	d_step { if :: state < TARGET -> state = TARGET :: else fi }
#ifdef BUG_STATE_BEFORE_POOLS
	closed[0] = true;
	closed[1] = true;
#endif
	kick_all();
	UNLOCK
}

init {
	byte i;

	atomic {
		for (i : 0 .. IO - 1) { run io(i); START_ASLEEP(i) }
#if COMPUTE
		run compute(IO);
#endif
		i = 0
	}
}

#ifdef POST
#define POST_TASK POSTED
#else
#define POST_TASK 0
#endif
#ifdef THEN
#define THEN_TASK REPLY
#else
#define THEN_TASK 0
#endif
#ifdef LETTER
#define LETTER_TASK LETTERED
#else
#define LETTER_TASK 0
#endif
#define TASKS (POST_TASK | THEN_TASK | LETTER_TASK)

#ifdef SAFETY
active proctype judge()
{
	timeout;
	d_step {
		assert(state == STOPPED && replies == 0 && alive == 1 && compute_alive == 0);
		assert((accepted | refused) == TASKS && !(accepted & refused));
		assert((ran | dropped) == accepted && !(ran & dropped));
		assert(!lane[0] && !lane[1] && !inbox[0] && !inbox[IO - 1])
#ifdef MUST_RUN /* while draining a task in the pool is run, not dropped */
		; assert(!(dropped & (POST_TASK | THEN_TASK)))
#endif
	}
}
#else
ltl ends { <> (state == STOPPED) }
ltl told { <> ((ran | dropped | refused) == TASKS) }
#endif
