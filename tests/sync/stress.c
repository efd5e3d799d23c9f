/* SPDX-License-Identifier: MIT */
/* Everything at once: many of them over one mutex, one condition, one semaphore and one channel, with and without deadlines, and a
 * ledger for each. ROPHIVE_STRESS_SECONDS makes it longer.                                                                  */
#include "base/clock.h"
#include "base/rng.h"
#include "crew.h"
#include "sync/channel.h"

#define PERMITS 3
#define MEMBERS 9

static struct hive_mutex mutex;
static struct hive_cond cond;
static struct hive_semaphore semaphore;
static struct hive_channel *channel;
static int64_t locked, stock;                       /* under the mutex */
static ATOMIC(uint64_t) locks, permits_out;         /* what the members count */
static ATOMIC(uint64_t) put, taken, sent, received; /* of the stock, of the channel */
static ATOMIC(uint32_t) members;
static ATOMIC(uint32_t) over;

static int64_t some_deadline(uint64_t *rng)
{
	uint64_t dice = rng_next(rng) % 4;

	if (dice == 0)
		return HIVE_NOWAIT;
	return hive_deadline(NULL, dice == 1 ? HIVE_US(rng_next(rng) % 100) : HIVE_MS(20));
}

static bool done(int r)
{
	CHECK(r == 0 || r == -ETIMEDOUT);
	return r == 0;
}

static void use_mutex(uint64_t *rng)
{
	if (!done(hive_mutex_lock(&mutex, some_deadline(rng))))
		return;
	locked++;
	if (rng_next(rng) % 8 == 0)
		CHECK_OK(hive_yield());
	CHECK_OK(hive_mutex_unlock(&mutex));
	add_relaxed(&locks, 1u);
}

static void use_stock(uint64_t *rng)
{
	int r = 0;

	CHECK_OK(hive_mutex_lock(&mutex, HIVE_FOREVER));
	if (rng_next(rng) % 2) {
		stock++;
		add_relaxed(&put, 1u);
		hive_cond_signal(&cond);
	} else {
		while (stock == 0 && r == 0)
			r = hive_cond_wait(&cond, &mutex, some_deadline(rng));
		if (stock > 0) {
			stock--;
			add_relaxed(&taken, 1u);
		}
		CHECK(r == 0 || r == -ETIMEDOUT);
	}
	CHECK_OK(hive_mutex_unlock(&mutex));
}

static void use_semaphore(uint64_t *rng)
{
	uint32_t n = 1 + (uint32_t)(rng_next(rng) % PERMITS);

	if (!done(hive_semaphore_acquire(&semaphore, n, some_deadline(rng))))
		return;
	CHECK(add_seq(&permits_out, n) + n <= PERMITS);
	if (rng_next(rng) % 8 == 0)
		CHECK_OK(hive_yield());
	sub_seq(&permits_out, n);
	CHECK_OK(hive_semaphore_release(&semaphore, n));
}

static void use_channel(uint64_t *rng)
{
	uint64_t value = rng_next(rng) % 1000;

	if (rng_next(rng) % 2) {
		if (done(hive_channel_send(channel, &value, sizeof value, some_deadline(rng))))
			add_relaxed(&sent, value);
	} else if (done(hive_channel_recv(channel, &value, sizeof value, some_deadline(rng)))) {
		add_relaxed(&received, value);
	}
}

static void body(void *arg)
{
	static void (*const uses[])(uint64_t *) = { use_mutex, use_stock, use_semaphore, use_channel };
	uint64_t rng = rng_mix(add_seq(&members, 1u) + 1);

	(void)arg;
	while (!load_relaxed(&over))
		uses[rng_next(&rng) % 4](&rng);
}

CREW_TEST(ledgers_balance)
{
	int64_t until_ns = hive__clock_now() + test_stress_ns() / 5;
	uint64_t value;
	struct crew crew;

	hive_mutex_init(&mutex);
	hive_cond_init(&cond);
	hive_semaphore_init(&semaphore, PERMITS);
	CHECK_OK(hive_channel_create(sizeof value, 2, &channel));
	locked = stock = 0;
	store_relaxed(&locks, 0);
	store_relaxed(&put, 0);
	store_relaxed(&taken, 0);
	store_relaxed(&sent, 0);
	store_relaxed(&received, 0);
	store_relaxed(&over, 0);
	crew_begin(&crew, crew_kind);
	for (int i = 0; i < MEMBERS; i++)
		crew_add(&crew, body, NULL);
	while (hive__clock_now() < until_ns)
		CHECK_OK(hive_sleep(HIVE_MS(5)));
	store_relaxed(&over, 1);
	crew_end(&crew);
	while (hive_channel_recv(channel, &value, sizeof value, HIVE_NOWAIT) == 0)
		add_relaxed(&received, value);
	CHECK_EQ(locked, load_relaxed(&locks));
	CHECK_EQ((uint64_t)stock + load_relaxed(&taken), load_relaxed(&put));
	CHECK_EQ(load_relaxed(&sent), load_relaxed(&received));
	CHECK_EQ(load_relaxed(&semaphore.state), PERMITS << SEMAPHORE_SHIFT);
	CHECK_EQ(load_relaxed(&mutex.state), 0);
	CHECK_EQ(load_relaxed(&cond.state), 0);
	CHECK(load_relaxed(&locks) > 0 && load_relaxed(&put) > 0 && load_relaxed(&received) > 0);
	CHECK_OK(hive_channel_destroy(channel));
}
