/* SPDX-License-Identifier: MIT */
/* The scenarios ping and ping_hot for two bare handshakes: a thread asleep in futex(), woken for each question; and, with PEER_SPIN, a thread that
 * looks at a word all the time and takes a CPU for it (ping_hot only). No library: floors. Not comparable: there is room for one task and
 * one thread, whatever T is, and nobody else could ask.                                                              */
#define _GNU_SOURCE
#include "plain_pool.h"
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOTHING, ASKED, ENDED };

struct desk {
	_Alignas(64) _Atomic uint32_t word;
	task_fn *fn;
	void *arg;
};

#if defined(PEER_SPIN)
static const char *const name = "spin";

static void wait_for_word(struct desk *desk)
{
	while (atomic_load_explicit(&desk->word, memory_order_acquire) == NOTHING)
		plain_pause();
}

static void wake(struct desk *desk)
{
	(void)desk;
}
#else
static const char *const name = "futex";

static void wait_for_word(struct desk *desk)
{
	while (atomic_load_explicit(&desk->word, memory_order_acquire) == NOTHING)
		syscall(SYS_futex, &desk->word, FUTEX_WAIT_PRIVATE, NOTHING, NULL, NULL, 0);
}

static void wake(struct desk *desk)
{
	syscall(SYS_futex, &desk->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
#endif

/* The desk is free: who serves takes its word back before it answers. */
static void ask(void *arg, task_fn *fn, void *task_arg)
{
	struct desk *desk = arg;
	desk->fn = fn;
	desk->arg = task_arg;
	atomic_store_explicit(&desk->word, ASKED, memory_order_release);
	wake(desk);
}

static void *serve(void *arg)
{
	struct desk *desk = arg;
	for (;;) {
		wait_for_word(desk);
		if (atomic_load(&desk->word) == ENDED)
			return NULL;
		task_fn *fn = desk->fn;
		void *task_arg = desk->arg;
		atomic_store(&desk->word, NOTHING); /* before the answer, which lets the next one ask */
		fn(task_arg);
	}
}

int main(int argc, char **argv)
{
	static struct desk desk;
	struct plain_options o = plain_parse(argc, argv);
	pthread_t thread;
#if defined(PEER_SPIN)
	if (strcmp(o.scenario, "ping_hot") != 0)
#else
	if (strcmp(o.scenario, "ping") != 0 && strcmp(o.scenario, "ping_hot") != 0)
#endif
		return PLAIN_UNKNOWN;
	if (pthread_create(&thread, NULL, serve, &desk) != 0)
		plain_failed("thread");
	pool_ping(name, o, (struct task_target){ ask, &desk });
	atomic_store(&desk.word, ENDED);
	wake(&desk);
	pthread_join(thread, NULL);
	return 0;
}
