/* SPDX-License-Identifier: MIT */
/* The simulator as its users see it: exact virtual time, one program per seed, nothing left over. */
#include <stdio.h>

#include "support/cores.h"

#include <rophive/sim.h>

static struct hive_sim *new_sim(struct hive_sim_options how)
{
	struct hive_sim *sim;

	CHECK_OK(hive_sim_create(&how, &sim));
	return sim;
}

static struct hive *start_in(struct hive_sim *sim, struct hive_options options)
{
	struct hive *hive;

	options.host = hive_sim_host(sim);
	CHECK_OK(hive_create(&options, &hive));
	CHECK_OK(hive_start(hive));
	return hive;
}

static struct hive_report end_of(struct hive *hive)
{
	struct hive_report report;

	CHECK_OK(hive_stop(hive, HIVE_DRAIN, HIVE_FOREVER));
	CHECK_OK(hive_join(hive, HIVE_FOREVER));
	CHECK_OK(hive_report_read(hive, &report));
	CHECK_EQ(report.posted, report.ran + report.cancelled + report.dropped);
	CHECK_OK(hive_destroy(hive));
	return report;
}

/* ---- virtual time ---- */

struct client {
	struct hive *hive;
	int tries;
	bool gave_up;
};

static void attempt(void *arg)
{
	struct client *c = arg;

	c->gave_up = ++c->tries == 6;
	if (!c->gave_up && hive_post_after(c->hive, HIVE_S(10), attempt, c, NULL) < 0)
		c->gave_up = true;
}

/* a minute of retries in a moment, exact to the nanosecond, under a thousand schedules. */
TEST(virtual_time_is_exact_under_a_thousand_schedules)
{
	int seeds = 1000 / test_slowness();

	for (int seed = 1; seed <= seeds; seed++) {
		struct hive_sim *sim = new_sim((struct hive_sim_options){ .seed = (uint64_t)seed });
		struct client client = { 0 };

		client.hive = start_in(sim, (struct hive_options){ .io_workers = 4 });
		CHECK_OK(hive_post(client.hive, attempt, &client));
		hive_sim_advance(sim, HIVE_S(10) - 1);
		CHECK_EQ(client.tries, 1);
		hive_sim_advance(sim, 1);
		CHECK_EQ(client.tries, 2);
		CHECK(!client.gave_up);
		hive_sim_advance(sim, HIVE_FOREVER);
		CHECK_EQ(client.tries, 6);
		CHECK(client.gave_up);
		CHECK_EQ(hive_now(client.hive), HIVE_S(50));
		end_of(client.hive);
		CHECK_OK(hive_sim_destroy(sim));
	}
}

/* time stands exactly where it was told to; nothing is left undone that is due until then. */
TEST(time_stands_exactly_where_it_was_moved_to)
{
	struct hive_sim *sim = new_sim((struct hive_sim_options){ .seed = 3 });
	struct hive *hive = start_in(sim, (struct hive_options){ .io_workers = 2 });
	int64_t begin = hive_now(hive);

	CHECK(hive_sim_advance(sim, 0) >= 0);
	CHECK_EQ(hive_now(hive), begin);
	CHECK(hive_sim_advance(sim, -5) >= 0);
	CHECK_EQ(hive_now(hive), begin);
	CHECK(hive_sim_advance(sim, 123456789) >= 0);
	CHECK_EQ(hive_now(hive), begin + 123456789);
	CHECK(hive_sim_advance(sim, HIVE_FOREVER) >= 0); /* nothing will ever happen: time does not move */
	CHECK_EQ(hive_now(hive), begin + 123456789);
	CHECK_EQ(hive_sim_advance(NULL, 1), -EINVAL);
	end_of(hive);
	CHECK_OK(hive_sim_destroy(sim));
}

/* waits outside of workers are virtual as well. */
TEST(waiting_outside_moves_virtual_time)
{
	struct hive_sim *sim = new_sim((struct hive_sim_options){ .seed = 3 });
	struct hive *hive = start_in(sim, (struct hive_options){ .io_workers = 2 });
	struct client client = { .hive = hive };
	int64_t begin = hive_now(hive);

	CHECK_OK(hive_post(hive, attempt, &client));
	CHECK_ERR(hive_join(hive, hive_deadline(hive, HIVE_S(25))), -ETIMEDOUT);
	CHECK_EQ(hive_now(hive), begin + HIVE_S(25));
	CHECK_EQ(client.tries, 3);
	CHECK_ERR(hive_join(hive, HIVE_FOREVER), -EDEADLK); /* nobody will ever stop it */
	CHECK_EQ(client.tries, 6);
	end_of(hive);
	CHECK_OK(hive_sim_destroy(sim));
}

