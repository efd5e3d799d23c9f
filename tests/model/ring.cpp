/* SPDX-License-Identifier: MIT */
/* The rings: one puts and one takes, many put and one takes, many put and several take; rooms of one and two; and whoever waits for a
 * message or for room. */
#define RING_START (UINT64_MAX / 2) /* the largest number of 63 bits: the next one is 0 */
#include "queue/ring.h"

#include "model.h"

struct model_spsc_slot {
	rl::var<int> body;
};
struct model_mpsc_slot {
	struct mpsc_slot slot;
	rl::var<int> body;
};

/* ---- one puts, one takes ---- */

template <typename T, int CAPACITY, int MESSAGES> struct spsc_suite : rl::test_suite<T, 2> {
	struct spsc ring;
	model_spsc_slot slots[CAPACITY];
	int taken;

	void before()
	{
		spsc_init(&ring, (unsigned char *)slots, CAPACITY, sizeof *slots);
		taken = 0;
	}

	bool put(int i, bool show)
	{
		model_spsc_slot *slot = (model_spsc_slot *)spsc_room(&ring);

		if (slot) {
			slot->body($) = i;
			spsc_wrote(&ring);
		}
		if (show)
			spsc_show(&ring);
		return slot != NULL;
	}

	bool take()
	{
		model_spsc_slot *slot = (model_spsc_slot *)spsc_front(&ring);

		if (!slot)
			return false;
		RL_ASSERT(slot->body($) == taken);
		taken++;
		spsc_pop(&ring);
		return true;
	}
};

struct spsc_passes_in_order : spsc_suite<spsc_passes_in_order, 2, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			for (int n = 0; n < 3;)
				if (put(n, true))
					n++;
				else
					rl::yield(1, $);
		} else
			while (taken < 3)
				if (!take())
					rl::yield(1, $);
	}
};
SCENARIO(spsc_passes_in_order, 50000, 3);

struct spsc_shows_two_at_once : spsc_suite<spsc_shows_two_at_once, 2, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			RL_ASSERT(put(0, false) && put(1, true));
		} else {
			take();
			take();
		}
	}
};
SCENARIO(spsc_shows_two_at_once, 50000, 3);

/* Who takes says that he sleeps and looks once more; who puts shows and looks whether he sleeps. One of them sees the other. The same
 * with room in place of messages.                                                                                         */
struct spsc_sleeper_or_message_is_seen : spsc_suite<spsc_sleeper_or_message_is_seen, 1, 1> {
	rl::atomic<int> asleep;
	bool saw_sleeper, saw_message;

	void before()
	{
		spsc_suite::before();
		asleep($) = 0;
		saw_sleeper = saw_message = false;
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			put(0, true);
			saw_sleeper = asleep.load(rl::mo_seq_cst, $) != 0;
		} else {
			asleep.exchange(1, rl::mo_seq_cst, $);
			saw_message = spsc_length(&ring) > 0;
		}
	}
	void after()
	{
		RL_ASSERT(saw_sleeper || saw_message);
	}
};
SCENARIO(spsc_sleeper_or_message_is_seen, 50000, 3);

struct spsc_waiter_or_room_is_seen : spsc_suite<spsc_waiter_or_room_is_seen, 1, 1> {
	rl::atomic<int> waits;
	bool saw_waiter, saw_room;

	void before()
	{
		spsc_suite::before();
		put(0, true);
		waits($) = 0;
		saw_waiter = saw_room = false;
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			waits.exchange(1, rl::mo_seq_cst, $);
			saw_room = spsc_room(&ring) != NULL;
		} else {
			take();
			saw_waiter = waits.load(rl::mo_seq_cst, $) != 0;
		}
	}
	void after()
	{
		RL_ASSERT(saw_waiter || saw_room);
	}
};
SCENARIO(spsc_waiter_or_room_is_seen, 50000, 3);

/* A third one asks how long it is: never absurd. */
struct spsc_length_is_never_absurd : rl::test_suite<spsc_length_is_never_absurd, 3> {
	struct spsc ring;
	model_spsc_slot slots[2];

	void before()
	{
		spsc_init(&ring, (unsigned char *)slots, 2, sizeof *slots);
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			for (int n = 0; n < 2; n++)
				if (spsc_room(&ring)) {
					spsc_wrote(&ring);
					spsc_show(&ring);
				}
		} else if (i == 1) {
			for (int n = 0; n < 2; n++)
				if (spsc_front(&ring))
					spsc_pop(&ring);
		} else
			RL_ASSERT(spsc_length(&ring) <= 2);
	}
};
SCENARIO(spsc_length_is_never_absurd, 50000, 2);

