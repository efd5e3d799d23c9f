/* SPDX-License-Identifier: MIT */
/* The access log: lines gather, and are written when there are many of them, and every second. */
#include "httpd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 1024 };

int log_open(struct access_log *log, const char *path)
{
	hive_mutex_init(&log->mutex);
	log->used = 0;
	log->lost = 0;
	log->fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
	return path && log->fd < 0 ? -errno : 0;
}

/* The mutex is held: who has lines meanwhile waits. */
static void write_out(struct access_log *log)
{
	size_t done = 0;
	int64_t n = 1;

	while (done < log->used && n > 0) {
		n = hive_write(log->fd, log->buffer + done, log->used - done, -1, HIVE_FOREVER);
		done += n > 0 ? (size_t)n : 0;
	}
	if (done < log->used)
		log->lost++;
	log->used = 0;
}

/* What a client may have written is shown so that a line stays a line. */
static size_t put_quoted(char *to, const char *bytes, size_t count)
{
	char *at = to;

	for (size_t i = 0; i < count; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
			at += sprintf(at, "\\x%02x", c);
		else
			*at++ = (char)c;
	}
	return (size_t)(at - to);
}

static size_t put_line(char *to, const struct connection *c, int64_t now_s)
{
	const struct head *head = &c->head;
	char date[HTTP_DATE_BYTES];
	size_t shown = head->target.bytes < LINE_BYTES / 8 ? head->target.bytes : LINE_BYTES / 8, n;

	http_date_format(now_s, date);
	n = (size_t)sprintf(to, "%s [%.*s] \"", c->client, HTTP_DATE_BYTES, date);
	if (c->head_bytes > 0) {
		size_t method = head->method_text.bytes < 16 ? head->method_text.bytes : 16;

		n += put_quoted(to + n, c->in + c->from + head->method_text.at, method);
		to[n++] = ' ';
		n += put_quoted(to + n, c->in + c->from + head->target.at, shown);
		n += (size_t)sprintf(to + n, " HTTP/1.%u", head->minor);
	}
	return n + (size_t)sprintf(to + n, "\" %03d %lld\n", c->status, (long long)c->answered);
}

void log_request(struct access_log *log, const struct connection *c, int64_t now_s)
{
	if (hive_mutex_lock(&log->mutex, HIVE_FOREVER) < 0) {
		return;
	}
	if (sizeof log->buffer - log->used < LINE_BYTES)
		write_out(log);
	log->used += put_line(log->buffer + log->used, c, now_s);
	hive_mutex_unlock(&log->mutex);
}

void log_flush(struct access_log *log)
{
	if (log->fd < 0 || hive_mutex_lock(&log->mutex, HIVE_FOREVER) < 0)
		return;
	write_out(log);
	hive_mutex_unlock(&log->mutex);
}
