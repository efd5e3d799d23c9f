/* SPDX-License-Identifier: MIT */
/* A TLS client with fibers: 19_tls_client HOST [PORT] asks that server for its first page, and trusts whom the system trusts. Without
 * arguments it makes a certificate and a server of its own, asks that one, and does not trust it under another name.          */
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <rophive/hive.h>
#include <rophive/tls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *host = "localhost", *ca_file;
static uint16_t port = 443;
static char pem[] = "/tmp/rophive.pem.XXXXXX"; /* certificate and key in one file */

static int ask(void *arg)
{
	int64_t deadline = hive_deadline(NULL, HIVE_S(30)); /* for all of it */
	struct hive_tls_context *context;
	struct hive_tls *tls;
	struct hive_tls_info info;
	char buffer[4096], text[256];

	int r = hive_tls_context_create(&(struct hive_tls_options){ .ca_file = ca_file }, &context);
	int fd = r < 0 ? r : hive_dial(host, port, NULL, deadline);
	r = fd < 0 ? fd : hive_tls_create(context, fd, &tls);
	if (r < 0)
		return printf("%s: %s\n", host, hive_error_text(r));
	hive_tls_context_destroy(context); /* goes with its last connection */
	r = hive_tls_connect(tls, arg ? arg : host, deadline);
	if (r == 0 && hive_tls_info_read(tls, &info) == 0) {
		printf("%s, %s\n", info.version, info.cipher);
		int64_t n = snprintf(buffer, sizeof buffer, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", host);
		r = hive_tls_write_all(tls, buffer, (size_t)n, deadline);
		while (r == 0 && (n = hive_tls_read(tls, buffer, sizeof buffer, deadline)) > 0)
			fwrite(buffer, 1, (size_t)n, stdout);
		r = r < 0 ? r : (int)n; /* 0: the server has ended; -ENODATA: somebody has cut it short */
	}
	if (r < 0 && hive_tls_reason(tls, text, sizeof text) >= 0)
		printf("%s: %s\n", arg ? (char *)arg : host, text);
	hive_tls_destroy(tls, deadline);
	return r;
}

static int serve(void *arg)
{
	int listener = (int)(intptr_t)arg, fd;
	struct hive_tls_context *context;
	struct hive_tls *tls;
	char request[1000];

	if (hive_tls_context_create(&(struct hive_tls_options){ .server = true, .certificate_file = pem }, &context) <
	    0)
		return -1;
	for (int i = 0; i < 2 && (fd = hive_accept(listener, hive_deadline(NULL, HIVE_S(30)))) >= 0; i++) {
		if (hive_tls_create(context, fd, &tls) < 0)
			return close(fd);
		if (hive_tls_accept(tls, hive_deadline(NULL, HIVE_S(5))) == 0 &&
		    hive_tls_read(tls, request, sizeof request, hive_deadline(NULL, HIVE_S(5))) > 0)
			hive_tls_write_all(tls, "HTTP/1.0 200 OK\r\n\r\nhello\n", 25, HIVE_FOREVER);
		hive_tls_destroy(tls, hive_deadline(NULL, HIVE_S(5)));
	}
	hive_tls_context_destroy(context);
	return close(listener);
}

/* For localhost, signed by itself. */
static int make_certificate(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x509 = X509_new();
	int fd = mkstemp(pem);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	X509_EXTENSION *name = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:localhost");

	X509_set_version(x509, X509_VERSION_3);
	X509_gmtime_adj(X509_getm_notBefore(x509), 0);
	X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_UTF8, (const void *)"example", -1, -1,
	                           0);
	X509_set_issuer_name(x509, X509_get_subject_name(x509));
	X509_set_pubkey(x509, key);
	X509_add_ext(x509, name, -1);
	int good = file && X509_sign(x509, key, EVP_sha256()) > 0 && PEM_write_X509(file, x509) &&
	           PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) && fclose(file) == 0;
	X509_EXTENSION_free(name);
	X509_free(x509);
	EVP_PKEY_free(key);
	return good ? 0 : -1;
}

static int trial(void *arg)
{
	struct hive_address address;
	int server = hive_listen("127.0.0.1", 0, NULL);

	(void)arg;
	if (server < 0 || hive_address_of(server, false, &address) < 0 ||
	    hive_spawn(hive_current(), serve, (void *)(intptr_t)server, NULL, NULL) < 0)
		return 1;
	port = hive_address_port(&address);
	return ask(NULL) != 0 || ask((void *)(uintptr_t) "example.org") != -EKEYREJECTED;
}

int main(int argc, char **argv)
{
	struct hive *hive;
	int bad = 1;

	host = argc > 1 ? argv[1] : host;
	port = (uint16_t)(argc > 2 ? atoi(argv[2]) : 443);
	ca_file = argc > 1 ? NULL : pem;
	if ((argc < 2 && make_certificate() < 0) || hive_runtime_start(NULL, &hive) < 0)
		return 1;
	int r = hive_block_on(hive, argc > 1 ? ask : trial, NULL, HIVE_FOREVER, &bad);
	unlink(pem);
	return hive_runtime_stop(hive, HIVE_DRAIN, HIVE_FOREVER) < 0 || r < 0 || bad != 0;
}
