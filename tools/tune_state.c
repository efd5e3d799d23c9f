/* SPDX-License-Identifier: MIT */
#include "tune.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file: a head, then a line for each sample, "place scenario candidate = figure", or "= failed". It is only appended to, and each
 * line is on its way to the disk before the next sample begins; what is behind the last complete line was cut off, and goes.       */
#define MARK " = "

static bool keep(struct tune_state *state, const char *key, double figure)
{
	if (state->count == state->capacity) {
		size_t capacity = state->capacity ? state->capacity * 2 : 256;
		struct tune_line *grown = realloc(state->lines, capacity * sizeof *grown);
		if (!grown)
			return false;
		state->lines = grown;
		state->capacity = capacity;
	}
	char *copy = strdup(key);
	if (!copy)
		return false;
	state->lines[state->count++] = (struct tune_line){ copy, figure };
	return true;
}

/* Cuts the line at the mark. */
static bool read_line(char *line, double *ret_figure)
{
	char *mark = strstr(line, MARK), *end;
	if (!mark)
		return false;
	*mark = '\0';
	mark += strlen(MARK);
	if (strcmp(mark, "failed") == 0)
		return *ret_figure = 0, true;
	*ret_figure = strtod(mark, &end);
	return end != mark && !*end && isfinite(*ret_figure) && *ret_figure > 0;
}

/* 0: end; -1: not complete; else its length, the end of the line cut off. */
static ssize_t next_line(FILE *file, char **line, size_t *size)
{
	ssize_t length = getline(line, size, file);
	if (length <= 0)
		return 0;
	if ((*line)[length - 1] != '\n')
		return -1;
	(*line)[length - 1] = '\0';
	return length;
}

static bool load(struct tune_state *state, const char *head, char *why, size_t size)
{
	char *line = NULL;
	size_t capacity = 0, number = 1;
	long good = 0;
	ssize_t length = next_line(state->file, &line, &capacity);
	bool fine = length <= 0 || strcmp(line, head) == 0;
	if (!fine)
		snprintf(why, size, "%s is of another search:\n  %.300s\nand this one is\n  %.300s", state->path, line,
		         head);
	while (fine && length > 0) {
		double figure;
		good += (long)length;
		length = next_line(state->file, &line, &capacity);
		if (length <= 0)
			break;
		number++;
		fine = read_line(line, &figure) && keep(state, line, figure);
		if (!fine)
			snprintf(why, size, "%s, line %zu: not a sample", state->path, number);
	}
	free(line);
	if (fine && (fflush(state->file) != 0 || ftruncate(fileno(state->file), good) != 0 ||
	             fseek(state->file, 0, SEEK_END) != 0))
		fine = (snprintf(why, size, "%s: %s", state->path, strerror(errno)), false);
	if (fine && good == 0)
		fprintf(state->file, "%s\n", head);
	return fine;
}

bool tune_state_open(struct tune_state *state, const char *path, const char *head, char *why, size_t size)
{
	*state = (struct tune_state){ .path = path };
	if (!path)
		return true;
	state->file = fopen(path, "a+");
	if (!state->file)
		return snprintf(why, size, "%s: %s", path, strerror(errno)), false;
	rewind(state->file); /* where reading begins is left open for "a+" */
	if (load(state, head, why, size))
		return true;
	tune_state_close(state);
	return false;
}

/* The last one counts: a round that was interrupted was measured again. */
const struct tune_line *tune_state_find(const struct tune_state *state, const char *key)
{
	for (size_t i = state->count; i > 0; i--)
		if (strcmp(state->lines[i - 1].key, key) == 0)
			return &state->lines[i - 1];
	return NULL;
}

bool tune_state_add(struct tune_state *state, const char *key, double figure)
{
	if (!keep(state, key, figure))
		return false;
	if (!state->file)
		return true;
	if (figure > 0)
		fprintf(state->file, "%s" MARK "%.17g\n", key, figure);
	else
		fprintf(state->file, "%s" MARK "failed\n", key);
	return fflush(state->file) == 0;
}

void tune_state_close(struct tune_state *state)
{
	for (size_t i = 0; i < state->count; i++)
		free(state->lines[i].key);
	free(state->lines);
	if (state->file)
		fclose(state->file);
	*state = (struct tune_state){ 0 };
}
