/* SPDX-License-Identifier: MIT */
/* From file to file: by the system, which copies within one file system and from regular files, else by hand. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/op.h"

enum { MOST_BYTES = 128 << 10, STEP_BYTES = 16 << 10 }; /* by hand: of one operation, and at once */

static bool must_be_done_by_hand(const struct hive_op *op, int error)
{
	struct stat from, to;

	if (error != EINVAL)
		return error == EXDEV || error == ENOSYS || error == EOPNOTSUPP;
	return fstat(op->fd, &from) == 0 && fstat(op->fd2, &to) == 0 && (S_ISBLK(from.st_mode) || S_ISBLK(to.st_mode));
}

/* Where it stands, or where it was told to. */
static off_t place_at(int fd, int64_t offset)
{
	off_t at = offset >= 0 ? offset : lseek(fd, 0, SEEK_CUR);

	return at < 0 ? 0 : at;
}

static int64_t copy_by_hand(const struct hive_op *op)
{
	off_t from = place_at(op->fd, op->offset), to = place_at(op->fd2, op->offset2);
	int64_t most = op->length < MOST_BYTES ? (int64_t)op->length : MOST_BYTES, done = 0, n = 1;
	char bytes[STEP_BYTES];

	while (done < most && n > 0) {
		n = pread(op->fd, bytes, most - done < STEP_BYTES ? (size_t)(most - done) : STEP_BYTES, from + done);
		if (n > 0)
			n = pwrite(op->fd2, bytes, (size_t)n, to + done);
		done += n > 0 ? n : 0;
	}
	if (done > 0 && op->offset < 0)
		lseek(op->fd, from + done, SEEK_SET);
	if (done > 0 && op->offset2 < 0)
		lseek(op->fd2, to + done, SEEK_SET);
	return done > 0 ? done : n < 0 ? -errno : 0;
}

int64_t hive__op_copy_file(const struct hive_op *op)
{
	off_t from = op->offset, to = op->offset2;
	int64_t r = copy_file_range(op->fd, op->offset < 0 ? NULL : &from, op->fd2, op->offset2 < 0 ? NULL : &to,
	                            op->length, 0);

	if (r >= 0)
		return r;
	return must_be_done_by_hand(op, errno) ? copy_by_hand(op) : -errno;
}
