/* SPDX-License-Identifier: MIT */
/* Sockets and listeners that fibers on several workers use, at the same time and in turns, on each core. */
#include "base/atomic.h"
#include "support/net.h"

enum { WORKERS = 3, TURNS = 600, BYTES = 200000, CLIENTS = 200 };

static struct hive_fiber *spawn_at(uint32_t worker, hive_fiber_fn *fn, void *arg)
{
	struct hive_fiber_options there = { .worker = worker };
	struct hive_fiber *fiber;

	CHECK_OK(hive_spawn(hive_current(), fn, arg, &there, &fiber));
	return fiber;
}

/* As a fiber, with several workers. */
static void each(hive_fiber_fn *fn)
{
	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], WORKERS, 1);
		int result = -1;

		CHECK_OK(hive_block_on(hive, fn, NULL, HIVE_FOREVER, &result));
		CHECK_EQ(result, 0);
		real_end(hive, HIVE_DRAIN);
	}
}

static void io_workers(uint32_t ids[WORKERS])
{
	uint32_t all[WORKERS + 1];

	CHECK_EQ(hive_workers(hive_current(), all, WORKERS + 1), WORKERS + 1);
	memcpy(ids, all, WORKERS * sizeof *ids);
}

/* ---- one socket goes round ---- */

struct ring {
	int fds[2];
	uint32_t ids[WORKERS];
	struct hive_semaphore turns[WORKERS];
	bool reopens;
};

struct member {
	struct ring *ring;
	int index;
};

/* Each byte at another worker than the one before; now and then the number is another socket. */
static int go_round(void *arg)
{
	struct member *m = arg;
	struct ring *ring = m->ring;

	for (int i = m->index; i < TURNS; i += WORKERS) {
		unsigned char byte = (unsigned char)i, back = 0;

		CHECK_OK(hive_semaphore_acquire(&ring->turns[m->index], 1, HIVE_FOREVER));
		CHECK_EQ(hive_worker_current(), ring->ids[m->index]);
		CHECK_ERR(hive_recv(ring->fds[0], &back, 1, HIVE_NOWAIT), -ETIMEDOUT);
		CHECK_EQ(hive_send(ring->fds[1], &byte, 1, HIVE_FOREVER), 1);
		CHECK_EQ(hive_recv(ring->fds[0], &back, 1, HIVE_FOREVER), 1);
		CHECK_EQ(back, byte);
		if (ring->reopens && i % 5 == 0) {
			CHECK_OK(hive_close(ring->fds[0], HIVE_FOREVER));
			CHECK_OK(hive_close(ring->fds[1], HIVE_FOREVER));
			net_pair(ring->fds);
		}
		CHECK_OK(hive_semaphore_release(&ring->turns[(i + 1) % WORKERS], 1));
	}
	return 0;
}

static void ring_round(bool reopens)
{
	struct ring ring = { .reopens = reopens };
	struct member members[WORKERS];
	struct hive_fiber *fibers[WORKERS];

	net_pair(ring.fds);
	io_workers(ring.ids);
	for (int i = 0; i < WORKERS; i++)
		hive_semaphore_init(&ring.turns[i], i == 0);
	for (int i = 0; i < WORKERS; i++) {
		members[i] = (struct member){ &ring, i };
		fibers[i] = spawn_at(ring.ids[i], go_round, &members[i]);
	}
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(net_join(fibers[i]), 0);
	net_close(ring.fds);
}

static int rings(void *arg)
{
	(void)arg;
	ring_round(false);
	ring_round(true);
	return 0;
}

TEST(a_socket_goes_from_worker_to_worker)
{
	each(rings);
}

/* ---- at the same time ---- */

struct crowd {
	int fds[2];
	ATOMIC(uint64_t) sum;
	ATOMIC(uint32_t) bytes, sent;
};

static int take_some(void *arg)
{
	struct crowd *c = arg;
	unsigned char part[333];
	int64_t n;

	while ((n = hive_recv(c->fds[0], part, sizeof part, HIVE_FOREVER)) > 0)
		for (int i = 0; i < n; i++) {
			add_relaxed(&c->sum, (uint64_t)part[i]);
			add_relaxed(&c->bytes, 1u);
		}
	return (int)n;
}

static int give_some(void *arg)
{
	struct crowd *c = arg;
	uint32_t i;

	while ((i = add_relaxed(&c->sent, 1u)) < BYTES / 100) {
		unsigned char part[100];

		memset(part, (int)(i % 251), sizeof part);
		CHECK_OK(hive_send_all(c->fds[1], part, sizeof part, HIVE_FOREVER));
	}
	return 0;
}

