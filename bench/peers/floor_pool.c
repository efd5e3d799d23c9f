/* SPDX-License-Identifier: MIT */
/* The scenarios post, spawn_local, ping, ping_hot and mixed for the pool that everybody writes once: a list with a mutex, a condition, memory from
 * malloc for each task. No library: a floor of what a general one must not fall below. mixed has two of them: T threads for the hogs, one for
 * the tiny tasks. Not comparable: it cannot be bounded, steered or watched, and memory that is missing ends it.                       */
#include "peer_pool.h"
#include <pthread.h>
#include <stdlib.h>

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
	peer_must_not(!task, "memory for a task");
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
		peer_must_not(pthread_create(&pool->threads[i], NULL, work, pool) != 0, "pthread_create");
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

static int with_pool(const struct bench_params *params, struct record *result,
                     int (*scenario)(const struct bench_params *, struct record *, struct task_target))
{
	static struct pool pool;
	pool_open(&pool, params->threads);
	int code = scenario(params, result, (struct task_target){ pool_push, &pool });
	if (!code)
		pool_close(&pool);
	return code;
}

static int post(const struct bench_params *params, struct record *result)
{
	return with_pool(params, result, pool_post);
}

static int spawn_within(const struct bench_params *params, struct record *result, struct task_target target)
{
	return pool_spawn_local(params, result, target, target);
}

static int spawn_local(const struct bench_params *params, struct record *result)
{
	return with_pool(params, result, spawn_within);
}

static int ping(const struct bench_params *params, struct record *result)
{
	return with_pool(params, result, pool_ping);
}

static int ping_hot(const struct bench_params *params, struct record *result)
{
	return with_pool(params, result, pool_ping_hot);
}

static int mixed(const struct bench_params *params, struct record *result)
{
	static struct pool small, large;
	pool_open(&small, 1);
	pool_open(&large, params->threads);
	int code = pool_mixed(params, result, (struct task_target){ pool_push, &small },
	                      (struct task_target){ pool_push, &large });
	if (code)
		return code;
	pool_close(&large);
	pool_close(&small);
	return BENCH_OK;
}

int main(int argc, char **argv)
{
	static const struct peer_scenario scenarios[] = {
		{ "post", 1, 1, 2000000, 0, post }, { "spawn_local", 1, 1, 2000000, 0, spawn_local },
		{ "ping", 1, 1, 5000, 0, ping },    { "ping_hot", 1, 1, 200000, 0, ping_hot },
		{ "mixed", 1, 1, 0, 3, mixed },
	};
	return peer_main("locked_pool", scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
