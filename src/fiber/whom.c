/* SPDX-License-Identifier: MIT */
/* Whom a fiber waits for, as it looks from outside: for dumps and reports. The mutex may be gone by the time we look, and its holder
 * too: hence the system reads what is theirs.                                                                              */
#include <stdio.h>
#include <string.h>

#include "base/peek.h"
#include "fiber/fiber.h"

/* A wait for somebody who can be named has one of these reasons. */
static bool names_somebody(const char *why)
{
	return why && (strcmp(why, WAIT_MUTEX) == 0 || strcmp(why, WAIT_JOIN) == 0);
}

/* The waiter; 0: nobody holds it now, or it cannot be found out. */
static uintptr_t find_waiter(uintptr_t detail)
{
	uint64_t word;

	if (detail & 1)
		return detail & ~(uintptr_t)1;
	return hive__peek((const void *)detail, &word, sizeof word) ? (uintptr_t)word & ~(uintptr_t)7 : 0;
}

bool hive__fiber_whom(struct hive_fiber *f, struct whom *ret_whom)
{
	struct whom whom = { 0 };

	if (!names_somebody(load_relaxed(&f->waiter.why)))
		return false;
	whom.waiter = find_waiter(load_relaxed(&f->waiter.detail));
	if (!whom.waiter ||
	    !hive__peek((const char *)whom.waiter + offsetof(struct waiter, thread), &whom.thread, sizeof whom.thread))
		return false;
	if (!whom.thread) {
		const char *fiber = (const char *)whom.waiter - offsetof(struct hive_fiber, waiter);

		if (!hive__peek(fiber + offsetof(struct hive_fiber, name), whom.name, sizeof whom.name))
			return false;
		whom.name[sizeof whom.name - 1] = 0;
	}
	*ret_whom = whom;
	return true;
}

void hive__spell_whom(const struct whom *whom, char ret_text[WHOM_BYTES])
{
	if (whom->thread)
		snprintf(ret_text, WHOM_BYTES, "thread %u", whom->thread);
	else if (whom->name[0])
		snprintf(ret_text, WHOM_BYTES, "fiber %s", whom->name);
	else
		snprintf(ret_text, WHOM_BYTES, "fiber 0x%zx",
		         (size_t)(whom->waiter - offsetof(struct hive_fiber, waiter)));
}
