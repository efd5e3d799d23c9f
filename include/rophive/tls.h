/* SPDX-License-Identifier: MIT */
#pragma once
#include <rophive/time.h>

/* TLS 1.2 and 1.3 on OpenSSL 3, in a library of its own: librophive-tls. Calls as those of a socket (io.h), for the same
 * callers: fibers wait, a compute task or a foreign thread blocks, a task or a callback on an IO worker may ask with HIVE_NOWAIT and else
 * gets -EDEADLK. Handshakes compute: a fiber has that done on a compute worker (-ENOTSUP: there is none), a compute task and a
 * foreign thread do it themselves. A task or a callback on an IO worker can do neither: there hive_tls_connect() and hive_tls_accept()
 * are -EDEADLK also with HIVE_NOWAIT, and hive_tls_handshake_then() is the way; and contexts, whose files are read, are made elsewhere.
 *
 * One reader and one writer at a time, which may be different fibers or threads; a second one is told: -EBUSY. A call that ends
 * by its deadline (-ETIMEDOUT), by a cancel (-ECANCELED), or for want of memory for a timer (-ENOMEM) has lost nothing: the next call goes on,
 * handshakes too.
 *
 *   -EKEYREJECTED  we do not trust the peer's certificate: wrong name, expired, unknown issuer, or there is none
 *   -EACCES        the peer ended it by an alert: it does not trust ours, or wants something that we do not have
 *   -EPROTO        it does not speak TLS, not this TLS, or not properly
 *   -ENODATA       the peer's bytes end without its "close notify": somebody may have cut them short
 *   -ENOTCONN      there was no handshake yet
 * and those of the system. hive_tls_reason() says it in words.                                                                 */
HIVE_BEGIN
struct hive_cancel;
struct hive_tls_context; /* what many connections have in common */
struct hive_tls;         /* one connection */

/* Whose certificate is looked at */
enum hive_tls_verify {
	HIVE_TLS_USUAL,    /* client: the server's always, and its name; server: does not ask for one */
	HIVE_TLS_NEVER,    /* client: whoever answers will do. Only for tests */
	HIVE_TLS_IF_GIVEN, /* server: clients may show one, which then has to be good */
	HIVE_TLS_ALWAYS    /* server: clients have to */
};

struct hive_tls_options {
	bool server;
	enum hive_tls_verify verify;
	uint32_t minimum;             /* 0 or 12: TLS 1.2; 13: TLS 1.3 */
	const char *certificate_file; /* PEM, one's own first, then its issuers; a server needs it */
	const char *key_file;         /* PEM, without a password; NULL: in certificate_file too */
	const char *ca_file;  /* PEM: whom to trust, alone. NULL: client: whom the system trusts; server: nobody */
	const char *alpn;     /* "h2,http/1.1", best first; NULL: none */
	uint64_t reserved[4]; /* must be zero */
};

/* May wait, without a deadline: files are read, which is soon done, for a fiber on a compute worker, whose turn a cancel does not wait for
 * (-ECANCELED). -EINVAL; -EBADMSG: no certificate or key in that file; -EKEYREJECTED: the key does not
 * belong to the certificate; -ENOMEM; what the system says about the files.                                             */
HIVE_CHECKED int hive_tls_context_create(const struct hive_tls_options *options, struct hive_tls_context **ret_context);
/* May wait, as above. A server's further certificate, for clients that ask for one of its names; others get the first. Before the context
 * is used: -EBUSY.                                                                                                         */
HIVE_CHECKED int hive_tls_context_add(struct hive_tls_context *context, const char *certificate_file,
                                      const char *key_file);
/* Any thread. It goes with the last connection that uses it. NULL is fine. */
void hive_tls_context_destroy(struct hive_tls_context *context);

/* Any thread. Owns the descriptor from here on: a connected socket. On failure it is still yours. -EINVAL, -ENOTSOCK, -EBADF, -ENOMEM. */
HIVE_CHECKED int hive_tls_create(struct hive_tls_context *context, int fd, struct hive_tls **ret_tls);
/* May wait; on an IO worker outside a fiber -EDEADLK, with HIVE_NOWAIT too. The client's handshake. host: whom we want, a name or an address; its certificate has to be for it. NULL only with
 * HIVE_TLS_NEVER: -EINVAL. -EISCONN: it was done already.                                                                   */
