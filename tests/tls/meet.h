/* SPDX-License-Identifier: MIT */
#pragma once
/* Client and server on a pair of sockets, or with somebody between them. */
#include <rophive/tls.h>

#include "certs.h"
#include "support/net.h"

struct side {
	struct hive_tls_context *context;
	struct hive_tls *tls;
	int fd;
	const char *host; /* NULL: the server's side */
	int64_t deadline_ns;
	int result;
	char reason[256];
};

static inline struct hive_tls_context *context_make(const struct hive_tls_options *options)
{
	struct hive_tls_context *context;

	CHECK_OK(hive_tls_context_create(options, &context));
	return context;
}

/* With the certificate stem.pem. */
static inline struct hive_tls_context *context_server(const char *stem)
{
	char pem[64], key[64];

	certs_make();
	snprintf(pem, sizeof pem, "%s.pem", stem);
	snprintf(key, sizeof key, "%s.key", stem);
	return context_make(&(struct hive_tls_options){
		.server = true, .certificate_file = certs_path(pem), .key_file = certs_path(key) });
}

static inline struct hive_tls_context *context_client(void)
{
	certs_make();
	return context_make(&(struct hive_tls_options){ .ca_file = certs_path("ca.pem") });
}

static inline int side_shake(struct side *s)
{
	return s->host ? hive_tls_connect(s->tls, s->host, s->deadline_ns) : hive_tls_accept(s->tls, s->deadline_ns);
}

static inline int side_run(void *arg)
{
	struct side *s = arg;

	CHECK_OK(hive_tls_create(s->context, s->fd, &s->tls));
	s->result = side_shake(s);
	CHECK(hive_tls_reason(s->tls, s->reason, sizeof s->reason) >= 0);
	CHECK_EQ(s->reason[0] != 0, s->result != 0 && s->result != -ETIMEDOUT && s->result != -ECANCELED);
	return 0;
}

/* A handshake. How it went is in their results. */
static inline void meet(struct side *server, struct side *client)
{
	struct hive_fiber *other;
	int fds[2];

	net_pair(fds);
	server->fd = fds[0];
	client->fd = fds[1];
	server->deadline_ns = client->deadline_ns = real_patience();
	other = net_spawn(side_run, server);
	side_run(client);
	if (client->result < 0) /* else the server would wait for more */
		CHECK_OK(shutdown(client->fd, SHUT_WR));
	net_join(other);
}

static inline void meet_well(struct hive_tls_context *server_context, struct hive_tls_context *client_context,
                             struct side *server, struct side *client)
{
	*server = (struct side){ .context = server_context };
	*client = (struct side){ .context = client_context, .host = "localhost" };
	meet(server, client);
	if (server->result < 0 || client->result < 0)
		test_fail(__FILE__, __LINE__, "handshake: server %s %s, client %s %s", test_error(server->result),
		          server->reason, test_error(client->result), client->reason);
}

static inline void part(struct side *server, struct side *client)
{
	hive_tls_destroy(client->tls, HIVE_NOWAIT);
	hive_tls_destroy(server->tls, HIVE_NOWAIT);
}

/* Bytes that depend on where they are. */
static inline void pattern_fill(char *buffer, size_t bytes, uint64_t at)
{
	for (size_t i = 0; i < bytes; i++)
		buffer[i] = (char)((at + i) * UINT64_C(2654435761) >> 13);
}

static inline void pattern_check(const char *buffer, size_t bytes, uint64_t at)
{
	for (size_t i = 0; i < bytes; i++)
		if (buffer[i] != (char)((at + i) * UINT64_C(2654435761) >> 13))
			test_fail(__FILE__, __LINE__, "byte %llu is another one", (unsigned long long)(at + i));
}
