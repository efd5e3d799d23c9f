/* SPDX-License-Identifier: MIT */
/* The middle and the end of a connection: its reader, its writer, who ends it. */
#include <string.h>

#include <openssl/err.h>

#include "edge/tls/tls.h"

/* ---- one record, under the lock ---- */

/* As hive__tls_outcome(), or how many bytes. */
static int64_t decrypt(struct hive_tls *tls, void *buffer, size_t bytes, bool *ret_answers)
{
	size_t n = 0;
	int64_t r;

	lock_acquire(&tls->lock);
	r = tls->error;
	if (r == 0) {
		ERR_clear_error();
		r = SSL_read_ex(tls->ssl, buffer, bytes, &n) == 1 ? (int64_t)n : hive__tls_outcome(tls, 0);
	}
	*ret_answers = !block_is_empty(&tls->out);
	lock_release(&tls->lock);
	return r;
}

static int64_t encrypt(struct hive_tls *tls, const void *buffer, size_t bytes)
{
	size_t n = 0;
	int64_t r;

	lock_acquire(&tls->lock);
	r = tls->error;
	if (r == 0) {
		ERR_clear_error();
		r = SSL_write_ex(tls->ssl, buffer, bytes, &n) == 1 ? (int64_t)n : hive__tls_outcome(tls, 0);
	}
	lock_release(&tls->lock);
	return r == 0 ? -EPIPE : r;
}

static int say_end(struct hive_tls *tls)
{
	int r;

	lock_acquire(&tls->lock);
	r = tls->error;
	if (r == 0) {
		ERR_clear_error();
		r = SSL_shutdown(tls->ssl);
		r = r >= 0 ? 0 : hive__tls_outcome(tls, r);
	}
	lock_release(&tls->lock);
	return r;
}

/* ---- roles ---- */

static int enter(struct hive_tls *tls, ATOMIC(uint32_t) *role)
{
	int r = hive__tls_enter(tls, role);

	if (r == 0 && tls->phase != PHASE_READY) {
		r = tls->phase == PHASE_FAILED ? tls->error : -ENOTCONN;
		tls_leave(role);
	}
	return r;
}

/* ---- the reader ---- */

static int64_t read_bytes(struct hive_tls *tls, void *buffer, size_t bytes, int64_t deadline_ns)
{
	for (;;) {
		bool answers;
		int64_t n = decrypt(tls, buffer, bytes, &answers);
		int r = 0;

		if (answers) /* an alert, for example: nobody may write for a long time */
			hive__tls_send_some(tls);
		if (n == -EAGAIN)
			r = hive__tls_receive(tls, deadline_ns);
		else if (n == -ENOBUFS)
			r = hive__tls_send(tls, deadline_ns);
		else
			return n;
		if (r < 0)
			return r;
	}
}

int64_t hive_tls_read(struct hive_tls *tls, void *buffer, size_t bytes, int64_t deadline_ns)
{
	int64_t r = tls && (buffer || bytes == 0) ? enter(tls, &tls->reading) : -EINVAL;

	if (r < 0)
		return r;
	if (bytes > 0)
		r = read_bytes(tls, buffer, bytes, deadline_ns);
	tls_leave(&tls->reading);
	return r;
}

int hive_tls_read_all(struct hive_tls *tls, void *buffer, size_t bytes, int64_t deadline_ns)
{
	for (size_t have = 0; have < bytes;) {
		int64_t n = hive_tls_read(tls, (char *)buffer + have, bytes - have, deadline_ns);

		if (n <= 0)
			return n < 0 ? (int)n : -ENODATA;
		have += (size_t)n;
	}
	return 0;
}

/* ---- the writer ---- */

/* What is left over may be sent later, and is told by the next call. */
static bool can_go_on(int64_t r)
{
	return r == -ETIMEDOUT || r == -ECANCELED || r == -ENOMEM || r == -EDEADLK;
}

/* A record at a time: sent before the next one is made. */
static int64_t write_bytes(struct hive_tls *tls, const char *buffer, size_t bytes, int64_t deadline_ns)
{
	size_t taken = 0;
	int64_t r;

	for (;;) {
		r = hive__tls_send(tls, deadline_ns);
		if (r < 0 || taken == bytes)
			break;
		r = encrypt(tls, buffer + taken, bytes - taken < RECORD_MOST ? bytes - taken : RECORD_MOST);
		if (r > 0)
			taken += (size_t)r;
		else if (r != -ENOBUFS)
			break;
	}
	return taken > 0 && (r >= 0 || can_go_on(r)) ? (int64_t)taken : r;
}

int64_t hive_tls_write(struct hive_tls *tls, const void *buffer, size_t bytes, int64_t deadline_ns)
{
	int64_t r = tls && (buffer || bytes == 0) ? enter(tls, &tls->writing) : -EINVAL;

	if (r < 0)
		return r;
	r = tls->ended ? -EPIPE : write_bytes(tls, buffer, bytes, deadline_ns);
	tls_leave(&tls->writing);
	return r;
}

int hive_tls_write_all(struct hive_tls *tls, const void *buffer, size_t bytes, int64_t deadline_ns)
{
	for (size_t done = 0; done < bytes;) {
		int64_t n = hive_tls_write(tls, (const char *)buffer + done, bytes - done, deadline_ns);

		if (n < 0)
			return (int)n;
		done += (size_t)n;
	}
	return hive_tls_flush(tls, deadline_ns);
}

int hive_tls_flush(struct hive_tls *tls, int64_t deadline_ns)
{
	int r = tls ? enter(tls, &tls->writing) : -EINVAL;

	if (r < 0)
		return r;
	r = hive__tls_send(tls, deadline_ns);
	tls_leave(&tls->writing);
	return r;
}

/* ---- the end ---- */

static int end(struct hive_tls *tls, int64_t deadline_ns)
{
	int r = 0;

	while (!tls->ended && r == 0) {
		r = hive__tls_send(tls, deadline_ns);
		if (r == 0) {
			r = say_end(tls);
			tls->ended = r == 0;
			r = r == -ENOBUFS ? 0 : r;
		}
	}
	return r < 0 ? r : hive__tls_send(tls, deadline_ns);
}

int hive_tls_shutdown(struct hive_tls *tls, int64_t deadline_ns)
{
	int r = tls ? enter(tls, &tls->writing) : -EINVAL;

	if (r < 0)
		return r;
	r = end(tls, deadline_ns);
	tls_leave(&tls->writing);
	return r;
}

int hive_tls_destroy(struct hive_tls *tls, int64_t deadline_ns)
{
	int r;

	if (!tls)
		return 0;
	r = hive__tls_enter_both(tls);
	if (r < 0)
		return r;
	if (tls->phase == PHASE_READY && tls->error == 0)
		r = end(tls, deadline_ns);
	else
		hive__tls_send_some(tls);
	SSL_free(tls->ssl);
	ERR_clear_error();
	(void)hive_close(tls->fd, HIVE_NOWAIT); /* so that each worker learns of it; a socket is closed at once */
	hive_tls_context_destroy(tls->context);
	tls->magic = 0;
	hive__memory_free(&hive__tls_memory, tls);
	return r;
}

int hive_tls_fd(const struct hive_tls *tls)
{
	return tls ? tls->fd : -EINVAL;
}
