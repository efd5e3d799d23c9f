/* SPDX-License-Identifier: MIT */
/* The scenarios timer and timer_cancel for the plain way: a binary heap of moments, a wait in epoll_pwait2() until the first of them. No library: a
 * floor. Everything that is due is fired after each wait; a timer knows its place in the heap, so that it can leave. Not comparable: one thread
 * has a heap of its own and nobody else may touch it.                                                                 */
#include "peer_timers.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct entry {
	int64_t due_ns;
	struct timed *timed;
};

struct heap {
	struct entry *entries;
	size_t count;
	int epoll_fd;
};

static void *heap_open(int64_t most)
{
	struct heap *heap = calloc(1, sizeof *heap);
	peer_must_not(!heap || !(heap->entries = calloc((size_t)most + 1, sizeof *heap->entries)),
	              "memory for the heap");
	heap->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	peer_must_not(heap->epoll_fd < 0, "epoll_create1");
	sync_sleep_exactly(); /* of this thread, which is the one that waits */
	return heap;
}

static void heap_close(void *loop)
{
	struct heap *heap = loop;
	close(heap->epoll_fd);
	free(heap->entries);
	free(heap);
}

static void put(struct heap *heap, size_t place, struct entry entry)
{
	heap->entries[place] = entry;
	entry.timed->place = place;
}

static void sift_up(struct heap *heap, size_t place, struct entry entry)
{
	while (place > 0 && heap->entries[(place - 1) / 2].due_ns > entry.due_ns) {
		put(heap, place, heap->entries[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	put(heap, place, entry);
}

static void sift_down(struct heap *heap, size_t place, struct entry entry)
{
	for (size_t child; (child = 2 * place + 1) < heap->count; place = child) {
		if (child + 1 < heap->count && heap->entries[child + 1].due_ns < heap->entries[child].due_ns)
			child++;
		if (heap->entries[child].due_ns >= entry.due_ns)
			break;
		put(heap, place, heap->entries[child]);
	}
	put(heap, place, entry);
}

static void heap_arm(void *loop, struct timed *timed, int64_t delay_ns)
{
	struct heap *heap = loop;
	timed->handle = heap;
	sift_up(heap, heap->count++, (struct entry){ sync_now() + delay_ns, timed });
}

static int heap_cancel(void *loop, struct timed *timed)
{
	struct heap *heap = loop;
	size_t place = timed->place;
	if (!timed->handle)
		return 0;
	timed->handle = NULL;
	struct entry last = heap->entries[--heap->count];
	if (place == heap->count)
		return 1;
	if (place > 0 && heap->entries[(place - 1) / 2].due_ns > last.due_ns)
		sift_up(heap, place, last);
	else
		sift_down(heap, place, last);
	return 1;
}

static int64_t fire_due(struct heap *heap)
{
	int64_t fired = 0, now = sync_now();
	for (; heap->count > 0 && heap->entries[0].due_ns <= now; fired++) {
		struct timed *timed = heap->entries[0].timed;
		heap_cancel(heap, timed);
		timers_fired(timed);
	}
	return fired;
}

static void wait_for_first(const struct heap *heap)
{
	struct epoll_event event;
	int64_t left = heap->entries[0].due_ns - sync_now();
	struct timespec span = { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
	if (left > 0)
		epoll_pwait2(heap->epoll_fd, &event, 1, &span, NULL);
}

static int heap_run(void *loop, int64_t count, int64_t limit_ns)
{
	struct heap *heap = loop;
	int64_t limit = sync_now() + limit_ns;
	while ((count -= fire_due(heap)) > 0) {
		if (heap->count == 0 || sync_now() > limit)
			return 0;
		wait_for_first(heap);
	}
	return count == 0;
}

static const struct timers_kind kind = { heap_open, heap_arm, heap_cancel, heap_run, heap_close };

static int raw_timer(const struct bench_params *params, struct record *result)
{
	return timers_timer(params, result, &kind);
}

static int raw_timer_cancel(const struct bench_params *params, struct record *result)
{
	return timers_cancel(params, result, &kind);
}

int main(int argc, char **argv)
{
	static const struct peer_scenario scenarios[] = {
		{ "timer", 1, 1, 100000, 0, raw_timer },
		{ "timer_cancel", 1, 1, 5000000, 0, raw_timer_cancel },
	};
	return peer_main("raw_timer", scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
