/* SPDX-License-Identifier: MIT */
/* Who comes in at which fill; levels; policies on full. */
#include "bus.h"

/* So many of each priority come in, one after the other, into a ring that nobody empties. */
static uint32_t count_in(struct hive_bus *bus, enum hive_bus_priority priority)
{
	uint32_t count = 0;
	int r;

	while ((r = put_small(bus, count, priority)) == 0)
		count++;
	CHECK_EQ(r, -ENOBUFS);
	return count;
}

static uint32_t ceiling(uint32_t depth, uint32_t percent)
{
	return (depth * percent + 99) / 100;
}

static void check_thresholds(uint32_t depth, const uint8_t at[4])
{
	struct hive_bus_options options = { .depth = depth };
	uint32_t low = at ? at[1] : 60, medium = at ? at[2] : 80, high = at ? at[3] : 99;
	struct notes n = { 0 };
	struct hive_bus_stats s;
	struct hive_bus *bus;

	if (at)
		memcpy(options.refuse_at, at, 4);
	bus = bus_begin(options, &n);
	CHECK_OK(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER));
	CHECK_EQ(count_in(bus, HIVE_BUS_LOW), ceiling(depth, low));
	CHECK_EQ(count_in(bus, HIVE_BUS_MEDIUM), ceiling(depth, medium) - ceiling(depth, low));
	CHECK_EQ(count_in(bus, HIVE_BUS_HIGH), ceiling(depth, high) - ceiling(depth, medium));
	check_books(bus, &s);
	CHECK(s.refused[1] == 1 && s.refused[2] == 1 && s.refused[3] == 1 && s.queued == ceiling(depth, high));
	CHECK(s.depth_now == s.queued && s.depth_max == s.queued);
	bus_end(bus);
}

TEST(low_is_refused_from_60_percent_medium_from_80_high_from_99)
{
	check_thresholds(1000, NULL);
	check_thresholds(1024, NULL);
}

/* In lock step: a handler that takes one message for each two that are submitted, a third of them high. */
struct paced {
	_Atomic(uint64_t) allowed, handled;
};

static int take_when_allowed(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct paced *p = context;
	uint64_t number = atomic_load(&p->handled);

	CHECK(header && payload);
	while (atomic_load(&p->allowed) <= number)
		sched_yield();
	atomic_store(&p->handled, number + 1);
	return 0;
}

TEST(at_twice_the_load_no_high_one_is_refused_and_low_ones_are)
{
	static struct paced paced;
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", take_when_allowed, &paced };
	const struct hive_bus_options options = { .types = &type, .type_count = 1, .depth = 64 };
	struct hive_bus *bus;
	struct hive_bus_stats s;

	CHECK_OK(hive_bus_create(&options, &bus));
	CHECK_OK(hive_bus_start(bus));
	for (uint64_t i = 0; i < 30000; i++) {
		int r = put_small(bus, i, (enum hive_bus_priority)(1 + i % 3));

		CHECK(r == 0 || (r == -ENOBUFS && i % 3 != 2));
		if (i % 2)
			atomic_fetch_add(&paced.allowed, 1);
		while (atomic_load(&paced.handled) < atomic_load(&paced.allowed))
			sched_yield();
	}
	CHECK_OK(hive_bus_stats_read(bus, &s));
	CHECK(s.refused[HIVE_BUS_HIGH] == 0 && s.refused[HIVE_BUS_LOW] > 9000 && s.refused[HIVE_BUS_MEDIUM] > 4000);
	atomic_store(&paced.allowed, UINT64_MAX);
	bus_end(bus);
}

TEST(small_depths_admit_each_priority_and_keep_their_order)
{
	for (uint32_t depth = 1; depth <= 40; depth++)
		check_thresholds(depth, NULL);
}

TEST(thresholds_can_be_chosen)
{
	check_thresholds(100, (const uint8_t[4]){ 0, 1, 50, 100 });
	check_thresholds(10, (const uint8_t[4]){ 0, 30, 30, 30 });
	check_thresholds(7, (const uint8_t[4]){ 0, 100, 100, 100 });
}

struct crowd {
	struct hive_bus *bus;
	pthread_barrier_t start;
	_Atomic(uint32_t) accepted[4];
	enum hive_bus_priority priority;
};

