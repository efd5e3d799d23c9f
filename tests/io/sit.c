/* SPDX-License-Identifier: MIT */
/* Fibers that wait for a socket themselves, again and again, on each core: whatever ends a wait, the next one is like the first. */
#include "base/atomic.h"
#include "base/rng.h"
#include "support/net.h"

struct end {
	int fd;
	int64_t deadline_ns;
	char byte;
};

static int receive(void *arg)
{
	struct end *end = arg;

	return (int)hive_recv(end->fd, &end->byte, 1, end->deadline_ns);
}

/* From here on it has waited here before. */
static void make_used(int fds[2])
{
	char byte;

	CHECK_OK(hive_socket_pair(false, fds));
	for (int i = 0; i < 2; i++)
		CHECK_ERR(hive_recv(fds[i], &byte, 1, hive_deadline(NULL, HIVE_US(10))), -ETIMEDOUT);
}

static void send_byte(int fd, char byte)
{
	CHECK_EQ(hive_send(fd, &byte, 1, HIVE_FOREVER), 1);
}

/* ---- a name that is left behind ---- */

static int give_up(void *arg)
{
	uint64_t rng = 3;
	int fds[2];

	(void)arg;
	make_used(fds);
	for (int i = 0; i < 200; i++) {
		struct end end = { fds[0], HIVE_FOREVER, 0 };
		struct hive_fiber *fiber;
		int how = (int)(rng_next(&rng) % 4);

		if (how == 0) {
			CHECK_ERR(hive_recv(fds[0], &end.byte, 1, hive_deadline(NULL, HIVE_US(20))), -ETIMEDOUT);
		} else if (how == 1) {
			fiber = net_spawn(receive, &end);
			if (rng_next(&rng) % 2)
				CHECK_OK(hive_yield());
			CHECK_OK(hive_fiber_cancel(fiber));
			CHECK_EQ(net_join(fiber), -ECANCELED);
		} else {
			fiber = net_spawn(receive, &end);
			if (how == 3)
				CHECK_OK(hive_yield());
			send_byte(fds[1], (char)i);
			CHECK_EQ(net_join(fiber), 1);
			CHECK_EQ(end.byte, (char)i);
		}
	}
	send_byte(fds[1], 'x'); /* told to nobody, and there all the same */
	CHECK_OK(hive_yield());
	CHECK_EQ(receive(&(struct end){ fds[0], HIVE_FOREVER, 0 }), 1);
	net_close(fds);
	return 0;
}

TEST(a_wait_that_ended_otherwise_takes_nothing_with_it)
{
	net_each(give_up);
}

/* ---- both directions ---- */

enum { LARGE = 4 << 20 };

static int send_large(void *arg)
{
	char *bytes = calloc(1, LARGE);
	int r = bytes ? hive_send_all(*(int *)arg, bytes, LARGE, HIVE_FOREVER) : -ENOMEM;

	free(bytes);
	return r;
}

/* One fiber waits to send, another one to receive, at the same descriptor. */
static int duplex(void *arg)
{
	struct hive_fiber *writer, *reader;
	struct end end = { .deadline_ns = HIVE_FOREVER };
	char *bytes = malloc(LARGE);
	int fds[2];

	(void)arg;
	CHECK(bytes);
	for (int round = 0; round < 6; round++) {
		make_used(fds);
		end.fd = fds[0];
		writer = net_spawn(send_large, &fds[0]);
		reader = net_spawn(receive, &end);
		for (int i = 0; i < 10; i++)
			CHECK_OK(hive_yield());
		if (round % 2)
			send_byte(fds[1], 'r');
		CHECK_OK(hive_recv_all(fds[1], bytes, LARGE, HIVE_FOREVER));
		CHECK_EQ(net_join(writer), 0);
		if (round % 2 == 0)
			send_byte(fds[1], 'r');
		CHECK_EQ(net_join(reader), 1);
		CHECK_EQ(end.byte, 'r');
		net_close(fds);
	}
	free(bytes);
	return 0;
}

TEST(one_waits_to_send_and_another_to_receive)
{
	net_each(duplex);
}

/* ---- several at one end ---- */

enum { CROWD = 5 };

