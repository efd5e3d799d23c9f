/* SPDX-License-Identifier: MIT */
/* The inbox: many posters, one owner. Thread 0 is the owner. */
#include "queue/inbox.h"

#include "model.h"

struct message {
	struct letter letter; /* first: a letter is its message */
	rl::var<int> text;
	int taken;
};

template <typename T, int THREADS, int MESSAGES> struct inbox_suite : rl::test_suite<T, THREADS> {
	struct inbox inbox;
	struct message messages[MESSAGES];
	int taken, refused;

	void before()
	{
		inbox_init(&inbox);
		for (message &m : messages)
			m.taken = 0;
		taken = refused = 0;
	}

	bool push(int i)
	{
		bool pushed;

		messages[i].text($) = i;
		pushed = inbox_push(&inbox, &messages[i].letter);
		refused += !pushed;
		return pushed;
	}

	/* How many there were. Numbers of one poster must rise; poster p sends the numbers 2p and 2p + 1. */
	int read(struct letter *letters)
	{
		int count = 0, last[MESSAGES];

		for (int &l : last)
			l = -1;
		for (; letters; letters = letters->next, count++) {
			message *m = (message *)letters;
			int i = (int)(m - messages);

			RL_ASSERT(m->text($) == i && !m->taken);
			RL_ASSERT(last[i / 2] < i);
			RL_ASSERT(i % 2 == 0 || messages[i - 1].taken);
			last[i / 2] = i;
			m->taken = 1;
		}
		taken += count;
		return count;
	}
};

struct inbox_two_posters_lose_nothing : inbox_suite<inbox_two_posters_lose_nothing, 3, 4> {
	void thread(unsigned i)
	{
		if (i == 0) {
			read(inbox_take(&inbox));
			read(inbox_take(&inbox));
		} else {
			push((int)i * 2 - 2);
			push((int)i * 2 - 1);
		}
	}

	void after()
	{
		read(inbox_take(&inbox));
		RL_ASSERT(taken == 4 && inbox_is_empty(&inbox));
	}
};
SCENARIO(inbox_two_posters_lose_nothing, 50000, 4);

struct inbox_close_refuses_or_delivers : inbox_suite<inbox_close_refuses_or_delivers, 3, 4> {
	void thread(unsigned i)
	{
		if (i == 0) {
			read(inbox_close(&inbox));
		} else if (!push((int)i * 2 - 2)) {
			RL_ASSERT(!push((int)i * 2 - 1)); /* once closed, always closed */
		} else {
			push((int)i * 2 - 1);
		}
	}

	void after()
	{
		RL_ASSERT(taken + refused == 4);
		RL_ASSERT(inbox_is_empty(&inbox) && inbox_close(&inbox) == NULL);
	}
};
SCENARIO(inbox_close_refuses_or_delivers, 50000, 4);

/* The owner leaves and comes back: each letter was read by one of them, or refused. */
struct inbox_reopened_takes_letters_again : inbox_suite<inbox_reopened_takes_letters_again, 2, 2> {
	void thread(unsigned i)
	{
		if (i == 0) {
			read(inbox_close(&inbox));
			inbox_open(&inbox);
			read(inbox_take(&inbox));
		} else {
			push(0);
			if (refused == 0)
				push(1);
			else
				refused++;
		}
	}

	void after()
	{
		read(inbox_take(&inbox));
		RL_ASSERT(taken + refused == 2);
	}
};
SCENARIO(inbox_reopened_takes_letters_again, 50000, 6);
