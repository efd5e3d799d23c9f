# SPDX-License-Identifier: MIT
"""The plots: bars, distributions, scaling with threads, growth with the amount of work. Same samples, same files."""
import collections
import io
import math
import os
import re

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot, ticker, transforms

import colours
import tables
from colours import GRID, INK, MUTED, PAPER
from results import OURS, PERCENTILES
from wording import amount, counted

# place: group:NAME or growth:ID, where it belongs in the report; svg: the picture for the page
Plot = collections.namedtuple("Plot", "name title place svg")

WIDTH, PAD = 5.0, 0.08  # inches; narrow, so that words are still large on a phone
BAR = 0.31  # inches for a bar
LOG_FROM = 20  # times: what differs by more than this gets a logarithmic axis
STYLE = {
    "svg.fonttype": "none",  # words stay words
    "font.family": ["DejaVu Sans"],
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "hatch.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
}
# A reader without the font of the plots gets one that is not wider.
FONTS = "'DejaVu Sans', Verdana, 'Liberation Sans', Arial, sans-serif"


class Book:
    """Draws all plots into a folder and remembers them."""

    def __init__(self, results, folder):
        self.results, self.folder = results, folder
        self.looks = colours.looks(results)
        self.plots, self.names = [], set()

    def keep(self, figure, name, title, place):
        name, box = self.free_name(name), fitted(figure)
        with matplotlib.rc_context({"svg.hashsalt": name}):
            drawn = io.StringIO()
            figure.savefig(drawn, format="svg", bbox_inches=box, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        svg = with_own_ids(drawn.getvalue(), name).replace("'DejaVu Sans'", FONTS)
        with open(os.path.join(self.folder, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(svg)
        figure.savefig(os.path.join(self.folder, name + ".png"), dpi=110, bbox_inches=box, metadata={"Software": None})
        pyplot.close(figure)
        self.plots.append(Plot(name, title, place, colours.for_page(svg)))

    def free_name(self, name):
        base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "plot"
        name, count = base, 1
        while name in self.names:
            count += 1
            name = "%s-%d" % (base, count)
        self.names.add(name)
        return name

    def title(self, peer):
        return self.results.title(peer)


def fitted(figure):
    """All pictures are equally wide, so that their words are equally large: the axes give way to what stands beside them. The box to save, in inches."""
    (axes,), renderer = figure.axes, figure.canvas.get_renderer()
    apart = [axes.get_legend()] + [text for text in axes.texts if text.get_gid() == "heading"]
    for artist in filter(None, apart):
        artist.set_in_layout(False)
    for _ in range(2):  # marks along the axes may change with their length
        place, taken, width = axes.get_position(), axes.get_tightbbox(renderer), figure.bbox.width
        left = place.x0 + (PAD * figure.dpi - taken.x0) / width
        right = place.x1 + (width - PAD * figure.dpi - taken.x1) / width
        axes.set_position([left, place.y0, right - left, place.height])
    for artist in filter(None, apart):
        artist.set_in_layout(True)
    tight = figure.get_tightbbox(renderer)
    return transforms.Bbox([[0, tight.y0 - PAD], [WIDTH, tight.y1 + PAD]])


def with_own_ids(svg, prefix):
    """Many pictures share one page: the names of their parts must differ."""
    return re.sub(r'(\bid="|href="#|url\(#)', lambda match: match.group() + prefix + "-", svg)


def draw(results, folder):
    """All plots, written to the folder; in the order of the report."""
    os.makedirs(folder, exist_ok=True)
    book = Book(results, folder)
    with matplotlib.rc_context(STYLE):
        for group, rows in results.groups():
            place = "group:" + group
            for row in rows:
                draw_row(book, row, place)
            for scaling in dict.fromkeys(row.get("scaling") for row in rows if row.get("scaling")):
                draw_scaling(book, scaling, [row for row in rows if row.get("scaling") == scaling], place)
        for growth in results.growth:
            for kind, name, unit in tables.GROWTH:
                draw_growth(book, growth, kind, name, unit)
    return book.plots


def draw_row(book, row, place):
    prefixes = [prefix for prefix in ("", "e2e_") if draw_distribution(book, row, prefix, place)]
    told = {prefix + name for prefix in prefixes for name in PERCENTILES}
    for figure in row.get("figures") or []:
        if figure.get("headline") and figure["name"] not in told:
            draw_bars(book, row, figure, place)


def wide_apart(values):
    values = [value for value in values if value > 0]
    return bool(values) and max(values) > LOG_FROM * min(values)


def unit_axis(axis, unit):
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: short(amount(value, unit)) if value else "0"))


def short(text):
    """1.00 M/s -> 1 M/s: for the axis."""
    return re.sub(r"(\d)\.0+(?=\D|$)", r"\1", re.sub(r"(\.\d*?[1-9])0+(?=\D|$)", r"\1", text))


def log_axis(axis, low, high, few, unit):
    """A mark for each power of ten; for few of them, marks between as well. Bytes: powers of four."""
    if unit == "B":
        axis.set_major_locator(ticker.LogLocator(base=4, numticks=7))
    else:
        axis.set_major_locator(ticker.LogLocator(base=10, subs=(1, 3) if math.log10(high / low) < few else (1,), numticks=7))
    axis.set_minor_locator(ticker.NullLocator())


def linear_axis(axis, low, high, marks, unit):
    """Round marks; those of bytes are powers of two apart."""
    if unit == "B" and high > low:
        axis.set_major_locator(ticker.MultipleLocator(2 ** math.ceil(math.log2((high - low) / marks))))
    else:
        axis.set_major_locator(ticker.MaxNLocator(marks))


def draw_bars(book, row, figure, place):
    """A bar for each, the best on top, error bars for the interval of the median."""
    found = [(peer, book.results.estimate(row["id"], peer, figure["name"])) for peer in book.results.peers_of([row])]
    found = [(peer, one) for peer, one in found if one]
    if not found:
        return
    more, unit = figure.get("more", True), figure.get("unit") or ""
    found.sort(key=lambda pair: pair[1].middle, reverse=more)
    log = wide_apart([one.middle for _, one in found]) and min(one.low for _, one in found) >= 0
    height = BAR * (len(found) + 0.3)
    drawing = pyplot.figure(figsize=(WIDTH, height + 1))
    axes = drawing.add_axes([0.3, 0.5 / (height + 1), 0.6, height / (height + 1)])
    scale_bars(axes, found, log, unit)
    for place_on_axis, (peer, one) in enumerate(found):
        draw_bar(book, axes, place_on_axis, peer, one, unit, log)
    axes.set_yticks(range(len(found)), [book.title(peer) for peer, _ in found])
    for label, (peer, _) in zip(axes.get_yticklabels(), found):
        label.set_fontweight("bold" if peer == OURS else "normal")
    axes.set_ylim(len(found) - 0.35, -0.65)  # the first on top
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    unit_axis(axes.xaxis, unit)
    words = "%s, %s is better%s" % (tables.figure_title(figure), "more" if more else "less", ", logarithmic" if log else "")
    axes.set_xlabel(words, color=MUTED)
    title = book.results.title_of(row)
    heading(axes, title)
    book.keep(drawing, "%s-%s" % (row["id"], figure["name"]), "%s: %s" % (title, words), place)


def scale_bars(axes, found, log, unit):
    """Room for the words behind the longest bar."""
    highest = max(max(one.high, one.middle) for _, one in found)
    if log:
        lowest = min(value for _, one in found for value in (one.low, one.middle) if value > 0)
        left = lowest / 2.5
        axes.set_xscale("log")
        axes.set_xlim(left, highest * (highest / left) ** 0.3)
        log_axis(axes.xaxis, left, highest, 1.9, unit)
        return
    lowest = min(0, min(one.low for _, one in found))
    axes.set_xlim(lowest, (highest + 0.3 * (highest - lowest)) or 1)
    linear_axis(axes.xaxis, lowest, highest, 4, unit)


def draw_bar(book, axes, place, peer, one, unit, log):
    look, floor = book.looks[peer], book.results.role(peer) == "floor"
    if not log or one.middle > 0:
        again = look.dash != "-"  # a colour that another one has already
        fill, dash, hatch = "none" if floor or again else look.colour, "--" if floor else "-", "////" if again and not floor else None
        axes.barh(place, one.middle, height=0.72, color=fill, edgecolor=look.colour, linestyle=dash, hatch=hatch, linewidth=1.2)
        if one.count > 1:
            low = max(one.low, axes.get_xlim()[0])
            axes.errorbar(one.middle, place, xerr=[[max(one.middle - low, 0)], [one.high - one.middle]], color=INK, capsize=3, linewidth=1.2, fmt="none")
    end = max(one.high, one.middle, axes.get_xlim()[0])
    weight = "bold" if peer == OURS else "normal"
    axes.annotate(amount(one.middle, unit), (end, place), (6, 0), textcoords="offset points", va="center", fontsize=10.5, fontweight=weight)


def heading(axes, title):
    """At the left edge of the picture rather than of the axes: there is more room."""
    corner = {"xycoords": ("figure fraction", "axes fraction"), "textcoords": "offset points", "va": "bottom", "ha": "left"}
    axes.annotate(wrapped(title), (0, 1), (4, 8), gid="heading", fontsize=12, fontweight="bold", **corner)


def wrapped(title, width=43):
    lines = [""]
    for word in title.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = (lines[-1] + " " + word).strip()
    return "\n".join(lines)


def place_of(percentile):
    """The middle and both tails stretched alike: a distance for each factor in p / (1 - p). The maximum has no place of its own; it is put behind."""
    if percentile == "max_ns":
        return 4.0
    digits = percentile[1:-3]
    share = int(digits) / 10 ** len(digits)
    return math.log10(share / (1 - share))


def label_of(percentile):
    if percentile == "max_ns":
        return "max"
    digits = percentile[1:-3]
    return digits[:2] + ("." + digits[2:] if digits[2:] else "")


def curve_of(results, row, peer, prefix):
    """{percentile: median of the rounds}"""
    middles = {name: results.middle(row["id"], peer, prefix + name) for name in PERCENTILES}
    return {name: middle for name, middle in middles.items() if middle is not None and middle > 0}


def draw_distribution(book, row, prefix, place):
    """Percentiles, a line for each peer. Whether there was anything to draw."""
    curves = {peer: curve_of(book.results, row, peer, prefix) for peer in book.results.peers_of([row])}
    curves = {peer: curve for peer, curve in curves.items() if curve}
    if max(map(len, curves.values()), default=0) < 3:
        return False
    drawing, axes = pyplot.subplots(figsize=(WIDTH, 3.7))
    for peer, curve in curves.items():
        draw_line(book, axes, peer, [place_of(name) for name in curve], list(curve.values()))
    ys = [value for curve in curves.values() for value in curve.values()]
    known = [name for name in PERCENTILES if any(name in curve for curve in curves.values())]
    axes.set_yscale("log")
    log_axis(axes.yaxis, min(ys), max(ys), 2.6, "ns")
    unit_axis(axes.yaxis, "ns")
    axes.set_xticks([place_of(name) for name in known], [label_of(name) for name in known])
    axes.set_xlabel("percentile, tails stretched; less is better", color=MUTED)
    axes.grid(True)
    title = book.results.title_of(row) + (", from the moment it was due" if prefix else "")
    heading(axes, title)
    legend(book, axes)
    book.keep(drawing, "%s-%sdistribution" % (row["id"], prefix), title + ": distribution of times, logarithmic", place)
    return True


def draw_line(book, axes, peer, xs, ys, errors=None):
    look = book.looks[peer]
    style = dict(color=look.colour, marker=look.marker, markersize=look.size, linestyle=look.dash, linewidth=look.width, zorder=look.layer)
    if errors:
        axes.errorbar(xs, ys, yerr=errors, capsize=3, elinewidth=1.1, label=book.title(peer), **style)
    else:
        axes.plot(xs, ys, label=book.title(peer), **style)


def legend(book, axes):
    """Below the axes, in as many columns as there is room for."""
    handles, labels = axes.get_legend_handles_labels()
    longest = max(len(label) for label in labels)
    across = transforms.blended_transform_factory(axes.figure.transFigure, axes.transAxes)
    columns = 3 if longest <= 12 else 2 if longest <= 24 else 1
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.17), "bbox_transform": across, "ncol": min(columns, len(labels))}
    box = axes.legend(handles, labels, handlelength=2.4, columnspacing=1.4, **place)
    for text in box.get_texts():
        text.set_fontweight("bold" if text.get_text() == book.title(OURS) else "normal")


