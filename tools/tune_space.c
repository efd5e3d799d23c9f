/* SPDX-License-Identifier: MIT */
#include "tune.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What can be tried: the order is that of the structs, so that initializers come out in it. The values go a few steps down and up
 * from the defaults of src/sched/tune.h, which are not among them.                                                             */
static const struct {
	const char *name, *constant, *values;
	bool of_hive;
} known[] = {
	{ "order", "HIVE_ORDER_", "oldest", false },
	{ "timers", "HIVE_TIMERS_", "wheel", false },
	{ "victim", "HIVE_VICTIM_", "busiest:near", false },
	{ "local_capacity", NULL, "64:256:4096", false },
	{ "local_budget", NULL, "16:32:128:256:adaptive", false },
	{ "private_budget", NULL, "16:256", false },
	{ "timer_budget", NULL, "16:256", false },
	{ "pool_probe_interval", NULL, "7:23:97:199", false },
	{ "pool_batch", NULL, "4:8:32:64:128", false },
	{ "steal_attempts", NULL, "off:1:2:8", false },
	{ "io_interval", NULL, "2:4:16:61", false },
	{ "slice_ns", NULL, "100000:250000:1000000:2000000", false },
	{ "spin_ns", NULL, "off:5000:20000:100000:200000", false },
	{ "preset", "HIVE_PRESET_", "rophive:faio:veloq", true },
	{ "placement", "HIVE_PLACE_", "choices", true },
	{ "mesh", "HIVE_MESH_", "on", true },
};
#define KNOWN (sizeof known / sizeof *known)
_Static_assert(KNOWN == TUNE_PARAMETERS, "room for each");

/* Would a hive take it? The library has the last word, so that no list of limits is kept here. */
static bool is_accepted(const char *name, const char *value)
{
	struct hive_worker_options worker = { 0 };
	struct hive_options options = { .io_workers = 1, .io = &worker };
	struct hive *hive;
	char text[128];
	snprintf(text, sizeof text, "%s=%s", name, value);
	if (setenv("HIVE_TUNE", text, 1) != 0)
		return false;
	bool good = hive_tune_options(&worker, &options) == 0 && hive_create(&options, &hive) == 0;
	if (good)
		hive_destroy(hive);
	unsetenv("HIVE_TUNE");
	return good;
}

static bool add_value(struct tune_parameter *parameter, const char *value, size_t length, char *why, size_t size)
{
	char word[TUNE_WORD];
	snprintf(word, sizeof word, "%.*s", (int)length, value);
	if (length >= sizeof word || !is_accepted(parameter->name, word)) {
		snprintf(why, size, "'%.*s' is no value for %s", (int)length, value, parameter->name);
		return false;
	}
	for (int i = 0; i < parameter->count; i++)
		if (strcmp(parameter->values[i], word) == 0)
			return true;
	if (parameter->count == TUNE_VALUES) {
		snprintf(why, size, "more than %d values for %s", TUNE_VALUES, parameter->name);
		return false;
	}
	if (strcmp(word, "default") != 0 && strcmp(word, "0") != 0) /* is tried anyway */
		snprintf(parameter->values[parameter->count++], TUNE_WORD, "%s", word);
	return true;
}

static bool add_values(struct tune_parameter *parameter, const char *values, size_t length, char *why, size_t size)
{
	for (size_t at = 0; at <= length;) {
		size_t end = at;
		while (end < length && values[end] != ':')
			end++;
		if (!add_value(parameter, values + at, end - at, why, size))
			return false;
		at = end + 1;
	}
	return true;
}

/* "name" or "name=value:value", into its place. */
static bool add_parameter(struct tune_parameter *all, const char *item, size_t length, char *why, size_t size)
{
	const char *sign = memchr(item, '=', length);
	size_t name_length = sign ? (size_t)(sign - item) : length;
	for (size_t i = 0; i < KNOWN; i++) {
		if (strlen(known[i].name) != name_length || memcmp(known[i].name, item, name_length) != 0)
			continue;
		const char *values = sign ? sign + 1 : known[i].values;
		size_t values_length = sign ? length - name_length - 1 : strlen(values);
		if (all[i].name)
			return snprintf(why, size, "%s is named twice", known[i].name), false;
		all[i] = (struct tune_parameter){ .name = known[i].name,
			                          .of_hive = known[i].of_hive,
			                          .constant = known[i].constant };
		return add_values(&all[i], values, values_length, why, size);
	}
	return snprintf(why, size, "there is no parameter '%.*s'", (int)name_length, item), false;
}

bool tune_space_read(struct tune_space *space, const char *text, char *why, size_t size)
{
	struct tune_parameter all[KNOWN] = { 0 };
	for (size_t i = 0; !text && i < KNOWN; i++)
		if (!add_parameter(all, known[i].name, strlen(known[i].name), why, size))
			return false;
	for (const char *at = text; at;) {
		size_t length = strcspn(at, ",");
		if (!add_parameter(all, at, length, why, size))
			return false;
		at = at[length] ? at + length + 1 : NULL;
	}
	*space = (struct tune_space){ 0 };
	for (size_t i = 0; i < KNOWN; i++)
		if (all[i].name && all[i].count > 0)
			space->parameters[space->count++] = all[i];
	if (space->count == 0)
		snprintf(why, size, "nothing to try but the defaults");
	return space->count > 0;
}

size_t tune_space_size(const struct tune_space *space, size_t most)
{
	size_t size = 1;
	for (int i = 0; i < space->count && size <= most; i++)
		size *= (size_t)space->parameters[i].count + 1;
	return size <= most ? size : most;
}

void tune_candidate_text(const struct tune_space *space, const struct tune_candidate *candidate, char *text,
                         size_t size)
{
	size_t used = 0;
	text[0] = '\0';
	for (int i = 0; i < space->count; i++) {
		if (!candidate->choice[i])
			continue;
		const struct tune_parameter *parameter = &space->parameters[i];
		int wrote = snprintf(text + used, size - used, "%s%s=%s", used ? "," : "", parameter->name,
		                     parameter->values[candidate->choice[i] - 1]);
		used += (size_t)wrote < size - used ? (size_t)wrote : size - used - 1;
	}
}

bool tune_candidate_equal(const struct tune_candidate *a, const struct tune_candidate *b)
{
	return memcmp(a->choice, b->choice, sizeof a->choice) == 0;
}

int tune_candidate_changes(const struct tune_candidate *candidate)
{
	int count = 0;
	for (int i = 0; i < TUNE_PARAMETERS; i++)
		count += candidate->choice[i] != 0;
	return count;
}

void tune_value_in_c(const struct tune_parameter *parameter, int choice, char *text, size_t size)
{
	const char *value = parameter->values[choice - 1];
	if (!parameter->constant) {
		snprintf(text, size, "%s", isdigit((unsigned char)value[0]) ? value : "HIVE_OFF");
		return;
	}
	int used = snprintf(text, size, "%s%s", parameter->constant, strcmp(value, "choices") == 0 ? "two_" : "");
	snprintf(text + used, size - (size_t)used, "%s", value);
	for (char *at = text; *at; at++)
		*at = (char)toupper((unsigned char)*at);
}
