/* SPDX-License-Identifier: MIT */
#pragma once
/* Relacy, and what its part of a program (runner.cpp) knows of a scenario: to it all of them look alike, for compiling it anew for
 * each would take longer than to run them.                                                                                */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <relacy/relacy.hpp>

/* Relacy takes these words for itself; the headers under test have no use for that, and the system's headers suffer. */
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free

/* How a history shows a pointer to a function: Relacy's own way is void *, which C++ refuses. */
namespace rl {
template <> struct atomic_add_type<void (*)(void *)> {
	typedef ptrdiff_t type;
	typedef void (*output_type)(void *);
};
} // namespace rl

/* The checker allocates the structures itself, with malloc's alignment. */
#define alignas(bytes)

/* A scenario, whatever its type. */
struct model_scene {
	unsigned threads;
	size_t bytes;
	void (*construct)(void *at);
	void (*destroy)(void *suite);
	void (*before)(void *suite);
	void (*invariant)(void *suite);
	void (*thread)(void *suite, unsigned number);
	void (*after)(void *suite);
};

/* Whether it holds in all the schedules that were tried. */
bool model_play(const model_scene *scene, rl::scheduler_type_e search, unsigned iterations, unsigned preemptions);