static void *storm(void *arg)
{
	struct crowd *c = arg;

	pthread_barrier_wait(&c->start);
	for (int i = 0; i < 200; i++)
		if (put_small(c->bus, 1, c->priority) == 0)
			atomic_fetch_add(&c->accepted[c->priority], 1);
	return NULL;
}

TEST(racing_submitters_do_not_overshoot_by_a_single_message)
{
	enum { CROWD = 6 };

	for (int round = 0; round < 20 / test_slowness() + 1; round++) {
		struct notes n = { 0 };
		struct crowd c = { .bus = bus_begin((struct hive_bus_options){ .depth = 100 }, &n) };

		CHECK_OK(hive_bus_pause(c.bus, HIVE_NOW, HIVE_FOREVER));
		for (int p = 1; p <= 3; p++) {
			static const uint32_t expected[4] = { 0, 60, 20, 19 };
			pthread_t threads[CROWD];

			c.priority = (enum hive_bus_priority)p;
			pthread_barrier_init(&c.start, NULL, CROWD);
			for (int i = 0; i < CROWD; i++)
				CHECK_EQ(pthread_create(&threads[i], NULL, storm, &c), 0);
			for (int i = 0; i < CROWD; i++)
				pthread_join(threads[i], NULL);
			pthread_barrier_destroy(&c.start);
			CHECK_EQ(c.accepted[p], expected[p]);
		}
		bus_end(c.bus);
	}
}

TEST(the_level_can_be_read_and_each_change_is_told_once_in_order)
{
	struct notes n = { 0 };
	struct hive_bus *bus = bus_begin((struct hive_bus_options){ .depth = 100 }, &n);
	static const uint32_t up[] = { HIVE_BUS_WARNING, HIVE_BUS_CRITICAL, HIVE_BUS_FULL };

	CHECK_OK(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER));
	for (uint32_t i = 0; i < 99; i++) {
		CHECK_EQ(hive_bus_level(bus), i < 60 ? HIVE_BUS_NORMAL : i < 80 ? HIVE_BUS_WARNING : HIVE_BUS_CRITICAL);
		CHECK_OK(put_small(bus, i, HIVE_BUS_HIGH));
	}
	CHECK_EQ(hive_bus_level(bus), HIVE_BUS_FULL);
	CHECK_EQ(n.levels, 3);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(n.level[i], up[i]);
	CHECK_OK(hive_bus_resume(bus));
	bus_end(bus);
	CHECK_EQ(n.levels, 6);
	for (int i = 3; i < 6; i++)
		CHECK_EQ(n.level[i], 5 - i);
}

/* ---- on full ---- */

TEST(with_a_deadline_a_submit_waits_for_room)
{
	struct notes n = { 0 };
	struct hive_bus *bus = bus_begin((struct hive_bus_options){ .depth = 4 }, &n);
	struct hive_bus_stats s;

	CHECK_OK(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER));
	for (uint64_t i = 0; i < 4; i++)
		CHECK_OK(put_small(bus, i, HIVE_BUS_HIGH));
	CHECK_ERR(small_submit(bus, &(struct small){ 9 }, HIVE_BUS_HIGH, hive_deadline(NULL, HIVE_MS(2))), -ETIMEDOUT);
	check_books(bus, &s);
	CHECK(s.refused[3] == 1 && s.accepted == 4);
	CHECK_OK(hive_bus_resume(bus));
	for (uint64_t i = 4; i < 1000; i++)
		CHECK_OK(small_submit(bus, &(struct small){ i }, HIVE_BUS_HIGH, HIVE_FOREVER));
	bus_end(bus);
	CHECK_EQ(n.sum, 999 * 1000 / 2);
}

static void *resume_when_one_waits(void *arg)
{
	struct hive_bus *bus = arg;
	struct hive_bus_stats s;

	do {
		sched_yield();
		CHECK_OK(hive_bus_stats_read(bus, &s));
	} while (s.accepted < 4);
	CHECK_OK(hive_bus_resume(bus));
	return NULL;
}