static int crowd(void *arg)
{
	struct end ends[CROWD];
	struct hive_fiber *fibers[CROWD];
	int fds[2], sum = 0;

	(void)arg;
	make_used(fds);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < CROWD; i++) {
			ends[i] = (struct end){ fds[0], HIVE_FOREVER, 0 };
			fibers[i] = net_spawn(receive, &ends[i]);
		}
		if (round % 2)
			CHECK_OK(hive_yield());
		for (int i = 0; i < CROWD; i++)
			send_byte(fds[1], (char)(1 << i));
		sum = 0;
		for (int i = 0; i < CROWD; i++) {
			CHECK_EQ(net_join(fibers[i]), 1);
			sum |= ends[i].byte;
		}
		CHECK_EQ(sum, (1 << CROWD) - 1); /* each byte once */
	}
	net_close(fds);
	return 0;
}

TEST(each_byte_goes_to_one_of_several)
{
	net_each(crowd);
}

/* First come, first served, however they wait: with one message at a time each has its turn. */
enum { TURNS = 20 };

static struct {
	int who[TURNS];
	int count;
} turns;

struct one_of_two {
	int fd, number;
};

static int take_turns(void *arg)
{
	struct one_of_two *me = arg;
	char byte;

	for (int i = 0; i < TURNS / 2; i++) {
		CHECK_EQ(hive_recv(me->fd, &byte, 1, HIVE_FOREVER), 1);
		turns.who[turns.count++] = me->number;
	}
	return 0;
}

static int line_up(void *arg)
{
	struct one_of_two two[2];
	struct hive_fiber *fibers[2];
	int fds[2];

	(void)arg;
	make_used(fds);
	turns.count = 0;
	for (int i = 0; i < 2; i++) {
		two[i] = (struct one_of_two){ fds[0], i };
		fibers[i] = net_spawn(take_turns, &two[i]);
		for (int n = 0; n < 3; n++)
			CHECK_OK(hive_yield());
	}
	for (int i = 0; i < TURNS; i++) {
		send_byte(fds[1], 'x');
		while (turns.count == i)
			CHECK_OK(hive_yield());
		for (int n = 0; n < 3; n++) /* whoever has got it waits again */
			CHECK_OK(hive_yield());
	}
	for (int i = 0; i < 2; i++)
		CHECK_EQ(net_join(fibers[i]), 0);
	for (int i = 0; i < TURNS; i++)
		CHECK_EQ(turns.who[i], i % 2);
	net_close(fds);
	return 0;
}

static void on_one_worker(hive_fiber_fn *fn)
{
	const struct hive_core_ops *core;

	for (int i = 0; i < core_count(); i++) {
		struct hive *hive;
		int result = -1;

		CHECK_OK(hive_core_find(core_names[i], &core));
		if (core->native_ops >> HIVE_OP_RECV & 1)
			continue; /* the kernel has its own order, and the socket by then, not its number */
		hive = net_start(core_names[i], 1, 1);
		CHECK_OK(hive_block_on(hive, fn, NULL, HIVE_FOREVER, &result));
		CHECK_EQ(result, 0);
		real_end(hive, HIVE_DRAIN);
	}
}

TEST(first_come_first_served)
{
	on_one_worker(line_up);
}

/* ---- ends ---- */

static int close_it(void *arg)
{
	struct end end = { .deadline_ns = HIVE_FOREVER };
	struct hive_fiber *fiber;
	int fds[2], r;

	(void)arg;
	for (int round = 0; round < 10; round++) {
		make_used(fds);
		end.fd = fds[0];
		fiber = net_spawn(receive, &end);
		CHECK_OK(hive_yield());
		if (round % 2) { /* of the peer */
			CHECK_OK(hive_close(fds[1], HIVE_FOREVER));
			CHECK_EQ(net_join(fiber), 0);
			CHECK_OK(hive_close(fds[0], HIVE_FOREVER));
		} else {
			CHECK_OK(hive_shutdown(fds[0], SHUT_RDWR, HIVE_FOREVER));
			r = net_join(fiber);
			CHECK(r == 0);
			net_close(fds);
		}
	}
	return 0;
}

TEST(an_end_is_told_to_who_waits)
{
	net_each(close_it);
}

