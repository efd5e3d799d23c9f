/* SPDX-License-Identifier: MIT */
/* The head of a request: line by line, each looked at once, when its end is there. */
#include "http.h"

#include <string.h>

/* Octets by where they may stand. TOKEN: names and methods. TARGET: visible, no '#'. VALUE: visible, blank, tab, or beyond ASCII. */
enum { TOKEN = 1, TARGET = 2, VALUE = 4 };

static const unsigned char octets[256] = {
	['\t'] = VALUE,    [' '] = VALUE,     ['!'] = 7,         ['"'] = 6, ['#'] = 5, ['$'] = 7,
	['%'] = 7,         ['&'] = 7,         ['\''] = 7,        ['('] = 6, [')'] = 6, ['*'] = 7,
	['+'] = 7,         [','] = 6,         ['-'] = 7,         ['.'] = 7, ['/'] = 6, ['0' ... '9'] = 7,
	[':' ... '@'] = 6, ['A' ... 'Z'] = 7, ['[' ... ']'] = 6, ['^'] = 7, ['_'] = 7, ['`'] = 7,
	['a' ... 'z'] = 7, ['{'] = 6,         ['|'] = 7,         ['}'] = 6, ['~'] = 7, [0x80 ... 0xff] = VALUE,
};

static bool all_are(const char *at, const char *end, unsigned kind)
{
	while (at < end)
		if (!(octets[(unsigned char)*at++] & kind))
			return false;
	return true;
}

static bool same_text(const char *bytes, size_t count, const char *text)
{
	return strlen(text) == count && memcmp(bytes, text, count) == 0;
}

