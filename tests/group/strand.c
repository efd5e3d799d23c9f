/* SPDX-License-Identifier: MIT */
/* Strands, beat by beat: order, turns, budgets, ends. */
#include "support/fake.h"
#include "test.h"

static void *number(intptr_t n)
{
	return (void *)n;
}

static struct hive_strand *new_strand(struct fake *f, enum hive_kind kind, uint32_t width)
{
	struct hive_strand_options options = { .kind = kind, .width = width };
	struct hive_strand *strand;

	CHECK_OK(hive_strand_create(f->hive, &options, &strand));
	return strand;
}

static void begin(struct fake *f, int io, int compute)
{
	memset(f, 0, sizeof *f);
	fake_create(f, (struct hive_options){ .io_workers = io, .compute_workers = compute });
	fake_start(f);
	fake_settle(f);
	fake_log_clear();
}

static void note_all(struct hive_strand *strand, int first, int count)
{
	for (int i = first; i < first + count; i++)
		CHECK_OK(hive_strand_post(strand, fake_note, number(i)));
}

static const char *row(int first, int count)
{
	static char text[4096];
	int n = 0;

	for (int i = first; i < first + count; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%d", i > first ? " " : "", i);
	return text;
}

TEST(tasks_run_in_the_order_of_their_posts)
{
	struct hive_strand *strand;
	struct fake f;

	begin(&f, 3, 0);
	strand = new_strand(&f, 0, 0);
	note_all(strand, 0, 300); /* several blocks of memory */
	CHECK_ERR(hive_strand_destroy(strand), -EBUSY);
	CHECK_ERR(hive_strand_join(strand, HIVE_NOWAIT), -ETIMEDOUT);
	fake_settle(&f);
	CHECK_STR(fake_log(), row(0, 300));
	CHECK_OK(hive_strand_join(strand, HIVE_NOWAIT));
	CHECK_OK(hive_strand_destroy(strand));
	fake_destroy(&f);
}

TEST(one_drain_is_called_for_many_posts)
{
	struct hive_strand *strand;
	struct fake f;

	begin(&f, 3, 0);
	strand = new_strand(&f, HIVE_MICRO, 1);
	fake_reset_wakes(&f);
	note_all(strand, 0, 10);
	CHECK_EQ(f.wakes, 1);
	fake_settle(&f);
	CHECK_OK(hive_strand_destroy(strand));
	fake_destroy(&f);
}

static struct hive_strand *own;

static void note_and_post(void *n)
{
	fake_note(n);
	if ((intptr_t)n < 5)
		CHECK_OK(hive_strand_post(own, note_and_post, number((intptr_t)n + 1)));
}

TEST(its_own_tasks_post_to_it)
{
	struct fake f;

	begin(&f, 1, 0);
	own = new_strand(&f, HIVE_MICRO, 1);
	CHECK_OK(hive_strand_post(own, note_and_post, number(1)));
	fake_settle(&f);
	CHECK_STR(fake_log(), "1 2 3 4 5");
	CHECK_OK(hive_strand_destroy(own));
	fake_destroy(&f);
}

/* After 32 tasks it is somebody else's turn, and the strand's again after him. */
TEST(others_have_a_turn)
{
	struct hive_strand *strand;
	struct fake f;
	char expected[4096];

	begin(&f, 1, 0);
	strand = new_strand(&f, HIVE_MICRO, 1);
	note_all(strand, 0, 100);
	CHECK_OK(hive_post(f.hive, fake_note, number(999)));
	fake_settle(&f);
	snprintf(expected, sizeof expected, "%s 999", row(0, 32));
	CHECK_EQ(strncmp(fake_log(), expected, strlen(expected)), 0);
	CHECK_OK(hive_strand_destroy(strand));
	fake_destroy(&f);
}

static struct fake *clock_of;

static void note_and_take_long(void *n)
{
	fake_note(n);
	(void)hive_should_yield(); /* the clock is read when somebody asks */
	clock_of->now_ns += HIVE_MS(50);
}

/* Tasks that take long are fewer in a turn: the slice counts. */
TEST(a_slice_ends_a_turn)
{
	struct hive_strand *strand;
	struct fake f;

	begin(&f, 1, 0);
	clock_of = &f;
	strand = new_strand(&f, HIVE_MICRO, 1);
	for (int i = 0; i < 20; i++)
		CHECK_OK(hive_strand_post(strand, note_and_take_long, number(i)));
	CHECK_OK(hive_post(f.hive, fake_note, number(999)));
	fake_settle(&f);
	CHECK(strstr(fake_log(), "999") < strstr(fake_log(), " 8 "));
	CHECK_OK(hive_strand_destroy(strand));
	fake_destroy(&f);
}

static uint32_t ran_on;

static void note_worker(void *arg)
{
	(void)arg;
	ran_on = hive_worker_current();
}

TEST(compute_tasks_run_on_compute_workers)
{
	struct hive_strand *strand;
	struct fake f;

	begin(&f, 2, 1);
	strand = new_strand(&f, HIVE_COMPUTE, 1);
	CHECK_OK(hive_strand_post(strand, note_worker, NULL));
	fake_settle(&f);
	CHECK_EQ(ran_on, f.workers[2].id);
	note_all(strand, 0, 100);
	fake_settle(&f);
	CHECK_STR(fake_log(), row(0, 100));
	CHECK_OK(hive_strand_destroy(strand));
	fake_destroy(&f);
}

/* No memory for the way: an IO worker stands in. Nothing is refused that was accepted. */
TEST(without_memory_for_the_way_an_io_worker_stands_in)
{
	struct hive_strand *strand;
	struct fake f;

	begin(&f, 1, 1);
	strand = new_strand(&f, HIVE_COMPUTE, 1);
	CHECK_OK(hive_strand_post(strand, fake_note, number(1)));
	fake_settle(&f);
	for (int i = 0; i < 5000; i++) /* the pool of compute tasks has no room left but by memory */
		CHECK_OK(hive_post_compute(f.hive, note_worker, NULL));
	f.fail_at = f.allocations + 1;
	f.sticky = true;
	for (int i = 2; i < 6; i++)
		CHECK_OK(hive_strand_post(strand, fake_note, number(i)));
	f.fail_at = 0;
	f.sticky = false;
	fake_settle(&f);
	CHECK_STR(fake_log(), "1 2 3 4 5");
	CHECK_OK(hive_strand_destroy(strand));
	fake_destroy(&f);
}

TEST(without_memory_a_post_is_refused_and_the_next_one_is_not)
{
	struct hive_strand *strand;
	struct fake f;

	begin(&f, 1, 0);
	f.fail_at = f.allocations + 1;
	CHECK_ERR(hive_strand_create(f.hive, NULL, &strand), -ENOMEM);
	f.fail_at = 0;
	strand = new_strand(&f, HIVE_MICRO, 1);
	f.fail_at = f.allocations + 1;
	CHECK_ERR(hive_strand_post(strand, fake_note, number(1)), -ENOMEM);
	CHECK_OK(hive_strand_join(strand, HIVE_NOWAIT));
	f.fail_at = 0;
	note_all(strand, 2, 2);
	fake_settle(&f);
	CHECK_STR(fake_log(), "2 3");
	CHECK_OK(hive_strand_destroy(strand));
	fake_destroy(&f);
}

TEST(mistakes_are_told)
{
	struct hive_strand_options wide = { .width = HIVE_STRAND_WIDTH_MAX + 1 }, odd = { .kind = 3 };
	struct hive_strand_options newer = { .reserved = { [3] = 1 } }, heavy = { .kind = HIVE_COMPUTE };
	struct hive_strand *strand = NULL;
	struct hive *empty;
	uint64_t junk[64] = { 0 };
	struct fake f;

	begin(&f, 1, 0);
	CHECK_ERR(hive_strand_create(NULL, NULL, &strand), -EINVAL);
	CHECK_ERR(hive_strand_create(f.hive, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_strand_create(f.hive, &wide, &strand), -EINVAL);
	CHECK_ERR(hive_strand_create(f.hive, &odd, &strand), -EINVAL);
	CHECK_ERR(hive_strand_create(f.hive, &newer, &strand), -EINVAL);
	CHECK_ERR(hive_strand_create(f.hive, &heavy, &strand), -ENOTSUP);
	CHECK_OK(hive_create(&(struct hive_options){ 0 }, &empty));
	CHECK_ERR(hive_strand_create(empty, NULL, &strand), -ESRCH);
	CHECK_OK(hive_destroy(empty));
	CHECK(!strand);
	strand = new_strand(&f, HIVE_MICRO, HIVE_STRAND_WIDTH_MAX);
	CHECK_ERR(hive_strand_post(NULL, fake_note, NULL), -EINVAL);
	CHECK_ERR(hive_strand_post((struct hive_strand *)(void *)junk, fake_note, NULL), -EINVAL);
	CHECK_ERR(hive_strand_post(strand, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_strand_barrier(strand, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_strand_barrier(NULL, fake_note, NULL), -EINVAL);
	CHECK_ERR(hive_strand_join(NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_strand_destroy((struct hive_strand *)(void *)junk), -EINVAL);
	CHECK_OK(hive_strand_destroy(NULL));
	CHECK_OK(hive_strand_destroy(strand));
	fake_destroy(&f);
}

static int joined;

static void join_own(void *deadline)
{
	joined = hive_strand_join(own, deadline ? HIVE_FOREVER : HIVE_NOWAIT);
}

/* A task of an IO worker cannot wait; nor can a task of the strand wait for itself, wherever it runs. */
TEST(who_would_wait_for_itself_is_told)
{
	struct fake f;

	begin(&f, 1, 1);
	own = new_strand(&f, HIVE_MICRO, 1);
	CHECK_OK(hive_strand_post(own, join_own, &joined));
	fake_settle(&f);
	CHECK_ERR(joined, -EDEADLK);
	CHECK_OK(hive_strand_post(own, join_own, NULL));
	fake_settle(&f);
	CHECK_ERR(joined, -ETIMEDOUT);
	CHECK_OK(hive_post(f.hive, join_own, &joined)); /* nothing to wait for */
	fake_settle(&f);
	CHECK_OK(joined);
	CHECK_OK(hive_strand_destroy(own));
	own = new_strand(&f, HIVE_COMPUTE, 1);
	CHECK_OK(hive_strand_post(own, join_own, &joined));
	fake_settle(&f);
	CHECK_ERR(joined, -EDEADLK);
	CHECK_OK(hive_strand_destroy(own));
	fake_destroy(&f);
}

static struct hive_report stop(struct fake *f, enum hive_stop_mode mode)
{
	struct hive_report report;

	CHECK_OK(hive_stop(f->hive, mode, HIVE_FOREVER));
	CHECK_OK(hive_join(f->hive, HIVE_FOREVER));
	CHECK_OK(hive_report_read(f->hive, &report));
	CHECK_EQ(report.posted, report.ran + report.cancelled + report.dropped);
	return report;
}

TEST(a_drain_runs_what_is_queued)
{
	struct hive_report report;
	struct hive_strand *strand[2];
	struct fake f;

	begin(&f, 2, 1);
	strand[0] = new_strand(&f, HIVE_MICRO, 1);
	strand[1] = new_strand(&f, HIVE_COMPUTE, 1);
	note_all(strand[0], 0, 50);
	for (int i = 0; i < 50; i++)
		CHECK_OK(hive_strand_post(strand[1], note_worker, NULL));
	report = stop(&f, HIVE_DRAIN);
	CHECK_STR(fake_log(), row(0, 50));
	CHECK_EQ(report.dropped, 0);
	CHECK_EQ(report.ran, 100); /* the drains are not in the books */
	CHECK_ERR(hive_strand_post(strand[0], fake_note, NULL), -ESHUTDOWN);
	CHECK_OK(hive_strand_destroy(strand[0]));
	CHECK_OK(hive_strand_destroy(strand[1]));
	fake_destroy(&f);
}

/* What was queued goes to the drop hook, in order, and nothing else does. */
static void check_drops(struct fake *f, int least)
{
	int next = 0;

	for (int i = 0; i < f->drops; i++)
		if (f->dropped[i].fn == fake_note)
			CHECK_EQ((intptr_t)f->dropped[i].arg, next++);
	CHECK_EQ(next, least);
}

TEST(a_stop_drops_what_has_not_begun)
{
	for (int kind = HIVE_MICRO; kind <= HIVE_COMPUTE; kind++) {
		struct hive_strand *strand;
		struct hive_report report;
		struct fake f;

		begin(&f, 2, 2);
		strand = new_strand(&f, (enum hive_kind)kind, 1);
		note_all(strand, 0, 100);
		report = stop(&f, HIVE_NOW);
		CHECK_EQ(report.dropped, 100);
		CHECK_STR(fake_log(), "");
		check_drops(&f, 100);
		CHECK_OK(hive_strand_join(strand, HIVE_NOWAIT)); /* dropped is over as well */
		CHECK_OK(hive_strand_destroy(strand));
		fake_destroy(&f);
	}
}

static void stop_now(void *hive)
{
	CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
}

TEST(a_stop_from_a_task_of_the_strand_ends_it_there)
{
	struct hive_strand *strand;
	struct fake f;

	begin(&f, 1, 0);
	strand = new_strand(&f, HIVE_MICRO, 1);
	CHECK_OK(hive_strand_post(strand, stop_now, f.hive));
	note_all(strand, 0, 10);
	fake_settle(&f);
	CHECK_OK(hive_join(f.hive, HIVE_FOREVER));
	CHECK_STR(fake_log(), "");
	check_drops(&f, 10);
	CHECK_OK(hive_strand_destroy(strand));
	fake_destroy(&f);
}

/* The hive never ran: nobody else drops what its strands have. And a strand may be destroyed after its hive. */
TEST(a_hive_that_never_ran_drops_it)
{
	struct hive_strand *strand, *wide;
	struct fake f = { 0 };

	fake_create(&f, (struct hive_options){ .io_workers = 1, .compute_workers = 1 });
	strand = new_strand(&f, HIVE_MICRO, 1);
	wide = new_strand(&f, HIVE_COMPUTE, 8);
	note_all(strand, 0, 5);
	for (int i = 0; i < 5; i++)
		CHECK_OK(hive_strand_post(wide, note_worker, NULL));
	CHECK_OK(hive_destroy(f.hive));
	check_drops(&f, 5);
	CHECK_EQ(f.drops, 10);
	CHECK_OK(hive_strand_destroy(strand));
	CHECK_OK(hive_strand_destroy(wide));
	CHECK_EQ(f.balance, 0);
}
