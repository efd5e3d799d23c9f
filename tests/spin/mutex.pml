/* SPDX-License-Identifier: MIT */
/* Protocol 9: the mutex. Free for who runs; one of those who sleep is woken to try; passed over LIMIT times, it is handed over.
 *
 * Mirrors  mutex_take, mutex_leave, mutex_take_latched (src/sync/words.h), take_or_wait, leave_list, wake_next (mutex.c). What is
 * done under the latch is one step, and so is each compare-and-swap. How one parks is wait.pml's business: here a claim of a
 * wait is one step, and its owner goes on then.
 *
 * Switches  N lockers, ROUNDS each (0: for ever), LATE (locker 0 has a deadline), GREEDY (locker 0 wants it once, the others for
 * ever).                                                                                                                      */
#ifndef N
#define N 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef LIMIT
#define LIMIT 1
#endif
#ifdef GREEDY
#define GREEDY_ONCE 1
#else
#define GREEDY_ONCE 0
#endif
#define NOBODY N
#define WAITING 1
#define WOKEN 2
#define TIMED_OUT 3

byte holder = NOBODY, inside;
bool waking;
byte phase[N];
bool handed[N];
byte passed[N];
chan list = [N] of { byte };
bool wants[N], has[N];
byte ended, late;

#define FREE (holder == NOBODY)

/* wake_next(), under the latch, the holder leaving: NOBODY has it then, or the heir. In a d_step */
inline wake_next() {
	holder = NOBODY;
	do
	:: len(list) == 0 || waking || !FREE -> break
	:: else ->
		list?x;
		if
		:: phase[x] == WAITING ->
			phase[x] = WOKEN;
#ifdef BUG_NEVER_HANDS_OVER
			waking = true
#else
			if
			:: passed[x] >= LIMIT -> handed[x] = true; holder = x
			:: else -> waking = true
			fi
#endif
		:: else ->
#ifdef BUG_WAKES_THE_LATE
			waking = true
#endif
		fi
	od;
	x = 0
}

/* one turn of take_or_wait(), into mine */
inline take_or_wait(me, woken) {
	atomic { /* under the latch */
#ifndef BUG_STAYS_WAKING
		waking = (woken -> false : waking);
#endif
		mine = FREE;
		if
		:: mine -> holder = me
		:: else ->
			phase[me] = WAITING;
#ifndef BUG_FORGETS_TO_QUEUE
			list!me;
			if /* to the front: the others go round once */
			:: woken ->
				x = len(list) - 1;
				do
				:: x > 0 -> list?y; list!y; x--
				:: else -> break
				od;
				y = 0
			:: else
			fi
#endif
		fi
	}
}

proctype locker(byte me)
{
	bool mine, woken, out;
	byte x, y, n;

begin:	skip;
	d_step { wants[me] = true; mine = FREE; if :: mine -> holder = me :: else fi } /* mutex_take() */
	do
	:: mine -> break
	:: !mine ->
		take_or_wait(me, woken);
		if
		:: mine
		:: else ->
end_waits:
			if
			:: atomic { phase[me] == WOKEN -> phase[me] = 0; mine = handed[me]; handed[me] = false }
				if
				:: mine
				:: else -> d_step { woken = true; passed[me] = (passed[me] < LIMIT -> passed[me] + 1 : LIMIT) }
				fi
#ifdef LATE
			:: atomic { me == 0 && phase[me] == WAITING -> phase[me] = TIMED_OUT };
				atomic { /* leave_list(), under the latch */
					phase[me] = 0;
					if
					:: list??[eval(me)] -> list??eval(me)
					:: else
					fi
				}
				late++;
				out = true;
				break
#endif
			fi
		fi
	od;
	if
	:: out -> goto done
	:: else
	fi;
	d_step { assert(holder == me && inside == 0); inside++; has[me] = true; wants[me] = false; woken = false; mine = false;
		passed[me] = 0 };
	d_step { inside--; has[me] = false };
	/* mutex_leave(), else under the latch */
	d_step {
		if
		:: len(list) == 0 || waking -> holder = NOBODY
		:: else -> wake_next()
		fi
	};
	n = (ROUNDS || (me == 0 && GREEDY_ONCE) -> n + 1 : 0);
	if
	:: n < ROUNDS || (!ROUNDS && n == 0) -> goto begin
	:: else
	fi;
done:	skip;
	d_step { wants[me] = false; n = 0; ended++ }
}

init {
	byte i;

	atomic {
		for (i : 0 .. N - 1) { run locker(i) }
		i = 0
	}
}

#ifdef SAFETY
active proctype judge()
{
	timeout;
	d_step { assert(ended == N && FREE && !waking && len(list) == 0 && inside == 0) }
}
#else
ltl all { <> (ended == N) }
ltl served { [] (wants[0] -> <> has[0]) }
#endif
