/* SPDX-License-Identifier: MIT */
/* Readiness: what is tried at once, who waits for what, and descriptors that are others by now. Where a deadline of a millisecond
 * stands, nothing has to be waited for: it is there already, and what waits for an event all the same comes too late.       */
#include <pty.h>
#include <termios.h>

#include "support/shot.h"

static int64_t soon(void)
{
	return hive_deadline(NULL, HIVE_MS(1));
}

/* ---- nothing to wait for ---- */

static int read_one(void *arg)
{
	char byte;

	return (int)hive_recv(*(int *)arg, &byte, 1, HIVE_FOREVER);
}

static int write_while_another_reads(void *arg)
{
	struct hive_fiber *reader;
	int fds[2];

	(void)arg;
	net_pair(fds);
	for (int i = 0; i < 3; i++) {
		reader = net_spawn(read_one, &fds[0]);
		CHECK_OK(hive_sleep(HIVE_MS(1)));
		CHECK_EQ(hive_send(fds[0], "x", 1, soon()), 1);
		CHECK_EQ(hive_poll_fd(fds[0], HIVE_EVENT_OUT, soon()), HIVE_EVENT_OUT);
		CHECK_EQ(hive_send(fds[1], "y", 1, soon()), 1);
		CHECK_EQ(net_join(reader), 1);
	}
	reader = net_spawn(read_one, &fds[0]);
	CHECK_OK(hive_sleep(HIVE_MS(1)));
	CHECK_OK(hive_shutdown(fds[0], SHUT_RD, soon()));
	CHECK_EQ(net_join(reader), 0);
	reader = net_spawn(read_one, &fds[1]);
	CHECK_OK(hive_sleep(HIVE_MS(1)));
	CHECK_OK(hive_close(fds[0], soon()));
	net_join(reader);
	CHECK_OK(hive_close(fds[1], soon()));
	return 0;
}

TEST(a_write_does_not_wait_for_a_read)
{
	net_each(write_while_another_reads);
}

struct twice {
	int fd;
	int64_t first, second;
};

/* Two portions may come with one event; the second is there when the first is taken. */
static int read_twice(void *arg)
{
	struct twice *t = arg;
	char text[100];

	t->first = hive_read(t->fd, text, sizeof text, -1, HIVE_FOREVER);
	t->second = hive_read(t->fd, text, sizeof text, -1, soon());
	return 0;
}

static int two_portions(int to, int from, const char *first, const char *second)
{
	for (int i = 0; i < 3; i++) {
		struct twice t = { .fd = from };
		struct hive_fiber *reader = net_spawn(read_twice, &t);

		CHECK_OK(hive_sleep(HIVE_MS(1)));
		CHECK_EQ(write(to, first, strlen(first)), (ssize_t)strlen(first));
		CHECK_EQ(write(to, second, strlen(second)), (ssize_t)strlen(second));
		CHECK_OK(net_join(reader));
		CHECK_EQ(t.first, strlen(first));
		CHECK_EQ(t.second, strlen(second));
	}
	return 0;
}

static int datagrams(void *arg)
{
	int fds[2], r;

	(void)arg;
	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	r = two_portions(fds[0], fds[1], "one", "three");
	net_close(fds);
	return r;
}

TEST(two_datagrams_come_with_one_event)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 0);
		int result = -1;

		CHECK_OK(hive_block_on(hive, datagrams, NULL, HIVE_FOREVER, &result));
		CHECK_OK(result);
		real_end(hive, HIVE_DRAIN);
	}
}

/* Two receive a byte each, in order; the first, when it has its own, asks for readiness behind the second. */
struct line_of_three {
	struct hive_op ops[3];
	int fd, told;
	bool native; /* the kernel looks, and takes its time */
	char bytes[2];
};

static void on_third(struct hive_op *op, int64_t result)
{
	struct line_of_three *line = op->arg;

	CHECK_EQ(result, HIVE_EVENT_IN);
	line->told++;
}

static void on_byte(struct hive_op *op, int64_t result)
{
	struct line_of_three *line = op->arg;

	CHECK_EQ(result, 1);
	line->told++;
	if (op == &line->ops[0])
		CHECK_OK(hive_op_poll(&line->ops[2], line->fd, HIVE_EVENT_IN, 0, line->native ? HIVE_FOREVER : soon()));
}

