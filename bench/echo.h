/* SPDX-License-Identifier: MIT */
#pragma once
#include "bench.h"
#include "sync.h"
#include <sys/types.h>

/* TCP echo on the loopback: servers, each in a process of its own, and the load that asks them. A server prints `PORT n`
 * on its output and serves until its input ends, so that those of others can be measured by the same load.            */
enum { ECHO_BUFFER = 4096 }; /* what every server reads at once, at most */

/* ---- serving: echo_serve.c, echo_sources.c, echo_raw.c ---- */

/* A listener on the loopback, non-blocking, its connections without delay; -1: errno. port 0: any. */
int echo_listener(int32_t port);
/* Says where it serves. */
void echo_announce(int listener);
/* When it has to end: the input is at its end if it is a pipe, else after --seconds. Waits, or for who has a wait of his own. */
void echo_await_end(const struct bench_params *params);
/* The bench's exit code. */
int echo_serve_hive(const struct bench_params *params);
int echo_serve_raw(const struct bench_params *params);
/* A task: serves the connection of this descriptor, with a source of this worker. */
void echo_begin_source(void *arg);
void echo_begin_edges(void *arg); /* by edges */

/* ---- server processes: echo_rival.c ---- */

struct rival {
	char name[16]; /* in front of its figures */
	pid_t pid;
	int input;  /* its end is the server's end */
	int output; /* kept open: who speaks at its end is not to be killed for it */
	int32_t port;
};

/* A process that runs `serve`, or `command` if there is one. The bench's exit code. */
int rival_start(struct rival *rival, const char *name, const char *command, int (*serve)(const struct bench_params *),
                const struct bench_params *params);
/* One of --server: NAME=COMMAND. */
int rival_start_foreign(struct rival *rival, const char *server, const struct bench_params *params);
int rival_stop(struct rival *rival);
/* A figure of it: NAME_what. */
void rival_put(const struct rival *rival, struct record *result, const char *what, double value);
int64_t rival_cpu_ns(const struct rival *rival); /* of all its threads so far */
int64_t rival_memory_kb(const struct rival *rival);

/* ---- the load: echo_load.c ---- */

struct load_link;

struct load { /* upon one server */
	int epoll_fd;
	int32_t count, capacity; /* connections; the first ones are busy */
	int64_t bytes;           /* of a request */
	char *request, *reply;
	struct load_link *links;
	uint64_t answers; /* in all */
	struct stats times;
};

int load_open(struct load *load, int32_t capacity, int64_t bytes);
/* Connects so many more; each has had an answer on return. */
int load_connect(struct load *load, int32_t port, int32_t count);
/* Nothing was measured so far. */
void load_reset(struct load *load);
/* The first `busy` ones ask and wait for the answer, again and again, until then; and until all answers are there. */
int load_run(struct load *load, int32_t busy, int64_t until_ns);
void load_close(struct load *load);
