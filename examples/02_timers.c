/* SPDX-License-Identifier: MIT */
/* Timers: an embedded periodic timer that stops itself, a delayed post, and its cancel that says which of the two won. */
#include <rophive/hive.h>
#include <stdio.h>

struct app {
	struct hive *hive;
	struct hive_timer beat;
	uint64_t bomb;
	int beats;
};

static void boom(void *arg)
{
	(void)arg;
	puts("boom");
}

static void on_beat(struct hive_timer *timer)
{
	struct app *app = timer->arg;

	printf("beat %d\n", ++app->beats);
	if (app->beats < 5)
		return;
	hive_timer_stop(timer);
	if (hive_post_cancel(app->hive, app->bomb) == 0)
		puts("defused");
	hive_stop(app->hive, HIVE_DRAIN, HIVE_FOREVER);
}

static void begin(void *arg)
{
	struct app *app = arg;

	hive_timer_init(&app->beat, on_beat, app);
	if (hive_timer_start(&app->beat, HIVE_MS(100), HIVE_MS(100)) < 0)
		hive_stop(app->hive, HIVE_NOW, HIVE_FOREVER);
}

int main(void)
{
	struct app app = { 0 };
	struct hive_worker_options worker = { .on_start = begin, .hook_arg = &app };

	if (hive_create(NULL, &app.hive) < 0 || hive_attach(app.hive, &worker, NULL) < 0 ||
	    hive_post_after(app.hive, HIVE_S(2), boom, NULL, &app.bomb) < 0)
		return 1;
	hive_run(app.hive);
	return hive_destroy(app.hive) < 0;
}
