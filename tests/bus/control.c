/* SPDX-License-Identifier: MIT */
/* Start, pause, flush, resume, stop, in all forms of a bus. */
#include "bus.h"

static const struct hive_bus_options forms[] = {
	{ .depth = 64 },
	{ .depth = 64, .workers = 3 },
	{ .depth = 64, .workers = 3, .dispatcher = true, .worker_depth = 4 },
	{ .depth = 64, .workers = 3, .dispatcher = true, .worker_depth = 4, .route = HIVE_BUS_LEAST_LOADED },
	{ .depth = 64, .workers = 3, .dispatcher = true, .worker_depth = 64, .route = HIVE_BUS_BY_KEY },
	{ .worker_depth = 64, .workers = 3, .route = HIVE_BUS_BY_KEY },
	{ .depth = 64, .workers = 3, .on_full = HIVE_BUS_DROP_OLDER_LOWER },
};
enum { FORMS = sizeof forms / sizeof *forms };

static int put_key(struct hive_bus *bus, uint64_t number, int64_t deadline_ns)
{
	return small_submit_key(bus, &(struct small){ number }, HIVE_BUS_HIGH, number, deadline_ns);
}

TEST(everything_accepted_is_handled_in_each_form)
{
	for (int f = 0; f < FORMS; f++) {
		struct notes n = { 0 };
		struct hive_bus *bus = bus_begin(forms[f], &n);

		for (uint64_t i = 1; i <= 2000; i++)
			CHECK_OK(put_key(bus, i, HIVE_FOREVER));
		bus_end(bus);
		CHECK_EQ(n.sum, 2000 * 2001 / 2);
		CHECK_EQ(n.count, 2000);
	}
}

TEST(not_started_stopped_and_started_twice)
{
	for (int f = 0; f < FORMS; f++) {
		struct notes n = { 0 };
		struct hive_bus *bus = bus_make(forms[f], &n);
		struct small payload = { 1 };
		const struct hive_bus_message message = { .type = SMALL, .size = sizeof payload, .payload = &payload };
		struct hive_bus_stats s;

		CHECK_ERR(put_small(bus, 1, HIVE_BUS_HIGH), -ESHUTDOWN);
		CHECK_ERR(hive_bus_call(bus, &message), -ESHUTDOWN);
		CHECK_ERR(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER), -ESHUTDOWN);
		CHECK_ERR(hive_bus_resume(bus), -ESHUTDOWN);
		CHECK_OK(hive_bus_start(bus));
		CHECK_ERR(hive_bus_start(bus), -EALREADY);
		CHECK_ERR(hive_bus_resume(bus), -EALREADY);
		CHECK_ERR(hive_bus_destroy(bus), -EBUSY);
		CHECK_ERR(hive_bus_stop(bus, (enum hive_stop_mode)0, HIVE_FOREVER), -EINVAL);
		CHECK_ERR(hive_bus_pause(bus, (enum hive_stop_mode)3, HIVE_FOREVER), -EINVAL);
		CHECK_OK(put_small(bus, 1, HIVE_BUS_HIGH));
		CHECK_OK(hive_bus_stop(bus, HIVE_DRAIN, HIVE_FOREVER));
		CHECK_ERR(hive_bus_stop(bus, HIVE_DRAIN, HIVE_FOREVER), -EALREADY);
		CHECK_ERR(hive_bus_start(bus), -ESHUTDOWN);
		CHECK_ERR(put_small(bus, 1, HIVE_BUS_HIGH), -ESHUTDOWN);
		CHECK_ERR(small_submit(bus, &payload, HIVE_BUS_HIGH, HIVE_FOREVER), -ESHUTDOWN);
		CHECK_ERR(hive_bus_call(bus, &message), -ESHUTDOWN);
		CHECK_ERR(hive_bus_pause(bus, HIVE_DRAIN, HIVE_FOREVER), -ESHUTDOWN);
		check_books(bus, &s);
		CHECK(s.refused_closed == 3 && s.accepted == 1 && n.count == 1);
		CHECK_OK(hive_bus_destroy(bus));
	}
}

TEST(a_bus_that_never_started_is_stopped_at_once)
{
	struct notes n = { 0 };
	struct hive_bus *bus = bus_make(forms[0], &n);

	CHECK_OK(hive_bus_stop(bus, HIVE_DRAIN, HIVE_NOWAIT));
	CHECK_OK(hive_bus_destroy(bus));
	bus = bus_make(forms[0], &n);
	CHECK_OK(hive_bus_destroy(bus));
}

