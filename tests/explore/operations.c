/* SPDX-License-Identifier: MIT */
/* Programs with operations: each that has begun ends once, whoever is faster: bytes, deadline, cancel, a worker that leaves, stop. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "line.h"
#include "programs.h"

enum { WORKS = 5, PATTERN = 0xa5 };

static struct work {
	struct hive_op op;
	char buffer[8];
	struct hive_address address;
	int64_t deadline;
	int rounds;     /* how often it begins again */
	int cancellers; /* inside hive_op_cancel() */
	bool lent;      /* begun, or about to; on_done has not been called */
	bool asked;     /* somebody wants its end */
	bool owed;      /* and was told that it will come */
	bool spoilt;    /* nobody may touch it any more: it is full of a pattern */
} works[WORKS];

static bool resolves;             /* they ask for names, */
static bool sends;                /* or they send; else they receive */
static int starting[THREADS_MAX]; /* a thread is inside a starter */
static uint32_t handed_out;       /* works that fibers have */

static void begin(struct work *w);

/* No compute worker is left to drain for; or there never was one. */
static bool is_nameless(int64_t r)
{
	return resolves && ((r == -ECANCELED && crew.stopping) || (r == -ENOTSUP && ledger.compute_workers == 0));
}

static void check_result(const struct work *w, int64_t r)
{
	if (is_nameless(r))
		return;
	EXPECT(r != 0 || (!sends && line.ended));
	EXPECT(r >= 0 || r == -ENOMEM || (r == -ECANCELED && (w->asked || crew.now)) ||
	       (r == -ETIMEDOUT && w->deadline != HIVE_FOREVER && explore_now() >= w->deadline));
	if (r <= 0 || w->op.code == HIVE_OP_POLL)
		return;
	EXPECT((uint64_t)r <= w->op.length);
	if (resolves)
		return;
	if (sends)
		line.sent += r;
	else
		line.got += r;
}

/* It is ours again. */
static void take_back(struct work *w, int64_t result)
{
	EXPECT(w->lent && !crew.joined);
	w->lent = false;
	line.waiting--;
	line.owed -= w->owed;
	w->owed = false;
	check_result(w, result);
	if (w->cancellers > 0)
		return;
	if (result != 0 && result != -ENOMEM && w->rounds-- > 0) {
		begin(w);
	} else {
		w->spoilt = true;
		memset(&w->op, PATTERN, sizeof w->op);
	}
}

static void on_done(struct hive_op *op, int64_t result)
{
	EXPECT(!starting[explore_self()] && op->result == result);
	take_back(op->arg, result);
}

static int ask(struct work *w, uint32_t what)
{
	static const char *const names[] = { "127.0.0.1", "quick.test", "slow.test", "slow.test", "slow.test" };

	return hive_op_resolve(&w->op, names[what], 80, &w->address, 1, w->deadline);
}

static int start(struct work *w, uint32_t what, size_t bytes)
{
	if (resolves)
		return ask(w, what);
	if (what == 0)
		return hive_op_poll(&w->op, sends ? line.out : line.in, sends ? HIVE_EVENT_OUT : HIVE_EVENT_IN, 0,
		                    w->deadline);
	if (what == 1 && sends)
		return hive_op_write(&w->op, line.out, w->buffer, bytes, -1, w->deadline);
	if (what == 1)
		return hive_op_read(&w->op, line.in, w->buffer, bytes, -1, w->deadline);
	return sends ? hive_op_send(&w->op, line.out, w->buffer, bytes, w->deadline)
	             : hive_op_recv(&w->op, line.in, w->buffer, bytes, w->deadline);
}

static void begin(struct work *w)
{
	uint32_t what = explore_draw(5);
	size_t bytes = 1 + explore_draw(sizeof w->buffer);
	int self = explore_self(), r;

	w->deadline = crew_deadline();
	w->lent = true;
	w->asked = false;
	line.waiting++;
	starting[self]++;
	r = start(w, what, bytes);
	starting[self]--;
	if (r == 0)
		return;
	EXPECT(r == -ENOMEM || (r == -ESHUTDOWN && crew.stopping));
	EXPECT(w->lent);
	w->lent = false;
	line.waiting--;
	line.owed -= w->owed; /* by who was quicker than the refusal */
	w->owed = false;
}

static void init(struct work *w, hive_op_fn *fn)
{
	memset(w, 0, sizeof *w);
	w->rounds = (int)explore_draw(4);
	hive_op_init(&w->op, ledger.hive, fn, w);
}

static void begin_as_thread(void *work)
{
	begin(work);
}

/* On a worker. */
static int begin_as_fiber(void *one)
{
	crew_enter(one);
	begin(&works[handed_out++]);
	return crew_leave(one);
}

/* A thread that waits for one itself. */
static void collect(void *work)
{
	struct work *w = work;
	int64_t r;

	begin(w);
	if (!w->lent)
		return;
	r = hive_op_wait(&w->op);
	w->rounds = 0;
	take_back(w, r);
}