static int ask_while_others_receive(void *arg)
{
	struct line_of_three line = { .native = net_is_native(arg, HIVE_OP_POLL) };
	int fds[2];

	net_pair(fds);
	for (int lap = 0; lap < 3; lap++) {
		line.fd = fds[0];
		line.told = 0;
		for (int i = 0; i < 3; i++)
			hive_op_init(&line.ops[i], hive_current(), i < 2 ? on_byte : on_third, &line);
		for (int i = 0; i < 2; i++)
			CHECK_OK(hive_op_recv(&line.ops[i], fds[0], &line.bytes[i], 1, HIVE_FOREVER));
		CHECK_OK(hive_sleep(HIVE_MS(1)));
		CHECK_EQ(write(fds[1], "abc", 3), 3);
		while (line.told < 3)
			hive_yield();
		CHECK_EQ(read(fds[0], line.bytes, 1), 1);
	}
	net_close(fds);
	return 0;
}

TEST(who_asks_for_readiness_behind_others_is_told_of_what_they_leave)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 0);
		int result = -1;

		CHECK_OK(hive_block_on(hive, ask_while_others_receive, (void *)(uintptr_t)core_names[i], HIVE_FOREVER,
		                       &result));
		CHECK_OK(result);
		real_end(hive, HIVE_DRAIN);
	}
}

static int lines(void *arg)
{
	int ends[2], r;

	(void)arg;
	CHECK_OK(openpty(&ends[0], &ends[1], NULL, NULL, NULL));
	r = two_portions(ends[0], ends[1], "one\n", "two more\n");
	net_close(ends);
	return r;
}

TEST(two_lines_of_a_terminal_come_with_one_event)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 0);
		int result = -1;

		CHECK_OK(hive_block_on(hive, lines, NULL, HIVE_FOREVER, &result));
		CHECK_OK(result);
		real_end(hive, HIVE_DRAIN);
	}
}

static void tcp_pair(int fds[2])
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof any;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_OK(bind(listener, (const void *)&any, sizeof any));
	CHECK_OK(listen(listener, 1));
	CHECK_OK(getsockname(listener, (void *)&any, &bytes));
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_OK(connect(fds[0], (const void *)&any, bytes));
	fds[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	CHECK(fds[1] >= 0);
	CHECK_OK(fcntl(fds[0], F_SETFL, O_NONBLOCK));
	CHECK_OK(close(listener));
}

/* The last bytes and the end with one event; and urgent ones, at which a read stops. */
static int last_bytes(void *arg)
{
	struct hive_fiber *reader;
	struct twice t;
	int fds[2];

	(void)arg;
	for (int i = 0; i < 4; i++) {
		tcp_pair(fds);
		t = (struct twice){ .fd = fds[1] };
		reader = net_spawn(read_twice, &t);
		CHECK_OK(hive_sleep(HIVE_MS(1)));
		CHECK_EQ(send(fds[0], "last", 4, 0), 4);
		if (i % 2)
			CHECK_EQ(send(fds[0], "!", 1, MSG_OOB), 1);
		if (i % 2)
			CHECK_EQ(send(fds[0], "behind", 6, 0), 6);
		else
			CHECK_OK(shutdown(fds[0], SHUT_WR));
		CHECK_OK(net_join(reader));
		CHECK_EQ(t.first, 4);
		CHECK_EQ(t.second, i % 2 ? 6 : 0);
		net_close(fds);
	}
	return 0;
}

TEST(the_last_bytes_and_the_end_come_with_one_event)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 0);
		int result = -1;

		CHECK_OK(hive_block_on(hive, last_bytes, NULL, HIVE_FOREVER, &result));
		CHECK_OK(result);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- nobody waits ---- */

static void leave_things(void *arg)
{
	int(*fds)[2] = arg;
	static struct hive_op ops[4];

	for (int i = 0; i < 4; i++) { /* so that the desk knows them */
		hive_op_init(&ops[i], hive_current(), NULL, NULL);
		CHECK_OK(hive_op_read(&ops[i], fds[i][0], &ops[i].arg, 1, -1, HIVE_FOREVER));
		CHECK_OK(hive_op_cancel(&ops[i]));
	}
}

