/* SPDX-License-Identifier: MIT */
/* Cancel tokens: a crawl with a budget of time. Each page leads to others, without end; a token below the budget gives up one slow site alone; a watch tells
 * when the budget is spent. The code that crawls knows nothing of deadlines: its waits answer with the reason, and it comes to its end.  */
#include <rophive/hive.h>
#include <stdatomic.h>
#include <stdio.h>

enum { LINKS = 2 };

static atomic_int pages, given_up;

/* A page, and then those that it leads to: what a fiber spawns is under the fiber's token. */
static int crawl(void *delay_ns)
{
	int r = hive_sleep(*(const int64_t *)delay_ns); /* until it is there */

	if (r < 0) {
		given_up++;
		return r;
	}
	pages++;
	for (int i = 0; i < LINKS && r == 0; i++)
		r = hive_spawn(hive_current(), crawl, delay_ns, NULL, NULL); /* refused when the token has fired */
	return r;
}

static void tell(struct hive_cancel_watch *watch, int reason)
{
	(void)watch;
	printf("the budget is spent: %s\n", hive_error_name(reason));
}

/* For loops that do not wait. */
static void count(void *arg)
{
	long *n = arg;

	while (!hive_cancelled())
		++*n;
}

static int root(void *arg)
{
	static int64_t quick = HIVE_MS(5), slow = HIVE_S(3600);
	struct hive_cancel budget, patience;
	struct hive_fiber_options all = { .name = "quick", .cancel = &budget };
	struct hive_fiber_options one = { .name = "slow", .cancel = &patience };
	struct hive_cancel_watch watch;
	long counted = 0;
	int r;

	(void)arg;
	hive_cancel_init(&budget, NULL, hive_deadline(NULL, HIVE_MS(40)));
	hive_cancel_init(&patience, &budget, HIVE_FOREVER);
	hive_cancel_watch_init(&watch, tell, NULL);
	r = hive_cancel_watch_start(&budget, &watch);
	if (r == 0)
		r = hive_spawn(hive_current(), crawl, &quick, &all, NULL);
	if (r == 0)
		r = hive_spawn(hive_current(), crawl, &slow, &one, NULL);
	if (r == 0)
		r = hive_post_under(hive_current(), &budget, HIVE_COMPUTE, count, &counted);
	if (r < 0)
		hive_cancel_fire(&budget); /* what has begun ends */

	hive_cancel_fire_with(&patience, -EHOSTDOWN); /* we know this site */
	hive_cancel_join(&patience, HIVE_FOREVER);    /* nobody is under it any more: children first */
	if (given_up == 1)
		puts("the slow site is given up");
	hive_cancel_join(&budget,
	                 HIVE_FOREVER); /* fibers, task and watch: all have ended, and it may leave the stack */
	printf("%s pages, %s beside them\n", pages > 0 ? "some" : "no", counted > 0 ? "something" : "nothing");
	return r;
}

int main(void)
{
	struct hive *hive;
	int result = 1;

	if (hive_runtime_start(NULL, &hive) < 0 || hive_block_on(hive, root, NULL, HIVE_FOREVER, &result) < 0)
		return 1;
	if (hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0)
		return 1;
	return result != 0 && result != -ETIMEDOUT; /* a machine may be so busy that nothing had begun by then */
}
