/* SPDX-License-Identifier: MIT */
#pragma once
/* HTTP/1.1 as bytes: the head of a request, chunked bodies, dates, ranges, paths. Everything here is a function of its arguments:
 * nothing waits, nothing is allocated, so that it can be tested byte by byte.
 *
 * The parser is strict where two readings of the same bytes would let a request hide in another one (RFC 9112, 11.2): lines end with
 * CRLF and with nothing else, folded lines, blanks before a colon, two lengths or a length beside chunks are refused.            */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_FIELDS_MAX = 128 };

struct span { /* of the bytes that were parsed */
	uint32_t at, bytes;
};

/* Fields that mean something to us. */
enum field_name {
	FIELD_OTHER,
	FIELD_HOST,
	FIELD_CONNECTION,
	FIELD_CONTENT_LENGTH,
	FIELD_TRANSFER_ENCODING,
	FIELD_EXPECT,
	FIELD_RANGE,
	FIELD_IF_RANGE,
	FIELD_IF_MATCH,
	FIELD_IF_NONE_MATCH,
	FIELD_IF_MODIFIED_SINCE,
	FIELD_IF_UNMODIFIED_SINCE,
	FIELD_NAMES
};

enum method { METHOD_OTHER, METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_PUT, METHOD_OPTIONS };

struct field {
	struct span name, value;
	enum field_name is;
};

struct head_limits {          /* 0: none, other than that of the buffer */
	uint32_t line_bytes;  /* request line, with its CRLF: 414 */
	uint32_t head_bytes;  /* all of it: 431 */
	uint32_t field_count; /* at most HTTP_FIELDS_MAX: 431 */
};

struct head {
	enum method method;
	struct span method_text, target;
	uint32_t minor;      /* HTTP/1.minor */
	int64_t body_bytes;  /* 0: none; -1: chunked */
	bool keeps_alive;    /* what version and Connection say */
	bool says_close;     /* once is enough */
	bool has_length;     /* a Content-Length, even one of 0 */
	bool wants_continue; /* Expect: 100-continue */
	uint32_t present;    /* bit for each field_name */
	uint32_t field_count;
	struct field fields[HTTP_FIELDS_MAX];
};

struct head_parser {     /* zeros: nothing seen yet */
	uint32_t line;   /* where the present line begins */
	uint32_t looked; /* how far its end was looked for */
	uint32_t lead;   /* bytes of empty lines before the request line */
	bool in_fields;  /* the request line is there */
};

/* Bytes begin where they began in the call before, and there are more of them; what was complete is not looked at again. 0: it is not there
 * yet. > 0: so many bytes are the head. < 0: -400 and its like, the status of the answer.                                      */
int head_parse(struct head_parser *parser, const struct head_limits *limits, const char *bytes, size_t count,
               struct head *head);

static inline bool head_has(const struct head *head, enum field_name name)
{
	return head->present >> name & 1;
}

/* The first of that name; NULL: none. */
const struct field *head_field(const struct head *head, enum field_name name);

/* ---- chunked bodies ---- */

struct chunks {        /* zeros: at the beginning */
	uint64_t left; /* of the data of this chunk */
	uint32_t state;
	uint32_t overhead; /* bytes of size lines and trailers in a row without data, which are limited */
};

enum { CHUNK_OVERHEAD_MAX = 4096 };

/* How many of these bytes were used, > 0 unless there are none. *ret_data: those of them that are content, a part or none.
 * -400: not chunks. chunks_over() says when it was the last byte.                                                            */
int64_t chunks_parse(struct chunks *chunks, const char *bytes, size_t count, struct span *ret_data);
bool chunks_over(const struct chunks *chunks);

/* ---- dates ---- */

enum { HTTP_DATE_BYTES = 29 }; /* "Sun, 06 Nov 1994 08:49:37 GMT" */

void http_date_format(int64_t unix_s, char *ret_text); /* HTTP_DATE_BYTES, without a 0 */
/* The three forms of RFC 9110, 5.6.7; -1: none of them. now_s tells the century of a two-digit year. */
int64_t http_date_parse(const char *text, size_t bytes, int64_t now_s);

/* ---- which part of what ---- */

struct version {          /* of a file, as it is now */
	const char *etag; /* with its quotes */
	uint32_t etag_bytes;
	int64_t modified_s;
	int64_t size;
};

/* 200, 304 or 412: RFC 9110, 13.2.2, but for ranges. */
int select_status(const struct head *head, const char *bytes, const struct version *version, int64_t now_s);
/* 200: all of it, which is also the answer to what is no range, to another unit and to several ranges (RFC 9110, 14.2 allows that).
 * 206 and the part. 416: it has none of that.                                                                               */
int select_range(const struct head *head, const char *bytes, const struct version *version, int64_t now_s,
                 int64_t *ret_first, int64_t *ret_bytes);

/* ---- paths ---- */

enum { PATH_BYTES = 1024 };

/* The path of a target, "/a/b%20c?query" or "http://host/a/b%20c": decoded, without query, "" for the root, "a/b c" else; a final slash
 * stays. How long it is; -400: malformed, or it contains a 0; -404: a component that is "..", ".", empty or hidden (".git"), for
 * which there is no file here; -414: too long.                                                                              */
int path_of_target(const char *target, size_t bytes, char ret_path[PATH_BYTES]);
/* By the ending of the path. */
const char *type_of_path(const char *path);

/* ---- text ---- */

/* Letters in either case; `lower` has small ones and nothing that is not ASCII. */
bool text_is(const char *bytes, size_t count, const char *lower);
/* -1: no hexadecimal digit. */
int hex_of(char c);
/* "a, b": is it one of them? */
bool list_has(const char *bytes, size_t count, const char *lower);
