/* SPDX-License-Identifier: MIT */
/* Operations that repeat, that wait behind each other, and that somebody waits for. */
#include <sys/resource.h>

#include "support/shot.h"

/* ---- accept ---- */

enum { KNOCKS = 200 };

static int listen_tcp(struct sockaddr_in *ret_address)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof any;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_OK(bind(fd, (const void *)&any, sizeof any));
	CHECK_OK(listen(fd, KNOCKS));
	CHECK_OK(getsockname(fd, (void *)ret_address, &bytes));
	return fd;
}

static int dial_tcp(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_OK(connect(fd, (const void *)address, sizeof *address));
	return fd;
}

struct door {
	struct shot shot;
	int listener, count, cancel_at;
	int seen_by_task; /* how many were in when a task had its turn */
	int fds[2 * KNOCKS];
};

static void note_door(void *arg)
{
	struct door *d = arg;

	d->seen_by_task = atomic_load(&d->shot.told);
}

static void let_in(struct shot *shot, int64_t result)
{
	struct door *d = (struct door *)(void *)shot;

	if (result < 0)
		return;
	d->fds[d->count++] = (int)result;
	if (d->count == 1)
		CHECK_OK(hive_post_self(note_door, d));
	if (d->count == d->cancel_at) {
		CHECK_OK(SHOT_CALL(hive_op_cancel(&shot->op)));
		CHECK_OK(SHOT_CALL(hive_op_cancel(&shot->op))); /* once more does no harm */
	}
}

static void open_door(void *arg)
{
	struct door *d = arg;

	CHECK_OK(SHOT_CALL(hive_op_accept(&d->shot.op, d->listener, HIVE_OP_REPEAT, HIVE_FOREVER)));
}

TEST(one_accept_lets_all_in_and_others_have_their_turn)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct sockaddr_in address;
		struct door d = { .cancel_at = KNOCKS + 1 };
		int clients[KNOCKS + 1];

		shot_init(&d.shot, hive);
		d.shot.then = let_in;
		d.listener = listen_tcp(&address);
		for (int i = 0; i < KNOCKS; i++)
			clients[i] = dial_tcp(&address);
		shot_at(hive, HIVE_WORKER_NONE, open_door, &d);
		WAIT_UNTIL(atomic_load(&d.shot.told) == KNOCKS);
		clients[KNOCKS] = dial_tcp(&address); /* the last one, when it has waited for a while */
		CHECK_ERR(shot_end(&d.shot), -ECANCELED);
		CHECK_EQ(d.count, KNOCKS + 1);
		CHECK(d.seen_by_task > 0 && d.seen_by_task < KNOCKS);
		for (int i = 0; i <= KNOCKS; i++) {
			CHECK_EQ(fcntl(d.fds[i], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
			CHECK_EQ(fcntl(d.fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
			CHECK_OK(close(d.fds[i]));
			CHECK_OK(close(clients[i]));
		}
		CHECK_OK(close(d.listener));
		real_end(hive, HIVE_DRAIN);
	}
}

TEST(an_accept_without_descriptors_ends_and_does_not_spin)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct rlimit limit, none;
		struct sockaddr_in address;
		struct door d = { .cancel_at = 1 };
		int client;

		shot_init(&d.shot, hive);
		d.shot.then = let_in;
		d.listener = listen_tcp(&address);
		client = dial_tcp(&address);
		CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
		none = limit;
		none.rlim_cur = (rlim_t)client + 1;
		for (int fd = dup(client); fd >= 0; fd = -1) /* nothing free below */
			CHECK_OK(close(fd));
		CHECK_OK(setrlimit(RLIMIT_NOFILE, &none));
		shot_at(hive, HIVE_WORKER_NONE, open_door, &d);
		CHECK_ERR(shot_wait(&d.shot), -EMFILE);
		CHECK(shot_restless(hive) < SHOT_RESTFUL);
		CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
		shot_again(&d.shot);
		shot_at(hive, HIVE_WORKER_NONE, open_door, &d); /* it is still at the door */
		CHECK_ERR(shot_end(&d.shot), -ECANCELED);
		CHECK_EQ(d.count, 1);
		CHECK_OK(close(d.fds[0]));
		CHECK_OK(close(client));
		CHECK_OK(close(d.listener));
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- poll ---- */

struct watch {
	struct shot shot;
	int fd;
	atomic_int bytes;
	uint32_t events;
	bool reads;
};

static void look(struct shot *shot, int64_t result)
{
	struct watch *w = (struct watch *)(void *)shot;
	char byte;

	if (result < 0)
		return;
	CHECK(result & (w->events | HIVE_EVENT_HUP));
	while (w->reads && read(w->fd, &byte, 1) == 1) {
		atomic_fetch_add(&w->bytes, 1);
		if (byte == 'q')
			CHECK_OK(SHOT_CALL(hive_op_cancel(&shot->op)));
	}
}

static void begin_watch(void *arg)
{
	struct watch *w = arg;

	CHECK_OK(SHOT_CALL(hive_op_poll(&w->shot.op, w->fd, w->events, HIVE_OP_REPEAT, HIVE_FOREVER)));
}

TEST(a_poll_tells_again_and_again)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct watch w = { .events = HIVE_EVENT_IN, .reads = true };
		int fds[2];

		net_pair(fds);
		shot_init(&w.shot, hive);
		w.shot.then = look;
		w.fd = fds[0];
		CHECK_EQ(write(fds[1], "0", 1), 1); /* before it begins: told as well */
		shot_at(hive, HIVE_WORKER_NONE, begin_watch, &w);
		WAIT_UNTIL(atomic_load(&w.bytes) == 1);
		for (int i = 0; i < 20; i++) {
			CHECK_EQ(write(fds[1], "1", 1), 1);
			WAIT_UNTIL(atomic_load(&w.bytes) == 2 + i);
		}
		CHECK(shot_restless(hive) < SHOT_RESTFUL);
		CHECK_EQ(write(fds[1], "q", 1), 1);
		CHECK_ERR(shot_end(&w.shot), -ECANCELED);
		net_close(fds);
		real_end(hive, HIVE_DRAIN);
	}
}

