/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A screen of cells on a terminal. What is drawn goes into cells; a flush writes the difference to what is there
 * already, in one piece. The terminal is put back as it was at close, and also when a signal ends the program.   */
#define TERMINAL_DEFAULT (-1) /* colour: the terminal's own */

struct cell {
	char glyph[4]; /* one character in UTF-8, padded with zeros */
	int16_t ink, paper;
	bool bold;
};

struct terminal {
	int columns, rows;
	bool unicode, colours;
	struct cell *cells, *shown; /* to come, and on the screen now */
	char *output;
	size_t output_size, output_capacity;
	bool repaint; /* what is shown is not known */
};

/* Is there one, on stdout, that can move its cursor? */
bool terminal_present(void);
/* Other screen, no cursor, no echo. 0 or -errno. */
int terminal_open(struct terminal *terminal);
void terminal_close(struct terminal *terminal);
/* Follows the size of the window and blanks all cells. 0 or -ENOMEM. */
int terminal_clear(struct terminal *terminal);
int terminal_flush(struct terminal *terminal);

/* Clipped at the edges. text is UTF-8; each character takes one cell. Returns the column behind it. */
int terminal_put(struct terminal *terminal, int row, int column, int16_t ink, bool bold, const char *text);
__attribute__((format(printf, 6, 7))) int terminal_print(struct terminal *terminal, int row, int column, int16_t ink,
                                                         bool bold, const char *format, ...);
void terminal_set(struct terminal *terminal, int row, int column, struct cell cell);

/* A signal or the key q asked for the end. From terminal_catch_signals() on; a second signal ends the process. */
bool terminal_interrupted(void);
/* 128 + signal for a signal; 0 for q and for nothing. */
int terminal_exit_code(void);
void terminal_catch_signals(void);
/* What was typed: looks for q. false: nothing more will come. */
bool terminal_read_keys(void);
