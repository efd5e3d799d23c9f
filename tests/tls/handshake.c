/* SPDX-License-Identifier: MIT */
/* Handshakes: what is agreed upon, and who is refused, on each core. */
#include "meet.h"

/* ---- what both agree upon ---- */

static int agree(void *arg)
{
	struct hive_tls_context *server_context, *client_context;
	struct hive_tls_info ours, theirs;
	struct side server, client;
	char buffer[16];

	(void)arg;
	certs_make();
	server_context = context_make(&(struct hive_tls_options){ .server = true,
	                                                          .certificate_file = certs_path("server.pem"),
	                                                          .key_file = certs_path("server.key"),
	                                                          .alpn = "h2,http/1.1" });
	client_context = context_make(
		&(struct hive_tls_options){ .ca_file = certs_path("ca.pem"), .alpn = "http/1.0,http/1.1,h2" });
	meet_well(server_context, client_context, &server, &client);
	CHECK_OK(hive_tls_info_read(client.tls, &ours));
	CHECK_OK(hive_tls_info_read(server.tls, &theirs));
	CHECK_STR(ours.version, "TLSv1.3");
	CHECK_STR(ours.cipher, theirs.cipher);
	CHECK_STR(ours.alpn, "h2"); /* as the server likes it */
	CHECK_STR(theirs.alpn, "h2");
	CHECK_STR(theirs.host, "localhost");
	CHECK_STR(ours.subject, "CN=server");
	CHECK_STR(ours.issuer, "CN=authority");
	CHECK(ours.certified && ours.verified && !theirs.certified && !theirs.verified);
	CHECK_EQ(ours.not_after_s - ours.not_before_s, 2 * CERT_DAY);
	CHECK_OK(hive_tls_write_all(client.tls, "question", 8, real_patience()));
	CHECK_OK(hive_tls_read_all(server.tls, buffer, 8, real_patience()));
	CHECK_EQ(memcmp(buffer, "question", 8), 0);
	CHECK_OK(hive_tls_write_all(server.tls, "answer", 6, real_patience()));
	CHECK_OK(hive_tls_read_all(client.tls, buffer, 6, real_patience()));
	CHECK_EQ(memcmp(buffer, "answer", 6), 0);
	CHECK_ERR(hive_tls_connect(client.tls, "localhost", HIVE_FOREVER), -EISCONN);
	CHECK_ERR(hive_tls_accept(client.tls, HIVE_FOREVER), -EINVAL);
	hive_tls_context_destroy(server_context); /* they live as long as somebody uses them */
	hive_tls_context_destroy(client_context);
	part(&server, &client);
	return 0;
}

TEST(both_sides_agree)
{
	net_each(agree);
}

static int choose(void *arg)
{
	static const struct {
		const char *host, *subject;
	} known[] = { { "one.test", "CN=server" },     { "two.test", "CN=second" }, { "www.two.test", "CN=second" },
		      { "two.test.", "CN=second" },    { "TWO.test", "CN=second" }, { "127.0.0.1", "CN=server" },
		      { "www.localhost", "CN=server" } };
	struct hive_tls_context *server_context = context_server("server"), *client_context = context_client();

	(void)arg;
	CHECK_OK(hive_tls_context_add(server_context, certs_path("second.pem"), certs_path("second.key")));
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		struct side server = { .context = server_context };
		struct side client = { .context = client_context, .host = known[i].host };
		struct hive_tls_info info;
		bool fits = strcmp(known[i].host, "www.localhost") != 0;

		meet(&server, &client);
		CHECK_EQ(client.result, fits ? 0 : -EKEYREJECTED);
		if (fits) {
			CHECK_OK(hive_tls_info_read(client.tls, &info));
			CHECK_STR(info.subject, known[i].subject);
			CHECK_OK(hive_tls_info_read(server.tls, &info));
			CHECK_EQ(info.host[0] == 0, strcmp(known[i].host, "127.0.0.1") == 0);
			CHECK_ERR(hive_tls_context_add(server_context, certs_path("self.pem"), NULL), -EBUSY);
		}
		part(&server, &client);
	}
	hive_tls_context_destroy(server_context);
	hive_tls_context_destroy(client_context);
	return 0;
}

TEST(the_name_chooses_the_certificate)
{
	net_each(choose);
}

/* ---- who is refused ---- */

struct bad {
	const char *stem, *host, *words, *alert;
};

