/* SPDX-License-Identifier: MIT */
/* How workers become visible: slots, ids, live bits, the main worker. Thread 0 attaches and detaches, the others look. */
#define SLOTS_MAX 2
#define IDLE_WORKERS 2
#define ROSTER_SHEETS 2
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
		set.roster.page.store(0, rl::mo_relaxed, $);
		for (struct roster_sheet &sheet : set.roster.sheets) {
			sheet.version.store(0, rl::mo_relaxed, $);
			sheet.count.store(0, rl::mo_relaxed, $);
			for (ATOMIC(uint16_t) &slot : sheet.slots)
				slot.store(0, rl::mo_relaxed, $);
		}
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

	/* As hive__draw_two() does it, without luck, and once: it may read an old page for ever here. NULL: fewer than that. */
	struct worker *draw(uint32_t nth)
	{
		struct roster_view view = roster_look(&set.roster);
		struct worker *w;

		if (nth >= view.count)
			return NULL;
		w = hive__slot(&set, roster_at(&view, nth));
		return roster_holds(&view) ? w : NULL;
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

/* Whoever stands in the list is there. */
struct slots_whoever_is_drawn_is_there : slots_suite<slots_whoever_is_drawn_is_there, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			attach(0, 2048, true);
			attach(1, 2049, true);
			detach(0);
		} else {
			struct worker *w = draw(i - 1);

			RL_ASSERT(!w || w->made($) >= 0);
		}
	}
};
SCENARIO(slots_whoever_is_drawn_is_there, 50000, 3);

/* A reader is held up while the list changes, so often that his sheet is filled anew: what holds is one of the lists. */
struct slots_list_is_a_snapshot : slots_suite<slots_list_is_a_snapshot, 2> {
	void thread(unsigned i)
	{
		static const uint16_t first[] = { 1, 2 }, second[] = { 3 }, third[] = { 4 };

		if (i == 0) {
			roster_write(&set.roster, first, 2);
			roster_write(&set.roster, second, 1);
			roster_write(&set.roster, third, 1);
			return;
		}
		struct roster_view view = roster_look(&set.roster);
		uint32_t a = view.count > 0 ? roster_at(&view, 0) : 0, b = view.count > 1 ? roster_at(&view, 1) : 0;

		if (roster_holds(&view))
			RL_ASSERT(a * 10 + b == 0 || a * 10 + b == 12 || a * 10 + b == 30 || a * 10 + b == 40);
	}
};
SCENARIO(slots_list_is_a_snapshot, 50000, 6);

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
			struct worker *w = draw(0);

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
