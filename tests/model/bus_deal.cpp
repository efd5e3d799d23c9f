/* SPDX-License-Identifier: MIT */
/* A bus with a dispatcher: who deals and who takes, room in the rings of workers, flush and stop. */
#define RING_START (UINT64_MAX / 2) /* the largest number of 63 bits: the next one is 0 */
#include "model_bus.h"

/* Worker 0, and the dispatcher behind it. */
template <typename T, int THREADS, int RING> struct deal_suite : bus_suite<T, THREADS, 1, RING> {
	int count;  /* of handled ones, for the worker */
	int enough; /* for the dispatcher */
	bool paused;

	void before()
	{
		this->set_up(BUS_DEALT);
		this->open();
		count = enough = 0;
		paused = false;
	}
	int on_message(int i, const struct hive_bus_header *)
	{
		RL_ASSERT(!paused);
		this->note(i);
		count++;
		return 0;
	}
	/* The worker's thread; then the dispatcher may go. */
	void take_until(int n)
	{
		this->work_until(0, &count, n);
		enough = 1;
		parker_unpark(&this->worker[1].parker);
	}
	void deal()
	{
		this->work_until(1, &enough);
	}
};

struct bus_dealt_works_and_stops : deal_suite<bus_dealt_works_and_stops, 3, 2> {
	void before()
	{
		deal_suite::before();
		have(1);
	}
	void thread(unsigned i)
	{
		if (i < 2) {
			model_thread_runs(i);
			return;
		}
		RL_ASSERT(hive_bus_stop(&bus, HIVE_DRAIN, HIVE_FOREVER) == 0);
		RL_ASSERT(handled_in_all() == 1);
	}
};
SCENARIO(bus_dealt_works_and_stops, 20000, 1);

/* The dispatcher sleeps for want of messages, the worker too: a message is seen, or its sleeper is. */
struct bus_dealt_wakes_both : deal_suite<bus_dealt_wakes_both, 3, 2> {
	void thread(unsigned i)
	{
		if (i == 0)
			take_until(1);
		else if (i == 1)
			deal();
		else
			RL_ASSERT(submit(0) == 0);
	}
};
SCENARIO(bus_dealt_wakes_both, 20000, 1);

/* No worker has room: the dispatcher waits, and is told by one who takes. */
struct bus_dispatcher_waits_for_room : deal_suite<bus_dispatcher_waits_for_room, 2, 1> {
	void before()
	{
		deal_suite::before();
		have(2);
	}
	void thread(unsigned i)
	{
		if (i == 0)
			take_until(2);
		else
			deal();
	}
};
SCENARIO(bus_dispatcher_waits_for_room, 20000, 2);

/* Flush: what the dispatcher has in its hands is waited for, and what it has dealt. */
struct bus_flush_of_what_is_dealt : deal_suite<bus_flush_of_what_is_dealt, 3, 1> {
	void before()
	{
		deal_suite::before();
		have(1);
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			take_until(1);
		} else if (i == 1) {
			deal();
		} else {
			RL_ASSERT(hive_bus_pause(&bus, HIVE_DRAIN, HIVE_FOREVER) == 0);
			paused = true;
			RL_ASSERT(handled[0] == 1);
		}
	}
};
SCENARIO(bus_flush_of_what_is_dealt, 20000, 1);

/* As in bus_flow.cpp. */
struct bus_flush_of_dealt_gives_up : deal_suite<bus_flush_of_dealt_gives_up, 3, 2> {
	void before()
	{
		deal_suite::before();
		store_relaxed(&bus.callers, 1u);
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			/* the dispatcher, until it has dealt one */
			while (spsc_length(&worker[0].ring) == 0)
				if (!hive__bus_deal(&worker[1]))
					sleep_until_woken(&worker[1]);
		} else if (i == 1) {
			RL_ASSERT(submit(0) == 0);
		} else {
			RL_ASSERT(hive_bus_pause(&bus, HIVE_DRAIN, HIVE_NOWAIT) == -ETIMEDOUT);
		}
	}
};
SCENARIO(bus_flush_of_dealt_gives_up, 20000, 1);

/* ---- by key: a place in the worker's ring comes first ---- */

template <typename T, int RING> struct pending_suite : deal_suite<T, 2, RING> {
	void before()
	{
		deal_suite<T, 2, RING>::before();
		this->bus.route = HIVE_BUS_BY_KEY;
		this->have(1);
	}
};

/* Its worker has room for one: the second one waits until that is taken. */
struct bus_key_waits_for_its_worker : pending_suite<bus_key_waits_for_its_worker, 1> {
	void before()
	{
		pending_suite::before();
		hive__bus_deal(&worker[1]);
	}
	void thread(unsigned i)
	{
		if (i == 0)
			hive__bus_work(&worker[0], 1);
		else
			RL_ASSERT(submit(1, HIVE_FOREVER) == 0);
	}
	void after()
	{
		RL_ASSERT(load_relaxed(&worker[0].pending) == 1);
	}
};
SCENARIO(bus_key_waits_for_its_worker, 20000, 3);

/* A low one has got the last place, and is refused at the ring: it gives it back, and tells. */
struct bus_key_gives_its_place_back : pending_suite<bus_key_gives_its_place_back, 2> {
	void before()
	{
		pending_suite::before();
		bus.room[HIVE_BUS_LOW] = 1;
	}
	void thread(unsigned i)
	{
		if (i == 0)
			RL_ASSERT(submit(1, HIVE_NOWAIT, HIVE_BUS_LOW) == -ENOBUFS);
		else
			RL_ASSERT(submit(2, HIVE_FOREVER) == 0);
	}
	void after()
	{
		RL_ASSERT(load_relaxed(&worker[0].pending) == 2);
	}
};
SCENARIO(bus_key_gives_its_place_back, 20000, 3);

/* Two take places, and there are never more than fit. */
struct bus_key_never_overshoots : pending_suite<bus_key_never_overshoots, 2> {
	void thread(unsigned i)
	{
		submit((int)i + 1);
	}
	void after()
	{
		RL_ASSERT(accepted == 2 && load_relaxed(&worker[0].pending) == 2);
	}
};
SCENARIO(bus_key_never_overshoots, 20000, 3);
