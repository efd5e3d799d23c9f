/* SPDX-License-Identifier: MIT */
/* A program with buffers that are lent when bytes have come: whoever has to wait for one goes on when one is returned. */
#include <errno.h>
#include <string.h>

#include "line.h"
#include "programs.h"

enum { TAKERS = 2, BUFFERS = 8 };

static struct taker {
	struct hive_op op;
	int64_t deadline;
	bool under_way, asked;
	int cancellers;
} takers[TAKERS];

static struct {
	struct hive_buffers *pool;
	void *lent[BUFFERS];
	int count;
	bool over; /* nobody needs the returner any more */
} desk;

static void give_back(int i)
{
	void *buffer = desk.lent[i];

	desk.lent[i] = desk.lent[--desk.count];
	EXPECT(hive_buffer_return(desk.pool, buffer) == 0);
}

/* A thread of its own. */
static void return_buffers(void *arg)
{
	(void)arg;
	while (!desk.over || desk.count > 0)
		if (desk.count > 0)
			give_back((int)explore_draw((uint32_t)desk.count));
		else
			explore_block(&desk, HIVE_FOREVER);
}

static void on_piece(struct hive_op *op, int64_t result)
{
	struct taker *t = op->arg;

	EXPECT(t->under_way && !crew.joined);
	if (result > 0) {
		line.got += result;
		for (int i = 0; i < desk.count; i++)
			EXPECT(desk.lent[i] != op->buffer);
		EXPECT(desk.count < BUFFERS);
		desk.lent[desk.count++] = op->buffer;
		memset(op->buffer, 1, (size_t)result);
		if (explore_draw(2))
			give_back(desk.count - 1);
		explore_unblock(&desk, 1);
		return;
	}
	EXPECT(result != 0 || line.ended);
	EXPECT(result == 0 || result == -ENOMEM || (result == -ECANCELED && (t->asked || crew.now)) ||
	       (result == -ETIMEDOUT && explore_now() >= t->deadline));
	t->under_way = false;
	line.waiting--;
}

static void take(void *taker)
{
	struct taker *t = taker;
	int r;

	t->deadline = explore_draw(3) ? HIVE_FOREVER : hive_deadline(ledger.hive, 1 + (int64_t)explore_draw(3000));
	t->under_way = true;
	line.waiting++;
	r = hive_op_recv_many(&t->op, line.in, desk.pool, t->deadline);
	EXPECT(r == 0 || r == -ENOMEM || (r == -ESHUTDOWN && crew.stopping));
	if (r == 0)
		return;
	t->under_way = false;
	line.waiting--;
}

static int take_as_fiber(void *one)
{
	int self = crew_enter(one);

	take(&takers[self]);
	return crew_leave(one);
}

static void cancel_one(void *taker)
{
	struct taker *t = taker;
	int r;

	explore_yield();
	if (!t->under_way)
		return;
	t->asked = true;
	r = hive_op_cancel(&t->op);
	EXPECT(r == 0 || r == -ESRCH);
}

static bool open_desk(void)
{
	uint32_t count = 1 + explore_draw(2), bytes = 1 + explore_draw(4);

	memset(takers, 0, sizeof takers);
	memset(&desk, 0, sizeof desk);
	if (!line_open((struct range){ 1, 3 }))
		return false;
	for (int i = 0; i < TAKERS; i++)
		hive_op_init(&takers[i].op, ledger.hive, on_piece, &takers[i]);
	if (hive_buffers_create(ledger.hive, count, bytes, &desk.pool) == 0)
		return true;
	crew_stop(&crew);
	crew_close();
	line_close();
	return false;
}

static void close_desk(int returner)
{
	desk.over = true;
	explore_unblock(&desk, 1);
	explore_join(returner);
	for (int i = 0; i < TAKERS; i++)
		EXPECT(!takers[i].under_way);
	EXPECT(hive_buffers_destroy(desk.pool) == 0);
}

void buffers_come_back(void *arg)
{
	int threads[5], n = 0, returner;

	(void)arg;
	if (!open_desk())
		return;
	returner = explore_spawn("returner", return_buffers, NULL);
	crew_hire(take_as_fiber, (int)explore_draw(2));
	if (explore_draw(2))
		threads[n++] = explore_spawn("taker", take, &takers[1]);
	threads[n++] = explore_spawn("writer", line_writer, number(1 + (intptr_t)explore_draw(6)));
	if (explore_draw(3) == 0)
		threads[n++] = explore_spawn("canceller", cancel_one, &takers[explore_draw(2)]);
	if (explore_draw(3) == 0 && ledger.worker_count > 1)
		threads[n++] = explore_spawn("leaver", crew_detach, NULL);
	if (explore_draw(4) == 0)
		threads[n++] = explore_spawn("stopper", crew_stop, explore_draw(2) ? &crew : NULL);
	crew_join_threads(threads, n);
	if (!crew.stopping) {
		crew_check_still();
		if (explore_draw(2)) {
			close_desk(returner);
			returner = -1;
		}
		crew_stop(explore_draw(2) ? &crew : NULL);
	}
	crew_finish();
	if (returner >= 0)
		close_desk(returner);
	explore_check_always(NULL, NULL);
	EXPECT(hive_destroy(ledger.hive) == 0);
	line_close();
}
