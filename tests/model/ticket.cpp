/* SPDX-License-Identifier: MIT */
/* The ticket of a delayed post: its keeper fires it, others cancel it, and the parcel is used again. */
#include "sched/parcel.h"

#include "model.h"

template <typename T, int THREADS> struct ticket_suite : rl::test_suite<T, THREADS> {
	struct delayed d;
	rl::var<int> content;       /* what is filled in before the ticket, and read by whoever has moved it */
	rl::atomic<uint64_t> told;  /* the id, as a careless user hands it on */
	int fired[3], cancelled[3]; /* per generation */

	int rescued[3];

	void before()
	{
		d.ticket.store(0, rl::mo_relaxed, $);
		d.offered_due_ns.store(0, rl::mo_relaxed, $);
		d.offered_fn.store(NULL, rl::mo_relaxed, $);
		d.offered_arg.store(NULL, rl::mo_relaxed, $);
		told.store(0, rl::mo_relaxed, $);
		for (int g = 0; g < 3; g++)
			fired[g] = cancelled[g] = rescued[g] = 0;
	}

	/* Each post has a task of its own, of which no part may get into another one. */
	static hive_fn *fn_of(uint64_t generation)
	{
		return (hive_fn *)(uintptr_t)(0x1000 + generation);
	}

	/* As the monitor does it, at a time when those up to `due` are due. */
	void rescue(int64_t due)
	{
		struct hive_task task;
		uint64_t generation;
		bool alarm;

		if (!delayed_rescue(&d, due, &task, &alarm))
			return;
		generation = (uint64_t)(uintptr_t)task.arg;
		RL_ASSERT(generation >= 1 && generation <= (uint64_t)due && task.fn == fn_of(generation));
		RL_ASSERT(alarm == (generation % 2 == 1)); /* its time is its generation */
		rescued[generation]++;
	}

	uint64_t post()
	{
		uint64_t next = delayed_next_generation(&d);
		struct hive_task task = { fn_of(next), (void *)(uintptr_t)next };

		content($) = (int)next;
		delayed_show(&d, task);
		delayed_begin(&d);
		delayed_offer(&d, (int64_t)next, next % 2 == 1);
		told.store(delayed_generation(&d), rl::mo_relaxed, $);
		return delayed_generation(&d);
	}

	/* As hive__fire_delayed() does it. */
	void fire()
	{
		uint64_t generation = delayed_generation(&d);

		if (delayed_claim(&d, generation, TICKET_FREE))
			fired[generation]++;
		delayed_end(&d);
	}

	void cancel(uint64_t generation)
	{
		if (!delayed_claim(&d, generation, TICKET_CANCELLED))
			return;
		RL_ASSERT(content($) == (int)generation);
		cancelled[generation]++;
	}

	void after()
	{
		RL_ASSERT(d.ticket.load(rl::mo_relaxed, $) % TICKET_STATES == TICKET_FREE);
		for (int g = 1; g < 3; g++)
			RL_ASSERT(fired[g] + cancelled[g] + rescued[g] <= 1);
	}
};

/* The keeper is the poster; two others want to cancel. */
struct ticket_fires_or_is_cancelled_once : ticket_suite<ticket_fires_or_is_cancelled_once, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			post();
			fire();
		} else if (uint64_t id = told.load(rl::mo_relaxed, $)) {
			cancel(id);
		}
	}

	void after()
	{
		RL_ASSERT(fired[1] + cancelled[1] == 1);
		ticket_suite::after();
	}
};
SCENARIO(ticket_fires_or_is_cancelled_once, 50000, 4);

/* An old id does nothing to the next post in the same parcel, however late its owner comes. */
struct ticket_of_an_old_post_is_worth_nothing : ticket_suite<ticket_of_an_old_post_is_worth_nothing, 2> {
	void before()
	{
		ticket_suite::before();
		post();
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			fire();
			post();
			fire();
		} else {
			cancel(1);
		}
	}

	void cancel(uint64_t generation)
	{
		cancelled[generation] += delayed_claim(&d, generation, TICKET_CANCELLED);
	}

	void after()
	{
		RL_ASSERT(fired[1] + cancelled[1] == 1 && fired[2] == 1);
		ticket_suite::after();
	}
};
SCENARIO(ticket_of_an_old_post_is_worth_nothing, 50000, 6);

/* The keeper throws out what is cancelled and gives the parcel back; the next post must not be taken for a dead one. */
struct ticket_is_swept_when_cancelled : ticket_suite<ticket_is_swept_when_cancelled, 2> {
	void before()
	{
		ticket_suite::before();
		post();
	}

	void thread(unsigned i)
	{
		if (i == 1) {
			cancelled[1] += delayed_claim(&d, 1, TICKET_CANCELLED);
			return;
		}
		if (delayed_is_cancelled(&d)) {
			delayed_end(&d);
			post();
			RL_ASSERT(!delayed_is_cancelled(&d));
		}
		fire();
	}

	void after()
	{
		RL_ASSERT(fired[1] + cancelled[1] == 1);
		ticket_suite::after();
	}
};
SCENARIO(ticket_is_swept_when_cancelled, 50000, 6);

/* The keeper fires, another one cancels, and the monitor has the keeper for stuck: one of them has it. */
struct ticket_is_fired_cancelled_or_rescued : ticket_suite<ticket_is_fired_cancelled_or_rescued, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			post();
			fire();
		} else if (i == 1) {
			rescue(1);
		} else if (uint64_t id = told.load(rl::mo_relaxed, $)) {
			cancel(id);
		}
	}

	void after()
	{
		RL_ASSERT(fired[1] + cancelled[1] + rescued[1] == 1);
		ticket_suite::after();
	}
};
SCENARIO(ticket_is_fired_cancelled_or_rescued, 50000, 4);

/* The parcel is used again while it is looked at: what is taken is one post's, whole, due, and nobody else's. */
struct ticket_is_rescued_while_used_again : ticket_suite<ticket_is_rescued_while_used_again, 2> {
	void before()
	{
		ticket_suite::before();
		post();
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			fire();
			post();
			fire();
		} else {
			rescue(1); /* the second one is not due */
			rescue(2);
		}
	}

	void after()
	{
		RL_ASSERT(fired[1] + rescued[1] == 1 && fired[2] + rescued[2] == 1);
		ticket_suite::after();
	}
};
SCENARIO(ticket_is_rescued_while_used_again, 50000, 6);