/* What it tells of stays so: on a core with edges it is told once, and others go on as ever. */
TEST(a_poll_that_nobody_heeds_does_not_spin)
{
	struct hive *hive = net_start("epoll", 1, 0);
	struct watch in = { .events = HIVE_EVENT_IN }, out = { .events = HIVE_EVENT_OUT };
	struct shot reader;
	int fds[2];

	net_pair(fds);
	CHECK_EQ(write(fds[1], "unread", 6), 6);
	shot_init(&in.shot, hive);
	shot_init(&out.shot, hive);
	shot_init(&reader, hive);
	in.fd = out.fd = fds[0];
	in.shot.then = out.shot.then = look;
	shot_at(hive, HIVE_WORKER_NONE, begin_watch, &in);
	shot_at(hive, HIVE_WORKER_NONE, begin_watch, &out);
	WAIT_UNTIL(atomic_load(&in.shot.told) > 0 && atomic_load(&out.shot.told) > 0);
	CHECK(shot_restless(hive) < SHOT_RESTFUL);
	CHECK(atomic_load(&in.shot.told) < 20 && atomic_load(&out.shot.told) < 20);
	CHECK_OK(hive_op_cancel(&in.shot.op));
	CHECK_OK(hive_op_cancel(&out.shot.op));
	CHECK_ERR(shot_end(&in.shot), -ECANCELED);
	CHECK_ERR(shot_end(&out.shot), -ECANCELED);
	CHECK_OK(hive_op_recv(&reader.op, fds[0], &reader.byte, 1, HIVE_FOREVER));
	CHECK_EQ(shot_end(&reader), 1);
	net_close(fds);
	real_end(hive, HIVE_DRAIN);
}

TEST(urgent_bytes_are_told)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct sockaddr_in address;
		struct shot shot;
		int listener = listen_tcp(&address), client = dial_tcp(&address), fd = accept(listener, NULL, NULL);

		CHECK(fd >= 0);
		shot_init(&shot, hive);
		CHECK_OK(hive_op_poll(&shot.op, fd, HIVE_EVENT_PRI, 0, HIVE_FOREVER));
		CHECK(shot_restless(hive) < SHOT_RESTFUL);
		CHECK_EQ(send(client, "!", 1, MSG_OOB), 1);
		CHECK(shot_end(&shot) & HIVE_EVENT_PRI);
		close(fd);
		close(client);
		close(listener);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- many at once ---- */

