/* SPDX-License-Identifier: MIT */
#pragma once
/* A TLS connection: OpenSSL between two blocks of ciphertext, and a descriptor that is read into one and written from the other.
 *
 * OpenSSL never sees the descriptor: all waits are calls of <rophive/io.h>, made while the lock is free. The lock is for the SSL object,
 * which one thread at a time may use, and is held for the work on one record at most. During the handshake, whose steps take longer,
 * one caller has both roles and nobody needs it.
 *
 * Who may touch a field:   I  constant   R  who holds `reading`   W  who holds `writing`   B  who holds both; who holds one may look
 *   L  under the lock; in the handshake: B   S  who holds `sending`, under the lock   T  who holds `shaking`
 *   A  any thread, atomic                                                                                                */
#include <openssl/ssl.h>

#include <rophive/io.h>
#include <rophive/sync.h>
#include <rophive/tls.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/refs.h"
#include "base/role.h"

/* A record: header, 2^14 bytes, and what versions and ciphers add; some room for alerts behind it. */
enum { RECORD_HEADER = 5, RECORD_MOST = 16384, BLOCK_BYTES = RECORD_HEADER + RECORD_MOST + 2048 + 512 };

struct block { /* bytes from..to are there */
	size_t from, to;
	char data[BLOCK_BYTES];
};

struct certificate { /* and its key: a further one of a server */
	SSL_CTX *ctx;
	struct certificate *next;
};

struct hive_tls_context {
	uint32_t magic;              /* I */
	bool server;                 /* I */
	enum hive_tls_verify verify; /* I */
	uint32_t minimum;            /* I */
	ATOMIC(uint32_t) users;      /* A: connections, and who made it */
	SSL_CTX *ctx;                /* I */
	struct certificate *more;    /* I once it is used */
	BIO_METHOD *method;          /* I */
	size_t alpn_bytes;           /* I */
	unsigned char alpn[256];     /* I: as in the protocol, each with its length in front */
};

enum phase { PHASE_FRESH, PHASE_SHAKING, PHASE_READY, PHASE_FAILED };

struct then {
	const char *host; /* the caller's */
	int64_t deadline_ns;
	hive_tls_fn *on_done;
	void *arg;
};

struct hive_tls {
	uint32_t magic;                    /* I */
	int fd;                            /* I */
	struct hive_tls_context *context;  /* I */
	ATOMIC(uint32_t) reading, writing; /* A: somebody is in such a call */
	ATOMIC(uint32_t) shaking;          /* A: a fiber of ours is to shake hands, */
	struct then then;                  /* T: and this is for whom */
	enum phase phase;                  /* B */
	bool starved;                      /* B: the handshake goes on with a record of the peer's */
	bool truncated;                    /* R: the peer's bytes have ended */
	bool ended;                        /* W: our end was told */
	struct lock lock;
	SSL *ssl;         /* L */
	bool known;       /* L: the handshake is over, one may ask about the peer */
	int error;        /* L: it is broken; 0: it is not */
	char reason[256]; /* L */
	struct hive_mutex sending;
	struct block in;  /* L; behind `to` lent to the receiving reader */
	struct block out; /* L; up to `to` lent to the sender, who alone moves `from` */
};

extern const struct memory hive__tls_memory;

static inline bool block_is_empty(const struct block *b)
{
	return b->from == b->to;
}

/* ---- roles ---- */

/* 0, -EINVAL: no connection; -EBUSY: somebody is in such a call. tls_leave() has to follow. */
int hive__tls_enter(struct hive_tls *tls, ATOMIC(uint32_t) *role);
int hive__tls_enter_both(struct hive_tls *tls);

static inline void tls_leave(ATOMIC(uint32_t) *role)
{
	role_leave(role);
}

/* ---- ciphertext ---- */

/* What OpenSSL reads from and writes to. NULL: no memory. */
BIO_METHOD *hive__tls_method(void);
/* The reader. More of it. 0; -ENODATA: there is no more; what hive_recv() says. */
int hive__tls_receive(struct hive_tls *tls, int64_t deadline_ns);
/* The reader. OpenSSL can do something with what is there. */
bool hive__tls_has_record(const struct hive_tls *tls);
/* The writer. Until all of it is sent. What hive_send() says. */
int hive__tls_send(struct hive_tls *tls, int64_t deadline_ns);
/* The reader. Sends without waiting, as long as the writer does not do it. */
void hive__tls_send_some(struct hive_tls *tls);

/* ---- what OpenSSL says ---- */

/* L. After a call that returned r, on the same thread, without a wait between. -EAGAIN: more ciphertext is needed; -ENOBUFS: there
 * is no room for its own; 0: the peer has ended. Else it is broken from here on, and this is why.                            */
int hive__tls_outcome(struct hive_tls *tls, int r);
/* L. Broken by this error, for this reason. The error. */
int hive__tls_fail(struct hive_tls *tls, int error, const char *reason);

/* ---- contexts ---- */

/* Any thread. NULL: it is none. */
struct hive_tls_context *hive__tls_context_hold(struct hive_tls_context *context);
