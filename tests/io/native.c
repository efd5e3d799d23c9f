/* SPDX-License-Identifier: MIT */
/* A core that does operations by itself: the poll core, and on top of it recv and accept, which it completes in its turns. What the
 * library owes to such a core, and what it gives its users on it.                                                         */
#include <pthread.h>

#include "support/shot.h"

#include <rophive/core.h>

struct native {
	struct hive_core core; /* first */
	struct hive_core *inner;
	struct hive_op *first; /* linked by spare[0]; spare[1]: its end was asked for */
	int count;
};

static const struct hive_core_ops *poll_ops;
static atomic_int submitted, asked;

static struct native *of(struct hive_core *core)
{
	return (struct native *)(void *)core;
}

static struct hive_op *next_of(struct hive_op *op)
{
	return (struct hive_op *)(uintptr_t)op->spare[0];
}

static int native_submit(struct hive_core *core, struct hive_op *op)
{
	struct native *n = of(core);

	if (op->fd == 987654)
		return -EUSERS; /* it may refuse */
	atomic_fetch_add(&submitted, 1);
	op->spare[0] = (uint64_t)(uintptr_t)n->first;
	op->spare[1] = 0;
	n->first = op;
	n->count++;
	return 0;
}

static void native_cancel(struct hive_core *core, struct hive_op *op)
{
	(void)core;
	atomic_fetch_add(&asked, 1);
	CHECK_EQ(op->spare[1]++, 0); /* once */
}

static void drop_op(struct native *n, struct hive_op *op)
{
	struct hive_op *at = n->first;

	n->count--;
	if (at == op) {
		n->first = next_of(op);
		return;
	}
	while (next_of(at) != op)
		at = next_of(at);
	at->spare[0] = op->spare[0];
}

/* True: something was delivered, and the list may be another one. */
static bool complete_one(struct native *n)
{
	for (struct hive_op *op = n->first; op; op = next_of(op)) {
		int64_t r = op->code == HIVE_OP_ACCEPT ? accept4(op->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)
		                                       : recv(op->fd, op->buffer, op->length, MSG_DONTWAIT);

		if (r < 0)
			r = errno == EAGAIN && op->spare[1] ? -ECANCELED : -errno;
		if (r == -EAGAIN)
			continue;
		if (op->repeat && r >= 0) {
			hive_op_deliver(op, r, true);
			return true;
		}
		drop_op(n, op);
		hive_op_deliver(op, r, false);
		return true;
	}
	return false;
}

static int native_turn(struct hive_core *core, int64_t timeout_ns)
{
	struct native *n = of(core);
	int r;

	if (n->count > 0 && timeout_ns > HIVE_US(200))
		timeout_ns = HIVE_US(200);
	r = poll_ops->turn(n->inner, timeout_ns);
	for (int i = 0; i < 100 && complete_one(n); i++)
		;
	return r;
}

static const struct hive_core_ops native_ops;

static int native_open(void *arg, struct hive_core **ret_core)
{
	struct native *n = calloc(1, sizeof *n);
	int r;

	CHECK(n);
	r = poll_ops->open(arg, &n->inner);
	CHECK_OK(r);
	n->core.ops = &native_ops;
	*ret_core = &n->core;
	return 0;
}

static void native_close(struct hive_core *core)
{
	CHECK_EQ(of(core)->count, 0); /* it has nobody's operation any more */
	poll_ops->close(of(core)->inner);
	free(core);
}

static void native_wake(struct hive_core *core)
{
	poll_ops->wake(of(core)->inner);
}

static int native_add(struct hive_core *core, struct hive_source *source)
{
	return poll_ops->add(of(core)->inner, source);
}

static int native_modify(struct hive_core *core, struct hive_source *source)
{
	return poll_ops->modify(of(core)->inner, source);
}

static void native_remove(struct hive_core *core, struct hive_source *source)
{
	poll_ops->remove(of(core)->inner, source);
}

static const struct hive_core_ops native_ops = { .name = "native",
	                                         .kinds = 1u << HIVE_SOURCE_FD,
	                                         .open = native_open,
	                                         .close = native_close,
	                                         .turn = native_turn,
	                                         .wake = native_wake,
	                                         .add = native_add,
	                                         .modify = native_modify,
	                                         .remove = native_remove,
	                                         .native_ops = 1u << HIVE_OP_RECV | 1u << HIVE_OP_ACCEPT,
	                                         .submit = native_submit,
	                                         .cancel = native_cancel };

static struct hive_worker_options native_options(void)
{
	if (!poll_ops) /* before there is any worker */
		CHECK_OK(hive_core_find("poll", &poll_ops));
	atomic_store(&submitted, 0);
	atomic_store(&asked, 0);
	return (struct hive_worker_options){ .kind = HIVE_WORKER_IO, .core = &native_ops };
}

static struct hive *start_native(int32_t workers)
{
	struct hive_worker_options worker = native_options();

	return real_start((struct hive_options){ .io_workers = workers, .compute_workers = 1, .io = &worker });
}

enum { MANY = 20 };

struct some {
	struct shot shots[MANY];
	int fds[2];
	int64_t deadline_ns;
};

