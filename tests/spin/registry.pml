/* SPDX-License-Identifier: MIT */
/* Protocol 7: one slot of the registry, LIVES workers one after the other in it. Posters hold the id of one life and may be
 * slow: between finding the slot and pushing the letter a whole life may pass. A letter for a former life is never run by the
 * stranger who has the slot now: a task goes to the pool, an answer to the main worker. What a leaver sends to the main
 * worker (its timers, in a parcel that is part of the slot) arrives before the slot is used again.
 *
 * Mirrors  hive_attach, take_slot, renew, find_free_slot, free_slot, hive_detach, see_off, find (src/sched/registry.c),
 * hive_post_to, address (post.c), receive_task, forward, receive_one (private.c), hive__hand_over, give_timers (leave.c),
 * deliver_reply (compute.c), sign_off (thread.c), all of inbox.h. Under registry_lock only the manager works here.
 *
 * Switches  LIVES, POSTERS (poster i has the id of life 1 + i % LIVES), ANSWERS (posters that carry an answer), TIMERS.     */
#ifndef LIVES
#define LIVES 2
#endif
#ifndef POSTERS
#define POSTERS 2
#endif
#ifndef ANSWERS
#define ANSWERS 0
#endif
#define ALL ((1 << POSTERS) - 1)
#define LIFE_OF(t) (1 + (t) % LIVES)
#ifdef BUG_NO_GENERATIONS
#define ID(life) 1
#else
#define ID(life) (life)
#endif

byte id;                       /* by which the slot can be found; 0: it cannot */
byte newest;                   /* the last life whose id anybody knows */
byte inbox, pool, main_inbox;  /* bit t: letter t */
bool shut = true, leave, gone, main_parcel, adopting;
byte farewell;                 /* whose timers are in the parcel */
byte accepted, refused, ran;
byte adopted;                  /* bit l: the timers of life l */
bool all_lived;                     /* the manager's */

inline begin(t) { d_step { assert(!(ran & (1 << t)) && (accepted & (1 << t))); ran = ran | (1 << t); t = 0 } }
#define IS_ANSWER(t) (t < ANSWERS)

/* What a worker of life `life` does with the letters that it took. */
inline receive() {
	t = 0;
	do
	:: mail & (1 << t) ->
		mail = mail & ~(1 << t);
		if
#ifndef BUG_RUNS_ANY_LETTER
		:: ID(LIFE_OF(t)) != ID(life) && IS_ANSWER(t) -> main_inbox = main_inbox | (1 << t)
		:: ID(LIFE_OF(t)) != ID(life) && !IS_ANSWER(t) -> pool = pool | (1 << t)
		:: ID(LIFE_OF(t)) == ID(life) ->
#else
		:: true ->
#endif
			assert(LIFE_OF(t) == life); /* never a stranger */
			begin(t)
		fi;
		t = 0
	:: !(mail & (1 << t)) && mail -> t++
	:: !mail -> break
	od;
	t = 0
}

proctype worker(byte life)
{
	byte mail, t;

	do
	:: atomic { inbox -> mail = inbox; inbox = 0 }; receive()
	:: leave -> break
	od;
#ifdef BUG_CLOSES_AFTER_TAKING
	atomic { mail = inbox; inbox = 0 };
	shut = true;
#else
	atomic { mail = inbox; inbox = 0; shut = true }; /* inbox_close() */
#endif
	receive();
#ifdef TIMERS
	adopting = true;
	farewell = life;
	main_parcel = true;
#endif
	gone = true
}

active proctype main_worker()
{
	byte mail, t;

end:	do
	:: atomic { pool -> mail = pool; pool = 0 };
		goto run_them
	:: atomic { main_inbox -> mail = main_inbox; main_inbox = 0 };
run_them:	do
		:: mail & (1 << t) -> mail = mail & ~(1 << t); begin(t)
		:: !(mail & (1 << t)) && mail -> t++
		:: !mail -> t = 0; break
		od
#ifdef TIMERS
	:: atomic { main_parcel -> main_parcel = false };
		d_step { assert(!(adopted & (1 << farewell))); adopted = adopted | (1 << farewell) };
		adopting = false /* ADOPT-1 */
#endif
	od
}

active proctype manager()
{
	byte life = 1;

	do
	:: life <= LIVES ->
		/* hive_attach(): find_free_slot(), renew(), inbox_open() */
#ifndef BUG_REUSES_WHILE_ADOPTING
		!adopting; /* ADOPT-2; else another slot would be taken */
#endif
		leave = false;
		gone = false;
		shut = false;
		run worker(life);
		d_step { id = ID(life); newest = life };
		/* hive_detach(), see_off(), free_slot() */
		id = 0;
		leave = true;
#ifndef BUG_REUSES_BEFORE_GONE
		gone;
#endif
		life++
	:: else -> break
	od;
	all_lived = true
}

/* hive_post_to(), or the way home of an answer, which does not look for the id: it has the slot. */
proctype poster(byte t)
{
	newest >= LIFE_OF(t);
	if
	:: !IS_ANSWER(t) && id != ID(LIFE_OF(t)) -> goto no
	:: !IS_ANSWER(t) && id == ID(LIFE_OF(t))
	:: IS_ANSWER(t)
	fi;
	d_step {
		if
#ifndef BUG_PUSHES_INTO_CLOSED
		:: shut
		:: else -> inbox = inbox | (1 << t); accepted = accepted | (1 << t)
#else
		:: true -> inbox = inbox | (1 << t); accepted = accepted | (1 << t)
#endif
		fi
	}
	if
	:: accepted & (1 << t) -> goto out
	:: else
	fi;
	if
	:: IS_ANSWER(t) -> /* the main worker stands in */
		d_step { main_inbox = main_inbox | (1 << t); accepted = accepted | (1 << t) };
		goto out
	:: else
	fi;
no:	refused = refused | (1 << t);
out:	skip
}

init {
	byte i;

	atomic {
		for (i : 0 .. POSTERS - 1) { run poster(i) }
		i = 0
	}
}

#ifdef SAFETY
active proctype judge()
{
	timeout;
	d_step {
		assert(all_lived && ran == accepted && (accepted | refused) == ALL && !(accepted & refused));
		assert(!inbox && !pool && !main_inbox);
#ifdef TIMERS
		assert(!adopting && adopted == (1 << (LIVES + 1)) - 2)
#endif
	}
}
#else
ltl first { [] ((accepted & 1) -> <> (ran & 1)) }
ltl told { <> ((ran | refused) == ALL) }
#endif
