/* SPDX-License-Identifier: MIT */
/* What OpenSSL says, in our words: outcomes, reasons, and what is known about a connection. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "edge/tls/tls.h"

/* ---- errors ---- */

int hive__tls_fail(struct hive_tls *tls, int error, const char *reason)
{
	if (tls->error == 0) {
		tls->error = error;
		snprintf(tls->reason, sizeof tls->reason, "%s", reason);
	}
	return tls->error;
}

static int reject(struct hive_tls *tls)
{
	const char *host = SSL_get_servername(tls->ssl, TLSEXT_NAMETYPE_host_name);
	long why = SSL_get_verify_result(tls->ssl);
	char text[256];

	snprintf(text, sizeof text, "the peer's certificate: %s%s%s", X509_verify_cert_error_string(why),
	         why == X509_V_ERR_HOSTNAME_MISMATCH && host ? ", wanted " : "",
	         why == X509_V_ERR_HOSTNAME_MISMATCH && host ? host : "");
	return hive__tls_fail(tls, -EKEYREJECTED, text);
}

/* The first error is the cause, the others are how it was passed on. */
static int blame(struct hive_tls *tls)
{
	unsigned long error = ERR_peek_error();
	int reason = ERR_GET_REASON(error);
	const char *words = ERR_reason_error_string(error);
	char text[256];

	if (reason == ERR_R_MALLOC_FAILURE)
		return hive__tls_fail(tls, -ENOMEM, "no memory");
	if (ERR_GET_LIB(error) != ERR_LIB_SSL) {
		snprintf(text, sizeof text, "%s: %s", ERR_lib_error_string(error) ? ERR_lib_error_string(error) : "?",
		         words ? words : "failed");
		return hive__tls_fail(tls, -EPROTO, text);
	}
	if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		return reject(tls);
	if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
		return hive__tls_fail(tls, -EKEYREJECTED, "the peer has no certificate");
	if (reason > SSL_AD_REASON_OFFSET) {
		snprintf(text, sizeof text, "the peer says: %s",
		         SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET));
		return hive__tls_fail(tls, -EACCES, text);
	}
	return hive__tls_fail(tls, -EPROTO, words ? words : "the protocol was violated");
}

int hive__tls_outcome(struct hive_tls *tls, int r)
{
	int outcome = 0;

	switch (SSL_get_error(tls->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		outcome = -EAGAIN;
		break;
	case SSL_ERROR_WANT_WRITE:
		outcome = -ENOBUFS;
		break;
	case SSL_ERROR_ZERO_RETURN:
		break;
	default:
		outcome = blame(tls);
	}
	ERR_clear_error();
	return outcome;
}

int hive_tls_reason(struct hive_tls *tls, char *ret_text, size_t bytes)
{
	int r;

	if (!tls || (!ret_text && bytes > 0))
		return -EINVAL;
	lock_acquire(&tls->lock);
	r = snprintf(ret_text, bytes, "%s", tls->reason);
	lock_release(&tls->lock);
	return r;
}

/* ---- a connection ---- */

static void copy(char *to, size_t bytes, const char *from)
{
	snprintf(to, bytes, "%s", from ? from : "");
}

static int name_of(const X509_NAME *name, char *ret, size_t bytes)
{
	BIO *text = BIO_new(BIO_s_mem());
	int n = -1;

	if (text && X509_NAME_print_ex(text, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) >= 0)
		n = BIO_read(text, ret, (int)bytes - 1);
	BIO_free(text);
	ret[n > 0 ? n : 0] = 0;
	return text ? 0 : -ENOMEM;
}

static int64_t seconds_of(const ASN1_TIME *when)
{
	struct tm parts;

	return ASN1_TIME_to_tm(when, &parts) ? (int64_t)timegm(&parts) : 0;
}

static int certificate(SSL *ssl, struct hive_tls_info *info)
{
	X509 *peer = SSL_get0_peer_certificate(ssl);
	unsigned bytes = sizeof info->sha256;
	int r;

	if (!peer)
		return 0;
	info->certified = true;
	info->verified = SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE && SSL_get_verify_result(ssl) == X509_V_OK;
	info->not_before_s = seconds_of(X509_get0_notBefore(peer));
	info->not_after_s = seconds_of(X509_get0_notAfter(peer));
	r = name_of(X509_get_subject_name(peer), info->subject, sizeof info->subject);
	if (r == 0)
		r = name_of(X509_get_issuer_name(peer), info->issuer, sizeof info->issuer);
	return r < 0 || !X509_digest(peer, EVP_sha256(), info->sha256, &bytes) ? -ENOMEM : 0;
}

static int describe(SSL *ssl, struct hive_tls_info *info)
{
	const unsigned char *alpn;
	unsigned bytes;

	copy(info->version, sizeof info->version, SSL_get_version(ssl));
	copy(info->cipher, sizeof info->cipher, SSL_get_cipher_name(ssl));
	copy(info->host, sizeof info->host, SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name));
	SSL_get0_alpn_selected(ssl, &alpn, &bytes);
	snprintf(info->alpn, sizeof info->alpn, "%.*s", (int)bytes, alpn ? (const char *)alpn : "");
	return certificate(ssl, info);
}

int hive_tls_info_read(struct hive_tls *tls, struct hive_tls_info *ret_info)
{
	struct hive_tls_info info = { 0 };
	int r = -ENOTCONN;

	if (!tls || !ret_info)
		return -EINVAL;
	lock_acquire(&tls->lock);
	if (tls->known)
		r = describe(tls->ssl, &info);
	ERR_clear_error();
	lock_release(&tls->lock);
	if (r == 0)
		*ret_info = info;
	return r;
}
