/* SPDX-License-Identifier: MIT */
/* A program with cancel tokens: fibers, tasks, watches, operations and children come under them while they fire, by hand, by a deadline or
 * by a parent, and while the hive may stop. Each ends once; nobody comes to a token that was joined, nor to a watch that was stopped.   */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "crew.h"
#include "programs.h"

enum { TOKENS = 3, WATCHES = 8, OPS = 4, PATTERN = 0xa5 };

static struct {
	struct hive_cancel tokens[TOKENS]; /* the first is above the others */
	struct watch {
		struct hive_cancel_watch watch;
		bool started, stops_itself;
		int called, stopped;
	} watches[WATCHES];
	struct work {
		struct hive_op op;
		int fds[2];
		char byte;
		int told;
		bool begun;
	} works[OPS];
	int watch_count, op_count;
	int reason; /* of whom somebody fires by hand */
} scene;

static bool is_reason(int r)
{
	return r == scene.reason || r == -ETIMEDOUT;
}

static struct hive_cancel *any_token(void)
{
	return &scene.tokens[explore_draw(TOKENS)];
}

/* ---- what comes under them ---- */

/* Until its waits are cancelled: somebody will fire. */
static int wait_on(void *one)
{
	int r = 0;

	crew_enter(one);
	while (r == 0 || (r == -ENOMEM && !hive_cancelled()))
		r = hive_sleep(explore_draw(3) ? HIVE_FOREVER : (int64_t)explore_draw(2000));
	EXPECT(is_reason(r) || (r == -ECANCELED && crew.now));
	EXPECT(hive_cancel_check(NULL) == r || crew.now);
	if (explore_draw(2))
		EXPECT(hive_spawn(hive_current(), wait_on, NULL, NULL, NULL) < 0); /* refused at the door */
	return crew_leave(one);
}

static void spawn_one(struct hive_cancel *cancel)
{
	struct hive_fiber_options options = { .cancel = cancel };
	struct one *one;
	int r;

	if (crew.used == CREW)
		return;
	one = &crew.ones[crew.used++];
	r = hive_spawn(ledger.hive, wait_on, one, &options, &one->handle);
	EXPECT(r == 0 || r == -ENOMEM || is_reason(r) || (r == -ESHUTDOWN && crew.stopping));
	one->accepted = r == 0;
}

static void run(void *arg)
{
	struct entry *e = arg;

	EXPECT(!e->ended && !crew.joined);
	e->ended = true;
	e->fate = RAN;
	EXPECT(hive_cancel_check(NULL) == 0 || is_reason(hive_cancel_check(NULL)));
}

static void post_one(struct hive_cancel *cancel)
{
	struct entry *e = &ledger.entries[ledger.used++];
	uint32_t how = explore_draw(4);
	int r;

	e->ledger = &ledger;
	e->fate = GIVEN;
	if (how == 0 && ledger.compute_workers > 0)
		r = hive_post_under(ledger.hive, cancel, HIVE_COMPUTE, run, e);
	else if (how < 2)
		r = hive_post_under(ledger.hive, cancel, HIVE_MICRO, run, e);
	else
		r = hive_post_after_under(ledger.hive, cancel, how == 2 ? HIVE_FOREVER : (int64_t)explore_draw(2000),
		                          run, e);
	EXPECT(r == 0 || r == -ENOMEM || is_reason(r) || (r == -ESHUTDOWN && crew.stopping));
	if (r < 0) {
		EXPECT(!e->ended);
		e->fate = REFUSED;
	}
}

static void on_fired(struct hive_cancel_watch *watch, int reason)
{
	struct watch *w = watch->arg;

	EXPECT(w->stopped == 0 && w->called == 0 && is_reason(reason));
	w->called++;
	if (!w->stops_itself)
		return;
	EXPECT(hive_cancel_watch_stop(watch) == 0);
	memset(watch, PATTERN, sizeof *watch);
}

static void watch_one(struct hive_cancel *cancel)
{
	struct watch *w;
	int r;

	if (scene.watch_count == WATCHES)
		return;
	w = &scene.watches[scene.watch_count++];
	w->stops_itself = explore_draw(2);
	hive_cancel_watch_init(&w->watch, on_fired, w);
	r = hive_cancel_watch_start(cancel, &w->watch);
	EXPECT(r == 0 || r == -ENOMEM || is_reason(r));
	w->started = r == 0;
	if (!w->started || w->stops_itself || explore_draw(2))
		return;
	r = hive_cancel_watch_stop(&w->watch);
	EXPECT((r == 1) != (w->called == 1));
	w->stopped = r == 1;
	memset(&w->watch, PATTERN, sizeof w->watch);
}

static void on_done(struct hive_op *op, int64_t result)
{
	struct work *w = op->arg;

	EXPECT(is_reason((int)result) || result == -ENOMEM || (result == -ECANCELED && crew.now));
	w->told++;
	memset(op, PATTERN, sizeof *op);
}

