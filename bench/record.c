/* SPDX-License-Identifier: MIT */
#include "record.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct record_field *add_field(struct record *record, const char *name, enum record_type type)
{
	static struct record_field spare; /* takes what does not fit */
	struct record_field *field = record->count < RECORD_FIELDS ? &record->fields[record->count++] : &spare;
	memset(field, 0, sizeof *field);
	snprintf(field->name, sizeof field->name, "%s", name);
	field->type = type;
	return field;
}

void record_text(struct record *record, const char *name, const char *text)
{
	struct record_field *field = add_field(record, name, RECORD_TEXT);
	snprintf(field->text, sizeof field->text, "%s", text);
}

void record_count(struct record *record, const char *name, int64_t count)
{
	add_field(record, name, RECORD_COUNT)->count = count;
}

void record_real(struct record *record, const char *name, double real)
{
	add_field(record, name, RECORD_REAL)->real = isfinite(real) ? real : 0; /* JSON knows no infinity */
}

void record_flag(struct record *record, const char *name, bool flag)
{
	add_field(record, name, RECORD_FLAG)->count = flag;
}

void record_metric(struct record *record, const char *name, double value)
{
	struct record_field *field = add_field(record, name, RECORD_REAL);
	field->real = isfinite(value) ? value : 0;
	field->metric = true;
}

const struct record_field *record_find(const struct record *record, const char *name)
{
	for (size_t i = 0; i < record->count; i++)
		if (strcmp(record->fields[i].name, name) == 0)
			return &record->fields[i];
	return NULL;
}

/* Nanoseconds and rates need no fraction, ratios do, and the CPU seconds of somebody idle need a long one. */
static int decimals(double value)
{
	if (fabs(value) >= 100 || value == floor(value))
		return 0;
	return fabs(value) < 0.1 ? 6 : 4;
}

void record_value(const struct record_field *field, char *text, size_t size)
{
	switch (field->type) {
	case RECORD_TEXT:
		snprintf(text, size, "%s", field->text);
		break;
	case RECORD_COUNT:
		snprintf(text, size, "%" PRId64, field->count);
		break;
	case RECORD_REAL:
		snprintf(text, size, "%.*f", decimals(field->real), field->real);
		break;
	case RECORD_FLAG:
		snprintf(text, size, "%s", field->count ? "true" : "false");
		break;
	}
}

void record_write_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < 0x20)
			fprintf(out, "\\u%04x", *c);
		else
			fputc(*c, out);
	}
	fputc('"', out);
}

void record_write_json(FILE *out, const struct record *record)
{
	char value[192];
	fputc('{', out);
	for (size_t i = 0; i < record->count; i++) {
		const struct record_field *field = &record->fields[i];
		fprintf(out, "%s\"%s\":", i ? "," : "", field->name);
		record_value(field, value, sizeof value);
		if (field->type == RECORD_TEXT)
			record_write_string(out, value);
		else
			fputs(value, out);
	}
	fputc('}', out);
}

struct columns {
	const char **names;
	size_t count;
};

static bool has_column(const struct columns *columns, const char *name)
{
	for (size_t i = 0; i < columns->count; i++)
		if (strcmp(columns->names[i], name) == 0)
			return true;
	return false;
}

static void write_csv_cell(FILE *out, const struct record_field *field)
{
	char value[192];
	if (!field)
		return;
	record_value(field, value, sizeof value);
	if (!strpbrk(value, ",\"\n")) {
		fputs(value, out);
		return;
	}
	fputc('"', out);
	for (const char *c = value; *c; c++)
		fprintf(out, *c == '"' ? "\"%c" : "%c", *c);
	fputc('"', out);
}

void record_write_csv(FILE *out, const struct record *records, size_t count)
{
	struct columns columns = { calloc(count ? count : 1, RECORD_FIELDS * sizeof(char *)), 0 };
	if (!columns.names) {
		fputs("out of memory for the table\n", stderr);
		return;
	}
	for (size_t row = 0; row < count; row++)
		for (size_t i = 0; i < records[row].count; i++)
			if (!has_column(&columns, records[row].fields[i].name))
				columns.names[columns.count++] = records[row].fields[i].name;
	for (size_t i = 0; i < columns.count; i++)
		fprintf(out, "%s%s", i ? "," : "", columns.names[i]);
	fputc('\n', out);
	for (size_t row = 0; row < count; row++) {
		for (size_t i = 0; i < columns.count; i++) {
			if (i)
				fputc(',', out);
			write_csv_cell(out, record_find(&records[row], columns.names[i]));
		}
		fputc('\n', out);
	}
	free(columns.names);
}
