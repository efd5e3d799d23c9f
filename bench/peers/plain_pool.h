/* SPDX-License-Identifier: MIT */
/* The measuring side of post, spawn_local, post_to, ping, ping_hot and mixed for the peers in C: they give a way to hand over a task. */
#pragma once
#include "plain.h"

typedef void task_fn(void *arg);

struct task_target {
	void (*post)(void *pool, task_fn *fn, void *arg);
	void *pool;
};

/* The one-increment task counts here; for peers that have tasks of their own as well. */
void tally_add(void);
uint64_t tally_total(void);
void tally_wait(uint64_t target, int64_t step_ns);

/* Each does its scenario and prints the line. `local` is for use inside a task. */
void pool_post(const char *peer, struct plain_options o, struct task_target target);
void pool_spawn_local(const char *peer, struct plain_options o, struct task_target target, struct task_target local);
void pool_post_to(const char *peer, struct plain_options o, struct task_target target);
void pool_ping(const char *peer, struct plain_options o, struct task_target target);
void pool_mixed(const char *peer, struct plain_options o, struct task_target small, struct task_target large);