/* ---- many put ---- */

template <typename T, int THREADS, int MESSAGES> struct mpsc_suite : rl::test_suite<T, THREADS> {
	struct mpsc ring;
	model_mpsc_slot slots[2];
	int accepted, count, taken[MESSAGES];

	void before()
	{
		mpsc_init(&ring, (unsigned char *)slots, 2, sizeof *slots);
		mpsc_open(&ring);
		accepted = count = 0;
		for (int &n : taken)
			n = 0;
	}

	int put(int i, uint64_t room)
	{
		struct mpsc_slot *slot;
		uint64_t number;
		int r = mpsc_reserve(&ring, room, &number);

		if (r < 0)
			return r;
		accepted++;
		while (!(slot = mpsc_reserved(&ring, number)))
			rl::yield(1, $);
		((model_mpsc_slot *)slot)->body($) = i;
		mpsc_show(slot, number);
		return 0;
	}

	void took(int i)
	{
		RL_ASSERT(i >= 0 && i < MESSAGES && taken[i] == 0);
		taken[i] = 1;
		count++;
	}

	int take_alone()
	{
		uint64_t number;
		struct mpsc_slot *slot = mpsc_front(&ring, &number);
		int i;

		if (!slot)
			return -1;
		i = ((model_mpsc_slot *)slot)->body($);
		took(i);
		mpsc_pop(&ring, slot, number);
		return i;
	}

	int take(uint64_t end)
	{
		uint64_t number;
		struct mpsc_slot *slot = mpsc_claim(&ring, end, &number);
		int i;

		if (!slot)
			return -1;
		i = ((model_mpsc_slot *)slot)->body($);
		took(i);
		mpsc_free(&ring, slot, number);
		return i;
	}

	void after()
	{
		while (take(MPSC_NOWHERE) >= 0)
			;
		RL_ASSERT(count == accepted && mpsc_length(&ring) == 0);
	}
};

struct mpsc_two_put_one_takes : mpsc_suite<mpsc_two_put_one_takes, 3, 4> {
	void before()
	{
		mpsc_suite::before();
		mpsc_set_alone(&ring);
	}
	void thread(unsigned i)
	{
		if (i < 2) {
			put((int)i, 2);
			put((int)i + 2, 2);
		} else {
			take_alone();
			take_alone();
			take_alone();
		}
	}
};
SCENARIO(mpsc_two_put_one_takes, 50000, 2);

struct mpsc_two_put_two_take : mpsc_suite<mpsc_two_put_two_take, 4, 2> {
	void thread(unsigned i)
	{
		if (i < 2)
			RL_ASSERT(put((int)i, 2) == 0);
		else
			take(MPSC_NOWHERE);
	}
};
SCENARIO(mpsc_two_put_two_take, 50000, 2);

/* A slot is used again while a slow one reads it. */
struct mpsc_slot_is_used_again : mpsc_suite<mpsc_slot_is_used_again, 3, 4> {
	void thread(unsigned i)
	{
		if (i == 0) {
			put(0, 2);
			put(1, 2);
			put(2, 2);
			put(3, 2);
		} else {
			take(MPSC_NOWHERE);
			take(MPSC_NOWHERE);
		}
	}
};
SCENARIO(mpsc_slot_is_used_again, 50000, 2);

struct mpsc_slot_is_used_again_by_others : mpsc_suite<mpsc_slot_is_used_again_by_others, 3, 4> {
	void before()
	{
		mpsc_suite::before();
		mpsc_set_alone(&ring);
	}
	void thread(unsigned i)
	{
		if (i < 2) {
			put((int)i, 1);
			put((int)i + 2, 1);
		} else {
			take_alone();
			take_alone();
		}
	}
};
SCENARIO(mpsc_slot_is_used_again_by_others, 50000, 2);

/* R3: a message that came in with room for one found the ring empty at that moment. */
struct mpsc_nobody_overshoots : mpsc_suite<mpsc_nobody_overshoots, 3, 3> {
	void before()
	{
		mpsc_suite::before();
		mpsc_set_alone(&ring);
	}
	void thread(unsigned i)
	{
		if (i < 2)
			put((int)i, 1);
		else
			take_alone();
	}
	void after()
	{
		RL_ASSERT(accepted - count <= 1);
		mpsc_suite::after();
	}
};
SCENARIO(mpsc_nobody_overshoots, 50000, 3);

