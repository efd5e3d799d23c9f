/* SPDX-License-Identifier: MIT */
/* The parts of the world that can be replaced, and that replacing them changes no rule. */
#include <pthread.h>
#include <sched.h>

#include "support/lone.h"
#include "support/real.h"

#include <rophive/sim.h>

/* all time comes from the injected clock: it stands until it is moved, and is moved exactly. */
TEST(the_injected_clock_is_the_only_clock)
{
	struct fake f = { 0 };
	struct hive_stats s;

	f.now_ns = HIVE_S(5) + 7;
	fake_create(&f, (struct hive_options){ .io_workers = 1 });
	fake_start(&f);
	fake_settle(&f);
	CHECK_EQ(hive_now(f.hive), HIVE_S(5) + 7);
	CHECK_EQ(hive_deadline(f.hive, 10), HIVE_S(5) + 17);
	CHECK_OK(hive_stats_read(f.hive, &s));
	CHECK_EQ(s.time_ns, HIVE_S(5) + 7);
	fake_log_clear();
	CHECK_OK(hive_post_after(f.hive, 100, fake_note, number(1), NULL));
	fake_settle(&f);
	CHECK_EQ(f.workers[0].wait_ns, 100); /* however long that took */
	f.now_ns += 99;
	fake_settle(&f);
	CHECK_STR(fake_log(), "");
	fake_advance(&f, 1);
	CHECK_STR(fake_log(), "1");
	fake_destroy(&f);
}

/* Worker i has load[i] timers; the first draw names a, the second b. Who gets the post? */
static int chosen_of(uint32_t a, uint32_t b, const uint32_t load[4])
{
	struct lone l = { 0 };
	int chosen = -1;

	lone_open(&l, 4, (struct hive_worker_options){ 0 });
	for (int i = 0; i < 4; i++) {
		lone_become(&l, i);
		for (uint32_t j = 0; j < load[i]; j++)
			CHECK_OK(hive_post_self_after(HIVE_S(9), fake_note, number(1), NULL));
	}
	lone_become(&l, LONE_NOBODY);
	fake_push_random(&l.f, fake_random(a, 4));
	fake_push_random(&l.f, fake_random(b < a ? b : b - 1, 3)); /* the second is drawn among the other three */
	CHECK_OK(hive_post_after(l.f.hive, HIVE_S(1), fake_note, number(1), NULL));
	for (int i = 0; i < 4; i++)
		if (worker_timers(l.w[i]) != load[i])
			chosen = i;
	lone_close(&l);
	return chosen;
}

/* fixed random numbers and known counts: the one of the two drawn that has fewer timers is
 * chosen.                                                                                                      */
TEST(two_choices_with_fixed_random_numbers_lead_to_the_lighter_worker)
{
	static const uint32_t loads[3][4] = { { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 2, 0, 3, 1 } };

	for (int i = 0; i < 3; i++)
		for (uint32_t a = 0; a < 4; a++)
			for (uint32_t b = 0; b < 4; b++)
				if (a != b)
					CHECK_EQ(chosen_of(a, b, loads[i]), loads[i][a] < loads[i][b] ? a : b);
}

/* the same script gives the same pair each time. */
TEST(the_same_script_of_random_numbers_makes_the_same_choices)
{
	uint32_t chosen[2][8];

	for (int round = 0; round < 2; round++) {
		struct lone l = { 0 };

		lone_open(&l, 5, (struct hive_worker_options){ 0 });
		for (uint32_t i = 0; i < 16; i++)
			fake_push_random(&l.f, (uint64_t)(i * 2654435761u) << 32);
		for (int i = 0; i < 8; i++) {
			uint64_t before[5];

			for (int j = 0; j < 5; j++)
				before[j] = worker_timers(l.w[j]);
			CHECK_OK(hive_post_after(l.f.hive, HIVE_S(1), fake_note, number(1), NULL));
			for (uint32_t j = 0; j < 5; j++)
				if (worker_timers(l.w[j]) != before[j])
					chosen[round][i] = j;
		}
		lone_close(&l);
	}
	CHECK_EQ(memcmp(chosen[0], chosen[1], sizeof chosen[0]), 0);
}

