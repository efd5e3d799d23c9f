/* SPDX-License-Identifier: MIT */
#include "demo_echo.h"
#include "demo_stage.h"
#include <stdlib.h>
#include <unistd.h>

/* The work on a hive. The main worker draws, on the thread that called hive_run(); a second IO worker serves the echo
 * connections; the compute workers make tiles, whose results come back to the main worker: so nothing here has a lock. */
#define LOOK_AT_HIVE_FRAMES 6 /* the counters on the screen, ten times a second */
#define STOP_PATIENCE_NS HIVE_S(3)

struct tile_job {
	struct demo_run *run;
	struct tile tile;
};

struct echo_link { /* a connection, and what waits for it */
	struct echo_server *server;
	struct echo_peer *peer;
	struct hive_source source;
};

struct echo_server { /* belongs to the echo worker */
	struct demo_run *run;
	int listener;
	struct hive_source source;
	struct echo_peer peers[ECHO_PEERS];
	struct echo_link links[ECHO_PEERS];
	int chores_due;
	_Atomic uint64_t chores_sum; /* touched by whoever runs the chore */
};

struct demo_run {
	struct stage *stage;
	int64_t span_ns;
	struct hive *hive;
	struct hive_timer frame_timer, end_timer;
	struct hive_source keys;
	struct tile_job *jobs;
	size_t job_count;
	struct echo_server server;
	atomic_int failure; /* of any worker; the stage itself is the main worker's */
	struct figures figures;
};

static void give_up(struct demo_run *run, int error)
{
	int none = 0;
	if (error == -ESHUTDOWN)
		return; /* the end has begun already: nothing wrong */
	atomic_compare_exchange_strong(&run->failure, &none, error);
	hive_stop(run->hive, HIVE_NOW, hive_deadline(run->hive, STOP_PATIENCE_NS));
}

/* ---- compute workers: tiles ---- */

static void compute_tile(void *arg)
{
	struct tile_job *job = arg;
	tile_compute(&job->tile);
}

static void take_tile(void *arg);

static int post_tile(struct tile_job *job)
{
	picture_hand_out(&job->run->stage->picture, &job->tile);
	return hive_post_compute_then(job->run->hive, compute_tile, HIVE_WORKER_MAIN, take_tile, job);
}

static void take_tile(void *arg) /* on the main worker */
{
	struct tile_job *job = arg;
	picture_take_in(&job->run->stage->picture, &job->tile);
	int error = post_tile(job);
	if (error)
		give_up(job->run, error);
}

/* ---- echo worker: sockets, and chores that a neighbour may steal ---- */

static void do_chore(void *arg)
{
	struct echo_server *server = arg;
	uint64_t sum = atomic_load_explicit(&server->chores_sum, memory_order_relaxed);
	atomic_store_explicit(&server->chores_sum, echo_chore(sum), memory_order_relaxed);
}

static int post_chores(struct echo_server *server)
{
	int error = 0;
	if (++server->chores_due < ECHO_BURST)
		return 0;
	for (; server->chores_due > 0 && !error; server->chores_due--)
		error = hive_post_local(do_chore, server);
	return error;
}

static void on_peer(struct hive_source *source, uint32_t events)
{
	struct echo_link *link = source->arg;
	uint32_t wanted = HIVE_EVENT_IN;
	int error = 0;
	(void)events; /* errors and hang-ups show when it is read */
	switch (echo_serve(link->peer)) {
	case ECHO_TO_WRITE:
		wanted = HIVE_EVENT_OUT;
		/* fall through */
	case ECHO_TO_READ:
		if (source->events != wanted)
			error = hive_source_modify(source, wanted);
		break;
	case ECHO_CLOSED:
		hive_source_stop(source);
		echo_close(link->peer);
		break;
	}
	if (!error)
		error = post_chores(link->server);
	if (error)
		give_up(link->server->run, error);
}

static void on_connection(struct hive_source *source, uint32_t events)
{
	struct echo_server *server = source->arg;
	struct echo_peer *peer;
	int error = 0;
	(void)events;
	while (!error && (peer = echo_accept(server->listener, server->peers, &error))) {
		struct echo_link *link = &server->links[peer - server->peers];
		*link = (struct echo_link){ .server = server, .peer = peer };
		hive_source_init(&link->source, HIVE_SOURCE_FD, peer->fd, HIVE_EVENT_IN, on_peer, link);
		error = hive_source_start(&link->source);
	}
	if (error)
		give_up(server->run, error);
}

static void start_serving(void *arg)
{
	struct echo_server *server = arg;
	hive_source_init(&server->source, HIVE_SOURCE_FD, server->listener, HIVE_EVENT_IN, on_connection, server);
	int error = hive_source_start(&server->source);
	if (error)
		give_up(server->run, error);
}

static void stop_serving(void *arg)
{
	struct echo_server *server = arg;
	hive_source_stop(&server->source);
	for (size_t i = 0; i < ECHO_PEERS; i++) {
		if (!server->peers[i].open)
			continue;
		hive_source_stop(&server->links[i].source);
		echo_close(&server->peers[i]);
	}
}

/* ---- main worker: frames, keys, the end ---- */

static void look_at_hive(struct demo_run *run)
{
	struct stage *stage = run->stage;
	uint32_t ids[STAGE_WORKERS];
	size_t count = hive_workers(run->hive, ids, STAGE_WORKERS), known = 0;
	hive_stats_read(run->hive, &stage->stats);
	for (size_t i = 0; i < count && i < STAGE_WORKERS; i++)
		known += hive_worker_stats_read(run->hive, ids[i], &stage->workers[known]) == 0;
	stage->worker_count = known;
}

