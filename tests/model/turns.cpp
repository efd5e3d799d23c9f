/* SPDX-License-Identifier: MIT */
/* Strands (src/group/turns.h) and the counts of a graph (countdown.h).
 *
 * Whoever calls a drain lays it where all threads look, and looks there himself before he ends; so what is never called is what was
 * forgotten. `guarded` is a plain variable that nothing but the strand protects.                                            */
#define LINE_TASKS 2
#include "group/countdown.h"
#include "group/turns.h"

#include "model.h"

#define POISON UINT64_C(0xdead0)
#define MARKED 1 /* this task runs alone, where it does */

template <typename T, int THREADS, int TASKS, int WIDTH> struct turns_suite : rl::test_suite<T, THREADS> {
	struct turns turns;
	uint64_t numbers[WIDTH];
	struct line_chunk chunks[TASKS];
	model_tasks<TASKS> tasks;
	rl::var<int> guarded;
	rl::atomic<int> moment;
	uint64_t ready; /* drains that were called */
	int holds, running, chunks_given;
	bool alone, marks, destroys, gone;
	bool pairs; /* who posts 2n posts 2n + 1 next */

	void before()
	{
		turns_init(&turns, WIDTH, numbers);
		guarded($) = 0;
		moment.store(0, rl::mo_relaxed, $);
		ready = 0;
		holds = running = chunks_given = 0;
		alone = marks = destroys = gone = pairs = false;
	}

	/* As post() in strand.c, of somebody who has brought all that he may need. */
	void post(int i)
	{
		struct line_chunk *fresh = &chunks[chunks_given++];
		hive_task task = tasks.make(i);
		bool was_held;
		uint64_t word = latch_take(&turns.word);
		int called = turns_put(&turns, &word, task, marks && i == MARKED, &fresh, &was_held);

		holds += !was_held;
		latch_give(&turns.word, word);
		call(called);
	}

	void call(int drain)
	{
		if (drain != TURNS_NOBODY)
			ready |= UINT64_C(1) << drain;
	}

	void run_task(hive_task task)
	{
		int i = tasks.run(task);

		RL_ASSERT(!alone && running < WIDTH);
		RL_ASSERT(!pairs || i % 2 == 0 || tasks.ran[i - 1]);
		alone = marks && i == MARKED;
		RL_ASSERT(!alone || running == 0);
		running++;
		if (WIDTH == 1 || alone)
			guarded($) = guarded($) + 1;
		else
			RL_ASSERT(guarded($) >= 0);
		moment.load(rl::mo_relaxed, $); /* others may come, and must not */
		running--;
		alone = false;
	}

	/* As go_on() and work(). */
	void drain(int index)
	{
		bool had = false, took, is_last = false;

		do {
			struct line_chunk *empty = NULL;
			int called = TURNS_NOBODY;
			hive_task task;
			uint64_t word = latch_take(&turns.word);

			RL_ASSERT(!gone);
			if (had)
				turns_end(&turns, &word, index);
			took = turns_take(&turns, &word, index, &task, &empty);
			if (took)
				called = turns_call(&turns, word);
			else
				is_last = turns_rest(&turns, &word, index);
			latch_give(&turns.word, word);
			call(called);
			had = took;
			if (took)
				run_task(task);
			else if (is_last && (word & TURNS_GONE))
				free_it();
		} while (took);
		holds -= is_last;
	}

	void free_it()
	{
		RL_ASSERT(!gone);
		gone = true;
		turns.word.store(POISON, rl::mo_relaxed, $);
	}

	/* As hive_strand_destroy(). False: something is still to be done. */
	bool destroy()
	{
		uint64_t word = latch_take(&turns.word);
		bool is_over = turns_are_over(&turns, word);

		RL_ASSERT(!is_over || (running == 0 && tasks.count == TASKS));
		if (is_over)
			word |= TURNS_GONE;
		latch_give(&turns.word, word);
		if (is_over && !(word & TURNS_HELD))
			free_it();
		return is_over;
	}

	void work()
	{
		while (ready) {
			int index = __builtin_ctzll(ready);

			ready &= ready - 1;
			drain(index);
		}
	}

	void after()
	{
		RL_ASSERT(tasks.count == TASKS && holds == 0 && ready == 0);
		if (destroys) {
			RL_ASSERT(gone && turns.word.load(rl::mo_relaxed, $) == POISON);
			return;
		}
		RL_ASSERT(turns.word.load(rl::mo_relaxed, $) == 0);
		RL_ASSERT(turns.resting == turns_all(&turns) && turns_ended(&turns) == TASKS);
		if (WIDTH == 1)
			RL_ASSERT(guarded($) == TASKS);
	}
};

