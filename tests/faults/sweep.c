/* SPDX-License-Identifier: MIT */
/* The scenario with its first, second, third, … allocation failing, until there are no more: once, and from there on. Each n
 * is a run of its own. A fault that comes once must be forgotten: the same call, made again, succeeds.                     */
#include <fcntl.h>

#include "io.h"
#include "scenario.h"
#include "support/corelist.h"
#include "support/fake.h"
#include "support/real.h"

static struct ledger ledger;
static const int no_memory[] = { -ENOMEM, 0 };
static int injected;

static struct scenario make_scenario(const struct hive_host *host, bool sticky, int out_fd)
{
	return (struct scenario){ .options = { .host = host },
		                  .codes = no_memory,
		                  .retries = sticky ? 0 : 1,
		                  .must_recover = !sticky,
		                  .out_fd = out_fd };
}

static int open_null(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

/* ---- a host without threads ---- */

static void pass_fake(void *fake)
{
	struct fake *f = fake;

	CHECK(f->now_ns < HIVE_S(2000)); /* it began at 1000: a thousand seconds for milliseconds of work */
	fake_advance(f, HIVE_US(100));
}

/* fake_create() makes a host and a hive; we need the host alone. */
static void make_fake(struct fake *f)
{
	fake_create(f, (struct hive_options){ 0 });
	CHECK_OK(hive_destroy(f->hive));
	CHECK_EQ(f->balance, 0);
}

/* True: the fault was reached. */
static bool play_stepped(int nth, bool sticky, const char *core, enum hive_preset preset, int out_fd)
{
	struct fake f = { 0 };
	struct scenario s;
	struct hive_worker_options io = { 0 };
	bool reached;

	make_fake(&f);
	if (core)
		CHECK_OK(hive_core_find(core, &io.core));
	s = make_scenario(&f.host, sticky, out_fd);
	io.timers = preset == HIVE_PRESET_ROPHIVE ? HIVE_TIMERS_WHEEL : HIVE_TIMERS_HEAP; /* both, in no more runs */
	s.options.io = &io;
	s.options.preset = preset;
	s.deaf = !core;
	s.pass = pass_fake;
	s.pass_arg = &f;
	f.allocations = 0;
	f.fail_at = nth;
	f.sticky = sticky;
	scenario_play(&s, &ledger);
	reached = f.allocations >= nth;
	CHECK_EQ(f.balance, 0);
	if (!reached)
		CHECK_EQ(load_seq(&ledger.errors), 0);
	return reached;
}

static void sweep_stepped(const char *core)
{
	static const enum hive_preset presets[] = { HIVE_PRESET_DEFAULT, HIVE_PRESET_ROPHIVE };
	int fd = open_null();

	for (int i = 0; i < 4; i++) {
		bool sticky = i % 2;
		int nth = 1;

		for (; play_stepped(nth, sticky, core, presets[i / 2], fd); nth += LONELY_STRIDE) {
			injected++;
			CHECK(nth < 100000);
		}
		CHECK(nth > 50);
	}
	CHECK_OK(close(fd));
}

TEST(a_scenario_without_threads_survives_each_failing_allocation)
{
	sweep_stepped(NULL);
}

TEST(a_scenario_on_the_poll_core_survives_each_failing_allocation)
{
	sweep_stepped("poll");
}

TEST(a_scenario_on_the_epoll_core_survives_each_failing_allocation)
{
	sweep_stepped("epoll");
}

/* ---- real threads ---- */

struct heap_hook {
	ATOMIC(int64_t) allocations, balance;
	int64_t fail_at;
	bool sticky;
};

static void *allocate(void *arg, void *old, size_t bytes)
{
	struct heap_hook *h = arg;
	int64_t nth;

	if (bytes == 0) {
		sub_seq(&h->balance, (int64_t)(old != NULL));
		free(old);
		return NULL;
	}
	nth = add_seq(&h->allocations, (int64_t)1) + 1;
	if (h->sticky ? nth >= h->fail_at : nth == h->fail_at)
		return NULL;
	add_seq(&h->balance, (int64_t)(old == NULL));
	return realloc(old, bytes);
}

static int64_t pass_limit;

static void pass_real(void *arg)
{
	(void)arg;
	CHECK(hive_now(NULL) < pass_limit);
	sched_yield();
}

static bool play_real(int nth, bool sticky, const char *core, bool use_run, int out_fd)
{
	struct heap_hook hook = { .fail_at = nth, .sticky = sticky };
	struct hive_host host = { .arg = &hook, .allocate = allocate };
	struct hive_worker_options io = { 0 };
	struct scenario s = make_scenario(&host, sticky, out_fd);

	CHECK_OK(hive_core_find(core, &io.core));
	s.options.io = &io;
	s.use_run = use_run;
	s.pass = pass_real;
	pass_limit = real_patience();
	scenario_play(&s, &ledger);
	CHECK_EQ(load_seq(&hook.balance), 0);
	return load_seq(&hook.allocations) >= nth;
}

static void sweep_real(const char *core, bool use_run)
{
	int fd = open_null();

	for (int sticky = 0; sticky < 2; sticky++) {
		int nth = 1;

		for (; play_real(nth, sticky, core, use_run, fd); nth += test_slowness()) {
			injected++;
			CHECK(nth < 100000);
		}
		CHECK(nth > 50);
	}
	CHECK_OK(close(fd));
}

TEST(a_scenario_with_threads_survives_each_failing_allocation)
{
	sweep_real("epoll", false);
}

TEST(a_scenario_under_run_survives_each_failing_allocation)
{
	sweep_real("poll", true);
}

static void ignore(void *hook_arg, const char *text)
{
	(void)hook_arg, (void)text;
}

static bool play_io(int nth, bool sticky, const char *core)
{
	struct heap_hook hook = { .fail_at = nth, .sticky = sticky };
	struct hive_host host = { .arg = &hook, .allocate = allocate };
	struct hive_worker_options io = { 0 };
	struct io_scenario s = { .options = { .host = &host, .io = &io, .on_warn = ignore }, .strict = nth == 0 };

	CHECK_OK(hive_core_find(core, &io.core));
	io_play(&s);
	CHECK_EQ(load_seq(&hook.balance), 0);
	return load_seq(&hook.allocations) >= nth;
}

/* Each run starts a program: some of the n are enough. */
TEST(input_and_output_survive_each_failing_allocation)
{
	for (int i = 0; i < core_count(); i++) {
		CHECK(play_io(0, false, core_names[i]));
		for (int sticky = 0; sticky < 2; sticky++)
			for (int nth = 1 + sticky; play_io(nth, sticky, core_names[i]); nth += 2 * test_slowness()) {
				injected++;
				CHECK(nth < 100000);
			}
	}
}

/* tests/faults/run adds these up. */
TEST(faults_are_counted)
{
	printf("faults injected: %d\n", injected);
	CHECK(injected > 0);
}
