/* SPDX-License-Identifier: MIT */
/* A pipeline over channels: two fibers and, as the last stage, a plain thread. Closing ends it stage by stage. */
#include <rophive/hive.h>
#include <stdio.h>

enum { NUMBERS = 1000, CAPACITY = 64 };

struct pipe {
	struct hive_channel *in, *out;
};

static int count(void *arg)
{
	struct pipe *p = arg;

	for (long i = 1; i <= NUMBERS; i++)
		if (hive_channel_send(p->out, &i, sizeof i, HIVE_FOREVER) < 0) /* waits while the channel is full */
			break;
	return hive_channel_close(p->out);
}

static int square(void *arg)
{
	struct pipe *p = arg;
	long v;

	while (hive_channel_recv(p->in, &v, sizeof v, HIVE_FOREVER) == 0) { /* -EPIPE: closed, and empty */
		v *= v;
		if (hive_channel_send(p->out, &v, sizeof v, HIVE_FOREVER) < 0)
			break;
	}
	return hive_channel_close(p->out);
}

int main(void)
{
	struct hive *hive;
	struct hive_channel *a, *b;
	long v, sum = 0;

	if (hive_runtime_start(NULL, &hive) < 0 || hive_channel_create(sizeof v, CAPACITY, &a) < 0 ||
	    hive_channel_create(sizeof v, CAPACITY, &b) < 0)
		return 1;
	struct pipe first = { NULL, a }, second = { a, b };
	if (hive_spawn(hive, count, &first, NULL, NULL) < 0 || hive_spawn(hive, square, &second, NULL, NULL) < 0)
		return 1;
	while (hive_channel_recv(b, &v, sizeof v, HIVE_FOREVER) == 0) /* this thread blocks where a fiber would park */
		sum += v;
	printf("the squares of 1 to %d make %ld\n", NUMBERS, sum);
	if (hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0)
		return 1;
	return hive_channel_destroy(a) < 0 || hive_channel_destroy(b) < 0 ||
	       sum != (long)NUMBERS * (NUMBERS + 1) * (2 * NUMBERS + 1) / 6;
}
