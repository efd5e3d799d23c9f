/* SPDX-License-Identifier: MIT */
/* A full-screen terminal program: a UI worker, keys as a source, compute tasks that report by a coalescing post, so that thousands of reports draw
 * the screen once a frame. q quits. Without a terminal it draws into the output, and ends when all is computed. 1: it could not. */
#include <rophive/hive.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { JOBS = 4, STEPS = 500 };

struct job {
	struct app *app;
	atomic_int done; /* of STEPS */
};

struct app {
	struct hive *hive;
	struct job jobs[JOBS];
	atomic_bool quit;
	int left, error;           /* jobs; what begin() met with */
	bool changed, is_terminal; /* this and what follows: of the main worker */
	struct hive_update update;
	struct hive_frames frames;
	struct hive_source keys;
	struct hive_tty saved; /* how the terminal was */
};

static void compute(void *arg) /* a compute worker: it reports each step, and never waits for the screen */
{
	struct job *job = arg;

	for (int step = 1; step <= STEPS && !atomic_load(&job->app->quit); step++) {
		for (volatile int i = 0; i < 20000; i++)
			;
		atomic_store(&job->done, step);
		hive_update_post(&job->app->update);
	}
}

static void end(struct app *app)
{
	atomic_store(&app->quit, true);
	hive_stop(app->hive, HIVE_DRAIN, HIVE_FOREVER);
}

static void on_update(void *arg) /* the main worker: what it shows next has changed */
{
	((struct app *)arg)->changed = true;
}

static void job_is_done(void *arg)
{
	struct app *app = ((struct job *)arg)->app;

	app->changed = true;
	if (--app->left == 0 && !app->is_terminal)
		end(app);
}

static void on_frame(struct hive_frames *frames, const struct hive_frame *frame)
{
	struct app *app = frames->arg;

	if (!app->changed)
		return;
	app->changed = false;
	printf("%s", app->is_terminal ? "\033[H" : "");
	for (int i = 0; i < JOBS; i++)
		printf("job %d %3d %%\r\n", i, atomic_load(&app->jobs[i].done) * 100 / STEPS);
	printf("frame %d, %d us late; q quits \r\n", (int)frame->number, (int)(frame->late_ns / 1000));
	fflush(stdout);
}

static void on_key(struct hive_source *source, uint32_t events)
{
	char key = 'q'; /* also when there is nothing to be read any more */

	if (!(events & HIVE_EVENT_IN) || read((int)source->handle, &key, 1) <= 0 || key == 'q')
		end(source->arg);
}

static void begin(void *arg)
{
	struct app *app = arg;
	int r = 0;

	app->is_terminal = isatty(STDOUT_FILENO) && hive_tty_raw(STDIN_FILENO, &app->saved) == 0;
	if (app->is_terminal) {
		printf("\033[?1049h\033[2J");
		hive_source_init(&app->keys, HIVE_SOURCE_FD, STDIN_FILENO, HIVE_EVENT_IN, on_key, app);
		r = hive_source_start(&app->keys);
	}
	hive_frames_init(&app->frames, on_frame, app);
	r = r < 0 ? r : hive_frames_start(&app->frames, HIVE_S(1) / 60);
	hive_update_init(&app->update, app->hive, HIVE_WORKER_MAIN, on_update, app);
	for (app->left = 0; r == 0 && app->left < JOBS; app->left++) {
		app->jobs[app->left].app = app;
		r = hive_post_compute_then(app->hive, compute, HIVE_WORKER_MAIN, job_is_done, &app->jobs[app->left]);
	}
	if ((app->error = r) < 0)
		end(app);
}

int main(void)
{
	static struct app app;
	struct hive_frame_stats stats;
	struct hive_worker_options ui = { .ui = true, .on_start = begin, .hook_arg = &app };

	if (hive_create(&(struct hive_options){ .io_workers = 1, .compute_workers = 2, .io = &ui }, &app.hive) < 0)
		return 1;
	int r = hive_run(app.hive);
	if (app.is_terminal && hive_tty_restore(STDIN_FILENO, &app.saved) < 0)
		r = -1;
	hive_frames_read(&app.frames, &stats);
	printf("%s%d of %d frames on time\n", app.is_terminal ? "\033[?1049l" : "", (int)stats.on_time,
	       (int)(stats.frames + stats.missed));
	return hive_destroy(app.hive) < 0 || r < 0 || app.error < 0;
}
