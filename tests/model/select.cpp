/* SPDX-License-Identifier: MIT */
/* Select, and what can be selected beside channels: the files of src/sync as they are, on modelled atomics and waits. Exactly one case happens, what
 * was written before it is seen, and who lost finds nobody at its nodes when it returns: they are poisoned then.             */
#include "base/atomic.h"
#define HIVE_ATOMIC(T) ATOMIC(T)
#define _Static_assert static_assert
#include "model_wait.h"

#include "model.h"
#define CHECK(x) RL_ASSERT(x)
#include "sync/channel.c"
#include "sync/arm.c"
#include "sync/channel_arm.c"
static int model_freed;
#define object_free(object) (void)model_freed++
#include "sync/oneshot.c"
#define refuse refuse_watch
#include "sync/watch.c"
#define wait_in wait_in_limiter
#include "sync/limiter.c"

void *hive__memory_system(void *, void *, size_t)
{
	return NULL;
}

#define SOON 2 /* a deadline that is not past, and may pass at any time */

template <typename T, int THREADS> struct select_suite : rl::test_suite<T, THREADS> {
	struct waiter waiters[MODEL_WAITERS];
	struct hive_channel channels[2];
	uint64_t rings[2][2];
	rl::var<int> news[4];
	int given[4];

	void before()
	{
		model_waiters = waiters;
		model_freed = 0;
		for (int i = 0; i < MODEL_WAITERS; i++) {
			waiters[i].cell.word.store(0, rl::mo_relaxed, $);
			parker_init(&waiters[i].parker);
			waiters[i].is_thread = i % 2 == 1;
		}
		for (int i = 0; i < 2; i++)
			open(i, 0);
		for (int i = 0; i < 4; i++) {
			news[i]($) = 0;
			given[i] = 0;
		}
	}

	void open(int i, size_t capacity)
	{
		struct hive_channel *channel = &channels[i];

		channel->word.store(0, rl::mo_relaxed, $);
		channel->count.store(0, rl::mo_relaxed, $);
		channel->head = channel->tail = 0;
		channel->capacity = capacity;
		channel->bytes = 8;
		channel->ring = (char *)rings[i];
		channel->magic = CHANNEL_MAGIC;
		memset(&channel->senders, 0, sizeof channel->senders);
		memset(&channel->receivers, 0, sizeof channel->receivers);
	}

	/* Item i is sent once, by one who has written its news. */
	int send(int channel, uint64_t i, int64_t deadline_ns = HIVE_FOREVER)
	{
		news[i]($) = (int)i + 1;
		return hive_channel_send(&channels[channel], &i, 8, deadline_ns);
	}

	void note(uint64_t i)
	{
		RL_ASSERT(i < 4 && news[i]($) == (int)i + 1);
		RL_ASSERT(++given[i] == 1);
	}

	/* Both arms, and what is left of them is worth nothing when it is over. */
	int choose(struct arm *all, size_t *ret_index, int64_t deadline_ns = HIVE_FOREVER)
	{
		uint32_t order[2] = { 0, 1 };
		struct arms arms = { all, order, 2, "select" };
		int r = hive__arms_wait(&arms, deadline_ns, ret_index);

		memset((void *)all, 0xee, 2 * sizeof *all);
		return r;
	}

	/* The item that came, or an error: then nothing came. */
	int recv_either(int64_t deadline_ns = HIVE_FOREVER)
	{
		uint64_t items[2] = { 99, 99 };
		struct arm all[2];
		size_t index = 9;

		for (int i = 0; i < 2; i++)
			RL_ASSERT(hive__channel_arm(&channels[i], NULL, &items[i], 8, &all[i]) == 0);
		int r = choose(all, &index, deadline_ns);
		RL_ASSERT((r == 0) == (items[0] != 99 || items[1] != 99));
		RL_ASSERT(r != 0 || items[1 - index] == 99);
		if (r < 0)
			return r;
		note(items[index]);
		return (int)items[index];
	}

	/* To either channel. The channel, or an error. */
	int send_either(uint64_t item)
	{
		struct arm all[2];
		size_t index = 9;

		news[item]($) = (int)item + 1;
		for (int i = 0; i < 2; i++)
			RL_ASSERT(hive__channel_arm(&channels[i], &item, NULL, 8, &all[i]) == 0);
		int r = choose(all, &index);
		return r < 0 ? r : (int)index;
	}

	int recv(int channel, int64_t deadline_ns = HIVE_FOREVER)
	{
		uint64_t item = 99;
		int r = hive_channel_recv(&channels[channel], &item, 8, deadline_ns);

		if (r < 0)
			return r;
		note(item);
		return (int)item;
	}

	void after()
	{
		for (int i = 0; i < 2; i++) {
			RL_ASSERT(!(channels[i].word.load(rl::mo_relaxed, $) & ~CHANNEL_CLOSED));
			RL_ASSERT(!channels[i].senders.first && !channels[i].receivers.first);
		}
	}
};