/* Its number belongs to somebody else by then, whose bytes are not his. */
static int lose_it(void *arg)
{
	struct end end = { .deadline_ns = HIVE_FOREVER };
	struct hive_fiber *fiber;
	int fds[2], again[2];
	char byte = 0;

	(void)arg;
	for (int round = 0; round < 10; round++) {
		make_used(fds);
		end.fd = fds[0];
		fiber = net_spawn(receive, &end);
		for (int i = 0; i < 3; i++)
			CHECK_OK(hive_yield());
		CHECK_OK(hive_close(fds[0], HIVE_FOREVER));
		CHECK_OK(hive_socket_pair(false, again));
		CHECK_EQ(again[0], fds[0]);
		send_byte(again[1], 'y');
		CHECK_EQ(net_join(fiber), -EBADF);
		CHECK_EQ(hive_recv(again[0], &byte, 1, HIVE_FOREVER), 1);
		CHECK_EQ(byte, 'y');
		CHECK_OK(hive_close(fds[1], HIVE_FOREVER));
		net_close(again);
	}
	return 0;
}

/* One worker: with more of them nobody could say whether it waited before its number was closed. */
TEST(who_waits_loses_the_number_and_nothing_of_the_next_one)
{
	on_one_worker(lose_it);
}

/* Both are called by one turn. The first closes what the second waits for, and the number is another descriptor's, with bytes in it. */
struct neighbour {
	struct neighbour *other;
	struct hive_fiber *fiber;
	int fds[2], again[2];
	bool plainly, first;
	int64_t result;
	char byte;
};

static void close_the_other(struct neighbour *me)
{
	int fd = me->other->fds[0];

	if (me->plainly) {
		CHECK_OK(hive_fiber_cancel(me->other->fiber)); /* as one has to, before */
		CHECK_OK(close(fd));
		net_pair(me->again);
	} else {
		CHECK_OK(hive_close(fd, HIVE_FOREVER));
		CHECK_OK(hive_socket_pair(false, me->again));
		send_byte(me->again[1], 'y');
	}
	CHECK_EQ(me->again[0], fd);
}

static int sit_beside(void *arg)
{
	struct neighbour *me = arg;

	me->result = hive_recv(me->fds[0], &me->byte, 1, HIVE_FOREVER);
	me->first = me->other->fds[0] >= 0 && !me->other->first;
	if (me->first)
		close_the_other(me);
	return 0;
}

static void sit_together(bool plainly)
{
	struct neighbour n[2] = { { .plainly = plainly }, { .plainly = plainly } }, *first;
	char byte = 0;

	for (int i = 0; i < 2; i++) {
		make_used(n[i].fds);
		n[i].other = &n[1 - i];
	}
	for (int i = 0; i < 2; i++)
		n[i].fiber = net_spawn(sit_beside, &n[i]);
	for (int i = 0; i < 3; i++)
		CHECK_OK(hive_yield());
	CHECK_EQ(write(n[0].fds[1], "0", 1), 1);
	CHECK_EQ(write(n[1].fds[1], "1", 1), 1);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(net_join(n[i].fiber), 0);
	first = n[0].first ? &n[0] : &n[1];
	CHECK(first->first && !first->other->first);
	CHECK_EQ(first->result, 1);
	CHECK_EQ(first->byte, '0' + (first - n));
	if (first->other->result == 1) /* an operation has got it in the turn */
		CHECK_EQ(first->other->byte, '0' + (first->other - n));
	else
		CHECK_ERR(first->other->result, plainly ? -ECANCELED : -EBADF);
	if (plainly)
		send_byte(first->again[1], 'y');
	CHECK_EQ(hive_recv(first->again[0], &byte, 1, HIVE_FOREVER), 1);
	CHECK_EQ(byte, 'y');
	net_close(first->fds);
	net_close(first->again);
	CHECK_OK(close(first->other->fds[1]));
}

static int lose_it_to_a_neighbour(void *arg)
{
	(void)arg;
	for (int round = 0; round < 20; round++)
		sit_together(round % 2);
	return 0;
}

TEST(a_neighbour_of_the_same_turn_closes_it_and_the_number_is_anothers)
{
	on_one_worker(lose_it_to_a_neighbour);
}

/* ---- a worker leaves ---- */

enum { LEFT = 20 };

static ATOMIC(uint32_t) waiting;

static int receive_twice(void *arg)
{
	struct end *end = arg;

	CHECK_ERR(hive_recv(end->fd, &end->byte, 1, hive_deadline(NULL, HIVE_US(10))), -ETIMEDOUT);
	add_release(&waiting, 1u);
	return receive(end);
}