TEST(what_nobody_waits_for_does_not_keep_a_worker_busy)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		int fds[4][2];

		for (int i = 0; i < 3; i++)
			net_pair(fds[i]);
		CHECK_OK(pipe2(fds[3], O_NONBLOCK | O_CLOEXEC));
		for (int i = 0; i < 2; i++)
			shot_at(hive, HIVE_WORKER_NONE, leave_things, fds);
		CHECK_EQ(write(fds[0][1], "unread", 6), 6);
		CHECK_OK(shutdown(fds[1][1], SHUT_RDWR)); /* hung up */
		CHECK_OK(close(fds[2][0]));               /* gone behind its back */
		CHECK_OK(close(fds[3][1]));               /* hung up */
		CHECK(shot_restless(hive) < SHOT_RESTFUL);
		for (int i = 0; i < 3; i++)
			CHECK_OK(close(fds[i][1]));
		CHECK_OK(close(fds[3][0]));
		CHECK(shot_restless(hive) < SHOT_RESTFUL);
		CHECK_OK(close(fds[0][0]));
		CHECK_OK(close(fds[1][0]));
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- numbers ---- */

enum becomes { A_PAIR, A_PIPE, A_FILE, NOTHING, A_DUP, BECOMES };

struct number {
	struct shot shot;
	int fd;
	int r;
};

static void read_number(void *arg)
{
	struct number *n = arg;

	n->r = SHOT_CALL(hive_op_read(&n->shot.op, n->fd, &n->shot.byte, 1, -1, HIVE_FOREVER));
}

static int open_again(enum becomes what, int ends[2])
{
	ends[0] = ends[1] = -1;
	if (what == A_PAIR || what == A_DUP)
		net_pair(ends);
	else if (what == A_PIPE)
		CHECK_OK(pipe2(ends, O_NONBLOCK | O_CLOEXEC));
	else if (what == A_FILE)
		CHECK((ends[0] = open("/proc/self/stat", O_RDONLY | O_CLOEXEC)) >= 0);
	return ends[0];
}

/* Known to all workers, then closed, and opened as something else; then each of them reads. */
static void turn_into(struct hive *hive, const uint32_t *ids, int workers, enum becomes what)
{
	struct number numbers[3];
	int fds[2], ends[2], copy = -1;

	net_pair(fds);
	for (int i = 0; i < workers; i++) {
		numbers[i].fd = fds[0];
		shot_init(&numbers[i].shot, hive);
		shot_at(hive, ids[i], read_number, &numbers[i]);
		CHECK_OK(numbers[i].r);
		CHECK_OK(hive_op_cancel(&numbers[i].shot.op));
		CHECK_ERR(shot_wait(&numbers[i].shot), -ECANCELED);
	}
	if (what == A_DUP)
		copy = dup(fds[0]);
	CHECK_OK(close(fds[0]));
	open_again(what, ends);
	CHECK(what == NOTHING || ends[0] == fds[0]);
	for (int i = 0; i < workers; i++) {
		shot_again(&numbers[i].shot);
		shot_at(hive, ids[i], read_number, &numbers[i]);
		CHECK_OK(numbers[i].r);
	}
	for (int i = 0; i < workers && copy >= 0; i++)
		CHECK_EQ(write(fds[1], "o", 1), 1); /* that is not for them */
	for (int i = 0; i < workers && ends[1] >= 0; i++)
		CHECK_EQ(write(ends[1], "n", 1), 1);
	for (int i = 0; i < workers; i++) {
		CHECK_EQ(shot_end(&numbers[i].shot), what == NOTHING ? -EBADF : 1);
		CHECK(what == A_FILE || what == NOTHING || numbers[i].shot.byte == 'n');
	}
	CHECK_OK(close(fds[1]));
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			CHECK_OK(close(ends[i]));
	if (copy >= 0)
		CHECK_OK(close(copy));
	CHECK(shot_restless(hive) < SHOT_RESTFUL);
}

