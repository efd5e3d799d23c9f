/* SPDX-License-Identifier: MIT */
#pragma once
/* Descriptor numbers: each begins a new life whenever it is made or closed, and a worker that has registered something under it in an older
 * one must not rely on that.
 *
 * Numbers belong to the process, so their lives are counted for all hives, and for threads of none. Numbers that differ by a multiple of
 * NUMBERS share a count, which is harmless. Whatever of ours makes or closes a descriptor that an operation may wait for does so through
 * this file; what the user does behind our back is found out later (doubt.c).                                                   */
#include "base/atomic.h"

enum { NUMBERS = 4096 };

extern ATOMIC(uint32_t) hive__number_lives[NUMBERS]; /* A */

/* Relaxed: who uses a number has it from who made it, and sees what he did before. */
static inline uint32_t number_life(int fd)
{
	return load_relaxed(&hive__number_lives[(uint32_t)fd % NUMBERS]);
}

/* Any thread. It begins a new life, or, just before it is closed, ends one; negative: nothing happens. On an IO worker whoever waits for
 * the old one there is told: -EBADF.                                                                                            */
void hive__number_begins(int fd);

/* Any thread. The same, for what has just been made: passes it on, or that it could not be. */
static inline int number_made(int fd)
{
	hive__number_begins(fd);
	return fd;
}

/* Any thread. For what no operation is under way with, and that is no file: those may block. errno stays. */
void hive__number_close(int fd);