/* Nobody is forgotten between "nothing is left" and "it rests", and there is one at a time. */
struct turns_two_post_one_at_a_time : turns_suite<turns_two_post_one_at_a_time, 2, 4, 1> {
	void before()
	{
		turns_suite::before();
		pairs = true;
	}

	void thread(unsigned i)
	{
		post((int)i * 2);
		post((int)i * 2 + 1);
		work();
	}
};
SCENARIO(turns_two_post_one_at_a_time, 20000, 3);

struct turns_three_post_nobody_is_forgotten : turns_suite<turns_three_post_nobody_is_forgotten, 3, 3, 1> {
	void thread(unsigned i)
	{
		post((int)i);
		work();
	}
};
SCENARIO(turns_three_post_nobody_is_forgotten, 20000, 2);

/* Two wide: both drains work, and a third task finds one of them. */
struct turns_two_at_a_time : turns_suite<turns_two_at_a_time, 3, 3, 2> {
	void thread(unsigned i)
	{
		post((int)i);
		work();
	}
};
SCENARIO(turns_two_at_a_time, 20000, 2);

/* A task, one that runs alone, and others after it: who rests because of it is called again. */
struct turns_one_runs_alone : turns_suite<turns_one_runs_alone, 2, 4, 2> {
	void before()
	{
		turns_suite::before();
		marks = true;
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			post(0);
			post(MARKED);
			post(2);
		} else {
			post(3);
		}
		work();
	}
};
SCENARIO(turns_one_runs_alone, 20000, 3);

/* Who sees that all is over destroys it, while a drain may be out for nothing: it goes once, and nobody looks at it afterwards. */
struct turns_destroyed_while_a_drain_is_out : turns_suite<turns_destroyed_while_a_drain_is_out, 2, 2, 2> {
	void before()
	{
		turns_suite::before();
		destroys = true;
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			post(0);
			post(1);
		}
		work();
		if (i == 0) { /* the other one may still be at it */
			while (!destroy())
				rl::yield(1, $);
			work();
		}
	}
};
SCENARIO(turns_destroyed_while_a_drain_is_out, 20000, 3);

/* Two come before one, again and again: the last of each run has the node, sees both, and begins the next run. */
struct countdown_last_of_each_run_has_the_node : rl::test_suite<countdown_last_of_each_run_has_the_node, 2> {
	struct countdown countdown;
	rl::var<int> work[2];
	rl::var<int> sum;
	rl::atomic<int> next;
	int calls;

	void before()
	{
		countdown.needs = 2;
		countdown_begin(&countdown);
		work[0]($) = work[1]($) = 0;
		sum($) = 0;
		next.store(1, rl::mo_relaxed, $);
		calls = 0;
	}

	/* The second run begins when the node has run in the first; who waits for that is told as by a queue. */
	void thread(unsigned i)
	{
		for (int run = 1; run <= 2; run++) {
			work[i]($) = work[i]($) + 1;
			if (countdown_is_last(&countdown)) {
				countdown_begin(&countdown);
				sum($) = work[0]($) + work[1]($);
				RL_ASSERT(sum($) == 2 * run && ++calls == run);
				next.store(run + 1, rl::mo_release, $);
			}
			while (run == 1 && next.load(rl::mo_acquire, $) < 2)
				rl::yield(1, $);
		}
	}

	void after()
	{
		RL_ASSERT(calls == 2 && sum($) == 4);
	}
};
SCENARIO(countdown_last_of_each_run_has_the_node, 20000, 4);

/* Nodes behind which there is nothing are counted, and so is who starts: who counts to the end may free what the others have left. */
struct countdown_the_end_comes_once : rl::test_suite<countdown_the_end_comes_once, 3> {
	struct countdown pending;
	rl::var<int> graph;
	int ends;

	void before()
	{
		pending.needs = 3;
		countdown_begin(&pending);
		graph($) = 1;
		ends = 0;
	}

	void thread(unsigned)
	{
		RL_ASSERT(graph($) == 1);
		if (countdown_is_last(&pending)) {
			graph($) = 2; /* gone */
			ends++;
		}
	}

	void after()
	{
		RL_ASSERT(ends == 1);
	}
};
SCENARIO(countdown_the_end_comes_once, 20000, 4);
