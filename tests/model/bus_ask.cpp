/* SPDX-License-Identifier: MIT */
/* Requests and their replies, and who else handles a type: subscriptions that begin and end while messages are handled. */
#define RING_START (UINT64_MAX / 2) /* the largest number of 63 bits: the next one is 0 */
#include "model_bus.h"

/* ---- requests ---- */

template <typename T, int THREADS> struct ask_suite : bus_suite<T, THREADS, 1> {
	rl::var<int> buffer; /* the asker's: written by who replies, used again when the request is over */
	uint64_t reply_to[2];
	int count, result;

	void before()
	{
		this->set_up(BUS_SHARED);
		this->open();
		buffer($) = 0;
		model_reply = &buffer;
		count = 0;
	}
	void ask(int64_t deadline_ns)
	{
		uint64_t payload[2];
		struct hive_bus_message m = this->message(0, payload);

		buffer($) = 0;
		result = hive_bus_request(&this->bus, &m, reply_to, 8, deadline_ns);
		RL_ASSERT(buffer($) == (result >= 0 ? 1 : 0));
		buffer($) = 2;
	}
	int reply(const struct hive_bus_header *header, size_t bytes)
	{
		uint64_t reply[2] = { 7, 7 };

		return hive_bus_reply(header, reply, bytes);
	}
	int on_message(int i, const struct hive_bus_header *header)
	{
		this->note(i);
		count++;
		int r = reply(header, 8);
		RL_ASSERT(r == 0 || r == -ENOENT);
		return 0;
	}
	void thread(unsigned i)
	{
		if (i == 0)
			this->work_until(0, &count);
		else
			((T *)this)->asks();
	}
};

struct bus_request_is_answered : ask_suite<bus_request_is_answered, 2> {
	void asks()
	{
		ask(HIVE_FOREVER);
		RL_ASSERT(result == 8 && reply_to[0] == 7);
	}
};
SCENARIO(bus_request_is_answered, 20000, 2);

/* The deadline passes at any time: before, while, after it is answered. An answer that comes later goes nowhere. */
struct bus_request_gives_up : ask_suite<bus_request_gives_up, 2> {
	void asks()
	{
		ask(MODEL_SOON);
		RL_ASSERT(result == 8 || result == -ETIMEDOUT);
	}
};
SCENARIO(bus_request_gives_up, 20000, 2);

/* Handled without a reply. */
struct bus_request_is_not_answered : ask_suite<bus_request_is_not_answered, 2> {
	int on_message(int i, const struct hive_bus_header *)
	{
		note(i);
		count++;
		return 0;
	}
	void asks()
	{
		ask(HIVE_FOREVER);
		RL_ASSERT(result == -ENODATA);
	}
};
SCENARIO(bus_request_is_not_answered, 20000, 2);

/* A reply that does not fit, while the asker gives up: he is told, and does not wait for a handler that goes on for long. */
struct bus_reply_is_too_large : ask_suite<bus_reply_is_too_large, 2> {
	struct parker over;

	void before()
	{
		ask_suite::before();
		parker_init(&over);
	}
	int on_message(int i, const struct hive_bus_header *header)
	{
		note(i);
		count++;
		int r = reply(header, 16);
		RL_ASSERT(r == -EMSGSIZE || r == -ENOENT);
		while (!parker_park(&over, HIVE_FOREVER))
			;
		return 0;
	}
	void asks()
	{
		ask(MODEL_SOON);
		RL_ASSERT(result == -ETIMEDOUT);
		parker_unpark(&over);
	}
};
SCENARIO(bus_reply_is_too_large, 20000, 2);

/* Asked once more in the same cell, while the answer to the first one is late. */
struct bus_request_after_one_that_gave_up : ask_suite<bus_request_after_one_that_gave_up, 2> {
	int on_message(int i, const struct hive_bus_header *header)
	{
		count++;
		int r = reply(header, 8);
		RL_ASSERT(r == 0 || r == -ENOENT);
		return 0;
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			work_until(0, &count, 2);
			return;
		}
		ask(MODEL_SOON);
		ask(MODEL_SOON);
	}
};
SCENARIO(bus_request_after_one_that_gave_up, 20000, 1);

/* Dropped by a stop: who asked is told. */
struct bus_request_is_dropped : ask_suite<bus_request_is_dropped, 3> {
	void thread(unsigned i)
	{
		if (i == 0) {
			model_thread_runs(0);
		} else if (i == 1) {
			ask(HIVE_FOREVER);
			RL_ASSERT(result == 8 || result == -ECANCELED || result == -ESHUTDOWN);
		} else {
			RL_ASSERT(hive_bus_stop(&bus, HIVE_NOW, HIVE_FOREVER) == 0);
		}
	}
};
SCENARIO(bus_request_is_dropped, 20000, 1);

/* ---- subscriptions ---- */

template <typename T> struct subscribe_suite : bus_suite<T, 2, 1> {
	struct context {
		rl::var<int> alive; /* of who subscribes: his to use before, and again when the subscription is over */
	} context[2];
	uint32_t number;

	static int on_call(void *context, const struct hive_bus_header *, const void *)
	{
		RL_ASSERT(((struct context *)context)->alive($) == 1);
		return 0;
	}
	void before()
	{
		this->set_up(BUS_SHARED);
		this->open();
		this->type[0].handle = NULL;
		context[0].alive($) = context[1].alive($) = 0;
	}
	/* -ENOSPC: somebody still looks at who was there before. */
	int subscribe(int i)
	{
		context[i].alive($) = 1;
		return hive_bus_subscribe(&this->bus, 1, on_call, &context[i], &number);
	}
	void unsubscribe(int i)
	{
		RL_ASSERT(hive_bus_unsubscribe(&this->bus, number, HIVE_FOREVER) == 0);
		context[i].alive($) = 0;
	}
};

struct bus_subscription_begins : subscribe_suite<bus_subscription_begins> {
	void thread(unsigned i)
	{
		if (i == 0)
			RL_ASSERT(subscribe(0) == 0);
		else
			RL_ASSERT(call(0) == 0);
	}
};
SCENARIO(bus_subscription_begins, 20000, 3);

struct bus_subscription_ends : subscribe_suite<bus_subscription_ends> {
	void before()
	{
		subscribe_suite::before();
		RL_ASSERT(subscribe(0) == 0);
	}
	void thread(unsigned i)
	{
		if (i == 0)
			unsubscribe(0);
		else
			RL_ASSERT(call(0) == 0);
	}
};
SCENARIO(bus_subscription_ends, 20000, 3);

/* The slot's next life, while somebody still looks at the one before. */
struct bus_subscription_is_used_again : subscribe_suite<bus_subscription_is_used_again> {
	void before()
	{
		subscribe_suite::before();
		RL_ASSERT(subscribe(0) == 0);
	}
	void thread(unsigned i)
	{
		if (i == 0) {
			unsubscribe(0);
			int r = subscribe(1);
			RL_ASSERT(r == 0 || r == -ENOSPC);
		} else {
			RL_ASSERT(call(0) == 0);
		}
	}
};
SCENARIO(bus_subscription_is_used_again, 20000, 3);