/* Each byte is taken once, and its end is told to everybody. */
static int crowds(void *arg)
{
	struct hive_fiber *takers[2 * WORKERS], *givers[WORKERS];
	struct crowd c = { .sum = 0 };
	uint32_t ids[WORKERS];
	uint64_t sum = 0;

	(void)arg;
	net_pair(c.fds);
	io_workers(ids);
	for (int i = 0; i < 2 * WORKERS; i++)
		takers[i] = spawn_at(ids[i % WORKERS], take_some, &c);
	for (int i = 0; i < WORKERS; i++)
		givers[i] = spawn_at(ids[i], give_some, &c);
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(net_join(givers[i]), 0);
	CHECK_OK(hive_shutdown(c.fds[1], SHUT_WR, HIVE_FOREVER));
	for (int i = 0; i < 2 * WORKERS; i++)
		CHECK_EQ(net_join(takers[i]), 0);
	for (uint64_t i = 0; i < BYTES / 100; i++)
		sum += 100 * (i % 251);
	CHECK_EQ(load_relaxed(&c.bytes), BYTES);
	CHECK_EQ(load_relaxed(&c.sum), sum);
	net_close(c.fds);
	return 0;
}

TEST(several_workers_share_a_socket)
{
	each(crowds);
}

/* ---- listeners ---- */

struct house {
	int doors[WORKERS]; /* all the same, or several with one port */
	ATOMIC(uint32_t) guests[WORKERS];
};

struct porter {
	struct house *house;
	int index;
};

static int let_in(void *arg)
{
	struct porter *p = arg;
	char byte;
	int fd;

	while ((fd = hive_accept(p->house->doors[p->index], HIVE_FOREVER)) >= 0) {
		add_relaxed(&p->house->guests[p->index], 1u);
		CHECK_EQ(hive_recv(fd, &byte, 1, HIVE_FOREVER), 1);
		CHECK_EQ(hive_send(fd, &byte, 1, HIVE_FOREVER), 1);
		CHECK_OK(hive_close(fd, HIVE_FOREVER));
	}
	return fd;
}

static int visit(void *arg)
{
	int fd = hive_dial("127.0.0.1", *(uint16_t *)arg, NULL, HIVE_FOREVER);
	char byte = 0;

	CHECK(fd >= 0);
	CHECK_EQ(hive_send(fd, "v", 1, HIVE_FOREVER), 1);
	CHECK_EQ(hive_recv(fd, &byte, 1, HIVE_FOREVER), 1);
	CHECK_EQ(byte, 'v');
	CHECK_EQ(hive_recv(fd, &byte, 1, HIVE_FOREVER), 0);
	return close(fd);
}

static void open_doors(struct house *h, bool one, uint16_t *ret_port)
{
	struct hive_net_options shared = { .reuse_port = true };
	struct hive_address at;

	*ret_port = 0;
	for (int i = 0; i < WORKERS; i++) {
		h->doors[i] = one && i > 0 ? h->doors[0] : hive_listen("127.0.0.1", *ret_port, one ? NULL : &shared);
		CHECK(h->doors[i] >= 0);
		CHECK_OK(hive_address_of(h->doors[i], false, &at));
		*ret_port = hive_address_port(&at);
	}
}

/* One by one and many at a time: each is let in once, and nobody waits for ever. */
static void visit_house(bool one)
{
	struct house house = { .doors = { -1 } };
	struct porter porters[WORKERS];
	struct hive_fiber *fibers[WORKERS], *clients[CLIENTS];
	uint32_t ids[WORKERS], guests = 0;
	uint16_t port;

	open_doors(&house, one, &port);
	io_workers(ids);
	for (int i = 0; i < WORKERS; i++) {
		porters[i] = (struct porter){ &house, i };
		fibers[i] = spawn_at(ids[i], let_in, &porters[i]);
	}
	for (int i = 0; i < CLIENTS; i++)
		CHECK_OK(visit(&port));
	for (int i = 0; i < CLIENTS; i++)
		clients[i] = net_spawn(visit, &port);
	for (int i = 0; i < CLIENTS; i++)
		CHECK_EQ(net_join(clients[i]), 0);
	for (int i = 0; i < WORKERS; i++) {
		CHECK_OK(hive_fiber_cancel(fibers[i]));
		CHECK_EQ(net_join(fibers[i]), -ECANCELED);
		guests += load_relaxed(&house.guests[i]);
		if (!one)
			CHECK(load_relaxed(&house.guests[i]) > 0); /* by a hash of addresses: not one in 2^100 misses */
	}
	for (int i = 0; i < (one ? 1 : WORKERS); i++)
		CHECK_OK(close(house.doors[i]));
	CHECK_EQ(guests, 2 * CLIENTS);
}

static int one_door(void *arg)
{
	(void)arg;
	visit_house(true);
	return 0;
}

static int three_doors(void *arg)
{
	(void)arg;
	visit_house(false);
	return 0;
}

TEST(several_workers_share_a_listener)
{
	each(one_door);
}

TEST(several_listeners_share_a_port)
{
	each(three_doors);
}
