/* SPDX-License-Identifier: MIT */
/* The beginning of a connection: its memory, and the handshake, whose steps are computed elsewhere. */
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <rophive/fiber.h>

#include "edge/tls/tls.h"

enum { TLS_MAGIC = 0x746c7321, HOST_BYTES = 256 };

/* ---- roles ---- */

int hive__tls_enter(struct hive_tls *tls, ATOMIC(uint32_t) *role)
{
	if (tls->magic != TLS_MAGIC)
		return -EINVAL;
	return role_enter(role) ? 0 : -EBUSY;
}

int hive__tls_enter_both(struct hive_tls *tls)
{
	int r = tls ? hive__tls_enter(tls, &tls->reading) : -EINVAL;

	if (r < 0)
		return r;
	r = hive__tls_enter(tls, &tls->writing);
	if (r < 0)
		tls_leave(&tls->reading);
	return r;
}

/* ---- a connection's memory ---- */

static int check_descriptor(int fd)
{
	socklen_t bytes = sizeof(int);
	int kind;

	if (fd < 0)
		return -EINVAL;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &bytes) < 0)
		return -errno;
	return kind == SOCK_STREAM ? 0 : -EINVAL;
}

static bool set_up(struct hive_tls *tls)
{
	BIO *bio;

	tls->ssl = SSL_new(tls->context->ctx);
	if (!tls->ssl)
		return false;
	bio = BIO_new(tls->context->method);
	if (!bio)
		return false;
	BIO_set_data(bio, tls);
	SSL_set_bio(tls->ssl, bio, bio);
	return true;
}

int hive_tls_create(struct hive_tls_context *context, int fd, struct hive_tls **ret_tls)
{
	struct hive_tls *tls;
	int r = ret_tls ? check_descriptor(fd) : -EINVAL;

	context = r < 0 ? NULL : hive__tls_context_hold(context);
	if (!context)
		return r < 0 ? r : -EINVAL;
	tls = (struct hive_tls *)hive__memory_new(&hive__tls_memory, sizeof *tls);
	if (tls) {
		tls->fd = fd;
		tls->context = context;
		lock_init(&tls->lock);
		hive_mutex_init(&tls->sending);
		if (set_up(tls)) {
			tls->magic = TLS_MAGIC;
			*ret_tls = tls;
			return 0;
		}
		SSL_free(tls->ssl);
		hive__memory_free(&hive__tls_memory, tls);
	}
	ERR_clear_error();
	hive_tls_context_destroy(context);
	return -ENOMEM;
}

/* ---- the handshake ---- */

/* On a compute worker. 0: done; else as hive__tls_outcome(). */
static int step(void *arg)
{
	struct hive_tls *tls = arg;
	int r;

	ERR_clear_error();
	r = SSL_do_handshake(tls->ssl);
	if (r == 1)
		return 0;
	r = hive__tls_outcome(tls, r);
	return r == 0 ? hive__tls_fail(tls, -EACCES, "the peer ended within the handshake") : r;
}

static int await_record(struct hive_tls *tls, int64_t deadline_ns)
{
	int r = 0;

	while (r == 0 && !hive__tls_has_record(tls))
		r = hive__tls_receive(tls, deadline_ns);
	return r;
}

/* In turns: sends what there is, waits for a record if one is needed, computes. Goes on where an earlier call had to stop. */
static int shake(struct hive_tls *tls, int64_t deadline_ns)
{
	int r, result = -EAGAIN;

	for (;;) {
		r = hive__tls_send(tls, deadline_ns);
		if (r < 0 || result == 0)
			return r;
		if (tls->starved)
			r = await_record(tls, deadline_ns);
		if (r < 0)
			return r;
		r = hive_offload(step, tls, deadline_ns, &result);
		if (r < 0)
			return r;
		tls->starved = result == -EAGAIN;
		if (result < 0 && result != -EAGAIN && result != -ENOBUFS) {
			hive__tls_send_some(tls); /* an alert that says why */
			return result;
		}
	}
}

static bool is_for_now(int r)
{
	return r == -ETIMEDOUT || r == -ECANCELED || r == -ENOMEM || r == -EDEADLK || r == -ENOTSUP;
}

static int hand_shake(struct hive_tls *tls, int64_t deadline_ns)
{
	int r = shake(tls, deadline_ns);

	lock_acquire(&tls->lock);
	if (r == 0) {
		tls->phase = PHASE_READY;
		tls->known = true;
	} else if (tls->error != 0 || !is_for_now(r)) {
		tls->phase = PHASE_FAILED;
		r = hive__tls_fail(tls, r, tls->truncated ? "the peer ended within the handshake" : hive_error_text(r));
	}
	lock_release(&tls->lock);
	return r;
}

/* Name or address: each is looked for in another place of the certificate, and only a name is told to the server. */
static int want(struct hive_tls *tls, const char *host)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(tls->ssl);
	char name[HOST_BYTES];
	size_t n = host ? strlen(host) : 0;
	int ok = 1;

	if (!host)
		return tls->context->verify == HIVE_TLS_NEVER ? 0 : -EINVAL;
	if (n == 0 || n >= sizeof name)
		return -EINVAL;
	memcpy(name, host, n + 1);
	if (X509_VERIFY_PARAM_set1_ip_asc(param, name) != 1) {
		if (n > 1 && name[n - 1] == '.') /* of a full name; certificates have none */
			name[n - 1] = 0;
		X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
		ok = X509_VERIFY_PARAM_set1_host(param, name, 0) == 1 && SSL_set_tlsext_host_name(tls->ssl, name) == 1;
	}
	ERR_clear_error();
	return ok ? 0 : -ENOMEM;
}

/* Both roles are held. */
static int begin(struct hive_tls *tls, bool server, const char *host, int64_t deadline_ns)
{
	int r = 0;

	if (tls->context->server != server)
		return -EINVAL;
	if (tls->phase == PHASE_READY)
		return -EISCONN;
	if (tls->phase == PHASE_FAILED)
		return tls->error;
	if (tls->phase == PHASE_FRESH && !server)
		r = want(tls, host);
	if (r < 0)
		return r;
	if (tls->phase == PHASE_FRESH && server)
		SSL_set_accept_state(tls->ssl);
	else if (tls->phase == PHASE_FRESH)
		SSL_set_connect_state(tls->ssl);
	tls->phase = PHASE_SHAKING;
	return hand_shake(tls, deadline_ns);
}

int hive_tls_connect(struct hive_tls *tls, const char *host, int64_t deadline_ns)
{
	int r = hive__tls_enter_both(tls);

	if (r < 0)
		return r;
	r = begin(tls, false, host, deadline_ns);
	tls_leave(&tls->writing);
	tls_leave(&tls->reading);
	return r;
}

int hive_tls_accept(struct hive_tls *tls, int64_t deadline_ns)
{
	int r = hive__tls_enter_both(tls);

	if (r < 0)
		return r;
	r = begin(tls, true, NULL, deadline_ns);
	tls_leave(&tls->writing);
	tls_leave(&tls->reading);
	return r;
}
