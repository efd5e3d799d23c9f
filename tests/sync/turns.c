/* SPDX-License-Identifier: MIT */
/* Fibers that never have to wait, on one worker: the others have their turns all the same. */
#include "base/atomic.h"
#include "support/real.h"
#include "test.h"

#include <rophive/fiber.h>
#include <rophive/sync.h>

enum keeps { ASKS, MUTEX, SEMAPHORE, CHANNEL, PAIR, WAYS };

static struct {
	enum keeps how;
	ATOMIC(uint32_t) over;
	struct hive_mutex mutex;
	struct hive_semaphore semaphore;
	struct hive_channel *channel, *back;
} turns;

static void keep_busy(void)
{
	int item = 1;

	switch (turns.how) {
	case ASKS:
		CHECK_OK(hive_yield_if_due());
		break;
	case MUTEX:
		CHECK_OK(hive_mutex_lock(&turns.mutex, HIVE_FOREVER));
		CHECK_OK(hive_mutex_unlock(&turns.mutex));
		break;
	case SEMAPHORE:
		CHECK_OK(hive_semaphore_acquire(&turns.semaphore, 1, HIVE_FOREVER));
		CHECK_OK(hive_semaphore_release(&turns.semaphore, 1));
		break;
	case CHANNEL:
		CHECK_OK(hive_channel_send(turns.channel, &item, sizeof item, HIVE_FOREVER));
		CHECK_OK(hive_channel_recv(turns.channel, &item, sizeof item, HIVE_FOREVER));
		break;
	default: /* somebody else answers */
		CHECK_OK(hive_channel_send(turns.channel, &item, sizeof item, HIVE_FOREVER));
		CHECK_OK(hive_channel_recv(turns.back, &item, sizeof item, HIVE_FOREVER));
		break;
	}
}

static int busy(void *arg)
{
	(void)arg;
	while (!load_relaxed(&turns.over))
		keep_busy();
	if (turns.how == PAIR)
		CHECK_OK(hive_channel_close(turns.channel));
	return 0;
}

static int answer(void *arg)
{
	int item;

	(void)arg;
	while (hive_channel_recv(turns.channel, &item, sizeof item, HIVE_FOREVER) == 0)
		CHECK_OK(hive_channel_send(turns.back, &item, sizeof item, HIVE_FOREVER));
	return 0;
}

static int end_it(void *arg)
{
	(void)arg;
	store_relaxed(&turns.over, 1u);
	return 0;
}

/* The last one is behind the busy ones, and ends them. */
static int play(void *arg)
{
	struct hive_fiber *fibers[3];
	int count = 0;

	(void)arg;
	CHECK_OK(hive_spawn(hive_current(), end_it, NULL, NULL, &fibers[count++]));
	if (turns.how == PAIR)
		CHECK_OK(hive_spawn(hive_current(), answer, NULL, NULL, &fibers[count++]));
	CHECK_OK(hive_spawn(hive_current(), busy, NULL, NULL, &fibers[count++]));
	for (int i = count - 1; i >= 0; i--)
		CHECK_OK(hive_fiber_join(fibers[i], HIVE_FOREVER, NULL));
	return 0;
}

TEST(who_never_waits_does_not_keep_the_worker)
{
	for (turns.how = ASKS; turns.how < WAYS; turns.how++) {
		struct hive *hive = real_start((struct hive_options){ .io_workers = 1 });
		int result = -1;

		store_relaxed(&turns.over, 0u);
		hive_mutex_init(&turns.mutex);
		hive_semaphore_init(&turns.semaphore, 1);
		CHECK_OK(hive_channel_create(sizeof(int), 4, &turns.channel));
		CHECK_OK(hive_channel_create(sizeof(int), 4, &turns.back));
		CHECK_OK(hive_block_on(hive, play, NULL, HIVE_FOREVER, &result));
		CHECK_EQ(result, 0);
		CHECK_OK(hive_channel_destroy(turns.channel));
		CHECK_OK(hive_channel_destroy(turns.back));
		real_end(hive, HIVE_DRAIN);
	}
}
