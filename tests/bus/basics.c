/* SPDX-License-Identifier: MIT */
/* Types, submits, handlers; what is refused, and why. */
#include "bus.h"

TEST(a_message_arrives_by_value_with_its_header)
{
	struct notes n = { 0 };
	struct hive_bus *bus = bus_begin((struct hive_bus_options){ .name = "sensors" }, &n);
	struct small message = { 41 };

	CHECK_OK(small_submit(bus, &message, HIVE_BUS_LOW, HIVE_NOWAIT));
	message.number = 99; /* the copy is not touched by this */
	CHECK_OK(hive_bus_pause(bus, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_EQ(n.seen[0], 41);
	CHECK_STR(hive_bus_name(bus), "sensors");
	CHECK_STR(hive_bus_type_name(bus, LARGE), "large");
	CHECK(hive_bus_type_name(bus, 2) == NULL);
	bus_end(bus);
}

static struct hive_bus_header last;

static int keep_header(void *context, const struct hive_bus_header *header, const void *payload)
{
	(void)context, (void)payload;
	last = *header;
	return 0;
}

TEST(the_header_says_who_sent_what_and_when)
{
	const struct hive_bus_type type = { 5, 3, NULL, keep_header, NULL };
	struct hive_bus_options options = { .types = &type, .type_count = 1 };
	struct hive_bus_message message = {
		.type = 5, .size = 3, .payload = "ab", .priority = HIVE_BUS_HIGH, .sender = 17, .key = 23
	};
	struct hive_bus *bus;
	uint64_t id = 0;

	CHECK_OK(hive_bus_create(&options, &bus));
	CHECK_STR(hive_bus_type_name(bus, 5), "");
	CHECK_OK(hive_bus_start(bus));
	for (int i = 0; i < 5; i++) {
		int64_t before = hive_now(NULL);

		message.priority = i == 4 ? HIVE_BUS_DEFAULT : HIVE_BUS_HIGH;
		CHECK_OK(hive_bus_submit(bus, &message, HIVE_NOWAIT));
		CHECK_OK(hive_bus_pause(bus, HIVE_DRAIN, HIVE_FOREVER));
		CHECK(last.time_ns >= before && last.time_ns <= hive_now(NULL));
		CHECK(last.type == 5 && last.size == 3 && last.sender == 17 && last.key == 23);
		CHECK_EQ(last.priority, i == 4 ? HIVE_BUS_MEDIUM : HIVE_BUS_HIGH);
		CHECK(last.id > id);
		id = last.id;
		CHECK_OK(hive_bus_resume(bus));
	}
	CHECK_OK(hive_bus_stop(bus, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_bus_destroy(bus));
}

TEST(the_type_selects_the_handler_and_another_type_is_never_taken_for_it)
{
	struct notes n = { 0 };
	struct hive_bus *bus = bus_begin((struct hive_bus_options){ 0 }, &n);
	struct large message = large_make(1000);
	const struct hive_bus_header other = { .type = SMALL, .size = sizeof(struct small) };

	CHECK_OK(large_submit(bus, &message, HIVE_BUS_MEDIUM, HIVE_NOWAIT));
	CHECK_OK(put_small(bus, 3, HIVE_BUS_MEDIUM));
	CHECK(large_of(&other, &message) == NULL);
	bus_end(bus);
	CHECK(n.count == 2 && n.sum == 1003);
}

TEST(types_are_found_whatever_their_numbers)
{
	struct hive_bus_type types[40];
	struct hive_bus_options options = { .types = types, .type_count = 40 };
	struct hive_bus *bus;

	for (uint32_t i = 0; i < 40; i++)
		types[i] = (struct hive_bus_type){ (i * 2654435761u) ^ 0x80000000u, i + 1, NULL, keep_header, NULL };
	CHECK_OK(hive_bus_create(&options, &bus));
	CHECK_OK(hive_bus_start(bus));
	for (uint32_t i = 0; i < 40; i++) {
		char bytes[64] = { 0 };
		struct hive_bus_message message = { .type = types[i].type, .size = i + 1, .payload = bytes };

		CHECK_OK(hive_bus_call(bus, &message));
		CHECK_EQ(last.size, i + 1);
		message.type++;
		CHECK_ERR(hive_bus_call(bus, &message), -ENOENT);
	}
	CHECK_OK(hive_bus_stop(bus, HIVE_NOW, HIVE_FOREVER));
	CHECK_OK(hive_bus_destroy(bus));
}

TEST(names_are_cut_at_31_bytes)
{
	const char *name = "0123456789012345678901234567890123456789";
	const struct hive_bus_type type = { 1, 1, name, NULL, NULL };
	struct hive_bus_options options = { .name = name, .types = &type, .type_count = 1 };
	struct hive_bus *bus;

	CHECK_OK(hive_bus_create(&options, &bus));
	CHECK_STR(hive_bus_name(bus), "0123456789012345678901234567890");
	CHECK_STR(hive_bus_type_name(bus, 1), "0123456789012345678901234567890");
	CHECK_STR(hive_bus_name(NULL), "");
	CHECK_OK(hive_bus_destroy(bus));
}

TEST(what_cannot_be_is_refused_and_told_why)
{
	struct notes n = { 0 };
	struct hive_bus *bus = bus_begin((struct hive_bus_options){ 0 }, &n);
	struct small payload = { 1 };
	struct hive_bus_message message = { .type = SMALL, .size = sizeof payload, .payload = &payload };
	struct hive_bus_message wrong = message;
	struct hive_bus_stats s;

	wrong.type = 2;
	CHECK_ERR(hive_bus_submit(bus, &wrong, HIVE_NOWAIT), -ENOENT);
	wrong = message;
	wrong.size = 0;
	CHECK_ERR(hive_bus_submit(bus, &wrong, HIVE_NOWAIT), -EMSGSIZE);
	wrong.size = sizeof payload + 1;
	CHECK_ERR(hive_bus_submit(bus, &wrong, HIVE_NOWAIT), -EMSGSIZE);
	wrong.size = HIVE_BUS_SIZE_MAX + 1;
	CHECK_ERR(hive_bus_submit(bus, &wrong, HIVE_NOWAIT), -EMSGSIZE);
	wrong = message;
	wrong.payload = NULL;
	CHECK_ERR(hive_bus_submit(bus, &wrong, HIVE_NOWAIT), -EINVAL);
	wrong = message;
	wrong.priority = (enum hive_bus_priority)4;
	CHECK_ERR(hive_bus_submit(bus, &wrong, HIVE_NOWAIT), -EINVAL);
	wrong = message;
	wrong.reserved[1] = 1;
	CHECK_ERR(hive_bus_submit(bus, &wrong, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_bus_submit(NULL, &message, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_bus_submit(bus, NULL, HIVE_NOWAIT), -EINVAL);
	check_books(bus, &s);
	CHECK(s.submitted == 4 && s.accepted == 0 && s.refused_type == 1 && s.refused_size == 3);
	bus_end(bus);
	CHECK_EQ(n.count, 0);
}

static void refused(struct hive_bus_options options)
{
	static const struct hive_bus_type type = { 1, 8, "one", keep_header, NULL };
	struct hive_bus *const none = (struct hive_bus *)(uintptr_t)&type, *bus = none;

	if (!options.types && options.type_count == 0) {
		options.types = &type;
		options.type_count = 1;
	}
	CHECK_EQ(hive_bus_bytes(&options), 0);
	CHECK_ERR(hive_bus_create(&options, &bus), -EINVAL);
	CHECK(bus == none); /* nothing was written */
}

TEST(options_out_of_their_domain_are_refused)
{
	static const struct hive_bus_type twice[] = { { 1, 8, "a", NULL, NULL }, { 1, 4, "b", NULL, NULL } };
	static const struct hive_bus_type empty[] = { { 1, 0, "a", NULL, NULL } };
	static const struct hive_bus_type huge[] = { { 1, HIVE_BUS_SIZE_MAX + 1, "a", NULL, NULL } };
	struct hive_bus *bus;

	refused((struct hive_bus_options){ .types = NULL, .type_count = 1 });
	refused((struct hive_bus_options){ .types = twice, .type_count = 0 });
	refused((struct hive_bus_options){ .types = twice, .type_count = 2 });
	refused((struct hive_bus_options){ .types = empty, .type_count = 1 });
	refused((struct hive_bus_options){ .types = huge, .type_count = 1 });
	refused((struct hive_bus_options){ .types = twice, .type_count = HIVE_BUS_TYPES_MAX + 1 });
	refused((struct hive_bus_options){ .depth = UINT32_MAX });
	refused((struct hive_bus_options){ .depth = HIVE_BUS_DEPTH_MAX + 1 });
	refused((struct hive_bus_options){ .worker_depth = UINT32_MAX });
	refused((struct hive_bus_options){ .workers = -1 });
	refused((struct hive_bus_options){ .workers = HIVE_BUS_WORKERS_MAX + 1 });
	refused((struct hive_bus_options){ .requests = HIVE_BUS_REQUESTS_MAX + 1 });
	refused((struct hive_bus_options){ .subscriptions = HIVE_BUS_SUBSCRIPTIONS_MAX + 1 });
	refused((struct hive_bus_options){ .route = (enum hive_bus_route)3 });
	refused((struct hive_bus_options){ .on_full = (enum hive_bus_on_full)3 });
	refused((struct hive_bus_options){ .route = HIVE_BUS_BY_KEY, .on_full = HIVE_BUS_DROP_OLDER_LOWER });
	refused((struct hive_bus_options){ .refuse_at = { 1, 0, 0, 0 } });
	refused((struct hive_bus_options){
		.refuse_at = { 0, 90, 0, 0 } }); /* MEDIUM would be refused sooner than LOW */
	refused((struct hive_bus_options){ .refuse_at = { 0, 50, 60, 101 } });
	refused((struct hive_bus_options){ .realtime = 100 });
	refused((struct hive_bus_options){ .realtime = -1 });
	refused((struct hive_bus_options){ .cpu_count = 1 });
	refused((struct hive_bus_options){ .kind = HIVE_COMPUTE }); /* of which hive? */
	refused((struct hive_bus_options){ .hive = (struct hive *)&bus, .dispatcher = true });
	refused((struct hive_bus_options){ .hive = (struct hive *)&bus, .realtime = 1 });
	refused((struct hive_bus_options){ .reserved = { 0, 0, 0, 0, 0, 0, 0, 1 } });
	CHECK_EQ(hive_bus_bytes(NULL), 0);
	CHECK_ERR(hive_bus_create(NULL, &bus), -EINVAL);
}

TEST(null_is_not_a_bus)
{
	struct hive_bus_stats stats;
	struct hive_bus_worker_stats worker;
	uint32_t id;

	CHECK_ERR(hive_bus_start(NULL), -EINVAL);
	CHECK_ERR(hive_bus_stop(NULL, HIVE_NOW, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_bus_pause(NULL, HIVE_NOW, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_bus_resume(NULL), -EINVAL);
	CHECK_OK(hive_bus_destroy(NULL));
	CHECK_ERR(hive_bus_call(NULL, NULL), -EINVAL);
	CHECK_ERR(hive_bus_request(NULL, NULL, NULL, 0, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_bus_reply(NULL, NULL, 0), -EINVAL);
	CHECK_ERR(hive_bus_subscribe(NULL, 1, keep_header, NULL, &id), -EINVAL);
	CHECK_ERR(hive_bus_unsubscribe(NULL, 1, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_bus_stats_read(NULL, &stats), -EINVAL);
	CHECK_ERR(hive_bus_worker_stats_read(NULL, 0, &worker), -EINVAL);
	CHECK_EQ(hive_bus_level(NULL), HIVE_BUS_NORMAL);
	CHECK(hive_bus_type_name(NULL, 1) == NULL);
}

TEST(depths_of_one_and_three_hold_exactly_that)
{
	for (uint32_t depth = 1; depth <= 3; depth += 2) {
		struct notes n = { 0 };
		struct hive_bus *bus = bus_begin((struct hive_bus_options){ .depth = depth }, &n);

		notes_hold_one(&n, 0);
		for (uint32_t i = 0; i < depth; i++)
			CHECK_OK(put_small(bus, i, HIVE_BUS_HIGH));
		CHECK_ERR(put_small(bus, 9, HIVE_BUS_HIGH), -ENOBUFS);
		notes_open(&n);
		bus_end(bus);
		CHECK_EQ(n.count, depth + 1);
	}
}

TEST(one_worker_keeps_the_order)
{
	struct notes n = { 0 };
	struct hive_bus *bus = bus_begin((struct hive_bus_options){ .depth = 16 }, &n);

	for (uint64_t i = 0; i < 2000; i++)
		CHECK_OK(small_submit(bus, &(struct small){ i }, (enum hive_bus_priority)(1 + i % 3), HIVE_FOREVER));
	bus_end(bus);
	for (uint64_t i = 0; i < 2000; i++)
		CHECK_EQ(n.seen[i], i); /* whatever the priorities */
}

TEST(a_handler_that_fails_is_counted_and_told)
{
	struct notes n = { .answer = -EIO };
	struct hive_bus *bus = bus_begin((struct hive_bus_options){ 0 }, &n);
	struct hive_bus_stats s;

	for (uint64_t i = 0; i < 5; i++)
		CHECK_OK(put_small(bus, i, HIVE_BUS_HIGH));
	CHECK_OK(hive_bus_pause(bus, HIVE_DRAIN, HIVE_FOREVER));
	check_books(bus, &s);
	CHECK(s.failed == 5 && s.handled == 0 && n.failed == 5);
	bus_end(bus);
}
