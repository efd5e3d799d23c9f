/* SPDX-License-Identifier: MIT */
#pragma once
/* A wire between two ends, and what became of the bytes on it. */
#include "crew.h"

extern struct line {
	int in, out;       /* read from one, write to the other */
	int64_t sent, got; /* bytes */
	int waiting;       /* who waits to receive: fibers and operations */
	int owed;          /* operations that have been asked to end, and have not */
	bool ended;        /* nothing more will be sent, or that is being said */
} line;

/* A hive with descriptors, on whatever core, and a line. False: a fault was in the way. */
bool line_open(struct range io);
/* What is still on the way counts as well; nothing is left behind. After the end of the hive. */
void line_close(void);
/* As much as fits in, so that a send has to wait. */
void line_fill(void);
/* A thread that sends so often, and then says that this was all. */
void line_writer(void *count);
/* A thread that takes what comes, until there is no more. */
void line_reader(void *arg);
void line_end(void);
/* What an operation or a call of a fiber may say; self and deadline as in crew_check_wait(). */
void line_check(int self, int64_t r, int64_t deadline);