TEST(while_paused_no_handler_begins_and_submits_go_on)
{
	for (int f = 0; f < FORMS; f++) {
		struct notes n = { 0 };
		struct hive_bus *bus = bus_begin(forms[f], &n);
		struct small payload = { 1 };
		const struct hive_bus_message message = { .type = SMALL, .size = sizeof payload, .payload = &payload };

		CHECK_OK(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER));
		CHECK_OK(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER)); /* twice is fine */
		for (uint64_t i = 1; i <= 20; i++)
			CHECK_OK(put_key(bus, i, HIVE_NOWAIT));
		CHECK_ERR(hive_bus_call(bus, &message), -EBUSY);
		for (int i = 0; i < 5; i++)
			sched_yield();
		CHECK_EQ(n.count, 0);
		CHECK_OK(hive_bus_resume(bus));
		bus_end(bus);
		CHECK_EQ(n.sum, 210);
	}
}

TEST(pause_waits_for_the_handler_that_runs_and_no_longer_than_its_deadline)
{
	for (int f = 0; f < FORMS; f++) {
		struct notes n = { 0 };
		struct hive_bus *bus = bus_begin(forms[f], &n);

		notes_hold_one(&n, 1);
		CHECK_OK(put_small(bus, 2, HIVE_BUS_HIGH));
		CHECK_ERR(hive_bus_pause(bus, HIVE_NOW, HIVE_NOWAIT), -ETIMEDOUT);
		CHECK_ERR(hive_bus_pause(bus, HIVE_NOW, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
		notes_open(&n);
		CHECK_OK(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER));
		CHECK_EQ(n.inside, 0);
		bus_end(bus); /* a drain ends the pause */
		CHECK_EQ(n.sum, 3);
	}
}

TEST(flush_and_pause_returns_when_all_from_before_was_handled)
{
	for (int f = 0; f < FORMS; f++) {
		struct notes n = { 0 };
		struct hive_bus *bus = bus_begin(forms[f], &n);
		uint64_t sum = 0;

		for (int round = 0; round < 20; round++) {
			for (uint64_t i = 1; i <= 100; i++) {
				CHECK_OK(put_key(bus, i, HIVE_FOREVER));
				sum += i;
			}
			CHECK_OK(hive_bus_pause(bus, HIVE_DRAIN, HIVE_FOREVER));
			CHECK_EQ(n.sum, sum);
			CHECK_EQ(n.inside, 0);
			CHECK_OK(put_key(bus, 7, HIVE_NOWAIT)); /* stays */
			CHECK_EQ(n.sum, sum);
			if (round % 2)
				CHECK_OK(hive_bus_pause(bus, HIVE_DRAIN,
				                        HIVE_FOREVER)); /* of a paused bus: handled, and paused again */
			CHECK_OK(hive_bus_resume(bus));
			sum += 7;
		}
		bus_end(bus);
		CHECK_EQ(n.sum, sum);
	}
}

TEST(a_flush_that_is_late_leaves_the_bus_as_it_was)
{
	for (int f = 0; f < FORMS; f++) {
		struct notes n = { 0 };
		struct hive_bus *bus = bus_begin(forms[f], &n);

		notes_hold_one(&n, 1);
		CHECK_ERR(hive_bus_pause(bus, HIVE_DRAIN, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
		notes_open(&n);
		CHECK_OK(put_small(bus, 2, HIVE_BUS_HIGH));
		while (n.sum != 3) /* it goes on without a resume */
			sched_yield();
		CHECK_ERR(hive_bus_resume(bus), -EALREADY);
		bus_end(bus);
	}
}

struct flood {
	struct hive_bus *bus;
	_Atomic(uint64_t) accepted;
	_Atomic(int) stop;
};

static void *submit_all_the_time(void *arg)
{
	struct flood *flood = arg;

	for (uint64_t i = 0; !atomic_load(&flood->stop); i++) {
		int r = small_submit_key(flood->bus, &(struct small){ 1 }, HIVE_BUS_HIGH, i,
		                         hive_deadline(NULL, HIVE_US(100)));

		CHECK(r == 0 || r == -ETIMEDOUT || r == -ESHUTDOWN);
		if (r == 0)
			atomic_fetch_add(&flood->accepted, 1);
	}
	return NULL;
}

TEST(pauses_and_flushes_under_a_flood)
{
	for (int f = 0; f < FORMS; f++) {
		struct notes n = { 0 };
		struct flood flood = { .bus = bus_begin(forms[f], &n) };
		struct hive_bus_stats s;
		pthread_t threads[2];

		for (int i = 0; i < 2; i++)
			CHECK_EQ(pthread_create(&threads[i], NULL, submit_all_the_time, &flood), 0);
		for (int round = 0; round < 30 / test_slowness() + 2; round++) {
			uint64_t before = flood.accepted, count;

			CHECK_OK(hive_bus_pause(flood.bus, round % 2 ? HIVE_DRAIN : HIVE_NOW, HIVE_FOREVER));
			count = n.count;
			CHECK(round % 2 == 0 ||
			      count + 2 >=
			              before); /* one of each thread may not have been counted yet, or was counted early */
			CHECK_EQ(n.inside, 0);
			sched_yield();
			CHECK_EQ(n.count, count);
			check_books(flood.bus, &s);
			CHECK_OK(hive_bus_resume(flood.bus));
		}
		CHECK_OK(hive_bus_stop(flood.bus, HIVE_DRAIN, HIVE_FOREVER));
		atomic_store(&flood.stop, 1);
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		check_books(flood.bus, &s);
		CHECK(s.accepted == flood.accepted && s.handled == s.accepted && n.count == s.handled &&
		      s.dispatched <= s.accepted);
		CHECK_OK(hive_bus_destroy(flood.bus));
	}
}

TEST(stop_now_hands_what_has_not_begun_to_the_drop_hook)
{
	for (int f = 0; f < FORMS; f++) {
		struct notes n = { 0 };
		struct hive_bus *bus = bus_begin(forms[f], &n);
		struct hive_bus_stats s;

		CHECK_OK(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER));
		for (uint64_t i = 1; i <= 20; i++)
			CHECK_OK(put_key(bus, i, HIVE_NOWAIT));
		CHECK_OK(hive_bus_stop(bus, HIVE_NOW, HIVE_FOREVER));
		CHECK(n.count == 0 && n.dropped == 20 && n.drop_sum == 210);
		check_books(bus, &s);
		CHECK(s.dropped == 20 && s.queued == 0);
		CHECK_OK(hive_bus_destroy(bus));
	}
}

TEST(a_stop_that_is_late_says_so_and_can_be_finished)
{
	for (int f = 0; f < FORMS; f++) {
		struct notes n = { 0 };
		struct hive_bus *bus = bus_begin(forms[f], &n);

		notes_hold_one(&n, 1);
		CHECK_OK(put_small(bus, 2, HIVE_BUS_HIGH)); /* maybe another worker begins with it, maybe not */
		CHECK_ERR(hive_bus_stop(bus, HIVE_DRAIN, hive_deadline(NULL, HIVE_MS(1))), -EINPROGRESS);
		CHECK_ERR(put_small(bus, 3, HIVE_BUS_HIGH), -ESHUTDOWN);
		CHECK_ERR(hive_bus_destroy(bus), -EBUSY);
		CHECK_ERR(hive_bus_resume(bus), -ESHUTDOWN);
		notes_open(&n);
		CHECK_OK(hive_bus_stop(bus, HIVE_NOW, HIVE_FOREVER));
		CHECK_EQ(n.sum + n.drop_sum, 3);
		CHECK_OK(hive_bus_destroy(bus));
	}
}

TEST(who_waits_for_room_learns_of_the_stop)
{
	for (int f = 0; f < FORMS; f++) {
		struct notes n = { 0 };
		struct flood flood = { .bus = bus_begin(forms[f], &n) };
		struct hive_bus_stats s;
		pthread_t thread;

		CHECK_OK(hive_bus_pause(flood.bus, HIVE_NOW, HIVE_FOREVER));
		while (put_small(flood.bus, 1, HIVE_BUS_HIGH) == 0)
			;
		CHECK_EQ(pthread_create(&thread, NULL, submit_all_the_time, &flood), 0);
		CHECK_OK(hive_bus_stop(flood.bus, HIVE_NOW, HIVE_FOREVER));
		atomic_store(&flood.stop, 1);
		pthread_join(thread, NULL);
		check_books(flood.bus, &s);
		CHECK_EQ(s.queued, 0);
		CHECK_OK(hive_bus_destroy(flood.bus));
	}
}

static int controls_itself(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct notes *n = context;

	(void)header, (void)payload;
	CHECK_ERR(hive_bus_pause(n->bus, HIVE_DRAIN, HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_bus_pause(n->bus, HIVE_NOW, HIVE_NOWAIT), -EDEADLK);
	CHECK_ERR(hive_bus_stop(n->bus, HIVE_NOW, HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_bus_start(n->bus), -EALREADY);
	CHECK_ERR(hive_bus_resume(n->bus), -EALREADY);
	atomic_fetch_add(&n->count, 1);
	return 0;
}

TEST(a_handler_cannot_wait_for_itself)
{
	struct notes n = { 0 };
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", controls_itself, &n };
	struct hive_bus_options options = { .types = &type, .type_count = 1 };
	struct small payload = { 1 };
	const struct hive_bus_message message = { .type = SMALL, .size = sizeof payload, .payload = &payload };

	CHECK_OK(hive_bus_create(&options, &n.bus));
	CHECK_OK(hive_bus_start(n.bus));
	CHECK_OK(put_small(n.bus, 1, HIVE_BUS_HIGH));
	while (n.count == 0)
		sched_yield();
	CHECK_OK(hive_bus_call(n.bus, &message));
	CHECK_OK(hive_bus_stop(n.bus, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_EQ(n.count, 2);
	CHECK_OK(hive_bus_destroy(n.bus));
}
