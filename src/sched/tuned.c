/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <rophive/hive.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* HIVE_TUNE: names and values with commas between, into the fields of options. */
enum form { NUMBER, LONG_NUMBER, WORD };

struct field {
	const char *name;
	size_t offset;
	enum form form;
	bool of_hive;      /* else of the worker */
	const char *words; /* WORD: those of its enum from 1 on; else: what means HIVE_OFF */
};

#define OF_WORKER(NAME, FORM, WORDS)                                                                              \
	{                                                                                                         \
		.name = #NAME, .offset = offsetof(struct hive_worker_options, NAME), .form = FORM, .words = WORDS \
	}
#define OF_HIVE(NAME, WORDS)                                                                                 \
	{                                                                                                    \
		.name = #NAME, .offset = offsetof(struct hive_options, NAME), .form = WORD, .of_hive = true, \
		.words = WORDS                                                                               \
	}

static const struct field fields[] = {
	OF_WORKER(order, WORD, "newest oldest"),
	OF_WORKER(timers, WORD, "heap wheel"),
	OF_WORKER(victim, WORD, "random busiest near"),
	OF_WORKER(local_capacity, NUMBER, NULL),
	OF_WORKER(local_budget, NUMBER, "adaptive"),
	OF_WORKER(private_budget, NUMBER, NULL),
	OF_WORKER(timer_budget, NUMBER, NULL),
	OF_WORKER(pool_probe_interval, NUMBER, NULL),
	OF_WORKER(pool_batch, NUMBER, NULL),
	OF_WORKER(steal_attempts, NUMBER, "off"),
	OF_WORKER(io_interval, NUMBER, NULL),
	OF_WORKER(slice_ns, LONG_NUMBER, NULL),
	OF_WORKER(spin_ns, LONG_NUMBER, "off"),
	OF_HIVE(preset, "rophive faio veloq"),
	OF_HIVE(placement, "pool choices"),
	OF_HIVE(mesh, "off on"),
};

static bool is_word(const char *text, size_t length, const char *word, size_t word_length)
{
	return length == word_length && memcmp(text, word, length) == 0;
}

/* Which of the words it is, from 1 on; 0: none. */
static int64_t find_word(const char *words, const char *text, size_t length)
{
	for (int64_t n = 1; words && *words; n++) {
		size_t word_length = strcspn(words, " ");

		if (is_word(text, length, words, word_length))
			return n;
		words += word_length + (words[word_length] == ' ');
	}
	return 0;
}

/* Digits and nothing else: neither signs nor blanks. */
static bool read_number(const char *text, size_t length, int64_t most, int64_t *ret_number)
{
	int64_t number = 0;

	if (length == 0)
		return false;
	for (size_t i = 0; i < length; i++) {
		int64_t digit = text[i] - '0';

		if (digit < 0 || digit > 9 || number > (most - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return true;
}

static bool read_value(const struct field *field, const char *text, size_t length, int64_t *ret_value)
{
	int64_t word = find_word(field->words, text, length);

	*ret_value = field->form == WORD ? word : word ? HIVE_OFF : 0;
	if (word || is_word(text, length, "default", strlen("default")))
		return true;
	return field->form != WORD &&
	       read_number(text, length, field->form == NUMBER ? INT32_MAX : INT64_MAX, ret_value);
}

static void set(const struct field *field, void *options, int64_t value)
{
	char *at = (char *)options + field->offset;

	if (field->form == LONG_NUMBER)
		memcpy(at, &value, sizeof value);
	else
		memcpy(at, &(int32_t){ (int32_t)value }, sizeof(int32_t)); /* enums, too, have four bytes */
}

/* One "name=value". */
static int apply(const char *text, size_t length, struct hive_worker_options *worker, struct hive_options *hive)
{
	const char *sign = memchr(text, '=', length);
	size_t name_length = sign ? (size_t)(sign - text) : length;

	for (size_t i = 0; sign && i < sizeof fields / sizeof *fields; i++) {
		int64_t value;

		if (!is_word(text, name_length, fields[i].name, strlen(fields[i].name)))
			continue;
		if (!read_value(&fields[i], sign + 1, length - name_length - 1, &value))
			return -EINVAL;
		if (fields[i].of_hive)
			set(&fields[i], hive, value);
		else if (worker->kind == HIVE_WORKER_IO ||
		         fields[i].offset != offsetof(struct hive_worker_options, timers))
			set(&fields[i], worker, value);
		return 0;
	}
	return -EINVAL;
}

int hive_tune_options(struct hive_worker_options *worker, struct hive_options *hive)
{
	struct hive_worker_options new_worker = worker ? *worker : (struct hive_worker_options){ 0 };
	struct hive_options new_hive = hive ? *hive : (struct hive_options){ 0 };
	const char *at = getenv("HIVE_TUNE");

	while (at && *at) {
		size_t length = strcspn(at, ",");
		int error = apply(at, length, &new_worker, &new_hive);

		if (error)
			return error;
		at += length + (at[length] == ',');
	}
	if (worker)
		*worker = new_worker;
	if (hive)
		*hive = new_hive;
	return 0;
}
