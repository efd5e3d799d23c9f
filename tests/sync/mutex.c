/* SPDX-License-Identifier: MIT */
/* The mutex: one inside, nobody forgotten, wrong use told. */
#include "crew.h"

static struct hive_mutex mutex;
static int inside, total;
static ATOMIC(uint32_t) flag;

static void visit(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
		CHECK_EQ(++inside, 1);
		total++;
		if (i % 16 == 0)
			hive_yield();
		inside--;
		CHECK_OK(hive_mutex_unlock(&mutex));
	}
}

static void visitor(void *arg)
{
	visit(*(int *)arg);
}

static bool is_free(void)
{
	return load_relaxed(&mutex.state) == 0;
}

CREW_TEST(one_is_inside_at_a_time)
{
	int rounds = 2000 / test_slowness();
	struct crew crew;

	hive_mutex_init(&mutex);
	total = 0;
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < 6; i++)
		crew_add(&crew, visitor, &rounds);
	crew_end(&crew);
	CHECK_EQ(total, 6 * rounds);
	CHECK(is_free());
}

TEST(held_by_the_caller_is_a_deadlock_told)
{
	hive_mutex_init(&mutex);
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_NOWAIT));
	CHECK_ERR(hive_mutex_lock(&mutex, HIVE_FOREVER), -EDEADLK);
	CHECK_ERR(hive_mutex_lock(&mutex, HIVE_NOWAIT), -EDEADLK);
	CHECK_OK(hive_mutex_unlock(&mutex));
	CHECK_ERR(hive_mutex_unlock(&mutex), -EPERM);
	CHECK(is_free());
}

static void not_the_holder(void *arg)
{
	(void)arg;
	CHECK_ERR(hive_mutex_unlock(&mutex), -EPERM);
	CHECK_ERR(hive_mutex_lock(&mutex, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_ERR(hive_mutex_lock(&mutex, 1), -ETIMEDOUT);
	CHECK_ERR(hive_mutex_lock(&mutex, hive_deadline(NULL, HIVE_MS(5))), -ETIMEDOUT);
	CHECK_ERR(hive_mutex_unlock(&mutex), -EPERM);
}

CREW_TEST(others_neither_unlock_nor_wait_beyond_their_deadline)
{
	struct crew crew;

	hive_mutex_init(&mutex);
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_NOWAIT));
	crew_begin(&crew, crew_kind);
	crew_add(&crew, not_the_holder, NULL);
	crew_end(&crew);
	CHECK_EQ(waiting(&mutex.state, mutex.waiters), 0);
	CHECK_OK(hive_mutex_unlock(&mutex));
	CHECK(is_free());
}

static int order[8], arrived;

static void queue_up(void *arg)
{
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
	order[arrived++] = *(int *)arg;
	CHECK_OK(hive_mutex_unlock(&mutex));
}

CREW_TEST(who_waits_is_served_in_order_of_arrival)
{
	int number[8];
	struct crew crew;

	hive_mutex_init(&mutex);
	arrived = 0;
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_NOWAIT));
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < 8; i++) {
		number[i] = i;
		crew_add(&crew, queue_up, &number[i]);
		UNTIL_WAITING(&mutex, (size_t)i + 1);
	}
	CHECK_OK(hive_mutex_unlock(&mutex));
	crew_end(&crew);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(order[i], i);
	CHECK(is_free());
}

/* The holder takes it again and again, as soon as it is free; who waits gets it in the end. */
static void wants_it_once(void *arg)
{
	(void)arg;
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
	store_release(&flag, 1);
	CHECK_OK(hive_mutex_unlock(&mutex));
}

CREW_TEST(who_was_passed_over_often_gets_it_handed_over)
{
	struct crew crew;
	int turns = 0;

	hive_mutex_init(&mutex);
	store_relaxed(&flag, 0);
	CHECK_OK(hive_mutex_lock(&mutex, HIVE_NOWAIT));
	crew_begin(&crew, crew_kind);
	crew_add(&crew, wants_it_once, NULL);
	while (!load_acquire(&flag)) {
		UNTIL_WAITING(&mutex, 1); /* it found the mutex taken, once more */
		CHECK(++turns <= 5);
		CHECK_OK(hive_mutex_unlock(&mutex));
		/* On one's own there is no better test than to be quick: lost races only make it more polite. */
		CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
		if (load_acquire(&flag))
			break;
	}
	CHECK_OK(hive_mutex_unlock(&mutex));
	crew_end(&crew);
	CHECK(is_free());
}

/* Deadlines that pass while others unlock: whoever says it has the mutex has it, and nobody is forgotten. */
static void impatient(void *arg)
{
	int rounds = *(int *)arg;

	for (int i = 0; i < rounds; i++) {
		int r = hive_mutex_lock(&mutex, hive_deadline(NULL, HIVE_US(i % 50)));

		CHECK(r == 0 || r == -ETIMEDOUT);
		if (r < 0)
			continue;
		CHECK_EQ(++inside, 1);
		inside--;
		CHECK_OK(hive_mutex_unlock(&mutex));
	}
}

CREW_TEST(deadlines_against_unlocks)
{
	int rounds = 3000 / test_slowness();
	struct crew crew;

	hive_mutex_init(&mutex);
	total = 0;
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < 3; i++)
		crew_add(&crew, impatient, &rounds);
	crew_add(&crew, visitor, &rounds);
	crew_end(&crew);
	CHECK_EQ(total, rounds);
	CHECK(is_free());
}

/* Whoever is inside last lets the memory go: nobody may touch it after that. */
struct owned {
	struct hive_mutex mutex;
	int users;
};

static void last_one_frees(void *arg)
{
	struct owned *o = arg;
	bool last;

	CHECK_OK(hive_mutex_lock(&o->mutex, HIVE_FOREVER));
	last = --o->users == 0;
	CHECK_OK(hive_mutex_unlock(&o->mutex));
	if (last) {
		memset(o, 0xa5, sizeof *o);
		free(o);
	}
}

CREW_TEST(the_last_one_inside_may_free_it)
{
	for (int i = 0; i < 200 / test_slowness(); i++) {
		struct owned *o = malloc(sizeof *o);
		struct crew crew;

		CHECK(o);
		hive_mutex_init(&o->mutex);
		o->users = 4;
		crew_begin(&crew, crew_kind);
		for (int k = 0; k < 4; k++)
			crew_add(&crew, last_one_frees, o);
		crew_end(&crew);
	}
}

TEST(wrong_use_is_told)
{
	struct hive_mutex never = { 0 };

	CHECK_ERR(hive_mutex_lock(NULL, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_mutex_unlock(NULL), -EINVAL);
	CHECK_ERR(hive_mutex_lock(&never, HIVE_NOWAIT), -EINVAL);
	CHECK_ERR(hive_mutex_unlock(&never), -EINVAL);
	hive_mutex_init(NULL);
}
