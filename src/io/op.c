/* SPDX-License-Identifier: MIT */
/* The life of an operation: where it begins, how it gets to a desk, who ends it, and who is told. */
#include <rophive/core.h>
#include <rophive/hive.h>

#include "base/check.h"
#include "base/thread.h"
#include "io/buffers.h"
#include "io/number.h"
#include "io/op.h"
#include "sched/state.h"

enum { TOLD_IN_A_ROW = 4 }; /* results behind one event, before others have their turn */

static int64_t final_result(int64_t result, uint32_t state)
{
	return result == -ECANCELED && (state & OP_LATE) ? -ETIMEDOUT : result;
}

/* Nobody else knows it any more. What on_done does with its memory is its own business. */
static void deliver(struct hive_op *op, int64_t result, uint32_t state)
{
	struct hive *hive = op->hive;

	if (op->code == HIVE_OP_RECV_MANY)
		hive__buffers_unuse((struct hive_buffers *)op->extra);
	else if (op_is_served(op))
		hive__served_release(op);
	op->result = final_result(result, state);
	if (op->cancel)
		op->result = hive__op_part(op, op->result);
	op_state_done(&op->state);
	if (op->on_done)
		op->on_done(op, op->result);
	else
		once_finish(op_once(op));
	hive__unhold(hive);
}

/* Whoever rings it on another thread right now touches the op for the last time when he says so. */
static void stop_alarm(struct hive_op *op)
{
	if (op->alarm != 0 && !hive__alarm_stop(op->hive, op->alarm))
		for (uint32_t tries = 0; !load_acquire(&op->alarm_rung); tries++) /* OP-8 (pairs with OP-9) */
			hive__thread_give_way(tries);
	op->alarm = 0;
}

/* True: the caller tells. False: the letter that is on its way does. */
static bool end(struct hive_op *op, int64_t result, uint32_t *ret_state)
{
	op->at_once = op->begins;
	desk_unlink(op);
	stop_alarm(op);
	op->result = result;
	return op_state_end(&op->state, ret_state);
}

void hive__op_finish(struct hive_op *op, int64_t result)
{
	uint32_t state;

	if (end(op, result, &state))
		deliver(op, result, state);
}

/* On an IO worker, or wherever it was dropped: it was MOVING, and its result is there. */
static void finish_moving(struct hive_op *op, int64_t result)
{
	stop_alarm(op);
	deliver(op, result, op_state_of_moving(&op->state));
}

/* From here on its desk does not know it any more. False: its end was asked for; it stays. */
static bool begin_move(struct hive_op *op)
{
	if (!op_state_leave(&op->state))
		return false;
	desk_unlink(op);
	return true;
}

static void land(struct hive_op *op, struct desk *desk);

static void come_back(struct guest *guest)
{
	struct hive_op *op = op_of_way(guest);
	struct guest_place *place = op->again ? hive__place() : NULL;
	int64_t result = op->again ? -ECANCELED : op->result;

	if (op->code == HIVE_OP_OPEN && result >= 0)
		hive__number_begins((int)result);
	op->again = false;
	op_returns(op);
	if (place)
		land(op, hive__desk(place));
	else
		finish_moving(op, result);
}

/* What a callback has begun, and was done at once, is told while all of it is in the cache; unless somebody was there before: then other
 * events would wait for those who never wait.                                                                              */
void hive__op_finish_in_turn(struct hive_op *op, int64_t result)
{
	struct guest_place *place = ((struct desk *)load_relaxed(&op->owner))->place;
	bool alone = hive__guest_is_caught_up(place);
	struct guest *next;

	place->gentle = !op->on_done;
	hive__op_finish(op, result);
	place->gentle = false;
	for (int n = 0; alone && n < TOLD_IN_A_ROW && (next = hive__guest_take(place, come_back)) != NULL; n++)
		come_back(next);
}

