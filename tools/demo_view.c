/* SPDX-License-Identifier: MIT */
#include "demo_report.h"
#include "demo_stage.h"
#include <stdio.h>
#include <string.h>

/* The live screen: picture on the left, figures on the right, a strip with the lateness of the last frames below. */
#define PANEL_COLUMNS 38
#define PICTURE_COLUMNS_LEAST 16 /* narrower than that there is no picture */
#define ROWS_ABOVE 2             /* title and progress; a blank row follows */
#define ROWS_BELOW 2             /* runner and legend, beside the strip */
#define ROWS_MANY 36             /* from here on the strip may be three rows high */

enum ink {
	INK_PLAIN = 252,
	INK_STRONG = 231,
	INK_FAINT = 243,
	INK_GOOD = 114,
	INK_FAIR = 221,
	INK_BAD = 203,
	INK_BRAND = 215
};

/* A ring of colours: it ends where it begins, as deep pictures go round several times. */
static const uint8_t palette[] = { 17,  18,  19,  25,  26,  32,  38,  44,  80, 116, 152, 188, 230, 229, 228, 227,
	                           221, 220, 214, 208, 202, 166, 160, 124, 88, 89,  90,  54,  55,  56,  19,  18 };

struct box {
	int row, column, rows, columns;
};

/* ---- picture ---- */

static uint8_t shade_at(const struct picture *picture, struct box box, int column, int half_row)
{
	double across = (double)PICTURE_COLUMNS / box.columns, down = (double)PICTURE_ROWS / (2 * box.rows);
	double scale = across < down ? across : down; /* fill the box, cut what is too wide or too high */
	int x = (int)(PICTURE_COLUMNS / 2.0 + scale * (column + 0.5 - box.columns / 2.0));
	int y = (int)(PICTURE_ROWS / 2.0 + scale * (half_row + 0.5 - box.rows));
	return picture->shades[y][x];
}

static int16_t colour_of(uint8_t shade)
{
	return shade == 0 ? 16 : palette[(size_t)(shade - 1) * (sizeof palette) / 255];
}

static struct cell picture_cell(const struct terminal *terminal, uint8_t upper, uint8_t lower)
{
	static const char ramp[] = " .:-=+*#%@";
	struct cell cell = { .glyph = " ", .ink = colour_of(upper), .paper = colour_of(lower) };
	if (!terminal->colours) {
		cell.glyph[0] = upper == 0 ? ' ' : ramp[1 + (size_t)(upper - 1) * (sizeof ramp - 2) / 255];
		cell.ink = cell.paper = TERMINAL_DEFAULT;
	} else if (terminal->unicode) {
		memcpy(cell.glyph, "\xe2\x96\x80", 3); /* upper half block */
	}
	return cell;
}

static void draw_picture(struct terminal *terminal, const struct picture *picture, struct box box)
{
	for (int row = 0; row < box.rows; row++)
		for (int column = 0; column < box.columns; column++)
			terminal_set(terminal, box.row + row, box.column + column,
			             picture_cell(terminal, shade_at(picture, box, column, 2 * row),
			                          shade_at(picture, box, column, 2 * row + 1)));
}

/* ---- panel: lines from the top, a gap before each heading when there is room ---- */

struct panel {
	struct terminal *terminal;
	struct box box;
	int used, gap;
};

static int panel_row(struct panel *panel)
{
	return panel->used < panel->box.rows ? panel->box.row + panel->used++ : -1; /* -1: clipped */
}

static void put_heading(struct panel *panel, const char *title, const char *note)
{
	if (panel->used > 0)
		panel->used += panel->gap;
	int row = panel_row(panel);
	terminal_put(panel->terminal, row, panel->box.column, INK_STRONG, true, title);
	terminal_put(panel->terminal, row, panel->box.column + PANEL_COLUMNS - (int)strlen(note), INK_FAINT, false,
	             note);
}

static void put_figure(struct panel *panel, const char *label, int16_t ink, const char *value, const char *unit)
{
	int row = panel_row(panel), column = panel->box.column;
	terminal_put(panel->terminal, row, column, INK_PLAIN, false, label);
	terminal_print(panel->terminal, row, column + 12, ink, true, "%12s", value);
	terminal_put(panel->terminal, row, column + 26, INK_FAINT, false, unit);
}

static void put_count(struct panel *panel, const char *label, double count, const char *unit)
{
	char text[32];
	report_count(text, sizeof text, count);
	put_figure(panel, label, INK_STRONG, text, unit);
}