TEST(a_number_becomes_something_else)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 3, 1);
		uint32_t ids[4];

		CHECK_EQ(hive_workers(hive, ids, 4), 4);
		for (int what = 0; what < BECOMES; what++)
			for (int workers = 1; workers <= 3; workers += 2)
				turn_into(hive, ids, workers, (enum becomes)what);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- on_done closes what its neighbour in the same batch waits for, and the number is another descriptor's ----
 *
 * What its neighbour has got by then is its own, if the core is one that gets things by itself; nothing comes from the new one. */

struct neighbour {
	struct shot shot;
	struct neighbour *other;
	int fds[2], ends[2];
	bool closes;
};

static void close_the_other(struct shot *shot, int64_t result)
{
	struct neighbour *n = (struct neighbour *)(void *)shot, *other = n->other;

	if (result != 1 || !n->closes || !other->closes)
		return;
	other->closes = false; /* it comes second */
	CHECK_OK(close(other->fds[0]));
	net_pair(n->ends);
	CHECK_EQ(n->ends[0], other->fds[0]);
	CHECK_OK(hive_op_cancel(&other->shot.op));
}

static void both_read(void *arg)
{
	struct neighbour *n = arg;

	for (int i = 0; i < 2; i++)
		CHECK_OK(hive_op_recv(&n[i].shot.op, n[i].fds[0], &n[i].shot.byte, 1, HIVE_FOREVER));
	CHECK_EQ(write(n[0].fds[1], "0", 1), 1);
	CHECK_EQ(write(n[1].fds[1], "1", 1), 1);
}

TEST(a_neighbour_in_the_same_batch_loses_its_descriptor)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 0);
		bool native = net_is_native(core_names[core], HIVE_OP_RECV);

		for (int round = 0; round < 20; round++) {
			struct neighbour n[2] = { { .closes = true }, { .closes = true } };
			struct number after = { .r = -1 };
			int first;

			for (int i = 0; i < 2; i++) {
				shot_init(&n[i].shot, hive);
				n[i].shot.then = close_the_other;
				n[i].other = &n[1 - i];
				net_pair(n[i].fds);
			}
			shot_at(hive, HIVE_WORKER_NONE, both_read, n);
			for (int i = 0; i < 2; i++)
				shot_end(&n[i].shot);
			first = n[0].closes ? 0 : 1;
			CHECK_EQ(n[first].shot.result, 1);
			if (n[1 - first].shot.result == 1)
				CHECK(native && n[1 - first].shot.byte == '1' - first);
			else
				CHECK_ERR(n[1 - first].shot.result, -ECANCELED);
			shot_init(&after.shot, hive); /* the new one works */
			after.fd = n[first].ends[0];
			shot_at(hive, HIVE_WORKER_NONE, read_number, &after);
			CHECK_OK(after.r);
			CHECK_EQ(write(n[first].ends[1], "2", 1), 1);
			CHECK_EQ(shot_end(&after.shot), 1);
			CHECK_EQ(after.shot.byte, '2');
			net_close(n[first].ends);
			net_close(n[first].fds);
			CHECK_OK(close(n[1 - first].fds[1]));
		}
		real_end(hive, HIVE_DRAIN);
	}
}

/* An empty pipe that shall go to a file is waited for, not asked again and again. */
TEST(an_empty_pipe_to_a_file_is_waited_for)
{
	EACH_CORE(core)
	{
		struct hive *hive = net_start(core_names[core], 1, 1);
		char name[] = "/tmp/rophive.XXXXXX";
		int file = mkostemp(name, O_CLOEXEC), ends[2];
		struct shot shot;

		CHECK(file >= 0);
		CHECK_OK(unlink(name));
		CHECK_OK(pipe2(ends, O_NONBLOCK | O_CLOEXEC));
		shot_init(&shot, hive);
		CHECK_OK(hive_op_splice(&shot.op, ends[0], -1, file, 0, 10, HIVE_FOREVER));
		CHECK(shot_restless(hive) < SHOT_RESTFUL);
		CHECK_EQ(write(ends[1], "abc", 3), 3);
		CHECK_EQ(shot_end(&shot), 3);
		net_close(ends);
		CHECK_OK(close(file));
		real_end(hive, HIVE_DRAIN);
	}
}