static void send(struct hive_op *op, guest_fn *run, guest_fn *drop)
{
	op_way(op)->run = run;
	op_way(op)->drop = drop;
}

/* A letter that was on its way may come meanwhile, to another worker if this one leaves. Then it is told as if there had been none. */
void hive__op_finish_soon(struct hive_op *op, int64_t result)
{
	uint32_t state;

	if (!op->on_done) {
		hive__op_finish(op, result);
		return;
	}
	if (op_state_pass(&op->state)) {
		desk_unlink(op);
		op->result = result;
	} else if (!end(op, result, &state)) {
		return;
	}
	send(op, come_back, come_back);
	hive__guest_ready_at(op->hive, op_way(op), load_relaxed(&op->worker));
}

/* The fiber that ends holds the hive still, but not until this is told. */
void hive__op_finish_served(struct hive_op *op, int64_t result)
{
	uint32_t state;

	hive__hold(op->hive);
	op->result = result;
	if (!op_state_end(&op->state, &state))
		return;
	if (!op->on_done || (state & OP_MOVING)) { /* it was dropped before it began */
		deliver(op, result, state);
		return;
	}
	send(op, come_back, come_back);
	hive__guest_ready_at(op->hive, op_way(op), load_relaxed(&op->worker));
}

void hive__op_tell(struct hive_op *op, int64_t result)
{
	op->result = result;
	op->on_done(op, result);
}

/* ---- on a compute worker ---- */

static void run_blocking(struct guest *guest)
{
	struct hive_op *op = op_of_way(guest);

	if (load_relaxed(&op->state) & OP_ASKED)
		op->result = -ECANCELED;
	else
		op->result = hive__op_block(op);
	op->again = op->result == -EAGAIN && !op_blocks(op);
	send(op, come_back, come_back);
	hive__guest_ready_at(op->hive, op_way(op), load_relaxed(&op->worker));
}

static void drop_blocking(struct guest *guest)
{
	struct hive_op *op = op_of_way(guest);

	op_returns(op);
	finish_moving(op, -ECANCELED);
}

void hive__op_to_compute(struct hive_op *op)
{
	int r;

	if (!begin_move(op)) {
		hive__op_finish_soon(op, -ECANCELED);
		return;
	}
	op_lends(op);
	send(op, run_blocking, drop_blocking);
	r = hive__guest_compute(op->hive, op_way(op));
	if (r == 0)
		return;
	op->result = r;
	send(op, come_back, come_back);
	hive__guest_ready_at(op->hive, op_way(op), load_relaxed(&op->worker));
}

/* ---- asking for its end ---- */

/* The core is asked once. */
void hive__op_end_here(struct hive_op *op)
{
	struct desk *desk = (struct desk *)load_relaxed(&op->owner);
	struct hive_core *core = hive__place_core(desk->place);

	if (!op->native) {
		hive__seat_leave(desk, op);
		hive__op_finish_soon(op, -ECANCELED);
	} else if (!op->told) {
		op->told = true;
		core->ops->cancel(core, op);
	}
}

static void arrive_wish(struct guest *guest)
{
	struct hive_op *op = op_of_way(guest);
	bool served = op_is_served(op);
	bool here = !served && hive__place()->cache[GUESTS_IO] == load_relaxed(&op->owner);
	uint32_t state;

	if (served)
		hive__served_cancel(op); /* now: after this it may be gone */
	state = op_state_arrive(&op->state);
	if (state & OP_OVER)
		deliver(op, op->result, state);
	else if (here)
		hive__op_end_here(op);
}