/* R5: what comes in has a number before the one that closing tells. */
struct mpsc_close_against_put : mpsc_suite<mpsc_close_against_put, 2, 2> {
	uint64_t end;

	void thread(unsigned i)
	{
		if (i == 0) {
			put(0, 2);
			put(1, 2);
		} else
			end = mpsc_close(&ring);
	}
	void after()
	{
		RL_ASSERT(mpsc_distance((uint64_t)RING_START, end) == (uint64_t)accepted);
		mpsc_suite::after();
	}
};
SCENARIO(mpsc_close_against_put, 50000, 3);

struct mpsc_sleeper_or_message_is_seen : mpsc_suite<mpsc_sleeper_or_message_is_seen, 2, 1> {
	rl::atomic<int> asleep;
	bool saw_sleeper, saw_message;

	void before()
	{
		mpsc_suite::before();
		asleep($) = 0;
		saw_sleeper = saw_message = false;
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			put(0, 2);
			saw_sleeper = asleep.load(rl::mo_seq_cst, $) != 0;
		} else {
			asleep.exchange(1, rl::mo_seq_cst, $);
			saw_message = mpsc_length(&ring) > 0;
		}
	}
	void after()
	{
		RL_ASSERT(saw_sleeper || saw_message);
		mpsc_suite::after();
	}
};
SCENARIO(mpsc_sleeper_or_message_is_seen, 50000, 3);

/* Who is refused says that he waits and tries once more; who takes looks whether somebody waits. */
template <typename T, bool ALONE> struct mpsc_waiter_suite : mpsc_suite<T, 2, 2> {
	rl::atomic<int> waits;
	bool saw_waiter, got_in;

	void before()
	{
		mpsc_suite<T, 2, 2>::before();
		if (ALONE)
			mpsc_set_alone(&this->ring);
		this->put(0, 1);
		waits($) = 0;
		saw_waiter = got_in = false;
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			waits.exchange(1, rl::mo_seq_cst, $);
			got_in = this->put(1, 1) == 0;
		} else {
			if (ALONE)
				this->take_alone();
			else
				this->take(MPSC_NOWHERE);
			saw_waiter = waits.load(rl::mo_seq_cst, $) != 0;
		}
	}
	void after()
	{
		RL_ASSERT(saw_waiter || got_in);
		mpsc_suite<T, 2, 2>::after();
	}
};
struct mpsc_waiter_or_room_is_seen : mpsc_waiter_suite<mpsc_waiter_or_room_is_seen, true> {};
SCENARIO(mpsc_waiter_or_room_is_seen, 50000, 3);
struct mpsc_waiter_or_claim_is_seen : mpsc_waiter_suite<mpsc_waiter_or_claim_is_seen, false> {};
SCENARIO(mpsc_waiter_or_claim_is_seen, 50000, 3);

/* A flush: who takes says that he is at work, then looks where to stop; the other sets the stop, then looks how far they are, and whether
 * anybody is at work. When it finds nobody, all from before are taken and nothing more begins.                              */
struct mpsc_flush_against_a_taker : mpsc_suite<mpsc_flush_against_a_taker, 3, 3> {
	rl::atomic<uint64_t> end;
	rl::atomic<int> busy;
	bool flushed;
	int before_flush;

	void before()
	{
		mpsc_suite::before();
		end($) = MPSC_NOWHERE;
		busy($) = 0;
		flushed = false;
		put(0, 2);
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			for (int n = 0; n < 2; n++) {
				busy.exchange(1, rl::mo_seq_cst, $);
				take(end.load(rl::mo_seq_cst, $));
				busy.store(0, rl::mo_seq_cst, $);
			}
		} else if (i == 1)
			put(1, 2);
		else {
			uint64_t until = mpsc_next(&ring);

			end.exchange(until, rl::mo_seq_cst, $);
			if (mpsc_reached(until, mpsc_oldest(&ring)) && busy.load(rl::mo_seq_cst, $) == 0) {
				flushed = true;
				before_flush = count;
				RL_ASSERT(taken[0] == 1);
			}
		}
	}
	void after()
	{
		RL_ASSERT(!flushed || count == before_flush);
		mpsc_suite::after();
	}
};
SCENARIO(mpsc_flush_against_a_taker, 50000, 2);