/* Two senders at two channels, one who selects twice: both come, each once; so nobody was handed two at a time. */
struct select_against_two_senders : select_suite<select_against_two_senders, 3> {
	void thread(unsigned i)
	{
		if (i < 2)
			RL_ASSERT(send((int)i, i) == 0);
		else
			RL_ASSERT(recv_either() + recv_either() == 1);
	}
};
SCENARIO(select_against_two_senders, 20000, 1);

/* It selects once, and one sender gives up or gets through by somebody else: no item is lost, none comes twice. */
struct select_takes_one_of_two : select_suite<select_takes_one_of_two, 3> {
	int sent[2], came;

	void thread(unsigned i)
	{
		if (i < 2)
			sent[i] = send((int)i, i, SOON) == 0;
		else
			came = recv_either(SOON) >= 0;
	}

	void after()
	{
		RL_ASSERT(sent[0] + sent[1] == came);
		select_suite::after();
	}
};
SCENARIO(select_takes_one_of_two, 20000, 0);

/* The same with rings: what was not taken is inside. */
struct select_leaves_the_other_inside : select_suite<select_leaves_the_other_inside, 3> {
	void before()
	{
		select_suite::before();
		open(0, 1);
		open(1, 1);
	}

	void thread(unsigned i)
	{
		if (i < 2)
			RL_ASSERT(send((int)i, i) == 0);
		else
			RL_ASSERT(recv_either() >= 0);
	}

	void after()
	{
		RL_ASSERT(channels[0].count.load(rl::mo_relaxed, $) + channels[1].count.load(rl::mo_relaxed, $) == 1);
		select_suite::after();
	}
};
SCENARIO(select_leaves_the_other_inside, 20000, 1);

/* Both select, from opposite sides, and nothing lies between: they must meet, and not give way to each other for ever. */
struct select_meets_select : select_suite<select_meets_select, 2> {
	void thread(unsigned i)
	{
		if (i == 0)
			RL_ASSERT(send_either(0) >= 0);
		else
			RL_ASSERT(recv_either() == 0);
	}
};
SCENARIO(select_meets_select, 20000, 2);

/* One channel, and both offer to send and to receive: each meets the other, and nobody himself. */
struct select_does_not_meet_itself : select_suite<select_does_not_meet_itself, 2> {
	int did[2];

	void thread(unsigned i)
	{
		uint64_t out = i, in = 99;
		struct arm all[2];
		size_t index = 9;

		news[i]($) = (int)i + 1;
		RL_ASSERT(hive__channel_arm(&channels[0], &out, NULL, 8, &all[0]) == 0);
		RL_ASSERT(hive__channel_arm(&channels[0], NULL, &in, 8, &all[1]) == 0);
		RL_ASSERT(choose(all, &index) == 0);
		did[i] = (int)index;
		RL_ASSERT((index == 1) == (in != 99));
		if (index == 1) {
			RL_ASSERT(in == 1 - i);
			note(in);
		}
	}

	void after()
	{
		RL_ASSERT(did[0] + did[1] == 1);
		select_suite::after();
	}
};
SCENARIO(select_does_not_meet_itself, 20000, 3);

/* One who selects and a plain receiver at one of the channels: the sender's item goes to one of them, and the other gives up. */
struct select_beside_a_receiver : select_suite<select_beside_a_receiver, 3> {
	int came[2];

	void thread(unsigned i)
	{
		if (i == 0)
			came[0] = recv_either(SOON) >= 0;
		else if (i == 1)
			came[1] = recv(0, SOON) >= 0;
		else
			RL_ASSERT(send(0, 0, SOON) == 0 || given[0] == 0);
	}

	void after()
	{
		RL_ASSERT(came[0] + came[1] == given[0]);
		select_suite::after();
	}
};
SCENARIO(select_beside_a_receiver, 20000, 0);

/* A close tells one who selects, once, and which it is. */
struct select_is_told_of_a_close : select_suite<select_is_told_of_a_close, 2> {
	void thread(unsigned i)
	{
		if (i == 1) {
			RL_ASSERT(hive_channel_close(&channels[1]) == 0);
			return;
		}
		uint64_t items[2];
		struct arm all[2];
		size_t index = 9;

		for (int k = 0; k < 2; k++)
			RL_ASSERT(hive__channel_arm(&channels[k], NULL, &items[k], 8, &all[k]) == 0);
		RL_ASSERT(choose(all, &index) == -EPIPE && index == 1);
	}
};
SCENARIO(select_is_told_of_a_close, 20000, 4);

