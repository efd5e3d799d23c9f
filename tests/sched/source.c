/* SPDX-License-Identifier: MIT */
/* Sources, as the scheduler sees them: who may start them where, what becomes of them, when they fall silent. The
 * core is the fake one; what a real core owes is in tests/core.                                                   */
#include "support/lone.h"

static int called;

static void count(struct hive_source *source, uint32_t events)
{
	(void)source, (void)events;
	called++;
}

static void make(struct hive_source *source, int fd)
{
	hive_source_init(source, HIVE_SOURCE_FD, fd, HIVE_EVENT_IN, count, NULL);
}

static void deliver_all(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	for (int i = 0; i < script->source_count; i++)
		if (script->sources[i])
			hive_source_deliver(script->sources[i], HIVE_EVENT_IN);
}

/* starting adds to the core of the worker that starts it, stopping removes. */
TEST(start_adds_to_the_own_workers_core_and_stop_removes)
{
	struct lone l = { 0 };
	struct hive_source source;

	lone_open(&l, 2, (struct hive_worker_options){ 0 });
	make(&source, 5);
	lone_become(&l, 1);
	CHECK_OK(hive_source_start(&source));
	CHECK_EQ(l.scripts[0].source_count, 0);
	CHECK_EQ(l.scripts[1].source_count, 1);
	CHECK_EQ(l.scripts[1].sources[0], &source);
	CHECK_EQ(load_relaxed(&l.w[1]->stats.sources), 1);
	CHECK_ERR(hive_source_start(&source), -EALREADY);
	called = 0;
	l.scripts[1].in_turn = deliver_all;
	lone_beat(&l, 1);
	CHECK_EQ(called, 1);
	CHECK_EQ(hive_source_stop(&source), 1);
	CHECK_EQ(l.scripts[1].sources[0], NULL);
	CHECK_EQ(hive_source_stop(&source), 0);
	lone_beat(&l, 1);
	CHECK_EQ(called, 1);
	CHECK_OK(hive_source_start(&source)); /* and once more */
	CHECK_EQ(hive_source_stop(&source), 1);
	lone_close(&l);
}

/* whether a kind fits is the core's affair; if not: a warning, an error, and in debug builds a stop. */
TEST(a_kind_that_the_core_does_not_take_is_refused_with_a_warning)
{
	struct lone l = { 0 };
	struct hive_source source;

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	hive_source_init(&source, HIVE_SOURCE_HANDLE, 5, HIVE_EVENT_IN, count, NULL);
	CHECK_MISUSE(lone_start_source(&l, &source), -ENOTSUP);
#if !defined(HIVE_DEBUG)
	CHECK_EQ(l.f.warnings, 1);
	CHECK(strstr(l.f.last_warning, "fake") && strstr(l.f.last_warning, "io-0"));
#endif
	CHECK_EQ(l.scripts[0].source_count, 0);
	CHECK_EQ(hive_source_stop(&source), 0);
	hive_source_init(&source, HIVE_SOURCE_USER, 5, HIVE_EVENT_IN, count, NULL);
	CHECK_OK(hive_source_start(&source)); /* the fake core has a kind of its own */
	CHECK_EQ(hive_source_stop(&source), 1);
	lone_close(&l);
}

/* what is wrong with the arguments is said before anything is done. */
TEST(senseless_sources_are_refused)
{
	struct lone l = { 0 };
	struct hive_source source;

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	memset(&source, 0, sizeof source);
	CHECK_ERR(hive_source_start(&source), -EINVAL); /* never initialised */
	CHECK_ERR(hive_source_stop(&source), -EINVAL);
	CHECK_ERR(hive_source_modify(&source, HIVE_EVENT_IN), -EINVAL);
	CHECK_ERR(hive_source_start(NULL), -EINVAL);
	make(&source, -1);
	CHECK_ERR(hive_source_start(&source), -EINVAL);
	hive_source_init(&source, HIVE_SOURCE_FD, 5, 256, count, NULL);
	CHECK_ERR(hive_source_start(&source), -EINVAL);
	hive_source_init(&source, HIVE_SOURCE_FD, 5, HIVE_EVENT_IN, NULL, NULL);
	CHECK_ERR(hive_source_start(&source), -EINVAL);
	hive_source_init(&source, (enum hive_source_kind)0, 5, HIVE_EVENT_IN, count, NULL);
	CHECK_ERR(hive_source_start(&source), -EINVAL);
	hive_source_init(&source, (enum hive_source_kind)32, 5, HIVE_EVENT_IN, count, NULL);
	CHECK_ERR(hive_source_start(&source), -EINVAL);
	make(&source, 5);
	CHECK_ERR(hive_source_modify(&source, HIVE_EVENT_IN), -EINVAL); /* not started */
	CHECK_OK(hive_source_start(&source));
	CHECK_ERR(hive_source_modify(&source, 256), -EINVAL);
	CHECK_EQ(source.events, HIVE_EVENT_IN);
	CHECK_EQ(hive_source_stop(&source), 1);
	lone_close(&l);
}

