/* SPDX-License-Identifier: MIT */
/* A bus on threads of its own, one worker and one ring: start, rest and wake, pause, flush, resume, stop. */
#define RING_START (UINT64_MAX / 2) /* the largest number of 63 bits: the next one is 0 */
#include "model_bus.h"

template <typename T, int THREADS> struct flow_suite : bus_suite<T, THREADS, 1> {
	rl::var<int> inside; /* written by handlers, read by who was told that all is quiet */
	bool paused;
	int count; /* of handled ones, for the worker */

	void before()
	{
		this->set_up(BUS_SHARED);
		this->open();
		inside($) = 0;
		paused = false;
		count = 0;
	}
	int on_message(int i, const struct hive_bus_header *)
	{
		RL_ASSERT(!paused);
		inside($) = inside($) + 1;
		this->note(i);
		RL_ASSERT(!paused);
		count++;
		return 0;
	}
	void on_drop(int i)
	{
		bus_suite<T, THREADS, 1>::on_drop(i);
		inside($) = inside($) + 1;
	}
	int pause(enum hive_stop_mode mode, int64_t deadline_ns)
	{
		int r = hive_bus_pause(&this->bus, mode, deadline_ns);

		if (r == 0) {
			paused = true;
			RL_ASSERT(inside($) == this->handled_in_all());
		}
		return r;
	}
	void resume()
	{
		paused = false;
		RL_ASSERT(hive_bus_resume(&this->bus) == 0);
	}
};

/* ---- start and stop ---- */

struct bus_starts_works_and_stops : flow_suite<bus_starts_works_and_stops, 2> {
	void before()
	{
		flow_suite::before();
		set_up(BUS_SHARED);
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			model_thread_runs(0);
			return;
		}
		RL_ASSERT(hive_bus_start(&bus) == 0);
		RL_ASSERT(submit(0) == 0);
		RL_ASSERT(hive_bus_stop(&bus, HIVE_DRAIN, HIVE_FOREVER) == 0);
		RL_ASSERT(handled[0] == 1 && inside($) == 1);
		RL_ASSERT(hive_bus_destroy(&bus) == 0);
	}
};
SCENARIO(bus_starts_works_and_stops, 20000, 2);

/* Who finds it started sees what was written before the start. */
struct bus_start_shows_what_came_before : flow_suite<bus_start_shows_what_came_before, 3> {
	void before()
	{
		flow_suite::before();
		set_up(BUS_SHARED);
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			model_thread_runs(0);
		} else if (i == 1) {
			inside($) = 0;
			RL_ASSERT(hive_bus_start(&bus) == 0);
			RL_ASSERT(hive_bus_stop(&bus, HIVE_NOW, HIVE_FOREVER) == 0);
		} else {
			int r = call(0);

			RL_ASSERT((r == 0 && handled[0] == 1) || r == -ESHUTDOWN || r == -EBUSY);
		}
	}
};
SCENARIO(bus_start_shows_what_came_before, 20000, 1);

/* Stopped before it was started: for good. */
struct bus_is_stopped_before_its_start : flow_suite<bus_is_stopped_before_its_start, 2> {
	void before()
	{
		flow_suite::before();
		set_up(BUS_SHARED);
	}
	void thread(unsigned i)
	{
		int r = i == 0 ? hive_bus_stop(&bus, HIVE_NOW, HIVE_FOREVER) : call(0);

		RL_ASSERT(r == (i == 0 ? 0 : -ESHUTDOWN));
	}
	void after()
	{
		RL_ASSERT(load_relaxed(&bus.state) == (uint32_t)BUS_STOPPED);
	}
};
SCENARIO(bus_is_stopped_before_its_start, 5000, 2);

/* Accepted: handled or dropped. Whoever is told that it has been stopped sees all of it. */
struct bus_stop_against_submit : flow_suite<bus_stop_against_submit, 3> {
	void before()
	{
		flow_suite::before();
		have(1);
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			model_thread_runs(0);
		} else if (i == 1) {
			submit(1);
		} else {
			RL_ASSERT(hive_bus_stop(&bus, HIVE_NOW, HIVE_FOREVER) == 0);
			RL_ASSERT(inside($) == handled_in_all() + dropped_in_all());
		}
	}
	void after()
	{
		RL_ASSERT(handled_in_all() + dropped_in_all() == accepted);
	}
};
SCENARIO(bus_stop_against_submit, 20000, 1);

