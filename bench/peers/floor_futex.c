/* SPDX-License-Identifier: MIT */
/* The scenarios ping and ping_hot for two bare handshakes: a thread asleep in futex(), woken for each question; and, with PEER_SPIN, a thread that
 * looks at a word all the time and takes a CPU for it (ping_hot only). No library: floors. Not comparable: there is room for one task and
 * one thread, whatever T is, and nobody else could ask.                                                              */
#include "peer_pool.h"
#include <linux/futex.h>
#include <pthread.h>
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
		sync_pause();
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

static int with_server(const struct bench_params *params, struct record *result,
                       int (*scenario)(const struct bench_params *, struct record *, struct task_target))
{
	static struct desk desk;
	pthread_t thread;
	peer_must_not(pthread_create(&thread, NULL, serve, &desk) != 0, "pthread_create");
	int code = scenario(params, result, (struct task_target){ ask, &desk });
	if (code)
		return code;
	atomic_store(&desk.word, ENDED);
	wake(&desk);
	pthread_join(thread, NULL);
	return BENCH_OK;
}

#if !defined(PEER_SPIN)
static int futex_ping(const struct bench_params *params, struct record *result)
{
	return with_server(params, result, pool_ping);
}
#endif

static int ping_hot(const struct bench_params *params, struct record *result)
{
	return with_server(params, result, pool_ping_hot);
}

int main(int argc, char **argv)
{
	static const struct peer_scenario scenarios[] = {
#if !defined(PEER_SPIN)
		{ "ping", 1, 1, 5000, 0, futex_ping },
#endif
		{ "ping_hot", 1, 1, 200000, 0, ping_hot },
	};
	return peer_main(name, scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
