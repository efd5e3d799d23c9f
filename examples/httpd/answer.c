/* SPDX-License-Identifier: MIT */
/* Heads of answers. */
#include "httpd.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SERVER "Server: rophive-httpd\r\n"

const char *reason_of(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 201:
		return "Created";
	case 204:
		return "No Content";
	case 206:
		return "Partial Content";
	case 301:
		return "Moved Permanently";
	case 304:
		return "Not Modified";
	case 400:
		return "Bad Request";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 408:
		return "Request Timeout";
	case 412:
		return "Precondition Failed";
	case 413:
		return "Content Too Large";
	case 414:
		return "URI Too Long";
	case 416:
		return "Range Not Satisfiable";
	case 417:
		return "Expectation Failed";
	case 431:
		return "Request Header Fields Too Large";
	case 501:
		return "Not Implemented";
	case 503:
		return "Service Unavailable";
	case 505:
		return "HTTP Version Not Supported";
	case 507:
		return "Insufficient Storage";
	default:
		return "Internal Server Error";
	}
}

int64_t worker_now_s(struct worker *worker)
{
	int64_t now = (int64_t)time(NULL);

	if (now != worker->date_s) {
		worker->date_s = now;
		http_date_format(now, worker->date);
	}
	return now;
}

/* ---- text that grows in an array ---- */

struct text {
	char bytes[2048]; /* of which a location is the longest part */
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
	size_t room = sizeof t->bytes - t->used;
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(t->bytes + t->used, room, format, list);
	va_end(list);
	if (n > 0)
		t->used += (size_t)n < room ? (size_t)n : room - 1;
}

/* Whether the connection goes on is known when its answer begins, and said there. */
static void decide(struct connection *c)
{
	const struct settings *settings = &c->worker->server->settings;

	if (c->head_bytes == 0 || !c->head.keeps_alive || c->requests >= settings->requests ||
	    atomic_load_explicit(&c->worker->server->stops, memory_order_relaxed) || !body_is_skippable(c))
		c->closes = true;
	c->begun = true;
}

static const char *connection_line(const struct connection *c)
{
	if (c->closes)
		return "Connection: close\r\n";
	return c->head.minor == 0 ? "Connection: keep-alive\r\n" : "";
}

/* Date, connection, and the empty line. */
static int finish(struct connection *c)
{
	char end[128], *at = end;
	const char *line = connection_line(c);
	size_t bytes = strlen(line);

	worker_now_s(c->worker);
	memcpy(at, "Date: ", 6);
	memcpy(at + 6, c->worker->date, HTTP_DATE_BYTES);
	at += 6 + HTTP_DATE_BYTES;
	memcpy(at, "\r\n", 2);
	memcpy(at + 2, line, bytes);
	at += 2 + bytes;
	memcpy(at, "\r\n", 2);
	return connection_write(c, end, (size_t)(at + 2 - end));
}

int answer_file_begin(struct connection *c, const struct file *file)
{
	int r;

	decide(c);
	c->status = 200;
	r = connection_write(c, file->head, file->head_bytes);
	return r < 0 ? r : finish(c);
}

static void add_body(struct text *t, const struct answer *a)
{
	if (a->type)
		add(t, "Content-Type: %s\r\n", a->type);
	if (a->body_bytes >= 0)
		add(t, "Content-Length: %lld\r\n", (long long)a->body_bytes);
	else if (a->body_bytes == -1)
		add(t, "Transfer-Encoding: chunked\r\n");
	if (a->status == 206)
		add(t, "Content-Range: bytes %lld-%lld/%lld\r\n", (long long)a->first,
		    (long long)(a->first + a->body_bytes - 1), (long long)a->all);
	if (a->status == 416)
		add(t, "Content-Range: bytes */%lld\r\n", (long long)a->all);
}

int answer_begin(struct connection *c, const struct answer *a)
{
	struct text t = { .used = 0 };
	int r;

	decide(c);
	c->status = a->status;
	add(&t, "HTTP/1.1 %d %s\r\n" SERVER, a->status, reason_of(a->status));
	add_body(&t, a);
	if (a->of)
		add(&t, "Last-Modified: %.*s\r\nETag: %s\r\nAccept-Ranges: bytes\r\n", HTTP_DATE_BYTES, a->of->modified,
		    a->of->etag);
	if (a->location)
		add(&t, "Location: %.*s\r\n", (int)a->location_bytes, a->location);
	if (a->allow)
		add(&t, "Allow: %s\r\n", a->allow);
	if (a->status == 503)
		add(&t, "Retry-After: 1\r\n");
	r = connection_write(c, t.bytes, t.used);
	return r < 0 ? r : finish(c);
}

/* After these nobody knows where the next request begins, or it is better not to go on. */
static bool is_final(int status)
{
	return status == 400 || status == 408 || status == 413 || status == 414 || status == 417 || status == 431 ||
	       status >= 500;
}

int answer_allow(struct connection *c, int status, const char *allow)
{
	char text[64];
	int bytes = snprintf(text, sizeof text, "%d %s\n", status, reason_of(status)), r;
	bool bare = status == 204 || status == 304;
	struct answer answer = { .status = status,
		                 .type = bare ? NULL : "text/plain; charset=utf-8",
		                 .body_bytes = bare ? -2 : bytes,
		                 .allow = allow };

	if (is_final(status))
		c->closes = true;
	r = answer_begin(c, &answer);
	if (r < 0 || bare || (c->head_bytes && c->head.method == METHOD_HEAD))
		return r;
	c->answered = bytes;
	return connection_write(c, text, (size_t)bytes);
}

int answer_plain(struct connection *c, int status)
{
	return answer_allow(c, status, NULL);
}
