/* SPDX-License-Identifier: MIT */
/* Two local queues, an owner's and a thief's, against plain arrays. One thread, so every answer is exact. */
#include "queue/deque.h"

#include "fuzz.h"

enum { CAPACITY_MAX = 64 };

struct reference {
	struct deque deque;
	struct slot *slots; /* exactly as many as needed: one step too far is noticed */
	uint64_t capacity, count;
	uint64_t numbers[CAPACITY_MAX]; /* oldest first */
};

static uint64_t next_number;

static void reference_init(struct reference *ref, uint64_t capacity, uint64_t start)
{
	ref->capacity = capacity;
	ref->count = 0;
	ref->slots = (struct slot *)calloc(capacity, sizeof *ref->slots);
	EXPECT(ref->slots);
	deque_init(&ref->deque, ref->slots, capacity, start);
}

static void remove_oldest(struct reference *ref, uint64_t n)
{
	ref->count -= n;
	memmove(ref->numbers, ref->numbers + n, ref->count * sizeof *ref->numbers);
}

static void push(struct reference *ref)
{
	bool fits = ref->count < ref->capacity;

	EXPECT_EQ(deque_push(&ref->deque, task_of(next_number)), fits);
	if (fits)
		ref->numbers[ref->count++] = next_number;
	next_number++;
}

static void push_many(struct reference *ref, uint64_t n)
{
	struct hive_task tasks[CAPACITY_MAX];

	EXPECT_EQ(deque_room(&ref->deque), ref->capacity - ref->count);
	if (n > ref->capacity - ref->count)
		n = ref->capacity - ref->count;
	for (uint64_t i = 0; i < n; i++) {
		ref->numbers[ref->count++] = next_number;
		tasks[i] = task_of(next_number++);
	}
	deque_push_many(&ref->deque, tasks, n, false);
}

static void pop(struct reference *ref)
{
	struct hive_task task;
	bool got = deque_pop(&ref->deque, &task);

	EXPECT_EQ(got, ref->count > 0);
	if (got)
		EXPECT_EQ(number_of(task), ref->numbers[--ref->count]);
}

static bool steal(struct reference *ref, struct hive_task *ret_task)
{
	bool got = deque_steal(&ref->deque, ret_task);

	EXPECT_EQ(got, ref->count > 0);
	if (got) {
		EXPECT_EQ(number_of(*ret_task), ref->numbers[0]);
		remove_oldest(ref, 1);
	}
	return got;
}

static void take_oldest(struct reference *ref, uint64_t max)
{
	struct hive_task tasks[CAPACITY_MAX];
	uint64_t n = deque_take_oldest(&ref->deque, tasks, max);

	EXPECT_EQ(n, ref->count < max ? ref->count : max);
	for (uint64_t i = 0; i < n; i++)
		EXPECT_EQ(number_of(tasks[i]), ref->numbers[i]);
	remove_oldest(ref, n);
}

/* Half of the victim's tasks, as the scheduler does it: one by one, as far as there is room. */
static void rob(struct reference *thief, struct reference *victim)
{
	uint64_t half = (deque_size(&victim->deque) + 1) / 2, room = deque_room(&thief->deque);
	struct hive_task task;

	for (uint64_t i = 0; i < half && i < room; i++) {
		EXPECT(steal(victim, &task));
		EXPECT(deque_push(&thief->deque, task));
		thief->numbers[thief->count++] = number_of(task);
	}
}

static void one_operation(struct reference *mine, struct reference *other, struct input *in)
{
	struct hive_task task;

	switch (input_below(in, 8)) {
	case 0:
	case 1:
		push(mine);
		break;
	case 2:
		push_many(mine, input_below(in, CAPACITY_MAX));
		break;
	case 3:
		pop(mine);
		break;
	case 4:
		steal(mine, &task);
		break;
	case 5:
		take_oldest(mine, input_below(in, CAPACITY_MAX + 1));
		break;
	case 6:
		rob(mine, other);
		break;
	case 7:
		rob(other, mine);
		break;
	}
	EXPECT_EQ(deque_size(&mine->deque), mine->count);
	EXPECT_EQ(deque_size(&other->deque), other->count);
}

static uint64_t some_start(struct input *in)
{
	static const uint64_t starts[] = { 0, UINT64_MAX, (uint64_t)INT64_MAX, UINT32_MAX };
	uint32_t how = input_below(in, 5);

	return how == 4 ? input_word(in, 8) : starts[how] - input_below(in, 16);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = input_of(data, size);
	struct reference a, b;

	next_number = 1;
	reference_init(&a, (uint64_t)1 << input_below(&in, 7), some_start(&in));
	reference_init(&b, (uint64_t)1 << input_below(&in, 7), some_start(&in));
	while (input_more(&in)) {
		if (input_byte(&in) & 1)
			one_operation(&a, &b, &in);
		else
			one_operation(&b, &a, &in);
	}
	while (a.count > 0)
		pop(&a);
	while (b.count > 0)
		take_oldest(&b, 3);
	pop(&a);
	take_oldest(&b, 1);
	free(a.slots);
	free(b.slots);
	return 0;
}
