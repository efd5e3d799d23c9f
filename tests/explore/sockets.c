/* SPDX-License-Identifier: MIT */
/* Programs with fibers at one socket: they sit there, or have an operation under way, while bytes come, deadlines pass, somebody cancels,
 * a worker leaves or the hive stops.                                                                                        */
#include <errno.h>

#include "line.h"
#include "programs.h"

/* Somebody who is in the way of the others, or nobody. */
static int spawn_trouble(int *ret_thread)
{
	switch (explore_draw(5)) {
	case 0:
		*ret_thread = explore_spawn("canceller", crew_canceller, number(3));
		return 1;
	case 1:
		if (ledger.worker_count < 2)
			return 0;
		*ret_thread = explore_spawn("leaver", crew_detach, NULL);
		return 1;
	case 2:
		*ret_thread = explore_spawn("stopper", crew_stop, explore_draw(2) ? &crew : NULL);
		return 1;
	default:
		return 0;
	}
}

static int read_some(void *one)
{
	int self = crew_enter(one);
	int64_t r = 1;

	for (uint32_t n = 1 + explore_draw(5); n > 0 && r != 0; n--) {
		int64_t deadline = crew_deadline();
		size_t bytes = 1 + explore_draw(3);
		char buffer[3];

		line.waiting++;
		r = hive_recv(line.in, buffer, bytes, deadline);
		line.waiting--;
		line_check(self, r, deadline);
		EXPECT(r <= (int64_t)bytes);
		line.got += r > 0 ? r : 0;
	}
	return crew_leave(one);
}

/* Whoever waits for bytes that have come, or for the end, goes on; and no byte is lost by who was late or cancelled. */
void fibers_sit_at_one_socket(void *arg)
{
	int threads[2], n = 0;

	(void)arg;
	if (!line_open((struct range){ 1, 2 }))
		return;
	for (uint32_t i = 2 + explore_draw(2); i > 0; i--)
		crew_hire(read_some, (int)explore_draw(4));
	threads[n++] = explore_spawn("writer", line_writer, number(1 + (intptr_t)explore_draw(6)));
	n += spawn_trouble(&threads[n]);
	crew_join_threads(threads, n);
	if (!crew.stopping) {
		crew_check_still();
		crew_stop(explore_draw(2) ? &crew : NULL);
	}
	crew_close();
	line_close();
}

static int send_some(void *one)
{
	static const char zeros[256];
	int self = crew_enter(one);

	for (uint32_t n = 1 + explore_draw(4); n > 0; n--) {
		int64_t deadline = crew_deadline();
		size_t bytes = 1 + explore_draw(sizeof zeros);
		int64_t r = hive_send(line.out, zeros, bytes, deadline);

		EXPECT(r != 0 && r <= (int64_t)bytes);
		line_check(self, r, deadline);
		line.sent += r > 0 ? r : 0;
	}
	return crew_leave(one);
}

/* The same for those who wait for room. */
void fibers_sit_to_send(void *arg)
{
	int reader, threads[1], n = 0;

	(void)arg;
	if (!line_open((struct range){ 1, 2 }))
		return;
	if (explore_draw(4))
		line_fill();
	for (uint32_t i = 2 + explore_draw(2); i > 0; i--)
		crew_hire(send_some, (int)explore_draw(4));
	reader = explore_spawn("reader", line_reader, NULL);
	n += spawn_trouble(&threads[n]);
	crew_join_threads(threads, n);
	if (!crew.stopping) {
		crew_check_still();
		crew_stop(explore_draw(2) ? &crew : NULL);
	}
	crew_close();
	line_end();
	explore_join(reader);
	line_close();
}
