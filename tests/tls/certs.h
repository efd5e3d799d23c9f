/* SPDX-License-Identifier: MIT */
#pragma once
/* Certificates made at run time, in a folder that goes with the program: an authority and what it has signed, good and bad. */
#include <dirent.h>
#include <sys/stat.h>
#include <time.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "test.h"

enum { CERT_DAY = 24 * 3600 };

struct cert {
	EVP_PKEY *key;
	X509 *x509;
};

static char certs_folder[64];
static int certs_ring; /* paths that were asked for last stay valid for a while */

/* "server.pem" in the folder. */
static inline const char *certs_path(const char *name)
{
	static char paths[16][160];
	char *path = paths[certs_ring++ % 16];

	snprintf(path, sizeof paths[0], "%s/%s", certs_folder, name);
	return path;
}

static void certs_remove(void)
{
	DIR *folder = opendir(certs_folder);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)) != NULL)
		if (entry->d_name[0] != '.')
			unlink(certs_path(entry->d_name));
	if (folder)
		closedir(folder);
	rmdir(certs_folder);
}

static inline void cert_extend(X509 *x509, X509 *issuer, int what, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *extension;

	X509V3_set_ctx(&ctx, issuer, x509, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, what, value);
	CHECK(extension && X509_add_ext(x509, extension, -1) == 1);
	X509_EXTENSION_free(extension);
}

/* names NULL: an authority. issuer NULL: signed by itself. Valid from..to, seconds from now. */
static inline struct cert cert_make(const char *subject, const char *names, const struct cert *issuer, int from, int to)
{
	static long serial = 1;
	struct cert c = { EVP_EC_gen("P-256"), X509_new() };
	const struct cert *by = issuer ? issuer : &c;
	X509_NAME *name;

	CHECK(c.key && c.x509);
	X509_set_version(c.x509, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(c.x509), serial++);
	X509_gmtime_adj(X509_getm_notBefore(c.x509), from);
	X509_gmtime_adj(X509_getm_notAfter(c.x509), to);
	X509_set_pubkey(c.x509, c.key);
	name = X509_get_subject_name(c.x509);
	CHECK(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)subject, -1, -1, 0) == 1);
	X509_set_issuer_name(c.x509, X509_get_subject_name(by->x509));
	cert_extend(c.x509, by->x509, NID_basic_constraints, names ? "critical,CA:FALSE" : "critical,CA:TRUE");
	if (!names)
		cert_extend(c.x509, by->x509, NID_key_usage, "critical,keyCertSign,cRLSign");
	else if (*names)
		cert_extend(c.x509, by->x509, NID_subject_alt_name, names);
	cert_extend(c.x509, by->x509, NID_subject_key_identifier, "hash");
	CHECK(X509_sign(c.x509, by->key, EVP_sha256()) > 0);
	return c;
}

static inline void cert_free(struct cert *c)
{
	X509_free(c->x509);
	EVP_PKEY_free(c->key);
}

/* stem.pem and stem.key. A password: the key is locked by it. */
static inline void cert_write(const struct cert *c, const char *stem, const char *password)
{
	char name[64];
	FILE *file;

	snprintf(name, sizeof name, "%s.pem", stem);
	file = fopen(certs_path(name), "w");
	CHECK(file && PEM_write_X509(file, c->x509) == 1);
	fclose(file);
	snprintf(name, sizeof name, "%s.key", stem);
	file = fopen(certs_path(name), "w");
	CHECK(file &&
	      PEM_write_PrivateKey(file, c->key, password ? EVP_aes_128_cbc() : NULL, (const unsigned char *)password,
	                           password ? (int)strlen(password) : 0, NULL, NULL) == 1);
	fclose(file);
}

static inline void certs_issue(const struct cert *issuer, const char *stem, const char *names, int from, int to)
{
	struct cert c = cert_make(stem, names, issuer, from, to);

	cert_write(&c, stem, NULL);
	cert_free(&c);
}

/* Once a program. */
static inline void certs_make(void)
{
	struct cert ca, stranger, locked;

	if (certs_folder[0])
		return;
	strcpy(certs_folder, "/tmp/rophive.tls.XXXXXX");
	CHECK(mkdtemp(certs_folder));
	atexit(certs_remove);
	ca = cert_make("authority", NULL, NULL, -CERT_DAY, CERT_DAY);
	stranger = cert_make("stranger", NULL, NULL, -CERT_DAY, CERT_DAY);
	cert_write(&ca, "ca", NULL);
	cert_write(&stranger, "stranger", NULL);
	certs_issue(&ca, "server", "DNS:localhost,DNS:one.test,IP:127.0.0.1", -CERT_DAY, CERT_DAY);
	certs_issue(&ca, "second", "DNS:two.test,DNS:*.two.test", -CERT_DAY, CERT_DAY);
	certs_issue(&ca, "client", "", -CERT_DAY, CERT_DAY);
	certs_issue(&ca, "expired", "DNS:localhost", -2 * CERT_DAY, -CERT_DAY);
	certs_issue(&ca, "future", "DNS:localhost", CERT_DAY, 2 * CERT_DAY);
	certs_issue(&stranger, "foreign", "DNS:localhost", -CERT_DAY, CERT_DAY);
	certs_issue(NULL, "self", "DNS:localhost", -CERT_DAY, CERT_DAY);
	locked = cert_make("locked", "DNS:localhost", &ca, -CERT_DAY, CERT_DAY);
	cert_write(&locked, "locked", "secret");
	cert_free(&locked);
	cert_free(&stranger);
	cert_free(&ca);
}
