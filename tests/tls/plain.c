/* SPDX-License-Identifier: MIT */
/* A peer that calls OpenSSL itself, in a thread that blocks, and does what our side never begins: new keys, a second handshake, a chain
 * of certificates that no block holds.                                                                                     */
#include <pthread.h>

#include <openssl/ssl.h>

#include "meet.h"

struct peer {
	pthread_t thread;
	int fd;
	int version;
	void (*talk)(SSL *ssl);  /* NULL: the handshake fails */
	const char *certificate; /* NULL: it is the client */
};

static void *peer_run(void *arg)
{
	struct peer *p = arg;
	SSL_CTX *ctx = SSL_CTX_new(p->certificate ? TLS_server_method() : TLS_client_method());
	SSL *ssl;

	CHECK(ctx);
	SSL_CTX_set_max_proto_version(ctx, p->version);
	if (p->certificate) {
		CHECK_EQ(SSL_CTX_use_certificate_chain_file(ctx, p->certificate), 1);
		CHECK_EQ(SSL_CTX_use_PrivateKey_file(ctx, certs_path("server.key"), SSL_FILETYPE_PEM), 1);
	}
	ssl = SSL_new(ctx);
	CHECK(ssl && SSL_set_fd(ssl, p->fd) == 1);
	CHECK_EQ((p->certificate ? SSL_accept(ssl) : SSL_connect(ssl)) == 1, p->talk != NULL);
	if (p->talk)
		p->talk(ssl);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	CHECK_OK(close(p->fd));
	return NULL;
}

/* Our end; the other one has begun. */
static int peer_start(struct peer *p)
{
	int fds[2];

	certs_make();
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	CHECK_OK(fcntl(fds[0], F_SETFL, O_NONBLOCK));
	p->fd = fds[1];
	CHECK_OK(pthread_create(&p->thread, NULL, peer_run, p));
	return fds[0];
}

/* ---- our server: an echo ---- */

static int echo(void *arg)
{
	struct side *s = arg;
	char buffer[2000];
	int64_t n;

	side_run(s);
	CHECK_OK(s->result);
	while ((n = hive_tls_read(s->tls, buffer, sizeof buffer, real_patience())) > 0)
		CHECK_OK(hive_tls_write_all(s->tls, buffer, (size_t)n, real_patience()));
	s->result = (int)n;
	hive_tls_destroy(s->tls, real_patience());
	return 0;
}

static int echo_to(void (*talk)(SSL *), int version)
{
	int result = 0;

	for (int i = 0; i < core_count(); i++) {
		struct hive *hive = net_start(core_names[i], 2, 1);
		struct peer peer = { .version = version, .talk = talk };
		struct side side = { .context = context_server("server"), .deadline_ns = real_patience() };

		side.fd = peer_start(&peer);
		CHECK_OK(hive_block_on(hive, echo, &side, HIVE_FOREVER, NULL));
		result = side.result;
		CHECK_OK(pthread_join(peer.thread, NULL));
		real_end(hive, HIVE_DRAIN);
		hive_tls_context_destroy(side.context);
	}
	return result;
}

static void hear(SSL *ssl, const char *text)
{
	char buffer[100];

	CHECK_EQ(SSL_write(ssl, text, (int)strlen(text)), strlen(text));
	CHECK_EQ(SSL_read(ssl, buffer, sizeof buffer), strlen(text));
	CHECK_EQ(memcmp(buffer, text, strlen(text)), 0);
}

static void change_keys(SSL *ssl)
{
	for (int i = 0; i < 50; i++) {
		hear(ssl, "before");
		CHECK_EQ(SSL_key_update(ssl, i % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED), 1);
		hear(ssl, "after");
	}
	CHECK_EQ(SSL_shutdown(ssl), 0);
	CHECK_EQ(SSL_shutdown(ssl), 1);
}

TEST(keys_change_in_the_middle)
{
	CHECK_EQ(echo_to(change_keys, TLS1_3_VERSION), 0);
}

/* It is refused by an alert, although our side has nothing to write: the reader answers. */
static void begin_again(SSL *ssl)
{
	char byte;

	hear(ssl, "before");
	CHECK_EQ(SSL_renegotiate(ssl), 1);
	CHECK(SSL_do_handshake(ssl) <= 0 || SSL_read(ssl, &byte, 1) <= 0);
}

TEST(a_second_handshake_is_refused)
{
	CHECK(echo_to(begin_again, TLS1_2_VERSION) < 0);
}

static void leave(SSL *ssl)
{
	hear(ssl, "hello");
}