/* only on an IO worker, and then only on the one that started it. */
TEST(sources_belong_to_the_worker_that_started_them)
{
	struct lone l = { 0 };
	struct hive_source source;

	lone_open(&l, 2, (struct hive_worker_options){ 0 });
	make(&source, 5);
	CHECK_MISUSE(hive_source_start(&source), -EPERM);
	lone_become(&l, 0);
	CHECK_OK(hive_source_start(&source));
	lone_become(&l, 1);
	CHECK_MISUSE(hive_source_stop(&source), -EPERM);
	CHECK_MISUSE(hive_source_modify(&source, HIVE_EVENT_OUT), -EPERM);
	lone_become(&l, LONE_NOBODY);
	CHECK_MISUSE(hive_source_stop(&source), -EPERM);
	lone_become(&l, 0);
	CHECK_EQ(hive_source_stop(&source), 1);
	lone_close(&l);
}

/* the core's refusal is handed on, and nothing was started. */
TEST(a_core_that_refuses_a_source_leaves_it_unstarted)
{
	struct lone l = { 0 };
	struct hive_source source;

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	lone_become(&l, 0);
	make(&source, 5);
	l.scripts[0].fail_add = -ENOSPC;
	CHECK_ERR(hive_source_start(&source), -ENOSPC);
	CHECK_EQ(hive_source_stop(&source), 0);
	CHECK_EQ(load_relaxed(&l.w[0]->stats.sources), 0);
	CHECK_OK(hive_source_start(&source));
	CHECK_EQ(hive_source_stop(&source), 1);
	lone_close(&l);
}

static struct hive *the_hive;

static void use_every_door(struct hive_source *source, uint32_t events)
{
	(void)events;
	CHECK_EQ(hive_source_stop(source), 1);
	CHECK_OK(hive_post_self(fake_note, number(2)));
	CHECK_OK(hive_post_self_after(0, fake_note, number(3), NULL));
	CHECK_OK(hive_post_local(fake_note, number(4)));
	CHECK_OK(hive_post(the_hive, fake_note, number(5)));
	CHECK_OK(hive_post_after(the_hive, HIVE_MS(1), fake_note, number(6), NULL));
	CHECK_OK(hive_post_to(the_hive, HIVE_WORKER_MAIN, fake_note, number(2)));
}

/* callbacks of sources may use every door. */
TEST(callbacks_of_sources_may_post_by_every_door)
{
	struct lone l = { 0 };
	struct hive_source source;

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	the_hive = l.f.hive;
	lone_become(&l, 0);
	hive_source_init(&source, HIVE_SOURCE_FD, 5, HIVE_EVENT_IN, use_every_door, NULL);
	CHECK_OK(hive_source_start(&source));
	l.scripts[0].in_turn = deliver_all;
	fake_log_clear();
	lone_beat(&l, 0);
	lone_beat(&l, 0);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "2 2 3 4 5");
	l.f.now_ns += HIVE_MS(1);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "2 2 3 4 5 6");
	lone_close(&l);
}

static struct hive_source first, second;

static void stop_the_hive(struct hive_source *source, uint32_t events)
{
	(void)source, (void)events;
	called++;
	CHECK_OK(hive_stop(the_hive, (enum hive_stop_mode)(intptr_t)source->arg, HIVE_FOREVER));
}

static void deliver_both(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)script, (void)timeout_ns;
	hive_source_deliver(&first, HIVE_EVENT_IN);
	hive_source_deliver(&second, HIVE_EVENT_IN);
}

/* from the call of stop on sources are silent, those of the same batch included; they are stopped and counted. */
TEST(a_callback_that_stops_the_hive_silences_the_rest_of_the_batch)
{
	for (int mode = HIVE_DRAIN; mode <= HIVE_NOW; mode++) {
		struct lone l = { 0 };

		lone_open(&l, 1, (struct hive_worker_options){ 0 });
		the_hive = l.f.hive;
		lone_become(&l, 0);
		hive_source_init(&first, HIVE_SOURCE_FD, 5, HIVE_EVENT_IN, stop_the_hive, number(mode));
		make(&second, 6);
		CHECK_OK(hive_source_start(&first));
		CHECK_OK(hive_source_start(&second));
		l.scripts[0].in_turn = deliver_both;
		called = 0;
		lone_beat(&l, 0);
		CHECK_EQ(called, 1);
		l.scripts[0].in_turn = NULL;
		lone_close(&l);
	}
}

