/* SPDX-License-Identifier: MIT */
/* Chunks, dates, conditions, ranges, paths of examples/httpd. */
#include "http.h"
#include "test.h"

/* ---- chunks ---- */

/* Pieces of `step` bytes. How many bytes were used, or -400; content in ret_text. */
static int64_t unchunk(const char *text, size_t step, char *ret_text, bool *ret_over)
{
	size_t bytes = strlen(text), at = 0, have = 0;
	struct chunks chunks = { 0 };

	while (at < bytes && !chunks_over(&chunks)) {
		size_t n = bytes - at < step ? bytes - at : step;
		struct span data;
		int64_t used = chunks_parse(&chunks, text + at, n, &data);

		if (used < 0)
			return used;
		CHECK(used > 0 && (size_t)used <= n && data.at + data.bytes <= n);
		memcpy(ret_text + have, text + at + data.at, data.bytes);
		have += data.bytes;
		at += (size_t)used;
	}
	ret_text[have] = 0;
	*ret_over = chunks_over(&chunks);
	return (int64_t)at;
}

static const struct {
	const char *text, *content; /* NULL: refused */
	bool over;
	size_t rest; /* behind its end */
} bodies[] = {
	{ "0\r\n\r\n", "", true, 0 },
	{ "3\r\nabc\r\n0\r\n\r\n", "abc", true, 0 },
	{ "3\r\nabc\r\n0\r\n\r\nGET", "abc", true, 3 },
	{ "2\r\nab\r\nA\r\n0123456789\r\n000\r\n\r\n", "ab0123456789", true, 0 },
	{ "1;a=b;c=\"d\"\r\nx\r\n0 \t;z\r\n\r\n", "x", true, 0 },
	{ "1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", "x", true, 0 },
	{ "3\r\nab", "ab", false, 0 },
	{ "3\r\nabc\r\n0\r\n", "abc", false, 0 },
	{ "\r\n", NULL, false, 0 },
	{ "x\r\n", NULL, false, 0 },
	{ "-1\r\n", NULL, false, 0 },
	{ "0x1\r\n", NULL, false, 0 },
	{ " 1\r\nx\r\n", NULL, false, 0 },
	{ "1\nx\r\n", NULL, false, 0 },
	{ "1\r\nx\n0\r\n\r\n", NULL, false, 0 },
	{ "1\r\nxy\r\n0\r\n\r\n", NULL, false, 0 },
	{ "1\r\nx\r0\r\n\r\n", NULL, false, 0 },
	{ "1;\nx\r\n0\r\n\r\n", NULL, false, 0 },
	{ "1;a\rb\r\nx\r\n", NULL, false, 0 },
	{ "0\r\n\n", NULL, false, 0 },
	{ "0\r\nA: b\n\r\n", NULL, false, 0 },
	{ "0\r\nA: b\r\n folded\r\n\r\n", NULL, false, 0 },
	{ "10000000000000000\r\n", NULL, false, 0 },
	{ "fffffffffffffffff\r\n", NULL, false, 0 },
};

TEST(chunks_are_content_or_refused_in_whatever_pieces)
{
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		for (size_t step = 1; step < 40; step++) {
			char text[64];
			bool over = false;
			int64_t r = unchunk(bodies[i].text, step, text, &over);

			if (!bodies[i].content) {
				CHECK_EQ(r, -400);
				continue;
			}
			CHECK_EQ(r, strlen(bodies[i].text) - bodies[i].rest);
			CHECK_STR(text, bodies[i].content);
			CHECK_EQ(over, bodies[i].over);
		}
}

TEST(extensions_and_trailers_without_end_are_refused)
{
	static const char *const begin[] = { "1;", "0\r\nTrailer: " };

	for (int i = 0; i < 2; i++) {
		struct chunks chunks = { 0 };
		struct span data;
		int64_t r = chunks_parse(&chunks, begin[i], strlen(begin[i]), &data);

		for (int n = 0; n <= CHUNK_OVERHEAD_MAX && r > 0; n++)
			r = chunks_parse(&chunks, "x", 1, &data);
		CHECK_EQ(r, -400);
	}
}

/* ---- dates ---- */

static int64_t date(const char *text)
{
	return http_date_parse(text, strlen(text), 1700000000);
}

