/* SPDX-License-Identifier: MIT */
/* Guests in the books of the hive: those that keep tasks of their own, and those that will not run. */
#include "sched/guest.h"
#include "sched/internal.h"

void hive__guest_ran(uint32_t tasks, bool called)
{
	struct worker *w = hive__current();
	uint64_t more = (uint64_t)tasks - called;

	if (more == 0)
		return;
	bump(&w->stats.posted, more);
	bump(&w->stats.ran, more);
}

void hive__guest_drop_task(struct hive *hive, struct hive_task task)
{
	add_relaxed(&hive->readied, 1u);
	hive__drop(hive, task);
}

/* Any thread. A guest's task was to be dropped: one that has begun has to end, so it runs; another one is told. */
void hive__drop_guest(struct hive *hive, struct guest *guest)
{
	struct worker *w = hive__current_in(hive);

	if (!guest->drop && w) {
		hive__run_task(w, (struct hive_task){ hive__run_guest, guest });
		return;
	}
	CHECK(guest->drop);
	lock_acquire(&hive->drop_lock);
	bump(&hive->dropped, 1);
	lock_release(&hive->drop_lock);
	guest->drop(guest);
}

void hive__guest_not_dropped(struct hive *hive)
{
	lock_acquire(&hive->drop_lock);
	bump(&hive->dropped, (uint64_t)-1);
	lock_release(&hive->drop_lock);
	sub_relaxed(&hive->readied, 1u);
}
