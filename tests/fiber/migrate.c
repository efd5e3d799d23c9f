/* SPDX-License-Identifier: MIT */
/* A context that goes from thread to thread. Thread-locals and errno are the thread's, and a compiler may keep their
 * address over a switch: so they are read by functions that are not inlined and hide where the address comes from. */
#include <pthread.h>

#include "fiber/switch.h"
#include "test.h"

enum { STACK = 128 << 10, THREADS = 8 };

static _Thread_local int own_number;
static struct context traveller;
static struct context *host; /* of the thread that runs it now */
static int stations;

static __attribute__((noinline)) int *own_number_place(void)
{
	int *place = &own_number;

	__asm__ volatile("" : "+r"(place) : : "memory");
	return place;
}

static __attribute__((noinline)) int *errno_place(void)
{
	int *place = &errno;

	__asm__ volatile("" : "+r"(place) : : "memory");
	return place;
}

static void travel(void *arg)
{
	int kept = 4711;

	(void)arg;
	for (int i = 1; i <= THREADS; i++) {
		CHECK_EQ(*own_number_place(), i);
		CHECK_EQ(*errno_place(), 100 + i);
		*errno_place() = 200 + i; /* that thread's, for it to find */
		CHECK_EQ(kept, 4711);
		stations++;
		if (i == THREADS)
			context_leave(&traveller, host);
		context_switch(&traveller, host);
	}
}

static void *carry(void *arg)
{
	struct context here;
	int number = (int)(intptr_t)arg;

	own_number = number;
	errno = 100 + number;
	context_here(&here);
	host = &here;
	context_switch(&here, &traveller);
	CHECK_EQ(stations, number);
	CHECK_EQ(errno, 200 + number);
	return NULL;
}

TEST(a_context_that_migrates_finds_the_thread_it_runs_on)
{
	char *stack = malloc(STACK);

	CHECK(stack);
	context_make(&traveller, stack, STACK, travel, NULL);
	for (intptr_t i = 1; i <= THREADS; i++) {
		pthread_t thread;

		CHECK_EQ(pthread_create(&thread, NULL, carry, (void *)i), 0);
		pthread_join(thread, NULL);
	}
	CHECK_EQ(stations, THREADS);
	context_destroy(&traveller);
	free(stack);
}