TEST(dates_are_written_and_read)
{
	char text[HTTP_DATE_BYTES + 1] = "";

	http_date_format(784111777, text);
	CHECK_STR(text, "Sun, 06 Nov 1994 08:49:37 GMT");
	CHECK_EQ(date(text), 784111777);
	CHECK_EQ(date("Sunday, 06-Nov-94 08:49:37 GMT"), 784111777);
	CHECK_EQ(date("Sun Nov  6 08:49:37 1994"), 784111777);
	CHECK_EQ(date("Monday, 06-Nov-23 00:00:00 GMT"), 1699228800);
	CHECK_EQ(date("Thu, 29 Feb 2024 12:00:00 GMT"), 1709208000);
	for (int64_t s = 0; s < INT64_C(4102444800); s += 86400 * 17 + 12345) {
		http_date_format(s, text);
		CHECK_EQ(date(text), s);
	}
}

TEST(what_is_no_date_is_none)
{
	static const char *const texts[] = { "",
		                             "Sun",
		                             "Sun, ",
		                             "Sun, 06 Nov 1994",
		                             "Sun, 06 Nov 1994 08:49:37",
		                             "Sun, 06 Nov 1994 08:49:37 CET",
		                             "Sun, 06 Nov 1994 24:49:37 GMT",
		                             "Sun, 6 Nov 1994 08:49:37 GMT",
		                             "Sun, 06 Foo 1994 08:49:37 GMT",
		                             "Sun, 06 Nov 1994 08:49:37 GMT ",
		                             "06 Nov 1994 08:49:37 GMT",
		                             "Sun Nov  6 08:49:37",
		                             "Sun, 00 Nov 1994 08:49:37 GMT",
		                             "1700000000" };

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		CHECK_EQ(date(texts[i]), -1);
}

/* ---- conditions and ranges ---- */

static const struct version version = { .etag = "\"abc\"", .etag_bytes = 5, .modified_s = 784111777, .size = 1000 };

static struct head head;

static const char *request(const char *fields)
{
	static char text[512];
	struct head_parser p = { 0 };

	snprintf(text, sizeof text, "GET / HTTP/1.0\r\n%s\r\n", fields);
	CHECK(head_parse(&p, &(struct head_limits){ 0 }, text, strlen(text), &head) > 0);
	return text;
}

static int status(const char *fields)
{
	const char *text = request(fields);

	return select_status(&head, text, &version, 1700000000);
}

#define AT "Sun, 06 Nov 1994 08:49:37 GMT"
#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define AFTER "Sun, 06 Nov 1994 08:49:38 GMT"

TEST(conditions_decide)
{
	CHECK_EQ(status(""), 200);
	CHECK_EQ(status("If-None-Match: \"abc\"\r\n"), 304);
	CHECK_EQ(status("If-None-Match: W/\"abc\"\r\n"), 304);
	CHECK_EQ(status("If-None-Match: \"x\", \"abc\"\r\n"), 304);
	CHECK_EQ(status("If-None-Match: \"x\"\r\nIf-None-Match: \"abc\"\r\n"), 304);
	CHECK_EQ(status("If-None-Match: *\r\n"), 304);
	CHECK_EQ(status("If-None-Match: \"x\"\r\n"), 200);
	CHECK_EQ(status("If-None-Match: abc\r\n"), 200);
	CHECK_EQ(status("If-None-Match: \"abc\r\n"), 200);
	CHECK_EQ(status("If-Modified-Since: " AT "\r\n"), 304);
	CHECK_EQ(status("If-Modified-Since: " AFTER "\r\n"), 304);
	CHECK_EQ(status("If-Modified-Since: " BEFORE "\r\n"), 200);
	CHECK_EQ(status("If-Modified-Since: yesterday\r\n"), 200);
	CHECK_EQ(status("If-None-Match: \"x\"\r\nIf-Modified-Since: " AT "\r\n"), 200);
	CHECK_EQ(status("If-Match: \"abc\"\r\n"), 200);
	CHECK_EQ(status("If-Match: *\r\n"), 200);
	CHECK_EQ(status("If-Match: W/\"abc\"\r\n"), 412);
	CHECK_EQ(status("If-Match: \"x\"\r\n"), 412);
	CHECK_EQ(status("If-Unmodified-Since: " AT "\r\n"), 200);
	CHECK_EQ(status("If-Unmodified-Since: " BEFORE "\r\n"), 412);
	CHECK_EQ(status("If-Match: \"abc\"\r\nIf-Unmodified-Since: " BEFORE "\r\n"), 200);
	CHECK_EQ(status("If-Match: \"abc\"\r\nIf-None-Match: \"abc\"\r\n"), 304);
}

static void check_range(const char *fields, int expected, int64_t first, int64_t bytes)
{
	const char *text = request(fields);
	int64_t got_first, got_bytes;

	CHECK_EQ(select_range(&head, text, &version, 1700000000, &got_first, &got_bytes), expected);
	if (expected != 416) {
		CHECK_EQ(got_first, first);
		CHECK_EQ(got_bytes, bytes);
	}
}

