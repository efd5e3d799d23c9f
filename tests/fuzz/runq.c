/* SPDX-License-Identifier: MIT */
/* Two rings that rob each other, against plain arrays. One thread, so every answer is exact; but a theft can stop after its
 * claim, and everything else go on while it copies.                                                                       */
#include "queue/newest.h"
#include "queue/runq.h"

#include "fuzz.h"

enum { CAPACITY_MAX = 64 };

struct reference {
	struct runq ring;
	struct slot *slots; /* exactly as many as needed: one step too far is noticed */
	uint32_t capacity, count;
	uint64_t numbers[2 * CAPACITY_MAX]; /* oldest first */
	struct newest newest;
	uint64_t newest_number;   /* 0: none */
	uint32_t claimed, popped; /* by a theft under way; by the owner since then: their slots are not free */
	uint32_t claimed_from;
	uint64_t claimed_numbers[CAPACITY_MAX];
};

static uint64_t next_number;

static void reference_init(struct reference *ref, uint32_t capacity, uint32_t start)
{
	memset(ref, 0, sizeof *ref);
	ref->capacity = capacity;
	ref->slots = (struct slot *)calloc(capacity, sizeof *ref->slots);
	EXPECT(ref->slots);
	runq_init(&ref->ring, ref->slots, capacity, start);
	newest_init(&ref->newest, (uint64_t)start << 32 | (start & ~1u));
}

static uint32_t room_of(const struct reference *ref)
{
	return ref->capacity - ref->count - ref->claimed - ref->popped;
}

static void remove_oldest(struct reference *ref, uint32_t n)
{
	ref->count -= n;
	memmove(ref->numbers, ref->numbers + n, ref->count * sizeof *ref->numbers);
}

static bool push_number(struct reference *ref, uint64_t number)
{
	bool fits = room_of(ref) > 0;

	EXPECT_EQ(runq_push(&ref->ring, task_of(number)), fits);
	if (fits)
		ref->numbers[ref->count++] = number;
	return fits;
}

static void push_many(struct reference *ref, uint32_t n)
{
	struct hive_task tasks[CAPACITY_MAX];

	EXPECT_EQ(runq_room(&ref->ring), room_of(ref));
	if (n > room_of(ref))
		n = room_of(ref);
	for (uint32_t i = 0; i < n; i++)
		tasks[i] = task_of(next_number + i);
	for (uint32_t i = 0; i < n; i++)
		ref->numbers[ref->count++] = next_number++;
	runq_push_many(&ref->ring, tasks, n);
}

static void pop(struct reference *ref)
{
	struct hive_task task;
	bool got = runq_pop(&ref->ring, &task);

	EXPECT_EQ(got, ref->count > 0);
	if (!got)
		return;
	EXPECT_EQ(number_of(task), ref->numbers[0]);
	remove_oldest(ref, 1);
	ref->popped += ref->claimed > 0;
}

static void take_oldest(struct reference *ref, uint32_t max)
{
	struct hive_task tasks[CAPACITY_MAX];
	uint32_t n = runq_take_oldest(&ref->ring, tasks, max);

	EXPECT_EQ(n, ref->claimed > 0 ? 0 : ref->count < max ? ref->count : max);
	for (uint32_t i = 0; i < n; i++)
		EXPECT_EQ(number_of(tasks[i]), ref->numbers[i]);
	remove_oldest(ref, n);
}

static uint32_t half_of(const struct reference *victim, uint32_t max)
{
	uint32_t half = victim->count - victim->count / 2;

	return victim->claimed > 0 ? 0 : half < max ? half : max;
}

static void rob(struct reference *thief, struct reference *victim)
{
	uint32_t room = room_of(thief);
	uint32_t n = half_of(victim, room >= thief->capacity / 2 ? room : thief->count == 0 ? 1 : 0);
	struct hive_task task;

	EXPECT_EQ(runq_steal(&victim->ring, &thief->ring, &task), n);
	if (n == 0)
		return;
	EXPECT_EQ(number_of(task), victim->numbers[n - 1]);
	memcpy(thief->numbers + thief->count, victim->numbers, (n - 1) * sizeof *victim->numbers);
	thief->count += n - 1;
	remove_oldest(victim, n);
}

