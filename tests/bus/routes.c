/* SPDX-License-Identifier: MIT */
/* Who handles what: in turn, by load, by key; and one slow worker among others. */
#include "bus.h"

enum { WORKERS = 4, KEYS = 16 };

/* Which thread handled how much of which key, and in order. */
struct log {
	struct notes notes; /* first: hooks */
	pthread_mutex_t lock;
	pthread_t threads[WORKERS];
	uint32_t known, by_thread[WORKERS];
	uint64_t next[KEYS];
	int thread_of[KEYS];
	_Atomic(int) stuck; /* the number of a thread that shall not go on: 1 + which; -1: the next one that comes */
};

static uint32_t thread_here(struct log *log)
{
	uint32_t i = 0;

	while (i < log->known && !pthread_equal(log->threads[i], pthread_self()))
		i++;
	CHECK(i < WORKERS);
	if (i == log->known) {
		log->threads[log->known++] = pthread_self();
	}
	return i;
}

static int note_thread(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct log *log = context;
	const struct small *message = small_of(header, payload);
	uint64_t key = header->key % KEYS;
	uint32_t thread;

	pthread_mutex_lock(&log->lock);
	thread = thread_here(log);
	log->by_thread[thread]++;
	if (log->next[key] == 0)
		log->thread_of[key] = (int)thread;
	if (log->next[key] != UINT64_MAX) {
		CHECK_EQ(message->number, log->next[key]);
		CHECK_EQ(log->thread_of[key], (int)thread);
		log->next[key]++;
	}
	pthread_mutex_unlock(&log->lock);
	if (atomic_load(&log->stuck) == -1) {
		int any = -1;

		if (atomic_compare_exchange_strong(&log->stuck, &any, 1 + (int)thread))
			while (atomic_load(&log->stuck) > 0)
				sched_yield();
	}
	atomic_fetch_add(&log->notes.count, 1);
	return 0;
}

static struct hive_bus *begin(struct hive_bus_options options, struct log *log, bool keyed)
{
	const struct hive_bus_type type = { SMALL, sizeof(struct small), "small", note_thread, log };
	struct hive_bus *bus;

	*log = (struct log){ .lock = PTHREAD_MUTEX_INITIALIZER };
	for (int i = 0; i < KEYS; i++)
		log->next[i] = keyed ? 0 : UINT64_MAX;
	options.types = &type;
	options.type_count = 1;
	options.workers = WORKERS;
	CHECK_OK(hive_bus_create(&options, &bus));
	CHECK_OK(hive_bus_start(bus));
	return bus;
}

TEST(the_same_key_goes_to_the_same_worker_in_order)
{
	for (int dispatcher = 0; dispatcher < 2; dispatcher++) {
		static struct log log;
		struct hive_bus *bus = begin(
			(struct hive_bus_options){
				.route = HIVE_BUS_BY_KEY, .dispatcher = dispatcher, .depth = 32, .worker_depth = 8 },
			&log, true);

		for (uint64_t i = 0; i < 500; i++)
			for (uint64_t key = 0; key < KEYS; key++)
				CHECK_OK(small_submit_key(bus, &(struct small){ i }, HIVE_BUS_HIGH, key, HIVE_FOREVER));
		bus_end(bus);
		CHECK_EQ(log.notes.count, 500 * KEYS);
		CHECK(log.known > 1); /* keys are spread */
	}
}

TEST(round_robin_deals_in_turn)
{
	static struct log log;
	struct hive_bus *bus = begin((struct hive_bus_options){ .dispatcher = true, .depth = 512, .worker_depth = 128 },
	                             &log, false);
	struct hive_bus_worker_stats w;

	CHECK_OK(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER));
	for (uint64_t i = 0; i < 400; i++)
		CHECK_OK(put_small(bus, i, HIVE_BUS_HIGH));
	for (uint32_t i = 0; i < WORKERS; i++) { /* all dealt, none taken: each has its share */
		do {
			sched_yield();
			CHECK_OK(hive_bus_worker_stats_read(bus, i, &w));
		} while (w.depth_now < 100);
		CHECK_EQ(w.depth_now, 100);
		CHECK(w.depth_max == 100 && w.handled == 0 && !w.busy);
	}
	CHECK_ERR(hive_bus_worker_stats_read(bus, WORKERS, &w), -ESRCH);
	bus_end(bus);
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(log.by_thread[i], 100);
}