enum { LINE = 3000 };

struct line {
	struct shot *shots;
	int fd;
};

static int line_next, line_bytes[251]; /* on one worker */
static bool line_in_order;

static void check_turn(struct shot *shot, int64_t result)
{
	CHECK_EQ(result, 1);
	line_bytes[shot->byte]++;
	line_next++;
	if (!line_in_order)
		return;
	CHECK_EQ(shot->number, line_next - 1);
	CHECK_EQ(shot->byte, shot->number % 251);
}

static void queue_up(void *arg)
{
	struct line *line = arg;

	for (int i = 0; i < LINE; i++)
		CHECK_OK(SHOT_CALL(hive_op_recv(&line->shots[i].op, line->fd, &line->shots[i].byte, 1, HIVE_FOREVER)));
}

/* All but each tenth are cancelled, from the back. */
static void thin_out(void *arg)
{
	struct line *line = arg;

	for (int i = LINE - 1; i >= 0; i--)
		if (i % 10 != 0)
			CHECK_OK(SHOT_CALL(hive_op_cancel(&line->shots[i].op)));
}

static void put_byte(int fd, unsigned char byte)
{
	while (write(fd, &byte, 1) < 0) {
		CHECK_EQ(errno, EAGAIN);
		sched_yield();
	}
}

/* Where the core does them by itself, each gets its byte in any order. */
TEST(first_come_first_served)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		struct shot *shots = calloc(LINE, sizeof *shots);
		struct line line;
		int fds[2];

		net_pair(fds);
		CHECK(shots);
		line = (struct line){ shots, fds[0] };
		line_next = 0;
		line_in_order = !net_is_native(core_names[core], HIVE_OP_RECV);
		memset(line_bytes, 0, sizeof line_bytes);
		for (int i = 0; i < LINE; i++) {
			shot_init(&shots[i], hive);
			shots[i].number = i;
			shots[i].then = check_turn;
		}
		shot_at(hive, HIVE_WORKER_NONE, queue_up, &line);
		for (int i = 0; i < LINE; i++)
			put_byte(fds[1], (unsigned char)(i % 251));
		for (int i = 0; i < LINE; i++)
			CHECK_EQ(shot_wait(&shots[i]), 1);
		for (int i = 0; i < 251; i++)
			CHECK_EQ(line_bytes[i], LINE / 251 + (i < LINE % 251));
		for (int i = 0; i < LINE; i++) {
			shot_again(&shots[i]);
			shots[i].then = NULL;
		}
		shot_at(hive, HIVE_WORKER_NONE, queue_up, &line);
		shot_at(hive, HIVE_WORKER_NONE, thin_out, &line);
		for (int i = 0; i < LINE; i += 10)
			put_byte(fds[1], 'x');
		for (int i = 0; i < LINE; i++)
			CHECK_EQ(shot_end(&shots[i]), i % 10 ? -ECANCELED : 1);
		free(shots);
		net_close(fds);
		real_end(hive, HIVE_DRAIN);
	}
}

TEST(two_thousand_descriptors)
{
	enum { PAIRS = 1000 };
	static struct shot shots[2 * PAIRS];
	static int fds[PAIRS][2];
	struct rlimit limit, more;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	more = limit;
	more.rlim_cur = 2 * PAIRS + 100 < limit.rlim_max ? 2 * PAIRS + 100 : limit.rlim_max;
	if (more.rlim_cur < 2 * PAIRS + 100) {
		test_skip("not so many descriptors");
		return;
	}
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &more));
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 3, 0);

		for (int i = 0; i < PAIRS; i++)
			net_pair(fds[i]);
		for (int i = 0; i < 2 * PAIRS; i++) {
			shot_init(&shots[i], hive);
			CHECK_OK(hive_op_recv(&shots[i].op, fds[i / 2][i % 2], &shots[i].byte, 1, HIVE_FOREVER));
		}
		for (int i = 0; i < 2 * PAIRS; i++)
			CHECK_EQ(write(fds[i / 2][1 - i % 2], "y", 1), 1);
		for (int i = 0; i < 2 * PAIRS; i++)
			CHECK_EQ(shot_end(&shots[i]), 1);
		for (int i = 0; i < PAIRS; i++)
			net_close(fds[i]);
		real_end(hive, HIVE_DRAIN);
	}
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
}

