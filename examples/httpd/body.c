/* SPDX-License-Identifier: MIT */
/* Bodies of requests: with a length, in chunks, or none; not slower than the settings allow, and not longer. */
#include "httpd.h"

#include <string.h>

enum { SKIP_BYTES = 64 << 10 };

bool body_is_over(const struct connection *c)
{
	return c->head.body_bytes < 0 ? chunks_over(&c->chunks) : c->body_left == 0;
}

/* The client waits for a word before it sends anything. */
static bool client_waits(const struct connection *c)
{
	return c->head.wants_continue && !c->continued && c->at == c->to;
}

static int say_continue(struct connection *c)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

	c->continued = true;
	return connection_write(c, text, sizeof text - 1);
}

/* Room behind the head, whose text is still needed. All that was there has been used. */
static int64_t refill(struct connection *c)
{
	int64_t n;
	int r = client_waits(c) ? say_continue(c) : 0;

	if (r < 0)
		return r;
	if (c->from > 0) {
		memmove(c->in, c->in + c->from, c->head_bytes);
		c->from = 0;
	}
	c->at = c->to = c->head_bytes;
	n = connection_fill(c, pace_deadline(&c->worker->server->settings, &c->in_pace));
	if (n > 0)
		c->in_pace.bytes += n;
	return n == 0 ? -ENODATA : n == -ETIMEDOUT ? -408 : n;
}

static int64_t take_plain(struct connection *c, const char **ret_bytes)
{
	uint32_t there = c->to - c->at, n = there < c->body_left ? there : (uint32_t)c->body_left;

	*ret_bytes = c->in + c->at;
	c->at += n;
	c->body_left -= n;
	return n;
}

static int64_t take_chunked(struct connection *c, const char **ret_bytes)
{
	const char *bytes = c->in + c->at;
	struct span data;
	int64_t used = chunks_parse(&c->chunks, bytes, c->to - c->at, &data);

	if (used < 0)
		return used;
	c->at += (uint32_t)used;
	*ret_bytes = bytes + data.at;
	c->body_got += data.bytes;
	return c->body_got > c->worker->server->settings.body_bytes ? -413 : (int64_t)data.bytes;
}

int64_t body_read(struct connection *c, const char **ret_bytes)
{
	int64_t n = 0;

	while (n == 0 && !body_is_over(c)) {
		if (c->at == c->to)
			n = refill(c);
		if (n < 0)
			break;
		n = c->head.body_bytes < 0 ? take_chunked(c, ret_bytes) : take_plain(c, ret_bytes);
	}
	if (n < 0)
		c->closes = true; /* where the next request begins nobody knows */
	return n;
}

bool body_is_skippable(const struct connection *c)
{
	return body_is_over(c) || (!client_waits(c) && c->body_left <= SKIP_BYTES);
}

int body_skip(struct connection *c)
{
	const char *bytes;
	int64_t n = 1, skipped = 0;

	if (!body_is_skippable(c))
		return -EMSGSIZE;
	while (n > 0 && skipped <= SKIP_BYTES) {
		n = body_read(c, &bytes);
		skipped += n;
	}
	if (n > 0)
		c->closes = true;
	return n > 0 ? -EMSGSIZE : (int)n;
}
