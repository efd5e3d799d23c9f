/* SPDX-License-Identifier: MIT */
#pragma once
#include "record.h"

/* `hive doctor`: facts in sections, and what follows from them. */
#define CHECKUP_SECTIONS 8
#define CHECKUP_WARNINGS 16

struct checkup {
	struct record sections[CHECKUP_SECTIONS];
	const char *titles[CHECKUP_SECTIONS];
	size_t section_count;
	char warnings[CHECKUP_WARNINGS][256];
	size_t warning_count;
	bool unusable; /* a hive cannot run here at all */
};

/* The next section; facts are added to it with record_text() and its kin. */
struct record *checkup_section(struct checkup *checkup, const char *title);
__attribute__((format(printf, 2, 3))) void checkup_warn(struct checkup *checkup, const char *format, ...);

void doctor_look_at_system(struct checkup *checkup);
void doctor_look_at_cpus(struct checkup *checkup);
void doctor_look_at_clock(struct checkup *checkup);
void doctor_look_at_limits(struct checkup *checkup);
void doctor_look_at_priorities(struct checkup *checkup);
void doctor_look_at_cores(struct checkup *checkup);
void doctor_try_a_hive(struct checkup *checkup);

int doctor_main(int argc, char **argv);