static void refuse(const struct bad *bad, uint32_t minimum)
{
	struct hive_tls_context *server_context = context_server(bad->stem);
	struct hive_tls_context *client_context = context_make(
		&(struct hive_tls_options){ .ca_file = certs_path("ca.pem"), .minimum = minimum });
	struct hive_tls_context *blind = context_make(&(struct hive_tls_options){ .verify = HIVE_TLS_NEVER });
	struct side server = { .context = server_context };
	struct side client = { .context = client_context, .host = bad->host };
	struct hive_tls_info info;
	char byte;

	meet(&server, &client);
	if (client.result != -EKEYREJECTED || !strstr(client.reason, bad->words))
		test_fail(__FILE__, __LINE__, "%s: %s, %s", bad->stem, test_error(client.result), client.reason);
	CHECK_ERR(hive_tls_read(client.tls, &byte, 1, HIVE_FOREVER), -EKEYREJECTED);
	CHECK_ERR(hive_tls_connect(client.tls, bad->host, HIVE_FOREVER), -EKEYREJECTED);
	if (server.result != -EACCES || !strstr(server.reason, bad->alert))
		test_fail(__FILE__, __LINE__, "%s: %s, %s", bad->stem, test_error(server.result), server.reason);
	part(&server, &client);
	server = (struct side){ .context = server_context };
	client = (struct side){ .context = blind, .host = bad->host };
	meet(&server, &client);
	CHECK_EQ(client.result, 0);
	CHECK_OK(hive_tls_info_read(client.tls, &info));
	CHECK(info.certified && !info.verified);
	part(&server, &client);
	hive_tls_context_destroy(server_context);
	hive_tls_context_destroy(client_context);
	hive_tls_context_destroy(blind);
}

static int refuse_all(void *arg)
{
	static const struct bad list[] = {
		{ "server", "example.org", "hostname mismatch, wanted example.org", "bad certificate" },
		{ "server", "127.0.0.2", "IP address mismatch", "bad certificate" },
		{ "second", "a.b.two.test", "hostname mismatch", "bad certificate" },
		{ "expired", "localhost", "expired", "certificate expired" },
		{ "future", "localhost", "not yet valid", "bad certificate" },
		{ "self", "localhost", "self-signed", "unknown CA" },
		{ "foreign", "localhost", "unable to get local issuer", "unknown CA" },
	};

	(void)arg;
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		refuse(&list[i], i % 2 ? 13 : 12);
	return 0;
}

TEST(a_certificate_that_is_not_good_is_refused)
{
	net_each(refuse_all);
}

/* The system's store does not have an authority that was made a moment ago. */
static int ask_the_system(void *arg)
{
	struct hive_tls_context *server_context = context_server("server"), *client_context = context_make(NULL);
	struct side server = { .context = server_context }, client = { .context = client_context, .host = "localhost" };

	(void)arg;
	meet(&server, &client);
	CHECK_EQ(client.result, -EKEYREJECTED);
	part(&server, &client);
	hive_tls_context_destroy(server_context);
	hive_tls_context_destroy(client_context);
	return 0;
}

TEST(whom_the_system_trusts_is_the_default)
{
	net_each(ask_the_system);
}

/* ---- clients with certificates ---- */

static int show_to(const char *host, enum hive_tls_verify verify, const char *stem, struct side *server,
                   struct side *client)
{
	struct hive_tls_context *server_context = context_make(
		&(struct hive_tls_options){ .server = true,
	                                    .verify = verify,
	                                    .certificate_file = certs_path("server.pem"),
	                                    .key_file = certs_path("server.key"),
	                                    .ca_file = certs_path("ca.pem") });
	struct hive_tls_options options = { .ca_file = certs_path("ca.pem") };
	struct hive_tls_context *client_context;
	char pem[64], key[64], byte;

	if (stem) {
		snprintf(pem, sizeof pem, "%s.pem", stem);
		snprintf(key, sizeof key, "%s.key", stem);
		options.certificate_file = certs_path(pem);
		options.key_file = certs_path(key);
	}
	client_context = context_make(&options);
	CHECK_OK(hive_tls_context_add(server_context, certs_path("second.pem"), certs_path("second.key")));
	*server = (struct side){ .context = server_context };
	*client = (struct side){ .context = client_context, .host = host };
	meet(server, client);
	CHECK_OK(client->result); /* in TLS 1.3 it is through before the server has looked */
	hive_tls_context_destroy(server_context);
	hive_tls_context_destroy(client_context);
	if (server->result == 0)
		return 0;
	CHECK_ERR(hive_tls_read(client->tls, &byte, 1, real_patience()), -EACCES);
	return server->result;
}

static int show(enum hive_tls_verify verify, const char *stem, struct side *server, struct side *client)
{
	return show_to("localhost", verify, stem, server, client);
}

