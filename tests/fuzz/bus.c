/* SPDX-License-Identifier: MIT */
/* Configurations of a bus with anything in them, and messages with anything in them. The rules of the header, written down once more, say
 * which are refused; what is accepted must work. In the form without dispatcher and keys, while it is paused, a list that is too
 * simple to be wrong says what becomes of each message.                                                                      */
#include "fuzz.h"

#include <errno.h>
#include <rophive/bus.h>

enum { TYPES = 3, MEMORY = 1 << 20, LIST = 4096, PATCHES = 8 };

static struct {
	struct input in;
	struct hive_bus_type types[TYPES];
	struct hive_bus_options options;
	uint8_t list[LIST]; /* priorities of what waits, in order */
	uint32_t length;
	uint64_t handled, dropped, accepted, refused;
} t;

static _Alignas(64) unsigned char memory[MEMORY];
static uint16_t cpus[64];

static int handle(void *context, const struct hive_bus_header *header, const void *payload)
{
	const unsigned char *bytes = payload;

	(void)context;
	EXPECT(bytes[0] == (unsigned char)header->sender && bytes[header->size - 1] == bytes[0]);
	__atomic_fetch_add(&t.handled, 1, __ATOMIC_RELAXED);
	return 0;
}

static void count_drop(void *arg, const struct hive_bus_header *header, const void *payload)
{
	(void)arg;
	EXPECT(((const unsigned char *)payload)[0] == (unsigned char)header->sender);
	t.dropped++;
}

/* ---- bytes become options ---- */

static void mask_bool(bool *flag)
{
	unsigned char byte;

	memcpy(&byte, flag, 1);
	*flag = byte & 1;
}

static void fill_options(void)
{
	struct hive_bus_options *o = &t.options;

	for (uint32_t i = 0; i < TYPES; i++)
		t.types[i] = (struct hive_bus_type){ .type = input_below(&t.in, 32) < 2 ? 5 : 3 * i,
			                             .size = 1 + input_byte(&t.in),
			                             .handle = handle };
	if (input_byte(&t.in) == 1)
		t.types[1].size = (uint32_t)input_word(&t.in, 4);
	o->type_count = 1 + input_below(&t.in, TYPES);
	o->depth = input_below(&t.in, 64);
	o->worker_depth = 1 + input_below(&t.in, 32);
	o->workers = (int32_t)input_below(&t.in, 4);
	o->on_full = (enum hive_bus_on_full)input_below(&t.in, 3);
	for (uint32_t n = input_below(&t.in, PATCHES); n > 0; n--) {
		size_t at = input_byte(&t.in) * 4u % sizeof *o, width = (size_t)1 << input_below(&t.in, 4);
		uint64_t value = input_word(&t.in, (int)width);

		if (at + width <= sizeof *o)
			memcpy((char *)o + at, &value, width);
	}
	/* What is a pointer is one, or is not there. */
	mask_bool(&o->dispatcher);
	o->name = input_byte(&t.in) & 1 ? "a name that is longer than the thirty-one bytes it may have" : NULL;
	o->types = input_byte(&t.in) == 7 ? NULL : t.types;
	o->hive = NULL;
	o->cpus = input_byte(&t.in) & 1 ? cpus : NULL;
	o->type_count %= TYPES + 1;
	o->realtime = o->realtime > 0 && o->realtime < 100 ? 0 : o->realtime; /* not in a fuzzer */
	o->cpu_count = o->cpu_count <= 64 ? 0 : o->cpu_count;
	o->hook_arg = NULL;
	o->on_level = NULL;
	o->on_fail = NULL;
	o->on_drop = count_drop;
	o->memory = memory;
	o->memory_bytes = sizeof memory;
}

/* ---- the rules once more ---- */

static bool types_are_right(const struct hive_bus_options *o)
{
	if (!o->types || o->type_count == 0)
		return false;
	for (uint32_t i = 0; i < o->type_count; i++) {
		if (o->types[i].size == 0 || o->types[i].size > 65536)
			return false;
		for (uint32_t j = i + 1; j < o->type_count; j++)
			if (o->types[i].type == o->types[j].type)
				return false;
	}
	return true;
}

static uint32_t percent(const struct hive_bus_options *o, int priority)
{
	static const uint32_t usual[] = { 0, 60, 80, 99 };

	return o->refuse_at[priority] ? o->refuse_at[priority] : usual[priority];
}

