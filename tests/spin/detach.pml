/* SPDX-License-Identifier: MIT */
/* Protocol 3: a worker is detached from a hive that goes on. Its inbox is closed, private tasks run, what the
 * on_stop hook posts and what is in its queues goes to the pool, and its core is closed when no claimer can be at
 * it any more. Meanwhile others post to it by its id, claim it for the pool, steal from it. Nothing is lost,
 * nothing is done twice.
 *
 * Mirrors  hive_detach (src/sched/registry.c), hive__worker_end, close_core, sign_off (thread.c), hive__hand_over,
 * finish_private, give_outbox, give_local, give_away, hive__parting (leave.c), hive__beat (worker.c),
 * hive__fall_asleep (sleep.c), hive_post_to, hive_post, hive_post_local, hive_post_self (post.c), hive__steal_some
 * (steal.c), wake_claimed, hive__kick (wake.c), inbox.h. The pool's hint: sleep.pml. Delayed posts: timer.pml.
 * Embedded timers and the slot's next life: registry.pml.
 *
 * Switches  LETTER, POST: which posters there are; HOOK: on_stop posts to itself, to the outbox and to the local
 * queue; LONG_HOOK: and never comes back; QUEUED: the leaver has a local task from the beginning; ASLEEP: both
 * workers sleep at the start; NO_STEAL: nobody steals. */
#define N 2 /* worker 0 is the main one, worker 1 leaves */
#define SETS 1
#define SET_OF(w) 0
#define FIRST(s) 0
#define LIMIT(s) N
#define BY_ID 1 /* tasks: to the leaver, to the pool, and those of the hook */
#define ANYWHERE 2
#define TO_SELF 4
#define OUT 8
#define LOCAL 16

bool id = true, leave, gone, locked, shut;
bool core[N] = true, wake_flag[N];
#ifdef QUEUED
#define AT_START LOCAL
#else
#define AT_START 0
#endif
byte pool, inbox, queue = AT_START; /* inbox and local queue of the leaver */
byte accepted = AT_START, refused, ran;
bool detached;
#ifdef LONG_HOOK
bool rests; /* the main worker is in its core */
#endif

#define LOCK atomic { !locked -> locked = true }
#define UNLOCK locked = false
#define DELIVER(x) d_step { assert(core[x]); wake_flag[x] = true }
#ifdef NO_STEAL
#define MAY_STEAL false
#define MAY_FIND false
#else
#define MAY_FIND true
#ifdef BUG_LOOKS_AT_LEAVERS /* finds what it may not steal, and never rests */
#define MAY_STEAL !detached
#else
#define MAY_STEAL true
#endif
#endif
/* the pool; for the main worker also the leaver's queue */
#define LOOK(n) look(n)
inline look(n) { n = pool != 0; if :: !n && w == 0 && MAY_FIND -> n = queue != 0 :: else fi }
#include "idle.inc"

inline run_tasks(tasks) { d_step { assert(!(ran & tasks)); ran = ran | tasks; tasks = 0 } }
inline take_one(from) { d_step { from -> mine = from & ~(from - 1); from = from & ~mine } }

/* pool_give_many(fresh = false), hive__wake_if_needed() */
inline give_away(tasks) {
	d_step { pool = pool | tasks; tasks = 0 };
#ifndef BUG_GIVES_SILENTLY
	wake_if_needed(0)
#endif
}

inline fall_asleep(w) { /* its last look: found */
	announce(w);
	if
	:: some -> some = false
	:: else -> LOOK(found)
	fi
}

inline hand_on() { /* W3 */
	if
	:: NEEDS_WAKE(0) ->
		some = pool != 0;
		if
		:: some -> some = false; wake_one(0)
		:: else
		fi
	:: else
	fi
}

proctype main_worker(byte w)
{
	USES_IDLE;
	bool busy;
	byte mine;

#ifdef ASLEEP
	announced = true; goto end_asleep;
#endif
beat:	if
	:: busy -> goto work
	:: else
	fi;
	fall_asleep(w);
	if
	:: found -> get_up(w); goto work
	:: else
	fi;
	if
	:: COMMITS(w)
	:: else -> get_up(w); goto work
	fi;
end_asleep:
#ifdef LONG_HOOK
	rests = true;
end_resting:
	atomic { wake_flag[w] -> wake_flag[w] = false; rests = false }
#else
	atomic { wake_flag[w] -> wake_flag[w] = false }
#endif
	get_up(w);
work:	if
	:: mine -> end_search(w); run_tasks(mine); busy = true; goto beat
	:: else
	fi;
	busy = false;
	if
	:: take_one(pool) -> busy = true; end_search(w); hand_on()
	:: !pool -> /* hive__steal_some() */
		if
		:: MAY_STEAL ->
			if
			:: !searching -> search_begin(w, (detached -> 1 : 2))
			:: else
			fi;
			if
			:: searching ->
				if
				:: take_one(queue) -> busy = true; end_search(w); run_tasks(mine)
				:: !queue
				fi
			:: else
			fi
		:: !(MAY_STEAL)
		fi
	fi;
	goto beat
}

