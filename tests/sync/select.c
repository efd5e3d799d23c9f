/* SPDX-License-Identifier: MIT */
/* Select: exactly one case happens, with equal chances, and nothing of the others stays behind. */
#include "crew.h"
#include "sync/channel.h"

enum { CHANNELS = 20 };

static struct hive_channel *channels[CHANNELS];
static ATOMIC(uint32_t) ended;
static int64_t last; /* index, or an error */

static void open_all(size_t capacity)
{
	for (int i = 0; i < CHANNELS; i++)
		CHECK_OK(hive_channel_create(sizeof(int), capacity, &channels[i]));
	store_relaxed(&ended, 0);
	last = -1;
}

/* Whoever selected has left all lists. */
static void close_all(void)
{
	for (int i = 0; i < CHANNELS; i++) {
		CHECK_EQ(load_relaxed(&channels[i]->word) & ~CHANNEL_CLOSED, 0);
		CHECK(!channels[i]->senders.first && !channels[i]->receivers.first);
		CHECK_OK(hive_channel_destroy(channels[i]));
	}
}

static struct hive_select recv_case(int i, int *ret_item)
{
	return (struct hive_select){ .channel = channels[i], .recv = ret_item, .bytes = sizeof(int) };
}

static struct hive_select send_case(int i, const int *item)
{
	return (struct hive_select){ .channel = channels[i], .send = item, .bytes = sizeof(int) };
}

/* The index; an error, and then the index is untouched unless it is -EPIPE. */
static int64_t choose(const struct hive_select *cases, size_t count, int64_t deadline_ns)
{
	size_t index = 77;
	int r = hive_select(cases, count, deadline_ns, &index);

	CHECK(r == 0 || (r == -EPIPE ? index < count : index == 77));
	return r < 0 ? r : (int64_t)index;
}

static int put(int i, int item)
{
	return hive_channel_send(channels[i], &item, sizeof item, HIVE_NOWAIT);
}

static int get(int i)
{
	int item = 0, r = hive_channel_recv(channels[i], &item, sizeof item, HIVE_NOWAIT);

	return r < 0 ? r : item;
}

static void until_waits(int i, uint64_t bit)
{
	while (!(load_acquire(&channels[i]->word) & bit))
		hive_yield();
}