static void rob_some(struct reference *victim, uint32_t max)
{
	struct hive_task loot[CAPACITY_MAX];
	uint32_t n = runq_steal_some(&victim->ring, loot, max);

	EXPECT_EQ(n, half_of(victim, max));
	for (uint32_t i = 0; i < n; i++)
		EXPECT_EQ(number_of(loot[i]), victim->numbers[i]);
	remove_oldest(victim, n);
}

static void finish(struct reference *victim)
{
	for (uint32_t i = 0; i < victim->claimed; i++)
		EXPECT_EQ(number_of(slot_read(runq_slot(&victim->ring, runq_after(victim->claimed_from, i)))),
		          victim->claimed_numbers[i]);
	runq_finish(&victim->ring);
	victim->claimed = victim->popped = 0;
}

/* The first step of a theft, or, if one is under way, the other two. */
static void claim_or_finish(struct reference *victim, uint32_t max)
{
	uint32_t n, expected = half_of(victim, max);

	if (victim->claimed > 0) {
		finish(victim);
		return;
	}
	n = runq_claim(&victim->ring, max, &victim->claimed_from);
	EXPECT_EQ(n, expected);
	memcpy(victim->claimed_numbers, victim->numbers, n * sizeof *victim->numbers);
	remove_oldest(victim, n);
	victim->claimed = n;
}

static void take_newest(struct reference *ref)
{
	struct hive_task task;
	bool got = newest_take(&ref->newest, &task);

	EXPECT_EQ(got, ref->newest_number != 0);
	if (got)
		EXPECT_EQ(number_of(task), ref->newest_number);
	ref->newest_number = 0;
}

/* As the scheduler posts: the one before goes into the ring, if there is room. */
static void post(struct reference *ref)
{
	uint64_t before = ref->newest_number;

	take_newest(ref);
	if (before != 0 && !push_number(ref, before)) {
		newest_put(&ref->newest, task_of(before));
		ref->newest_number = before;
		return;
	}
	newest_put(&ref->newest, task_of(next_number));
	ref->newest_number = next_number++;
}

static void one_operation(struct reference *mine, struct reference *other, struct input *in)
{
	switch (input_below(in, 10)) {
	case 0:
		push_number(mine, next_number++);
		break;
	case 1:
		push_many(mine, input_below(in, CAPACITY_MAX));
		break;
	case 2:
	case 3:
		pop(mine);
		break;
	case 4:
		take_oldest(mine, input_below(in, CAPACITY_MAX + 1));
		break;
	case 5:
		rob(mine, other);
		break;
	case 6:
		rob_some(mine, input_below(in, CAPACITY_MAX + 1));
		break;
	case 7:
		claim_or_finish(mine, input_below(in, CAPACITY_MAX + 1));
		break;
	case 8:
		post(mine);
		break;
	case 9:
		take_newest(mine);
		break;
	}
	EXPECT_EQ(runq_size(&mine->ring), mine->count);
	EXPECT_EQ(runq_size(&other->ring), other->count);
	EXPECT_EQ(runq_room(&mine->ring), room_of(mine));
	EXPECT_EQ(newest_size(&mine->newest), mine->newest_number != 0);
}

static uint32_t some_start(struct input *in)
{
	static const uint32_t starts[] = { 0, UINT32_MAX, (uint32_t)INT32_MAX, UINT16_MAX };
	uint32_t how = input_below(in, 5);

	return how == 4 ? (uint32_t)input_word(in, 4) : starts[how] - input_below(in, 16);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = input_of(data, size);
	struct reference refs[2];

	next_number = 1;
	for (int i = 0; i < 2; i++) {
		uint32_t capacity = 1u << input_below(&in, 7);

		reference_init(&refs[i], capacity, some_start(&in));
	}
	while (input_more(&in)) {
		uint32_t who = input_byte(&in) & 1;

		one_operation(&refs[who], &refs[1 - who], &in);
	}
	for (int i = 0; i < 2; i++) {
		if (refs[i].claimed > 0)
			finish(&refs[i]);
		while (refs[i].count > 0)
			pop(&refs[i]);
		pop(&refs[i]);
		EXPECT_EQ(runq_room(&refs[i].ring), refs[i].capacity);
		free(refs[i].slots);
	}
	return 0;
}
