/* SPDX-License-Identifier: MIT */
#pragma once
/* Somebody between client and server, who passes bytes on in small pieces, changes them, or breaks the connection. */
#include "base/atomic.h"
#include "meet.h"

struct relay {
	int from, to;
	size_t piece;           /* so many at a time */
	int64_t limit;          /* after so many the connection breaks; -1: never */
	int64_t change;         /* this one becomes another; -1: none */
	ATOMIC(int64_t) passed; /* or about to be */
};

/* Both ends are told by a reset, as far as such sockets know one. */
static inline int relay_break(struct relay *r)
{
	shutdown(r->from, SHUT_RDWR);
	shutdown(r->to, SHUT_RDWR);
	return 0;
}

static inline int relay_run(void *arg)
{
	struct relay *r = arg;
	char buffer[4096];

	for (;;) {
		size_t most = r->piece < sizeof buffer ? r->piece : sizeof buffer;
		int64_t n, passed = load_relaxed(&r->passed);

		if (r->limit >= 0 && passed + (int64_t)most > r->limit)
			most = (size_t)(r->limit - passed);
		if (most == 0)
			return relay_break(r);
		n = hive_recv(r->from, buffer, most, HIVE_FOREVER);
		if (n <= 0) {
			shutdown(r->to, SHUT_WR);
			return 0;
		}
		if (r->change >= passed && r->change < passed + n)
			buffer[r->change - passed] ^= 0x55;
		store_relaxed(&r->passed, passed + n);
		if (hive_send_all(r->to, buffer, (size_t)n, HIVE_FOREVER) < 0)
			return 0;
	}
}

struct line { /* server, relay, client */
	struct side server, client;
	struct relay up, down; /* to the server, from it */
	int middle[2];
	int64_t patience_ns; /* of the client; 0: long */
	struct hive_fiber *fibers[3];
};

/* The handshake has begun, its results are there after line_join(). */
static inline void line_start(struct line *l, struct hive_tls_context *server, struct hive_tls_context *client)
{
	int one[2], two[2];

	net_pair(one);
	net_pair(two);
	l->middle[0] = one[1];
	l->middle[1] = two[1];
	l->up.from = l->down.to = one[1];
	l->up.to = l->down.from = two[1];
	l->server = (struct side){ .context = server, .fd = two[0], .deadline_ns = real_patience() };
	l->client = (struct side){
		.context = client, .fd = one[0], .host = "localhost", .deadline_ns = real_patience()
	};
	if (l->patience_ns)
		l->client.deadline_ns = hive_deadline(NULL, l->patience_ns);
	l->fibers[0] = net_spawn(relay_run, &l->up);
	l->fibers[1] = net_spawn(relay_run, &l->down);
	l->fibers[2] = net_spawn(side_run, &l->server);
	side_run(&l->client);
}

static inline void line_end(struct line *l)
{
	hive_tls_destroy(l->client.tls, real_patience());
	hive_tls_destroy(l->server.tls, real_patience());
	net_join(l->fibers[0]);
	net_join(l->fibers[1]);
	net_close(l->middle);
}
