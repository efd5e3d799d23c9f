/* SPDX-License-Identifier: MIT */
/* Contexts: certificates, whom to trust, which protocol to speak; and what OpenSSL asks about these in a handshake. */
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <rophive/fiber.h>

#include "edge/tls/tls.h"

enum { CONTEXT_MAGIC = 0x746c7363 };

const struct memory hive__tls_memory = { hive__memory_system, NULL };

/* Whether it is a file that the system refuses, or one with something else in it. */
static int why_not(void)
{
	int r = -EBADMSG;

	for (unsigned long e = ERR_get_error(); e != 0; e = ERR_get_error()) {
		if (ERR_SYSTEM_ERROR(e))
			r = -ERR_GET_REASON(e);
		else if (ERR_GET_REASON(e) == ERR_R_MALLOC_FAILURE)
			r = -ENOMEM;
		else if (ERR_GET_LIB(e) == ERR_LIB_X509 && ERR_GET_REASON(e) == X509_R_KEY_VALUES_MISMATCH)
			r = -EKEYREJECTED;
		else
			continue;
		break;
	}
	ERR_clear_error();
	return r;
}

/* ---- which protocol ---- */

/* "h2,http/1.1" as the protocol has it. */
static int read_alpn(struct hive_tls_context *c, const char *text)
{
	while (text && *text) {
		size_t n = strcspn(text, ",");

		if (n == 0 || n > 255 || c->alpn_bytes + 1 + n > sizeof c->alpn)
			return -EINVAL;
		c->alpn[c->alpn_bytes] = (unsigned char)n;
		memcpy(c->alpn + c->alpn_bytes + 1, text, n);
		c->alpn_bytes += 1 + n;
		text += n;
		if (*text == ',' && *++text == 0)
			return -EINVAL;
	}
	return 0;
}

