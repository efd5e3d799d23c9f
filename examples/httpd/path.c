/* SPDX-License-Identifier: MIT */
/* From targets to paths, and from paths to types. */
#include "http.h"

#include <string.h>

int hex_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Where the path of "http://host/path" begins; the host is not ours to judge: we have one root for all. */
static const char *skip_authority(const char *at, const char *end)
{
	const char *slash;

	if (at < end && *at == '/')
		return at;
	at = end - at > 7 ? at + 7 : end;
	slash = (const char *)memchr(at, '/', (size_t)(end - at));
	return slash ? slash : end;
}

/* What is between slashes: not "." or "..", nor anything hidden, nor empty unless it is the last. */
static bool components_are_fit(const char *path, size_t bytes)
{
	bool begins = true;

	for (size_t i = 0; i < bytes; i++) {
		if (begins && (path[i] == '.' || path[i] == '/'))
			return false;
		begins = path[i] == '/';
	}
	return true;
}

int path_of_target(const char *target, size_t bytes, char ret_path[PATH_BYTES])
{
	const char *end = target + bytes, *at = skip_authority(target, end);
	int length = 0;

	if (at < end)
		at++; /* the first slash */
	while (at < end && *at != '?') {
		int c = (unsigned char)*at++;

		if (c == '%') {
			int high = end - at >= 2 ? hex_of(at[0]) : -1, low = end - at >= 2 ? hex_of(at[1]) : -1;

			if (high < 0 || low < 0)
				return -400;
			c = high * 16 + low;
			at += 2;
		}
		if (c == 0)
			return -400;
		if (length >= PATH_BYTES - 1)
			return -414;
		ret_path[length++] = (char)c;
	}
	ret_path[length] = 0;
	return components_are_fit(ret_path, (size_t)length) ? length : -404;
}

const char *type_of_path(const char *path)
{
	static const char *const types[][2] = {
		{ "html", "text/html; charset=utf-8" },
		{ "htm", "text/html; charset=utf-8" },
		{ "txt", "text/plain; charset=utf-8" },
		{ "md", "text/markdown; charset=utf-8" },
		{ "css", "text/css; charset=utf-8" },
		{ "csv", "text/csv; charset=utf-8" },
		{ "js", "text/javascript; charset=utf-8" },
		{ "mjs", "text/javascript; charset=utf-8" },
		{ "json", "application/json" },
		{ "xml", "application/xml" },
		{ "wasm", "application/wasm" },
		{ "pdf", "application/pdf" },
		{ "gz", "application/gzip" },
		{ "zip", "application/zip" },
		{ "svg", "image/svg+xml" },
		{ "png", "image/png" },
		{ "jpg", "image/jpeg" },
		{ "jpeg", "image/jpeg" },
		{ "gif", "image/gif" },
		{ "webp", "image/webp" },
		{ "ico", "image/x-icon" },
		{ "woff2", "font/woff2" },
		{ "mp3", "audio/mpeg" },
		{ "mp4", "video/mp4" },
		{ "webm", "video/webm" },
	};
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');

	for (size_t i = 0; dot && i < sizeof types / sizeof *types; i++)
		if (text_is(dot + 1, strlen(dot + 1), types[i][0]))
			return types[i][1];
	return "application/octet-stream";
}