/* One at a time: the other one waits, and is told. */
struct bus_two_stop_it : flow_suite<bus_two_stop_it, 3> {
	int stopped;

	void before()
	{
		flow_suite::before();
		stopped = 0;
		have(1);
	}
	void thread(unsigned i)
	{
		int r;

		if (i == 0) {
			model_thread_runs(0);
			return;
		}
		r = hive_bus_stop(&bus, HIVE_NOW, HIVE_FOREVER);
		RL_ASSERT(r == 0 || r == -EALREADY);
		stopped += r == 0;
		RL_ASSERT(inside($) == 1);
	}
	void after()
	{
		RL_ASSERT(stopped == 1);
	}
};
SCENARIO(bus_two_stop_it, 20000, 1);

/* ---- pause and resume ---- */

struct bus_pause_against_a_worker : flow_suite<bus_pause_against_a_worker, 2> {
	void before()
	{
		flow_suite::before();
		have(2);
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			hive__bus_work(&worker[0], 1);
			hive__bus_work(&worker[0], 1);
		} else {
			RL_ASSERT(pause(HIVE_NOW, HIVE_FOREVER) == 0);
		}
	}
};
SCENARIO(bus_pause_against_a_worker, 20000, 3);

struct bus_pause_against_a_call : flow_suite<bus_pause_against_a_call, 2> {
	void thread(unsigned i)
	{
		int r;

		if (i == 0) {
			r = call(0);
			RL_ASSERT(r == 0 || r == -EBUSY);
			r = call(1);
			RL_ASSERT(r == 0 || r == -EBUSY);
		} else {
			RL_ASSERT(pause(HIVE_NOW, HIVE_FOREVER) == 0);
		}
	}
};
SCENARIO(bus_pause_against_a_call, 20000, 3);

/* While it is paused nobody is woken for what comes; who ends that wakes everybody. */
struct bus_resume_against_submit : flow_suite<bus_resume_against_submit, 3> {
	void before()
	{
		flow_suite::before();
		store_relaxed(&bus.hold, 1u);
		paused = true;
	}
	void thread(unsigned i)
	{
		if (i == 0)
			work_until(0, &count);
		else if (i == 1)
			RL_ASSERT(submit(0) == 0);
		else
			resume();
	}
};
SCENARIO(bus_resume_against_submit, 20000, 2);

/* ---- flush ---- */

/* What was accepted before it was handled, whatever comes beside it. */
struct bus_flush_against_submit : flow_suite<bus_flush_against_submit, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			work_until(0, &count, 2);
		} else if (i == 1) {
			RL_ASSERT(submit(0) == 0);
			RL_ASSERT(pause(HIVE_DRAIN, HIVE_FOREVER) == 0);
			RL_ASSERT(handled[0] == 1);
			resume();
		} else {
			RL_ASSERT(submit(1) == 0);
		}
	}
};
SCENARIO(bus_flush_against_submit, 20000, 1);

/* Somebody is in a call that does not end: the flush gives up, and the bus goes on as it was. What came meanwhile is handled. */
template <typename T, enum bus_shape SHAPE>
struct flush_gives_up : flow_suite<T, 3>{ void before(){ flow_suite<T, 3>::before();
this->set_up(SHAPE, SHAPE == BUS_BOXES ? HIVE_BUS_BY_KEY : HIVE_BUS_ROUND_ROBIN);
this->open();
store_relaxed(&this->bus.callers, 1u);
}
void thread(unsigned i)
{
	if (i == 0)
		this->work_until(0, &this->count, 1);
	else if (i == 1)
		RL_ASSERT(this->submit(0) == 0);
	else
		RL_ASSERT(this->pause(HIVE_DRAIN, HIVE_NOWAIT) == -ETIMEDOUT);
}
}
;
struct bus_flush_gives_up : flush_gives_up<bus_flush_gives_up, BUS_SHARED> {};
SCENARIO(bus_flush_gives_up, 20000, 1);
struct bus_flush_of_boxes_gives_up : flush_gives_up<bus_flush_of_boxes_gives_up, BUS_BOXES> {};
SCENARIO(bus_flush_of_boxes_gives_up, 20000, 1);