TEST(least_loaded_spares_the_one_that_is_stuck)
{
	static struct log log;
	struct hive_bus *bus = begin((struct hive_bus_options){ .dispatcher = true, .route = HIVE_BUS_LEAST_LOADED },
	                             &log, false);
	uint32_t stuck;

	atomic_store(&log.stuck, -1);
	CHECK_OK(put_small(bus, 0, HIVE_BUS_HIGH));
	while (log.stuck == -1)
		sched_yield();
	stuck = (uint32_t)log.stuck - 1;
	for (uint64_t i = 1; i <= 300; i++) {
		CHECK_OK(put_small(bus, i, HIVE_BUS_HIGH));
		while (log.notes.count < i - log.by_thread[stuck] + 1)
			sched_yield(); /* the others are idle when the next one comes */
	}
	CHECK_EQ(log.by_thread[stuck], 1); /* it has one in its hand: the idle ones have less */
	atomic_store(&log.stuck, 0);
	bus_end(bus);
	CHECK_EQ(log.notes.count, 301);
}

/* W-17: one worker hangs in a handler; what the others could take is not held up, in any form. */
TEST(one_slow_worker_holds_up_nobody_else)
{
	static const struct hive_bus_options forms[] = {
		{ .depth = 8 },
		{ .depth = 8, .dispatcher = true, .worker_depth = 4 },
		{ .depth = 8, .dispatcher = true, .worker_depth = 4, .route = HIVE_BUS_LEAST_LOADED },
	};

	for (size_t f = 0; f < 3; f++) {
		static struct log log;
		struct hive_bus *bus = begin(forms[f], &log, false);
		uint64_t behind;

		atomic_store(&log.stuck, -1);
		CHECK_OK(put_small(bus, 0, HIVE_BUS_HIGH));
		while (log.stuck == -1)
			sched_yield();
		for (uint64_t i = 1; i <= 1000; i++)
			CHECK_OK(small_submit(bus, &(struct small){ i }, HIVE_BUS_HIGH, HIVE_FOREVER));
		behind = forms[f].dispatcher ? 4 : 0; /* what was dealt to it before its ring was full */
		while (log.notes.count < 1000 - behind)
			sched_yield();
		atomic_store(&log.stuck, 0);
		bus_end(bus);
		CHECK_EQ(log.notes.count, 1001);
	}
}

/* By key: the messages of the key whose worker hangs are refused at the door, those of others come through. */
TEST(a_key_whose_worker_hangs_is_refused_at_the_door)
{
	for (int dispatcher = 0; dispatcher < 2; dispatcher++) {
		static struct log log;
		struct hive_bus *bus = begin(
			(struct hive_bus_options){
				.route = HIVE_BUS_BY_KEY, .dispatcher = dispatcher, .depth = 64, .worker_depth = 4 },
			&log, true);
		struct hive_bus_stats s;
		uint64_t stuck_sent = 1, other = 1, sent = 0;
		int r;

		atomic_store(&log.stuck, -1);
		CHECK_OK(small_submit_key(bus, &(struct small){ 0 }, HIVE_BUS_HIGH, 0, HIVE_NOWAIT));
		while (log.stuck == -1)
			sched_yield();
		while ((r = small_submit_key(bus, &(struct small){ stuck_sent }, HIVE_BUS_HIGH, 0, HIVE_NOWAIT)) == 0)
			stuck_sent++;
		CHECK_EQ(r, -ENOBUFS);
		CHECK_EQ(stuck_sent, 5);
		/* Another key of another worker: one that comes in and is handled. */
		for (other = 1; other < KEYS; other++) {
			if (small_submit_key(bus, &(struct small){ 0 }, HIVE_BUS_HIGH, other, HIVE_NOWAIT) == 0)
				break;
		}
		CHECK(other < KEYS);
		for (sent = 1; sent < 200; sent++)
			CHECK_OK(small_submit_key(bus, &(struct small){ sent }, HIVE_BUS_HIGH, other, HIVE_FOREVER));
		while (log.notes.count < 200)
			sched_yield();
		check_books(bus, &s);
		CHECK(s.refused[HIVE_BUS_HIGH] >= 1 && s.queued == 5);
		atomic_store(&log.stuck, 0);
		bus_end(bus);
		CHECK_EQ(log.notes.count, 205);
	}
}

TEST(all_workers_full_and_the_fill_shows_at_the_door)
{
	static struct log log;
	struct hive_bus *bus = begin((struct hive_bus_options){ .dispatcher = true, .depth = 8, .worker_depth = 2 },
	                             &log, false);
	uint64_t count = 0;
	int r;

	CHECK_OK(hive_bus_pause(bus, HIVE_NOW, HIVE_FOREVER));
	for (;;) { /* the dispatcher takes until each ring has two; then the ring of submits fills up */
		r = put_small(bus, count, HIVE_BUS_HIGH);
		if (r == 0)
			count++;
		else if (count == 8 + 2 * WORKERS)
			break;
		else
			sched_yield();
	}
	CHECK_EQ(r, -ENOBUFS);
	CHECK_EQ(hive_bus_level(bus), HIVE_BUS_FULL);
	bus_end(bus);
	CHECK_EQ(log.notes.count, count);
}
