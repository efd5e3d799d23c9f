/* SPDX-License-Identifier: MIT */
#include "io/lend.h"

#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

static void lend_bytes(void *at, size_t bytes, bool lends)
{
	if (lends)
		POISON(at, bytes);
	else
		UNPOISON(at, bytes);
}

/* More than the system takes may be more than there are. */
static void lend_parts(const struct iovec *parts, size_t count, bool lends)
{
	for (size_t i = 0; i < count && count <= IOV_MAX; i++)
		lend_bytes(parts[i].iov_base, parts[i].iov_len, lends);
}

/* The system writes to the lengths in the header: what they were is kept where a message has nothing else. */
static void lend_message(struct hive_op *op, const struct msghdr *message, bool lends)
{
	if (lends) {
		op->mode = message->msg_name ? message->msg_namelen : 0;
		op->length = message->msg_control ? message->msg_controllen : 0;
	}
	lend_parts(message->msg_iov, message->msg_iovlen, lends);
	lend_bytes(message->msg_name, op->mode, lends);
	lend_bytes(message->msg_control, op->length, lends);
}

void hive__op_lend(struct hive_op *op, bool lends)
{
	if (op->code == HIVE_OP_RECV || op->code == HIVE_OP_READ)
		lend_bytes(op->buffer, op->length, lends);
	else if (op->code == HIVE_OP_READV)
		lend_parts((const struct iovec *)op->buffer, op->length, lends);
	else if (op->code == HIVE_OP_RECVMSG)
		lend_message(op, (const struct msghdr *)op->buffer, lends);
	else if (op->code == HIVE_OP_STATX)
		lend_bytes(op->extra, sizeof(struct statx), lends);
}
