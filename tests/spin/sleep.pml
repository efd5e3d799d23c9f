/* SPDX-License-Identifier: MIT */
/* Protocol 1: going to sleep, and being woken by a post, a letter, a descriptor, a timer, a kick.
 *
 * Mirrors  hive__beat, turn_core, sleep_in_core, run_private, run_due_timers (src/sched/worker.c), hive__fall_asleep,
 * hive__get_up, hive__spin, hive__own_work, hive__work_elsewhere (sleep.c), hive_source_deliver (source.c),
 * hive__take_from_pool (steal.c), hive_post, hive_post_to (post.c), pool_give, pool_take_many, pool_is_empty (pool.h),
 * epoll_core_turn and epoll_core_wake (core/epoll.c): the wake-up descriptor is edge-triggered, hence a flag that a turn
 * takes. Stealing is off here; chain.pml has it.
 *
 * Switches  N workers, POSTS and LETTERS, FD, TIMER, KICK, SPIN, LONG_HANDLER, ASLEEP.                                       */
#ifndef N
#define N 1
#endif
#ifndef POSTS
#define POSTS 1
#endif
#ifndef LETTERS
#define LETTERS 1
#endif
#define TASKS (POSTS + LETTERS)
#define ALL ((1 << TASKS) - 1)
#define SETS 1
#define SET_OF(w) 0
#define FIRST(s) 0
#define LIMIT(s) N

bool wake_flag[N];       /* the edge of the eventfd */
bool fd;                 /* a descriptor of worker 0 can be read */
bool due, fired;         /* the timer of worker 0 */
byte lane, inbox;        /* bit t: task t is there; the inbox is that of worker 0 */
bool ready;              /* the hint of the pool */
byte posted, ran;

#define DELIVER(x) wake_flag[x] = true
#define LOOK(n) pool_is_empty(n)
inline pool_is_empty(n) {
	if
	:: atomic { lane -> n = true }; ready = true /* POOL-3 */
	:: atomic { !lane -> n = false }
	fi
}
#include "idle.inc"

#define HAS_MAIL(w) (w == 0 && inbox)
#ifdef TIMER
#define IS_DUE(w) (w == 0 && due && !fired)
#else
#define IS_DUE(w) false
#endif
#ifdef FD
#define HAS_SOURCE(w) (w == 0)
#else
#define HAS_SOURCE(w) false
#endif

inline run_tasks(set) { d_step { assert(!(ran & set)); ran = ran | set; set = 0 } }

inline take_from_pool() { /* one task: the lowest bit */
	if
	:: ready ->
		do
		:: d_step { lane -> mine = lane & ~(lane - 1); lane = lane & ~mine }; break
		:: !lane ->
			ready = false;
			if
			:: lane -> ready = true /* POOL-2: it came while the bit was cleared */
			:: !lane -> break
			fi
		od
	:: !ready
	fi
}

/* What epoll_wait brought. The handler reads the descriptor. */
inline deliver_event(w) {
	if
	:: event ->
		event = false;
#ifndef BUG_HANDLER_ANNOUNCED /* user code runs while the worker counts as asleep, or as a searcher */
		get_up(w);
		end_search(w);
#endif
		fd = false
#ifdef LONG_HANDLER
		; goto end_handler
#endif
	:: else
	fi
}