static void begin_one(struct hive_cancel *cancel)
{
	struct work *w;
	int r;

	if (scene.op_count == OPS)
		return;
	w = &scene.works[scene.op_count++];
	explore_wire(false, w->fds);
	hive_op_init(&w->op, ledger.hive, on_done, w);
	EXPECT(hive_op_under(&w->op, cancel) == 0);
	r = hive_op_recv(&w->op, w->fds[0], &w->byte, 1, HIVE_FOREVER);
	EXPECT(r == 0 || r == -ENOMEM || is_reason(r) || (r == -ESHUTDOWN && crew.stopping));
	w->begun = r == 0;
}

/* Thread. */
static void come(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--) {
		struct hive_cancel *cancel = any_token();

		switch (explore_draw(4)) {
		case 0:
			spawn_one(cancel);
			break;
		case 1:
			post_one(cancel);
			break;
		case 2:
			watch_one(cancel);
			break;
		default:
			begin_one(cancel);
		}
	}
}

/* A child of its own, which goes while its parent may fire. Thread. */
static void come_as_child(void *arg)
{
	struct hive_cancel child;
	struct watch mine = { .called = 0 };
	int r;

	(void)arg;
	hive_cancel_init(&child, any_token(), HIVE_FOREVER);
	hive_cancel_watch_init(&mine.watch, on_fired, &mine);
	r = hive_cancel_watch_start(&child, &mine.watch);
	EXPECT(r == 0 || r == -ENOMEM || is_reason(r));
	if (r == 0) {
		r = hive_cancel_watch_stop(&mine.watch);
		EXPECT((r == 1) != (mine.called == 1));
		mine.stopped = r == 1;
	}
	r = hive_cancel_join(&child, explore_draw(2) ? HIVE_FOREVER : hive_deadline(ledger.hive, 1));
	EXPECT(r == 0 || r == -ETIMEDOUT);
	memset(&child, PATTERN, sizeof child);
	explore_yield();
	for (size_t i = 0; i < sizeof child; i++)
		EXPECT(((unsigned char *)&child)[i] == PATTERN);
}

/* Thread. */
static void fire(void *arg)
{
	int r = hive_cancel_fire_with(any_token(), scene.reason);

	(void)arg;
	EXPECT(r == 0 || r == -EALREADY);
}

/* ---- the end ---- */

/* Nothing is under them when they are joined; and nothing comes to them then. */
static void join_all(void)
{
	int r;

	r = hive_cancel_fire_with(&scene.tokens[0], scene.reason);
	EXPECT(r == 0 || r == -EALREADY);
	EXPECT(is_reason(hive_cancel_check(&scene.tokens[0])));
	for (int i = TOKENS; i-- > 0;) {
		EXPECT(hive_cancel_join(&scene.tokens[i], HIVE_FOREVER) == 0);
		memset(&scene.tokens[i], PATTERN, sizeof scene.tokens[i]);
	}
	for (int i = 0; i < ledger.used; i++)
		EXPECT(ledger.entries[i].fate == REFUSED || ledger.entries[i].ended);
	for (int i = 0; i < scene.watch_count; i++)
		EXPECT(scene.watches[i].called + scene.watches[i].stopped == scene.watches[i].started);
	for (int i = 0; i < scene.op_count; i++)
		EXPECT(scene.works[i].told <= scene.works[i].begun);
}

static void check_end(void)
{
	const unsigned char *bytes = (const unsigned char *)scene.tokens;

	for (size_t i = 0; i < sizeof scene.tokens; i++)
		EXPECT(bytes[i] == PATTERN);
	for (int i = 0; i < scene.op_count; i++) {
		EXPECT(scene.works[i].told == scene.works[i].begun);
		close(scene.works[i].fds[0]);
		close(scene.works[i].fds[1]);
	}
}

static int64_t some_deadline(void)
{
	return explore_draw(3) ? HIVE_FOREVER : hive_deadline(ledger.hive, 1 + (int64_t)explore_draw(2000));
}

void tokens_end_everything_once(void *arg)
{
	int threads[5], n = 0;

	(void)arg;
	crew_clear();
	memset(&scene, 0, sizeof scene);
	if (!open_hive((struct range){ 1, 2 }, (struct range){ 0, 1 }, CORE_EPOLL))
		return;
	scene.reason = explore_draw(2) ? -ECANCELED : -EIO;
	for (int i = 0; i < TOKENS; i++)
		hive_cancel_init(&scene.tokens[i], i > 0 ? &scene.tokens[0] : NULL, some_deadline());
	threads[n++] = explore_spawn("comer", come, number(1 + (intptr_t)explore_draw(3)));
	threads[n++] = explore_spawn("comer", come, number(1 + (intptr_t)explore_draw(3)));
	threads[n++] = explore_spawn("firer", fire, NULL);
	if (explore_draw(2))
		threads[n++] = explore_spawn("child", come_as_child, NULL);
	if (explore_draw(4) == 0)
		threads[n++] = explore_spawn("stopper", crew_stop, explore_draw(2) ? &crew : NULL);
	crew_join_threads(threads, n);
	if (!crew.stopping && explore_draw(2))
		explore_sleep(HIVE_US(1));
	join_all();
	if (!crew.stopping)
		crew_stop(explore_draw(2) ? &crew : NULL);
	crew_close();
	check_end();
}
