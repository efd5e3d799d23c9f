/* SPDX-License-Identifier: MIT */
/* Files that clients put here: written under another name, so that nobody sees half of one, and renamed when they are complete. */
#include "httpd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_name(const char *name)
{
	for (const char *at = name; *at; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
		      *at == '.' || *at == '-' || *at == '_'))
			return false;
	return *name && *name != '.' && strlen(name) <= 128;
}

static int status_of(int error)
{
	switch (error) {
	case -ENOSPC:
	case -EDQUOT:
		return 507;
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
		return 503;
	default:
		return 500;
	}
}

static int write_all(int fd, const char *bytes, int64_t count, int64_t *offset)
{
	while (count > 0) {
		int64_t n = hive_write(fd, bytes, (size_t)count, *offset, HIVE_FOREVER);

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		bytes += n;
		count -= n;
		*offset += n;
	}
	return 0;
}

/* 0; -status: the answer; -errno: the connection is lost. */
static int receive(struct connection *c, int fd)
{
	const char *bytes;
	int64_t n, offset = 0;

	while ((n = body_read(c, &bytes)) > 0) {
		int r = write_all(fd, bytes, n, &offset);

		if (r < 0)
			return r == -ECANCELED ? r : -status_of(r);
	}
	return (int)n;
}

int serve_upload(struct connection *c, const char *name)
{
	int folder = c->worker->server->upload, fd, r, closed;
	struct statx about;
	char part[64];
	bool is_there;

	if (!is_name(name))
		return answer_plain(c, 403);
	snprintf(part, sizeof part, ".part-%d-%u", (int)getpid(), atomic_fetch_add(&c->worker->server->part, 1));
	fd = hive_open(folder, part, O_WRONLY | O_CREAT | O_EXCL, 0644, HIVE_FOREVER);
	if (fd < 0)
		return fd == -ECANCELED ? fd : answer_plain(c, status_of(fd));
	r = receive(c, fd);
	closed = hive_close(fd, HIVE_FOREVER);
	if (r == 0 && closed < 0)
		r = -status_of(closed);
	is_there = hive_statx(folder, name, AT_SYMLINK_NOFOLLOW, &about, HIVE_FOREVER) == 0;
	if (r == 0) {
		r = hive_rename(folder, part, folder, name, HIVE_FOREVER);
		r = r < 0 && r != -ECANCELED ? -status_of(r) : r;
	}
	if (r < 0)
		hive_unlink(folder, part, 0, HIVE_FOREVER);
	if (r < 0 && r > -400)
		return r;
	return answer_plain(c, r < 0 ? -r : is_there ? 204 : 201);
}
