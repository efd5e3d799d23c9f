/* SPDX-License-Identifier: MIT */
#pragma once
/* The bus as it is, on threads of its own: the files of src/bus in one program, on modelled atomics, locks, parkers and futexes. What is not
 * included: layout.c, which clears memory that holds atomics (setting up is done here), and home_hive.c.
 *
 * Payloads are plain memory, which the checker does not watch: `news` are what the submitter wrote before, and a race on one of them shows a
 * missing order. Who waits for room naps for a millisecond at most, and then looks by himself: here a nap has no end, so that one whom nobody
 * tells is a deadlock. No worker looks for messages before it rests (`pass`): that is idle.cpp's.                              */
#include "base/atomic.h"

#include "queue/ring.h"

/* An atomic of the checker is larger than its value: what stands in front of a message leaves as much room. */
#define turn  \
	turn; \
	unsigned char model_room[sizeof(struct mpsc_slot)]
#include "bus/bus.h"
#undef turn

#include "base/clock.h"
#include "base/latch.h"
#include "model.h"

/* ---- what is below it ---- */

static int64_t model_clock;

inline int64_t hive__clock_now(void)
{
	return model_clock;
}

inline void hive__thread_give_way(uint32_t)
{
	rl::yield(1, $);
}

#define hive__thread_number() (rl::thread_index() + 1)

inline void hive__thread_block_signals(void) {}
inline void hive__thread_name(const char *) {}
inline int hive__thread_pin(const uint16_t *, size_t)
{
	return 0;
}
static int model_realtime; /* what the system says */
inline int hive__thread_realtime(int)
{
	return model_realtime;
}

/* Threads of the bus are those of the model from 0 on, which wait until they are started. */
static struct model_thread {
	rl::atomic<uint32_t> begun, gone;
	hive_fn *main;
	void *arg;
} * model_threads;
static unsigned model_started;

inline int hive__thread_start_in(struct thread_start *, hive_fn *main, void *arg, uint64_t *ret_thread)
{
	struct model_thread *t = &model_threads[model_started];

	*ret_thread = model_started++;
	t->main = main;
	t->arg = arg;
	t->begun.store(1, rl::mo_release, $);
	hive__futex_wake(&t->begun, 1);
	return 0;
}

inline void model_thread_runs(unsigned i)
{
	struct model_thread *t = &model_threads[i];

	while (t->begun.fetch_add(0, rl::mo_acquire, $) == 0)
		hive__futex_wait(&t->begun, 0, HIVE_FOREVER);
	t->main(t->arg);
	t->gone.store(1, rl::mo_release, $);
	hive__futex_wake(&t->gone, 1);
}

inline void hive__thread_join(uint64_t thread)
{
	struct model_thread *t = &model_threads[thread];

	while (t->gone.fetch_add(0, rl::mo_acquire, $) == 0)
		hive__futex_wait(&t->gone, 0, HIVE_FOREVER);
}

#define MODEL_SOON 5      /* a deadline that may pass at any time, as soon as one waits */
#define MODEL_NAP 1000000 /* submit.c: LOOK_NS */
#define MODEL_LATE 1000

static inline void model_bus_wait(ATOMIC(uint32_t) *word, uint32_t seen, int64_t left)
{
	bool limited = left != HIVE_FOREVER && left != MODEL_NAP;

	hive__futex_wait(word, seen, limited ? left : HIVE_FOREVER);
	if (limited)
		model_clock = MODEL_LATE;
}

/* ---- the bus ---- */

/* Copies of replies, if somebody watches them. */
static rl::var<int> *model_reply;
static void *model_copy_reply(void *to, const void *from, size_t bytes)
{
	if (model_reply)
		(*model_reply)($) = 1;
	return memcpy(to, from, bytes);
}

#undef bump
#define bump(p, n) ((void)0) /* of waits: counts that nothing depends on */
#include "bus/event.c"
#include "bus/admission.c"
#include "bus/type.c"
#include "bus/control.c"
#include "bus/submit.c"
#define wait_for_room wait_for_room_of_workers
#include "bus/dispatcher.c"
#undef wait_for_room
#define HIVE_EXPLORE /* threads without thread-locals of their own */
#include "bus/worker.c"
#undef HIVE_EXPLORE
#undef LOOK_NS
#include "bus/rest.c"
#undef LOOK_NS
#include "bus/stats.c"
#define memcpy model_copy_reply
#include "bus/request.c"
#undef memcpy
#define hive__futex_wait model_bus_wait
#include "bus/home_threads.c"
#undef hive__futex_wait

