/* SPDX-License-Identifier: MIT */
/* The barrier. */
#include "crew.h"

enum { PARTIES = 5, ROUNDS = 50 };

static struct hive_barrier barrier;
static ATOMIC(uint32_t) passed, lasts, gone;

static void begin(uint32_t parties)
{
	hive_barrier_init(&barrier, parties);
	store_relaxed(&passed, 0);
	store_relaxed(&lasts, 0);
	store_relaxed(&gone, 0);
}

TEST(alone_nobody_waits)
{
	begin(1);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hive_barrier_wait(&barrier, HIVE_NOWAIT), 1);
}

TEST(mistakes_are_told)
{
	struct hive_barrier never = { .parties = 1 };

	hive_barrier_init(NULL, 1);
	CHECK_ERR(hive_barrier_wait(NULL, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_barrier_wait(&never, HIVE_NOWAIT), -EINVAL);
	begin(0);
	CHECK_ERR(hive_barrier_wait(&barrier, HIVE_NOWAIT), -EINVAL);
}

/* Who gives up has not come. */
TEST(who_gives_up_is_not_counted)
{
	begin(2);
	CHECK_ERR(hive_barrier_wait(&barrier, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_barrier_wait(&barrier, hive_deadline(NULL, HIVE_US(100))), -ETIMEDOUT);
	CHECK_EQ(load_relaxed(&barrier.state), 0);
	CHECK_ERR(hive_barrier_wait(&barrier, hive_deadline(NULL, HIVE_US(100))), -ETIMEDOUT);
}

static void pass(void *arg)
{
	int r = hive_barrier_wait(&barrier, HIVE_FOREVER);

	(void)arg;
	CHECK(r == 0 || r == 1);
	add_seq(&lasts, (uint32_t)r);
	add_seq(&passed, 1u);
}

CREW_TEST(nobody_passes_before_the_last_has_come)
{
	struct crew crew;

	begin(3);
	crew_begin(&crew, crew_kind);
	crew_add(&crew, pass, NULL);
	crew_add(&crew, pass, NULL);
	UNTIL_WAITING(&barrier, 2);
	CHECK_EQ(load_relaxed(&passed), 0);
	CHECK_EQ(hive_barrier_wait(&barrier, HIVE_NOWAIT), 1);
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&passed), 2);
	CHECK_EQ(load_relaxed(&lasts), 0);
	CHECK_EQ(load_relaxed(&barrier.state), 0);
}

static uint32_t at[PARTIES];

static void march(void *arg)
{
	uint32_t *mine = arg;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		int r;

		*mine = round; /* the barriers on both sides keep this apart from the others' looks */
		r = hive_barrier_wait(&barrier, HIVE_FOREVER);
		add_seq(&lasts, r == 1 ? 1u : 0u);
		for (int i = 0; i < PARTIES; i++)
			CHECK_EQ(at[i], round);
		CHECK(hive_barrier_wait(&barrier, HIVE_FOREVER) >= 0);
	}
}

CREW_TEST(all_march_in_step)
{
	struct crew crew;

	begin(PARTIES);
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < PARTIES; i++)
		crew_add(&crew, march, &at[i]);
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&lasts), ROUNDS);
	CHECK_EQ(load_relaxed(&barrier.state), 0);
}

static void try_to_pass(void *arg)
{
	(void)arg;
	while (load_relaxed(&passed) < ROUNDS) {
		int r = hive_barrier_wait(&barrier, hive_deadline(NULL, HIVE_US(50) * test_slowness()));

		CHECK(r == 0 || r == 1 || r == -ETIMEDOUT);
		if (r == 1)
			add_seq(&passed, 1u);
		else if (r == 0)
			add_seq(&gone, 1u);
	}
}

/* Deadlines pass at the same moment as the last one comes: two go through together, or none. */
CREW_TEST(a_deadline_against_the_last)
{
	struct crew crew;

	begin(2);
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < 3; i++)
		crew_add(&crew, try_to_pass, NULL);
	crew_end(&crew);
	CHECK_EQ(load_relaxed(&gone), load_relaxed(&passed));
	CHECK_EQ(load_relaxed(&barrier.state), 0);
}