/* the injected waker counts wakes and knows when the last one was. */
TEST(the_injected_waker_sees_each_wake_and_its_time)
{
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 2 });
	fake_start(&f);
	fake_settle(&f);
	fake_reset_wakes(&f);
	CHECK_OK(hive_post_to(f.hive, f.workers[1].id, fake_note, number(1)));
	CHECK_EQ(f.workers[1].wakes, 1);
	CHECK_EQ(f.workers[1].last_wake_ns, f.now_ns);
	CHECK_EQ(f.workers[0].wakes, 0);
	fake_settle(&f);
	f.now_ns += HIVE_S(1);
	CHECK_OK(hive_post_to(f.hive, f.workers[1].id, fake_note, number(1)));
	CHECK_EQ(f.workers[1].wakes, 2);
	CHECK_EQ(f.workers[1].last_wake_ns, f.now_ns);
	fake_destroy(&f);
}

static void deliver_by_script(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	if (script->turns == 2)
		hive_source_deliver(script->sources[0], HIVE_EVENT_OUT | HIVE_EVENT_HUP);
}

static uint32_t heard;

static void hear(struct hive_source *source, uint32_t events)
{
	(void)source;
	heard = events;
}

/* the fake core never blocks, records each time-out and plays the events of its script. */
TEST(the_fake_core_records_time_outs_and_plays_events)
{
	struct lone l = { 0 };
	struct hive_source source;

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	hive_source_init(&source, HIVE_SOURCE_USER, 1, HIVE_EVENT_IN, hear, NULL);
	CHECK_OK(hive_source_start(&source));
	CHECK_OK(hive_post_self_after(123, fake_note, number(1), NULL));
	l.scripts[0].in_turn = deliver_by_script;
	heard = 0;
	lone_beat(&l, 0);
	CHECK_EQ(heard, 0);
	lone_beat(&l, 0);
	CHECK_EQ(heard, HIVE_EVENT_OUT | HIVE_EVENT_HUP);
	CHECK_EQ(l.scripts[0].turns, 2);
	CHECK_EQ(l.scripts[0].timeouts[0], 123);
	CHECK_EQ(l.scripts[0].timeouts[1], 123);
	CHECK_EQ(l.scripts[0].opens, 1);
	lone_close(&l);
}

/* ---- the same program in four worlds ---- */

static struct hive *stage;
static _Atomic(int) played;

static void play(void *arg)
{
	fake_note(arg);
	atomic_fetch_add(&played, 1);
}

/* Every door, nested, with an order that the rules fix when one worker does it all. */
static void second_act(void *arg)
{
	play(arg);
	CHECK_OK(hive_post_local(play, number(41)));
	CHECK_OK(hive_post_local(play, number(42)));
	CHECK_OK(hive_post_self(play, number(21)));
	CHECK_OK(hive_post(stage, play, number(51)));
}

static void first_act(void *arg)
{
	(void)arg;
	CHECK_OK(hive_post(stage, play, number(50)));
	CHECK_OK(hive_post_local(second_act, number(40)));
	CHECK_OK(hive_post_self_after(0, play, number(30), NULL));
	CHECK_OK(hive_post_self(second_act, number(20)));
	CHECK_OK(hive_post_to(stage, HIVE_WORKER_MAIN, play, number(22)));
}

/* Step 2 with what it posts to itself, step 3, step 4 newest first; the letter in the next beat; then the pool. */
enum { PARTS = 13 };
static const char *const script_of_the_play = "20 21 30 42 41 40 42 41 21 22 50 51 51";

static void check_the_play(const char *world)
{
	if (strcmp(fake_log(), script_of_the_play) != 0)
		test_fail(__FILE__, __LINE__, "%s played \"%s\"", world, fake_log());
}

static void open_curtain(struct hive *hive)
{
	stage = hive;
	atomic_store(&played, 0);
	fake_log_clear();
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, first_act, NULL));
}

