/* SPDX-License-Identifier: MIT */
/* Protocol 5: a delayed post on its way: to a worker's inbox, into its timers, handed over when that worker leaves, cancelled
 * by anybody with its id, fired, settled by a stop. One piece of memory, used for one post after the other (GENERATIONS).
 * Each accepted post ends in exactly one way: fired, cancelled or dropped; its memory is given back once.
 *
 * Mirrors  hive_post_after, send_to, hive__send_delayed, refuse, let_go, hive__fire_delayed, settle, hive__place_delayed,
 * hive__sweep_cancelled, cancel_here, hive_post_cancel (src/sched/after.c), delayed_claim (parcel.h), hive__unhook_timers
 * (timer.c), give_timers, hive__hand_over, hive__silence, hive__drop_queues (leave.c), inbox_push and inbox_close (inbox.h).
 * When a worker sleeps and who wakes it is sleep.pml's business: here it goes on when there is something.
 *
 * Switches  GENERATIONS, LEAVE (worker 1 is detached), STOP, CANCELLERS, CANCEL_HERE (a task of worker 1 cancels).       */
#ifndef GENERATIONS
#define GENERATIONS 2
#endif
#ifndef CANCELLERS
#define CANCELLERS 1
#endif
#define FREE 0
#define WAITING 1
#define CANCELLED 2
#define TICKET(g, s) ((g) * 4 + (s))

byte ticket, keeper;                  /* of the one delayed post */
bool inbox[2], shut[2], heap[2];      /* where it is; worker 0 is the main one */
byte timers[2], cancelled[2];         /* worker_timers(), and how many of these are dead */
bool memory_free = true, stopping, leaving, gone;
bool known[GENERATIONS + 1];          /* the post has returned its id */
byte ends[GENERATIONS + 1];           /* ghost: how often it ended, in any way */
bool fired[GENERATIONS + 1], cancel[GENERATIONS + 1], refused[GENERATIONS + 1];
bool finished;                        /* main has left */

/* delayed_claim() */
#ifdef BUG_CLAIM_BY_LOAD
#define CLAIM(g, s) ours = ticket == TICKET(g, WAITING); d_step { if :: ours -> ticket = TICKET(g, s) :: else fi }
#else
#define CLAIM(g, s) d_step { ours = ticket == TICKET(g, WAITING); if :: ours -> ticket = TICKET(g, s) :: else fi }
#endif
#define GENERATION (ticket / 4)

inline give_back() { d_step { assert(!memory_free); memory_free = true } }
inline let_go(w) {
	timers[w]--;
	ticket = TICKET(GENERATION, FREE);
	give_back()
}

/* A task begins, or is dropped: the end of this post. */
inline end_of(g) { d_step { ends[g]++; assert(ends[g] == 1); g = 0 } }

inline fire(w) { /* out of the heap */
	g = GENERATION;
#ifdef BUG_FIRES_UNASKED
	ours = true;
#else
	CLAIM(g, FREE);
#endif
	let_go(w);
	if
	:: ours -> fired[g] = true; end_of(g)
	:: else -> g = 0
	fi;
	ours = false
}

/* Stop: due ones are run as private tasks, the others dropped. */
inline settle(w) {
	g = GENERATION;
	CLAIM(g, FREE);
	if
	:: ours -> timers[w]--; end_of(g); give_back() /* due: mail, run, freed */
	:: let_go(w);
		if
		:: ours -> end_of(g)
		:: else -> g = 0
		fi
	fi;
	ours = false
}

inline place(w) {
	if
	:: silenced -> settle(w)
	:: else -> heap[w] = true
	fi
}

/* send_to(): leaves in sent whether it was accepted */
inline send_to(x) {
	keeper = x;
	timers[x]++;
	d_step { sent = !shut[x]; if :: sent -> inbox[x] = true :: else fi }
	if
	:: sent
	:: else -> timers[x]--
	fi
}

inline send_delayed() {
	if
	:: !leaving -> send_to(1)
	:: send_to(0)
	fi;
#ifndef BUG_NO_LAST_RESORT
	if
	:: !sent -> send_to(0)
	:: else
	fi
#endif
}

inline close_inbox(w) {
#ifdef BUG_CLOSES_AFTER_TAKING /* a letter between the two is lost */
	d_step { got = inbox[w]; inbox[w] = false };
	shut[w] = true;
#else
	d_step { got = inbox[w]; inbox[w] = false; shut[w] = true };
#endif
	if
	:: got -> got = false; place(w)
	:: else
	fi
}