static int show_all(void *arg)
{
	struct side server, client;
	struct hive_tls_info info;

	(void)arg;
	certs_make();
	CHECK_OK(show(HIVE_TLS_ALWAYS, "client", &server, &client));
	CHECK_OK(hive_tls_info_read(server.tls, &info));
	CHECK(info.certified && info.verified);
	CHECK_STR(info.subject, "CN=client");
	part(&server, &client);
	CHECK_OK(show_to("two.test", HIVE_TLS_ALWAYS, "client", &server,
	                 &client)); /* whatever certificate it has chosen */
	part(&server, &client);
	CHECK_ERR(show_to("two.test", HIVE_TLS_ALWAYS, "foreign", &server, &client), -EKEYREJECTED);
	part(&server, &client);
	CHECK_ERR(show_to("two.test", HIVE_TLS_ALWAYS, NULL, &server, &client), -EKEYREJECTED);
	part(&server, &client);
	CHECK_ERR(show(HIVE_TLS_ALWAYS, NULL, &server, &client), -EKEYREJECTED);
	CHECK_STR(server.reason, "the peer has no certificate");
	part(&server, &client);
	CHECK_ERR(show(HIVE_TLS_ALWAYS, "foreign", &server, &client), -EKEYREJECTED);
	part(&server, &client);
	CHECK_OK(show(HIVE_TLS_IF_GIVEN, NULL, &server, &client));
	CHECK_OK(hive_tls_info_read(server.tls, &info));
	CHECK(!info.certified && !info.verified);
	part(&server, &client);
	CHECK_ERR(show(HIVE_TLS_IF_GIVEN, "expired", &server, &client), -EKEYREJECTED);
	part(&server, &client);
	return 0;
}

TEST(clients_show_certificates)
{
	net_each(show_all);
}

/* ---- nothing in common ---- */

static int disagree(void *arg)
{
	struct hive_tls_context *server_context, *client_context;
	struct side server, client;

	(void)arg;
	certs_make();
	server_context = context_make(&(struct hive_tls_options){ .server = true,
	                                                          .certificate_file = certs_path("server.pem"),
	                                                          .key_file = certs_path("server.key"),
	                                                          .alpn = "h2" });
	client_context = context_make(&(struct hive_tls_options){ .ca_file = certs_path("ca.pem"), .alpn = "spdy/1" });
	server = (struct side){ .context = server_context };
	client = (struct side){ .context = client_context, .host = "localhost" };
	meet(&server, &client);
	CHECK_EQ(server.result, -EPROTO);
	CHECK_EQ(client.result, -EACCES);
	CHECK(strstr(client.reason, "application protocol"));
	part(&server, &client);
	hive_tls_context_destroy(client_context);
	client_context = context_client(); /* who does not ask gets none */
	client = (struct side){ .context = client_context, .host = "localhost" };
	server = (struct side){ .context = server_context };
	meet(&server, &client);
	CHECK_OK(client.result);
	part(&server, &client);
	hive_tls_context_destroy(server_context);
	hive_tls_context_destroy(client_context);
	return 0;
}

TEST(no_common_protocol_is_an_error)
{
	net_each(disagree);
}

/* ---- arguments ---- */

static int options_result(struct hive_tls_options options)
{
	struct hive_tls_context *context = NULL;
	int r = hive_tls_context_create(&options, &context);

	CHECK(r < 0 && !context);
	return r;
}