static int16_t lateness_ink(int64_t late_ns)
{
	return late_ns < FRAMES_LATE_NS / 2 ? INK_GOOD : late_ns < FRAMES_LATE_NS ? INK_FAIR : INK_BAD;
}

static void put_lateness(struct panel *panel, const char *label, int64_t late_ns)
{
	char text[32];
	snprintf(text, sizeof text, "%.2f", (double)late_ns / 1e6);
	put_figure(panel, label, lateness_ink(late_ns), text, "ms");
}

static void put_share(struct panel *panel, const char *label, double share, const char *unit)
{
	char text[32];
	snprintf(text, sizeof text, "%.1f %%", 100 * share);
	put_figure(panel, label, share >= 0.99 ? INK_GOOD : share >= 0.9 ? INK_FAIR : INK_BAD, text, unit);
}

static void put_frames(struct panel *panel, const struct stage *stage, int64_t now_ns)
{
	const struct stats *lateness = &stage->frames.lateness;
	char unit[48];
	snprintf(unit, sizeof unit, "%lld / %lld", (long long)stage->frames.on_time,
	         (long long)frames_expected(&stage->frames, now_ns));
	put_heading(panel, "FRAMES", "60 a second");
	put_share(panel, "on time", frames_share(&stage->frames, now_ns), unit);
	put_lateness(panel, "late, p50", stats_quantile(lateness, 0.50));
	put_lateness(panel, "late, p99", stats_quantile(lateness, 0.99));
	put_lateness(panel, "late, most", lateness->max);
}

static void put_worker(struct panel *panel, const struct hive_worker_stats *worker)
{
	char ran[32], sleeps[32], stolen[32];
	report_count(ran, sizeof ran, (double)worker->ran);
	report_count(stolen, sizeof stolen, (double)worker->stolen);
	report_count(sleeps, sizeof sleeps, (double)worker->sleeps);
	int row = panel_row(panel), column = panel->box.column;
	terminal_print(panel->terminal, row, column, INK_PLAIN, false, "%-12.12s", worker->name);
	terminal_print(panel->terminal, row, column + 12, INK_STRONG, false, "%9s %7s %8s", ran, stolen, sleeps);
}

static void shorten(char *text, size_t size, uint64_t count)
{
	if (count < 10000)
		snprintf(text, size, "%u", (unsigned)count);
	else if (count < 10000000)
		snprintf(text, size, "%.1fk", (double)count / 1e3);
	else
		snprintf(text, size, "%.1fM", (double)count / 1e6);
}

static void put_workers(struct panel *panel, const struct stage *stage)
{
	char wakes[32], steals[32], sleeps[32];
	put_heading(panel, "WORKERS", "ran  stolen   sleeps");
	size_t room = panel->used + 1 < panel->box.rows ? (size_t)(panel->box.rows - panel->used - 1) : 0;
	size_t shown = stage->worker_count <= room ? stage->worker_count : room;
	for (size_t i = 0; i < shown; i++)
		put_worker(panel, &stage->workers[i]);
	shorten(steals, sizeof steals, stage->stats.steals);
	shorten(sleeps, sizeof sleeps, stage->stats.sleeps);
	shorten(wakes, sizeof wakes, stage->stats.wakes);
	terminal_print(panel->terminal, panel_row(panel), panel->box.column, INK_FAINT, false,
	               "steals %s, sleeps %s, wakes %s", steals, sleeps, wakes);
}

static void put_other(struct panel *panel, const struct figures *other)
{
	put_heading(panel, "BEFORE", "on the hive");
	put_share(panel, "on time", other->frames_share, "");
	put_lateness(panel, "late, p99", other->late_p99_ns);
	put_count(panel, "requests", other->answers_per_s, "a second");
	put_count(panel, "tiles", other->tiles_per_s, "a second");
}

static void draw_panel(struct stage *stage, struct box box, int64_t now_ns)
{
	int lines = 10 + (stage->other ? 4 : (int)stage->worker_count + 1);
	struct panel panel = { .terminal = stage->terminal, .box = box, .gap = box.rows >= lines + 3 };
	put_frames(&panel, stage, now_ns);
	put_heading(&panel, "ECHO", "16 TCP connections");
	put_count(&panel, "requests", stage->rates.answers_per_s, "a second");
	put_heading(&panel, "MANDELBROT", "4 M iterations a tile");
	put_count(&panel, "tiles", stage->rates.tiles_per_s, "a second");
	if (stage->other)
		put_other(&panel, stage->other);
	else
		put_workers(&panel, stage);
}