static struct {
	struct end ends[LEFT];
	struct hive_fiber *fibers[LEFT];
	int peers[LEFT];
} left;

static int wait_for_them(void *arg)
{
	(void)arg;
	for (int i = 0; i < LEFT; i++) {
		send_byte(left.peers[i], (char)i);
		CHECK_EQ(net_join(left.fibers[i]), 1);
		CHECK_EQ(left.ends[i].byte, (char)i);
		CHECK_OK(close(left.peers[i]));
		CHECK_OK(close(left.ends[i].fd));
	}
	return 0;
}

TEST(those_who_wait_at_a_worker_that_leaves_wait_elsewhere)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 1, 1);
		struct hive_worker_options options = { 0 };
		uint32_t second;
		int fds[2], result = -1;

		CHECK_OK(hive_core_find(core_names[i], &options.core));
		CHECK_OK(hive_attach(hive, &options, &second));
		store_relaxed(&waiting, 0u);
		for (int n = 0; n < LEFT; n++) {
			struct hive_fiber_options there = { .worker = second };

			net_pair(fds);
			left.ends[n] = (struct end){ fds[0], HIVE_FOREVER, 0 };
			left.peers[n] = fds[1];
			CHECK_OK(hive_spawn(hive, receive_twice, &left.ends[n], &there, &left.fibers[n]));
		}
		WAIT_UNTIL(load_acquire(&waiting) == LEFT);
		CHECK_OK(hive_detach(hive, second, HIVE_FOREVER));
		CHECK_OK(hive_block_on(hive, wait_for_them, NULL, HIVE_FOREVER, &result));
		CHECK_EQ(result, 0);
		real_end(hive, HIVE_DRAIN);
	}
}

/* ---- without memory ---- */

enum { DELAYED_MOST = 4096 };

/* The core epoll, which may have lost what it knew, and take no more. */
static struct hive_core_ops forgetful;
static const struct hive_core_ops *epoll;
static bool forgets, no_memory;

static int open_forgetful(void *arg, struct hive_core **ret_core)
{
	int r = epoll->open(arg, ret_core);

	if (r == 0)
		(*ret_core)->ops = &forgetful;
	return r;
}

static int add_forgetful(struct hive_core *core, struct hive_source *source)
{
	return forgets ? -ENOSPC : epoll->add(core, source);
}

static int modify_forgetful(struct hive_core *core, struct hive_source *source)
{
	return forgets ? -ENOENT : epoll->modify(core, source);
}

static void *allocate(void *arg, void *old, size_t bytes)
{
	(void)arg;
	if (bytes == 0) {
		free(old);
		return NULL;
	}
	return no_memory ? NULL : realloc(old, bytes);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* The doubt of earlier waits is gone, and there is no memory for that of the next one: it is looked at at once, and is in vain. */
static int wait_in_vain(void *arg)
{
	static uint64_t posts[DELAYED_MOST];
	char byte;
	int fds[2], n = 0;

	(void)arg;
	make_used(fds);
	CHECK_OK(hive_sleep(HIVE_MS(400)));
	no_memory = true;
	while (n < DELAYED_MOST && hive_post_self_after(HIVE_S(1000), nothing, NULL, &posts[n]) == 0)
		n++;
	CHECK(n < DELAYED_MOST);
	forgets = true;
	CHECK_ERR(hive_recv(fds[0], &byte, 1, HIVE_FOREVER), -ENOSPC);
	forgets = no_memory = false;
	while (n-- > 0)
		CHECK_OK(hive_post_cancel(hive_current(), posts[n]));
	net_close(fds);
	return 0;
}

TEST(who_is_called_before_he_waits_goes_on)
{
	struct hive_worker_options worker = { .core = &forgetful };
	struct hive_host host = { .allocate = allocate };
	struct hive *hive;
	int result = -1;

	CHECK_OK(hive_core_find("epoll", &epoll));
	forgetful = *epoll;
	forgetful.open = open_forgetful;
	forgetful.add = add_forgetful;
	forgetful.modify = modify_forgetful;
	hive = real_start((struct hive_options){ .io_workers = 1, .io = &worker, .host = &host });
	CHECK_OK(hive_block_on(hive, wait_in_vain, NULL, HIVE_FOREVER, &result));
	CHECK_EQ(result, 0);
	real_end(hive, HIVE_DRAIN);
}