static bool are_right(const struct hive_bus_options *o)
{
	bool right = types_are_right(o) && o->depth <= 1u << 24 && o->worker_depth <= 1u << 24;

	right = right && o->workers >= 0 && o->workers <= 63 && o->requests <= 4096 && o->subscriptions <= 64;
	right = right && (unsigned)o->route <= 2 && (unsigned)o->on_full <= 2 && !(o->route == 2 && o->on_full == 1);
	right = right && o->refuse_at[0] == 0 && percent(o, 1) <= percent(o, 2) && percent(o, 2) <= percent(o, 3) &&
	        percent(o, 3) <= 100;
	right = right && o->realtime >= 0 && o->realtime <= 99 && o->cpu_count <= 64 && o->kind == 0;
	for (int i = 0; i < 8; i++)
		right = right && o->reserved[i] == 0;
	return right;
}

/* ---- what becomes of a message, by a list ---- */

static uint32_t room(int priority)
{
	uint64_t depth = t.options.depth ? t.options.depth : 1024;

	return (uint32_t)((depth * percent(&t.options, priority) + 99) / 100);
}

/* 0: it is in the list, maybe in the place of another one. */
static int expect(int priority)
{
	uint32_t victim = t.length;

	if (t.length < room(priority)) {
		EXPECT(t.length < LIST);
		t.list[t.length++] = (uint8_t)priority;
		return 0;
	}
	for (uint32_t i = 0; i < t.length && t.options.on_full == HIVE_BUS_DROP_OLDER_LOWER; i++)
		if (t.list[i] < priority && (victim == t.length || t.list[i] < t.list[victim]))
			victim = i;
	if (victim == t.length)
		return -ENOBUFS;
	t.list[victim] = (uint8_t)priority;
	return 0;
}

static void submit(struct hive_bus *bus, bool exact)
{
	static unsigned char payload[300];
	uint32_t which = input_below(&t.in, TYPES), odd = input_byte(&t.in);
	struct hive_bus_message m = { .type = t.types[which].type, .size = t.types[which].size, .payload = payload };
	int priority = 1 + (int)input_below(&t.in, 3), r, expected = 0;

	m.sender = input_byte(&t.in);
	m.key = input_byte(&t.in);
	m.priority = (enum hive_bus_priority)priority;
	memset(payload, (int)m.sender, sizeof payload);
	if (which >= t.options.type_count || odd == 1) {
		m.type = 77;
		expected = -ENOENT;
	} else if (m.size > sizeof payload || odd == 2) {
		m.size = m.size + 1 > 65537 ? 0 : m.size + 1;
		expected = -EMSGSIZE;
	} else if (exact) {
		expected = expect(priority);
	}
	r = hive_bus_submit(bus, &m, HIVE_NOWAIT);
	EXPECT(r == expected || (!exact && expected == 0 && r == -ENOBUFS));
	t.accepted += r == 0;
	t.refused += r < 0;
}

static void use(struct hive_bus *bus)
{
	bool exact = !t.options.dispatcher && t.options.route != HIVE_BUS_BY_KEY && t.options.depth <= LIST / 2;
	enum hive_stop_mode mode = input_byte(&t.in) & 1 ? HIVE_DRAIN : HIVE_NOW;
	struct hive_bus_stats s;

	EXPECT_EQ(hive_bus_start(bus), 0);
	EXPECT_EQ(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER), 0);
	while (input_more(&t.in))
		submit(bus, exact);
	EXPECT_EQ(hive_bus_stats_read(bus, &s), 0);
	EXPECT(s.accepted == t.accepted && s.submitted == t.accepted + t.refused && s.dropped == t.dropped);
	EXPECT(!exact || (s.depth_now == t.length && s.queued == t.length));
	if (input_byte(&t.in) == 0 && mode == HIVE_DRAIN)
		EXPECT_EQ(hive_bus_resume(bus), 0);
	EXPECT_EQ(hive_bus_stop(bus, mode, HIVE_FOREVER), 0);
	EXPECT_EQ(hive_bus_stats_read(bus, &s), 0);
	EXPECT(s.queued == 0 && s.handled == t.handled && s.dropped == t.dropped &&
	       s.handled + s.dropped == t.accepted);
	EXPECT(mode == HIVE_NOW || s.handled == t.accepted - s.dropped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hive_bus *bus;
	size_t bytes;

	memset(&t, 0, sizeof t);
	t.in = input_of(data, size);
	fill_options();
	bytes = hive_bus_bytes(&t.options);
	EXPECT_EQ(bytes > 0, are_right(&t.options));
	if (bytes == 0 || bytes > sizeof memory) {
		EXPECT_EQ(hive_bus_create(&t.options, &bus), -EINVAL);
		return 0;
	}
	EXPECT_EQ(hive_bus_create(&t.options, &bus), 0);
	if (t.options.workers <= 8)
		use(bus);
	EXPECT_EQ(hive_bus_destroy(bus), 0);
	return 0;
}
