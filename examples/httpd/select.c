/* SPDX-License-Identifier: MIT */
/* Conditions and ranges: RFC 9110, 13 and 14. */
#include "http.h"

#include <string.h>

/* ---- entity tags ---- */

/* The next of `"a", W/"b"`; false: no more, or not a list of tags. */
static bool next_tag(const char **at, const char *end, const char **ret_tag, size_t *ret_bytes, bool *ret_weak)
{
	const char *p = *at, *close;

	while (p < end && (*p == ' ' || *p == '\t' || *p == ','))
		p++;
	*ret_weak = end - p > 2 && p[0] == 'W' && p[1] == '/';
	if (*ret_weak)
		p += 2;
	if (p >= end || *p != '"')
		return false;
	close = (const char *)memchr(p + 1, '"', (size_t)(end - p - 1));
	if (!close)
		return false;
	*ret_tag = p;
	*ret_bytes = (size_t)(close + 1 - p);
	*at = close + 1;
	return true;
}

/* Ours are strong, so that a weak one never matches strongly. */
static bool tags_match(const char *at, size_t bytes, const struct version *version, bool weakly)
{
	const char *end = at + bytes, *tag;
	size_t tag_bytes;
	bool weak;

	if (bytes == 1 && *at == '*')
		return true;
	while (next_tag(&at, end, &tag, &tag_bytes, &weak))
		if ((weakly || !weak) && tag_bytes == version->etag_bytes && memcmp(tag, version->etag, tag_bytes) == 0)
			return true;
	return false;
}

/* A list may stand in several fields. */
static bool any_tag_matches(const struct head *head, const char *bytes, enum field_name name,
                            const struct version *version, bool weakly)
{
	for (uint32_t i = 0; i < head->field_count; i++)
		if (head->fields[i].is == name &&
		    tags_match(bytes + head->fields[i].value.at, head->fields[i].value.bytes, version, weakly))
			return true;
	return false;
}

/* -1: none, or nothing that is a date. */
static int64_t date_in(const struct head *head, const char *bytes, enum field_name name, int64_t now_s)
{
	const struct field *field = head_field(head, name);

	return field ? http_date_parse(bytes + field->value.at, field->value.bytes, now_s) : -1;
}

int select_status(const struct head *head, const char *bytes, const struct version *version, int64_t now_s)
{
	const uint32_t conditions = 1u << FIELD_IF_MATCH | 1u << FIELD_IF_NONE_MATCH | 1u << FIELD_IF_MODIFIED_SINCE |
	                            1u << FIELD_IF_UNMODIFIED_SINCE;
	int64_t date;

	if (!(head->present & conditions))
		return 200;
	if (head_has(head, FIELD_IF_MATCH)) {
		if (!any_tag_matches(head, bytes, FIELD_IF_MATCH, version, false))
			return 412;
	} else {
		date = date_in(head, bytes, FIELD_IF_UNMODIFIED_SINCE, now_s);
		if (date >= 0 && version->modified_s > date)
			return 412;
	}
	if (head_has(head, FIELD_IF_NONE_MATCH))
		return any_tag_matches(head, bytes, FIELD_IF_NONE_MATCH, version, true) ? 304 : 200;
	date = date_in(head, bytes, FIELD_IF_MODIFIED_SINCE, now_s);
	return date >= 0 && version->modified_s <= date ? 304 : 200;
}

/* ---- ranges ---- */

/* Digits, at most what 63 bits hold, more count as that. -1: there are none. */
static int64_t digits(const char **at, const char *end)
{
	int64_t n = 0;
	const char *p = *at;

	for (; p < end && *p >= '0' && *p <= '9'; p++)
		n = n > (INT64_MAX - 9) / 10 ? INT64_MAX / 20 * 10 : n * 10 + (*p - '0');
	if (p == *at)
		return -1;
	*at = p;
	return n;
}

/* "bytes=0-99", "bytes=100-", "bytes=-100"; false: it is none, or several. */
static bool parse_range(const char *at, size_t bytes, int64_t *ret_first, int64_t *ret_last)
{
	const char *end = at + bytes;

	if (bytes < 7 || !text_is(at, 6, "bytes="))
		return false;
	at += 6;
	*ret_first = digits(&at, end);
	if (at >= end || *at++ != '-')
		return false;
	*ret_last = digits(&at, end);
	return at == end && (*ret_first >= 0 || *ret_last >= 0) &&
	       (*ret_first < 0 || *ret_last < 0 || *ret_first <= *ret_last);
}

/* A date is a strong validator only if the file was not changed twice in that second: it has to be older than that. */
static bool if_range_holds(const struct head *head, const char *bytes, const struct version *version, int64_t now_s)
{
	const struct field *field = head_field(head, FIELD_IF_RANGE);
	const char *value;

	if (!field)
		return true;
	value = bytes + field->value.at;
	if (field->value.bytes > 0 && (*value == '"' || *value == 'W'))
		return tags_match(value, field->value.bytes, version, false);
	return http_date_parse(value, field->value.bytes, now_s) == version->modified_s && version->modified_s < now_s;
}

int select_range(const struct head *head, const char *bytes, const struct version *version, int64_t now_s,
                 int64_t *ret_first, int64_t *ret_bytes)
{
	const struct field *field = head->method == METHOD_GET ? head_field(head, FIELD_RANGE) : NULL;
	int64_t first, last, size = version->size;

	*ret_first = 0;
	*ret_bytes = size;
	if (!field || !if_range_holds(head, bytes, version, now_s) ||
	    !parse_range(bytes + field->value.at, field->value.bytes, &first, &last))
		return 200;
	if (first < 0) { /* the last so many */
		if (last == 0 || size == 0)
			return 416;
		first = last < size ? size - last : 0;
		last = size - 1;
	}
	if (first >= size)
		return 416;
	if (last < 0 || last >= size)
		last = size - 1;
	*ret_first = first;
	*ret_bytes = last - first + 1;
	return 206;
}