/* ---- above and below ---- */

static void draw_header(struct stage *stage, int64_t now_ns)
{
	struct terminal *terminal = stage->terminal;
	double done = (double)(now_ns - stage->begin_ns) / 1e9, whole = (double)(stage->end_ns - stage->begin_ns) / 1e9;
	int column = terminal_print(terminal, 0, 1, INK_BRAND, true, "rophive");
	terminal_put(terminal, 0, column + 2, INK_STRONG, true, stage->title);
	terminal_print(terminal, 0, terminal->columns - 13, INK_FAINT, false, "%5.1f/%.1f s", done, whole);
	int filled = (int)((terminal->columns - 2) * (done < whole ? done / whole : 1));
	for (int i = 0; i < terminal->columns - 2; i++)
		terminal_put(terminal, 1, 1 + i, i < filled ? INK_BRAND : 238, false, "\xe2\x94\x81");
}

/* Goes to and fro with the frames: where frames are late it stumbles. */
static void draw_runner(struct stage *stage, int row)
{
	struct terminal *terminal = stage->terminal;
	int track = terminal->columns - 2;
	if (track < 2)
		return;
	int64_t place = stage->frames.next % (2 * (track - 1));
	int column = place < track ? (int)place : (int)(2 * (track - 1) - place);
	for (int i = 0; i < track; i++)
		terminal_put(terminal, row, 1 + i, 237, false, "\xc2\xb7");
	terminal_put(terminal, row, 1 + column, lateness_ink(stage->frames.last_late_ns), true,
	             terminal->unicode ? "\xe2\x97\x8f" : "O");
}

/* Height of a bar in eighths of a row: one step of the logarithm for each doubling from 0.25 ms on. */
static int bar_height(int64_t late_ns, int rows)
{
	int steps = 1;
	for (int64_t limit = 250000; steps < 8 && late_ns >= limit; limit *= 2)
		steps++;
	return steps * rows;
}

static void draw_bar(struct terminal *terminal, int bottom, int column, int64_t late_ns, int rows)
{
	static const char *const bars[] = { "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83", "\xe2\x96\x84",
		                            "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88" };
	static const char *const letters[] = { ".", ".", ":", ":", "i", "i", "I", "#" };
	for (int left = bar_height(late_ns, rows), row = bottom; left > 0; left -= 8, row--) {
		size_t height = left < 8 ? (size_t)left - 1 : 7;
		terminal_put(terminal, row, column, lateness_ink(late_ns), false,
		             terminal->unicode ? bars[height] : letters[height]);
	}
}

static void draw_history(struct stage *stage, int bottom, int rows)
{
	int64_t columns = stage->terminal->columns - 2, room = columns < STAGE_HISTORY ? columns : STAGE_HISTORY;
	int64_t count = stage->frames.next < room ? stage->frames.next : room;
	for (int64_t i = 0; i < count; i++) {
		int64_t late_ns = stage->history_ns[(stage->frames.next - count + i) % STAGE_HISTORY];
		draw_bar(stage->terminal, bottom, (int)(1 + columns - count + i), late_ns, rows);
	}
}

void view_draw(struct stage *stage, int64_t now_ns)
{
	struct terminal *terminal = stage->terminal;
	int strip = terminal->rows >= ROWS_MANY ? 3 : 1, top = ROWS_ABOVE + 1;
	int rows = terminal->rows - top - strip - ROWS_BELOW;
	struct box picture = { top, 1, rows, terminal->columns - PANEL_COLUMNS - 5 };
	struct box panel = { top, 1, rows, PANEL_COLUMNS };
	if (picture.columns >= PICTURE_COLUMNS_LEAST && rows > 0) {
		draw_picture(terminal, &stage->picture, picture);
		panel.column = picture.column + picture.columns + 2;
	}
	draw_header(stage, now_ns);
	draw_panel(stage, panel, now_ns);
	draw_runner(stage, terminal->rows - 2 - strip);
	draw_history(stage, terminal->rows - 2, strip);
	terminal_put(terminal, terminal->rows - 1, 1, INK_FAINT, false,
	             "a bar is a frame: red began 2 ms late or more. q ends");
}
