/* SPDX-License-Identifier: MIT */
/* The measuring side of post, spawn_local, post_to, ping, ping_hot and mixed for the peers in C that have a pool: they give a way to hand over a task. */
#pragma once
#include "peer.h"

typedef void task_fn(void *arg);

struct task_target {
	void (*post)(void *pool, task_fn *fn, void *arg);
	void *pool;
};

/* Each does its scenario. `local` is for use inside a task. The bench's exit code. */
int pool_post(const struct bench_params *params, struct record *result, struct task_target target);
int pool_spawn_local(const struct bench_params *params, struct record *result, struct task_target target,
                     struct task_target local);
int pool_post_to(const struct bench_params *params, struct record *result, struct task_target target);
int pool_ping(const struct bench_params *params, struct record *result, struct task_target target);
int pool_ping_hot(const struct bench_params *params, struct record *result, struct task_target target);
int pool_mixed(const struct bench_params *params, struct record *result, struct task_target small,
               struct task_target large);
