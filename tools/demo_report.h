/* SPDX-License-Identifier: MIT */
#pragma once
#include "demo_stage.h"

/* What remains of the demo: the table of both runs, or one JSON object. */
void report_count(char *text, size_t size, double count); /* 12,345; below 100 with one decimal if it has one */
void report_text(const struct figures *hive, const struct figures *plain, const struct hive_report *report);
void report_json(const struct figures *hive, const struct figures *plain, const struct hive_report *report);
bool report_balanced(const struct hive_report *report);
