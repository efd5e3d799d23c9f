/* SPDX-License-Identifier: MIT */
/* Loops inside tasks of a guest, as modal dialogs make them; hooks. */
#include "support/host.h"

/* ---- nested loops ---- */

struct nested {
	struct host *h;
	atomic_int n;
	bool in_hook;
};

/* As a modal dialog does it: a loop of the host's inside a task. */
static void run_nested_loop(void *arg)
{
	struct nested *nested = arg;
	int64_t wait_ns = 7;

	CHECK_OK(hive_post_to(nested->h->hive, HIVE_WORKER_MAIN, host_count, &nested->n));
	for (int i = 0; i < 3; i++) {
		CHECK_ERR(hive_guest_step(nested->h->hive, &wait_ns), -EDEADLK);
		CHECK_EQ(wait_ns, HIVE_FOREVER);
		CHECK_EQ(atomic_load(&nested->n), 0);
	}
}

static void check_nested(const char *core)
{
	struct host h;
	struct nested nested = { .h = &h };

	host_begin(&h, host_create(core, (struct hive_worker_options){ 0 }, (struct hive_options){ 0 }));
	CHECK_OK(hive_post_to(h.hive, HIVE_WORKER_MAIN, run_nested_loop, &nested));
	STEP_UNTIL(atomic_load(&nested.n) == 1, host_turn(&h));
	host_end(&h);
}

TEST(a_nested_loop_is_refused_its_steps_and_nothing_is_lost)
{
	host_each_core(check_nested);
}

/* Two guests of one loop; a task of one makes a loop in which the other goes on. */
struct pair {
	struct host outer, inner;
	atomic_int n;
	bool done;
};

static void drive_inner(void *arg)
{
	struct pair *p = arg;
	int64_t wait_ns;

	CHECK(hive_current() == p->outer.hive);
	STEP_UNTIL(atomic_load(&p->n) == 1, host_turn(&p->inner));
	CHECK(hive_current() == p->outer.hive);
	CHECK_ERR(hive_guest_step(p->outer.hive, &wait_ns), -EDEADLK);
	p->done = true;
}

static void check_pair(const char *core)
{
	struct pair p = { .n = 0 };

	host_begin(&p.outer, host_create(core, (struct hive_worker_options){ 0 }, (struct hive_options){ 0 }));
	host_begin(&p.inner, host_create(core, (struct hive_worker_options){ 0 }, (struct hive_options){ 0 }));
	CHECK_OK(hive_post_to(p.inner.hive, HIVE_WORKER_MAIN, host_count, &p.n));
	CHECK_OK(hive_post_to(p.outer.hive, HIVE_WORKER_MAIN, drive_inner, &p));
	STEP_UNTIL(p.done, host_turn(&p.outer));
	host_end(&p.inner);
	host_end(&p.outer);
}

TEST(two_guests_may_be_inside_each_other)
{
	host_each_core(check_pair);
}

/* ---- hooks ---- */

static void step_in_hook(void *arg)
{
	struct nested *nested = arg;
	int64_t wait_ns;

	CHECK(hive_current() != NULL);
	CHECK_ERR(hive_guest_step(hive_current(), &wait_ns), -EDEADLK);
	atomic_fetch_add(&nested->n, 1);
}

static void check_hooks(const char *core)
{
	struct host h;
	struct nested nested = { .h = &h };

	host_begin(&h, host_create(core,
	                           (struct hive_worker_options){
					   .on_start = step_in_hook, .on_stop = step_in_hook, .hook_arg = &nested },
	                           (struct hive_options){ 0 }));
	CHECK_EQ(atomic_load(&nested.n), 1);
	host_end(&h);
	CHECK_EQ(atomic_load(&nested.n), 2);
}

TEST(hooks_of_a_guest_run_in_start_and_in_its_last_step)
{
	host_each_core(check_hooks);
}

struct parks {
	struct host *h;
	int parked, unparked;
	atomic_int ran;
};

static void on_park(void *arg)
{
	struct parks *parks = arg;

	CHECK_EQ(parks->parked, parks->unparked);
	if (parks->parked++ == 0)
		CHECK_OK(hive_post_to(hive_current(), HIVE_WORKER_MAIN, host_count, &parks->ran));
}

static void on_unpark(void *arg)
{
	struct parks *parks = arg;

	parks->unparked++;
	CHECK_EQ(parks->parked, parks->unparked);
}

/* What the first one posts runs before the host waits; the host's wait is between the second and what follows it. */
static void check_parks(const char *core)
{
	struct host h;
	struct parks parks = { .h = &h };

	host_begin(&h, host_create(core,
	                           (struct hive_worker_options){
					   .on_park = on_park, .on_unpark = on_unpark, .hook_arg = &parks },
	                           (struct hive_options){ 0 }));
	host_settle(&h);
	CHECK_EQ(atomic_load(&parks.ran), 1);
	CHECK(parks.parked >= 2);
	CHECK_EQ(parks.parked, parks.unparked + 1);
	host_step(&h);
	CHECK(parks.unparked >= 2);
	host_end(&h);
	CHECK_EQ(parks.parked, parks.unparked);
}

TEST(a_guest_parks_when_its_host_waits)
{
	host_each_core(check_parks);
}