TEST(what_options_must_not_be)
{
	struct hive_tls_options good;
	struct hive_tls_context *context;

	certs_make();
	good = (struct hive_tls_options){ .server = true,
		                          .certificate_file = certs_path("server.pem"),
		                          .key_file = certs_path("server.key") };
#define BUT(...) ((void)(options = good, __VA_ARGS__), options_result(options))
	struct hive_tls_options options;

	CHECK_EQ(BUT(options.certificate_file = NULL), -EINVAL);
	CHECK_EQ(BUT(options.verify = HIVE_TLS_NEVER), -EINVAL);
	CHECK_EQ(BUT(options.verify = HIVE_TLS_ALWAYS), -EINVAL); /* and trusts nobody */
	CHECK_EQ(BUT(options.verify = (enum hive_tls_verify)4), -EINVAL);
	CHECK_EQ(BUT(options.server = false, options.verify = HIVE_TLS_IF_GIVEN), -EINVAL);
	CHECK_EQ(BUT(options.minimum = 11), -EINVAL);
	CHECK_EQ(BUT(options.reserved[3] = 1), -EINVAL);
	CHECK_EQ(BUT(options.alpn = ",h2"), -EINVAL);
	CHECK_EQ(BUT(options.alpn = "h2,"), -EINVAL);
	CHECK_EQ(BUT(options.alpn = "h2,,http/1.1"), -EINVAL);
	CHECK_EQ(BUT(options.certificate_file = certs_path("none.pem")), -ENOENT);
	CHECK_EQ(BUT(options.key_file = certs_path("none.key")), -ENOENT);
	CHECK_EQ(BUT(options.ca_file = certs_path("none.pem")), -ENOENT);
	CHECK_EQ(BUT(options.certificate_file = certs_path("server.key")), -EBADMSG);
	CHECK_EQ(BUT(options.key_file = NULL), -EBADMSG); /* there is none in the other file */
	CHECK_EQ(BUT(options.key_file = certs_path("second.key")), -EKEYREJECTED);
	CHECK_EQ(BUT(options.ca_file = certs_path("server.key")), -EBADMSG);
	/* nobody is asked for a password */
	CHECK_EQ(BUT(options.certificate_file = certs_path("locked.pem"), options.key_file = certs_path("locked.key")),
	         -EBADMSG);
	CHECK_ERR(hive_tls_context_create(&good, NULL), -EINVAL);
	CHECK_OK(hive_tls_context_create(&good, &context));
	CHECK_ERR(hive_tls_context_add(context, certs_path("none.pem"), NULL), -ENOENT);
	CHECK_ERR(hive_tls_context_add(context, NULL, NULL), -EINVAL);
	CHECK_ERR(hive_tls_context_add(NULL, good.certificate_file, NULL), -EINVAL);
	hive_tls_context_destroy(context);
	hive_tls_context_destroy(NULL);
}

TEST(what_calls_must_not_be_given)
{
	struct hive_tls_context *context = context_client();
	struct hive_tls_info info;
	struct hive_tls *tls = NULL;
	char byte;
	int fds[2];

	net_pair(fds);
	CHECK_ERR(hive_tls_create(NULL, fds[0], &tls), -EINVAL);
	CHECK_ERR(hive_tls_create(context, -1, &tls), -EINVAL);
	CHECK_ERR(hive_tls_create(context, fds[0], NULL), -EINVAL);
	CHECK_OK(close(fds[1]));
	CHECK_ERR(hive_tls_create(context, fds[1], &tls), -EBADF);
	CHECK_OK(hive_tls_create(context, fds[0], &tls));
	CHECK_EQ(hive_tls_fd(tls), fds[0]);
	CHECK_ERR(hive_tls_read(tls, &byte, 1, HIVE_FOREVER), -ENOTCONN);
	CHECK_ERR(hive_tls_write(tls, &byte, 1, HIVE_FOREVER), -ENOTCONN);
	CHECK_ERR(hive_tls_flush(tls, HIVE_FOREVER), -ENOTCONN);
	CHECK_ERR(hive_tls_shutdown(tls, HIVE_FOREVER), -ENOTCONN);
	CHECK_ERR(hive_tls_info_read(tls, &info), -ENOTCONN);
	CHECK_ERR(hive_tls_accept(tls, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_tls_connect(tls, NULL, HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_tls_connect(tls, "", HIVE_FOREVER), -EINVAL);
	CHECK_ERR(hive_tls_connect(tls, "localhost", HIVE_FOREVER), -EPIPE);
	CHECK_ERR(hive_tls_connect(NULL, "localhost", HIVE_FOREVER), -EINVAL);
	CHECK_OK(hive_tls_destroy(tls, HIVE_NOWAIT));
	CHECK_OK(hive_tls_destroy(NULL, HIVE_NOWAIT));
	hive_tls_context_destroy(context);
}

/* The steps are computed elsewhere, or not at all. */
static int nowhere(void *arg)
{
	struct hive_tls_context **contexts = arg, *context;
	struct hive_tls *tls;
	int fds[2];

	net_pair(fds);
	CHECK_OK(hive_tls_create(contexts[0], fds[0], &tls));
	CHECK_ERR(hive_tls_connect(tls, "localhost", HIVE_FOREVER), -ENOTSUP);
	CHECK_ERR(hive_tls_context_create(NULL, &context), -ENOTSUP);
	CHECK_OK(hive_tls_destroy(tls, HIVE_NOWAIT));
	CHECK_OK(close(fds[1]));
	return 0;
}

TEST(no_compute_worker_no_handshake)
{
	struct hive *hive = net_start("epoll", 1, 0);
	struct hive_tls_context *context = context_client();
	int result = -1;

	CHECK_OK(hive_block_on(hive, nowhere, &context, HIVE_FOREVER, &result));
	CHECK_EQ(result, 0);
	real_end(hive, HIVE_DRAIN);
	hive_tls_context_destroy(context);
}
