/* SPDX-License-Identifier: MIT */
/* Terminals: how they are set, how large they are, and one's own way to them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <rophive/process.h>

#include "io/number.h"

_Static_assert(sizeof(struct termios) <= sizeof(struct hive_tty), "room for how a terminal was set");

static int answer(int r, int error_before)
{
	int error = errno;

	errno = error_before;
	return r < 0 ? -error : r;
}

int hive_tty_raw(int fd, struct hive_tty *ret_saved)
{
	struct termios was, raw;
	int error = errno, r;

	if (tcgetattr(fd, &was) < 0)
		return answer(-1, error);
	raw = was;
	cfmakeraw(&raw);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	r = answer(tcsetattr(fd, TCSANOW, &raw), error);
	if (r == 0 && ret_saved) {
		*ret_saved = (struct hive_tty){ { 0 } };
		memcpy(ret_saved, &was, sizeof was);
	}
	return r;
}

int hive_tty_restore(int fd, const struct hive_tty *saved)
{
	struct termios was;
	int error = errno;

	if (!saved)
		return -EINVAL;
	memcpy(&was, saved, sizeof was);
	return answer(tcsetattr(fd, TCSANOW, &was), error);
}

int hive_tty_size(int fd, int *ret_columns, int *ret_rows)
{
	struct winsize size;
	int error = errno;

	if (!ret_columns || !ret_rows)
		return -EINVAL;
	if (ioctl(fd, TIOCGWINSZ, &size) < 0)
		return answer(-1, error);
	*ret_columns = size.ws_col;
	*ret_rows = size.ws_row;
	return 0;
}

static bool is_same(int a, int b)
{
	struct stat one, other;

	return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_rdev == other.st_rdev &&
	       one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* A master cannot be opened again: its name makes a new pair. */
static bool is_master(int fd)
{
	unsigned number;

	return ioctl(fd, TIOCGPTN, &number) == 0;
}

static int open_again(int fd)
{
	char path[64];
	int mode = fcntl(fd, F_GETFL), copy;

	if (mode < 0)
		return -1;
	if (!isatty(fd) || is_master(fd)) {
		errno = ENOTTY;
		return -1;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	copy = number_made(open(path, (mode & O_ACCMODE) | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
	if (copy < 0 || is_same(fd, copy))
		return copy;
	hive__number_close(copy);
	errno = ENOTTY;
	return -1;
}

int hive_tty_open(int fd)
{
	int error = errno;

	return answer(open_again(fd), error);
}
