/* SPDX-License-Identifier: MIT */
/* How workers become visible: slots, ids, live bits, the main worker. Thread 0 attaches and detaches, the others look. */
#define SLOTS_MAX 2
#define IDLE_WORKERS 2
#include "base/atomic.h"
#include "queue/inbox.h"
#include "sched/slots.h"

#include "model.h"

/* Of a worker: what others may look at without a lock. */
struct worker {
	ATOMIC(uint32_t) id;
	struct inbox inbox;
	rl::var<int> made; /* once, with the slot */
};

template <typename T, int THREADS> struct slots_suite : rl::test_suite<T, THREADS> {
	struct workers set;
	struct worker workers[2];
	struct letter letters[2];
	ATOMIC(struct worker *) main;

	void before()
	{
		for (ATOMIC(struct worker *) &slot : set.slots)
			slot.store(NULL, rl::mo_relaxed, $);
		set.live[0].store(0, rl::mo_relaxed, $);
		set.limit.store(0, rl::mo_relaxed, $);
		set.count.store(0, rl::mo_relaxed, $);
		main.store(NULL, rl::mo_relaxed, $);
		for (struct worker &w : workers)
			w.id.store(HIVE_WORKER_NONE, rl::mo_relaxed, $);
	}

	/* As take_slot() in registry.c does it: a slot is made once, and opened again for the next life. */
	void attach(uint32_t index, uint32_t id, bool is_new)
	{
		struct worker *w = &workers[index];

		if (is_new) {
			w->made($) = (int)index;
			inbox_init(&w->inbox);
			slots_publish(&set, index, w);
		} else {
			inbox_open(&w->inbox);
		}
		slots_name(&w->id, id);
		slots_set_live(&set, index, true);
	}

	void detach(uint32_t index)
	{
		slots_unname(&workers[index].id);
		slots_set_live(&set, index, false);
		inbox_close(&workers[index].inbox);
	}

	/* As find() does it. */
	struct worker *find(uint32_t index, uint32_t id)
	{
		struct worker *w;

		if (index >= hive__limit(&set))
			return NULL;
		w = hive__slot(&set, index);
		RL_ASSERT(w && w->made($) == (int)index);
		return slots_name_of(&w->id) == id ? w : NULL;
	}
};

struct slots_are_complete_when_seen : slots_suite<slots_are_complete_when_seen, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			attach(0, 2048, true);
			attach(1, 2049, true);
		} else {
			for (uint32_t at = 0; at < hive__limit(&set); at++)
				RL_ASSERT(hive__slot(&set, at)->made($) == (int)at);
			find(1, 2049);
		}
	}
};
SCENARIO(slots_are_complete_when_seen, 50000, 3);

/* A slot beyond the limit that the looker read may have become live meanwhile. */
struct slots_nth_live_is_there : slots_suite<slots_nth_live_is_there, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			attach(0, 2048, true);
			attach(1, 2049, true);
			detach(0);
		} else {
			struct worker *w = hive__nth_live(&set, i - 1);

			RL_ASSERT(!w || w->made($) >= 0);
		}
	}
};
SCENARIO(slots_nth_live_is_there, 50000, 3);

/* Found by the id of its second life: the inbox is open. By that of its first: never the second. */
struct slots_next_life_has_an_open_inbox : slots_suite<slots_next_life_has_an_open_inbox, 2> {
	void before()
	{
		slots_suite::before();
		attach(0, 2048, true);
		detach(0);
	}

	void thread(unsigned i)
	{
		if (i == 0)
			attach(0, 4096, false);
		else if (find(0, 4096))
			RL_ASSERT(inbox_push(&workers[0].inbox, &letters[0]));
		else
			RL_ASSERT(!find(0, 2048));
	}
};
SCENARIO(slots_next_life_has_an_open_inbox, 50000, 6);

struct slots_live_worker_has_a_name : slots_suite<slots_live_worker_has_a_name, 3> {
	void before()
	{
		slots_suite::before();
		attach(0, 2048, true);
		detach(0);
	}

	void thread(unsigned i)
	{
		if (i == 0) {
			attach(0, 4096, false);
		} else if (i == 1 && hive__is_live(&set, 0)) {
			RL_ASSERT(slots_name_of(&workers[0].id) == 4096);
		} else if (i == 2) {
			struct worker *w = hive__nth_live(&set, 0);

			RL_ASSERT(!w || inbox_push(&w->inbox, &letters[0]));
		}
	}
};
SCENARIO(slots_live_worker_has_a_name, 50000, 5);

struct slots_main_worker_is_complete : slots_suite<slots_main_worker_is_complete, 3> {
	void thread(unsigned i)
	{
		struct worker *w;

		if (i == 0) {
			attach(0, 2048, true);
			slots_publish_main(&main, &workers[0]);
		} else if ((w = slots_main(&main)) != NULL) {
			RL_ASSERT(w->made($) == 0);
			RL_ASSERT(inbox_push(&w->inbox, &letters[i - 1]));
		}
	}
};
SCENARIO(slots_main_worker_is_complete, 50000, 4);