/* A oneshot whose sides end at the same time: the value is seen or refused, the memory goes once, with the second. */
struct oneshot_ends_once : select_suite<oneshot_ends_once, 2> {
	struct hive_oneshot *oneshot;
	uint64_t room[32];
	int sent, came;

	void before()
	{
		select_suite::before();
		memset(room, 0, sizeof room);
		oneshot = new (room) hive_oneshot;
		oneshot->bell.word.store(0, rl::mo_relaxed, $);
		memset(&oneshot->bell.list, 0, sizeof oneshot->bell.list);
		oneshot->bytes = 8;
		oneshot->magic = ONESHOT_MAGIC;
	}

	void thread(unsigned i)
	{
		uint64_t item = 0;

		if (i == 0) {
			news[0]($) = 1;
			sent = hive_oneshot_send(oneshot, &item, 8);
			RL_ASSERT(sent == 0 || sent == -EPIPE);
			return;
		}
		came = hive_oneshot_recv(oneshot, &item, 8, SOON);
		RL_ASSERT(came == 0 || came == -ETIMEDOUT);
		if (came == 0)
			note(item);
		RL_ASSERT(hive_oneshot_close(oneshot) == 0);
	}

	void after()
	{
		RL_ASSERT(model_freed == 1 && (sent == 0 || came < 0));
		oneshot->~hive_oneshot();
	}
};
SCENARIO(oneshot_ends_once, 20000, 4);

/* Who waits for a watch, or for a channel beside it, sees the last version in the end. */
struct watch_is_followed : select_suite<watch_is_followed, 2> {
	struct hive_watch *watch;
	uint64_t room[32];

	void before()
	{
		select_suite::before();
		memset(room, 0, sizeof room);
		watch = new (room) hive_watch;
		watch->bell.word.store(0, rl::mo_relaxed, $);
		memset(&watch->bell.list, 0, sizeof watch->bell.list);
		watch->bytes = 8;
		watch->version = 1;
		watch->magic = WATCH_MAGIC;
	}

	void thread(unsigned i)
	{
		uint64_t version = 1, value = 0, item;

		if (i == 0) {
			for (value = 2; value <= 3; value++) {
				news[value]($) = (int)value + 1;
				RL_ASSERT(hive_watch_send(watch, &value, 8) == 0);
			}
			return;
		}
		while (value < 3) {
			struct arm all[2];
			size_t index = 9;

			RL_ASSERT(hive__watch_arm(watch, &version, &value, 8, &all[0]) == 0);
			RL_ASSERT(hive__channel_arm(&channels[0], NULL, &item, 8, &all[1]) == 0);
			RL_ASSERT(choose(all, &index) == 0 && index == 0);
			RL_ASSERT(value == version);
			note(value);
		}
	}

	void after()
	{
		watch->~hive_watch();
		select_suite::after();
	}
};
SCENARIO(watch_is_followed, 20000, 3);

/* A limit of one is a lock, whoever is late. */
struct limiter_of_one_is_a_lock : select_suite<limiter_of_one_is_a_lock, 3> {
	struct hive_limiter limiter;

	void before()
	{
		select_suite::before();
		hive_limiter_init(&limiter, 1);
	}

	void thread(unsigned i)
	{
		if (hive_limiter_enter(&limiter, i == 2 ? SOON : HIVE_FOREVER) < 0)
			return;
		news[0]($) = news[0]($) + 1;
		RL_ASSERT(hive_limiter_leave(&limiter) == 0);
	}

	void after()
	{
		RL_ASSERT(limiter.inside == 0 && limiter.waiting == 0 && !limiter.waiters[0]);
		RL_ASSERT(news[0]($) >= 2);
	}
};
SCENARIO(limiter_of_one_is_a_lock, 20000, 1);

/* A place that is made by a resize goes to one who waits, and is not spent on a late one. */
struct limiter_grows : select_suite<limiter_grows, 3> {
	struct hive_limiter limiter;

	void before()
	{
		select_suite::before();
		hive_limiter_init(&limiter, 0);
	}

	void thread(unsigned i)
	{
		if (i == 2)
			RL_ASSERT(hive_limiter_resize(&limiter, 1) == 0);
		else if (hive_limiter_enter(&limiter, i ? SOON : HIVE_FOREVER) == 0)
			RL_ASSERT(hive_limiter_leave(&limiter) == 0);
	}

	void after()
	{
		RL_ASSERT(limiter.inside == 0 && limiter.waiting == 0 && !limiter.waiters[0]);
	}
};
SCENARIO(limiter_grows, 20000, 0);