TEST(a_peer_that_leaves_without_a_word)
{
	CHECK_EQ(echo_to(leave, TLS1_2_VERSION), -ENODATA);
	CHECK_EQ(echo_to(leave, TLS1_3_VERSION), -ENODATA);
}

static int refuse_old(void *arg)
{
	struct side *s = arg;

	side_run(s);
	CHECK_EQ(s->result, -EPROTO);
	CHECK_STR(s->reason, "unsupported protocol");
	CHECK_OK(hive_tls_destroy(s->tls, HIVE_NOWAIT));
	return 0;
}

TEST(a_version_that_is_too_old_is_refused)
{
	struct hive *hive = net_start("epoll", 1, 1);

	for (int i = 0; i < 2; i++) {
		struct peer peer = { .version = TLS1_2_VERSION };
		struct side side = { .host = i ? "localhost" : NULL, .deadline_ns = real_patience() };
		struct hive_tls_options options = { .server = i == 0, .minimum = 13 };

		certs_make();
		options.certificate_file = i ? NULL : certs_path("server.pem");
		options.key_file = i ? NULL : certs_path("server.key");
		peer.certificate = i ? certs_path("server.pem") : NULL;
		side.context = context_make(&options);
		side.fd = peer_start(&peer);
		if (i == 0)
			CHECK_OK(hive_block_on(hive, refuse_old, &side, HIVE_FOREVER, NULL));
		else {
			/* there the server refuses, as it cannot do what the client asks for */
			CHECK_OK(hive_tls_create(side.context, side.fd, &side.tls));
			CHECK_ERR(side_shake(&side), -EACCES);
			CHECK_OK(hive_tls_destroy(side.tls, HIVE_NOWAIT));
		}
		CHECK_OK(pthread_join(peer.thread, NULL));
		hive_tls_context_destroy(side.context);
	}
	real_end(hive, HIVE_DRAIN);
}

/* ---- more than a block holds, in one flight ---- */

enum { ISSUERS = 80 };

static const char *long_chain(void)
{
	FILE *to = fopen(certs_path("long.pem"), "w");

	CHECK(to);
	for (int i = 0; i < ISSUERS; i++) {
		FILE *from = fopen(certs_path(i ? "ca.pem" : "server.pem"), "r");
		int c;

		CHECK(from);
		while ((c = getc(from)) != EOF)
			putc(c, to);
		fclose(from);
	}
	fclose(to);
	return certs_path("long.pem");
}

static int meet_long(void *arg)
{
	struct hive_tls_context *server_context = context_make(&(struct hive_tls_options){
		.server = true, .certificate_file = long_chain(), .key_file = certs_path("server.key") });
	struct hive_tls_context *client_context = context_client();
	struct side server, client;

	(void)arg;
	meet_well(server_context, client_context, &server, &client);
	part(&server, &client);
	hive_tls_context_destroy(server_context);
	hive_tls_context_destroy(client_context);
	return 0;
}

TEST(a_chain_longer_than_a_block)
{
	certs_make();
	net_each(meet_long);
}

static void say(SSL *ssl)
{
	CHECK_EQ(SSL_write(ssl, "hello", 5), 5);
	CHECK_EQ(SSL_shutdown(ssl), 0);
	CHECK_EQ(SSL_shutdown(ssl), 1);
}

static int listen_to(void *arg)
{
	struct side *s = arg;
	char buffer[8];

	side_run(s);
	CHECK_OK(s->result);
	CHECK_OK(hive_tls_read_all(s->tls, buffer, 5, real_patience()));
	CHECK_EQ(hive_tls_read(s->tls, buffer, 1, real_patience()), 0);
	CHECK_OK(hive_tls_destroy(s->tls, real_patience()));
	return 0;
}

TEST(a_plain_server_with_a_long_chain)
{
	for (int i = 0; i < 2 * core_count(); i++) {
		struct hive *hive = net_start(core_names[i / 2], 1, 1);
		struct peer peer = { .version = i % 2 ? TLS1_3_VERSION : TLS1_2_VERSION, .talk = say };
		struct side side = { .host = "localhost", .deadline_ns = real_patience() };

		side.context = context_client();
		peer.certificate = long_chain();
		side.fd = peer_start(&peer);
		CHECK_OK(hive_block_on(hive, listen_to, &side, HIVE_FOREVER, NULL));
		CHECK_OK(pthread_join(peer.thread, NULL));
		real_end(hive, HIVE_DRAIN);
		hive_tls_context_destroy(side.context);
	}
}