static void cancel_some(void *count)
{
	for (intptr_t n = (intptr_t)count; n > 0; n--) {
		struct work *w = &works[explore_draw(WORKS)];
		int r;

		explore_yield();
		if (!w->lent)
			continue;
		w->cancellers++;
		w->asked = true;
		r = hive_op_cancel(&w->op);
		EXPECT(r == 0 || r == -ESRCH);
		w->cancellers--;
		if (r == 0 && w->lent && !w->owed) {
			w->owed = true;
			line.owed++;
		}
	}
}

/* Some begin on a worker, others elsewhere; one is waited for. */
static int spawn_works(int *ret_threads)
{
	uint32_t on_workers = explore_draw(3), all = on_workers + explore_draw(3);
	int n = 0;

	memset(works, 0, sizeof works);
	handed_out = 0;
	for (uint32_t i = 0; i < all; i++)
		init(&works[i], on_done);
	for (uint32_t i = 0; i < on_workers; i++)
		crew_hire(begin_as_fiber, (int)explore_draw(4));
	for (uint32_t i = on_workers; i < all; i++)
		ret_threads[n++] = explore_spawn("beginner", begin_as_thread, &works[i]);
	if (all == 0 || explore_draw(2)) {
		init(&works[all], NULL);
		ret_threads[n++] = explore_spawn("collector", collect, &works[all]);
	}
	return n;
}

static bool is_touched(const struct work *w)
{
	const unsigned char *bytes = (const unsigned char *)&w->op;
	size_t i = 0;

	while (i < sizeof w->op && bytes[i] == PATTERN)
		i++;
	return i < sizeof w->op;
}

static void check_ended(void)
{
	for (int i = 0; i < WORKS; i++) {
		if (works[i].lent)
			explore_fail("operation %d has begun, and does not end", i);
		if (works[i].spoilt && is_touched(&works[i]))
			explore_fail("operation %d was touched after its end", i);
	}
}

void operations_end_once(void *arg)
{
	int threads[WORKS + 4], n, reader = -1;

	(void)arg;
	memset(starting, 0, sizeof starting);
	resolves = false;
	sends = explore_draw(3) == 0;
	if (!line_open((struct range){ 1, 3 }))
		return;
	if (sends)
		line_fill();
	n = spawn_works(threads);
	if (sends)
		reader = explore_spawn("reader", line_reader, NULL);
	else
		threads[n++] = explore_spawn("writer", line_writer, number((intptr_t)explore_draw(6)));
	if (explore_draw(2))
		threads[n++] = explore_spawn("canceller", cancel_some, number(4));
	if (explore_draw(3) == 0 && ledger.worker_count > 1)
		threads[n++] = explore_spawn("leaver", crew_detach, NULL);
	if (explore_draw(4) == 0)
		threads[n++] = explore_spawn("stopper", crew_stop, explore_draw(2) ? &crew : NULL);
	crew_join_threads(threads, n);
	if (!crew.stopping) {
		crew_check_still();
		check_ended();
		crew_stop(explore_draw(2) ? &crew : NULL);
	}
	crew_close();
	check_ended();
	if (sends) {
		line_end();
		explore_join(reader);
	}
	line_close();
}

/* ---- by fibers of the library's own ---- */

static bool answers; /* the resolver; until then it keeps who asks for what is slow */

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list)
{
	static struct sockaddr_in at = { .sin_family = AF_INET };
	static struct addrinfo info = { .ai_family = AF_INET, .ai_addrlen = sizeof at };

	(void)service, (void)hints;
	EXPECT(!crew.joined);
	while (strcmp(name, "slow.test") == 0 && !answers)
		explore_block(&answers, HIVE_FOREVER);
	explore_yield();
	info.ai_addr = (struct sockaddr *)(void *)&at;
	*ret_list = &info;
	return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
	(void)list;
}

/* Whose end was asked for does not wait for the resolver. */
static void answer_at_last(void)
{
	explore_wait_quiet();
	explore_hold();
	if (line.owed > 0)
		explore_fail("all sleep, and somebody waits whose end was asked for");
	answers = true;
	explore_go_on();
	explore_unblock(&answers, THREADS_MAX);
}

void served_operations_end_once(void *arg)
{
	static const int cores[] = { CORE_EPOLL, CORE_POLL, CORE_DOES_OPS };
	int threads[WORKS + 4], n;

	(void)arg;
	memset(starting, 0, sizeof starting);
	memset(&line, 0, sizeof line);
	crew_clear();
	resolves = true;
	sends = answers = false;
	if (!open_hive((struct range){ 1, 3 }, (struct range){ 0, 2 }, cores[explore_draw(3)]))
		return;
	n = spawn_works(threads);
	if (explore_draw(3))
		threads[n++] = explore_spawn("canceller", cancel_some, number(4));
	if (explore_draw(3) == 0 && ledger.worker_count > 1)
		threads[n++] = explore_spawn("leaver", crew_detach, NULL);
	if (explore_draw(3) == 0)
		threads[n++] = explore_spawn("stopper", crew_stop, explore_draw(2) ? &crew : NULL);
	answer_at_last();
	crew_join_threads(threads, n);
	if (!crew.stopping) {
		crew_check_quiet();
		check_ended();
		crew_stop(explore_draw(2) ? &crew : NULL);
	}
	crew_close();
	check_ended();
}
