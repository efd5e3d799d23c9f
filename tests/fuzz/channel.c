/* SPDX-License-Identifier: MIT */
/* A few channels and a semaphore against plain arrays and a number. One thread that never waits, so every answer is exact. */
#include <rophive/sync.h>

#include "fuzz.h"

enum { CHANNELS = 3, CAPACITY_MAX = 7, BYTES_MAX = 20 };

struct reference {
	struct hive_channel *channel; /* NULL: destroyed */
	size_t bytes, capacity, count;
	bool closed;
	uint8_t items[CAPACITY_MAX]; /* oldest first; the item is bytes of this value, counting up */
};

static void fill(uint8_t *item, size_t bytes, uint8_t value)
{
	for (size_t i = 0; i < bytes; i++)
		item[i] = (uint8_t)(value + i);
}

static void create(struct reference *ref, struct input *in)
{
	if (ref->channel)
		return;
	memset(ref, 0, sizeof *ref);
	ref->bytes = 1 + input_below(in, BYTES_MAX);
	ref->capacity = input_below(in, CAPACITY_MAX + 1);
	EXPECT_EQ(hive_channel_create(ref->bytes, ref->capacity, &ref->channel), 0);
}

static void send(struct reference *ref, struct input *in)
{
	uint8_t item[BYTES_MAX], value = input_byte(in);
	int expected = ref->closed ? -EPIPE : ref->count < ref->capacity ? 0 : -ETIMEDOUT;

	if (!ref->channel)
		return;
	fill(item, sizeof item, value);
	EXPECT_EQ(hive_channel_send(ref->channel, item, ref->bytes + 1, HIVE_NOWAIT), -EMSGSIZE);
	EXPECT_EQ(hive_channel_send(ref->channel, item, ref->bytes, HIVE_NOWAIT), expected);
	if (expected == 0)
		ref->items[ref->count++] = value;
}

static void recv(struct reference *ref)
{
	uint8_t item[BYTES_MAX + 1], wanted[BYTES_MAX + 1];
	int expected = ref->count > 0 ? 0 : ref->closed ? -EPIPE : -ETIMEDOUT;

	if (!ref->channel)
		return;
	memset(item, 0xee, sizeof item);
	memset(wanted, 0xee, sizeof wanted);
	EXPECT_EQ(hive_channel_recv(ref->channel, item, ref->bytes, HIVE_NOWAIT), expected);
	if (expected == 0) {
		fill(wanted, ref->bytes, ref->items[0]);
		memmove(ref->items, ref->items + 1, --ref->count);
	}
	EXPECT(memcmp(item, wanted, sizeof item) == 0);
}

static void finish(struct reference *ref)
{
	EXPECT_EQ(hive_channel_destroy(ref->channel), 0);
	ref->channel = NULL;
}

static void change_count(struct hive_semaphore *semaphore, uint64_t *count, struct input *in, bool acquire)
{
	/* around 0 and around the largest number */
	uint32_t n = input_below(in, 2) ? input_below(in, 4) : UINT32_MAX - input_below(in, 4);

	if (acquire) {
		EXPECT_EQ(hive_semaphore_acquire(semaphore, n, HIVE_NOWAIT), n <= *count ? 0 : -ETIMEDOUT);
		*count -= n <= *count ? n : 0;
	} else {
		bool fits = *count + n <= UINT32_MAX;

		EXPECT_EQ(hive_semaphore_release(semaphore, n), fits ? 0 : -EOVERFLOW);
		*count += fits ? n : 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = input_of(data, size);
	struct reference refs[CHANNELS] = { 0 };
	struct hive_semaphore semaphore;
	uint64_t count = input_below(&in, 3);

	hive_semaphore_init(&semaphore, (uint32_t)count);
	while (input_more(&in)) {
		struct reference *ref = &refs[input_below(&in, CHANNELS)];

		switch (input_below(&in, 8)) {
		case 0:
			create(ref, &in);
			break;
		case 1:
		case 2:
			send(ref, &in);
			break;
		case 3:
		case 4:
			recv(ref);
			break;
		case 5:
			change_count(&semaphore, &count, &in, input_below(&in, 2));
			break;
		case 6:
			if (ref->channel)
				EXPECT_EQ(hive_channel_close(ref->channel), ref->closed ? -EALREADY : 0);
			ref->closed = true;
			break;
		default:
			finish(ref);
		}
	}
	for (int i = 0; i < CHANNELS; i++)
		finish(&refs[i]);
	return 0;
}
