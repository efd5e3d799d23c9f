/* SPDX-License-Identifier: MIT */
#pragma once
#include "explore.h"

/* Takes away decisions as long as what is left still fails. */
void shrink(struct schedule *schedule, bool (*fails)(const struct schedule *schedule, void *arg), void *arg);
/* "12:3,40!": at step 12 thread 3, at step 40 a fault. False: it is not one. */
bool parse_schedule(const char *text, struct schedule *ret_schedule);
