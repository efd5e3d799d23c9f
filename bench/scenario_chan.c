/* SPDX-License-Identifier: MIT */
#include "fibers.h"

/* chan: P fibers send n values of 8 bytes through one channel of 1024 to C fibers. One operation is one value. Who sends ends,
 * then the channel is closed, and who receives ends with that. The sum and the number of all values must be right.         */
#define CAPACITY 1024
#define SIDE_MAX 256

struct party { /* one sender or receiver; nobody else writes to its line while it runs */
	_Alignas(SYNC_LINE) struct hive_channel *channel;
	int64_t first, count; /* senders: the values first … first + count - 1; receivers: how many came */
	uint64_t sum;
};

struct trade {
	struct party senders[SIDE_MAX], receivers[SIDE_MAX];
	struct hive_fiber *sending[SIDE_MAX], *receiving[SIDE_MAX];
	int32_t producers, consumers;
	int64_t n, elapsed_ns;
};

static int send_all(void *arg)
{
	const struct party *party = arg;
	int error = 0;
	for (int64_t i = 0; i < party->count && !error; i++) {
		uint64_t value = (uint64_t)(party->first + i);
		error = hive_channel_send(party->channel, &value, sizeof value, HIVE_FOREVER);
	}
	return error;
}

static int receive_all(void *arg)
{
	struct party *party = arg;
	uint64_t value, sum = 0;
	int64_t count = 0;
	int error;
	while ((error = hive_channel_recv(party->channel, &value, sizeof value, HIVE_FOREVER)) == 0) {
		sum += value;
		count++;
	}
	party->sum = sum;
	party->count = count;
	return error == -EPIPE ? 0 : error;
}

static void share_out(struct trade *trade, struct hive_channel *channel)
{
	int64_t next = 1;
	for (int32_t i = 0; i < trade->producers; i++) {
		int64_t count = trade->n / trade->producers + (i < trade->n % trade->producers);
		trade->senders[i] = (struct party){ .channel = channel, .first = next, .count = count };
		next += count;
	}
	for (int32_t i = 0; i < trade->consumers; i++)
		trade->receivers[i] = (struct party){ .channel = channel };
}

/* Receivers first, as a server would; the clock runs from the first spawn until the last value was received. */
static int run_trade(struct trade *trade, struct hive_channel *channel)
{
	int first_error = 0, error = 0;
	int32_t receivers = 0;
	for (; receivers < trade->consumers && !first_error; receivers += !first_error)
		first_error = hive_spawn(hive_current(), receive_all, &trade->receivers[receivers], NULL,
		                         &trade->receiving[receivers]);
	if (!first_error)
		first_error = fibers_spawn_and_join(send_all, trade->senders, sizeof *trade->senders, trade->producers,
		                                    trade->sending);
	error = hive_channel_close(channel);
	for (int32_t i = 0, result = 0; i < receivers; i++, result = 0) {
		int joined = hive_fiber_join(trade->receiving[i], HIVE_FOREVER, &result);
		error = error ? error : joined ? joined : result;
	}
	return first_error ? first_error : error;
}

static int trade_all(void *arg)
{
	struct trade *trade = arg;
	struct hive_channel *channel;
	int error = hive_channel_create(sizeof(uint64_t), CAPACITY, &channel);
	if (error)
		return error;
	share_out(trade, channel);
	int64_t begin = sync_now();
	error = run_trade(trade, channel);
	trade->elapsed_ns = sync_now() - begin;
	int end = hive_channel_destroy(channel);
	return error ? error : end;
}

static int check_sum(const struct trade *trade)
{
	uint64_t sum = 0, n = (uint64_t)trade->n, expected = n * (n + 1) / 2;
	int64_t count = 0;
	for (int32_t i = 0; i < trade->consumers; i++) {
		sum += trade->receivers[i].sum;
		count += trade->receivers[i].count;
	}
	if (count != trade->n)
		return bench_wrong("values received", n, (uint64_t)count);
	return sum == expected ? BENCH_OK : bench_wrong("sum of the values", expected, sum);
}

int bench_chan(const struct bench_params *params, struct record *result)
{
	static struct trade trade;
	struct rig rig;
	int code = rig_open(&rig, params, params->threads, 0);
	if (code)
		return code;
	trade.producers = params->producers;
	trade.consumers = params->consumers;
	trade.n = params->n / 10 + 1; /* warm-up */
	code = fibers_run(&rig, trade_all, &trade);
	trade.n = params->n;
	if (!code)
		code = fibers_run(&rig, trade_all, &trade);
	if (!code)
		code = check_sum(&trade);
	bench_put_rate(result, (double)params->n, trade.elapsed_ns);
	bench_put_memory(result);
	return rig_close(&rig, code);
}