static void start_some(void *arg)
{
	struct some *s = arg;

	for (int i = 0; i < MANY; i++)
		CHECK_OK(SHOT_CALL(hive_op_recv(&s->shots[i].op, s->fds[0], &s->shots[i].byte, 1, s->deadline_ns)));
}

static void cancel_some(void *arg)
{
	struct some *s = arg;

	for (int i = 0; i < MANY; i++)
		CHECK_OK(SHOT_CALL(hive_op_cancel(&s->shots[i].op)));
}

static void some_init(struct some *s, struct hive *hive)
{
	net_pair(s->fds);
	s->deadline_ns = HIVE_FOREVER;
	for (int i = 0; i < MANY; i++)
		shot_init(&s->shots[i], hive);
}

static void some_end(struct some *s, int64_t result)
{
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(shot_wait(&s->shots[i]), result);
	for (int i = 0; i < MANY; i++)
		shot_again(&s->shots[i]);
}

TEST(a_core_completes_operations)
{
	struct hive *hive = start_native(2);
	struct some s;

	some_init(&s, hive);
	start_some(&s);
	CHECK_EQ(write(s.fds[1], "0123456789abcdefghij", MANY), MANY);
	some_end(&s, 1);
	CHECK_EQ(atomic_load(&submitted), MANY);
	start_some(&s);
	cancel_some(&s); /* from another thread */
	some_end(&s, -ECANCELED);
	shot_at(hive, HIVE_WORKER_MAIN, start_some, &s);
	shot_at(hive, HIVE_WORKER_MAIN, cancel_some, &s); /* from its own */
	some_end(&s, -ECANCELED);
	s.deadline_ns = hive_deadline(NULL, HIVE_MS(3));
	start_some(&s);
	some_end(&s, -ETIMEDOUT);
	CHECK_OK(hive_op_recv(&s.shots[0].op, 987654, &s.shots[0].byte, 1, HIVE_FOREVER));
	CHECK_ERR(shot_wait(&s.shots[0]), -EUSERS);
	net_close(s.fds);
	real_end(hive, HIVE_DRAIN);
}

static void cancel_at_third(struct shot *shot, int64_t result)
{
	if (result >= 0)
		CHECK_OK(close((int)result));
	if (result >= 0 && ++shot->number == 3)
		CHECK_OK(SHOT_CALL(hive_op_cancel(&shot->op)));
}

TEST(a_core_tells_several_results)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), clients[3];
	struct hive *hive = start_native(1);
	socklen_t bytes = sizeof any;
	struct shot shot;

	CHECK_OK(bind(listener, (const void *)&any, sizeof any));
	CHECK_OK(listen(listener, 10));
	CHECK_OK(getsockname(listener, (void *)&any, &bytes));
	shot_init(&shot, hive);
	shot.then = cancel_at_third;
	CHECK_OK(hive_op_accept(&shot.op, listener, HIVE_OP_REPEAT, HIVE_FOREVER));
	for (int i = 0; i < 3; i++) {
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK_OK(connect(clients[i], (const void *)&any, bytes));
	}
	CHECK_ERR(shot_end(&shot), -ECANCELED);
	CHECK_EQ(shot.number, 3);
	for (int i = 0; i < 3; i++)
		CHECK_OK(close(clients[i]));
	CHECK_OK(close(listener));
	real_end(hive, HIVE_DRAIN);
}

TEST(a_stop_asks_the_core_for_all_of_them)
{
	for (int mode = 0; mode < 2; mode++) {
		struct hive *hive = start_native(3);
		struct some s;

		some_init(&s, hive);
		shot_at(hive, HIVE_WORKER_NONE, start_some, &s);
		if (mode)
			CHECK_OK(hive_stop(hive, HIVE_NOW, HIVE_FOREVER));
		else
			CHECK_OK(hive_stop(hive, HIVE_DRAIN, hive_deadline(NULL, HIVE_MS(3))));
		some_end(&s, -ECANCELED);
		CHECK_EQ(atomic_load(&asked), MANY);
		real_join(hive);
		net_close(s.fds);
	}
}

static void *cancel_in_thread(void *arg)
{
	struct some *s = arg;

	for (int i = 0; i < MANY; i++)
		hive_op_cancel(&s->shots[i].op);
	return NULL;
}

TEST(a_worker_with_such_a_core_leaves)
{
	for (int round = 0; round < 40 / test_slowness() + 4; round++) {
		struct hive *hive = start_native(1);
		struct hive_worker_options options = native_options();
		pthread_t thread;
		struct some s;
		uint32_t id;

		CHECK_OK(hive_attach(hive, &options, &id));
		some_init(&s, hive);
		shot_at(hive, id, start_some, &s);
		if (round % 2)
			CHECK_OK(pthread_create(&thread, NULL, cancel_in_thread, &s));
		CHECK_OK(hive_detach(hive, id, HIVE_FOREVER));
		if (round % 2) {
			CHECK_OK(pthread_join(thread, NULL));
		} else {
			CHECK_EQ(write(s.fds[1], "0123456789abcdefghij", MANY), MANY);
		}
		some_end(&s, round % 2 ? -ECANCELED : 1);
		net_close(s.fds);
		real_end(hive, HIVE_DRAIN);
	}
}