proctype worker(byte w)
{
	USES_IDLE;
	bool busy, event;
	byte mine, mail;

#ifdef ASLEEP
	announced = true; goto end_asleep;
#endif
beat:	if /* turn_core(): time_to_sleep() */
	:: busy || HAS_MAIL(w) || IS_DUE(w) -> goto no_wait
	:: else
	fi;
#ifdef SPIN
	if
	:: !searching -> search_begin(w, N)
	:: skip
	fi;
	if
	:: searching && (HAS_MAIL(w) || ready) -> goto no_wait
	:: skip
	fi;
#endif
	/* hive__fall_asleep() */
#ifdef BUG_LOOK_THEN_ANNOUNCE
	LOOK(found);
	if
	:: found || HAS_MAIL(w) -> goto no_wait
	:: else
	fi;
	announce(w);
#else
	announce(w);
#ifdef BUG_NO_RECHECK
	some = true;
#endif
	if
	:: some -> some = false
	:: else -> LOOK(found)
	fi;
#ifndef BUG_NO_RECHECK
	if
	:: found || HAS_MAIL(w) -> get_up(w); goto no_wait
	:: else
	fi;
#endif
#endif
	if
	:: COMMITS(w)
	:: else -> get_up(w); goto no_wait
	fi;
#ifdef BUG_FLAG_CLEARED_LATE /* a wake that came since it committed itself is thrown away */
	wake_flag[w] = false;
#endif
	/* sleep_in_core() */
end_asleep:
	atomic {
		(wake_flag[w] || (HAS_SOURCE(w) && fd) || IS_DUE(w)) ->
		event = HAS_SOURCE(w) && fd;
		wake_flag[w] = false
	}
	deliver_event(w);
	get_up(w);
	goto work;
no_wait: /* turn(0); without sources no system call is made, and the edge stays */
	if
	:: HAS_SOURCE(w) -> atomic { event = fd; wake_flag[w] = false }; deliver_event(w)
	:: else
	fi;
work:	busy = false;
	if
	:: d_step { HAS_MAIL(w) -> mail = inbox; inbox = 0 }; end_search(w); run_tasks(mail)
	:: else
	fi;
	if
	:: IS_DUE(w) -> end_search(w); fired = true
	:: else
	fi;
	if
	:: mine -> end_search(w); run_tasks(mine); busy = true /* the local queue, from the last beat */
	:: else ->
		take_from_pool();
		if
		:: mine ->
			busy = true;
			end_search(w);
			if
			:: NEEDS_WAKE(0) -> /* W3 */
				LOOK(some);
				if
				:: some -> some = false; wake_one(0)
				:: else
				fi
			:: else
			fi
		:: else
		fi
	fi;
	goto beat;
#ifdef LONG_HANDLER
end_handler:
	false /* it never comes back */
#endif
}

proctype poster(byte t)
{
	USES_IDLE;

	atomic { lane = lane | (1 << t); posted = posted | (1 << t) }
	ready = true; /* POOL-1 */
	wake_if_needed(0)
}

proctype sender(byte t)
{
	USES_IDLE;

	atomic { inbox = inbox | (1 << t); posted = posted | (1 << t) }
	wake_if_asleep(0)
}

#ifdef FD
active proctype network() { fd = true }
#endif
#ifdef TIMER
active proctype clock() { due = true }
#endif
#ifdef KICK
active proctype kicker() { wake_flag[0] = true } /* hive__kick(): no claim */
#endif

init {
	byte i;

	atomic {
		for (i : 0 .. N - 1) { run worker(i); START_ASLEEP(i) }
		for (i : 0 .. TASKS - 1) {
			if
			:: i < POSTS -> run poster(i)
			:: else -> run sender(i)
			fi
		}
		i = 0
	}
}

#ifdef SAFETY
/* When nothing moves any more: all done, every wake was delivered and seen, the counts have not drifted. */
active proctype judge()
{
	byte i, n;

	timeout;
	d_step {
		assert(ran == ALL && posted == ALL && !fd && due == fired);
		for (i : 0 .. N - 1) { assert(!owed[i] && !unseen[i]); n = n + asleep[i] }
		assert(SLEEPERS(count[0]) == n && SEARCHERS(count[0]) == 0)
	}
}
#else
ltl first { [] ((posted & 1) -> <> (ran & 1)) }
ltl last { [] ((posted & (1 << (TASKS - 1))) -> <> (ran & (1 << (TASKS - 1)))) }
ltl taken { [] ((posted & 1) -> <> !(lane & 1)) } /* not necessarily run: its taker may be in a handler that is long */
ltl event { [] (fd -> <> !fd) }
ltl timer { [] (due -> <> fired) }
#endif
