/* SPDX-License-Identifier: MIT */
/* The timer heap against a plain list that is searched from end to end. */
#include "queue/heap.h"

#include "fuzz.h"

enum { TIMERS = 200 };

struct reference {
	struct heap heap;
	struct counted_memory memory;
	struct hive_timer timers[TIMERS];
	bool inside[TIMERS];
	uint32_t count;
	uint64_t sequence;
};

static bool earlier(const struct hive_timer *a, const struct hive_timer *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

static struct hive_timer *first_of(struct reference *ref)
{
	struct hive_timer *first = NULL;

	for (int i = 0; i < TIMERS; i++)
		if (ref->inside[i] && (!first || earlier(&ref->timers[i], first)))
			first = &ref->timers[i];
	return first;
}

static void compare(struct reference *ref)
{
	struct hive_timer *first = first_of(ref);

	EXPECT(heap_valid(&ref->heap));
	EXPECT_EQ(ref->heap.count, ref->count);
	EXPECT(heap_first(&ref->heap) == first);
	EXPECT_EQ(heap_next_due(&ref->heap), first ? first->due_ns : HIVE_FOREVER);
}

/* Sequence numbers are unique, but need not come in order of insertion. */
static void set_time(struct reference *ref, struct hive_timer *timer, struct input *in)
{
	timer->due_ns = input_time(in);
	timer->sequence = ref->sequence++ ^ (timer->due_ns & 1 ? 1u << 20 : 0);
}

static void insert(struct reference *ref, uint32_t i, struct input *in)
{
	long before = ref->memory.failed;
	int r;

	if (ref->inside[i])
		return;
	set_time(ref, &ref->timers[i], in);
	r = heap_insert(&ref->heap, &ref->timers[i]);
	EXPECT(r == 0 || excused(&ref->memory, before, r));
	if (r < 0)
		return;
	ref->inside[i] = true;
	ref->count++;
}

static void take_out(struct reference *ref, struct hive_timer *timer)
{
	heap_remove(&ref->heap, timer);
	ref->inside[timer - ref->timers] = false;
	ref->count--;
}

/* As a sweep of cancelled posts does it: some entries go, the rest closes up. */
static void rebuild(struct reference *ref, uint32_t keep_every)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < ref->heap.count; i++) {
		struct hive_timer *timer = ref->heap.entries[i].timer;

		if (keep_every > 0 && i % keep_every == 0)
			ref->heap.entries[kept++] = ref->heap.entries[i];
		else
			ref->inside[timer - ref->timers] = false;
	}
	ref->count = kept;
	heap_rebuild(&ref->heap, kept);
}

static void reserve(struct reference *ref, size_t capacity)
{
	long before = ref->memory.failed;
	int r = heap_reserve(&ref->heap, capacity);

	EXPECT(r == 0 || excused(&ref->memory, before, r) || (r == -ENOMEM && capacity > UINT32_MAX / 2));
}

static uint32_t some_timer(struct input *in)
{
	return (uint32_t)input_word(in, 2) % TIMERS;
}

static void one_operation(struct reference *ref, struct input *in)
{
	uint32_t what = input_below(in, 16), i;

	switch (what) {
	case 8: /* many at once: past the first capacity */
		for (i = input_byte(in); i < TIMERS && i % 100 != 99; i++)
			insert(ref, i, in);
		break;
	case 9:
	case 10:
		i = some_timer(in);
		if (ref->inside[i])
			take_out(ref, &ref->timers[i]);
		break;
	case 11:
		i = some_timer(in);
		if (ref->inside[i]) {
			set_time(ref, &ref->timers[i], in);
			heap_update(&ref->heap, &ref->timers[i]);
		}
		break;
	case 12:
		if (heap_first(&ref->heap))
			take_out(ref, heap_first(&ref->heap));
		break;
	case 13:
		rebuild(ref, input_below(in, 5));
		break;
	case 14:
		reserve(ref, input_below(in, 4) ? input_byte(in) : (size_t)input_word(in, 8) | UINT32_MAX);
		break;
	case 15:
		ref->memory.fail_in = input_below(in, 4);
		break;
	default:
		insert(ref, some_timer(in), in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reference ref;
	struct input in = input_of(data, size);

	memset(&ref, 0, sizeof ref);
	counted_memory_init(&ref.memory);
	heap_init(&ref.heap, &ref.memory.memory);
	while (input_more(&in)) {
		one_operation(&ref, &in);
		compare(&ref);
	}
	while (ref.count > 0) {
		take_out(&ref, heap_first(&ref.heap));
		compare(&ref);
	}
	heap_destroy(&ref.heap);
	EXPECT_EQ(ref.memory.live, 0);
	return 0;
}
