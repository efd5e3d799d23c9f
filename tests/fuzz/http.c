/* SPDX-License-Identifier: MIT */
/* What examples/httpd makes of bytes: heads, chunks, paths, dates, ranges. A head is read in one piece and in pieces of sizes that the input
 * chooses, and by a reader that has all of it before its eyes; they agree on what is a request, where it ends and what follows it. */
#include "http.h"

#include "fuzz.h"

#include <strings.h>

enum { TEXT = 4096, HEADS = 8 };

/* ---- the other reader ---- */

struct reading {
	size_t bytes; /* 0: no request, or not all of one */
	int64_t body; /* -1: chunked */
	bool keeps_alive;
	/* on the way */
	int minor, fields, hosts, lengths, codings, closes, keeps;
};

static bool is_token(const char *text)
{
	for (const char *c = text; *c; c++)
		if (!((*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z') ||
		      strchr("!#$%&'*+-.^_`|~", *c)))
			return false;
	return *text;
}

static bool is_target_of(const char *method, const char *target)
{
	static const char *const known[] = { "GET", "HEAD", "POST", "PUT", "OPTIONS", NULL };
	bool is_known = false;

	for (const char *const *name = known; *name; name++)
		is_known = is_known || strcmp(*name, method) == 0;
	for (const char *c = target; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '#')
			return false;
	if (!is_known)
		return *target;
	return *target == '/' || (strncasecmp(target, "http://", 7) == 0 && target[7]) ||
	       (strcmp(method, "OPTIONS") == 0 && strcmp(target, "*") == 0);
}

static bool read_first(struct reading *r, char *line)
{
	char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;

	if (!version)
		return false;
	*target++ = 0;
	*version++ = 0;
	if (!is_token(line) || !is_target_of(line, target) || strlen(version) != 8 ||
	    strncmp(version, "HTTP/1.", 7) != 0 || version[7] < '0' || version[7] > '9')
		return false;
	r->minor = version[7] > '0';
	return true;
}

static char *trim(char *value)
{
	value += strspn(value, " \t");
	for (size_t n = strlen(value); n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'); n--)
		value[n - 1] = 0;
	return value;
}

static bool has_word(const char *list, const char *word)
{
	char copy[TEXT], *rest = copy, *item;

	snprintf(copy, sizeof copy, "%s", list);
	while ((item = strsep(&rest, ",")) != NULL)
		if (strcasecmp(trim(item), word) == 0)
			return true;
	return false;
}

static bool read_length(struct reading *r, const char *value)
{
	size_t digits = strspn(value, "0123456789");

	if (digits == 0 || value[digits] || digits > 18)
		return false;
	r->body = strtoll(value, NULL, 10);
	return r->lengths++ == 0;
}

static bool read_field(struct reading *r, char *line, uint32_t *seen)
{
	static const char *const single[] = { "host",   "range", "if-range", "if-modified-since", "if-unmodified-since",
		                              "expect", NULL };
	char *value = strchr(line, ':');

	if (!value)
		return false;
	*value++ = 0;
	for (const char *c = value; *c; c++)
		if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
			return false;
	value = trim(value);
	for (uint32_t i = 0; single[i]; i++)
		if (strcasecmp(line, single[i]) == 0) {
			if (*seen >> i & 1)
				return false;
			*seen |= 1u << i;
		}
	r->fields++;
	r->hosts += strcasecmp(line, "host") == 0;
	if (strcasecmp(line, "connection") == 0) {
		r->closes += has_word(value, "close");
		r->keeps += has_word(value, "keep-alive");
	}
	if (strcasecmp(line, "expect") == 0 && strcasecmp(value, "100-continue") != 0)
		return false;
	if (strcasecmp(line, "transfer-encoding") == 0 && (r->codings++ > 0 || strcasecmp(value, "chunked") != 0))
		return false;
	return is_token(line) && (strcasecmp(line, "content-length") != 0 || read_length(r, value));
}

static void read_all(struct reading *r, const struct head_limits *limits, const char *bytes, size_t count)
{
	char copy[TEXT + 1], *at = copy, *end, *line;
	uint32_t seen = 0;
	bool good;

	*r = (struct reading){ 0 };
	memcpy(copy, bytes, count);
	copy[count] = 0;
	for (int i = 0; i < 4 && strncmp(at, "\r\n", 2) == 0; i++)
		at += 2;
	end = strstr(at, "\r\n\r\n"); /* a 0 hides what is behind it, and is refused before that */
	if (!end || (size_t)(end + 4 - at) > limits->head_bytes || strncmp(at, "\r\n", 2) == 0)
		return;
	end[2] = 0;
	line = at;
	for (int number = 0; line < end + 2; number++, line = at) {
		at = strstr(line, "\r\n");
		*at = 0;
		at += 2;
		if (number == 0)
			good = (size_t)(at - line) <= limits->line_bytes && !strpbrk(line, "\r\n") &&
			       read_first(r, line);
		else
			good = !strpbrk(line, "\r\n") && read_field(r, line, &seen);
		if (!good)
			return;
	}
	if (r->fields > (int)limits->field_count || (r->minor > 0 && r->hosts != 1) ||
	    (r->codings > 0 && (r->lengths > 0 || r->minor == 0)))
		return;
	r->body = r->codings > 0 ? -1 : r->body;
	r->keeps_alive = !r->closes && (r->minor > 0 || r->keeps);
	r->bytes = (size_t)(end + 4 - copy);
}

/* ---- heads ---- */

static void check_spans(const struct head *head, size_t bytes)
{
	EXPECT(head->target.at + head->target.bytes <= bytes);
	EXPECT(head->field_count <= HTTP_FIELDS_MAX);
	for (uint32_t i = 0; i < head->field_count; i++) {
		EXPECT(head->fields[i].name.at + head->fields[i].name.bytes <= bytes);
		EXPECT(head->fields[i].value.at + head->fields[i].value.bytes <= bytes);
	}
}

static void use_head(const struct head *head, const char *bytes)
{
	struct version version = { .etag = "\"a\"", .etag_bytes = 3, .modified_s = 784111777, .size = 1000 };
	int64_t first, length;
	char path[PATH_BYTES];
	int n = path_of_target(bytes + head->target.at, head->target.bytes, path), status;

	if (n >= 0) {
		EXPECT(n < PATH_BYTES && path[n] == 0 && (int)strlen(path) == n);
		EXPECT(*path != '/' && *path != '.' && !strstr(path, "/.") && !strstr(path, "//"));
	}
	status = select_status(head, bytes, &version, 1700000000);
	EXPECT(status == 200 || status == 304 || status == 412);
	status = select_range(head, bytes, &version, 1700000000, &first, &length);
	EXPECT(status == 200 || status == 206 || status == 416);
	EXPECT(status != 200 || (first == 0 && length == 1000));
	EXPECT(status != 206 || (first >= 0 && length > 0 && first + length <= 1000));
}

static void fuzz_head(struct input *in)
{
	struct head_limits limits = { 16 + input_below(in, 64), 32 + input_byte(in), 1 + input_below(in, 8) };
	uint32_t step = 1 + input_below(in, 16);
	size_t count = (size_t)(in->end - in->at) < TEXT ? (size_t)(in->end - in->at) : TEXT;
	char *bytes = malloc(count + 1); /* exactly so many, so that a look beyond them is seen */
	struct head_parser whole = { 0 }, slow = { 0 };
	static struct head head, other;
	struct reading reading;
	size_t n = 0;
	int r, s;

	EXPECT(bytes);
	bytes = realloc(bytes, count ? count : 1);
	memcpy(bytes, in->at, count);
	read_all(&reading, &limits, bytes, count);
	r = head_parse(&whole, &limits, bytes, count, &head);
	do {
		n = n + step < count ? n + step : count;
		s = head_parse(&slow, &limits, bytes, n, &other);
	} while (s == 0 && n < count);
	EXPECT_EQ(r, s);
	EXPECT_EQ(r > 0 ? r : 0, reading.bytes);
	EXPECT(r >= 0 || r == -400 || r == -414 || r == -417 || r == -431 || r == -501 || r == -505);
	if (r > 0) {
		EXPECT_EQ(head.body_bytes, reading.body);
		EXPECT_EQ(head.keeps_alive, reading.keeps_alive);
		EXPECT_EQ(head.field_count, (uint32_t)reading.fields);
		EXPECT(memcmp(&head, &other, offsetof(struct head, fields)) == 0);
		EXPECT(memcmp(head.fields, other.fields, head.field_count * sizeof *head.fields) == 0);
		check_spans(&head, (size_t)r);
		use_head(&head, bytes);
	}
	free(bytes);
}

/* ---- chunks ---- */

/* How many bytes were used; -400; content, and whether it is over. */
static int64_t unchunk(const char *bytes, size_t count, size_t step, char *ret_text, size_t *ret_have, bool *ret_over)
{
	struct chunks chunks = { 0 };
	size_t at = 0;

	*ret_have = 0;
	while (at < count && !chunks_over(&chunks)) {
		size_t n = count - at < step ? count - at : step;
		struct span data;
		int64_t used = chunks_parse(&chunks, bytes + at, n, &data);

		if (used < 0)
			return used;
		EXPECT(used > 0 && (size_t)used <= n && data.at + data.bytes <= (size_t)used);
		memcpy(ret_text + *ret_have, bytes + at + data.at, data.bytes);
		*ret_have += data.bytes;
		at += (size_t)used;
	}
	*ret_over = chunks_over(&chunks);
	return (int64_t)at;
}

/* All of it before one's eyes. 0: it is not complete, or not chunks. */
static size_t unchunk_all(const char *bytes, size_t count, size_t *ret_have)
{
	size_t at = 0;

	*ret_have = 0;
	for (;;) {
		const char *end = memmem(bytes + at, count - at, "\r\n", 2);
		char line[TEXT], *rest;
		unsigned long long size;

		if (!end)
			return 0;
		snprintf(line, sizeof line, "%.*s", (int)(end - bytes - (long)at), bytes + at);
		size = strtoull(line, &rest, 16);
		if (!memchr("0123456789abcdefABCDEF", line[0], 22) || (line[1] | 32) == 'x' ||
		    (*rest && !strchr("; \t", *rest)))
			return 0;
		at = (size_t)(end + 2 - bytes);
		if (size == 0)
			break;
		if (size > count || count - at < size + 2 || memcmp(bytes + at + size, "\r\n", 2) != 0)
			return 0;
		at += size + 2;
		*ret_have += size;
	}
	while (count - at >= 2 && memcmp(bytes + at, "\r\n", 2) != 0) { /* trailers */
		const char *end = memmem(bytes + at, count - at, "\r\n", 2);

		if (!end)
			return 0;
		at = (size_t)(end + 2 - bytes);
	}
	return count - at >= 2 ? at + 2 : 0;
}

static void fuzz_chunks(struct input *in)
{
	uint32_t step = 1 + input_below(in, 16);
	size_t count = (size_t)(in->end - in->at), have[3], all;
	char one[TEXT], two[TEXT];
	const char *bytes = (const char *)in->at;
	bool over[2] = { false, false };
	int64_t r, s;

	if (count > TEXT)
		count = TEXT;
	r = unchunk(bytes, count, count, one, &have[0], &over[0]);
	s = unchunk(bytes, count, step, two, &have[1], &over[1]);
	EXPECT_EQ(r, s);
	if (r >= 0) {
		EXPECT_EQ(over[0], over[1]);
		EXPECT(have[0] == have[1] && memcmp(one, two, have[0]) == 0);
	}
	if (r >= 0 && over[0]) {
		all = unchunk_all(bytes, count, &have[2]);
		EXPECT_EQ(all, r);
		EXPECT_EQ(have[2], have[0]);
	}
}

static void fuzz_date(struct input *in)
{
	char text[HTTP_DATE_BYTES];
	int64_t now = (int64_t)input_word(in, 4), date;

	date = http_date_parse((const char *)in->at, (size_t)(in->end - in->at), now);
	EXPECT(date >= -1);
	if (date >= 0) {
		http_date_format(date, text);
		EXPECT_EQ(http_date_parse(text, sizeof text, now), date);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = input_of(data, size);

	switch (input_below(&in, 4)) {
	case 0:
		fuzz_chunks(&in);
		break;
	case 1:
		fuzz_date(&in);
		break;
	default:
		fuzz_head(&in);
		break;
	}
	return 0;
}
