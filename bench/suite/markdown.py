# SPDX-License-Identifier: MIT
"""report.md: the tables, with the plots beside them as pictures."""
import estimate
import results as outcome
import tables

INTRODUCTION = (
    "Medians of fresh processes in turns, on one machine, in one run: compare within this page only. \"ours 4.20 ×\": rophive is that many times better, below 1 "
    "the other one is. Bold: the best of the libraries; floors are what the machine gives at best, and no competitors."
)


def escaped(text):
    """No bar ends a cell, no line ends a row, nothing is taken for a tag."""
    return " ".join(str(text).split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def cell_text(cell):
    text = escaped(cell.text)
    text = "**%s**" % text if cell.strong else text
    return text + (" (%s)" % "; ".join(escaped(line) for line in cell.small) if cell.small else "")


def table_lines(table):
    if not table.lines:
        return ["Nothing was measured.", ""]
    marks = ["---"] * table.left + ["--:"] * (len(table.head) - table.left)
    rows = [[escaped(word) for word in table.head], marks] + [[cell_text(cell) for cell in line] for line in table.lines]
    return ["| " + " | ".join(row) + " |" for row in rows] + [""]


def picture_lines(plots):
    return [line for plot in plots for line in ("![%s](plots/%s.png)" % (escaped(plot.title).replace("]", ")"), plot.name), "")]


def head_lines(results):
    lines = ["# rophive beside its peers", ""]
    lines += ["- %s: %s" % (name, escaped(words)) for name, words in tables.head_facts(results)]
    lines += ["- Machine: " + ", ".join("%s %s" % (name, escaped(words)) for name, words in tables.machine_facts(results) or [("facts", "unknown")]), ""]
    lines += ["Left out:", ""] + ["- %s: %s" % (escaped(who), escaped(why)) for who, why in tables.left_out(results) or [("nobody", "all were there")]] + [""]
    return lines


def verdict_lines(verdicts):
    lines = ["## Targets", ""]
    for sentence in tables.verdict_summary(verdicts):
        lines += [escaped(sentence), ""]
    return lines + (table_lines(tables.verdict_table(verdicts)) if verdicts else [])


def group_lines(results, name, rows, plots):
    lines = ["## " + escaped(name), ""] + table_lines(tables.group_table(results, rows))
    costs = tables.cost_table(results, rows)
    if costs:
        lines += ["Memory and CPU time of the whole process, warm-up included, where they differ:", ""] + table_lines(costs)
    return lines + picture_lines(plots)


def growth_lines(results, plots):
    lines = ["## Growth with the amount of work", ""] if results.growth else []
    for growth in results.growth:
        lines += ["### " + escaped(growth.get("title") or growth["id"]), ""]
        parts = [(kind, name, unit, tables.growth_table(results, growth, name, unit)) for kind, name, unit in tables.GROWTH]
        if not any(table for _, _, _, table in parts):
            lines += ["Nothing was measured.", ""]
        for kind, name, unit, table in parts:
            if table:
                lines += [escaped(growth.get(kind) or kind) + ":", ""] + table_lines(table)
                lines += ["- " + escaped(sentence) for sentence in tables.growth_sentences(results, growth, name, unit)] + [""]
        lines += picture_lines([plot for plot in plots if plot.place == "growth:" + growth["id"]])
    return lines


def detail_lines(results):
    lines = ["## Every figure", ""]
    for name, rows in results.groups():
        lines += ["### %s, every figure" % escaped(name), ""] + table_lines(tables.detail_table(results, rows))
    return lines


def write(results, plots):
    """The whole text."""
    lines = head_lines(results) + verdict_lines(outcome.verdicts(results)) + [INTRODUCTION, ""]
    for name, rows in results.groups():
        lines += group_lines(results, name, rows, [plot for plot in plots if plot.place == "group:" + name])
    lines += growth_lines(results, plots)
    lines += ["## What is comparable", ""]
    for title, role, note in tables.peer_notes(results):
        lines += ["**%s** (%s). %s" % (escaped(title), role, escaped(note)), ""]
    missing = outcome.gaps(results)
    if missing:
        lines += ["## What is missing", ""] + ["- " + escaped(sentence) for sentence in missing] + [""]
    lines += ["## How the figures were made", "", estimate.METHOD, ""]
    return "\n".join(lines + detail_lines(results)).rstrip("\n") + "\n"
