/* SPDX-License-Identifier: MIT */
/* Scenarios of `hive bench` for libevent: same flags, same output, same checks (peer_loop.h).
 *
 * Comparable: what is done, how often, on how many loops. Letters from other threads wake the loop by event_active() on a user-triggered event,
 * which the manual has for it, with evthread_use_pthreads(). The loops with timers are touched by their own thread alone and so
 * have no locks (EVENT_BASE_FLAG_NOLOCK). EVENT_BASE_FLAG_PRECISE_TIMER: without it the clock is the coarse one of the kernel and waits are rounded up
 * to milliseconds, which costs less CPU and a millisecond or two of lateness.                                               */
#include "peer.h"
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

struct loop {
	struct event_base *base;
	struct event wake;
	struct station *station;
};

struct loop_timer {
	struct event event;
	void (*fired)(struct loop_timer *);
};

#include "peer_loop.h"

static void on_wake(evutil_socket_t none, short what, void *arg)
{
	(void)none;
	(void)what;
	station_drain(((struct loop *)arg)->station);
}

static void loop_open(struct loop *loop, bool alone)
{
	struct event_config *config = event_config_new();
	peer_must_not(!config, "event_config_new");
	int flags = EVENT_BASE_FLAG_PRECISE_TIMER | (alone ? EVENT_BASE_FLAG_NOLOCK : 0);
	peer_must_not(event_config_set_flag(config, flags) != 0, "event_config_set_flag");
	loop->base = event_base_new_with_config(config);
	peer_must_not(!loop->base, "event_base_new_with_config");
	event_config_free(config);
	event_assign(&loop->wake, loop->base, -1, EV_PERSIST, on_wake, loop);
}

static void loop_run(struct loop *loop)
{
	event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
}

static void loop_stop(struct loop *loop)
{
	event_base_loopbreak(loop->base);
}

static void loop_wake(struct loop *loop)
{
	event_active(&loop->wake, EV_READ, 0);
}

static void loop_close(struct loop *loop)
{
	event_base_free(loop->base);
}

static void loop_refresh(struct loop *loop)
{
	event_base_update_cache_time(loop->base);
}

static void on_timer(evutil_socket_t none, short what, void *arg)
{
	struct loop_timer *timer = arg;
	(void)none;
	(void)what;
	timer->fired(timer);
}

static void loop_timer_init(struct loop *loop, struct loop_timer *timer, void (*fired)(struct loop_timer *))
{
	event_assign(&timer->event, loop->base, -1, 0, on_timer, timer);
	timer->fired = fired;
}

static int loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_ns)
{
	int64_t delay_us = (delay_ns + 999) / 1000; /* up: never early */
	struct timeval delay = { .tv_sec = delay_us / 1000000, .tv_usec = delay_us % 1000000 };
	(void)loop;
	return event_add(&timer->event, &delay);
}

static int loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
	(void)loop;
	return event_del(&timer->event);
}

static bool loop_timer_armed(const struct loop_timer *timer)
{
	return timer->event.ev_evcallback.evcb_flags & EVLIST_TIMEOUT;
}

int main(int argc, char **argv)
{
	static const struct peer_scenario scenarios[] = { LOOP_SCENARIOS };
	peer_must_not(evthread_use_pthreads() != 0, "evthread_use_pthreads");
	int code = peer_main("libevent", scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
	libevent_global_shutdown();
	return code;
}
