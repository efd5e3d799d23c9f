/* SPDX-License-Identifier: MIT */
/* Requests and replies, calls, subscriptions. */
#include "bus.h"

enum how { DOUBLE, SILENT, TWICE, TOO_LARGE, LATE };

struct ask {
	struct notes notes;
	_Atomic(int) how;
};

static int reply(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct ask *ask = context;
	uint64_t answer = 2 * small_of(header, payload)->number;
	char large[100] = { 0 };

	switch (atomic_load(&ask->how)) {
	case DOUBLE:
		CHECK_OK(hive_bus_reply(header, &answer, sizeof answer));
		break;
	case TWICE:
		CHECK_OK(hive_bus_reply(header, &answer, sizeof answer));
		CHECK(hive_bus_reply(header, &answer, sizeof answer) < 0);
		break;
	case TOO_LARGE:
		CHECK_ERR(hive_bus_reply(header, large, sizeof large), -EMSGSIZE);
		CHECK_ERR(hive_bus_reply(header, NULL, 1), -EINVAL);
		CHECK_OK(hive_bus_reply(header, NULL, 0));
		break;
	case LATE:
		notes_pass(&ask->notes);
		CHECK_ERR(hive_bus_reply(header, &answer, sizeof answer), -ENOENT);
		break;
	default:
		break;
	}
	atomic_fetch_add(&ask->notes.count, 1);
	return 0;
}

static struct hive_bus *begin(struct hive_bus_options options, struct ask *ask)
{
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", reply, ask };

	options.types = &type;
	options.type_count = 1;
	options.hook_arg = &ask->notes;
	options.on_drop = notes_drop;
	CHECK_OK(hive_bus_create(&options, &ask->notes.bus));
	CHECK_OK(hive_bus_start(ask->notes.bus));
	return ask->notes.bus;
}

static int request(struct hive_bus *bus, uint64_t number, uint64_t *ret_answer, int64_t deadline_ns)
{
	const struct small payload = { number };
	const struct hive_bus_message message = {
		.type = SMALL, .size = sizeof payload, .payload = &payload, .priority = HIVE_BUS_HIGH
	};

	return hive_bus_request(bus, &message, ret_answer, sizeof *ret_answer, deadline_ns);
}

TEST(a_request_brings_the_reply_home)
{
	struct ask ask = { .how = DOUBLE };
	struct hive_bus *bus = begin((struct hive_bus_options){ .workers = 2 }, &ask);
	uint64_t answer;

	for (uint64_t i = 0; i < 500; i++) {
		CHECK_EQ(request(bus, i, &answer, HIVE_FOREVER), sizeof answer);
		CHECK_EQ(answer, 2 * i);
	}
	bus_end(bus);
}

