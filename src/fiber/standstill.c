/* SPDX-License-Identifier: MIT */
/* Do all fibers of a hive wait for each other? Asked by the monitor when no worker runs and nothing is under way (sched/standstill.c). */
#include <stdio.h>
#include <string.h>

#include "fiber/fiber.h"

enum { FIBERS_TOLD = 16, LINE_BYTES = 200 };

struct survey {
	uint64_t waiting, others;
	void *to;
	void (*say)(void *to, const char *line); /* NULL: they are only counted */
};

/* These end only when somebody does something who runs: another fiber, a task, a thread. All other reasons (a descriptor, a signal, a child, a
 * name, a bus) may end by themselves. A reason that is missing here keeps a report from being made, no more.                   */
static bool is_for_others(const char *why)
{
	static const char *const reasons[] = {
		WAIT_MUTEX, WAIT_JOIN,       "wait_any",         "condition", "semaphore",
		"barrier",  "channel: send", "channel: receive", "group",
	};

	for (size_t i = 0; why && i < sizeof reasons / sizeof *reasons; i++)
		if (strcmp(why, reasons[i]) == 0)
			return true;
	return false;
}

static void tell(struct survey *s, struct hive_fiber *f, const char *why)
{
	char line[LINE_BYTES], self[WHOM_BYTES], other[WHOM_BYTES] = "";
	struct whom me = { .waiter = (uintptr_t)&f->waiter }, whom;

	fiber_name_read(f, me.name);
	hive__spell_whom(&me, self);
	if (hive__fiber_whom(f, &whom))
		hive__spell_whom(&whom, other);
	snprintf(line, sizeof line, "  %s waits: %s%s%s", self, why, other[0] ? ", for " : "", other);
	s->say(s->to, line);
}

static void visit(void *arg, struct stack stack)
{
	struct survey *s = (struct survey *)arg;
	struct hive_fiber *f = fiber_of_stack(stack);
	const char *why = load_relaxed(&f->waiter.why);

	if ((load_relaxed(&f->fate) & FATE_LIFE) == 0 || load_relaxed(&f->began) == 2)
		return;
	if (cell_phase_of(load_relaxed(&f->waiter.cell.word)) != CELL_PARKED || !is_for_others(why)) {
		s->others++;
		return;
	}
	if (s->say && s->waiting < FIBERS_TOLD)
		tell(s, f, why);
	s->waiting++;
}

uint64_t hive__fibers_standstill(void *fibers, void *to, void (*say)(void *to, const char *line))
{
	struct survey survey = { 0, 0, to, say };

	hive__stacks_visit(((struct fibers *)fibers)->stacks, visit, &survey);
	return survey.others == 0 ? survey.waiting : 0;
}
