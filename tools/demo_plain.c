/* SPDX-License-Identifier: MIT */
#include "demo_echo.h"
#include "demo_stage.h"
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

/* The same work in the way of a program without a scheduler: one thread, one poll loop, everything in turns. It is not
 * made stupid: sockets are served and frames drawn between any two tiles.                                            */
struct plain_run {
	struct stage *stage;
	int listener;
	struct echo_peer peers[ECHO_PEERS];
	enum echo_need needs[ECHO_PEERS];
	struct tile tile;
	int chores_due;
	uint64_t chores_sum;
};

static size_t list_waits(const struct plain_run *run, struct pollfd *waits, size_t *peer_of)
{
	size_t count = 0;
	waits[count++] = (struct pollfd){ .fd = run->listener, .events = POLLIN };
	for (size_t i = 0; i < ECHO_PEERS; i++) {
		if (!run->peers[i].open)
			continue;
		peer_of[count] = i;
		waits[count++] = (struct pollfd){ .fd = run->peers[i].fd,
			                          .events = run->needs[i] == ECHO_TO_WRITE ? POLLOUT : POLLIN };
	}
	return count;
}

static void serve_peer(struct plain_run *run, size_t index)
{
	run->needs[index] = echo_serve(&run->peers[index]);
	if (run->needs[index] == ECHO_CLOSED)
		echo_close(&run->peers[index]);
	if (++run->chores_due < ECHO_BURST)
		return;
	for (; run->chores_due > 0; run->chores_due--)
		run->chores_sum = echo_chore(run->chores_sum);
}

static void accept_peers(struct plain_run *run)
{
	int error = 0;
	struct echo_peer *peer;
	while ((peer = echo_accept(run->listener, run->peers, &error)))
		run->needs[peer - run->peers] = ECHO_TO_READ;
	if (error)
		stage_fail(run->stage, error);
}

static void serve_sockets(struct plain_run *run)
{
	struct pollfd waits[ECHO_PEERS + 1];
	size_t peer_of[ECHO_PEERS + 1] = { 0 };
	size_t count = list_waits(run, waits, peer_of);
	if (poll(waits, count, 0) <= 0)
		return;
	for (size_t i = 1; i < count; i++)
		if (waits[i].revents)
			serve_peer(run, peer_of[i]);
	if (waits[0].revents)
		accept_peers(run);
}

static void loop(struct plain_run *run)
{
	struct stage *stage = run->stage;
	while (!stage_over(stage)) {
		serve_sockets(run);
		if (sync_now() >= frames_due(&stage->frames)) {
			terminal_read_keys();
			stage_frame(stage);
		}
		picture_hand_out(&stage->picture, &run->tile);
		tile_compute(&run->tile);
		picture_take_in(&stage->picture, &run->tile);
	}
}

int plain_stage_run(struct stage *stage, int64_t span_ns, struct figures *ret_figures)
{
	uint16_t port = 0;
	struct plain_run *run = calloc(1, sizeof *run);
	if (!run)
		return -ENOMEM;
	run->stage = stage;
	run->listener = echo_listen(&port);
	int error = run->listener < 0 ? run->listener : traffic_start(&stage->traffic, port);
	if (!error) {
		stage_begin(stage, span_ns);
		loop(run);
		traffic_end(&stage->traffic);
		*ret_figures = stage_figures(stage);
		traffic_stop(&stage->traffic);
		ret_figures->answer_p50_ns = stats_quantile(&stage->traffic.latency, 0.50);
		ret_figures->answer_p99_ns = stats_quantile(&stage->traffic.latency, 0.99);
	}
	for (size_t i = 0; i < ECHO_PEERS; i++)
		echo_close(&run->peers[i]);
	if (run->listener >= 0)
		close(run->listener);
	free(run);
	return error ? error : stage->failure;
}
