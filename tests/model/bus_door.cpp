/* SPDX-License-Identifier: MIT */
/* The door of a bus, and its books: who waits for room, what becomes of what does not come in, the ledger at any moment, levels. */
#define RING_START (UINT64_MAX / 2) /* the largest number of 63 bits: the next one is 0 */
#include "model_bus.h"

template <typename T, int THREADS> struct door_suite : bus_suite<T, THREADS, 1> {
	void before()
	{
		this->set_up(BUS_SHARED);
		this->open();
	}
	/* One look at the ledger, by the parts of hive_bus_stats_read(), which looks again if it finds too much. What has ended was accepted, and so many
	 * are in the ring. */
	void look(uint64_t queued)
	{
		struct hive_bus_stats stats = {};

		add_ends(&this->bus, &stats);
		add_beginnings(&this->bus, &stats);
		RL_ASSERT(stats.queued >= queued && stats.queued <= stats.accepted);
	}
};

/* ---- room ---- */

struct bus_waits_for_room : door_suite<bus_waits_for_room, 2> {
	void before()
	{
		door_suite::before();
		have(2);
	}
	void thread(unsigned i)
	{
		if (i == 0)
			hive__bus_work(&worker[0], 1);
		else
			RL_ASSERT(submit(2, HIVE_FOREVER) == 0);
	}
};
SCENARIO(bus_waits_for_room, 20000, 3);

/* Full and paused: who waits for room is told that the door is closed. */
struct bus_waits_in_vain : door_suite<bus_waits_in_vain, 2> {
	void before()
	{
		door_suite::before();
		have(2);
	}
	void thread(unsigned i)
	{
		if (i == 0)
			close_door(&bus);
		else
			RL_ASSERT(submit(2, HIVE_FOREVER) == -ESHUTDOWN);
	}
};
SCENARIO(bus_waits_in_vain, 20000, 3);

/* ---- the ledger ---- */

struct bus_ledger_of_a_worker : door_suite<bus_ledger_of_a_worker, 3> {
	int on_message(int i, const struct hive_bus_header *)
	{
		note(i);
		return i == 0 ? 0 : -EIO;
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			submit(0);
			submit(1);
		} else if (i == 1) {
			hive__bus_work(&worker[0], 1);
			hive__bus_work(&worker[0], 1);
		} else {
			look(0);
		}
	}
};
SCENARIO(bus_ledger_of_a_worker, 20000, 1);

/* Full: the first is handled by its submitter, the second fails there. */
struct bus_ledger_of_callers : door_suite<bus_ledger_of_callers, 2> {
	void before()
	{
		door_suite::before();
		bus.on_full = HIVE_BUS_RUN_IN_CALLER;
		have(2);
	}
	int on_message(int i, const struct hive_bus_header *)
	{
		note(i);
		return i == 2 ? 0 : -EIO;
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			RL_ASSERT(submit(2) == 0);
			RL_ASSERT(submit(3) == 0);
		} else {
			look(2);
		}
	}
};
SCENARIO(bus_ledger_of_callers, 20000, 3);

/* The same two, the failing one first. */
struct bus_ledger_of_failing_callers : door_suite<bus_ledger_of_failing_callers, 2> {
	void before()
	{
		door_suite::before();
		bus.on_full = HIVE_BUS_RUN_IN_CALLER;
		have(2);
	}
	int on_message(int i, const struct hive_bus_header *)
	{
		note(i);
		return -EIO;
	}
	void thread(unsigned i)
	{
		if (i == 0)
			RL_ASSERT(submit(2) == 0);
		else
			look(2);
	}
};
SCENARIO(bus_ledger_of_failing_callers, 20000, 3);

/* A higher one takes the place of a lower one, which is dropped. */
struct bus_ledger_of_what_is_replaced : door_suite<bus_ledger_of_what_is_replaced, 2> {
	void before()
	{
		door_suite::before();
		bus.on_full = HIVE_BUS_DROP_OLDER_LOWER;
		for (int i = 0; i < 2; i++)
			RL_ASSERT(submit(i, HIVE_NOWAIT, HIVE_BUS_LOW) == 0);
	}
	void thread(unsigned i)
	{
		if (i == 0)
			RL_ASSERT(submit(2) == 0);
		else
			look(2);
	}
	void after()
	{
		RL_ASSERT(dropped[0] == 1 && dropped[1] == 0);
	}
};
SCENARIO(bus_ledger_of_what_is_replaced, 20000, 3);

/* ---- levels ---- */

/* One tells at a time, and when all is quiet what was told is true. */
template <typename T> struct level_suite : door_suite<T, 2> {
	rl::var<int> told; /* on_level is called by one at a time */

	static void on_level(void *arg, enum hive_bus_level level)
	{
		((T *)arg)->told($) = (int)level;
	}
	void before()
	{
		door_suite<T, 2>::before();
		this->bus.room[HIVE_BUS_LOW] = this->bus.back[HIVE_BUS_LOW] = 1;
		this->bus.on_level = on_level;
		told($) = 0;
		this->have(1);
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			this->submit(1);
			return;
		}
		hive__bus_work(&this->worker[0], 1);
		hive__bus_work(&this->worker[0], 1);
	}
	void after()
	{
		uint32_t level = load_relaxed(&this->bus.level);

		RL_ASSERT(level == level_next(&this->bus, level) && (int)level == told($));
	}
};
struct bus_level_is_true_in_the_end : level_suite<bus_level_is_true_in_the_end> {};
SCENARIO(bus_level_is_true_in_the_end, 20000, 3);
/* It has risen and is about to fall: who puts one in that is of the level that he was told looks no further. */
struct bus_level_of_known_fills_is_true : level_suite<bus_level_of_known_fills_is_true> {
	void before()
	{
		door_suite::before();
		bus.room[HIVE_BUS_LOW] = bus.back[HIVE_BUS_LOW] = 1;
		bus.on_level = on_level;
		told($) = 1;
		store_relaxed(&bus.level, 1u);
		store_relaxed(&bus.depth_max, 2u);
	}
};
SCENARIO(bus_level_of_known_fills_is_true, 20000, 3);
