/* SPDX-License-Identifier: MIT */
/* The head of a request as examples/httpd reads it: what is understood, what is refused and how, and that it does not matter in which
 * pieces it comes.                                                                                                            */
#include <ctype.h>

#include "http.h"
#include "test.h"

static const struct head_limits usual = { .line_bytes = 64, .head_bytes = 256, .field_count = 8 };

static bool same_head(const struct head *a, const struct head *b)
{
	return memcmp(a, b, offsetof(struct head, fields)) == 0 &&
	       memcmp(a->fields, b->fields, a->field_count * sizeof *a->fields) == 0;
}

/* In one piece, octet by octet, and in two pieces of all sizes. */
static int parse(const char *text, struct head *head)
{
	size_t bytes = strlen(text);
	struct head_parser whole = { 0 }, slow = { 0 };
	struct head other;
	int r, s = 0;

	memset(head, 0, sizeof *head);
	memset(&other, 0, sizeof other);
	r = head_parse(&whole, &usual, text, bytes, head);
	for (size_t n = 0; n <= bytes && s == 0; n++)
		s = head_parse(&slow, &usual, text, n, &other);
	CHECK_EQ(r, s);
	CHECK(r <= 0 || same_head(head, &other));
	for (size_t n = 0; n <= bytes; n++) {
		struct head_parser two = { 0 };

		memset(&other, 0, sizeof other);
		s = head_parse(&two, &usual, text, n, &other);
		if (s == 0)
			s = head_parse(&two, &usual, text, bytes, &other);
		CHECK_EQ(r, s);
		CHECK(r <= 0 || same_head(head, &other));
	}
	return r;
}

static void check_span(const char *text, struct span span, const char *expected)
{
	CHECK_EQ(span.bytes, strlen(expected));
	CHECK(memcmp(text + span.at, expected, span.bytes) == 0);
}

#define HOST "Host: h\r\n"

TEST(a_request_is_taken_apart)
{
	const char *text = "GET /a?b HTTP/1.1\r\nHost: example\r\nX-Odd:\t a b \t\r\nRange: bytes=1-2\r\n\r\nGET ";
	struct head head;

	CHECK_EQ(parse(text, &head), strlen(text) - 4);
	CHECK_EQ(head.method, METHOD_GET);
	check_span(text, head.method_text, "GET");
	check_span(text, head.target, "/a?b");
	CHECK_EQ(head.minor, 1);
	CHECK_EQ(head.field_count, 3);
	check_span(text, head.fields[0].name, "Host");
	check_span(text, head.fields[0].value, "example");
	check_span(text, head.fields[1].value, "a b");
	CHECK_EQ(head.fields[1].is, FIELD_OTHER);
	check_span(text, head_field(&head, FIELD_RANGE)->value, "bytes=1-2");
	CHECK(!head_field(&head, FIELD_EXPECT));
	CHECK(head.keeps_alive && !head.has_length && head.body_bytes == 0);
}

