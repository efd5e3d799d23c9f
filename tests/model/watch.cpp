/* SPDX-License-Identifier: MIT */
/* Handlers of signals, which may come late, against watches that end and begin again (src/io/handlers.h). What a handler and the holder of
 * the lock `life` do besides is that of src/io/watch.c: on_signal(), give_back(), install(), restore(), stop_listening(). The bell is a
 * plain field here, so that one who rings it when it is gone is a race. The system's table of actions has the system's own lock.
 * `before` is a plain struct there: to write what it holds already is no error here.                                           */
#include "io/handlers.h"

#include "model.h"

enum { NUMBER = 3 };
enum { OURS, BEFORE, USERS }; /* actions */

template <typename T, int THREADS> struct watch_suite : rl::test_suite<T, THREADS> {
	struct handlers handlers;
	struct lock system;
	int action_of_it;          /* under the system's lock */
	rl::atomic<int> before_it; /* what it was before it was watched */
	rl::var<int> bell;         /* it is there */
	int counted, raised;       /* signals: by a watch, and to the action that it had otherwise */

	/* It is watched. */
	void before()
	{
		handlers.watched.store(0, rl::mo_relaxed, $);
		handlers.inside.store(0, rl::mo_relaxed, $);
		action_of_it = BEFORE;
		before_it.store(BEFORE, rl::mo_relaxed, $);
		bell($) = 0;
		counted = raised = 0;
		begin();
	}

	int sigaction_of(int fresh)
	{
		int was;

		lock_acquire(&system);
		was = action_of_it;
		if (fresh >= 0)
			action_of_it = fresh;
		lock_release(&system);
		return was;
	}

	bool count()
	{
		if (!handlers_watch(&handlers, NUMBER))
			return false;
		RL_ASSERT(bell($) == 1);
		counted++;
		return true;
	}

	/* True: it is raised, and met when the handler has returned. */
	bool give_back()
	{
		while (sigaction_of(-1) == OURS) {
			if (count())
				return false;
			sigaction_of(before_it.load(rl::mo_relaxed, $));
			if (handlers_watch(&handlers, NUMBER))
				sigaction_of(OURS);
		}
		return true;
	}

	/* A signal that found our handler, and is met by whatever is there when it is raised again. */
	void meet_signal()
	{
		for (bool ours = true, again = true; again; ours = sigaction_of(-1) == OURS) {
			if (!ours) {
				raised++;
				return;
			}
			handlers_enter(&handlers);
			again = !count() && give_back();
			handlers_leave(&handlers);
		}
	}

	/* install() */
	void begin_beside()
	{
		int was = sigaction_of(-1);

		if (was != OURS)
			before_it.store(was, rl::mo_relaxed, $);
		handlers_begin(&handlers, NUMBER);
		sigaction_of(OURS);
	}

	/* start_listening() before it */
	void begin()
	{
		bell($) = 1;
		begin_beside();
	}

	void put_back()
	{
		if (sigaction_of(-1) == OURS)
			sigaction_of(before_it.load(rl::mo_relaxed, $));
	}

	/* restore() */
	void restore()
	{
		put_back(); /* first */
		handlers_end(&handlers, NUMBER);
		put_back(); /* last */
	}

	/* and stop_listening(), when nothing else is watched */
	void end()
	{
		restore();
		while (!handlers_are_gone(&handlers))
			rl::yield(1, $);
		bell($) = 0;
	}
};

/* The bell is not rung when it is gone, and each signal is met once: by the watch, or by what was before. */
struct watch_ends_while_handlers_run : watch_suite<watch_ends_while_handlers_run, 3> {
	void thread(unsigned i)
	{
		if (i == 0)
			end();
		else
			meet_signal();
	}

	void after()
	{
		RL_ASSERT(counted + raised == 2 && action_of_it == BEFORE);
		RL_ASSERT(handlers.inside.load(rl::mo_relaxed, $) == 0);
	}
};
SCENARIO(watch_ends_while_handlers_run, 50000, 3);

/* It is watched again, with another bell: whoever is last to set an action, a late handler or the watch, sets ours. */
struct watch_begins_again_under_a_late_handler : watch_suite<watch_begins_again_under_a_late_handler, 2> {
	void thread(unsigned i)
	{
		if (i == 1) {
			meet_signal();
			return;
		}
		end();
		begin();
	}

	void after()
	{
		RL_ASSERT(counted + raised == 1 && action_of_it == OURS && bell($) == 1);
	}
};
SCENARIO(watch_begins_again_under_a_late_handler, 50000, 5);

/* Another signal is watched all the time, so that nobody waits for handlers: it is watched again, and once more. */
struct watch_comes_and_goes_beside_another : watch_suite<watch_comes_and_goes_beside_another, 2> {
	void thread(unsigned i)
	{
		if (i == 1) {
			meet_signal();
			return;
		}
		for (int watches = 0; watches < 2; watches++) {
			restore();
			begin_beside();
		}
	}

	void after()
	{
		RL_ASSERT(counted + raised == 1 && action_of_it == OURS);
	}
};
SCENARIO(watch_comes_and_goes_beside_another, 100000, 4);

/* The same, and in the end nobody watches it: our handler does not stay. */
struct watch_ends_beside_another : watch_suite<watch_ends_beside_another, 2> {
	void thread(unsigned i)
	{
		if (i == 1) {
			meet_signal();
			return;
		}
		for (int watches = 0; watches < 2; watches++) {
			restore();
			begin_beside();
		}
		restore();
	}

	void after()
	{
		RL_ASSERT(counted + raised == 1 && action_of_it == BEFORE);
	}
};
SCENARIO(watch_ends_beside_another, 100000, 5);

/* Nobody watches it any more (but another one), and the user has set an action of his own: a late handler leaves it, and the signal is met by it. */
struct watch_late_handler_leaves_what_the_user_set : watch_suite<watch_late_handler_leaves_what_the_user_set, 2> {
	void thread(unsigned i)
	{
		if (i == 1) {
			meet_signal();
			return;
		}
		restore();
		sigaction_of(USERS);
	}

	void after()
	{
		RL_ASSERT(counted + raised == 1 && action_of_it == USERS);
	}
};
SCENARIO(watch_late_handler_leaves_what_the_user_set, 50000, 5);

/* A child after fork(): our handler is there, but nobody watches. It gives the signal to what was before. */
struct watch_child_gives_it_back : watch_suite<watch_child_gives_it_back, 2> {
	void before()
	{
		watch_suite::before();
		handlers.watched.store(0, rl::mo_relaxed, $);
		bell($) = 0;
	}

	void thread(unsigned)
	{
		meet_signal();
	}

	void after()
	{
		RL_ASSERT(counted == 0 && raised == 2 && action_of_it == BEFORE);
	}
};
SCENARIO(watch_child_gives_it_back, 20000, 5);