/* ---- started where another one ends: thousands, one after the other, on a small stack of calls ---- */

struct chain {
	struct shot shot;
	int fds[2], left;
};

static void go_on(struct hive_op *op, int64_t result)
{
	struct chain *c = op->arg;

	CHECK_EQ(result, 1);
	CHECK_EQ(shot_depth++, 0);
	CHECK_EQ(shot_inside, 0);
	if (--c->left == 0)
		gate_open(&c->shot.done);
	else if (c->left % 2)
		CHECK_OK(SHOT_CALL(hive_op_send(op, c->fds[0], "z", 1, HIVE_FOREVER)));
	else
		CHECK_OK(SHOT_CALL(hive_op_recv(op, c->fds[1], &c->shot.byte, 1, HIVE_FOREVER)));
	shot_depth--;
}

TEST(one_is_started_where_another_ends)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 0);
		struct chain c = { .left = 20000 };

		gate_init(&c.shot.done);
		net_pair(c.fds);
		hive_op_init(&c.shot.op, hive, go_on, &c);
		CHECK_OK(hive_op_send(&c.shot.op, c.fds[0], "z", 1, HIVE_FOREVER));
		gate_pass(&c.shot.done);
		gate_destroy(&c.shot.done);
		net_close(c.fds);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- waiting for one ---- */

struct wait_for {
	struct hive_op op;
	struct hive *hive;
	int fds[2];
	int64_t result;
	char byte;
	struct gate done;
};

static void begin_and_wait(void *arg)
{
	struct wait_for *w = arg;

	hive_op_init(&w->op, w->hive, NULL, NULL);
	CHECK_OK(hive_op_recv(&w->op, w->fds[0], &w->byte, 1, HIVE_FOREVER));
	w->result = hive_op_wait(&w->op);
	CHECK_EQ(hive_op_wait(&w->op), w->result); /* it stays */
	gate_open(&w->done);
}

static int begin_and_wait_in_fiber(void *arg)
{
	begin_and_wait(arg);
	return 0;
}

static void may_not_wait(void *arg)
{
	struct wait_for *w = arg;

	hive_op_init(&w->op, w->hive, NULL, NULL);
	CHECK_OK(hive_op_recv(&w->op, w->fds[0], &w->byte, 1, HIVE_FOREVER));
	CHECK_ERR(hive_op_wait(&w->op), -EDEADLK);
}

TEST(a_fiber_a_thread_and_a_compute_task_wait_for_it)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 2, 1);
		struct wait_for w = { .hive = hive };
		struct hive_fiber *fiber;

		gate_init(&w.done);
		net_pair(w.fds);
		CHECK_OK(hive_spawn(hive, begin_and_wait_in_fiber, &w, NULL, NULL));
		CHECK_EQ(write(w.fds[1], "1", 1), 1);
		gate_pass(&w.done);
		CHECK_EQ(w.result, 1);
		CHECK_OK(hive_post_compute(hive, begin_and_wait, &w));
		CHECK_EQ(write(w.fds[1], "2", 1), 1);
		gate_pass(&w.done);
		CHECK_EQ(w.result, 1);
		CHECK_EQ(write(w.fds[1], "3", 1), 1);
		begin_and_wait(&w);
		gate_pass(&w.done);
		CHECK_EQ(w.result, 1);
		CHECK_EQ(w.byte, '3');
		shot_at(hive, HIVE_WORKER_NONE, may_not_wait, &w);
		CHECK_OK(hive_op_cancel(&w.op));
		CHECK_ERR(hive_op_wait(&w.op), -ECANCELED);
		CHECK_OK(hive_spawn(hive, begin_and_wait_in_fiber, &w, NULL, &fiber));
		CHECK_OK(hive_fiber_cancel(fiber));
		gate_pass(&w.done);
		CHECK_ERR(w.result, -ECANCELED);
		CHECK_OK(hive_fiber_join(fiber, HIVE_FOREVER, NULL));
		net_close(w.fds);
		gate_destroy(&w.done);
		real_end(hive, HIVE_DRAIN);
	}
}