TEST(no_reply_two_replies_and_one_that_is_too_large)
{
	struct ask ask = { .how = SILENT };
	struct hive_bus *bus = begin((struct hive_bus_options){ 0 }, &ask);
	struct hive_bus_message message = { .type = SMALL,
		                            .size = sizeof(struct small),
		                            .payload = &(struct small){ 0 } };
	uint64_t answer = 5;

	CHECK_ERR(request(bus, 1, &answer, HIVE_FOREVER), -ENODATA);
	CHECK_EQ(answer, 5);
	atomic_store(&ask.how, TOO_LARGE);
	CHECK_EQ(request(bus, 1, &answer, HIVE_FOREVER), 0);
	atomic_store(&ask.how, TWICE);
	CHECK_EQ(request(bus, 4, &answer, HIVE_FOREVER), sizeof answer);
	CHECK_EQ(answer, 8);
	CHECK_ERR(hive_bus_request(bus, &message, NULL, 8, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_bus_request(bus, &message, &answer, SIZE_MAX, HIVE_FOREVER), -EINVAL);
	message.type = 2;
	CHECK_ERR(hive_bus_request(bus, &message, &answer, 8, HIVE_FOREVER), -ENOENT);
	bus_end(bus);
}

static int nobody_asked(void *context, const struct hive_bus_header *header, const void *payload)
{
	(void)payload;
	CHECK_ERR(hive_bus_reply(header, "x", 1), -ENOENT);
	++*(int *)context;
	return 0;
}

TEST(a_reply_that_nobody_asked_for)
{
	int count = 0;
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", nobody_asked, &count };
	struct hive_bus_options options = { .types = &type, .type_count = 1 };
	struct hive_bus_message message = { .type = SMALL,
		                            .size = sizeof(struct small),
		                            .payload = &(struct small){ 0 } };
	struct hive_bus *bus;

	CHECK_OK(hive_bus_create(&options, &bus));
	CHECK_OK(hive_bus_start(bus));
	CHECK_OK(put_small(bus, 1, HIVE_BUS_HIGH));
	CHECK_OK(hive_bus_pause(bus, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_bus_resume(bus));
	CHECK_OK(hive_bus_call(bus, &message));
	bus_end(bus);
	CHECK_EQ(count, 2);
}

TEST(the_asker_gives_up_at_the_deadline_and_the_late_reply_goes_nowhere)
{
	struct ask ask = { .how = LATE, .notes.gate = 1 };
	struct hive_bus *bus = begin((struct hive_bus_options){ .requests = 1 }, &ask);
	uint64_t answer = 5;

	CHECK_ERR(request(bus, 1, &answer, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	while (ask.notes.inside == 0)
		sched_yield();
	notes_open(&ask.notes);
	CHECK_OK(hive_bus_pause(bus, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_EQ(answer, 5);
	CHECK_OK(hive_bus_resume(bus));
	atomic_store(&ask.how, DOUBLE); /* the cell serves the next one */
	CHECK_EQ(request(bus, 3, &answer, HIVE_FOREVER), 8);
	CHECK_EQ(answer, 6);
	bus_end(bus);
}

static void *ask_many(void *arg)
{
	struct hive_bus *bus = arg;
	uint64_t answer;

	for (uint64_t i = 0; i < 300; i++) {
		int r = request(bus, i, &answer,
		                i % 3 == 0   ? HIVE_NOWAIT
		                : i % 3 == 1 ? hive_deadline(NULL, HIVE_US(20))
		                             : HIVE_FOREVER);

		CHECK(r == 8 || (i % 3 != 2 && (r == -ENOBUFS || r == -ETIMEDOUT)));
		CHECK(r != 8 || answer == 2 * i);
	}
	return NULL;
}

static int reply_anyhow(void *context, const struct hive_bus_header *header, const void *payload)
{
	uint64_t answer = 2 * small_of(header, payload)->number;
	int r = hive_bus_reply(header, &answer, sizeof answer);

	(void)context;
	CHECK(r == 0 || r == -ENOENT);
	return 0;
}

TEST(askers_that_give_up_never_get_the_reply_of_another)
{
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", reply_anyhow, NULL };
	struct hive_bus_options options = { .types = &type, .type_count = 1, .workers = 2, .requests = 2, .depth = 8 };
	struct hive_bus *bus;
	pthread_t threads[4];

	CHECK_OK(hive_bus_create(&options, &bus));
	CHECK_OK(hive_bus_start(bus));
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, ask_many, bus), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	bus_end(bus);
}

static void *stop_when_queued(void *arg)
{
	struct hive_bus_stats s;

	do {
		sched_yield();
		CHECK_OK(hive_bus_stats_read(arg, &s));
	} while (s.queued == 0);
	CHECK_OK(hive_bus_stop(arg, HIVE_NOW, HIVE_FOREVER));
	return NULL;
}

TEST(a_request_that_is_dropped_is_cancelled)
{
	struct ask ask = { .how = DOUBLE };
	struct hive_bus *bus = begin((struct hive_bus_options){ 0 }, &ask);
	uint64_t answer;
	pthread_t thread;

	CHECK_OK(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER));
	CHECK_EQ(pthread_create(&thread, NULL, stop_when_queued, bus), 0);
	CHECK_ERR(request(bus, 1, &answer, HIVE_FOREVER), -ECANCELED);
	pthread_join(thread, NULL);
	CHECK_EQ(ask.notes.dropped, 1);
	CHECK_ERR(request(bus, 1, &answer, HIVE_FOREVER), -ESHUTDOWN);
	CHECK_OK(hive_bus_destroy(bus));
}

static int asks_itself(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct notes *n = context;
	uint64_t answer;

	(void)header, (void)payload;
	CHECK_ERR(request(n->bus, 1, &answer, HIVE_FOREVER), -EDEADLK);
	return (int)atomic_fetch_add(&n->count, 1);
}

TEST(a_handler_does_not_ask_its_own_bus)
{
	struct notes n = { 0 };
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", asks_itself, &n };
	struct hive_bus_options options = { .types = &type, .type_count = 1 };

	CHECK_OK(hive_bus_create(&options, &n.bus));
	CHECK_OK(hive_bus_start(n.bus));
	CHECK_OK(put_small(n.bus, 1, HIVE_BUS_HIGH));
	bus_end(n.bus);
	CHECK_EQ(n.count, 1);
}

TEST(a_call_runs_here_and_now_past_the_queue)
{
	struct notes n = { .answer = -EIO };
	struct hive_bus *bus = bus_begin((struct hive_bus_options){ .depth = 2 }, &n);
	struct small payload = { 7 };
	const struct hive_bus_message message = { .type = SMALL, .size = sizeof payload, .payload = &payload };
	struct hive_bus_stats s;

	CHECK_ERR(hive_bus_call(bus, &message), -EIO);
	atomic_store(&n.answer, 0);
	CHECK_OK(hive_bus_call(bus, &message));
	CHECK_EQ(n.sum, 14);
	check_books(bus, &s);
	CHECK(s.called == 2 && s.accepted == 0 && n.failed == 1);
	bus_end(bus);
}

/* ---- subscriptions ---- */

static int count_up(void *context, const struct hive_bus_header *header, const void *payload)
{
	(void)payload;
	CHECK_EQ(header->type, SMALL);
	atomic_fetch_add((_Atomic(int) *)context, 1); /* as it was given */
	return 0;
}

static int fail(void *context, const struct hive_bus_header *header, const void *payload)
{
	(void)context, (void)header, (void)payload;
	return -EPROTO;
}

TEST(several_subscribers_of_one_type)
{
	_Atomic(int) counts[3] = { 0 };
	struct notes n = { 0 };
	struct hive_bus *bus = bus_begin((struct hive_bus_options){ .subscriptions = 3 }, &n);
	struct small payload = { 7 };
	const struct hive_bus_message message = { .type = SMALL, .size = sizeof payload, .payload = &payload };
	struct large other = large_make(1);
	uint32_t ids[4];

	CHECK_ERR(hive_bus_subscribe(bus, 2, count_up, NULL, &ids[0]), -ENOENT);
	CHECK_ERR(hive_bus_subscribe(bus, SMALL, NULL, NULL, &ids[0]), -EINVAL);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_bus_subscribe(bus, SMALL, count_up, (void *)(uintptr_t)&counts[i], &ids[i]));
	CHECK_ERR(hive_bus_subscribe(bus, SMALL, count_up, NULL, &ids[3]), -ENOSPC);
	CHECK_OK(hive_bus_call(bus, &message));
	CHECK_OK(large_submit(bus, &other, HIVE_BUS_HIGH, HIVE_NOWAIT));
	CHECK(counts[0] == 1 && counts[1] == 1 && counts[2] == 1 && n.sum >= 7);
	CHECK_OK(hive_bus_unsubscribe(bus, ids[1], HIVE_FOREVER));
	CHECK_ERR(hive_bus_unsubscribe(bus, ids[1], HIVE_FOREVER), -ESRCH);
	CHECK_OK(hive_bus_call(bus, &message));
	CHECK(counts[0] == 2 && counts[1] == 1 && counts[2] == 2);
	CHECK_OK(hive_bus_subscribe(bus, SMALL, fail, NULL, &ids[3]));
	CHECK_ERR(hive_bus_unsubscribe(bus, ids[1], HIVE_FOREVER), -ESRCH); /* the slot has a new life */
	CHECK_ERR(hive_bus_unsubscribe(bus, 0, HIVE_FOREVER), -ESRCH);
	CHECK_ERR(hive_bus_unsubscribe(bus, UINT32_MAX, HIVE_FOREVER), -ESRCH);
	CHECK_ERR(hive_bus_call(bus, &message), -EPROTO); /* one of them failed: the others ran all the same */
	CHECK(counts[0] == 3 && counts[2] == 3 && n.failed == 1);
	bus_end(bus);
}

static int waits_inside(void *context, const struct hive_bus_header *header, const void *payload)
{
	(void)header, (void)payload;
	notes_pass(context);
	return 0;
}

TEST(unsubscribe_waits_for_the_call_under_way)
{
	struct notes n = { .gate = 1 };
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", NULL, NULL }; /* only subscribers */
	struct hive_bus_options options = { .types = &type, .type_count = 1, .subscriptions = 1 };
	uint32_t id, other;

	CHECK_OK(hive_bus_create(&options, &n.bus));
	CHECK_OK(hive_bus_subscribe(n.bus, SMALL, waits_inside, &n, &id));
	CHECK_OK(hive_bus_start(n.bus));
	CHECK_OK(put_small(n.bus, 1, HIVE_BUS_HIGH));
	CHECK_OK(put_small(n.bus, 2, HIVE_BUS_HIGH));
	while (n.inside == 0)
		sched_yield();
	CHECK_ERR(hive_bus_unsubscribe(n.bus, id, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_bus_subscribe(n.bus, SMALL, waits_inside, &n, &other), -ENOSPC); /* its place is not free yet */
	CHECK_ERR(hive_bus_unsubscribe(n.bus, id, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	notes_open(&n);
	CHECK_OK(hive_bus_unsubscribe(n.bus, id, HIVE_FOREVER));
	CHECK_EQ(n.inside, 0);
	CHECK_OK(hive_bus_pause(n.bus, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_EQ(n.most_inside, 1);
	CHECK_OK(hive_bus_subscribe(n.bus, SMALL, waits_inside, &n, &other));
	CHECK(other != id);
	CHECK_OK(hive_bus_unsubscribe(n.bus, other, HIVE_FOREVER));
	bus_end(n.bus);
}

static int unsubscribes(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct notes *n = context;

	(void)header, (void)payload;
	CHECK_ERR(hive_bus_unsubscribe(n->bus, (uint32_t)n->seen[0], HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_bus_unsubscribe(n->bus, (uint32_t)n->seen[0], HIVE_NOWAIT), -ETIMEDOUT); /* it runs itself */
	atomic_fetch_add(&n->count, 1);
	return 0;
}

TEST(a_subscriber_ends_its_own_subscription)
{
	struct notes n = { 0 };
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", NULL, NULL };
	struct hive_bus_options options = { .types = &type, .type_count = 1 };
	uint32_t id;

	CHECK_OK(hive_bus_create(&options, &n.bus));
	CHECK_OK(hive_bus_subscribe(n.bus, SMALL, unsubscribes, &n, &id));
	n.seen[0] = id;
	CHECK_OK(hive_bus_start(n.bus));
	for (uint64_t i = 0; i < 5; i++)
		CHECK_OK(put_small(n.bus, i, HIVE_BUS_HIGH));
	CHECK_OK(hive_bus_pause(n.bus, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_EQ(n.count, 1);
	CHECK_OK(hive_bus_unsubscribe(n.bus, id, HIVE_FOREVER));
	bus_end(n.bus);
}