static int choose_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_bytes, const unsigned char *theirs,
                       unsigned bytes, void *arg)
{
	struct hive_tls_context *c = arg;
	unsigned char *chosen;

	(void)ssl;
	if (SSL_select_next_proto(&chosen, ret_bytes, c->alpn, (unsigned)c->alpn_bytes, theirs, bytes) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*ret = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* ---- which certificate ---- */

static int choose_certificate(SSL *ssl, int *ret_alert, void *arg)
{
	const char *host = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	struct hive_tls_context *c = arg;

	(void)ret_alert;
	if (!host)
		return SSL_TLSEXT_ERR_NOACK;
	if (c->more && X509_check_host(SSL_CTX_get0_certificate(c->ctx), host, 0, 0, NULL) == 1)
		return SSL_TLSEXT_ERR_OK;
	for (struct certificate *other = c->more; other; other = other->next)
		if (X509_check_host(SSL_CTX_get0_certificate(other->ctx), host, 0, 0, NULL) == 1)
			return SSL_set_SSL_CTX(ssl, other->ctx) ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

/* Nobody sits there to type a password. */
static int no_password(char *buffer, int bytes, int writes, void *arg)
{
	(void)buffer;
	(void)bytes;
	(void)writes;
	(void)arg;
	return -1;
}

static int load(SSL_CTX *ctx, const char *certificate_file, const char *key_file)
{
	if (!certificate_file)
		return 0;
	if (SSL_CTX_use_certificate_chain_file(ctx, certificate_file) != 1 ||
	    SSL_CTX_use_PrivateKey_file(ctx, key_file ? key_file : certificate_file, SSL_FILETYPE_PEM) != 1)
		return why_not();
	return 0;
}

/* ---- whom to trust ---- */

static int trust(struct hive_tls_context *c, SSL_CTX *ctx, const char *ca_file)
{
	static const int modes[] = { SSL_VERIFY_NONE, SSL_VERIFY_NONE, SSL_VERIFY_PEER,
		                     SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT };
	bool usual_client = !c->server && c->verify == HIVE_TLS_USUAL;

	SSL_CTX_set_verify(ctx, usual_client ? SSL_VERIFY_PEER : modes[c->verify], NULL);
	if (ca_file && SSL_CTX_load_verify_file(ctx, ca_file) != 1)
		return why_not();
	if (usual_client && !ca_file && SSL_CTX_set_default_verify_paths(ctx) != 1)
		return why_not();
	if (c->server && ca_file) { /* clients that have several certificates can tell which one will do */
		STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(ca_file);

		if (!names)
			return why_not();
		SSL_CTX_set_client_CA_list(ctx, names);
	}
	return 0;
}

/* ---- a context ---- */

/* NULL: no memory. */
static SSL_CTX *new_ctx(struct hive_tls_context *c)
{
	SSL_CTX *ctx = SSL_CTX_new(c->server ? TLS_server_method() : TLS_client_method());

	if (!ctx)
		return NULL;
	SSL_CTX_set_min_proto_version(ctx, c->minimum == 13 ? TLS1_3_VERSION : TLS1_2_VERSION);
	/* Each record is sent before the next is made; who tries again may pass another address of the same bytes. */
	SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	/* A second handshake in the middle of a stream would compute where records are read. */
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_default_passwd_cb(ctx, no_password);
	if (SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"rophive", 7) != 1) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	if (c->server) {
		SSL_CTX_set_tlsext_servername_callback(ctx, choose_certificate);
		SSL_CTX_set_tlsext_servername_arg(ctx, c);
	}
	if (c->server && c->alpn_bytes > 0)
		SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, c);
	return ctx;
}

static void free_context(struct hive_tls_context *c)
{
	while (c->more) {
		struct certificate *first = c->more;

		c->more = first->next;
		SSL_CTX_free(first->ctx);
		hive__memory_free(&hive__tls_memory, first);
	}
	SSL_CTX_free(c->ctx);
	BIO_meth_free(c->method);
	c->magic = 0;
	hive__memory_free(&hive__tls_memory, c);
}

static int check(const struct hive_tls_options *o)
{
	if (o->server ? o->verify == HIVE_TLS_NEVER || !o->certificate_file
	              : o->verify == HIVE_TLS_IF_GIVEN || o->verify == HIVE_TLS_ALWAYS)
		return -EINVAL;
	if ((unsigned)o->verify > HIVE_TLS_ALWAYS || (o->key_file && !o->certificate_file) ||
	    (o->minimum != 0 && o->minimum != 12 && o->minimum != 13))
		return -EINVAL;
	if (o->server && o->verify != HIVE_TLS_USUAL && !o->ca_file)
		return -EINVAL; /* asks for certificates, and would trust none */
	for (size_t i = 0; i < sizeof o->reserved / sizeof *o->reserved; i++)
		if (o->reserved[i] != 0)
			return -EINVAL;
	return 0;
}

static int fill(struct hive_tls_context *c, const struct hive_tls_options *o)
{
	int r = read_alpn(c, o->alpn);

	if (r < 0)
		return r;
	c->method = hive__tls_method();
	c->ctx = new_ctx(c);
	if (!c->method || !c->ctx) {
		ERR_clear_error();
		return -ENOMEM;
	}
	if (!c->server && c->alpn_bytes > 0 && SSL_CTX_set_alpn_protos(c->ctx, c->alpn, (unsigned)c->alpn_bytes) != 0)
		return -ENOMEM;
	r = trust(c, c->ctx, o->ca_file);
	return r < 0 ? r : load(c->ctx, o->certificate_file, o->key_file);
}

/* ---- what files are needed for, where one may wait for them ---- */

struct making {
	const struct hive_tls_options *options;
	struct hive_tls_context *context;
	const char *certificate_file, *key_file;
};

static int make(void *arg)
{
	struct making *m = arg;
	struct hive_tls_context *c = (struct hive_tls_context *)hive__memory_new(&hive__tls_memory, sizeof *c);
	int r;

	if (!c)
		return -ENOMEM;
	c->server = m->options->server;
	c->verify = m->options->verify;
	c->minimum = m->options->minimum;
	store_relaxed(&c->users, 1u);
	r = fill(c, m->options);
	if (r < 0) {
		free_context(c);
		return r;
	}
	c->magic = CONTEXT_MAGIC;
	m->context = c;
	return 0;
}

int hive_tls_context_create(const struct hive_tls_options *options, struct hive_tls_context **ret_context)
{
	static const struct hive_tls_options client;
	struct making m = { .options = options ? options : &client };
	int r = ret_context ? check(m.options) : -EINVAL, result = 0;

	if (r < 0)
		return r;
	r = hive_offload(make, &m, HIVE_FOREVER, &result);
	if (r == 0 && result == 0)
		*ret_context = m.context;
	return r < 0 ? r : result;
}

/* Whom the first one trusts: OpenSSL asks the one whose certificate was chosen. */
static int trust_alike(SSL_CTX *ctx, SSL_CTX *first)
{
	STACK_OF(X509_NAME) *names = SSL_CTX_get_client_CA_list(first), *copy = names ? SSL_dup_CA_list(names) : NULL;

	if (names && !copy)
		return -ENOMEM;
	SSL_CTX_set_client_CA_list(ctx, copy);
	SSL_CTX_set_verify(ctx, SSL_CTX_get_verify_mode(first), NULL);
	SSL_CTX_set1_cert_store(ctx, SSL_CTX_get_cert_store(first));
	return 0;
}

/* As the first one, but for its certificate. */
static int add(void *arg)
{
	struct making *m = arg;
	struct certificate *other = (struct certificate *)hive__memory_new(&hive__tls_memory, sizeof *other), **last;
	int r = -ENOMEM;

	if (!other)
		return -ENOMEM;
	other->ctx = new_ctx(m->context);
	if (other->ctx)
		r = trust_alike(other->ctx, m->context->ctx);
	if (r == 0)
		r = load(other->ctx, m->certificate_file, m->key_file);
	ERR_clear_error();
	if (r < 0) {
		SSL_CTX_free(other->ctx);
		hive__memory_free(&hive__tls_memory, other);
		return r;
	}
	for (last = &m->context->more; *last; last = &(*last)->next)
		;
	*last = other;
	return 0;
}

int hive_tls_context_add(struct hive_tls_context *context, const char *certificate_file, const char *key_file)
{
	struct making m = { .context = context, .certificate_file = certificate_file, .key_file = key_file };
	int r, result = 0;

	if (!context || context->magic != CONTEXT_MAGIC || !context->server || !certificate_file)
		return -EINVAL;
	if (load_relaxed(&context->users) > 1)
		return -EBUSY;
	r = hive_offload(add, &m, HIVE_FOREVER, &result);
	return r < 0 ? r : result;
}

struct hive_tls_context *hive__tls_context_hold(struct hive_tls_context *context)
{
	if (!context || context->magic != CONTEXT_MAGIC)
		return NULL;
	refs_add(&context->users);
	return context;
}

void hive_tls_context_destroy(struct hive_tls_context *context)
{
	if (context && context->magic == CONTEXT_MAGIC && refs_drop(&context->users))
		free_context(context);
}