static void end_run(struct demo_run *run)
{
	traffic_end(&run->stage->traffic);
	look_at_hive(run);
	run->figures = stage_figures(run->stage);
	int error = hive_stop(run->hive, HIVE_DRAIN, hive_deadline(run->hive, STOP_PATIENCE_NS));
	if (error && error != -EALREADY)
		give_up(run, error);
}

static void on_frame(struct hive_timer *timer)
{
	struct demo_run *run = timer->arg;
	if (run->stage->frames.drawn % LOOK_AT_HIVE_FRAMES == 0)
		look_at_hive(run);
	stage_frame(run->stage);
	if (run->stage->failure)
		give_up(run, run->stage->failure);
	else if (terminal_interrupted())
		end_run(run);
}

static void on_end(struct hive_timer *timer)
{
	end_run(timer->arg);
}

static void on_keys(struct hive_source *source, uint32_t events)
{
	(void)events;
	if (!terminal_read_keys())
		hive_source_stop(source);
}

static int start_timers(struct demo_run *run)
{
	struct stage *stage = run->stage;
	hive_timer_init(&run->frame_timer, on_frame, run);
	hive_timer_init(&run->end_timer, on_end, run);
	int64_t first_ns = frames_due(&stage->frames) - sync_now();
	int error = hive_timer_start(&run->frame_timer, first_ns, FRAMES_PERIOD_NS);
	return error ? error : hive_timer_start(&run->end_timer, stage->end_ns - sync_now(), 0);
}

static int start_keys(struct demo_run *run)
{
	if (run->stage->output != STAGE_SCREEN || !isatty(STDIN_FILENO))
		return 0;
	hive_source_init(&run->keys, HIVE_SOURCE_FD, STDIN_FILENO, HIVE_EVENT_IN, on_keys, run);
	return hive_source_start(&run->keys);
}

static void start_main(void *arg)
{
	struct demo_run *run = arg;
	stage_begin(run->stage, run->span_ns);
	int error = start_timers(run);
	if (!error)
		error = start_keys(run);
	for (size_t i = 0; i < run->job_count && !error; i++)
		error = post_tile(&run->jobs[i]);
	if (error)
		give_up(run, error);
}

static void stop_main(void *arg)
{
	struct demo_run *run = arg;
	hive_timer_stop(&run->frame_timer);
	hive_timer_stop(&run->end_timer);
	if (run->keys.on_ready)
		hive_source_stop(&run->keys);
}

/* ---- the hive as a whole ---- */

static int attach_workers(struct demo_run *run)
{
	const struct hive_worker_options main_worker = {
		.name = "main", .on_start = start_main, .on_stop = stop_main, .hook_arg = run
	};
	const struct hive_worker_options echo_worker = {
		.name = "echo", .on_start = start_serving, .on_stop = stop_serving, .hook_arg = &run->server
	};
	const struct hive_worker_options compute_worker = { .kind = HIVE_WORKER_COMPUTE };
	int error = hive_attach(run->hive, &main_worker, NULL);
	if (!error)
		error = hive_attach(run->hive, &echo_worker, NULL);
	for (int32_t i = 0; i < hive_cpus() && !error; i++)
		error = hive_attach(run->hive, &compute_worker, NULL);
	return error;
}

static int prepare_jobs(struct demo_run *run)
{
	run->job_count = 2 * (size_t)hive_cpus() + 1; /* so that no compute worker waits while its tile is shown */
	run->jobs = calloc(run->job_count, sizeof *run->jobs);
	for (size_t i = 0; run->jobs && i < run->job_count; i++)
		run->jobs[i].run = run;
	return run->jobs ? 0 : -ENOMEM;
}

static int run_with_traffic(struct demo_run *run, uint16_t port)
{
	struct stage *stage = run->stage;
	int error = traffic_start(&stage->traffic, port);
	if (error)
		return error;
	error = hive_run(run->hive);
	traffic_stop(&stage->traffic);
	run->figures.answer_p50_ns = stats_quantile(&stage->traffic.latency, 0.50);
	run->figures.answer_p99_ns = stats_quantile(&stage->traffic.latency, 0.99);
	return error ? error : atomic_load(&run->failure);
}

static int run_hive(struct demo_run *run, struct hive_report *ret_report)
{
	uint16_t port = 0;
	run->server.run = run;
	run->server.listener = echo_listen(&port);
	if (run->server.listener < 0)
		return run->server.listener;
	int error = hive_create(NULL, &run->hive);
	if (!error)
		error = attach_workers(run);
	if (!error)
		error = run_with_traffic(run, port);
	if (!error)
		error = hive_report_read(run->hive, ret_report);
	int destroyed = run->hive ? hive_destroy(run->hive) : 0;
	close(run->server.listener);
	return error ? error : destroyed;
}

int hive_stage_run(struct stage *stage, int64_t span_ns, struct figures *ret_figures, struct hive_report *ret_report)
{
	struct demo_run *run = calloc(1, sizeof *run);
	if (!run)
		return -ENOMEM;
	run->stage = stage;
	run->span_ns = span_ns;
	int error = prepare_jobs(run);
	if (!error)
		error = run_hive(run, ret_report);
	*ret_figures = run->figures;
	free(run->jobs);
	free(run);
	return error;
}
