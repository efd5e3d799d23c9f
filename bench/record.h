/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One result: named values in the order in which they were added. It holds no pointers, so that a child process can
 * send it through a pipe as it is.                                                                                 */
#define RECORD_FIELDS 256 /* echo_server with all its neighbours has most */

enum record_type { RECORD_TEXT, RECORD_COUNT, RECORD_REAL, RECORD_FLAG };

struct record_field {
	char name[32];
	enum record_type type;
	bool metric; /* measured, as opposed to asked for: repeats are summed up over these */
	char text[160];
	int64_t count;
	double real;
};

struct record {
	size_t count;
	struct record_field fields[RECORD_FIELDS];
};

/* Fields beyond RECORD_FIELDS are left out: the limit is ours, and generous. */
void record_text(struct record *record, const char *name, const char *text);
void record_count(struct record *record, const char *name, int64_t count);
void record_real(struct record *record, const char *name, double real);
void record_flag(struct record *record, const char *name, bool flag);
void record_metric(struct record *record, const char *name, double value);

const struct record_field *record_find(const struct record *record, const char *name);
/* The bare value, as a person reads it. */
void record_value(const struct record_field *field, char *text, size_t size);

/* A JSON string with its quotes. */
void record_write_string(FILE *out, const char *text);
/* {"a":1,"b":"x"} without a line end. */
void record_write_json(FILE *out, const struct record *record);
/* All of them as one table: the columns are the union of the fields, in the order of their first appearance. */
void record_write_csv(FILE *out, const struct record *records, size_t count);
