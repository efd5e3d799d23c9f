/* SPDX-License-Identifier: MIT */
#pragma once
/* What the operations that a fiber does are about: names, with a resolver of our own that answers at once or hangs as long as the scene lasts; a
 * listener that lets in and one that does not; a child; a signal. Rows that end at once, that fail, and that nothing ends.    */
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "support/shot.h"

static pthread_mutex_t scene_lasts = PTHREAD_MUTEX_INITIALIZER; /* held by who has opened it */
static const int scene_signals[] = { SIGUSR1, SIGUSR2 };

struct scene {
	struct hive_address at[4];
	int listener, crowded, knock; /* in the second one is no room */
	uint16_t port;
	char crowd[64];
	int child, input; /* it lives until we close its input */
	int started;      /* by an operation */
};

/* In place of the system's. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list)
{
	struct addrinfo *info;
	struct sockaddr_in *v4;

	(void)service, (void)hints;
	if (strcmp(name, "nobody.test") == 0)
		return EAI_NONAME;
	if (strcmp(name, "hangs.test") == 0) {
		pthread_mutex_lock(&scene_lasts);
		pthread_mutex_unlock(&scene_lasts);
	}
	info = calloc(1, sizeof *info + sizeof *v4);
	CHECK(info);
	v4 = (struct sockaddr_in *)(void *)(info + 1);
	v4->sin_family = AF_INET;
	v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	info->ai_family = AF_INET;
	info->ai_addr = (struct sockaddr *)(void *)v4;
	info->ai_addrlen = sizeof *v4;
	*ret_list = info;
	return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
	free(list);
}

static inline void scene_start_child(struct scene *s)
{
	int fds[3];
	struct hive_process_options options = { .redirect = { true }, .fds = { 0, HIVE_OFF, 0 }, .ret_fds = fds };

	CHECK_OK(hive_process_start((const char *const[]){ "cat", NULL }, &options, &s->child));
	s->input = fds[0];
}

/* Signals are blocked in the thread that calls. */
static inline void scene_open(struct scene *s)
{
	static atomic_int scenes;
	struct hive_net_options one = { .backlog = 1 };
	struct hive_address address;
	sigset_t set;

	memset(s, 0, sizeof *s);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK_OK(pthread_mutex_lock(&scene_lasts));
	s->listener = hive_listen("127.0.0.1", 0, NULL);
	CHECK(s->listener >= 0);
	CHECK_OK(hive_address_of(s->listener, false, &address));
	s->port = hive_address_port(&address);
	snprintf(s->crowd, sizeof s->crowd, "unix:@rophive-%d-%d", (int)getpid(), atomic_fetch_add(&scenes, 1));
	s->crowded = hive_listen(s->crowd, 0, &one);
	CHECK(s->crowded >= 0);
	CHECK_OK(listen(s->crowded, 0));
	s->knock = hive_dial(s->crowd, 0, NULL, HIVE_FOREVER);
	CHECK(s->knock >= 0);
	scene_start_child(s);
	CHECK_OK(hive_signal_watch(scene_signals, 2));
}

static inline void scene_close(struct scene *s)
{
	int r;

	CHECK_OK(close(s->input));
	r = hive_process_wait(s->child, HIVE_FOREVER);
	CHECK(r == 0 || r == -ESRCH);
	if (s->started > 0)
		CHECK_EQ(hive_process_wait(s->started, HIVE_FOREVER), 7);
	CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
	CHECK_OK(hive_signal_unwatch(scene_signals, 2));
	CHECK_OK(close(s->listener));
	CHECK_OK(close(s->crowded));
	CHECK_OK(close(s->knock));
	CHECK_OK(pthread_mutex_unlock(&scene_lasts));
}

struct row {
	const char *name;
	int (*start)(struct hive_op *op, struct scene *s, int64_t deadline_ns);
	int64_t result;
};

enum { SOME_FD = 1 << 20 }; /* any descriptor; it is closed */

#define START(NAME, ...)                                                                         \
	static __attribute__((unused)) int NAME(struct hive_op *op, struct scene *s, int64_t by) \
	{                                                                                        \
		(void)s;                                                                         \
		return __VA_ARGS__;                                                              \
	}

START(wait_resolve, hive_op_resolve(op, "hangs.test", 80, s->at, 4, by))
START(wait_dial_name, hive_op_dial(op, "hangs.test", s->port, NULL, by))
START(wait_dial, hive_op_dial(op, s->crowd, 0, NULL, by))
START(wait_child, hive_op_process_wait(op, s->child, by))
START(wait_signal, hive_op_signal_wait(op, scene_signals, 2, by))

static const struct row waiting[] = {
	{ "resolve", wait_resolve, 0 },    { "dial a name", wait_dial_name, 0 }, { "dial", wait_dial, 0 },
	{ "process_wait", wait_child, 0 }, { "signal_wait", wait_signal, 0 },
};

enum { WAITS = sizeof waiting / sizeof *waiting };

/* A row is started, from this thread or on a worker. */
struct launch {
	const struct row *row;
	struct scene *scene;
	struct shot *shot;
	int64_t deadline_ns;
	int r;
	uint32_t worker; /* where */
};

static inline void launch(void *arg)
{
	struct launch *l = arg;

	l->worker = hive_worker_current();
	l->r = SHOT_CALL(l->row->start(&l->shot->op, l->scene, l->deadline_ns));
}

static inline uint32_t launch_at(uint32_t worker, const struct row *row, struct scene *s, struct shot *shot,
                                 int64_t deadline_ns)
{
	struct launch l = { row, s, shot, deadline_ns, -1, HIVE_WORKER_NONE };

	shot_at(shot->hive, worker, launch, &l);
	CHECK_OK(l.r);
	return l.worker;
}

/* All that wait, at a worker each time another one; half of them by this thread. */
static inline void launch_all(struct scene *s, struct shot *shots, struct hive *hive, int64_t deadline_ns)
{
	for (int i = 0; i < 2 * WAITS; i++) {
		shot_init(&shots[i], hive);
		if (i < WAITS)
			launch_at(HIVE_WORKER_NONE, &waiting[i], s, &shots[i], deadline_ns);
		else
			CHECK_OK(SHOT_CALL(waiting[i - WAITS].start(&shots[i].op, s, deadline_ns)));
	}
}
