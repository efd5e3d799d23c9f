/* SPDX-License-Identifier: MIT */
/* block_on and wait_all: three questions at once, a deadline each, results collected. One of the three never answers. */
#include <rophive/hive.h>
#include <stdio.h>

struct service {
	const char *name;
	int64_t delay_ns;             /* after which it answers; HIVE_FOREVER: never */
	struct hive_semaphore answer; /* 1: there is one */
};

static int serve(void *arg)
{
	struct service *s = arg;

	if (s->delay_ns == HIVE_FOREVER)
		return 0;
	int r = hive_sleep(s->delay_ns);
	return r < 0 ? r : hive_semaphore_release(&s->answer, 1);
}

/* A deadline is a point in time: the same one may limit a whole row of waits. */
static int ask(void *arg)
{
	struct service *s = arg;
	int64_t patience = s->delay_ns == HIVE_FOREVER ? HIVE_MS(30) : HIVE_S(30);
	int64_t deadline = hive_deadline(NULL, patience);
	int r = hive_spawn(hive_current(), serve, s, NULL, NULL);

	return r < 0 ? r : hive_semaphore_acquire(&s->answer, 1, deadline);
}

static int root(void *arg)
{
	struct service services[3] = {
		{ .name = "near", .delay_ns = HIVE_MS(1) },
		{ .name = "far", .delay_ns = HIVE_MS(10) },
		{ .name = "nowhere", .delay_ns = HIVE_FOREVER },
	};
	struct hive_fiber *fibers[3];
	size_t n = 0;
	int result, up = 0;

	(void)arg;
	for (size_t i = 0; i < 3; i++)
		hive_semaphore_init(&services[i].answer, 0);
	while (n < 3 && hive_spawn(hive_current(), ask, &services[n], NULL, &fibers[n]) == 0)
		n++;
	hive_wait_all(fibers, n, HIVE_FOREVER); /* join below does not wait any more */
	for (size_t i = 0; i < n; i++) {
		hive_fiber_join(fibers[i], HIVE_FOREVER, &result);
		printf("%-8s %s\n", services[i].name, result < 0 ? hive_error_text(result) : "up");
		up |= (result == 0) << i;
	}
	return up;
}

int main(void)
{
	struct hive *hive;
	int up = 0;

	if (hive_runtime_start(NULL, &hive) < 0 || hive_block_on(hive, root, NULL, HIVE_FOREVER, &up) < 0)
		return 1;
	return hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || up != 3;
}
