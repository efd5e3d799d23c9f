/* SPDX-License-Identifier: MIT */
/* A pipeline with select and time-outs: two sources of very different speed, a stage that takes from whichever has something and gives up on
 * neither, and a plain thread at the end that wants a sign of life now and then.                                          */
#include <rophive/hive.h>
#include <stdio.h>

enum { FAST = 200, SLOW = 20, ENDS = 2 };

struct source {
	struct hive_channel *out;
	int64_t pause_ns;
	long first, count;
};

struct stage {
	struct hive_channel *in[ENDS], *out;
};

static int produce(void *arg)
{
	const struct source *s = arg;
	int r = 0;

	for (long i = 0; i < s->count && r == 0; i++) {
		long v = s->first + i;

		r = s->pause_ns ? hive_sleep(s->pause_ns) : 0;
		if (r == 0)
			r = hive_channel_send(s->out, &v, sizeof v, HIVE_FOREVER);
	}
	hive_channel_close(s->out);
	return r;
}

/* Whichever is ready, fairly; what has ended is taken out by setting it to NULL. */
static int merge(void *arg)
{
	const struct stage *s = arg;
	struct hive_select cases[ENDS] = { { 0 } };
	long v[ENDS];
	size_t which;
	int open = ENDS, r = 0;

	for (int i = 0; i < ENDS; i++)
		cases[i] = (struct hive_select){ .channel = s->in[i], .recv = &v[i], .bytes = sizeof v[i] };
	while (open > 0 && (r == 0 || r == -EPIPE)) {
		r = hive_select(cases, ENDS, HIVE_FOREVER, &which);
		if (r == -EPIPE) {
			cases[which].channel = NULL;
			open--;
		} else if (r == 0) {
			r = hive_channel_send(s->out, &v[which], sizeof v[which], HIVE_FOREVER);
		}
	}
	hive_channel_close(s->out);
	return r;
}

/* Until the end; nothing for a millisecond is no error, but worth a note. */
static long collect(struct hive_channel *in, long *ret_sum, long *ret_pauses)
{
	long v, n = 0;
	size_t which;

	for (;;) {
		struct hive_select cases[] = {
			{ .channel = in, .recv = &v, .bytes = sizeof v },
			{ .deadline_ns = hive_deadline(NULL, HIVE_MS(1)) },
		};

		if (hive_select(cases, 2, HIVE_FOREVER, &which) < 0)
			return n;
		if (which == 1) {
			++*ret_pauses;
		} else {
			*ret_sum += v;
			n++;
		}
	}
}

int main(void)
{
	struct hive *hive;
	struct stage stage;
	long n, sum = 0, pauses = 0, all = FAST + SLOW;

	if (hive_runtime_start(NULL, &hive) < 0 || hive_channel_create(sizeof(long), 16, &stage.in[0]) < 0 ||
	    hive_channel_create(sizeof(long), 0, &stage.in[1]) < 0 ||
	    hive_channel_create(sizeof(long), 4, &stage.out) < 0)
		return 1;
	struct source fast = { stage.in[0], 0, 1, FAST }, slow = { stage.in[1], HIVE_MS(2), FAST + 1, SLOW };
	if (hive_spawn(hive, produce, &fast, NULL, NULL) < 0 || hive_spawn(hive, produce, &slow, NULL, NULL) < 0 ||
	    hive_spawn(hive, merge, &stage, NULL, NULL) < 0)
		return 1;
	n = collect(stage.out, &sum, &pauses);
	printf("%ld numbers, their sum is %ld; nothing to do for a millisecond: %s\n", n, sum,
	       pauses > 0 ? "now and then" : "never");
	if (hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0)
		return 1;
	for (int i = 0; i < ENDS; i++)
		if (hive_channel_destroy(stage.in[i]) < 0)
			return 1;
	return hive_channel_destroy(stage.out) < 0 || n != all || sum != all * (all + 1) / 2;
}
