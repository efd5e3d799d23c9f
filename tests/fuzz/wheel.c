/* SPDX-License-Identifier: MIT */
/* The timing wheel against a plain list that is searched from end to end, while the clock goes on, jumps and goes back. */
#include "queue/wheel.h"

#include "fuzz.h"

enum { TIMERS = 200 };

static struct reference {
	struct wheel wheel;
	struct hive_timer timers[TIMERS];
	bool inside[TIMERS];
	uint32_t count;
	uint64_t sequence;
	int64_t now_ns;
	uint32_t compared;
	uint32_t removed; /* before they were due: each may cost one wake-up for nothing */
} ref;

static bool earlier(const struct hive_timer *a, const struct hive_timer *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

static struct hive_timer *first_of(void)
{
	struct hive_timer *first = NULL;

	for (int i = 0; i < TIMERS; i++)
		if (ref.inside[i] && (!first || earlier(&ref.timers[i], first)))
			first = &ref.timers[i];
	return first;
}

static void compare(void)
{
	struct hive_timer *first = first_of();

	if (++ref.compared % 8 == 0)
		EXPECT(wheel_valid(&ref.wheel));
	EXPECT_EQ(ref.wheel.count, ref.count);
	EXPECT(wheel_next_due(&ref.wheel) <= (first ? first->due_ns : HIVE_FOREVER));
	EXPECT(first || wheel_next_due(&ref.wheel) == HIVE_FOREVER);
	if (ref.removed == 0)
		EXPECT_EQ(wheel_next_due(&ref.wheel), first ? first->due_ns : HIVE_FOREVER);
}

/* From now on, or at any time whatever. Numbers are unique, but need not come in order. */
static void draw_place(struct hive_timer *timer, struct input *in)
{
	int64_t time = input_time(in);
	uint8_t how = input_byte(in);

	if (how % 8 != 0 && time >= 0)
		time = time > HIVE_FOREVER - ref.now_ns ? HIVE_FOREVER : ref.now_ns + time;
	timer->due_ns = time;
	timer->sequence = ref.sequence++ ^ (how & 0x80 ? 1u << 20 : 0);
}

static void insert(uint32_t i, struct input *in)
{
	if (ref.inside[i])
		return;
	draw_place(&ref.timers[i], in);
	wheel_insert(&ref.wheel, &ref.timers[i]);
	ref.inside[i] = true;
	ref.count++;
}

/* Its memory is the caller's again. */
static void take_out(struct hive_timer *timer)
{
	wheel_remove(&ref.wheel, timer);
	memset(timer, 0x5a, sizeof *timer);
	ref.inside[timer - ref.timers] = false;
	ref.count--;
}

/* The first so many of what is due. */
static void fire(uint32_t most)
{
	for (; most > 0; most--) {
		struct hive_timer *first = first_of(), *due = wheel_first_due(&ref.wheel, ref.now_ns);

		EXPECT(due == (first && first->due_ns <= ref.now_ns ? first : NULL));
		if (!due)
			return;
		take_out(due);
	}
}

/* As a sweep of cancelled posts does it. */
static void sweep(uint32_t keep_every)
{
	uint32_t n = 0, seen = 0, before = ref.count;
	struct hive_timer *next;

	for (struct hive_timer *t = wheel_each(&ref.wheel, NULL); t; t = next, seen++) {
		next = wheel_each(&ref.wheel, t);
		EXPECT(ref.inside[t - ref.timers]);
		if (keep_every > 0 && n++ % keep_every == 0)
			continue;
		ref.removed++;
		take_out(t);
	}
	EXPECT_EQ(seen, before);
}

static uint32_t some_timer(struct input *in)
{
	return (uint32_t)input_word(in, 2) % TIMERS;
}

static void one_operation(struct input *in)
{
	uint32_t what = input_below(in, 16), i;
	int64_t time;

	switch (what) {
	case 8: /* a crowd */
		for (i = input_byte(in); i < TIMERS && i % 100 != 99; i++)
			insert(i, in);
		break;
	case 9:
	case 10:
		i = some_timer(in);
		if (ref.inside[i]) {
			ref.removed++;
			take_out(&ref.timers[i]);
		}
		break;
	case 11:
		i = some_timer(in);
		if (ref.inside[i]) {
			ref.removed++;
			take_out(&ref.timers[i]);
			insert(i, in);
		}
		break;
	case 12:
	case 13:
		time = input_time(in);
		if (time > 0 && time <= HIVE_FOREVER - ref.now_ns)
			ref.now_ns += time;
		fire(input_byte(in));
		break;
	case 14:
		if (input_below(in, 4) == 0)
			sweep(input_below(in, 5));
		else if (first_of() && first_of()->due_ns > ref.now_ns)
			ref.now_ns = first_of()->due_ns - input_below(in, 3); /* around the next deadline */
		if (ref.now_ns < 0)
			ref.now_ns = 0;
		fire(input_below(in, 4));
		break;
	case 15: /* the clock goes back */
		ref.now_ns -= ref.now_ns / (1 + input_byte(in));
		break;
	default:
		insert(some_timer(in), in);
	}
}

/* Sleeps and fires until nothing is left, as a worker does. */
static void drain(void)
{
	uint32_t for_nothing = 0;

	while (ref.count > 0) {
		int64_t due = wheel_next_due(&ref.wheel);

		if (due > ref.now_ns)
			ref.now_ns = due;
		for_nothing += !wheel_first_due(&ref.wheel, ref.now_ns);
		EXPECT(for_nothing <= ref.removed * WHEEL_LEVELS);
		fire(TIMERS);
		compare();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = input_of(data, size);

	memset(&ref, 0, sizeof ref);
	wheel_init(&ref.wheel);
	ref.now_ns = input_byte(&in) % 2 ? HIVE_S(1000) : 0;
	while (input_more(&in)) {
		one_operation(&in);
		compare();
	}
	EXPECT(wheel_valid(&ref.wheel));
	drain();
	EXPECT_EQ(ref.wheel.used_levels, 0);
	return 0;
}