/* -1: accepted, whatever its length; else the status of the refusal, or 0: more is needed. */
static const struct {
	int expected;
	const char *text;
} heads[] = {
	/* as it should be */
	{ -1, "GET / HTTP/1.1\r\n" HOST "\r\n" },
	{ -1, "GET / HTTP/1.0\r\n\r\n" },
	{ -1, "\r\nGET / HTTP/1.0\r\n\r\n" },
	{ -1, "GET / HTTP/1.7\r\n" HOST "\r\n" },
	{ -1, "GET http://h/x HTTP/1.1\r\n" HOST "\r\n" },
	{ -1, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n" },
	{ -1, "BREW /pot HTTP/1.1\r\n" HOST "\r\n" },
	{ -1, "CONNECT h:1 HTTP/1.1\r\n" HOST "\r\n" },
	{ -1, "GET / HTTP/1.1\r\nHOST:\r\n\r\n" },
	{ -1, "GET / HTTP/1.1\r\n" HOST "X: \xc3\xa4\r\n\r\n" },
	{ -1, "POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n" },
	{ -1, "POST / HTTP/1.1\r\n" HOST "Content-Length: 000000000000000012\r\n\r\n" },
	{ -1, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: ChunKed\r\n\r\n" },
	{ -1, "GET / HTTP/1.1\r\n" HOST "If-None-Match: \"a\"\r\nIf-None-Match: \"b\"\r\n\r\n" },
	/* not all of it */
	{ 0, "" },
	{ 0, "G" },
	{ 0, "\r\n" },
	{ 0, "GET / HTTP/1.1\r\n" HOST },
	{ 0, "GET / HTTP/1.1\r\n" HOST "\r" },
	/* request lines */
	{ 400, "GET  / HTTP/1.1\r\n" HOST "\r\n" },
	{ 400, "GET / HTTP/1.1 \r\n" HOST "\r\n" },
	{ 400, " GET / HTTP/1.1\r\n" HOST "\r\n" },
	{ 400, "GET\t/\tHTTP/1.1\r\n" HOST "\r\n" },
	{ 400, "GET /\r\n" },
	{ 400, "GET\r\n" },
	{ 400, "G(T / HTTP/1.1\r\n" },
	{ 400, "GET x HTTP/1.1\r\n" },
	{ 400, "GET * HTTP/1.1\r\n" },
	{ 400, "GET  HTTP/1.1\r\n" },
	{ 400, "GET /#f HTTP/1.1\r\n" },
	{ 400, "GET /\x80 HTTP/1.1\r\n" },
	{ 400, "GET /\x7f HTTP/1.1\r\n" },
	{ 400, "GET / http/1.1\r\n" },
	{ 400, "GET / HTTP/1\r\n" },
	{ 400, "GET / HTTP/1.10\r\n" },
	{ 400, "GET / HTTP/x.1\r\n" },
	{ 505, "GET / HTTP/2.0\r\n" },
	{ 505, "GET / HTTP/0.9\r\n" },
	{ 400, "\r\n\r\n\r\n\r\n\r\n" },
	/* ends of lines */
	{ 400, "GET / HTTP/1.1\n" HOST "\r\n" },
	{ 400, "\nGET / HTTP/1.1\r\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: h\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" HOST "\n" },
	{ 400, "GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n" },
	{ 400, "GET /\rx HTTP/1.1\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" HOST "\r\r\n" },
	{ 400, "GET / HTTP/1.1\r\r\n" HOST "\r\n" },
	/* fields */
	{ 400, "GET / HTTP/1.1\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" HOST HOST "\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" HOST "X : y\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" HOST "X\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" HOST ": y\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" HOST " folded\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" HOST "\tfolded\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n X: y\r\n" HOST "\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" HOST "X: \x01\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" HOST "X: \x7f\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" HOST "X\xc3: y\r\n\r\n" },
	{ 400, "GET / HTTP/1.1\r\n" HOST "Range: bytes=0-1\r\nRange: bytes=2-3\r\n\r\n" },
	{ 417, "GET / HTTP/1.1\r\n" HOST "Expect: gifts\r\n\r\n" },
	/* a request in another one */
	{ 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 2\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x10\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1 1\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 9999999999999999999\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" },
	{ 400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" },
	{ 501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n" },
	{ 501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n" },
	{ 501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n" },
	{ 501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n" },
	{ 501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked;a=b\r\n\r\n" },
	{ 501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n" },
	{ 400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \x0b"
	       "chunked\r\n\r\n" },
	/* too long (64, 256, 8) */
	{ 414, "GET /2345678901234567890123456789012345678901234567890123456789 HTTP/1.1\r\n" },
	{ 414, "GET /234567890123456789012345678901234567890123456789012345678901234" },
	{ 0, "GET /23456789012345678901234567890123456789012345678901234567" },
	{ 431, "GET / HTTP/1.0\r\na:\r\nb:\r\nc:\r\nd:\r\ne:\r\nf:\r\ng:\r\nh:\r\ni:\r\n\r\n" },
	{ -1, "GET / HTTP/1.0\r\na:\r\nb:\r\nc:\r\nd:\r\ne:\r\nf:\r\ng:\r\nh:\r\n\r\n" },
};

TEST(each_head_is_accepted_or_refused_as_it_should_be)
{
	struct head head;

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		int r = parse(heads[i].text, &head);
		int expected = heads[i].expected;

		if (expected < 0 ? r != (int)strlen(heads[i].text) : r != -expected)
			test_fail(__FILE__, __LINE__, "%d and not %d: %s", r, expected, heads[i].text);
	}
}

/* Of any value, at any place of a good head, none but the permitted octets pass. */
TEST(each_octet_has_its_places)
{
	const char good[] = "GET /t HTTP/1.1\r\nHost: v\r\n\r\n";
	const char *token = "!#$%&'*+-.^_`|~", *no_target = "\" #";
	struct head head;

	for (int c = 0; c < 256; c++) {
		char text[sizeof good];
		bool visible = c > ' ' && c < 0x7f;
		bool in_token = (c && strchr(token, c)) || (c < 128 && isalnum(c));
		struct head_parser p = { 0 };
		struct head_limits none = { 0 };

		memcpy(text, good, sizeof good);
		text[1] = (char)c;
		CHECK_EQ(head_parse(&p, &none, text, sizeof good - 1, &head) > 0, in_token);
		memcpy(text, good, sizeof good);
		text[5] = (char)c;
		p = (struct head_parser){ 0 };
		CHECK_EQ(head_parse(&p, &none, text, sizeof good - 1, &head) > 0,
		         visible && (c == '"' || !strchr(no_target, c)));
		memcpy(text, good, sizeof good);
		text[23] = (char)c;
		p = (struct head_parser){ 0 };
		CHECK_EQ(head_parse(&p, &none, text, sizeof good - 1, &head) > 0,
		         visible || c >= 0x80 || c == ' ' || c == '\t');
	}
}

TEST(a_head_that_is_too_long_is_refused_before_it_is_complete)
{
	struct head_limits limits = { .head_bytes = 100 };
	struct head_parser p = { 0 };
	struct head head;
	char text[200] = "GET / HTTP/1.1\r\nHost: ";

	memset(text + 22, 'x', sizeof text - 22);
	CHECK_EQ(head_parse(&p, &limits, text, 99, &head), 0);
	CHECK_EQ(head_parse(&p, &limits, text, 100, &head), -431);
	p = (struct head_parser){ 0 };
	CHECK_EQ(head_parse(&p, &limits, text, 200, &head), -431);
	memcpy(text + 96, "\r\n\r\n", 4);
	p = (struct head_parser){ 0 };
	CHECK_EQ(head_parse(&p, &limits, text, 200, &head), 100);
}

static bool keeps(const char *version, const char *fields)
{
	char text[128];
	struct head head;

	snprintf(text, sizeof text, "GET / HTTP/%s\r\nHost: h\r\n%s\r\n", version, fields);
	CHECK(parse(text, &head) > 0);
	return head.keeps_alive;
}

TEST(version_and_connection_say_whether_it_goes_on)
{
	CHECK(keeps("1.1", ""));
	CHECK(!keeps("1.0", ""));
	CHECK(keeps("1.0", "Connection: keep-alive\r\n"));
	CHECK(keeps("1.0", "Connection: x, Keep-Alive\r\n"));
	CHECK(!keeps("1.1", "Connection: close\r\n"));
	CHECK(!keeps("1.1", "Connection: upgrade ,CLOSE\r\n"));
	CHECK(!keeps("1.1", "Connection: close\r\nConnection: keep-alive\r\n"));
	CHECK(!keeps("1.0", "Connection: close\r\nConnection: keep-alive\r\n"));
	CHECK(keeps("1.1", "Connection: closed\r\n"));
}

TEST(what_a_body_is_follows_from_the_head)
{
	struct head head;

	CHECK(parse("POST / HTTP/1.1\r\n" HOST "Content-Length: 42\r\nExpect: 100-Continue\r\n\r\n", &head) > 0);
	CHECK(head.body_bytes == 42 && head.has_length && head.wants_continue);
	CHECK(parse("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", &head) > 0);
	CHECK(head.body_bytes == -1 && !head.has_length);
	CHECK(parse("POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n", &head) > 0);
	CHECK(!head.wants_continue); /* a client of that age does not know what it says */
}
