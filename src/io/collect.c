/* SPDX-License-Identifier: MIT */
/* Waiting for an operation, and what a dump says of who does. */
#include "io/op.h"

const char *hive__op_name(const struct hive_op *op)
{
	static const char *const words[] = {
		[HIVE_OP_ACCEPT] = "accept on ",     [HIVE_OP_CONNECT] = "connect on ",
		[HIVE_OP_RECV] = "recv on ",         [HIVE_OP_SEND] = "send on ",
		[HIVE_OP_RECVMSG] = "recvmsg on ",   [HIVE_OP_SENDMSG] = "sendmsg on ",
		[HIVE_OP_READ] = "read on ",         [HIVE_OP_WRITE] = "write on ",
		[HIVE_OP_READV] = "readv on ",       [HIVE_OP_WRITEV] = "writev on ",
		[HIVE_OP_SPLICE] = "splice from ",   [HIVE_OP_POLL] = "poll on ",
		[HIVE_OP_SHUTDOWN] = "shutdown of ", [HIVE_OP_OPEN] = "open",
		[HIVE_OP_CLOSE] = "close of ",       [HIVE_OP_FSYNC] = "fsync of ",
		[HIVE_OP_STATX] = "statx",           [HIVE_OP_UNLINK] = "unlink",
		[HIVE_OP_RENAME] = "rename",         [HIVE_OP_MKDIR] = "mkdir",
		[HIVE_OP_RESOLVE] = "resolve",       [HIVE_OP_DIAL] = "dial",
		[HIVE_OP_PROCESS_START] = "start",   [HIVE_OP_PROCESS_WAIT] = "process",
		[HIVE_OP_SIGNAL_WAIT] = "signal",
	};

	return op->code < sizeof words / sizeof *words && words[op->code] ? words[op->code] : "io";
}

int64_t hive_op_wait(struct hive_op *op)
{
	const char *why;
	int r, reason;

	if (!op_is_valid(op) || op->on_done || op->code == 0)
		return -EINVAL;
	why = hive__op_name(op);
	r = once_wait_for(op_once(op), false, why, op->fd, HIVE_FOREVER);
	if (r < 0 && hive__wait_reason() == 0)
		return r;
	reason = r;
	if (r < 0) {
		hive_op_cancel(op);
		while (r < 0)
			r = once_wait_for(op_once(op), true, why, op->fd, HIVE_FOREVER);
	}
	return reason < 0 && op->result == -ECANCELED ? reason : op->result;
}
