/* SPDX-License-Identifier: MIT */
/* hive-bench-ui: no window, and nothing between the thread with the frames and the loop that is measured. */
#include <string.h>

#include "ui.h"

#define COMPUTE_NS HIVE_MS(5)

const char picture_program[] = "hive-bench-ui", picture_bench[] = "ui", picture_loads[] = "-pabcsdu";

bool picture_open(void)
{
	return true;
}

void picture_align(void) {}

/* Moves a picture by some pixels, as a drag does. */
void picture_frame(int number, int64_t due_ns)
{
	static uint32_t picture[HEIGHT][WIDTH];

	(void)due_ns;
	memmove(&picture[0][0], &picture[1][3], sizeof picture - sizeof picture[0] - 3 * sizeof picture[0][0]);
	picture[HEIGHT - 1][number % WIDTH] = (uint32_t)number;
}

void picture_compute(void)
{
	static _Atomic(uint64_t) sink;
	int64_t end_ns = hive_now(NULL) + COMPUTE_NS;
	uint64_t x = 1;

	do
		for (int i = 0; i < 10000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
	while (hive_now(NULL) < end_ns && !atomic_load(&ended));
	atomic_fetch_add(&sink, x);
}

bool picture_seen(void)
{
	return true;
}

void picture_report(void) {}
