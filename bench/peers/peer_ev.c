/* SPDX-License-Identifier: MIT */
/* Scenarios of `hive bench` for libev: same flags, same output, same checks (peer_loop.h).
 *
 * Comparable: what is done, how often, on how many loops. Letters from other threads wake the loop by ev_async_send(), the one call that they may make.
 * A loop has no locks. Its waits are in milliseconds, rounded up. */
#include "peer.h"
#include <ev.h>

struct loop {
	struct ev_loop *ev;
	ev_async async;
	struct station *station;
};

struct loop_timer {
	ev_timer ev;
	void (*fired)(struct loop_timer *);
};

#include "peer_loop.h"

static void on_async(struct ev_loop *ev, ev_async *async, int events)
{
	(void)ev;
	(void)events;
	station_drain(async->data);
}

static void loop_open(struct loop *loop, bool alone)
{
	(void)alone;
	loop->ev = ev_loop_new(EVFLAG_AUTO);
	peer_must_not(!loop->ev, "ev_loop_new");
	ev_async_init(&loop->async, on_async);
	loop->async.data = loop->station;
	ev_async_start(loop->ev, &loop->async);
}

static void loop_run(struct loop *loop)
{
	ev_run(loop->ev, 0);
}

static void loop_stop(struct loop *loop)
{
	ev_break(loop->ev, EVBREAK_ONE);
}

static void loop_wake(struct loop *loop)
{
	ev_async_send(loop->ev, &loop->async);
}

static void loop_close(struct loop *loop)
{
	ev_async_stop(loop->ev, &loop->async);
	ev_loop_destroy(loop->ev);
}

static void loop_refresh(struct loop *loop)
{
	ev_now_update(loop->ev);
}

static void on_timer(struct ev_loop *ev, ev_timer *timer, int events)
{
	struct loop_timer *mine = (struct loop_timer *)(void *)timer; /* its first member */
	(void)ev;
	(void)events;
	mine->fired(mine);
}

static void loop_timer_init(struct loop *loop, struct loop_timer *timer, void (*fired)(struct loop_timer *))
{
	(void)loop;
	ev_init(&timer->ev, on_timer);
	timer->fired = fired;
}

static int loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_ns)
{
	ev_timer_set(&timer->ev, (double)delay_ns * 1e-9, 0.);
	ev_timer_start(loop->ev, &timer->ev);
	return 0;
}

static int loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
	ev_timer_stop(loop->ev, &timer->ev);
	return 0;
}

static bool loop_timer_armed(const struct loop_timer *timer)
{
	return ev_is_active(&timer->ev);
}

int main(int argc, char **argv)
{
	static const struct peer_scenario scenarios[] = { LOOP_SCENARIOS };
	return peer_main("libev", scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
