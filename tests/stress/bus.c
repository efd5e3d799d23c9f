/* SPDX-License-Identifier: MIT */
/* The bus under load, in all forms: the ledger is exact. ROPHIVE_BUS_MESSAGES: so many in place of a time (make test-long: 10^9). */
#include "../bus/bus.h"

enum { PRODUCERS = 3, WORKERS = 3 };

struct ledger {
	struct hive_bus *bus;
	_Atomic(uint64_t) handled, sum, dropped, failed, levels;
	_Atomic(int) stop;
	uint64_t limit; /* accepted messages of each producer; 0: until stop */
};

struct producer {
	struct ledger *ledger;
	pthread_t thread;
	uint64_t seed, submitted, accepted, sum, refused[4];
};

static int note(void *context, const struct hive_bus_header *header, const void *payload)
{
	struct ledger *l = context;
	const struct large *message = large_of(header, payload);

	CHECK(message && message->rest[6] == message->number + 6 && message->rest[0] == message->number);
	atomic_fetch_add_explicit(&l->handled, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->sum, message->number, memory_order_relaxed);
	return message->number % 1024 == 7 ? -EIO : 0;
}

static void note_fail(void *arg, const struct hive_bus_header *header, int error)
{
	struct ledger *l = arg;

	CHECK(header->type == LARGE && error == -EIO);
	atomic_fetch_add(&l->failed, 1);
}

static void note_drop(void *arg, const struct hive_bus_header *header, const void *payload)
{
	struct ledger *l = arg;

	CHECK(header->priority < HIVE_BUS_HIGH);
	atomic_fetch_add(&l->dropped, 1);
	atomic_fetch_add(&l->sum, large_of(header, payload)->number);
}

static void note_level(void *arg, enum hive_bus_level level)
{
	struct ledger *l = arg;

	CHECK(level <= HIVE_BUS_FULL);
	atomic_fetch_add(&l->levels, 1);
}

static void *produce(void *arg)
{
	struct producer *p = arg;
	struct ledger *l = p->ledger;

	while (!atomic_load_explicit(&l->stop, memory_order_relaxed) && (l->limit == 0 || p->accepted < l->limit)) {
		struct large message = large_make(p->seed >> 20);
		enum hive_bus_priority priority = (enum hive_bus_priority)(1 + (p->seed >> 33) % 3);
		int r;

		p->seed = p->seed * 6364136223846793005u + 1442695040888963407u;
		r = large_submit_key(l->bus, &message, priority, p->seed >> 40,
		                     p->seed >> 62 ? hive_deadline(NULL, HIVE_MS(1)) : HIVE_NOWAIT);
		CHECK(r == 0 || r == -ENOBUFS || r == -ETIMEDOUT);
		p->submitted++;
		p->refused[priority] += r < 0;
		p->accepted += r == 0;
		p->sum += r == 0 ? message.number : 0;
	}
	return NULL;
}

/* Snapshots while it runs: true at each moment, and nothing ever falls. */
static void watch(struct ledger *l, int64_t until_ns, struct producer *producers)
{
	struct hive_bus_stats now, last = { 0 };
	bool running = true;

	while (running) {
		check_books(l->bus, &now);
		CHECK(now.accepted >= last.accepted && now.handled >= last.handled && now.failed >= last.failed);
		CHECK(now.dropped >= last.dropped && now.submitted >= last.submitted &&
		      now.dispatched >= last.dispatched);
		CHECK(now.queued <= 64 + WORKERS * 65 + PRODUCERS); /* rings, hands, callers */
		CHECK(now.depth_now <= 64 && now.depth_max <= 64 && now.level <= HIVE_BUS_FULL);
		last = now;
		usleep(200);
		running = l->limit == 0 ? hive_now(NULL) < until_ns : now.accepted < l->limit * PRODUCERS;
	}
	atomic_store(&l->stop, 1);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i].thread, NULL);
}

static void check_ledger(struct ledger *l, const struct producer *producers)
{
	struct hive_bus_stats s;
	uint64_t submitted = 0, accepted = 0, sum = 0, refused[4] = { 0 };

	for (int i = 0; i < PRODUCERS; i++) {
		submitted += producers[i].submitted;
		accepted += producers[i].accepted;
		sum += producers[i].sum;
		for (int p = 1; p < 4; p++)
			refused[p] += producers[i].refused[p];
	}
	check_books(l->bus, &s);
	CHECK(s.queued == 0 && s.submitted == submitted && s.accepted == accepted && s.dropped == l->dropped);
	CHECK(s.handled + s.failed == l->handled && s.failed == l->failed && l->sum == sum);
	for (int p = 1; p < 4; p++)
		CHECK_EQ(s.refused[p], refused[p]);
}

static void run(struct hive_bus_options options, struct hive *hive, int64_t ns, uint64_t messages)
{
	struct ledger l = { .limit = messages / PRODUCERS };
	const struct hive_bus_type type = { LARGE, sizeof(struct large), "large", note, &l };
	struct producer producers[PRODUCERS] = { 0 };

	options.types = &type;
	options.type_count = 1;
	options.workers = WORKERS;
	options.depth = options.worker_depth = 64;
	options.hive = hive;
	options.hook_arg = &l;
	options.on_fail = note_fail;
	options.on_drop = note_drop;
	options.on_level = note_level;
	CHECK_OK(hive_bus_create(&options, &l.bus));
	CHECK_OK(hive_bus_start(l.bus));
	for (int i = 0; i < PRODUCERS; i++) {
		producers[i].ledger = &l;
		producers[i].seed = (uint64_t)i + 1;
		CHECK_EQ(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
	}
	watch(&l, hive_now(NULL) + ns, producers);
	CHECK_OK(hive_bus_stop(l.bus, HIVE_DRAIN, HIVE_FOREVER));
	check_ledger(&l, producers);
	CHECK_OK(hive_bus_destroy(l.bus));
}

static const struct hive_bus_options forms[] = {
	{ .route = HIVE_BUS_ROUND_ROBIN },
	{ .dispatcher = true },
	{ .dispatcher = true, .route = HIVE_BUS_LEAST_LOADED },
	{ .dispatcher = true, .route = HIVE_BUS_BY_KEY },
	{ .route = HIVE_BUS_BY_KEY },
	{ .on_full = HIVE_BUS_DROP_OLDER_LOWER },
	{ .on_full = HIVE_BUS_DROP_OLDER_LOWER, .dispatcher = true },
	{ .on_full = HIVE_BUS_RUN_IN_CALLER },
};
enum { FORMS = sizeof forms / sizeof *forms };

TEST(the_ledger_is_exact_in_each_form)
{
	int64_t ns = test_stress_ns() / FORMS;
	uint64_t messages = (uint64_t)test_env("ROPHIVE_BUS_MESSAGES", 0) / FORMS;

	for (int f = 0; f < FORMS; f++)
		run(forms[f], NULL, ns, messages);
}

TEST(the_ledger_is_exact_on_a_hive)
{
	int64_t ns = test_stress_ns() / 4;

	for (int kind = HIVE_MICRO; kind <= HIVE_COMPUTE; kind++)
		for (int keyed = 0; keyed < 2; keyed++) {
			struct hive *hive;

			CHECK_OK(hive_runtime_start(&(struct hive_options){ .io_workers = 2, .compute_workers = 2 },
			                            &hive));
			run((struct hive_bus_options){ .kind = (enum hive_kind)kind,
			                               .route = keyed ? HIVE_BUS_BY_KEY : HIVE_BUS_ROUND_ROBIN },
			    hive, ns, 0);
			CHECK_OK(hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
		}
}