/* sources that are still started when the hive stops are taken out and told. */
TEST(sources_still_started_at_stop_are_stopped_and_counted)
{
	struct lone l = { 0 };
	struct hive_report report;

	lone_open(&l, 2, (struct hive_worker_options){ 0 });
	make(&first, 5);
	make(&second, 6);
	lone_become(&l, 0);
	CHECK_OK(hive_source_start(&first));
	lone_become(&l, 1);
	CHECK_OK(hive_source_start(&second));
	lone_become(&l, LONE_NOBODY);
	CHECK_OK(hive_stop(l.f.hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(l.f.hive, HIVE_FOREVER));
	CHECK_OK(hive_report_read(l.f.hive, &report));
	CHECK_EQ(report.open_sources, 2);
	CHECK_EQ(l.scripts[0].sources[0], NULL);
	CHECK_EQ(l.scripts[1].sources[0], NULL);
	CHECK_EQ(l.scripts[0].closes, 1);
	CHECK_EQ(hive_source_stop(&first), 0); /* nothing left to do */
	lone_close(&l);
}

/* sources of a worker that is detached are stopped with a warning, and its core is closed. */
TEST(sources_of_a_detached_worker_are_stopped_with_a_warning)
{
	struct lone l = { 0 };

	lone_open(&l, 2, (struct hive_worker_options){ 0 });
	make(&first, 5);
	lone_become(&l, 1);
	CHECK_OK(hive_source_start(&first));
	lone_become(&l, LONE_NOBODY);
	CHECK_OK(hive_detach(l.f.hive, l.ids[1], HIVE_FOREVER));
	CHECK_EQ(l.f.warnings, 1);
	CHECK(strstr(l.f.last_warning, "io-1") && strstr(l.f.last_warning, "1 source"));
	CHECK_EQ(l.scripts[1].sources[0], NULL);
	CHECK_EQ(l.scripts[1].closes, 1);
	lone_close(&l);
}

static void start_too_late(void *arg)
{
	(void)arg;
	make(&second, 6);
	CHECK_ERR(hive_source_start(&second), -ESHUTDOWN);
	called++;
}

/* nothing can be started once stop was asked for. */
TEST(no_source_starts_after_stop)
{
	struct lone l = { 0 };

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	CHECK_OK(hive_post(l.f.hive, start_too_late, NULL));
	CHECK_OK(hive_stop(l.f.hive, HIVE_DRAIN, HIVE_FOREVER));
	called = 0;
	CHECK_OK(hive_join(l.f.hive, HIVE_FOREVER));
	CHECK_EQ(called, 1);
	lone_close(&l);
}

static void prepare(void *arg)
{
	make(arg, 5);
	CHECK_OK(hive_source_start(arg));
}

/* a worker is prepared before run; its on_start takes effect when the loop begins, before the first turn. */
TEST(sources_can_be_prepared_before_run)
{
	struct fake f = { 0 };
	struct fake_core_script script = { .in_turn = deliver_all };
	struct hive_source source;
	struct hive_worker_options options = { .core_arg = &script, .on_start = prepare, .hook_arg = &source };

	fake_create(&f, (struct hive_options){ 0 });
	CHECK_OK(hive_attach(f.hive, &options, NULL));
	CHECK_EQ(script.opens, 0);
	fake_start(&f);
	called = 0;
	fake_step(&f, f.workers[0].id);
	CHECK_EQ(script.opens, 1);
	CHECK_EQ(called, 1);
	script.in_turn = NULL;
	fake_destroy(&f);
}

static int failing_turn(struct hive_core *core, int64_t timeout_ns)
{
	int64_t *hits = (int64_t *)(void *)(core + 1);

	(void)timeout_ns;
	++*hits;
	return -EIO;
}

/* a core that fails is reported once, and the worker goes on. */
TEST(a_failing_turn_is_reported_once_and_the_worker_goes_on)
{
	struct lone l = { 0 };
	struct {
		struct hive_core core;
		int64_t hits;
	} broken = { { NULL }, 0 };
	struct hive_core_ops ops = fake_core;
	struct hive_core *good;

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	ops.turn = failing_turn;
	ops.name = "broken";
	broken.core.ops = &ops;
	good = l.w[0]->core;
	l.w[0]->core = &broken.core;
	lone_become(&l, 0);
	fake_log_clear();
	for (int i = 0; i < 5; i++) {
		CHECK_OK(hive_post_self(fake_note, number(1)));
		CHECK(lone_beat(&l, 0));
	}
	CHECK_EQ(broken.hits, 5);
	CHECK_EQ(l.f.warnings, 1);
	CHECK(strstr(l.f.last_warning, "broken") && strstr(l.f.last_warning, "EIO"));
	CHECK_STR(fake_log(), "1 1 1 1 1");
	l.w[0]->core = good;
	lone_close(&l);
}

/* A core that delivers late reaches nobody. */
TEST(an_event_of_a_source_that_was_stopped_is_not_delivered)
{
	struct lone l = { 0 };
	struct hive_source source;

	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	hive_source_init(NULL, HIVE_SOURCE_FD, 5, HIVE_EVENT_IN, count, NULL); /* nothing to prepare: nothing happens */
	make(&source, 5);
	lone_become(&l, 0);
	CHECK_OK(hive_source_start(&source));
	called = 0;
	hive_source_deliver(&source, HIVE_EVENT_IN);
	CHECK_EQ(called, 1);
	CHECK_EQ(hive_source_stop(&source), 1);
	hive_source_deliver(&source, HIVE_EVENT_IN);
	CHECK_EQ(called, 1);
	CHECK_EQ(load_relaxed(&l.w[0]->stats.events), 1);
	lone_close(&l);
}