/* Any thread, while it is lent. 0: its end is on its way. */
static int ask(struct hive_op *op, uint32_t why)
{
	struct guest_place *place = hive__place();
	void *here = place ? place->cache[GUESTS_IO] : NULL;

	switch (op_state_ask(&op->state, &op->owner, here, why)) {
	case OP_ASKED_NOBODY:
		return -ESRCH;
	case OP_ASKED_BEFORE:
		break;
	case OP_ASKED_HERE:
		hive__op_end_here(op);
		break;
	case OP_ASKED_BY_MAIL:
		send(op, arrive_wish, NULL);
		hive__guest_ready_at(op->hive, op_way(op), load_relaxed(&op->worker));
		break;
	}
	return 0;
}

int hive_op_cancel(struct hive_op *op)
{
	return op_is_valid(op) ? ask(op, 0) : -EINVAL;
}

/* On the worker that keeps the alarm; before its time when nothing may wait any more. */
static void ring(void *arg)
{
	struct hive_op *op = (struct hive_op *)arg;
	struct guest_place *place = hive__place();
	uint32_t why = load_relaxed(hive__guest_state(op->hive)) >= HIVE_LEAVING ? 0 : OP_LATE;

	if (!(load_acquire(&op->state) & OP_MOVING) && /* OP-4 (pairs with OP-3) */
	    place->cache[GUESTS_IO] == load_relaxed(&op->owner)) {
		op->alarm = 0;
		ask(op, why);
		return;
	}
	ask(op, why);
	store_release(&op->alarm_rung, 1u); /* OP-9 (pairs with OP-8) */
}

/* ---- beginning ---- */

void hive__op_work(struct hive_op *op, struct desk *desk)
{
	struct hive_core *core = hive__place_core(desk->place);
	int64_t r;

	if (op->code == HIVE_OP_CLOSE)
		hive__number_begins(op->fd); /* as soon as it is free it may be another's */
	if (op->deadline_ns == HIVE_NOWAIT) {
		r = hive__op_try(op);
		hive__op_finish_soon(op, r == -EAGAIN ? -ETIMEDOUT : r);
		return;
	}
	if (hive__op_is_long(op) && hive__guest_has_compute(op->hive)) {
		hive__op_to_compute(op);
		return;
	}
	r = op->code == HIVE_OP_RECV_MANY ? hive__share_begin(desk, op) : 0;
	if (r < 0) {
		hive__op_finish_soon(op, r);
		return;
	}
	r = -ENOTSUP;
	if (core->ops->submit && (core->ops->native_ops >> op->code & 1)) {
		op->native = true;
		op_lends(op);
		r = core->ops->submit(core, op);
		if (r == 0)
			return;
		op_returns(op);
		op->native = false;
	}
	if (r != -ENOTSUP)
		hive__op_finish_soon(op, r);
	else if (op_blocks(op))
		hive__op_to_compute(op);
	else
		hive__seat_start(desk, op);
}

static int set_alarm(struct hive_op *op)
{
	if (op->alarm != 0 || op->deadline_ns == HIVE_FOREVER || op->deadline_ns == HIVE_NOWAIT)
		return 0;
	store_relaxed(&op->alarm_rung, 0u);
	return hive__alarm_start(op->deadline_ns, ring, op, &op->alarm);
}

static void land_from_afar(struct guest *guest)
{
	struct guest_place *place = hive__place();

	land(op_of_way(guest), hive__desk(place));
}

static void drop_on_the_way(struct guest *guest)
{
	finish_moving(op_of_way(guest), -ECANCELED);
}

/* It is MOVING. */
static void go_on_elsewhere(struct hive_op *op)
{
	send(op, land_from_afar, drop_on_the_way);
	hive__guest_move(op->hive, op_way(op));
}

void hive__op_move_on(struct hive_op *op)
{
	if (begin_move(op))
		go_on_elsewhere(op);
	else
		hive__op_finish_soon(op, -ECANCELED);
}

