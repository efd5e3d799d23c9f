/* SPDX-License-Identifier: MIT */
/* Dates as HTTP writes them. */
#include "http.h"

#include <string.h>

static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

/* Days since 1970 of a date of the Gregorian calendar: years begin in March, so that the day that some have is their last. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t y = year - (month <= 2), m = (month + 9) % 12;

	return y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719468;
}

static void date_of(int64_t since, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day)
{
	int64_t d = since + 719468, era = d / 146097, in_era = d % 146097;
	int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
	int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
	int64_t m = (5 * in_year + 2) / 153;

	*ret_day = in_year - (153 * m + 2) / 5 + 1;
	*ret_month = m < 10 ? m + 3 : m - 9;
	*ret_year = year + era * 400 + (*ret_month <= 2);
}

static char *put_two(char *at, int64_t number)
{
	at[0] = (char)('0' + number / 10 % 10);
	at[1] = (char)('0' + number % 10);
	return at + 2;
}

void http_date_format(int64_t unix_s, char *ret_text)
{
	int64_t year, month, day, second = unix_s < 0 ? 0 : unix_s % 86400, since = unix_s < 0 ? 0 : unix_s / 86400;
	char *at = ret_text;

	date_of(since, &year, &month, &day);
	memcpy(at, days + (since + 4) % 7 * 3, 3);
	at[3] = ',';
	at[4] = ' ';
	at = put_two(at + 5, day);
	*at++ = ' ';
	memcpy(at, months + (month - 1) * 3, 3);
	at[3] = ' ';
	at = put_two(put_two(at + 4, year / 100), year);
	*at++ = ' ';
	at = put_two(at, second / 3600);
	*at++ = ':';
	at = put_two(at, second / 60 % 60);
	*at++ = ':';
	at = put_two(at, second % 60);
	memcpy(at, " GMT", 4);
}

struct reader {
	const char *at, *end;
	bool good;
};

static int64_t number(struct reader *r, int digits)
{
	int64_t n = 0;

	for (; digits > 0; digits--) {
		if (r->at >= r->end || *r->at < '0' || *r->at > '9') {
			r->good = false;
			return 0;
		}
		n = n * 10 + (*r->at++ - '0');
	}
	return n;
}

static void literal(struct reader *r, const char *text)
{
	size_t bytes = strlen(text);

	r->good = r->good && (size_t)(r->end - r->at) >= bytes && memcmp(r->at, text, bytes) == 0;
	if (r->good)
		r->at += bytes;
}

static int64_t month(struct reader *r)
{
	for (int i = 0; i < 12 && r->end - r->at >= 3; i++)
		if (memcmp(r->at, months + i * 3, 3) == 0) {
			r->at += 3;
			return i + 1;
		}
	r->good = false;
	return 1;
}

static int64_t time_of_day(struct reader *r)
{
	int64_t h = number(r, 2), m, s;

	literal(r, ":");
	m = number(r, 2);
	literal(r, ":");
	s = number(r, 2);
	r->good = r->good && h < 24 && m < 60 && s <= 60;
	return h * 3600 + m * 60 + s;
}

static int64_t finish(const struct reader *r, int64_t y, int64_t m, int64_t d, int64_t seconds)
{
	if (!r->good || r->at != r->end || d < 1 || d > 31 || y < 1970)
		return -1;
	return days_of(y, m, d) * 86400 + seconds;
}

/* "06 Nov 1994 08:49:37 GMT" */
static int64_t read_fixed(struct reader *r)
{
	int64_t d, m, y, seconds;

	d = number(r, 2);
	literal(r, " ");
	m = month(r);
	literal(r, " ");
	y = number(r, 4);
	literal(r, " ");
	seconds = time_of_day(r);
	literal(r, " GMT");
	return finish(r, y, m, d, seconds);
}

/* "06-Nov-94 08:49:37 GMT": a year that seems to be more than 50 years ahead is in the past. */
static int64_t read_850(struct reader *r, int64_t now_s)
{
	int64_t d, m, y, this_year, unused, seconds;

	date_of(now_s / 86400, &this_year, &unused, &unused);
	d = number(r, 2);
	literal(r, "-");
	m = month(r);
	literal(r, "-");
	y = number(r, 2) + this_year / 100 * 100;
	if (y > this_year + 50)
		y -= 100;
	literal(r, " ");
	seconds = time_of_day(r);
	literal(r, " GMT");
	return finish(r, y, m, d, seconds);
}

/* "Nov  6 08:49:37 1994" */
static int64_t read_asctime(struct reader *r)
{
	int64_t d, m, y, seconds;

	m = month(r);
	literal(r, " ");
	if (r->at < r->end && *r->at == ' ') {
		r->at++;
		d = number(r, 1);
	} else {
		d = number(r, 2);
	}
	literal(r, " ");
	seconds = time_of_day(r);
	literal(r, " ");
	y = number(r, 4);
	return finish(r, y, m, d, seconds);
}

/* The day of the week is not compared with the date: it says nothing new. */
int64_t http_date_parse(const char *text, size_t bytes, int64_t now_s)
{
	struct reader r = { text, text + bytes, true };
	const char *comma = (const char *)memchr(text, ',', bytes);

	if (comma && comma - text == 3 && r.end - comma > 2 && comma[1] == ' ') {
		r.at = comma + 2;
		return read_fixed(&r);
	}
	if (comma && comma - text > 5 && comma - text < 10 && r.end - comma > 2 && comma[1] == ' ') {
		r.at = comma + 2;
		return read_850(&r, now_s);
	}
	if (!comma && bytes > 4 && text[3] == ' ') {
		r.at += 4;
		return read_asctime(&r);
	}
	return -1;
}
