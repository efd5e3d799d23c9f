/* SPDX-License-Identifier: MIT */
/* Fork and join: groups on the stack; a waiting task runs others, and a fork that cannot be queued runs in place, so there is no error to
 * forget. The recursion is the slowest way to this number on purpose: seven million calls, half of which are forks.          */
#include <rophive/hive.h>
#include <stdio.h>

struct call {
	struct hive *hive;
	int n;
	long result;
};

/* A compute worker. */
static void fib(void *arg)
{
	struct call *c = arg, left = { c->hive, c->n - 1, 0 }, right = { c->hive, c->n - 2, 0 };
	struct hive_group group;

	if (c->n < 2) {
		c->result = c->n;
		return;
	}
	hive_group_init(&group, c->hive, HIVE_COMPUTE);
	hive_group_run(&group, fib, &left);
	fib(&right);
	hive_group_wait(&group, HIVE_FOREVER); /* runs `left` here, unless somebody took it */
	c->result = left.result + right.result;
}

int main(void)
{
	struct call root = { NULL, 32, 0 };
	struct hive_group group;

	if (hive_runtime_start(NULL, &root.hive) < 0)
		return 1;
	hive_group_init(&group, root.hive, HIVE_COMPUTE);
	hive_group_run(&group, fib, &root);
	hive_group_wait(&group, HIVE_FOREVER); /* a thread of the program: it sleeps */
	printf("fib(%d) = %ld\n", root.n, root.result);
	return hive_runtime_stop(root.hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || root.result != 2178309;
}