def error_bars(estimates):
    return [[one.middle - one.low for one in estimates], [one.high - one.middle for one in estimates]]


def headline_of(row):
    figures = row.get("figures") or []
    return next((figure for figure in figures if figure.get("headline")), figures[0] if figures else None)


def draw_scaling(book, name, rows, place):
    """Rows that differ in their threads alone: a line for each peer."""
    rows = sorted((row for row in rows if row.get("threads")), key=lambda row: row["threads"])
    figure = headline_of(rows[0]) if rows else None
    if not figure or len({row["threads"] for row in rows}) < 2:
        return
    unit, lines = figure.get("unit") or "", {}
    for peer in book.results.peers_of(rows):
        found = [(row["threads"], book.results.estimate(row["id"], peer, figure["name"])) for row in rows]
        found = [(threads, one) for threads, one in found if one and one.middle > 0]
        if len(found) > 1:
            lines[peer] = found
    if not lines:
        return
    drawing, axes = pyplot.subplots(figsize=(WIDTH, 3.3))
    for peer, found in lines.items():
        draw_line(book, axes, peer, [threads for threads, _ in found], [one.middle for _, one in found], error_bars([one for _, one in found]))
    scale_values(axes, [one.middle for found in lines.values() for _, one in found], unit)
    threads = sorted({row["threads"] for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(threads, [str(count) for count in threads])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlim(threads[0] / 1.15, threads[-1] * 1.15)
    axes.set_xlabel("threads; %s, %s is better" % (tables.figure_title(figure), "more" if figure.get("more", True) else "less"), color=MUTED)
    title = "%s: %d to %s" % (common_title(rows) or name, threads[0], counted(threads[-1], "thread"))
    heading(axes, title)
    legend(book, axes)
    book.keep(drawing, "scaling-" + name, title, place)


def common_title(rows):
    """post, 1 producer, 2 workers and post, 1 producer, 4 workers: post, 1 producer"""
    parts = [(row.get("title") or "").split(", ") for row in rows]
    return ", ".join(same[0] for same in zip(*parts) if len(set(same)) == 1)


def scale_values(axes, values, unit):
    """From zero, or logarithmic when they are wide apart."""
    axes.grid(True)
    if wide_apart(values):
        axes.set_yscale("log")
        log_axis(axes.yaxis, min(values), max(values), 2.6, unit)
    else:
        axes.set_ylim(0, max(values) * 1.12)
        linear_axis(axes.yaxis, 0, max(values), 6, unit)
    unit_axis(axes.yaxis, unit)


def draw_growth(book, growth, kind, name, unit):
    lines = {peer: book.results.growth_points(growth, peer, name) for peer in book.results.order}
    lines = {peer: [(x, one) for x, one in points if one.middle > 0] for peer, points in lines.items()}
    lines = {peer: points for peer, points in lines.items() if points}
    if not lines:
        return
    drawing, axes = pyplot.subplots(figsize=(WIDTH, 3.3))
    for peer, points in lines.items():
        draw_line(book, axes, peer, [x for x, _ in points], [one.middle for _, one in points], error_bars([one for _, one in points]))
    scale_values(axes, [one.middle for points in lines.values() for _, one in points], unit)
    axes.set_xscale("log")
    xs = sorted({x for points in lines.values() for x, _ in points})
    axes.set_xticks(xs, [count_label(x) for x in xs])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel("%s, logarithmic; less is better" % (growth.get("axis") or "amount of work"), color=MUTED)
    title = "%s: %s" % (growth.get("title") or growth["id"], growth.get(kind) or kind)
    heading(axes, title)
    legend(book, axes)
    book.keep(drawing, "growth-%s-%s" % (growth["id"], kind), title, "growth:" + growth["id"])


def count_label(value):
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return "%g%s" % (value / size, letter)
    return "%g" % value