proctype leaver(byte w)
{
	USES_IDLE;
	bool busy;
	byte mine, mail, self, outbox;

#ifdef ASLEEP
	announced = true; goto end_asleep;
#endif
beat:	if
	:: busy || inbox || queue -> goto work
	:: else
	fi;
	fall_asleep(w);
	if
	:: found || inbox || leave -> get_up(w); goto work
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
	if
	:: d_step { inbox -> mail = inbox; inbox = 0 }; end_search(w); run_tasks(mail)
	:: !inbox
	fi;
#ifdef QUEUED
	if
	:: queue && !mine ->
		if
		:: take_one(queue) -> busy = true /* runs below */
		:: !queue
		:: busy = true /* other tasks have used up the budget */
		fi
	:: else
	fi;
#endif
	if
	:: mine -> end_search(w); run_tasks(mine); busy = true
	:: busy
	:: else ->
		if
		:: take_one(pool) -> busy = true; end_search(w); hand_on()
		:: !pool
		fi
	fi;
	if
	:: !leave -> goto beat
	:: leave
	fi;
	/* hive__worker_end() */
	get_up(w);
#ifndef BUG_KEEPS_ITS_CLAIM /* it was claimed for work that it will not do */
	end_search(w);
#endif
	/* hive__hand_over() */
#ifndef BUG_CLOSES_LAST
	d_step { mail = inbox; inbox = 0; shut = true };
#else
	d_step { mail = inbox; inbox = 0 };
#endif
	if
	:: mail -> run_tasks(mail)
	:: else
	fi;
#ifdef HOOK
	atomic { self = TO_SELF; outbox = OUT; accepted = accepted | TO_SELF | OUT };
	d_step { queue = LOCAL; accepted = accepted | LOCAL };
	wake_if_needed(0);
#ifdef LONG_HOOK
end_hook:
	false; /* never comes back */
#endif
#ifndef BUG_HOOK_POSTS_LAST /* private tasks are finished before the hook only */
	run_tasks(self);
#endif
	give_away(outbox);
#endif
	if
	:: mine -> give_away(mine) /* the local queue, as taken from the pool in the last beat */
	:: else
	fi;
#ifndef BUG_KEEPS_LOCAL
	do
	:: take_one(queue) -> give_away(mine)
	:: !queue -> break
	od;
#endif
#ifdef BUG_CLOSES_LAST /* what came since the last look is lost */
	shut = true;
#endif
	/* close_core() */
#ifndef BUG_CLOSES_UNDER_CLAIMER
	owed[w] == unseen[w]; /* CLAIM-2: woken == claims */
#endif
	LOCK;
	core[w] = false;
	UNLOCK;
	/* sign_off() */
	LOCK;
	gone = true;
	wake_flag[0] = true;
	UNLOCK
}

active proctype detacher()
{
	LOCK;
	id = false;
	detached = true;
	leave = true;
#ifndef BUG_DETACHES_SILENTLY
	if
	:: d_step { core[1] -> wake_flag[1] = true } /* hive__kick() */
	:: !core[1]
	fi;
#endif
	UNLOCK;
	gone
}

#ifdef LETTER
active proctype sender()
{
	USES_IDLE;

	if
	:: !id -> goto no
	:: id
	fi;
	atomic {
		if
		:: shut -> goto no
		:: else -> inbox = inbox | BY_ID; accepted = accepted | BY_ID
		fi
	}
	wake_if_asleep(1);
	goto out;
no:	refused = refused | BY_ID;
out:	skip
}
#endif
#ifdef POST
active proctype poster()
{
	USES_IDLE;

	atomic { pool = pool | ANYWHERE; accepted = accepted | ANYWHERE }
	wake_if_needed(0)
}
#endif

init {
	atomic {
		run main_worker(0); START_ASLEEP(0);
		run leaver(1); START_ASLEEP(1)
	}
}

#ifdef SAFETY
active proctype judge()
{
	timeout;
	d_step {
		assert(gone && ran == accepted && !(accepted & refused));
		assert(!pool && !inbox && !queue);
		assert(!owed[0] && !owed[1] && !unseen[0] && !unseen[1]);
		assert(count[0] == asleep[0] && !asleep[1]) /* one sleeper, no searcher, nothing left of the leaver */
	}
}
#else
ltl leaves { [] (leave -> <> gone) }
ltl letter { [] ((accepted & BY_ID) -> <> (ran & BY_ID)) }
#ifdef LONG_HOOK
ltl rest { <> [] rests } /* whatever the leaver does */
#endif
ltl queued { [] ((accepted & LOCAL) -> <> (ran & LOCAL)) }
ltl post { [] ((accepted & ANYWHERE) -> <> (ran & ANYWHERE)) }
#endif