TEST(a_low_one_that_waits_does_not_keep_a_high_one_out)
{
	struct notes n = { 0 };
	struct hive_bus *bus = bus_begin((struct hive_bus_options){ .depth = 4 }, &n);
	pthread_t thread;

	CHECK_OK(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER));
	for (uint64_t i = 0; i < 3; i++)
		CHECK_OK(put_small(bus, i, HIVE_BUS_HIGH));
	CHECK_EQ(pthread_create(&thread, NULL, resume_when_one_waits, bus), 0);
	CHECK_OK(small_submit(bus, &(struct small){ 3 }, HIVE_BUS_HIGH, HIVE_FOREVER));
	CHECK_OK(small_submit(bus, &(struct small){ 4 }, HIVE_BUS_LOW, HIVE_FOREVER));
	pthread_join(thread, NULL);
	bus_end(bus);
	CHECK_EQ(n.sum, 10);
}

TEST(the_oldest_of_a_lower_priority_is_dropped_and_told)
{
	struct notes n = { 0 };
	struct hive_bus *bus = bus_begin((struct hive_bus_options){ .depth = 10, .on_full = HIVE_BUS_DROP_OLDER_LOWER },
	                                 &n);
	struct hive_bus_stats s;

	CHECK_OK(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER));
	CHECK_OK(put_small(bus, 100, HIVE_BUS_HIGH));
	for (uint64_t i = 1; i < 6; i++)
		CHECK_OK(put_small(bus, i, HIVE_BUS_LOW));
	CHECK_ERR(put_small(bus, 6, HIVE_BUS_LOW), -ENOBUFS); /* nobody is lower */
	CHECK_OK(put_small(bus, 10, HIVE_BUS_MEDIUM));
	CHECK_OK(put_small(bus, 11, HIVE_BUS_MEDIUM));
	CHECK_EQ(n.dropped, 0);
	CHECK_OK(put_small(bus, 12, HIVE_BUS_MEDIUM));
	CHECK(n.dropped == 1 && n.drop_sum == 1);
	CHECK_OK(put_small(bus, 101, HIVE_BUS_HIGH));
	CHECK_OK(put_small(bus, 102, HIVE_BUS_HIGH));
	CHECK_EQ(n.dropped, 1);
	for (uint64_t i = 0; i < 4; i++)
		CHECK_OK(put_small(bus, 110 + i, HIVE_BUS_HIGH)); /* for 2, 3, 4, 5 */
	CHECK(n.dropped == 5 && n.drop_sum == 15);
	CHECK_OK(put_small(bus, 120, HIVE_BUS_HIGH)); /* for the oldest medium one, which took the place of 1 */
	CHECK(n.dropped == 6 && n.drop_sum == 27);
	check_books(bus, &s);
	CHECK(s.dropped == 6 && s.queued == 10 && s.accepted == 16 && s.refused[1] == 1);
	CHECK_OK(hive_bus_resume(bus));
	bus_end(bus);
	CHECK_EQ(n.count, 10);
	CHECK_EQ(n.seen[0], 100);
	CHECK_EQ(n.seen[1], 120); /* in the place of what was dropped */
	CHECK_EQ(n.seen[2], 110);
}

