/* SPDX-License-Identifier: MIT */
/* The scenarios post, spawn_local, ping, ping_hot and mixed for the pool that everybody writes once: a list with a mutex, a condition, memory from
 * malloc for each task. No library: a floor of what a general one must not fall below. mixed has two of them: T threads for the hogs, one for
 * the tiny tasks. Not comparable: it cannot be bounded, steered or watched, and memory that is missing ends it.                       */
#include "plain_pool.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const name = "locked_pool";

struct task {
	struct task *next;
	task_fn *fn;
	void *arg;
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct task *first, **last;
	bool closed;
	pthread_t threads[256];
	int count;
};

static void pool_push(void *arg, task_fn *fn, void *task_arg)
{
	struct pool *pool = arg;
	struct task *task = malloc(sizeof *task);
	if (!task)
		plain_failed("memory");
	*task = (struct task){ NULL, fn, task_arg };
	pthread_mutex_lock(&pool->lock);
	*pool->last = task;
	pool->last = &task->next;
	pthread_cond_signal(
		&pool->some); /* with the lock: without it, post falls to a tenth in every third run or so */
	pthread_mutex_unlock(&pool->lock);
}

/* NULL: closed and empty. */
static struct task *pool_take(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	while (!pool->first && !pool->closed)
		pthread_cond_wait(&pool->some, &pool->lock);
	struct task *task = pool->first;
	if (task && !(pool->first = task->next))
		pool->last = &pool->first;
	pthread_mutex_unlock(&pool->lock);
	return task;
}

static void *work(void *arg)
{
	struct task *task;
	while ((task = pool_take(arg))) {
		task->fn(task->arg);
		free(task);
	}
	return NULL;
}

static void pool_open(struct pool *pool, int threads)
{
	*pool = (struct pool){ .last = &pool->first, .count = threads };
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->some, NULL);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&pool->threads[i], NULL, work, pool) != 0)
			plain_failed("thread for the pool");
}

static void pool_close(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->closed = true;
	pthread_mutex_unlock(&pool->lock);
	pthread_cond_broadcast(&pool->some);
	for (int i = 0; i < pool->count; i++)
		pthread_join(pool->threads[i], NULL);
}

static void mixed(struct plain_options o)
{
	static struct pool small, large;
	pool_open(&small, 1);
	pool_open(&large, o.threads);
	pool_mixed(name, o, (struct task_target){ pool_push, &small }, (struct task_target){ pool_push, &large });
	pool_close(&large);
	pool_close(&small);
}

int main(int argc, char **argv)
{
	static struct pool pool;
	struct plain_options o = plain_parse(argc, argv);
	struct task_target target = { pool_push, &pool };
	int code = 0;
	if (strcmp(o.scenario, "mixed") == 0)
		return mixed(o), 0;
	pool_open(&pool, o.threads);
	if (strcmp(o.scenario, "post") == 0)
		pool_post(name, o, target);
	else if (strcmp(o.scenario, "spawn_local") == 0)
		pool_spawn_local(name, o, target, target);
	else if (strcmp(o.scenario, "ping") == 0 || strcmp(o.scenario, "ping_hot") == 0)
		pool_ping(name, o, target);
	else
		code = PLAIN_UNKNOWN;
	pool_close(&pool);
	return code;
}