/* hive__drop_queues() */
inline drop_queues(w) {
	silenced = true;
	if
	:: heap[w] -> heap[w] = false; settle(w)
	:: else
	fi;
	close_inbox(w)
}

inline beat(w) {
	if
	:: d_step { inbox[w] -> inbox[w] = false } -> place(w)
	:: heap[w] && !stopping -> heap[w] = false; fire(w) /* due, as it may be at any time */
	:: heap[w] && cancelled[w] ->
		cancelled[w] = 0;
		if
		:: ticket % 4 == CANCELLED -> heap[w] = false; let_go(w)
		:: else
		fi
	:: stopping /* since the look that brought us here */
	fi
}

active proctype main_worker()
{
	bool ours, sent, got, silenced;
	byte g;

end:	do
	:: !stopping && (inbox[0] || heap[0]) -> beat(0)
	:: stopping && gone -> break
	od;
	drop_queues(0);
	finished = true
}

active proctype worker()
{
	bool ours, sent, got, silenced, tried;
	byte g;

end:	do
	:: !leaving && !stopping && (inbox[1] || heap[1]) -> beat(1)
#ifdef CANCEL_HERE
	:: !tried && known[1] -> /* hive_post_cancel() in a task of its own */
		tried = true;
		if
		:: keeper == 1 ->
			CLAIM(1, CANCELLED);
			if
			:: ours ->
				d_step { cancel[1] = true; g = 1 };
				end_of(g);
				if
				:: heap[1] -> heap[1] = false; let_go(1)
				:: else -> cancelled[1]++
				fi
			:: else
			fi;
			ours = false
		:: else
		fi
#endif
	:: stopping -> drop_queues(1); break
	:: leaving && !stopping -> /* hive__hand_over(), give_timers() */
		close_inbox(1);
		if
		:: heap[1] ->
			heap[1] = false;
			timers[1]--;
#ifndef BUG_HAND_OVER_FORGETS
			send_to(0);
			if
			:: !sent -> timers[1]++; silenced = true; settle(1) /* the hive has stopped meanwhile */
			:: else
			fi
#endif
		:: else
		fi;
		break
	od;
	gone = true
}

active proctype poster()
{
	bool sent;
	byte g = 1;

	do
	:: g <= GENERATIONS ->
		d_step { memory_free -> memory_free = false };
		if
		:: stopping -> give_back(); d_step { refused[g] = true; ends[g]++ } /* hive__door() */
		:: else ->
			ticket = TICKET(g, WAITING);
			send_delayed();
			if
			:: sent -> known[g] = true
			:: else ->
				ticket = TICKET(g, FREE);
				give_back();
				d_step { assert(shut[0]); refused[g] = true; ends[g]++; assert(ends[g] == 1) }
			fi
		fi;
		g++
	:: else -> break
	od
}

/* Any thread with the id, at any time after. */
proctype canceller(byte g)
{
	bool ours;
	byte x;

end:	if
	:: known[g]
	:: refused[g] -> goto done
	fi;
	x = keeper;
#ifdef BUG_OLD_ID_CANCELS /* the generation is not compared */
	d_step { ours = ticket % 4 == WAITING; if :: ours -> ticket = TICKET(GENERATION, CANCELLED) :: else fi }
#else
	CLAIM(g, CANCELLED);
#endif
	if
	:: ours ->
		d_step { cancel[g] = true; ends[g]++; assert(ends[g] == 1) }
#ifdef BUG_CANCELLER_FREES /* it is still in somebody's timers */
		give_back();
#endif
		cancelled[x]++
	:: else
	fi;
done:	skip
}

#ifdef LEAVE
active proctype detacher() { leaving = true }
#endif
#ifdef STOP
active proctype stopper() { stopping = true }
#endif

init {
	byte i;

	atomic {
		i = 0;
		do
		:: i < CANCELLERS -> run canceller(i + 1); i++
		:: else -> break
		od;
		i = 0
	}
}

#ifdef SAFETY
active proctype judge()
{
	byte i;

	timeout;
	d_step {
		assert(memory_free && !inbox[0] && !inbox[1] && !heap[0] && !heap[1]);
		assert(timers[0] == 0 && timers[1] == 0);
		for (i : 1 .. GENERATIONS) { assert(ends[i] == 1) }
	}
}
#else
ltl ended { [] (known[1] -> <> (ends[1] == 1)) }
ltl freed { [] (!memory_free -> <> memory_free) }
#endif
