/* SPDX-License-Identifier: MIT */
/* Waiting awake: when a worker does it, and when it had better not. The worker is a lone one with the system's clock, so that
 * the test decides about everything but time.                                                                               */
#include <sched.h>

#include "support/lone.h"
#include "support/ticks.h"

static void open_spinner(struct lone *l)
{
	*l = (struct lone){ 0 };
	lone_open(l, 2, (struct hive_worker_options){ .spin_ns = TUNE_SPIN_NS });
	l->f.hive->exact_clock = false;
	l->f.hive->cpus = 64;
	l->w[0]->setup.spin_ns = HIVE_US(50); /* also on a machine with one CPU */
	l->w[0]->wait_ewma_ns = 0;            /* posts come quickly */
	store_relaxed(&l->w[0]->waker_cpu, 7u);
	lone_become(l, 0);
}

static void close_spinner(struct lone *l)
{
	l->f.hive->exact_clock = true;
	lone_close(l);
}

static uint64_t spins(const struct lone *l)
{
	return load_relaxed(&l->w[0]->stats.spins);
}

/* In vain, or with the task that turned up. */
TEST(a_worker_spins_while_posts_come_quickly)
{
	static struct lone l;

	open_spinner(&l);
	CHECK(!hive__spin(l.w[0]));
	CHECK_EQ(spins(&l), 1);
	CHECK(l.w[0]->searching); /* posters need not wake it */
	CHECK(l.w[0]->wait_ewma_ns > 0);
	CHECK_OK(hive_post_many(l.f.hive, &(struct hive_task){ fake_note, number(1) }, 1));
	l.w[0]->wait_ewma_ns = l.w[0]->no_spin_until_ns = 0;
	l.w[0]->spin_penalty_ns = 5;
	CHECK(hive__spin(l.w[0]));
	CHECK_EQ(spins(&l), 2);
	CHECK_EQ(l.w[0]->spin_penalty_ns, 0); /* forgiven */
	close_spinner(&l);
}

TEST(nobody_spins_where_the_clock_is_the_hosts)
{
	static struct lone l;

	open_spinner(&l);
	l.f.hive->exact_clock = true;
	CHECK(!hive__spin(l.w[0]));
	CHECK_EQ(spins(&l), 0);
	close_spinner(&l);
}

TEST(nobody_spins_during_a_penalty)
{
	static struct lone l;

	open_spinner(&l);
	l.w[0]->no_spin_until_ns = HIVE_FOREVER;
	CHECK(!hive__spin(l.w[0]));
	CHECK_EQ(spins(&l), 0);
	close_spinner(&l);
}

TEST(nobody_spins_when_all_cpus_are_taken)
{
	static struct lone l;

	open_spinner(&l);
	l.f.hive->cpus = 2; /* two workers run; where would the poster? */
	CHECK(!hive__spin(l.w[0]));
	CHECK_EQ(spins(&l), 0);
	l.f.hive->cpus = 3;
	CHECK(!hive__spin(l.w[0]));
	CHECK_EQ(spins(&l), 1);
	close_spinner(&l);
}

TEST(nobody_spins_when_enough_others_search)
{
	static struct lone l;
	struct idle *idle;

	open_spinner(&l);
	idle = &l.f.hive->io.idle;
	CHECK(idle_search_begin(idle, 2));
	CHECK(!idle_search_begin(idle, 2));
	CHECK(!hive__spin(l.w[0]));
	CHECK_EQ(spins(&l), 0);
	CHECK(!l.w[0]->searching);
	idle_search_end(idle);
	CHECK(!hive__spin(l.w[0]));
	CHECK_EQ(spins(&l), 1);
	close_spinner(&l);
}

/* On the poster's CPU a spinner keeps it from posting. One that was pinned there cannot step aside. */
TEST(nobody_spins_on_the_cpu_of_its_waker)
{
	static struct lone l;
	cpu_set_t before, after;

	open_spinner(&l);
	CHECK_OK(sched_getaffinity(0, sizeof before, &before));
	store_relaxed(&l.w[0]->waker_cpu, 0u); /* where everybody is in a world without threads */
	l.w[0]->setup.cpu_count = 1;
	for (int i = 0; i < 100; i++)
		CHECK(!hive__spin(l.w[0]));
	CHECK_EQ(spins(&l), 0);
	CHECK_EQ(l.w[0]->same_cpu_wakes, 100);
	l.w[0]->setup.cpu_count = 0;
	hive__spin(l.w[0]);
	CHECK_EQ(l.w[0]->same_cpu_wakes, 0); /* it has stepped aside, if there is another CPU */
	CHECK_OK(sched_getaffinity(0, sizeof after, &after));
	CHECK(CPU_EQUAL(&before, &after));
	CHECK_EQ(spins(&l), CPU_COUNT(&before) > 1);
	close_spinner(&l);
}

/* As if somebody else had the CPU. */
static void hold_cpu(int signal_number)
{
	int64_t began = hive__clock_now();

	(void)signal_number;
	while (hive__clock_now() - began < HIVE_US(300))
		;
}

/* Each time that somebody else had the CPU meanwhile: a spin is worth nothing on a machine that is full. */
TEST(a_spin_that_loses_its_cpu_is_followed_by_ever_longer_penalties)
{
	static struct lone l;
	struct ticks ticks;
	struct worker *w;

	open_spinner(&l);
	w = l.w[0];
	w->setup.spin_ns = HIVE_S(30); /* only a jump of the clock ends it */
	ticks_start(&ticks, HIVE_MS(2), hold_cpu);
	for (int64_t expected = HIVE_MS(1); expected <= HIVE_MS(512); expected *= 2) {
		w->wait_ewma_ns = w->no_spin_until_ns = 0;
		CHECK(!hive__spin(w));
		CHECK_EQ(w->spin_penalty_ns, expected < HIVE_MS(128) ? expected : HIVE_MS(128));
		CHECK(w->no_spin_until_ns > w->spin_penalty_ns);
	}
	ticks_stop(&ticks);
	CHECK_EQ(spins(&l), 10);
	close_spinner(&l);
}

TEST(workers_of_a_machine_with_one_cpu_never_spin)
{
	struct fake f = { 0 };
	cpu_set_t before, one;
	uint32_t id;

	CHECK_OK(sched_getaffinity(0, sizeof before, &before));
	CPU_ZERO(&one);
	for (unsigned cpu = 0; CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, &before))
			CPU_SET(cpu, &one);
	CHECK_OK(sched_setaffinity(0, sizeof one, &one));
	fake_create(&f, (struct hive_options){ 0 });
	CHECK_OK(sched_setaffinity(0, sizeof before, &before));
	CHECK_OK(hive_attach(f.hive, &(struct hive_worker_options){ .spin_ns = HIVE_US(20) }, &id));
	CHECK_EQ(hive__slot(&f.hive->io, 0)->setup.spin_ns, HIVE_OFF);
	fake_destroy(&f);
}