/* fake clock, waker and core, the simulator, real threads on both cores: one program, one outcome. */
TEST(replacing_parts_changes_no_rule)
{
	static const char *const cores[] = { "epoll", "poll" };
	struct fake f = { 0 };
	struct hive_sim *sim;
	struct hive_options options = { .io_workers = 1 };
	struct hive *hive;

	fake_create(&f, options);
	fake_start(&f);
	open_curtain(f.hive);
	fake_settle(&f);
	check_the_play("the fake world");
	fake_destroy(&f);

	CHECK_OK(hive_sim_create(NULL, &sim));
	options.host = hive_sim_host(sim);
	CHECK_OK(hive_create(&options, &hive));
	CHECK_OK(hive_start(hive));
	open_curtain(hive);
	hive_sim_advance(sim, HIVE_FOREVER);
	check_the_play("the simulator");
	real_end(hive, HIVE_DRAIN);
	CHECK_OK(hive_sim_destroy(sim));

	for (int i = 0; i < 2; i++) {
		struct hive_worker_options io = { .slice_ns = HIVE_S(
							  1000) }; /* a busy machine must not cut a step short */

		CHECK_OK(hive_core_find(cores[i], &io.core));
		hive = real_create((struct hive_options){ .io_workers = 1, .io = &io });
		open_curtain(hive);
		CHECK_OK(hive_start(hive));
		WAIT_UNTIL(atomic_load(&played) == PARTS);
		check_the_play(cores[i]);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- threads and memory ---- */

static int threads_started, threads_joined;

static int start_thread(void *arg, hive_fn *main, void *main_arg, uint64_t *ret_thread)
{
	pthread_t thread;

	(void)arg;
	threads_started++;
	if (threads_started == 3)
		return -EAGAIN;
	CHECK_EQ(pthread_create(&thread, NULL, (void *(*)(void *))(uintptr_t)main, main_arg), 0);
	*ret_thread = (uint64_t)thread;
	return 0;
}

static void join_thread(void *arg, uint64_t thread)
{
	(void)arg;
	threads_joined++;
	CHECK_EQ(pthread_join((pthread_t)thread, NULL), 0);
}

/* threads too can be the host's; one that cannot be had makes the start fail as a whole. */
TEST(threads_of_the_host_are_used_and_one_too_few_fails_the_start)
{
	struct hive_host host = { .thread_start = start_thread, .thread_join = join_thread };
	struct hive *hive = real_create(
		(struct hive_options){ .io_workers = 2, .compute_workers = 1, .host = &host, .stall_ns = HIVE_OFF });

	threads_started = threads_joined = 0;
	CHECK_ERR(hive_start(hive), -EAGAIN);
	CHECK_EQ(threads_started, 3);
	CHECK_EQ(threads_joined, 2);
	CHECK_OK(hive_start(hive));
	CHECK_EQ(threads_started, 6);
	real_end(hive, HIVE_DRAIN);
	CHECK_EQ(threads_joined, 5);
}

/* a core that cannot be opened is tried again, once it can. */
TEST(a_core_that_fails_to_open_fails_the_start_and_may_be_tried_again)
{
	struct fake f = { 0 };
	struct fake_core_script good = { 0 }, bad = { .fail_open = -EMFILE };
	struct hive_worker_options first = { .core_arg = &good }, second = { .core_arg = &bad };

	fake_create(&f, (struct hive_options){ 0 });
	CHECK_OK(hive_attach(f.hive, &first, NULL));
	CHECK_OK(hive_attach(f.hive, &second, NULL));
	CHECK_ERR(hive_start(f.hive), -EMFILE);
	CHECK_EQ(good.opens, good.closes);
	CHECK_EQ(bad.opens, 0);
	f.worker_count = 0; /* whatever was given to the host is void */
	CHECK_OK(hive_start(f.hive));
	fake_log_clear();
	CHECK_OK(hive_post(f.hive, fake_note, number(1)));
	fake_settle(&f);
	CHECK_STR(fake_log(), "1");
	fake_destroy(&f);
	CHECK_EQ(good.opens, good.closes);
	CHECK_EQ(bad.opens, bad.closes);
}
