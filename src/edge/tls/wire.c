/* SPDX-License-Identifier: MIT */
/* Ciphertext: between OpenSSL and the blocks, between the blocks and the descriptor. */
#include <string.h>

#include "edge/tls/tls.h"

/* ---- OpenSSL's side, under the lock ---- */

static int take(BIO *bio, char *buffer, int bytes)
{
	struct block *in = &((struct hive_tls *)BIO_get_data(bio))->in;
	size_t n = in->to - in->from;

	BIO_clear_retry_flags(bio);
	if (bytes <= 0)
		return 0;
	if (n == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	n = n < (size_t)bytes ? n : (size_t)bytes;
	memcpy(buffer, in->data + in->from, n);
	in->from += n;
	return (int)n;
}

static int give(BIO *bio, const char *buffer, int bytes)
{
	struct block *out = &((struct hive_tls *)BIO_get_data(bio))->out;
	size_t room = sizeof out->data - out->to;

	BIO_clear_retry_flags(bio);
	if (bytes <= 0)
		return 0;
	if (room == 0) {
		BIO_set_retry_write(bio);
		return -1;
	}
	room = room < (size_t)bytes ? room : (size_t)bytes;
	memcpy(out->data + out->to, buffer, room);
	out->to += room;
	return (int)room;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP;
}

static int begin(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

BIO_METHOD *hive__tls_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "rophive");

	if (method && BIO_meth_set_read(method, take) && BIO_meth_set_write(method, give) &&
	    BIO_meth_set_ctrl(method, control) && BIO_meth_set_create(method, begin))
		return method;
	BIO_meth_free(method);
	return NULL;
}

/* ---- the descriptor's side ---- */

int hive__tls_receive(struct hive_tls *tls, int64_t deadline_ns)
{
	struct block *in = &tls->in;
	int64_t n;

	if (tls->truncated)
		return -ENODATA;
	lock_acquire(&tls->lock);
	memmove(in->data, in->data + in->from, in->to - in->from);
	in->to -= in->from;
	in->from = 0;
	lock_release(&tls->lock);
	n = hive_recv(tls->fd, in->data + in->to, sizeof in->data - in->to, deadline_ns);
	if (n < 0)
		return (int)n;
	tls->truncated = n == 0;
	lock_acquire(&tls->lock);
	in->to += (size_t)n;
	if (n == 0 && tls->reason[0] == 0)
		strcpy(tls->reason, "the peer ended without saying so");
	lock_release(&tls->lock);
	return n == 0 ? -ENODATA : 0;
}

/* What does not begin like a record is for OpenSSL to complain about. */
bool hive__tls_has_record(const struct hive_tls *tls)
{
	const unsigned char *at = (const unsigned char *)tls->in.data + tls->in.from;
	size_t has = tls->in.to - tls->in.from, length;

	if (has == 0)
		return false;
	if (at[0] < 20 || at[0] > 23 || (has > 1 && at[1] != 3))
		return true;
	if (has < RECORD_HEADER)
		return false;
	length = (size_t)at[3] << 8 | at[4];
	return length > RECORD_MOST + 2048 || has >= RECORD_HEADER + length;
}

static bool has_out(struct hive_tls *tls)
{
	bool has;

	lock_acquire(&tls->lock);
	has = !block_is_empty(&tls->out);
	lock_release(&tls->lock);
	return has;
}

/* Who holds `sending`. As long as something is there. OpenSSL may put more behind it meanwhile. */
static int drain(struct hive_tls *tls, int64_t deadline_ns)
{
	struct block *out = &tls->out;

	for (;;) {
		size_t from, to;
		int64_t n;

		lock_acquire(&tls->lock);
		if (block_is_empty(out))
			out->from = out->to = 0;
		from = out->from;
		to = out->to;
		lock_release(&tls->lock);
		if (from == to)
			return 0;
		n = hive_send(tls->fd, out->data + from, to - from, deadline_ns);
		if (n < 0)
			return (int)n;
		lock_acquire(&tls->lock);
		out->from += (size_t)n;
		lock_release(&tls->lock);
	}
}

/* Looks once more when it has let go: the reader may have left something, as somebody was sending. */
int hive__tls_send(struct hive_tls *tls, int64_t deadline_ns)
{
	int r = 0;

	while (r == 0 && has_out(tls)) {
		r = hive_mutex_lock(&tls->sending, deadline_ns);
		if (r < 0)
			break;
		r = drain(tls, deadline_ns);
		hive_mutex_unlock(&tls->sending);
	}
	return r;
}

void hive__tls_send_some(struct hive_tls *tls)
{
	if (hive_mutex_lock(&tls->sending, HIVE_NOWAIT) < 0)
		return;
	drain(tls, HIVE_NOWAIT);
	hive_mutex_unlock(&tls->sending);
}