TEST(the_caller_runs_what_does_not_fit)
{
	struct notes n = { 0 };
	struct hive_bus *bus = bus_begin((struct hive_bus_options){ .depth = 2, .on_full = HIVE_BUS_RUN_IN_CALLER },
	                                 &n);
	struct hive_bus_stats s;

	notes_hold_one(&n, 1);
	CHECK_OK(put_small(bus, 2, HIVE_BUS_HIGH));
	CHECK_OK(put_small(bus, 3, HIVE_BUS_HIGH));
	atomic_store(
		&n.gate,
		0); /* the worker may go on, or not yet: either way this one is handled when submit returns, or queued */
	CHECK_OK(put_small(bus, 4, HIVE_BUS_HIGH));
	CHECK_OK(hive_bus_pause(bus, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_EQ(n.sum, 10);
	for (uint64_t i = 0; i < 2; i++)
		CHECK_OK(put_small(bus, 0, HIVE_BUS_HIGH));
	CHECK_ERR(put_small(bus, 5, HIVE_BUS_HIGH), -ENOBUFS); /* paused: no handler begins, here neither */
	CHECK_OK(hive_bus_resume(bus));
	bus_end(bus);
	(void)s;
}

static int submits_again(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct notes *n = context;
	const struct small *message = small_of(header, payload);
	int r;

	notes_pass(n);
	atomic_fetch_add(&n->count, 1);
	if (message->number == 0)
		return 0;
	r = small_submit(n->bus, &(struct small){ message->number - 1 }, HIVE_BUS_HIGH, HIVE_NOWAIT);
	CHECK(r == 0 || r == -ENOBUFS || r == -ESHUTDOWN);
	atomic_fetch_add(&n->sum, r == 0);
	r = small_submit(n->bus, &(struct small){ 0 }, HIVE_BUS_HIGH, HIVE_FOREVER);
	CHECK(r == 0 || r == -EDEADLK || r == -ESHUTDOWN); /* full: it never waits for itself */
	atomic_fetch_add(&n->sum, r == 0);
	return 0;
}

TEST(a_handler_submits_to_its_own_full_bus_and_nothing_locks_up)
{
	static const enum hive_bus_on_full policies[] = { HIVE_BUS_REFUSE, HIVE_BUS_DROP_OLDER_LOWER,
		                                          HIVE_BUS_RUN_IN_CALLER };

	for (size_t p = 0; p < 3; p++)
		for (int dispatcher = 0; dispatcher < 2; dispatcher++) {
			struct notes n = { 0 };
			const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", submits_again, &n };
			struct hive_bus_options options = { .types = &type,
				                            .type_count = 1,
				                            .depth = 2,
				                            .worker_depth = 2,
				                            .on_full = policies[p],
				                            .dispatcher = dispatcher };
			uint64_t accepted = 0;

			CHECK_OK(hive_bus_create(&options, &n.bus));
			CHECK_OK(hive_bus_start(n.bus));
			for (uint64_t i = 0; i < 200; i++) {
				CHECK_OK(small_submit(n.bus, &(struct small){ 3 }, HIVE_BUS_HIGH, HIVE_FOREVER));
				accepted++;
			}
			CHECK_OK(hive_bus_pause(n.bus, HIVE_DRAIN, HIVE_FOREVER));
			CHECK_OK(hive_bus_stop(n.bus, HIVE_DRAIN, HIVE_FOREVER));
			CHECK_OK(hive_bus_destroy(n.bus));
			CHECK_EQ(n.count, accepted + n.sum);
		}
}

static uint64_t drops_resubmitted;

static void resubmit(void *arg, const struct hive_bus_header *header, const void *payload)
{
	struct notes *n = arg;
	int r = small_submit(n->bus, payload, HIVE_BUS_HIGH, HIVE_NOWAIT);

	(void)header;
	CHECK(r == 0 || r == -ENOBUFS || r == -ESHUTDOWN);
	drops_resubmitted++;
}

TEST(the_drop_hook_may_submit_and_nothing_locks_up)
{
	struct notes n = { 0 };
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", notes_small, &n };
	struct hive_bus_options options = { .types = &type,
		                            .type_count = 1,
		                            .depth = 4,
		                            .on_full = HIVE_BUS_DROP_OLDER_LOWER,
		                            .hook_arg = &n,
		                            .on_drop = resubmit };

	CHECK_OK(hive_bus_create(&options, &n.bus));
	CHECK_OK(hive_bus_start(n.bus));
	CHECK_OK(hive_bus_pause(n.bus, HIVE_NOW, HIVE_FOREVER));
	for (uint64_t i = 0; i < 3; i++)
		CHECK_OK(put_small(n.bus, i, HIVE_BUS_LOW));
	for (uint64_t i = 0; i < 4; i++)
		CHECK_OK(put_small(n.bus, i, HIVE_BUS_HIGH));
	CHECK_EQ(drops_resubmitted, 3);
	CHECK_ERR(put_small(n.bus, 9, HIVE_BUS_HIGH), -ENOBUFS);
	CHECK_OK(hive_bus_stop(n.bus, HIVE_NOW, HIVE_FOREVER));
	CHECK_EQ(drops_resubmitted, 7);
	CHECK_OK(hive_bus_destroy(n.bus));
}
