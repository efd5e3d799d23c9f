/* SPDX-License-Identifier: MIT */
/* The names of all faults that this program knows: those that it never comes by too. */
#include <stdlib.h>
#include <string.h>

#include "explore.h"

extern const char __start_hive_faults[], __stop_hive_faults[]; /* base/fault.h; the linker knows where it lies */

static struct {
	const char *names[FAULT_NAMES + 1];
	uint64_t counts[FAULT_NAMES + 1];
	int count;
} faults;

/* Its number, or the one that it gets. */
static int place_of(const char *name)
{
	int i = 0;

	while (i < faults.count && strcmp(faults.names[i], name) < 0)
		i++;
	return i;
}

static void add(const char *name)
{
	int at = place_of(name);

	if (at < faults.count && strcmp(faults.names[at], name) == 0)
		return;
	if (faults.count == FAULT_NAMES)
		abort();
	memmove(&faults.names[at + 1], &faults.names[at], (size_t)(faults.count++ - at) * sizeof faults.names[0]);
	faults.names[at] = name;
}

/* One behind the other, with zeros between them. */
static void find_all(void)
{
	for (const char *at = __start_hive_faults; at < __stop_hive_faults; at += strlen(at) + 1)
		if (*at)
			add(at);
}

const char *explore_fault_name(int n)
{
	if (faults.count == 0)
		find_all();
	return faults.names[n];
}

uint64_t explore_fault_count(int n)
{
	return faults.counts[n];
}

void fault_note(const char *name)
{
	explore_fault_name(0);
	faults.counts[place_of(name)]++;
}

bool fault_is_akin(const char *name, int n)
{
	const char *other = n < 0 ? NULL : explore_fault_name(n);
	size_t word = strcspn(name, " ");

	return other && strcspn(other, " ") == word && memcmp(name, other, word) == 0;
}