TEST(ranges_are_parts_or_all_or_nothing)
{
	check_range("", 200, 0, 1000);
	check_range("Range: bytes=0-0\r\n", 206, 0, 1);
	check_range("Range: bytes=10-19\r\n", 206, 10, 10);
	check_range("Range: bytes=990-5000\r\n", 206, 990, 10);
	check_range("Range: bytes=990-\r\n", 206, 990, 10);
	check_range("Range: bytes=-10\r\n", 206, 990, 10);
	check_range("Range: bytes=-5000\r\n", 206, 0, 1000);
	check_range("Range: Bytes=1-1\r\n", 206, 1, 1);
	check_range("Range: bytes=0-99999999999999999999999\r\n", 206, 0, 1000);
	check_range("Range: bytes=1000-\r\n", 416, 0, 0);
	check_range("Range: bytes=99999999999999999999999-\r\n", 416, 0, 0);
	check_range("Range: bytes=-0\r\n", 416, 0, 0);
	check_range("Range: bytes=5-4\r\n", 200, 0, 1000);
	check_range("Range: bytes=0-1,3-4\r\n", 200, 0, 1000);
	check_range("Range: bytes=-\r\n", 200, 0, 1000);
	check_range("Range: bytes=a-b\r\n", 200, 0, 1000);
	check_range("Range: bytes 0-1\r\n", 200, 0, 1000);
	check_range("Range: lines=0-1\r\n", 200, 0, 1000);
	check_range("Range: bytes=\r\n", 200, 0, 1000);
	check_range("Range: bytes=0-1 \t\r\n", 206, 0, 2);
}

TEST(a_range_is_for_one_version)
{
	check_range("Range: bytes=0-1\r\nIf-Range: \"abc\"\r\n", 206, 0, 2);
	check_range("Range: bytes=0-1\r\nIf-Range: W/\"abc\"\r\n", 200, 0, 1000);
	check_range("Range: bytes=0-1\r\nIf-Range: \"x\"\r\n", 200, 0, 1000);
	check_range("Range: bytes=0-1\r\nIf-Range: " AT "\r\n", 206, 0, 2);
	check_range("Range: bytes=0-1\r\nIf-Range: " AFTER "\r\n", 200, 0, 1000);
	check_range("Range: bytes=2000-\r\nIf-Range: \"x\"\r\n", 200, 0, 1000);
}

/* ---- paths ---- */

static const struct {
	const char *target, *path;
	int error;
} paths[] = {
	{ "/", "", 0 },
	{ "/a", "a", 0 },
	{ "/a/b.c?d=/../e", "a/b.c", 0 },
	{ "/a/", "a/", 0 },
	{ "/%41%2fb", "A/b", 0 },
	{ "http://host/a", "a", 0 },
	{ "http://host", "", 0 },
	{ "/a..b/c.", "a..b/c.", 0 },
	{ "/..", NULL, -404 },
	{ "/../a", NULL, -404 },
	{ "/a/../b", NULL, -404 },
	{ "/a/%2e%2e/b", NULL, -404 },
	{ "/%2e%2e%2fb", NULL, -404 },
	{ "/./a", NULL, -404 },
	{ "/.git/config", NULL, -404 },
	{ "/a/.htaccess", NULL, -404 },
	{ "//a", NULL, -404 },
	{ "/a//b", NULL, -404 },
	{ "/%2fetc", NULL, -404 },
	{ "/%", NULL, -400 },
	{ "/%4", NULL, -400 },
	{ "/%zz", NULL, -400 },
	{ "/a%00b", NULL, -400 },
};

TEST(no_path_leads_out)
{
	char path[PATH_BYTES], longest[PATH_BYTES + 8];

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		int r = path_of_target(paths[i].target, strlen(paths[i].target), path);

		CHECK_EQ(r, paths[i].path ? (int)strlen(paths[i].path) : paths[i].error);
		if (paths[i].path)
			CHECK_STR(path, paths[i].path);
	}
	memset(longest, 'x', sizeof longest);
	longest[0] = '/';
	CHECK_EQ(path_of_target(longest, PATH_BYTES, path), PATH_BYTES - 1);
	CHECK_EQ(path_of_target(longest, PATH_BYTES + 1, path), -414);
}

TEST(types_follow_from_endings)
{
	CHECK_STR(type_of_path("a/b.HTML"), "text/html; charset=utf-8");
	CHECK_STR(type_of_path("a.png"), "image/png");
	CHECK_STR(type_of_path("a.png/b"), "application/octet-stream");
	CHECK_STR(type_of_path("png"), "application/octet-stream");
	CHECK_STR(type_of_path("a.unknown"), "application/octet-stream");
}