/* In the place of layout.c. One type of message, whose payload is a number. */
template <typename T, int THREADS, int WORKERS, int RING = 2> struct bus_suite : rl::test_suite<T, THREADS> {
	enum { MESSAGES = 5, DEPTH = 2 };
	struct slot {
		struct mpsc_slot turn;
		struct bus_envelope envelope;
		uint64_t payload[2];
	};
	struct hand {
		struct bus_hand hand;
		uint64_t payload[2];
	};
	struct hive_bus bus;
	struct bus_worker worker[WORKERS + 1];
	struct bus_type type[1];
	struct bus_subscription subscription[1];
	struct bus_request request[1];
	struct hand hands[WORKERS + 1], spare;
	struct slot slots[DEPTH], rings[WORKERS][RING];
	struct model_thread threads[WORKERS + 1];
	rl::var<int> news[MESSAGES];
	int handled[MESSAGES], dropped[MESSAGES], accepted;

	static int handle(void *context, const struct hive_bus_header *header, const void *payload)
	{
		int i = (int)*(const uint64_t *)payload;

		return ((T *)context)->on_message(i, header);
	}

	static void drop(void *context, const struct hive_bus_header *, const void *payload)
	{
		((T *)context)->on_drop((int)*(const uint64_t *)payload);
	}

	int on_message(int i, const struct hive_bus_header *)
	{
		note(i);
		return 0;
	}

	void on_drop(int i)
	{
		RL_ASSERT(news[i]($) == i + 1 && handled[i] == 0 && ++dropped[i] == 1);
	}

	void note(int i)
	{
		RL_ASSERT(news[i]($) == i + 1 && dropped[i] == 0 && ++handled[i] == 1);
	}

	static void zero_event(struct bus_event *event)
	{
		event_init(&event->event);
		event->list[0] = event->list[1] = NULL;
	}

	void zero_worker(uint32_t i)
	{
		struct bus_worker *w = &worker[i];

		w->bus = &bus;
		w->index = i;
		w->hand = &hands[i].hand;
		w->hand->of.bus = &bus;
		w->fresh = true;
		w->clock_every = 1u;
		w->pass = UINT32_MAX;
		store_relaxed(&w->end, MPSC_NOWHERE);
		store_relaxed(&w->busy, 0u);
		store_relaxed(&w->handled, 0);
		store_relaxed(&w->failed, 0);
		store_relaxed(&w->wait_max_ns, 0);
		store_relaxed(&w->depth_max, 0u);
		store_relaxed(&w->pending, 0u);
		store_relaxed(&w->setup, 0);
		store_relaxed(&bus.idle.cpu[i], (uint16_t)0);
		for (ATOMIC(uint64_t) &bucket : w->waits)
			store_relaxed(&bucket, 0);
		parker_init(&w->parker);
		if (i < WORKERS && bus.shape == BUS_DEALT)
			spsc_init(&w->ring, (unsigned char *)rings[i], RING, sizeof(struct slot));
		mpsc_init(&w->box, (unsigned char *)rings[i < WORKERS ? i : 0],
		          bus.shape == BUS_BOXES && i < WORKERS ? RING : 0, sizeof(struct slot));
		mpsc_set_alone(&w->box);
	}

	void zero_counts()
	{
		for (ATOMIC(uint32_t) *word :
		     { &bus.hold, &bus.ending, &bus.starved, &bus.level, &bus.depth_max, &bus.room_spins, &bus.control,
		       &bus.callers, &bus.level_role, &bus.level_news })
			store_relaxed(word, 0u);
		for (ATOMIC(uint64_t) *count :
		     { &bus.replaced, &bus.run_by_caller, &bus.caller_handled, &bus.caller_failed, &bus.dropped,
		       &bus.called, &bus.other_ids, &bus.refused[0], &bus.refused[1], &bus.refused[2], &bus.refused[3],
		       &bus.refused_type, &bus.refused_size, &bus.refused_closed, &bus.dropper, &bus.idle.count,
		       &bus.idle.asleep[0] })
			store_relaxed(count, 0);
		store_relaxed(&bus.end, MPSC_NOWHERE);
	}

	void zero_tables()
	{
		type[0].number = 1;
		type[0].size = 16;
		type[0].handle = handle;
		type[0].context = (T *)this;
		store_relaxed(&type[0].subscriptions, 0);
		store_relaxed(&subscription[0].state, 0u);
		store_relaxed(&subscription[0].calls, 0u);
		store_relaxed(&request[0].state, 0u);
		zero_event(&request[0].event);
		bus.free_request = 1u;
	}

	void set_up(enum bus_shape shape, enum hive_bus_route route = HIVE_BUS_ROUND_ROBIN)
	{
		bus.home = &hive__bus_threads;
		bus.shape = shape;
		bus.route = route;
		bus.depth = DEPTH;
		bus.worker_depth = RING;
		bus.workers = WORKERS;
		bus.types = bus.subscriptions = bus.requests = 1;
		bus.stride = sizeof(struct slot);
		bus.type = type;
		bus.subscription = subscription;
		bus.request = request;
		bus.worker = worker;
		bus.spare = &spare.hand;
		bus.hook_arg = (T *)this;
		bus.on_drop = drop;
		const uint8_t usual[4] = { 0 };
		hive__bus_thresholds(&bus, usual);
		zero_counts();
		zero_tables();
		zero_event(&bus.room_event);
		zero_event(&bus.settled);
		mpsc_init(&bus.ring, (unsigned char *)slots, shape == BUS_BOXES ? 0 : DEPTH, sizeof(struct slot));
		if (shape != BUS_SHARED || WORKERS == 1)
			mpsc_set_alone(&bus.ring);
		for (uint32_t i = 0; i <= WORKERS; i++)
			zero_worker(i);
		for (struct model_thread &t : threads) {
			t.begun.store(0, rl::mo_relaxed, $);
			t.gone.store(0, rl::mo_relaxed, $);
		}
		model_threads = threads;
		model_started = 0;
		model_clock = 1;
		model_realtime = 0;
		model_reply = NULL;
		for (rl::var<int> &n : news)
			n($) = 0;
		store_relaxed(&bus.state, (uint32_t)BUS_CREATED);
	}

	/* As it is after hive_bus_start(), whose threads are those of the model. */
	void open()
	{
		store_relaxed(&bus.state, (uint32_t)BUS_RUNNING);
		mpsc_open(&bus.ring);
		for (struct bus_worker &w : worker) {
			mpsc_open(&w.box);
			w.thread = w.index;
		}
		for (struct model_thread &t : threads) {
			t.main = thread_main;
			t.arg = &worker[&t - threads];
			t.begun.store(1, rl::mo_relaxed, $);
		}
	}

	struct hive_bus_message message(int i, uint64_t *payload, enum hive_bus_priority priority = HIVE_BUS_HIGH)
	{
		struct hive_bus_message m = { 1, 16, payload, priority };

		payload[0] = (uint64_t)i;
		news[i]($) = i + 1;
		return m;
	}

	int submit(int i, int64_t deadline_ns = HIVE_NOWAIT, enum hive_bus_priority priority = HIVE_BUS_HIGH)
	{
		uint64_t payload[2];
		struct hive_bus_message m = message(i, payload, priority);
		int r = hive_bus_submit(&bus, &m, deadline_ns);

		accepted += r == 0;
		return r;
	}

	/* Messages of before the scenario are there, and nobody has been woken for them. */
	void have(int count)
	{
		for (int i = 0; i < count; i++)
			RL_ASSERT(submit(i) == 0);
	}

	int call(int i)
	{
		uint64_t payload[2];
		struct hive_bus_message m = message(i, payload);

		return hive_bus_call(&bus, &m);
	}

	/* The thread of a worker, until it has done what `done` says, which is the worker's own. */
	void work_until(uint32_t i, const int *done, int count = 1)
	{
		while (*done < count) {
			bool more = bus.shape == BUS_DEALT && i == WORKERS ? hive__bus_deal(&worker[i])
			                                                   : hive__bus_work(&worker[i], UINT32_MAX);

			if (!more && *done < count)
				sleep_until_woken(&worker[i]);
		}
	}

	int handled_in_all() const
	{
		int sum = 0;

		for (int n : handled)
			sum += n;
		return sum;
	}

	int dropped_in_all() const
	{
		int sum = 0;

		for (int n : dropped)
			sum += n;
		return sum;
	}
};