TEST(the_one_that_can_happen_does)
{
	int item[3] = { 0 };
	struct hive_select cases[3];

	open_all(1);
	for (int i = 0; i < 3; i++)
		cases[i] = recv_case(i, &item[i]);
	CHECK_EQ(choose(cases, 3, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(choose(cases, 3, hive_deadline(NULL, HIVE_US(200))), -ETIMEDOUT);
	CHECK_OK(put(1, 42));
	CHECK_EQ(choose(cases, 3, HIVE_FOREVER), 1);
	CHECK_EQ(item[1], 42);
	CHECK(item[0] == 0 && item[2] == 0);
	cases[2] = send_case(2, &item[1]);
	CHECK_EQ(choose(cases, 3, HIVE_NOWAIT), 2);
	CHECK_EQ(choose(cases, 3, HIVE_NOWAIT), -ETIMEDOUT); /* full */
	CHECK_EQ(get(2), 42);
	close_all();
}

/* Neighbours among many, and all of a few: each as often as the others. With a bias by position one of them would have most. */
TEST(those_that_can_happen_have_the_same_chance)
{
	enum { ROUNDS = 6000 };
	int item, count[CHANNELS] = { 0 };
	struct hive_select cases[CHANNELS];

	open_all(1);
	for (int i = 0; i < CHANNELS; i++)
		cases[i] = recv_case(i, &item);
	CHECK_OK(put(3, 3));
	CHECK_OK(put(4, 4));
	for (int n = 0; n < ROUNDS; n++) {
		int64_t i = choose(cases, n % 2 ? 8 : CHANNELS, HIVE_NOWAIT); /* on the stack, or not */

		CHECK(i == 3 || i == 4);
		CHECK_EQ(item, i);
		count[i]++;
		CHECK_OK(put((int)i, (int)i));
	}
	CHECK(count[3] > ROUNDS * 2 / 5 && count[4] > ROUNDS * 2 / 5);
	for (int i = 0; i < 5; i++)
		(void)put(i, i), count[i] = 0;
	for (int n = 0; n < ROUNDS; n++) {
		int64_t i = choose(cases, 5, HIVE_NOWAIT);

		count[i]++;
		CHECK_OK(put((int)i, (int)i));
	}
	for (int i = 0; i < 5; i++)
		CHECK(count[i] > ROUNDS / 5 * 4 / 5 && count[i] < ROUNDS / 5 * 6 / 5);
	close_all();
}

TEST(a_closed_channel_is_told_with_its_index)
{
	int item = 5;
	size_t index = 77;
	struct hive_select cases[2];

	open_all(1);
	cases[0] = recv_case(0, &item);
	cases[1] = recv_case(1, &item);
	CHECK_OK(put(1, 6));
	CHECK_OK(hive_channel_close(channels[1]));
	CHECK_EQ(choose(cases, 2, HIVE_FOREVER), 1); /* what is inside still comes */
	CHECK_EQ(item, 6);
	CHECK_ERR(hive_select(cases, 2, HIVE_FOREVER, &index), -EPIPE);
	CHECK_EQ(index, 1);
	cases[1] = send_case(1, &item);
	index = 77;
	CHECK_ERR(hive_select(cases, 2, HIVE_NOWAIT, &index), -EPIPE);
	CHECK_EQ(index, 1);
	cases[1].channel = NULL; /* as one does with what has ended */
	CHECK_EQ(choose(cases, 2, HIVE_NOWAIT), -ETIMEDOUT);
	close_all();
}

TEST(mistakes_are_told_before_anything_happens)
{
	int item = 1;
	alignas(64) uint64_t other[64] = { 0 }, number = 0; /* other: memory that is none of these */
	struct hive_select good, bad;

	open_all(1);
	good = recv_case(0, &item);
	CHECK_OK(put(0, 1));
	CHECK_ERR(hive_select(&good, 1, HIVE_NOWAIT, NULL), -EINVAL);
	CHECK_EQ(choose(NULL, 1, HIVE_NOWAIT), -EINVAL);
	CHECK_EQ(choose(&good, SIZE_MAX, HIVE_NOWAIT), -ENOMEM);
#define REFUSED(error, change)                                                                   \
	do {                                                                                     \
		bad = good;                                                                      \
		change;                                                                          \
		CHECK_EQ(choose((struct hive_select[]){ good, bad }, 2, HIVE_FOREVER), (error)); \
	} while (0)
	REFUSED(-EINVAL, bad.send = &item);
	REFUSED(-EINVAL, bad.recv = NULL);
	REFUSED(-EMSGSIZE, bad.bytes = 8);
	REFUSED(-EINVAL, bad.deadline_ns = 1);
	REFUSED(-EINVAL, bad.reserved[1] = 1);
	REFUSED(-EINVAL, bad.channel = (struct hive_channel *)(void *)other);
	REFUSED(-EINVAL, bad.oneshot = (struct hive_oneshot *)(void *)other); /* two things, */
	bad.channel = NULL;                                                   /* and one that is none */
	CHECK_EQ(choose(&bad, 1, HIVE_NOWAIT), -EINVAL);
	bad = (struct hive_select){ .watch = (struct hive_watch *)(void *)other, .recv = &item, .version = &number };
	CHECK_EQ(choose(&bad, 1, HIVE_NOWAIT), -EINVAL);
	bad = (struct hive_select){ .subscription = (struct hive_subscription *)(void *)other, .recv = &item };
	CHECK_EQ(choose(&bad, 1, HIVE_NOWAIT), -EINVAL);
	bad = (struct hive_select){ .cancel = (struct hive_cancel *)(void *)other, .channel = channels[0] };
	CHECK_EQ(choose(&bad, 1, HIVE_NOWAIT), -EINVAL);
	bad = (struct hive_select){ .group = (struct hive_group *)(void *)other, .deadline_ns = 1 };
	CHECK_EQ(choose(&bad, 1, HIVE_NOWAIT), -EINVAL);
	CHECK_EQ(get(0), 1);
	close_all();
}

/* Nobody waits for what cannot come. */
TEST(without_a_case_nothing_happens)
{
	int item;
	struct hive_select cases[3] = { { .deadline_ns = HIVE_FOREVER }, { .recv = &item, .bytes = 4 }, { 0 } };

	CHECK_EQ(choose(NULL, 0, HIVE_FOREVER), -EDEADLK);
	CHECK_EQ(choose(cases, 3, HIVE_FOREVER), -EDEADLK);
	CHECK_EQ(choose(NULL, 0, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(choose(cases, 3, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(choose(cases, 3, hive_deadline(NULL, HIVE_US(100))), -ETIMEDOUT);
}

TEST(a_time_is_a_case)
{
	int item;
	int64_t begin = hive_now(NULL), soon = begin + HIVE_MS(2);
	struct hive_select cases[3];

	open_all(1);
	cases[0] = recv_case(0, &item);
	cases[1] = (struct hive_select){ .deadline_ns = soon };
	cases[2] = (struct hive_select){ .deadline_ns = HIVE_FOREVER };
	CHECK_EQ(choose(cases, 3, begin + HIVE_S(100)), 1);
	CHECK(hive_now(NULL) >= soon);
	CHECK_EQ(choose(cases, 3, HIVE_NOWAIT), 1); /* it has come, and stays so */
	cases[1].deadline_ns = -1;
	CHECK_EQ(choose(cases, 3, HIVE_FOREVER), 1);
	cases[1].deadline_ns = hive_deadline(NULL, HIVE_S(100));
	CHECK_EQ(choose(cases, 3, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT); /* what ends first */
	close_all();
}

/* ---- with others ---- */

static struct hive_select waited[CHANNELS];
static size_t waited_count;

static void wait_for_one(void *arg)
{
	(void)arg;
	last = choose(waited, waited_count, HIVE_FOREVER);
	add_seq(&ended, 1u);
}

static void begin_waiting(struct crew *crew, enum crew_kind kind, size_t count)
{
	waited_count = count;
	crew_begin(crew, kind);
	crew_add(crew, wait_for_one, NULL);
}

CREW_TEST(who_waits_is_handed_one)
{
	static int item[CHANNELS];
	struct crew crew;

	for (size_t count = 3; count <= CHANNELS; count += CHANNELS - 3) {
		open_all(0);
		for (int i = 0; i < CHANNELS; i++)
			waited[i] = recv_case(i, &item[i]);
		memset(item, 0, sizeof item);
		begin_waiting(&crew, crew_kind, count);
		for (size_t i = 0; i < count; i++)
			until_waits((int)i, CHANNEL_RECEIVERS);
		CHECK_EQ(load_relaxed(&ended), 0);
		CHECK_OK(put(1, 9)); /* capacity 0: somebody has taken it */
		CHECK_ERR(put(2, 8), -ETIMEDOUT);
		crew_end(&crew);
		CHECK_EQ(last, 1);
		CHECK_EQ(item[1], 9);
		CHECK_EQ(item[2], 0);
		close_all();
	}
}

CREW_TEST(who_waits_is_told_of_a_close)
{
	static int item;
	struct crew crew;

	open_all(0);
	waited[0] = recv_case(0, &item);
	waited[1] = send_case(1, &item);
	waited[2] = recv_case(1, &item); /* it may be told by either */
	begin_waiting(&crew, crew_kind, 3);
	until_waits(0, CHANNEL_RECEIVERS);
	until_waits(1, CHANNEL_RECEIVERS);
	until_waits(1, CHANNEL_SENDERS);
	CHECK_OK(hive_channel_close(channels[1]));
	crew_end(&crew);
	CHECK_EQ(last, -EPIPE);
	close_all();
}

CREW_TEST(a_channel_twice_is_served_once)
{
	static int item[2];
	struct crew crew;

	open_all(0);
	item[0] = item[1] = 0;
	waited[0] = recv_case(7, &item[0]);
	waited[1] = recv_case(7, &item[1]);
	begin_waiting(&crew, crew_kind, 2);
	until_waits(7, CHANNEL_RECEIVERS);
	while (put(7, 5) < 0) /* at the first of its nodes it may not have come to the second */
		hive_yield();
	CHECK_ERR(put(7, 6), -ETIMEDOUT);
	crew_end(&crew);
	CHECK(last == 0 || last == 1);
	CHECK_EQ(item[last], 5);
	CHECK_EQ(item[!last], 0);
	close_all();
}

TEST(nobody_meets_himself)
{
	int in = 0, out = 1;
	struct hive_select cases[2];

	open_all(0);
	cases[0] = send_case(0, &out);
	cases[1] = recv_case(0, &in);
	CHECK_EQ(choose(cases, 2, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(choose(cases, 2, hive_deadline(NULL, HIVE_MS(1))), -ETIMEDOUT);
	CHECK_EQ(in, 0);
	close_all();
}

/* Who sends or receives meets others there, from either side. */
CREW_TEST(who_offers_both_meets_others)
{
	static int in, out;
	struct crew crew;

	for (int sends = 0; sends <= 1; sends++) {
		open_all(0);
		in = 0, out = 7;
		waited[0] = send_case(0, &out);
		waited[1] = recv_case(0, &in);
		begin_waiting(&crew, crew_kind, 2);
		until_waits(0, CHANNEL_SENDERS);
		until_waits(0, CHANNEL_RECEIVERS);
		CHECK_EQ(sends ? put(0, 3) : get(0), sends ? 0 : 7);
		crew_end(&crew);
		CHECK_EQ(last, sends);
		CHECK_EQ(in, sends ? 3 : 0);
		close_all();
	}
}

static void cancelled(void *arg)
{
	(void)arg;
	CHECK_EQ(choose(waited, waited_count, HIVE_FOREVER), -ECANCELED);
	CHECK_EQ(choose(waited, waited_count, HIVE_FOREVER), -ECANCELED);
	CHECK_EQ(choose(waited, waited_count, HIVE_NOWAIT), -ETIMEDOUT);
	waited[2] = (struct hive_select){ .deadline_ns = -1 };
	CHECK_EQ(choose(waited, waited_count, HIVE_FOREVER), 2); /* what need not wait works */
}

TEST(a_cancel_ends_it)
{
	static int item;
	struct crew crew;

	open_all(0);
	crew_open(CREW_FIBERS);
	waited[0] = recv_case(0, &item);
	waited[1] = recv_case(1, &item);
	waited[2] = (struct hive_select){ 0 };
	waited_count = 3;
	crew_begin(&crew, CREW_FIBERS);
	crew_add(&crew, cancelled, NULL);
	until_waits(0, CHANNEL_RECEIVERS);
	until_waits(1, CHANNEL_RECEIVERS);
	CHECK_OK(hive_fiber_cancel(crew.members[0].fiber));
	crew_end(&crew);
	crew_close();
	close_all();
}

static void on_a_worker(void *arg)
{
	int item;
	struct hive_select one = recv_case(0, &item);

	(void)arg;
	CHECK_EQ(choose(&one, 1, HIVE_FOREVER), -EDEADLK);
	CHECK_EQ(choose(&one, 1, hive_deadline(NULL, HIVE_S(10))), -EDEADLK);
	CHECK_EQ(choose(&one, 1, HIVE_NOWAIT), -ETIMEDOUT);
	CHECK_EQ(choose(&(struct hive_select){ .deadline_ns = -1 }, 1, HIVE_FOREVER), 0);
	store_release(&ended, 1);
}

TEST(a_task_of_an_io_worker_never_waits)
{
	open_all(0);
	crew_open(CREW_FIBERS);
	CHECK_OK(hive_post(crew_hive, on_a_worker, NULL));
	until(&ended, 1);
	crew_close();
	close_all();
}