/* ---- life ---- */

/* Two hives, one clock. */
TEST(several_hives_share_one_simulated_world)
{
	struct hive_sim *sim = new_sim((struct hive_sim_options){ .seed = 9 });
	struct client a = { 0 }, b = { 0 };

	a.hive = start_in(sim, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
	hive_sim_advance(sim, HIVE_S(3));
	b.hive = start_in(sim, (struct hive_options){ .io_workers = 1 });
	CHECK_OK(hive_post_compute(a.hive, attempt, &b)); /* across hives, and across kinds */
	CHECK_OK(hive_post(b.hive, attempt, &a));
	hive_sim_advance(sim, HIVE_S(10));
	CHECK_EQ(a.tries, 2);
	CHECK_EQ(b.tries, 2);
	CHECK_EQ(hive_now(a.hive), hive_now(b.hive));
	CHECK_ERR(hive_sim_destroy(sim), -EBUSY);
	end_of(b.hive);
	CHECK_ERR(hive_sim_destroy(sim), -EBUSY);
	end_of(a.hive);
	CHECK_OK(hive_sim_destroy(sim));
	CHECK_OK(hive_sim_destroy(NULL));
	CHECK_EQ(hive_sim_hash(NULL), 0);
	CHECK(!hive_sim_host(NULL));
}

static int refuse_open(void *arg, struct hive_core **ret_core)
{
	int *left = arg;

	if ((*left)-- > 0)
		return -EMFILE;
	return fake_core.open(NULL, ret_core);
}

/* A start that fails leaves no worker behind in the world: neither a memory that is gone nor one that lives twice. */
TEST(a_start_that_fails_leaves_nothing_in_the_simulated_world)
{
	for (int again = 0; again < 2; again++) {
		struct hive_sim *sim = new_sim((struct hive_sim_options){ .seed = 4 });
		struct hive_core_ops ops = fake_core;
		int refusals = 1;
		struct hive_worker_options bad = { .core = &ops, .core_arg = &refusals };
		struct hive_options options = { .io_workers = 2, .host = hive_sim_host(sim) };
		struct client client = { 0 };

		ops.open = refuse_open;
		CHECK_OK(hive_create(&options, &client.hive));
		CHECK_OK(hive_attach(client.hive, &bad, NULL));
		CHECK_ERR(hive_start(client.hive), -EMFILE);
		if (again) {
			CHECK_OK(hive_start(client.hive));
			CHECK_OK(hive_post(client.hive, attempt, &client));
			hive_sim_advance(sim, HIVE_FOREVER);
			CHECK_EQ(client.tries, 6);
			end_of(client.hive);
		} else {
			CHECK_OK(hive_destroy(client.hive));
			hive_sim_advance(sim, HIVE_S(1)); /* a sanitizer would see who still beats */
		}
		CHECK_OK(hive_sim_destroy(sim));
	}
}

/* ---- chance ---- */

static int order[8], ordered;

static void note_worker(void *arg)
{
	(void)arg;
	order[ordered++ % 8] = (int)hive_worker_current();
}

/* the seed decides who does what: over many seeds each worker has its share, and schedules differ. */
TEST(different_seeds_lead_to_different_schedules)
{
	int differ = 0, first[8];

	for (uint64_t seed = 0; seed < 50; seed++) {
		struct hive_sim *sim = new_sim((struct hive_sim_options){ .seed = seed });
		struct hive *hive = start_in(sim, (struct hive_options){ .io_workers = 4 });

		hive_sim_advance(sim, 0);
		ordered = 0;
		for (int i = 0; i < 8; i++)
			CHECK_OK(hive_post(hive, note_worker, NULL));
		hive_sim_advance(sim, HIVE_FOREVER);
		CHECK_EQ(ordered, 8);
		if (seed == 0)
			memcpy(first, order, sizeof first);
		differ += memcmp(first, order, sizeof first) != 0;
		end_of(hive);
		CHECK_OK(hive_sim_destroy(sim));
	}
	CHECK(differ > 10);
}

/* beats without reason, as many as may be, change nothing but the number of beats. */
TEST(spurious_beats_change_nothing_but_their_number)
{
	static const uint32_t percents[] = { 1, 50, 100 };

	for (size_t i = 0; i < 3; i++) {
		struct hive_sim *sim = new_sim((struct hive_sim_options){ .seed = 1, .spurious_percent = percents[i] });
		struct client client = { 0 };

		client.hive = start_in(sim, (struct hive_options){ .io_workers = 3, .compute_workers = 2 });
		CHECK_OK(hive_post(client.hive, attempt, &client));
		hive_sim_advance(sim, HIVE_FOREVER);
		CHECK_EQ(client.tries, 6);
		CHECK_EQ(end_of(client.hive).ran, 6);
		CHECK_OK(hive_sim_destroy(sim));
	}
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Memory that fails: what is refused is refused, what was accepted runs. */
TEST(failing_memory_refuses_posts_and_loses_none)
{
	int refused = 0, accepted = 0;

	for (uint64_t seed = 0; seed < 40; seed++) {
		struct hive_sim *sim = new_sim((struct hive_sim_options){ .seed = seed, .fail_percent = 60 });
		struct hive *hive = start_in(sim, (struct hive_options){ .io_workers = 2, .compute_workers = 1 });
		int mine = 0;

		hive_sim_advance(sim, 1); /* memory is good until the first beat */
		for (int i = 0; i < 300; i++) {
			int r = i % 3 ? hive_post(hive, nothing, NULL) : hive_post_after(hive, 5, nothing, NULL, NULL);

			CHECK(r == 0 || r == -ENOMEM);
			mine += r == 0;
			refused += r != 0;
		}
		accepted += mine;
		hive_sim_advance(sim, HIVE_FOREVER);
		CHECK_EQ(end_of(hive).ran, mine);
		CHECK_OK(hive_sim_destroy(sim));
	}
	CHECK(refused > 0 && accepted > 0);
}

static int bytes_seen;

static void on_byte(struct hive_source *source, uint32_t events)
{
	(void)events;
	take_byte((int)source->handle);
	bytes_seen++;
}

static void listen_to(void *arg)
{
	CHECK_OK(hive_source_start(arg));
}

/* descriptors can be sources; they are looked at before time moves on. */
TEST(descriptors_are_looked_at_before_time_moves_on)
{
	struct hive_sim *sim = new_sim((struct hive_sim_options){ .seed = 2 });
	struct hive_source source;
	struct hive_worker_options io = { .on_start = listen_to, .hook_arg = &source };
	struct hive *hive;
	int fds[2];

	make_pipe(fds);
	hive_source_init(&source, HIVE_SOURCE_FD, fds[0], HIVE_EVENT_IN, on_byte, NULL);
	hive = start_in(sim, (struct hive_options){ .io_workers = 1, .io = &io });
	bytes_seen = 0;
	hive_sim_advance(sim, HIVE_S(1));
	for (int i = 1; i <= 10; i++) {
		put_byte(fds[1]);
		hive_sim_advance(sim, 0);
		CHECK_EQ(bytes_seen, i);
	}
	CHECK_OK(hive_post_to(hive, HIVE_WORKER_MAIN, (hive_fn *)(uintptr_t)nothing, NULL));
	CHECK_EQ(end_of(hive).open_sources, 1);
	close_both(fds);
	CHECK_OK(hive_sim_destroy(sim));
}

/* Options that make no sense are refused. */
TEST(senseless_options_of_the_simulator_are_refused)
{
	struct hive_sim *sim = NULL;

	CHECK_ERR(hive_sim_create(&(struct hive_sim_options){ .fail_percent = 101 }, &sim), -EINVAL);
	CHECK_ERR(hive_sim_create(&(struct hive_sim_options){ .spurious_percent = 101 }, &sim), -EINVAL);
	CHECK_ERR(hive_sim_create(&(struct hive_sim_options){ .beat_ns = -1 }, &sim), -EINVAL);
	CHECK_ERR(hive_sim_create(NULL, NULL), -EINVAL);
	CHECK(!sim);
}

/* ---- tasks that take time ---- */

static struct {
	struct hive_sim *sim;
	struct hive *hive;
	int64_t ends_ns[4];
	int count;
} spent;

static void take_a_millisecond(void *arg)
{
	int64_t begin_ns = hive_now(spent.hive);

	(void)arg;
	CHECK_OK(hive_sim_spend(spent.sim, HIVE_US(400)));
	CHECK_OK(hive_sim_spend(spent.sim, HIVE_US(600)));
	CHECK_EQ(hive_now(spent.hive) - begin_ns, HIVE_MS(1));
	spent.ends_ns[spent.count++] = hive_now(spent.hive);
}

static void note_time(void *arg)
{
	*(int64_t *)arg = hive_now(spent.hive);
}

static void begin_spending(uint64_t seed, int32_t workers, int64_t beat_ns)
{
	struct hive_worker_options io = { .local_budget = 1, .private_budget = 1, .pool_batch = 1 };

	spent.count = 0;
	spent.sim = new_sim((struct hive_sim_options){ .seed = seed, .beat_ns = beat_ns });
	spent.hive = start_in(spent.sim, (struct hive_options){ .io_workers = workers, .io = &io });
	hive_sim_advance(spent.sim, HIVE_MS(10)); /* all asleep */
}

static void end_spending(void)
{
	end_of(spent.hive);
	CHECK_OK(hive_sim_destroy(spent.sim));
}

/* Workers take time at the same time, one worker one time after the other. */
TEST(time_that_tasks_take_passes_for_their_worker)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		for (int32_t workers = 1; workers <= 4; workers *= 2) {
			begin_spending(seed, workers, 0);
			for (int i = 0; i < 4; i++)
				CHECK_OK(hive_post(spent.hive, take_a_millisecond, NULL));
			hive_sim_advance(spent.sim, HIVE_FOREVER);
			CHECK_EQ(spent.count, 4);
			for (int i = 0; i < 4; i++)
				CHECK_EQ(spent.ends_ns[i], HIVE_MS(10) + HIVE_MS(1) * (i / workers + 1));
			end_spending();
		}
}

/* What is for a worker that is at it waits until it is done; what is for anybody is taken by another, at once. */
TEST(who_is_at_it_makes_no_beat_and_does_not_sleep)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		int64_t there_ns = 0, anywhere_ns = 0;

		begin_spending(seed, 2, 0);
		CHECK_OK(hive_post_to(spent.hive, HIVE_WORKER_MAIN, take_a_millisecond, NULL));
		hive_sim_advance(spent.sim, HIVE_US(500));
		CHECK_OK(hive_post_to(spent.hive, HIVE_WORKER_MAIN, note_time, &there_ns));
		CHECK_OK(hive_post(spent.hive, note_time, &anywhere_ns));
		hive_sim_advance(spent.sim, 0);
		CHECK_EQ(anywhere_ns, HIVE_MS(10) + HIVE_US(500));
		CHECK_EQ(there_ns, 0);
		hive_sim_advance(spent.sim, HIVE_FOREVER);
		CHECK_EQ(there_ns, HIVE_MS(11));
		end_spending();
	}
}

/* With beat_ns each beat takes time, and nobody makes one without reason. */
TEST(beats_can_take_time)
{
	int64_t when_ns[3], began_ns;

	begin_spending(1, 1, 100);
	CHECK_EQ(hive_sim_advance(spent.sim, HIVE_S(1)), 0);
	began_ns = hive_now(spent.hive);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_post_to(spent.hive, HIVE_WORKER_MAIN, note_time, &when_ns[i]));
	hive_sim_advance(spent.sim, HIVE_FOREVER);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(when_ns[i], began_ns + 100 * i);
	end_spending();
}

TEST(time_can_be_spent_in_tasks_alone)
{
	struct hive_sim *sim = new_sim((struct hive_sim_options){ .seed = 1 });

	CHECK_ERR(hive_sim_spend(sim, 1), -EPERM);
	CHECK_ERR(hive_sim_spend(sim, -1), -EINVAL);
	CHECK_ERR(hive_sim_spend(NULL, 1), -EINVAL);
	CHECK_OK(hive_sim_destroy(sim));
}
