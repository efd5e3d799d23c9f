/* SPDX-License-Identifier: MIT */
/* A fiber's name at a seat (src/io/sitter.h): called by the thread of the desk, while a deadline or a cancel, on another thread, may end the
 * wait. The fiber begins its wait and parks on the desk's thread, thread 0; once somebody has made it ready it goes on on another
 * worker, thread 2. The place for its result is on its stack, which is another function's as soon as it has gone on: a plain field
 * here, so that a late write is a race.                                                                                       */
#include "base/atomic.h"
#include "model_wait.h"

#include "model.h"

struct sitter_result {
	rl::var<int> value;

	void operator=(int result)
	{
		value($) = result;
	}
};

#include "io/sitter.h"

enum { NOTHING = 0, RESULT = 7, OTHER_RESULT = 8, GONE = 99 };

template <typename T> struct sit_suite : rl::test_suite<T, 3> {
	struct waiter waiters[1]; /* the fiber */
	struct sitter seats[2];   /* one at each desk, touched by its thread alone */
	struct sitter_result places[2];
	rl::atomic<int> asked; /* it is cancelled */
	rl::atomic<int> went;  /* it went on without parking */
	struct wait first;     /* known before it begins, so that the others may come too early */
	int called, ended, late;

	void before()
	{
		waiters[0].cell.word.store(0, rl::mo_relaxed, $);
		waiters[0].is_thread = false;
		parker_init(&waiters[0].parker);
		asked.store(0, rl::mo_relaxed, $);
		went.store(0, rl::mo_relaxed, $);
		called = ended = late = 0;
		first.who = &waiters[0];
		first.turn = 1;
	}

	/* sit(), on the thread of that desk */
	void sit(int seat)
	{
		struct wait wait = { &waiters[0], cell_begin(&waiters[0].cell, false) };

		places[seat] = NOTHING;
		seats[seat].wait = wait;
		seats[seat].result = &places[seat];
	}

	/* How the wait ended; and the fiber's function returns. */
	enum cell_phase go_on(int seat, int result)
	{
		enum cell_phase end = cell_end(&waiters[0].cell);

		ended++;
		RL_ASSERT(places[seat].value($) == (end == CELL_WOKEN ? result : NOTHING));
		places[seat] = GONE;
		return end;
	}

	/* On the loop of the desk. When it does not park it goes on here, and nobody has to make it ready. */
	void park()
	{
		if (cell_park(&waiters[0].cell)) {
			if (!asked.load(rl::mo_seq_cst, $) ||
			    cell_claim(&waiters[0].cell, first.turn, CELL_CANCELLED) != CELL_OURS_PARKED)
				return;
		}
		go_on(0, RESULT);
		went.store(1, rl::mo_relaxed, $);
		parker_unpark(&waiters[0].parker);
	}

	/* call() */
	void call(int seat, int result)
	{
		struct waiter *who = seats[seat].wait.who;
		enum cell_claim claim = who ? sitter_claim(&seats[seat], &who->cell, result) : CELL_NOT_OURS;

		called += claim != CELL_NOT_OURS;
		if (claim == CELL_OURS_PARKED)
			parker_unpark(&who->parker);
		RL_ASSERT(!seats[seat].wait.who); /* a name is good for one call */
	}

	void end_as(enum cell_phase phase)
	{
		enum cell_claim claim = cell_claim(&waiters[0].cell, first.turn, phase);

		late += claim != CELL_NOT_OURS;
		if (claim == CELL_OURS_PARKED)
			parker_unpark(&waiters[0].parker);
	}

	void cancel()
	{
		asked.store(1, rl::mo_seq_cst, $);
		if (cell_cancel(&waiters[0].cell) == CELL_OURS_PARKED)
			parker_unpark(&waiters[0].parker);
	}

	/* Another worker takes it out of a queue. False: it went on where it was. */
	bool is_ready()
	{
		while (!parker_park(&waiters[0].parker, HIVE_FOREVER))
			;
		return !went.load(rl::mo_relaxed, $);
	}

	void after()
	{
		RL_ASSERT(places[0].value($) == GONE &&
		          waiters[0].parker.state.load(rl::mo_relaxed, $) == PARKER_EMPTY);
	}
};

/* An event at the seat, and a deadline. */
struct sit_call_against_a_deadline : sit_suite<sit_call_against_a_deadline> {
	void thread(unsigned i)
	{
		if (i == 0) {
			sit(0);
			park();
			call(0, RESULT);
		} else if (i == 1) {
			end_as(CELL_LATE);
		} else if (is_ready()) {
			go_on(0, RESULT);
		}
	}

	void after()
	{
		sit_suite::after();
		RL_ASSERT(ended == 1 && called + late == 1);
	}
};
SCENARIO(sit_call_against_a_deadline, 50000, 4);

/* An event at the seat, and a cancel, which may come before it parks: it looks when it has parked. */
struct sit_call_against_a_cancel : sit_suite<sit_call_against_a_cancel> {
	void thread(unsigned i)
	{
		if (i == 0) {
			sit(0);
			park();
			call(0, RESULT);
		} else if (i == 1) {
			cancel();
		} else if (is_ready()) {
			go_on(0, RESULT);
		}
	}

	void after()
	{
		sit_suite::after();
		RL_ASSERT(ended == 1 && called <= 1);
	}
};
SCENARIO(sit_call_against_a_cancel, 50000, 4);

/* Called before it has parked: by what the fiber itself does on its way there. */
struct sit_called_before_it_parks : sit_suite<sit_called_before_it_parks> {
	void thread(unsigned i)
	{
		if (i == 0) {
			sit(0);
			call(0, RESULT);
			park();
		} else if (i == 1) {
			end_as(CELL_LATE);
		} else {
			RL_ASSERT(!is_ready());
		}
	}

	void after()
	{
		sit_suite::after();
		RL_ASSERT(ended == 1 && called + late == 1);
	}
};
SCENARIO(sit_called_before_it_parks, 50000, 4);

/* Its first wait has ended, by a call or without, and it sits at the seat of another desk: who calls it by its old name calls nobody. */
struct sit_old_name_calls_nobody : sit_suite<sit_old_name_calls_nobody> {
	void sit_again()
	{
		sit(1);
		RL_ASSERT(cell_park(&waiters[0].cell));
		call(1, OTHER_RESULT);
		while (!parker_park(&waiters[0].parker, HIVE_FOREVER))
			;
		RL_ASSERT(go_on(1, OTHER_RESULT) == CELL_WOKEN);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			sit(0);
			park();
			call(0, RESULT);
		} else if (i == 1) {
			end_as(CELL_LATE);
		} else if (is_ready()) {
			go_on(0, RESULT);
			sit_again();
		} else {
			sit_again();
		}
	}

	void after()
	{
		sit_suite::after();
		RL_ASSERT(ended == 2 && called + late == 2);
	}
};
SCENARIO(sit_old_name_calls_nobody, 50000, 4);
