/* SPDX-License-Identifier: MIT */
#include "demo_report.h"
#include "record.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

void report_count(char *text, size_t size, double count)
{
	char digits[32];
	if (count < 100 && count != floor(count)) {
		snprintf(text, size, "%.1f", count);
		return;
	}
	size_t length = (size_t)snprintf(digits, sizeof digits, "%.0f", count), used = 0;
	for (size_t i = 0; i < length && used + 2 < size; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			text[used++] = ',';
		text[used++] = digits[i];
	}
	text[used] = 0;
}

bool report_balanced(const struct hive_report *report)
{
	return report->posted == report->ran + report->cancelled + report->dropped;
}

static void write_row(const char *label, const char *hive, const char *plain, const char *unit)
{
	printf("  %-22s %12s %-3s %14s %s\n", label, hive, unit, plain, unit);
}

/* A run that was never begun has no figures. */
static const char *if_run(const struct figures *figures, const char *text)
{
	return figures->seconds > 0 ? text : "-";
}

static void row_of_counts(const char *label, double hive, double plain, const struct figures *run)
{
	char left[32], right[32];
	report_count(left, sizeof left, hive);
	report_count(right, sizeof right, plain);
	write_row(label, left, if_run(run, right), "/s");
}

static void row_of_times(const char *label, int64_t hive_ns, int64_t plain_ns, const struct figures *run)
{
	char left[32], right[32];
	snprintf(left, sizeof left, "%.2f", (double)hive_ns / 1e6);
	snprintf(right, sizeof right, "%.2f", (double)plain_ns / 1e6);
	write_row(label, left, if_run(run, right), "ms");
}

static void row_of_shares(const char *label, double hive, double plain, const struct figures *run)
{
	char left[32], right[32];
	snprintf(left, sizeof left, "%.1f", 100 * hive);
	snprintf(right, sizeof right, "%.1f", 100 * plain);
	write_row(label, left, if_run(run, right), "%");
}

static void write_hive(const struct figures *hive, const struct hive_report *report)
{
	const double counts[] = { (double)hive->stats.steals, (double)hive->stats.sleeps, (double)hive->stats.wakes,
		                  (double)report->posted,     (double)report->ran,        (double)report->cancelled,
		                  (double)report->dropped };
	char texts[sizeof counts / sizeof *counts][32];
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		report_count(texts[i], sizeof texts[i], counts[i]);
	printf("\n  The hive: %u IO and %u compute workers, %s steals, %s sleeps, %s wakes.\n", hive->stats.io_workers,
	       hive->stats.compute_workers, texts[0], texts[1], texts[2]);
	printf("  Its books: %s posted = %s ran + %s cancelled + %s dropped%s\n", texts[3], texts[4], texts[5],
	       texts[6], report_balanced(report) ? "." : ": WRONG");
}

void report_text(const struct figures *hive, const struct figures *plain, const struct hive_report *report)
{
	printf("\n");
	write_row("the same work", "one hive", "one plain loop", "");
	row_of_shares("frames on time", hive->frames_share, plain->frames_share, plain);
	row_of_times("frame lateness, p50", hive->late_p50_ns, plain->late_p50_ns, plain);
	row_of_times("frame lateness, p99", hive->late_p99_ns, plain->late_p99_ns, plain);
	row_of_times("frame lateness, most", hive->late_max_ns, plain->late_max_ns, plain);
	row_of_counts("echo requests", hive->answers_per_s, plain->answers_per_s, plain);
	row_of_times("echo reply, p50", hive->answer_p50_ns, plain->answer_p50_ns, plain);
	row_of_times("echo reply, p99", hive->answer_p99_ns, plain->answer_p99_ns, plain);
	row_of_counts("Mandelbrot tiles", hive->tiles_per_s, plain->tiles_per_s, plain);
	write_hive(hive, report);
}

static void fill_record(struct record *record, const struct figures *figures)
{
	record_real(record, "seconds", figures->seconds);
	record_count(record, "frames", figures->frames);
	record_count(record, "frames_drawn", figures->frames_drawn);
	record_count(record, "frames_on_time", figures->frames_on_time);
	record_real(record, "frames_on_time_percent", 100 * figures->frames_share);
	record_count(record, "late_p50_ns", figures->late_p50_ns);
	record_count(record, "late_p99_ns", figures->late_p99_ns);
	record_count(record, "late_max_ns", figures->late_max_ns);
	record_count(record, "requests", figures->answers);
	record_real(record, "requests_per_s", figures->answers_per_s);
	record_count(record, "request_p50_ns", figures->answer_p50_ns);
	record_count(record, "request_p99_ns", figures->answer_p99_ns);
	record_count(record, "tiles", figures->tiles);
	record_real(record, "tiles_per_s", figures->tiles_per_s);
}

void report_json(const struct figures *hive, const struct figures *plain, const struct hive_report *report)
{
	static struct record left, right;
	fill_record(&left, hive);
	fill_record(&right, plain);
	record_count(&left, "io_workers", hive->stats.io_workers);
	record_count(&left, "compute_workers", hive->stats.compute_workers);
	record_count(&left, "steals", (int64_t)hive->stats.steals);
	record_count(&left, "sleeps", (int64_t)hive->stats.sleeps);
	record_count(&left, "wakes", (int64_t)hive->stats.wakes);
	record_count(&left, "posted", (int64_t)report->posted);
	record_count(&left, "ran", (int64_t)report->ran);
	record_count(&left, "cancelled", (int64_t)report->cancelled);
	record_count(&left, "dropped", (int64_t)report->dropped);
	record_flag(&left, "balanced", report_balanced(report));
	printf("{\"version\":");
	record_write_string(stdout, hive_version());
	printf(",\"hive\":");
	record_write_json(stdout, &left);
	printf(",\"plain\":");
	record_write_json(stdout, &right);
	printf("}\n");
}
