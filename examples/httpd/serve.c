/* SPDX-License-Identifier: MIT */
/* Requests: files by GET and HEAD, /echo by POST, /upload/NAME by PUT. */
#include "httpd.h"

#include <stdio.h>
#include <string.h>

enum { SPLICE_BYTES = 1 << 20, LOCATION_BYTES = 1500 };

/* ---- files ---- */

/* The file may have become shorter since its length was told: then there is no way to go on. */
static int send_from_file(struct connection *c, const struct file *file, int64_t first, int64_t bytes)
{
	int r = connection_flush(c, true);

	while (r == 0 && bytes > 0) {
		int64_t step = bytes < SPLICE_BYTES ? bytes : SPLICE_BYTES;
		int64_t n = hive_splice(file->fd, first, c->fd, -1, (size_t)step,
		                        pace_deadline(&c->worker->server->settings, &c->out_pace));

		if (n <= 0) {
			c->breaks = true;
			return n < 0 ? (int)n : -EIO;
		}
		first += n;
		bytes -= n;
		c->answered += n;
		c->out_pace.bytes += n;
	}
	return r;
}

static int send_part(struct connection *c, const struct file *file, int64_t first, int64_t bytes)
{
	if (c->head.method == METHOD_HEAD)
		return 0;
	if (!file->body)
		return send_from_file(c, file, first, bytes);
	c->answered = bytes;
	return connection_write(c, file->body + first, (size_t)bytes);
}

static int send_file(struct connection *c, const struct file *file)
{
	const char *head = c->in + c->from;
	int64_t now_s = worker_now_s(c->worker);
	struct answer answer = { .of = file, .type = file->type, .all = file->version.size };
	int r;

	answer.status = select_status(&c->head, head, &file->version, now_s);
	if (answer.status == 412)
		return answer_plain(c, 412);
	if (answer.status == 304) {
		answer.type = NULL;
		answer.body_bytes = -2;
		return answer_begin(c, &answer);
	}
	answer.status = select_range(&c->head, head, &file->version, now_s, &answer.first, &answer.body_bytes);
	if (answer.status == 416)
		answer.body_bytes = 0;
	r = answer.status == 200 ? answer_file_begin(c, file) : answer_begin(c, &answer);
	return r < 0 ? r : send_part(c, file, answer.first, answer.body_bytes);
}

/* The same with a slash at its end. A target that begins with two of them, which would lead elsewhere, is no path of ours. */
static int redirect(struct connection *c)
{
	const char *target = c->in + c->from + c->head.target.at, *query;
	char location[LOCATION_BYTES];
	size_t bytes = c->head.target.bytes, path;
	int n;

	query = memchr(target, '?', bytes);
	path = query ? (size_t)(query - target) : bytes;
	n = snprintf(location, sizeof location, "%.*s/%.*s", (int)path, target, (int)(bytes - path), target + path);
	if (target[0] != '/' || n >= (int)sizeof location)
		return answer_plain(c, 404);
	return answer_begin(c, &(struct answer){ .status = 301, .location = location, .location_bytes = (uint32_t)n });
}

static int serve_file(struct connection *c, char *path, int bytes)
{
	static const char index[] = "index.html";
	struct file *file;
	int r;

	if (bytes == 0 || path[bytes - 1] == '/') {
		if ((size_t)bytes + sizeof index > PATH_BYTES)
			return answer_plain(c, 414);
		memcpy(path + bytes, index, sizeof index);
	}
	file = cache_get(&c->worker->cache, path);
	if (!file)
		return answer_plain(c, 503);
	if (file->status == 200)
		r = send_file(c, file);
	else if (file->status == 301)
		r = redirect(c);
	else
		r = answer_plain(c, file->status);
	cache_put(file);
	return r;
}

/* ---- echo ---- */

static int echo_piece(struct connection *c, const char *bytes, int64_t count, bool chunked)
{
	char size[20];
	int r = 0;

	if (chunked)
		r = connection_write(c, size, (size_t)snprintf(size, sizeof size, "%llx\r\n", (long long)count));
	if (r == 0)
		r = connection_write(c, bytes, (size_t)count);
	if (r == 0 && chunked)
		r = connection_write(c, "\r\n", 2);
	c->answered += count;
	return r;
}

/* As it comes: with its length if that is known, else in chunks. */
static int serve_echo(struct connection *c)
{
	bool chunked = c->head.body_bytes < 0;
	const char *bytes;
	int64_t n = body_read(c, &bytes);
	int r;

	if (n < 0)
		return n <= -400 ? answer_plain(c, (int)-n) : (int)n;
	r = answer_begin(c, &(struct answer){ .status = 200,
	                                      .type = "application/octet-stream",
	                                      .body_bytes = c->head.body_bytes });
	while (r == 0 && n > 0) {
		r = echo_piece(c, bytes, n, chunked);
		if (r == 0)
			n = body_read(c, &bytes);
	}
	if (r == 0 && n < 0)
		r = n <= -400 ? -EBADMSG : (int)n;
	if (r < 0)
		c->breaks = true; /* so that nobody takes it for the whole */
	return r == 0 && chunked ? connection_write(c, "0\r\n\r\n", 5) : r;
}

/* ---- which ---- */

static int serve_options(struct connection *c)
{
	return answer_allow(c, 204, "GET, HEAD, POST, PUT, OPTIONS");
}

int serve_request(struct connection *c)
{
	const char *head = c->in + c->from;
	char path[PATH_BYTES];
	int bytes;

	if (c->head.method == METHOD_OTHER)
		return answer_plain(c, 501);
	if (c->head.body_bytes > c->worker->server->settings.body_bytes)
		return answer_plain(c, 413);
	if (c->head.method == METHOD_OPTIONS)
		return serve_options(c);
	bytes = path_of_target(head + c->head.target.at, c->head.target.bytes, path);
	if (bytes < 0)
		return answer_plain(c, -bytes);
	if (strcmp(path, "echo") == 0)
		return c->head.method == METHOD_POST ? serve_echo(c) : answer_allow(c, 405, "POST, OPTIONS");
	if (strncmp(path, "upload/", 7) == 0 && c->worker->server->upload >= 0 && c->head.method == METHOD_PUT)
		return serve_upload(c, path + 7);
	if (c->head.method == METHOD_POST || c->head.method == METHOD_PUT)
		return answer_allow(c, 405, "GET, HEAD, OPTIONS");
	return serve_file(c, path, bytes);
}