/* It was MOVING, and is at this desk now. */
static void land(struct hive_op *op, struct desk *desk)
{
	uint32_t state;
	int r;

	if (!desk) {
		finish_moving(op, -ENOMEM);
		return;
	}
	if (desk->left) {
		go_on_elsewhere(op);
		return;
	}
	desk_link(desk, op);
	op->leaves = op->told = false;
	state = op_state_land(&op->state);
	if ((state & OP_ASKED) || load_relaxed(hive__guest_state(op->hive)) >= HIVE_LEAVING) {
		hive__op_finish_soon(op, -ECANCELED);
		return;
	}
	r = set_alarm(op);
	if (r < 0)
		hive__op_finish_soon(op, r);
	else
		hive__op_work(op, desk);
}

/* As most sends are. Then it never comes to a desk: it is MOVING until it is told. */
static bool is_done_at_once(struct hive_op *op, struct desk *desk)
{
	const uint32_t quick = 1u << HIVE_OP_RECV | 1u << HIVE_OP_SEND | 1u << HIVE_OP_RECVMSG | 1u << HIVE_OP_SENDMSG;

	if (!op->on_done || !desk->by_seats || desk->left || !(quick >> op->code & 1) ||
	    !hive__seat_try(desk, op, &op->result))
		return false;
	send(op, come_back, come_back);
	hive__guest_ready_here(desk->place, op_way(op));
	return true;
}

static int begin_here(struct hive_op *op, struct guest_place *place)
{
	bool collected = !op->on_done; /* else it may be gone when it has landed */
	struct desk *desk;

	if (load_relaxed(hive__guest_state(op->hive)) >= HIVE_LEAVING)
		return -ESHUTDOWN;
	if (op_is_served(op))
		return hive__served_begin(op, hive__place_worker(place));
	desk = hive__desk(place);
	if (!desk)
		return -ENOMEM;
	hive__hold(op->hive);
	if (is_done_at_once(op, desk))
		return 0;
	op->begins = true;
	land(op, desk);
	if (collected)
		op->begins = false;
	return 0;
}

static int begin_elsewhere(struct hive_op *op)
{
	int r = hive__guest_door(op->hive);

	if (r < 0)
		return r;
	if (op_is_served(op))
		return hive__served_begin(op, HIVE_WORKER_NONE);
	send(op, land_from_afar, drop_on_the_way);
	return hive__guest_launch(op->hive, op_way(op), HIVE_WORKER_NONE);
}

/* Who waits for it all the same is told why. */
static void refuse(struct hive_op *op, int r)
{
	op->result = r;
	op_state_done(&op->state);
	if (!op->on_done)
		once_finish(op_once(op));
}

int hive__op_begin(struct hive_op *op, int64_t deadline_ns)
{
	struct guest_place *place = hive__place();
	int r;

	if (!op->hive || (op->repeat && (!op->on_done || deadline_ns <= HIVE_NOWAIT)))
		return -EINVAL;
	if (!op_state_begin(&op->state))
		return -EBUSY;
	op->deadline_ns = deadline_ns < 0 ? HIVE_NOWAIT : deadline_ns;
	op->alarm = 0;
	op->step = 0;
	op->native = op->waits = op->again = op->at_once = op->begins = op->hungry = false;
	if (!op->on_done)
		once_init(op_once(op));
	r = op->cancel ? hive__op_enter(op) : 0;
	if (r == 0) {
		r = place && place->hive == op->hive ? begin_here(op, place) : begin_elsewhere(op);
		if (r < 0 && op->cancel)
			hive__op_part(op, r);
	}
	if (r < 0)
		refuse(op, r);
	return r;
}

void hive_op_init(struct hive_op *op, struct hive *hive, hive_op_fn *on_done, void *arg)
{
	if (!op)
		return;
	/* All that is read before a starter writes it. Most of an op is room, and each call of a fiber makes one. */
	op->arg = arg;
	op->result = 0;
	op->code = 0;
	op->step = 0;
	store_relaxed(&op->state, 0u);
	op->magic = OP_MAGIC;
	op->cancel = NULL;
	op->on_done = on_done;
	op->hive = hive;
}
