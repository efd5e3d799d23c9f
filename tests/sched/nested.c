/* SPDX-License-Identifier: MIT */
/* A core that is the loop of somebody else: when the worker counts as awake, and what a loop inside that loop may do. */
#include "support/lone.h"

static struct lone l;
static struct hive_core *core;
static int64_t wait_ns;
static int result;

static void open_one(void (*in_turn)(struct fake_core_script *, int64_t))
{
	memset(&l, 0, sizeof l);
	lone_open(&l, 1, (struct hive_worker_options){ 0 });
	l.scripts[0].in_turn = in_turn;
	core = l.w[0]->core;
	fake_log_clear();
	wait_ns = -1;
	result = 1;
}

static void post_number(int n)
{
	CHECK_OK(hive_post_self(fake_note, number(n)));
}

/* What a callback that opens a dialog does. */
static void callback_with_loop(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	script->in_turn = NULL;
	hive_core_enter(core);
	CHECK(!l.w[0]->announced);
	post_number(1);
	result = hive_core_beat(core, &wait_ns);
	CHECK_STR(fake_log(), "1");
	CHECK(!l.w[0]->announced); /* the task may have ended the loop inside, and the callback goes on */
	CHECK_EQ(wait_ns, 0);
	CHECK_OK(hive_core_beat(core, &wait_ns));
	CHECK(l.w[0]->announced); /* the loop inside waits now: any post wakes it */
	CHECK_EQ(wait_ns, HIVE_FOREVER);
	fake_reset_wakes(&l.f);
	lone_become(&l, LONE_NOBODY);
	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], fake_note, number(2)));
	lone_become(&l, 0);
	CHECK_EQ(l.f.wakes, 1);
	hive_core_enter(core);
	CHECK(!l.w[0]->announced);
	CHECK_OK(hive_core_beat(core, &wait_ns));
	CHECK_STR(fake_log(), "1 2");
	hive_core_leave(core);
	CHECK(!l.w[0]->announced); /* what the callback does next is user code */
}

TEST(a_loop_inside_a_callback_makes_beats_and_is_woken)
{
	open_one(callback_with_loop);
	lone_beat(&l, 0);
	lone_beat(&l, 0);
	CHECK_EQ(result, 0);
	CHECK_STR(fake_log(), "1 2");
	lone_close(&l);
}

static void loop_without_enter(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	script->in_turn = NULL;
	post_number(1);
	result = hive_core_beat(core, &wait_ns);
	CHECK_STR(fake_log(), "");
}

TEST(a_loop_outside_of_callbacks_makes_no_beats)
{
	open_one(loop_without_enter);
	lone_beat(&l, 0);
	CHECK_ERR(result, -EDEADLK);
	CHECK_EQ(wait_ns, HIVE_FOREVER);
	CHECK_STR(fake_log(), "1"); /* later in the same beat */
	lone_close(&l);
}

static void task_with_loop(void *arg)
{
	(void)arg;
	post_number(1);
	CHECK_OK(hive_post(l.f.hive, fake_note, number(2)));
	CHECK_EQ(l.w[0]->outbox_count, 1);
	hive_core_enter(core); /* says nothing here */
	result = hive_core_beat(core, &wait_ns);
	hive_core_leave(core);
	CHECK_EQ(l.w[0]->outbox_count, 0); /* others may have it */
	CHECK_STR(fake_log(), "");
}

TEST(a_loop_inside_a_task_runs_no_task_but_what_was_posted_goes_out)
{
	open_one(NULL);
	CHECK_OK(hive_post_to(l.f.hive, l.ids[0], task_with_loop, NULL));
	for (int i = 0; i < 5; i++)
		lone_beat(&l, 0);
	CHECK_ERR(result, -EDEADLK);
	CHECK_STR(fake_log(), "1 2");
	lone_close(&l);
}

static void loop_in_task_in_loop(void *arg)
{
	task_with_loop(arg);
	CHECK_ERR(result, -EDEADLK);
}

static void callback_whose_task_loops(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	script->in_turn = NULL;
	hive_core_enter(core);
	CHECK_OK(hive_post_self(loop_in_task_in_loop, NULL));
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_core_beat(core, &wait_ns));
	CHECK_STR(fake_log(), "1 2"); /* after that task, in this loop */
	hive_core_leave(core);
}

TEST(a_task_of_a_loop_inside_is_a_task)
{
	open_one(callback_whose_task_loops);
	lone_beat(&l, 0);
	CHECK_STR(fake_log(), "1 2");
	lone_close(&l);
}

static void callback_while_stopping(struct fake_core_script *script, int64_t timeout_ns)
{
	(void)timeout_ns;
	script->in_turn = NULL;
	hive_core_enter(core);
	CHECK_OK(hive_stop(l.f.hive, HIVE_DRAIN, HIVE_FOREVER));
	for (int i = 0; i < 3; i++)
		result = hive_core_beat(core, &wait_ns);
	CHECK_ERR(result, -ESHUTDOWN);
	CHECK_EQ(wait_ns, HIVE_FOREVER);
	hive_core_leave(core);
}

TEST(a_worker_that_is_to_leave_says_so_in_the_loop_inside)
{
	open_one(callback_while_stopping);
	CHECK(!lone_beat(&l, 0));
	CHECK_ERR(result, -ESHUTDOWN);
	lone_close(&l);
}

TEST(the_loop_of_another_core_or_thread_is_refused)
{
	struct hive_core other = { 0 };

	open_one(NULL);
	CHECK_ERR(hive_core_beat(core, &wait_ns), -EPERM);
	lone_become(&l, 0);
	CHECK_ERR(hive_core_beat(core, NULL), -EINVAL);
	CHECK_ERR(hive_core_beat(&other, &wait_ns), -EPERM);
	hive_core_enter(&other);
	hive_core_leave(&other);
	CHECK_EQ(wait_ns, -1);
	lone_close(&l);
}
