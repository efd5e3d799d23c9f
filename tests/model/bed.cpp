/* SPDX-License-Identifier: MIT */
/* The bed of a core, and the move out of it. A second parker stands for the descriptors. */
#include "core/bed.h"
#include "model.h"

template <typename T, int THREADS> struct bed_suite : rl::test_suite<T, THREADS> {
	struct bed bed;
	struct parker elsewhere;
	rl::atomic<int> told[2];

	void before()
	{
		bed_init(&bed);
		parker_init(&elsewhere);
		for (rl::atomic<int> &t : told)
			t.store(0, rl::mo_relaxed, $);
	}

	void wake()
	{
		if (!bed_wake(&bed))
			parker_unpark(&elsewhere);
	}

	void tell(int i)
	{
		told[i].store(1, rl::mo_relaxed, $);
		wake();
	}

	void leave()
	{
		if (bed_leave(&bed))
			parker_unpark(&elsewhere);
	}

	/* One turn of the core. */
	void turn(int64_t timeout_ns)
	{
		if (bed_is_used(&bed))
			bed_sleep(&bed, timeout_ns);
		else
			parker_park(&elsewhere, timeout_ns);
	}

	void wait_for(int i)
	{
		while (told[i].load(rl::mo_relaxed, $) == 0)
			turn(HIVE_FOREVER); /* a wake that is lost is a deadlock */
	}
};

struct bed_is_left_while_somebody_wakes : bed_suite<bed_is_left_while_somebody_wakes, 2> {
	void thread(unsigned i)
	{
		if (i == 1) {
			tell(0);
		} else {
			leave();
			wait_for(0);
		}
	}
};
SCENARIO(bed_is_left_while_somebody_wakes, 50000, 4);

struct bed_is_slept_in_and_left : bed_suite<bed_is_slept_in_and_left, 3> {
	void thread(unsigned i)
	{
		if (i > 0) {
			tell((int)i - 1);
		} else {
			wait_for(0);
			leave();
			wait_for(1);
		}
	}
};
SCENARIO(bed_is_slept_in_and_left, 50000, 2);

struct bed_has_a_time_limit : bed_suite<bed_has_a_time_limit, 2> {
	void thread(unsigned i)
	{
		if (i == 1) {
			tell(0);
		} else {
			turn(HIVE_MS(1));
			leave();
			wait_for(0);
		}
	}
};
SCENARIO(bed_has_a_time_limit, 50000, 4);

/* What came before a wake is seen by who was woken, on either side of the move. */
struct bed_wake_carries_what_came_before : bed_suite<bed_wake_carries_what_came_before, 2> {
	rl::var<int> news;

	void thread(unsigned i)
	{
		if (i == 1) {
			news($) = 1;
			wake();
		} else if (bed_leave(&bed)) {
			RL_ASSERT(news($) == 1);
		}
	}
};
SCENARIO(bed_wake_carries_what_came_before, 50000, 4);
