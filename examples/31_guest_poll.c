/* SPDX-License-Identifier: MIT */
/* A guest: the program has a loop of its own, here with poll(), and the hive's main worker lives in it. One descriptor and one number; between two
 * steps the worker counts as asleep, so no wake-up is lost.                                                              */
#include <poll.h>
#include <rophive/hive.h>
#include <stdio.h>
#include <unistd.h>

struct app {
	struct hive *hive;
	int ticks;
	unsigned long sum;
};

static void add_up(void *arg) /* a compute worker */
{
	struct app *app = arg;

	for (unsigned long i = 0; i < 10000000; i++)
		app->sum += i % 7;
}

static void show(void *arg) /* back in our loop: nobody else touches the app here */
{
	struct app *app = arg;

	printf("computed beside the loop: %lu\n", app->sum);
	hive_stop(app->hive, HIVE_DRAIN, HIVE_FOREVER);
}

static void tick(void *arg)
{
	struct app *app = arg;
	int r;

	printf("tick %d: a task of the hive, inside your loop\n", ++app->ticks);
	if (app->ticks < 5)
		r = hive_post_self_after(HIVE_MS(50), tick, app, NULL);
	else
		r = hive_post_compute_then(app->hive, add_up, HIVE_WORKER_MAIN, show, app);
	if (r < 0)
		puts("stopping");
}

int main(void)
{
	const struct hive_core_ops *core;
	struct hive_worker_options io = { 0 };
	struct hive_options options = { .io_workers = 1, .compute_workers = 2, .io = &io };
	struct app app = { 0 };
	struct pollfd fds[2] = { { .fd = isatty(STDIN_FILENO) ? STDIN_FILENO : -1, .events = POLLIN },
		                 { .events = POLLIN } };
	int64_t wait_ns = 0;

	if (hive_core_find("epoll", &core) < 0) /* whatever the environment says: one that can be polled */
		return 1;
	io.core = core;
	if (hive_create(&options, &app.hive) < 0 || hive_post_to(app.hive, HIVE_WORKER_MAIN, tick, &app) < 0 ||
	    hive_guest_start(app.hive, &fds[1].fd) < 0)
		return 1;
	do {
		poll(fds, 2, hive_poll_ms(wait_ns));
		if (fds[0].revents) { /* the host's own business: a line on the terminal ends it */
			fds[0].fd = -1;
			hive_stop(app.hive, HIVE_NOW, HIVE_FOREVER);
		}
	} while (hive_guest_step(app.hive, &wait_ns) == 0);
	return hive_destroy(app.hive) < 0;
}
