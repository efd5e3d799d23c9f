/* SPDX-License-Identifier: MIT */
#include "terminal.h"
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "terminal_modes.h"

#define CELL_BYTES 40 /* the most that one cell can need: move, colours, glyph */

static const struct cell blank = { .glyph = " ", .ink = TERMINAL_DEFAULT, .paper = TERMINAL_DEFAULT };

bool terminal_present(void)
{
	const char *kind = getenv("TERM");
	return isatty(STDOUT_FILENO) && kind && kind[0] && strcmp(kind, "dumb") != 0;
}

static void measure(int *ret_columns, int *ret_rows)
{
	struct winsize size = { 0 };
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
		size = (struct winsize){ .ws_col = 80, .ws_row = 24 };
	*ret_columns = size.ws_col;
	*ret_rows = size.ws_row;
}

static int resize(struct terminal *terminal, int columns, int rows)
{
	size_t count = (size_t)columns * (size_t)rows;
	struct cell *cells = calloc(count, sizeof *cells), *shown = calloc(count, sizeof *shown);
	char *output = malloc(count * CELL_BYTES + 64);
	if (!cells || !shown || !output)
		return free(cells), free(shown), free(output), -ENOMEM;
	free(terminal->cells), free(terminal->shown), free(terminal->output);
	terminal->cells = cells, terminal->shown = shown, terminal->output = output;
	terminal->columns = columns, terminal->rows = rows;
	terminal->output_capacity = count * CELL_BYTES + 64;
	terminal->repaint = true;
	return 0;
}

int terminal_open(struct terminal *terminal)
{
	*terminal = (struct terminal){ 0 };
	setlocale(LC_CTYPE, "");
	terminal->unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	terminal->colours = !getenv("NO_COLOR") || !getenv("NO_COLOR")[0];
	int error = terminal_clear(terminal);
	if (!error)
		terminal_modes_enter();
	return error;
}

void terminal_close(struct terminal *terminal)
{
	terminal_modes_leave();
	free(terminal->cells), free(terminal->shown), free(terminal->output);
	*terminal = (struct terminal){ 0 };
}

int terminal_clear(struct terminal *terminal)
{
	int columns, rows, error = 0;
	measure(&columns, &rows);
	if (columns != terminal->columns || rows != terminal->rows)
		error = resize(terminal, columns, rows);
	for (int i = 0; !error && i < columns * rows; i++)
		terminal->cells[i] = blank;
	return error;
}

void terminal_set(struct terminal *terminal, int row, int column, struct cell cell)
{
	if (row >= 0 && row < terminal->rows && column >= 0 && column < terminal->columns)
		terminal->cells[row * terminal->columns + column] = cell;
}

static size_t character_bytes(const char *text)
{
	size_t bytes = 1;
	while (bytes < 4 && ((unsigned char)text[bytes] & 0xc0) == 0x80)
		bytes++;
	return bytes;
}

int terminal_put(struct terminal *terminal, int row, int column, int16_t ink, bool bold, const char *text)
{
	while (*text) {
		struct cell cell = { .ink = ink, .paper = TERMINAL_DEFAULT, .bold = bold };
		size_t bytes = character_bytes(text);
		memcpy(cell.glyph, text, bytes);
		if (bytes > 1 && !terminal->unicode)
			memcpy(cell.glyph, "-\0\0", 4);
		terminal_set(terminal, row, column++, cell);
		text += bytes;
	}
	return column;
}

int terminal_print(struct terminal *terminal, int row, int column, int16_t ink, bool bold, const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return terminal_put(terminal, row, column, ink, bold, text);
}

__attribute__((format(printf, 2, 3))) static void emit(struct terminal *terminal, const char *format, ...)
{
	va_list arguments;
	size_t room = terminal->output_capacity - terminal->output_size;
	va_start(arguments, format);
	int bytes = vsnprintf(terminal->output + terminal->output_size, room, format, arguments);
	va_end(arguments);
	if (bytes > 0 && (size_t)bytes < room)
		terminal->output_size += (size_t)bytes;
}

static bool same_look(const struct cell *left, const struct cell *right)
{
	return left->ink == right->ink && left->paper == right->paper && left->bold == right->bold;
}

static void emit_look(struct terminal *terminal, const struct cell *cell)
{
	emit(terminal, cell->bold ? "\x1b[0;1" : "\x1b[0");
	if (cell->ink >= 0 && terminal->colours)
		emit(terminal, ";38;5;%d", cell->ink);
	if (cell->paper >= 0 && terminal->colours)
		emit(terminal, ";48;5;%d", cell->paper);
	emit(terminal, "m");
}

/* Only what changed; the cursor is moved where something was left out. */
static void emit_changes(struct terminal *terminal)
{
	const struct cell *look = NULL;
	int cursor = -1;
	for (int i = 0; i < terminal->columns * terminal->rows; i++) {
		const struct cell *cell = &terminal->cells[i];
		if (!terminal->repaint && memcmp(cell->glyph, terminal->shown[i].glyph, sizeof cell->glyph) == 0 &&
		    same_look(cell, &terminal->shown[i]))
			continue;
		if (i != cursor || i % terminal->columns == 0)
			emit(terminal, "\x1b[%d;%dH", i / terminal->columns + 1, i % terminal->columns + 1);
		if (!look || !same_look(look, cell))
			emit_look(terminal, cell);
		emit(terminal, "%.4s", cell->glyph);
		look = cell;
		cursor = i + 1;
	}
}

static int write_whole(const char *data, size_t size)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	while (size > 0) {
		ssize_t wrote = write(STDOUT_FILENO, data, size);
		if (wrote < 0 && errno == EAGAIN)
			poll(&out, 1, 100);
		else if (wrote < 0 && errno != EINTR)
			return -errno;
		if (wrote > 0) {
			data += wrote;
			size -= (size_t)wrote;
		}
	}
	return 0;
}

int terminal_flush(struct terminal *terminal)
{
	terminal->output_size = 0;
	emit(terminal, "\x1b[?2026h"); /* terminals that know it show the frame as a whole; others ignore it */
	size_t empty = terminal->output_size;
	emit_changes(terminal);
	if (terminal->output_size == empty)
		return 0;
	emit(terminal, "\x1b[0m\x1b[?2026l");
	int error = write_whole(terminal->output, terminal->output_size);
	memcpy(terminal->shown, terminal->cells,
	       (size_t)terminal->columns * (size_t)terminal->rows * sizeof *terminal->cells);
	terminal->repaint = false;
	return error;
}