bool text_is(const char *bytes, size_t count, const char *lower)
{
	for (size_t i = 0; i < count; i++) {
		char c = bytes[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c + ('a' - 'A'));
		if (lower[i] != c || c == 0) /* a 0 is where it ends */
			return false;
	}
	return lower[count] == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

bool list_has(const char *bytes, size_t count, const char *lower)
{
	const char *at = bytes, *end = bytes + count;

	while (at < end) {
		const char *comma = (const char *)memchr(at, ',', (size_t)(end - at));
		const char *next = comma ? comma : end, *last = next;

		while (at < last && is_blank(*at))
			at++;
		while (last > at && is_blank(last[-1]))
			last--;
		if (text_is(at, (size_t)(last - at), lower))
			return true;
		at = next + 1;
	}
	return false;
}

const struct field *head_field(const struct head *head, enum field_name name)
{
	for (uint32_t i = 0; head_has(head, name) && i < head->field_count; i++)
		if (head->fields[i].is == name)
			return &head->fields[i];
	return NULL;
}

/* ---- the request line ---- */

static enum method method_of(const char *text, size_t bytes)
{
	static const char *const names[] = { "GET", "HEAD", "POST", "PUT", "OPTIONS" };

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (same_text(text, bytes, names[i]))
			return (enum method)(METHOD_GET + i);
	return METHOD_OTHER;
}

/* "HTTP/1.1"; other minors of 1 are understood as 1.1. */
static int parse_version(const char *at, size_t bytes, uint32_t *ret_minor)
{
	if (bytes != 8 || memcmp(at, "HTTP/", 5) != 0 || at[6] != '.' || at[5] < '0' || at[5] > '9' || at[7] < '0' ||
	    at[7] > '9')
		return -400;
	if (at[5] != '1')
		return -505;
	*ret_minor = at[7] == '0' ? 0 : 1;
	return 0;
}

static bool is_target(enum method method, const char *at, size_t bytes)
{
	if (bytes == 0 || !all_are(at, at + bytes, TARGET))
		return false;
	return at[0] == '/' || (method == METHOD_OPTIONS && same_text(at, bytes, "*")) ||
	       (bytes > 7 && text_is(at, 7, "http://")) || method == METHOD_OTHER; /* that is refused in any case */
}

static int parse_request_line(struct head *head, const char *bytes, uint32_t from, uint32_t to)
{
	const char *at = bytes + from, *end = bytes + to;
	const char *blank = (const char *)memchr(at, ' ', (size_t)(end - at));
	const char *second = blank ? (const char *)memchr(blank + 1, ' ', (size_t)(end - blank - 1)) : NULL;
	int r;

	if (!second || blank == at || !all_are(at, blank, TOKEN))
		return -400;
	r = parse_version(second + 1, (size_t)(end - second - 1), &head->minor);
	if (r < 0)
		return r;
	head->method = method_of(at, (size_t)(blank - at));
	head->method_text = (struct span){ from, (uint32_t)(blank - at) };
	head->target = (struct span){ (uint32_t)(blank + 1 - bytes), (uint32_t)(second - blank - 1) };
	return is_target(head->method, blank + 1, head->target.bytes) ? 0 : -400;
}

/* ---- fields ---- */

static enum field_name name_of(const char *text, size_t bytes)
{
	static const char *const names[FIELD_NAMES] = {
		[FIELD_HOST] = "host",
		[FIELD_CONNECTION] = "connection",
		[FIELD_CONTENT_LENGTH] = "content-length",
		[FIELD_TRANSFER_ENCODING] = "transfer-encoding",
		[FIELD_EXPECT] = "expect",
		[FIELD_RANGE] = "range",
		[FIELD_IF_RANGE] = "if-range",
		[FIELD_IF_MATCH] = "if-match",
		[FIELD_IF_NONE_MATCH] = "if-none-match",
		[FIELD_IF_MODIFIED_SINCE] = "if-modified-since",
		[FIELD_IF_UNMODIFIED_SINCE] = "if-unmodified-since",
	};

	for (unsigned i = 1; i < FIELD_NAMES; i++)
		if (text_is(text, bytes, names[i]))
			return (enum field_name)i;
	return FIELD_OTHER;
}

/* Of several fields of these names the first would count for one reader, the last for another. */
static bool is_single(enum field_name name)
{
	return name == FIELD_HOST || name == FIELD_CONTENT_LENGTH || name == FIELD_TRANSFER_ENCODING ||
	       name == FIELD_RANGE || name == FIELD_IF_RANGE || name == FIELD_IF_MODIFIED_SINCE ||
	       name == FIELD_IF_UNMODIFIED_SINCE || name == FIELD_EXPECT;
}

static int parse_length(const char *at, size_t bytes, int64_t *ret_length)
{
	int64_t length = 0;

	if (bytes == 0 || bytes > 18) /* what 63 bits hold for sure */
		return -400;
	for (size_t i = 0; i < bytes; i++) {
		if (at[i] < '0' || at[i] > '9')
			return -400;
		length = length * 10 + (at[i] - '0');
	}
	*ret_length = length;
	return 0;
}

/* What the field says about the message itself. */
static int understand(struct head *head, enum field_name name, const char *value, size_t bytes)
{
	switch (name) {
	case FIELD_CONTENT_LENGTH:
		head->has_length = true;
		return parse_length(value, bytes, &head->body_bytes);
	case FIELD_TRANSFER_ENCODING:
		return text_is(value, bytes, "chunked") ? 0 : -501;
	case FIELD_CONNECTION:
		head->says_close = head->says_close || list_has(value, bytes, "close");
		head->keeps_alive = !head->says_close && (head->keeps_alive || list_has(value, bytes, "keep-alive"));
		return 0;
	case FIELD_EXPECT:
		if (!text_is(value, bytes, "100-continue"))
			return -417;
		head->wants_continue = head->minor > 0;
		return 0;
	default:
		return 0;
	}
}

static int parse_field(struct head *head, const struct head_limits *limits, const char *bytes, uint32_t from,
                       uint32_t to)
{
	uint32_t most = limits->field_count ? limits->field_count : HTTP_FIELDS_MAX;
	const char *at = bytes + from, *end = bytes + to;
	const char *colon = (const char *)memchr(at, ':', (size_t)(end - at));
	const char *value = colon ? colon + 1 : end;
	enum field_name name;

	if (!colon || colon == at || !all_are(at, colon, TOKEN) || !all_are(value, end, VALUE))
		return -400; /* a folded line begins with a blank, which is no part of a name */
	if (head->field_count >= (most < HTTP_FIELDS_MAX ? most : HTTP_FIELDS_MAX))
		return -431;
	while (value < end && is_blank(*value))
		value++;
	while (end > value && is_blank(end[-1]))
		end--;
	name = name_of(at, (size_t)(colon - at));
	if (is_single(name) && head_has(head, name))
		return -400;
	head->present |= 1u << name;
	head->fields[head->field_count++] = (struct field){ { from, (uint32_t)(colon - at) },
		                                            { (uint32_t)(value - bytes), (uint32_t)(end - value) },
		                                            name };
	return understand(head, name, value, (size_t)(end - value));
}

/* All fields are there: do they agree? */
static int conclude(struct head *head)
{
	if (head->minor > 0 && !head_has(head, FIELD_HOST))
		return -400;
	if (head_has(head, FIELD_TRANSFER_ENCODING)) {
		if (head->has_length || head->minor == 0)
			return -400;
		head->body_bytes = -1;
	}
	return 0;
}

/* ---- lines ---- */

/* So many bytes are there, or at least needed: too many? */
static int judge_length(const struct head_parser *p, const struct head_limits *limits, size_t count)
{
	if (!p->in_fields && limits->line_bytes && count - p->line > limits->line_bytes)
		return -414;
	if (limits->head_bytes && count - p->lead > limits->head_bytes)
		return p->in_fields ? -431 : -414;
	return 0;
}

/* Where the present line ends, without its CRLF. 0: not there yet. 1: *ret_end. -400: an LF that stands alone. */
static int find_end(struct head_parser *p, const struct head_limits *limits, const char *bytes, size_t count,
                    uint32_t *ret_end)
{
	const char *lf = (const char *)memchr(bytes + p->looked, '\n', count - p->looked);
	size_t needed = lf ? (size_t)(lf - bytes) + 1 : count + 1;
	int r = judge_length(p, limits, needed);

	if (r < 0)
		return r;
	p->looked = (uint32_t)(lf ? needed : count);
	if (!lf)
		return 0;
	if (needed - p->line < 2 || lf[-1] != '\r')
		return -400;
	*ret_end = (uint32_t)needed - 2;
	return 1;
}

static int parse_line(struct head_parser *p, const struct head_limits *limits, const char *bytes, uint32_t end,
                      struct head *head)
{
	uint32_t from = p->line;
	int r;

	p->line = p->looked;
	if (p->in_fields)
		return end == from ? 1 : parse_field(head, limits, bytes, from, end);
	if (end == from) { /* after the body of the request before, some send one */
		p->lead = p->looked;
		return p->lead > 8 ? -400 : 0;
	}
	memset(head, 0, offsetof(struct head, fields));
	p->in_fields = true;
	r = parse_request_line(head, bytes, from, end);
	head->keeps_alive = head->minor > 0;
	return r;
}

int head_parse(struct head_parser *p, const struct head_limits *limits, const char *bytes, size_t count,
               struct head *head)
{
	uint32_t end;
	int r;

	do {
		r = find_end(p, limits, bytes, count, &end);
		if (r <= 0)
			return r;
		r = parse_line(p, limits, bytes, end, head);
	} while (r == 0);
	if (r > 0)
		r = conclude(head);
	return r < 0 ? r : (int)p->looked;
}
