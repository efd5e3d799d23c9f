# SPDX-License-Identifier: MIT
"""index.html: the whole report as one file that needs nothing else, light or dark, on paper or on a phone."""
import html
import re

import colours
import estimate
import markdown
import results as outcome
import tables

CSS = """
:root { color-scheme: light dark; --paper: #fdfdfc; --ink: #1b1b1b; --muted: #5a5a5a; --grid: #d9d9d8; --soft: #f1f1ee; --link: #0060a0;
  --met: #0b6e4f; --met-paper: #dff3ea; --missed: #a31515; --missed-paper: #fbe1de; --open: #6b5200; --open-paper: #f7edcd; --ours-paper: #fdeee2;
  LIGHT }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #16181b; --ink: #e8e6e3; --muted: #a9a9a6; --grid: #3b3f44; --soft: #212428; --link: #7cc0f5;
  --met: #7fe0b5; --met-paper: #12362a; --missed: #ffa79d; --missed-paper: #4a1a17; --open: #f0d377; --open-paper: #3c3211; --ours-paper: #33241a;
  DARK } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem clamp(0.8rem, 3vw, 2.5rem) 4rem; max-width: 84rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, "Segoe UI", "DejaVu Sans", Verdana, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0.6rem 0 1rem; }
h2 { font-size: 1.35rem; margin: 2.6rem 0 0.8rem; padding-top: 0.4rem; border-top: 2px solid var(--grid); }
h3 { font-size: 1.08rem; margin: 1.6rem 0 0.5rem; }
p, li { max-width: 52rem; }
a { color: var(--link); }
nav ul { display: flex; flex-wrap: wrap; gap: 0.3rem 1.1rem; list-style: none; padding: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1rem; margin: 0.6rem 0; }
dt { color: var(--muted); }
dd { margin: 0; min-width: 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 0 2.5rem; }
.scroll { overflow-x: auto; margin: 0.8rem 0; border: 1px solid var(--grid); border-radius: 6px; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; min-width: 100%; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.32rem 0.65rem; text-align: right; vertical-align: top; white-space: nowrap; border-bottom: 1px solid var(--grid); }
th { background: var(--soft); font-weight: 600; vertical-align: bottom; white-space: normal; min-width: 4.5rem; }
tr:last-child td { border-bottom: 0; }
th.word, td.word { text-align: left; white-space: normal; min-width: 7rem; }
table.what th:first-child, table.what td:first-child { position: sticky; left: 0; background: var(--soft); min-width: 13rem; max-width: 19rem; }
small { display: block; color: var(--muted); font-size: 0.88em; line-height: 1.3; }
td.ours { background: var(--ours-paper); }
td.floor { font-style: italic; color: var(--muted); border-left: 2px solid var(--grid); }
td.met { background: var(--met-paper); color: var(--met); }
td.missed { background: var(--missed-paper); color: var(--missed); }
td.open { background: var(--open-paper); color: var(--open); }
td.met small, td.missed small, td.open small { color: inherit; }
.counts { display: flex; flex-wrap: wrap; gap: 0.6rem; padding: 0; list-style: none; }
.counts li { padding: 0.35rem 0.9rem; border-radius: 6px; font-weight: 600; }
.counts .met { background: var(--met-paper); color: var(--met); }
.counts .missed { background: var(--missed-paper); color: var(--missed); }
.counts .open { background: var(--open-paper); color: var(--open); }
.names { columns: 22rem; column-gap: 2rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 34rem), 1fr)); gap: 1.2rem 2rem; align-items: start; margin: 1rem 0; }
figure { margin: 0; break-inside: avoid; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figure svg { display: block; width: 100%; height: auto; max-width: 40rem; }
@media (max-width: 34rem) { body { font-size: 0.95rem; } table { font-size: 0.82rem; } th, td { padding: 0.28rem 0.45rem; }
  table.what th:first-child, table.what td:first-child { min-width: 7.5rem; max-width: 9rem; } dl { grid-template-columns: minmax(0, 6.5rem) 1fr; gap: 0.15rem 0.6rem; } th.word, td.word { min-width: 5.6rem; } }
@media print { body { max-width: none; padding: 0; font-size: 9pt; } nav { display: none; } .scroll { overflow: visible; border: 0; } table { font-size: 6.5pt; }
  th, td { padding: 1.5pt 2.5pt; min-width: 0; } table.what th:first-child, table.what td:first-child { position: static; min-width: 5rem; }
  th.word, td.word { min-width: 0; } tr { break-inside: avoid; } h2, h3 { break-after: avoid; } .plots { grid-template-columns: 1fr 1fr; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def escaped(text):
    return html.escape(str(text))


def style():
    light = " ".join("%s: %s;" % (name, light) for name, light, _ in colours.named())
    dark = " ".join("%s: %s;" % (name, dark) for name, _, dark in colours.named())
    return CSS.replace("LIGHT", light).replace("DARK", dark)


def anchor(*words):
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")


def paragraph(text):
    return "<p>%s</p>" % escaped(text)


def items(sentences, name="sentences"):
    return '<ul class="%s">%s</ul>' % (name, "".join("<li>%s</li>" % escaped(sentence) for sentence in sentences))


def facts(pairs):
    return "<dl>%s</dl>" % "".join("<dt>%s</dt><dd>%s</dd>" % (escaped(name), escaped(words)) for name, words in pairs)


def cell_html(cell, word):
    classes = " ".join(filter(None, ("word" if word else "", cell.kind)))
    text = "<b>%s</b>" % escaped(cell.text) if cell.strong else escaped(cell.text)
    small = "".join("<small>%s</small>" % escaped(line) for line in cell.small)
    return "<td%s>%s%s</td>" % (' class="%s"' % classes if classes else "", text, small)


def table_html(table, label):
    """A box of its own that scrolls sideways; the keyboard can reach it."""
    if not table.lines:
        return paragraph("Nothing was measured.")
    head = "".join('<th scope="col"%s>%s</th>' % (' class="word"' if at < table.left else "", escaped(word)) for at, word in enumerate(table.head))
    body = "\n".join("<tr>%s</tr>" % "".join(cell_html(cell, at < table.left) for at, cell in enumerate(line)) for line in table.lines)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="%s"><table class="what"><thead><tr>%s</tr></thead>\n<tbody>%s</tbody></table></div>'
        % (escaped(label), head, body)
    )


def plots_html(plots):
    if not plots:
        return ""
    figures = []
    for plot in plots:
        svg = plot.svg.replace("<svg ", '<svg role="img" aria-label="%s" ' % escaped(plot.title), 1)
        figures.append("<figure>%s</figure>" % svg)
    return '<div class="plots">%s</div>' % "\n".join(figures)


def head_html(results):
    parts = ["<h1>rophive beside its peers</h1>", '<div class="facts"><section><h3>The run</h3>', facts(tables.head_facts(results)), "</section>"]
    machine = tables.machine_facts(results)
    parts += ["<section><h3>The machine</h3>", facts(machine) if machine else paragraph("Its facts are unknown."), "</section></div>"]
    absent = tables.left_out(results)
    parts += ["<h3>Left out</h3>", facts(absent) if absent else paragraph("Nobody: all peers were there.")]
    return parts


def verdict_html(verdicts):
    parts = ['<h2 id="targets">Targets</h2>']
    if not verdicts:
        return parts + [paragraph(sentence) for sentence in tables.verdict_summary(verdicts)]
    counts = []
    for kind, (sign, name) in tables.KINDS.items():
        counts.append('<li class="%s">%s%d %s</li>' % (name, sign, sum(one.outcome == kind for one in verdicts), kind))
    parts.append('<ul class="counts">%s</ul>' % "".join(counts))
    for kind in (outcome.MISSED, outcome.NOT_SHOWN):
        names = tables.verdict_names(verdicts, kind)
        if names:
            parts += ["<h3>%s</h3>" % kind.capitalize(), items(names, "names")]
    return parts + [table_html(tables.verdict_table(verdicts), "Targets")]


def group_html(results, name, rows, plots):
    parts = ['<h2 id="%s">%s</h2>' % (anchor("group", name), escaped(name)), table_html(tables.group_table(results, rows), name), plots_html(plots)]
    costs = tables.cost_table(results, rows)
    if costs:
        parts += [paragraph("Memory and CPU time of the whole process, warm-up included, where they differ:"), table_html(costs, name + ": memory and CPU time")]
    return parts


def growth_html(results, plots):
    parts = ['<h2 id="growth">Growth with the amount of work</h2>'] if results.growth else []
    for growth in results.growth:
        title = growth.get("title") or growth["id"]
        parts += ["<h3>%s</h3>" % escaped(title), plots_html([plot for plot in plots if plot.place == "growth:" + growth["id"]])]
        found = [(kind, name, unit, tables.growth_table(results, growth, name, unit)) for kind, name, unit in tables.GROWTH]
        if not any(table for _, _, _, table in found):
            parts.append(paragraph("Nothing was measured."))
        for kind, name, unit, table in found:
            if table:
                words = growth.get(kind) or kind
                parts += [paragraph(words + ":"), items(tables.growth_sentences(results, growth, name, unit)), table_html(table, "%s: %s" % (title, words))]
    return parts


def notes_html(results):
    parts = ['<h2 id="comparable">What is comparable</h2>']
    for title, role, note in tables.peer_notes(results):
        parts.append("<p><b>%s</b> (%s). %s</p>" % (escaped(title), escaped(role), escaped(note)))
    missing = outcome.gaps(results)
    if missing:
        parts += ['<h2 id="missing">What is missing</h2>', items(missing)]
    return parts + ['<h2 id="method">How the figures were made</h2>', paragraph(estimate.METHOD)]


def navigation(results):
    links = [("targets", "Targets")] + [(anchor("group", name), name) for name, _ in results.groups()]
    links += [("growth", "Growth")] if results.growth else []
    links += [("comparable", "What is comparable"), ("method", "Method"), ("figures", "Every figure")]
    return "<nav><ul>%s</ul></nav>" % "".join('<li><a href="#%s">%s</a></li>' % (name, escaped(words)) for name, words in links)


def write(results, plots):
    """The whole page."""
    parts = head_html(results)
    parts.insert(1, navigation(results))
    parts += verdict_html(outcome.verdicts(results)) + [paragraph(markdown.INTRODUCTION)]
    for name, rows in results.groups():
        parts += group_html(results, name, rows, [plot for plot in plots if plot.place == "group:" + name])
    parts += growth_html(results, plots) + notes_html(results)
    parts.append('<h2 id="figures">Every figure</h2>')
    for name, rows in results.groups():
        parts += ["<h3>%s</h3>" % escaped(name), table_html(tables.detail_table(results, rows), name + ": every figure")]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>rophive beside its peers</title>'
    return '<!DOCTYPE html>\n<html lang="en"><head>%s<style>%s</style></head>\n<body>\n%s\n</body></html>\n' % (head, style(), "\n".join(filter(None, parts)))