int hive_tls_connect(struct hive_tls *tls, const char *host, int64_t deadline_ns);
/* May wait; on an IO worker outside a fiber -EDEADLK, with HIVE_NOWAIT too. The server's handshake. */
int hive_tls_accept(struct hive_tls *tls, int64_t deadline_ns);
typedef void hive_tls_fn(struct hive_tls *tls, int result, void *arg);
/* Worker thread. For callbacks: hive_tls_connect() (a server's connection: hive_tls_accept(); host is NULL) in a fiber of the library's own on
 * this worker, which then calls on_done with its result, never in here. From here until then the connection and host are lent; in on_done
 * it is yours, to use or to destroy. cancel: NULL, or a token that ends it. A hive that stops with HIVE_NOW before the fiber has begun
 * drops it like a task: no on_done, and the connection is yours after the join. -EBUSY: one is under way. -EINVAL, -EPERM, -ENOMEM: no
 * stack; -ESHUTDOWN; the token's reason, if it has fired. Then on_done is not called.                                      */
HIVE_CHECKED int hive_tls_handshake_then(struct hive_tls *tls, const char *host, int64_t deadline_ns,
                                         struct hive_cancel *cancel, hive_tls_fn *on_done, void *arg);
/* May wait. What there is, at most bytes. 0: the peer has ended properly. */
int64_t hive_tls_read(struct hive_tls *tls, void *buffer, size_t bytes, int64_t deadline_ns);
/* May wait. How much was taken. Of that, what the deadline left over goes out with the next write, flush or shutdown. -EPIPE: after our own
 * shutdown too.                                                                                                          */
int64_t hive_tls_write(struct hive_tls *tls, const void *buffer, size_t bytes, int64_t deadline_ns);
/* May wait. All bytes or an error; read_all: -ENODATA if the peer ended early; write_all: 0 when the system has them all. */
int hive_tls_read_all(struct hive_tls *tls, void *buffer, size_t bytes, int64_t deadline_ns);
int hive_tls_write_all(struct hive_tls *tls, const void *buffer, size_t bytes, int64_t deadline_ns);
/* May wait. Until the system has all that was written. */
int hive_tls_flush(struct hive_tls *tls, int64_t deadline_ns);
/* May wait. We have ended ("close notify"), and may go on reading. */
int hive_tls_shutdown(struct hive_tls *tls, int64_t deadline_ns);
/* May wait. Flushes and shuts down by the deadline if there is a connection, closes the descriptor, frees: always gone afterwards. NULL is fine. -EBUSY:
 * somebody is in a call with it; it is not gone.                                                                          */
int hive_tls_destroy(struct hive_tls *tls, int64_t deadline_ns);

/* Any thread. Its descriptor, to poll, to ask for its address. Not to close, nor to read or write. With HIVE_NOWAIT: after a read that was
 * -ETIMEDOUT it is readable when there may be more, after a write or a flush that was, writable when it may go on. By hive_op_poll(): a
 * hive_source may be the worker's second one for it (-EEXIST).                                                             */
int hive_tls_fd(const struct hive_tls *tls);
/* Any thread. Why it failed, in words; "" if it did not. How many bytes it takes without the final 0, as snprintf(). */
int hive_tls_reason(struct hive_tls *tls, char *ret_text, size_t bytes);

struct hive_tls_info {
	char version[16];                  /* "TLSv1.3" */
	char cipher[64];                   /* "TLS_AES_256_GCM_SHA384" */
	char alpn[256];                    /* what both want to speak; "": not agreed upon */
	char host[256];                    /* whom the client asked for; "": it did not say */
	bool certified;                    /* the peer has shown a certificate, */
	bool verified;                     /* which we trust; else it was not asked about */
	char subject[256];                 /* "CN=example.org,O=Example"; what is longer is cut */
	char issuer[256];                  /* likewise */
	uint8_t sha256[32];                /* of the certificate */
	int64_t not_before_s, not_after_s; /* seconds since 1970 */
	uint64_t reserved[4];
};

/* Any thread, after the handshake. -ENOTCONN, -ENOMEM. */
int hive_tls_info_read(struct hive_tls *tls, struct hive_tls_info *ret_info);
HIVE_END
