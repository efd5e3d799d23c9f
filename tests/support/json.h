/* SPDX-License-Identifier: MIT */
#pragma once
/* Is a text JSON, to the letter of its grammar, and what does its outermost object say? Enough for the tests of our
 * own output; nothing is built in memory.                                                                           */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline const char *json_space(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

static inline bool json_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Behind one well-formed UTF-8 character, or NULL. */
static inline const char *json_utf8(const char *at)
{
	unsigned char lead = (unsigned char)*at;
	int more = lead < 0x80 ? 0 : lead >= 0xc2 && lead < 0xe0 ? 1 : lead >= 0xe0 && lead < 0xf0 ? 2 : 3;

	if (lead >= 0xf5 || (lead >= 0x80 && lead < 0xc2))
		return NULL;
	for (at++; more > 0; more--, at++)
		if (((unsigned char)*at & 0xc0) != 0x80)
			return NULL;
	return at;
}

static inline const char *json_string(const char *at)
{
	if (!at || *at++ != '"')
		return NULL;
	while (at && *at != '"') {
		if ((unsigned char)*at < ' ')
			return NULL;
		if (*at != '\\') {
			at = json_utf8(at);
		} else if (at[1] == 'u') {
			for (int i = 2; i < 6; i++)
				if (!json_hex(at[i]))
					return NULL;
			at += 6;
		} else if (at[1] && strchr("\"\\/bfnrt", at[1])) {
			at += 2;
		} else {
			return NULL;
		}
	}
	return at ? at + 1 : NULL;
}

static inline const char *json_digits(const char *at)
{
	size_t n = at ? strspn(at, "0123456789") : 0;

	return n ? at + n : NULL;
}

static inline const char *json_number_end(const char *at)
{
	at += *at == '-';
	if (*at == '0' && at[1] >= '0' && at[1] <= '9')
		return NULL;
	at = json_digits(at);
	if (at && *at == '.')
		at = json_digits(at + 1);
	if (at && (*at == 'e' || *at == 'E'))
		at = json_digits(at + 1 + (at[1] == '+' || at[1] == '-'));
	return at;
}

static inline const char *json_value(const char *at, int depth);

/* [ … ] or { … }; NULL: broken. */
static inline const char *json_list(const char *at, char end, int depth)
{
	at = json_space(at + 1);
	if (*at == end)
		return at + 1;
	for (;;) {
		if (end == '}') {
			at = json_string(json_space(at));
			at = at ? json_space(at) : NULL;
			if (!at || *at++ != ':')
				return NULL;
		}
		at = json_value(json_space(at), depth);
		if (!at)
			return NULL;
		at = json_space(at);
		if (*at == end)
			return at + 1;
		if (*at++ != ',')
			return NULL;
	}
}

/* Behind the value, or NULL. */
static inline const char *json_value(const char *at, int depth)
{
	static const char *const words[] = { "true", "false", "null" };

	if (!at || depth == 0)
		return NULL;
	if (*at == '{' || *at == '[')
		return json_list(at, *at == '{' ? '}' : ']', depth - 1);
	if (*at == '"')
		return json_string(at);
	for (size_t i = 0; i < 3; i++)
		if (strncmp(at, words[i], strlen(words[i])) == 0)
			return at + strlen(words[i]);
	return json_number_end(at);
}

/* One value and nothing else. */
static inline bool json_is_valid(const char *text)
{
	const char *end = json_value(json_space(text), 64);

	return end && *json_space(end) == '\0';
}

/* Where the value of a key of the outermost object begins, or NULL. The text is valid. */
static inline const char *json_find(const char *text, const char *key)
{
	const char *at = json_space(text);
	size_t length = strlen(key);

	if (*at != '{')
		return NULL;
	for (at = json_space(at + 1); *at == '"'; at = json_space(at + 1)) {
		const char *name = at + 1, *end = json_string(at);
		const char *value = json_space(json_space(end) + 1);

		if ((size_t)(end - 1 - name) == length && strncmp(name, key, length) == 0)
			return value;
		at = json_space(json_value(value, 64));
		if (*at != ',')
			break;
	}
	return NULL;
}

/* The number there, or `otherwise`. */
static inline double json_number(const char *text, const char *key, double otherwise)
{
	const char *at = json_find(text, key);

	return at && (*at == '-' || (*at >= '0' && *at <= '9')) ? strtod(at, NULL) : otherwise;
}

/* Is the string there this one? */
static inline bool json_says(const char *text, const char *key, const char *string)
{
	const char *at = json_find(text, key);

	return at && *at == '"' && strncmp(at + 1, string, strlen(string)) == 0 && at[1 + strlen(string)] == '"';
}
