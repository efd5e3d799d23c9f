# SPDX-License-Identifier: MIT
"""The tables and sentences of the report, the same for Markdown and for the page."""
import collections

import results as outcome
from results import OURS
from wording import NONE, amount, counted, digits, percent, seconds, span, times, times_with_interval

# text; small: lines below it; strong: the best; kind: a class of the page
Cell = collections.namedtuple("Cell", "text small strong kind")
# head: words; left: how many of the first columns are words, the others are figures
Table = collections.namedtuple("Table", "head left lines")


def cell(text, *small, strong=False, kind=""):
    return Cell(text, [line for line in small if line], strong, kind)


def head_facts(results):
    """[(name, words)]: what was run, when and where."""
    data = results.data
    samples = data.get("samples") or []
    commit = (data.get("commit") or "unknown") + (", with changes that are not committed" if data.get("dirty") else "")
    form = (data.get("form") or "unknown") + (", all programs on the same CPUs" if data.get("pinned") else "") + (", INTERRUPTED" if data.get("whole") is False else "")
    facts = [("Form", form), ("Commit", commit), ("Date", data.get("date") or "unknown")]
    if data.get("took_s"):
        facts.append(("Took", seconds(data["took_s"])))
    facts.append(("Rounds", str(results.rounds())))
    facts.append(("Samples", "%s, each a fresh process, in turns" % "{:,}".format(len(samples))))
    facts.append(("Disturbed", disturbed_words(data)))
    if data.get("failures"):
        facts.append(("Failures", "%s: see what is missing" % counted(len(data["failures"]), "program failed", "programs failed")))
    return facts


def disturbed_words(data):
    disturbed = data.get("disturbed") or {}
    repeated, kept = disturbed.get("repeated") or 0, disturbed.get("kept") or 0
    if not repeated and not kept:
        return "none"
    words = "%s taken again because others used the CPUs" % counted(repeated, "sample was", "samples were")
    return words + "; " + ("%s disturbed after all tries" % counted(kept, "sample stayed", "samples stayed") if kept else "none stayed disturbed")


def machine_facts(results):
    facts = results.data.get("machine") or {}
    return [(name.replace("_", " "), str(value)) for name, value in facts.items() if name != "env" and value is not None]


def left_out(results):
    """[(who, why)]"""
    return [(results.title(one.get("peer") or "?"), one.get("why") or "no reason given") for one in results.data.get("left_out") or []]


def verdict_summary(verdicts):
    """Counts, then who missed and what is open: nobody should have to look for them."""
    if not verdicts:
        return ["No figure of this run has a target."]
    counts = [(sum(one.outcome == kind for one in verdicts), kind) for kind in (outcome.MET, outcome.MISSED, outcome.NOT_SHOWN)]
    lines = ["%s: %s." % (counted(len(verdicts), "target"), ", ".join("%d %s" % pair for pair in counts))]
    for count, kind in counts[1:]:
        if count:
            lines.append("%s: %s." % (kind.capitalize(), "; ".join(verdict_names(verdicts, kind))))
    return lines


def verdict_names(verdicts, kind):
    return ["%s (%s)" % (one.row.get("title") or one.row["id"], target_title(one)) for one in verdicts if one.outcome == kind]


def target_title(verdict):
    """Of which of its targets, where a figure has several."""
    return figure_title(verdict.figure) + (", " + verdict.target if verdict.figure.get("also") else "")


KINDS = {outcome.MET: ("✔ ", "met"), outcome.MISSED: ("✘ ", "missed"), outcome.NOT_SHOWN: ("? ", "open")}


def verdict_table(verdicts):
    """The verdict stands next to what it is about, where a narrow window shows it."""
    head = ["what", "verdict", "target", "held against", "ours", "theirs", "ours / theirs (interval)", "floor"]
    lines = []
    for one in verdicts:
        sign, kind = KINDS[one.outcome]
        lines.append([
            cell(one.row.get("title") or one.row["id"], figure_title(one.figure)),
            cell(sign + (one.outcome.upper() if one.outcome == outcome.MISSED else one.outcome), one.why, strong=True, kind=kind),
            cell(one.target),
            cell(one.against or NONE),
            cell(one.ours or NONE),
            cell(one.theirs or NONE),
            in_two_lines(one.ratio or NONE),
            in_two_lines(one.floor or NONE),
        ])
    return Table(head, 4, lines)


def in_two_lines(text):
    """What stands in brackets at the end below the rest: the table shall fit into a window."""
    text, _, bracket = text.partition(" (")
    return cell(text, bracket.rstrip(")"))


def figure_title(figure):
    return figure.get("title") or figure["name"]


def peer_heads(results, peers):
    return [("floor: " if results.role(peer) == "floor" and results.title(peer) != "floor" else "") + results.title(peer) for peer in peers]


def group_table(results, rows):
    """Rows × peers: median, middle half, how many times better ours is. The best of ours and peers is bold; floors are at the right."""
    peers = results.peers_of(rows)
    lines = []
    for row in rows:
        for figure in row.get("figures") or []:
            best = results.best(row["id"], figure, ("ours", "ours too", "peer"))
            arrow = "more is better" if figure.get("more", True) else "less is better"
            first = cell(results.title_of(row), "%s, %s" % (figure_title(figure), arrow))
            lines.append([first] + [figure_cell(results, row, figure, peer, peer == best) for peer in peers])
    return Table(["what"] + peer_heads(results, peers), 1, lines)


def figure_cell(results, row, figure, peer, is_best):
    found = results.estimate(row["id"], peer, figure["name"])
    if not found:
        return cell(NONE)
    unit = figure.get("unit") or ""
    spread = span(found.q1, found.q3, unit) if found.count > 1 else "one round"
    if peer == OURS:
        return cell(amount(found.middle, unit), spread, strong=is_best, kind="ours")
    better = results.better_by(row["id"], figure, peer)
    kind = "floor" if results.role(peer) == "floor" else ""
    return cell(amount(found.middle, unit), spread, "ours " + times(better.middle) if better else "", strong=is_best, kind=kind)


COSTS = (("memory", "rss_kb", 1024, "B"), ("CPU time", "cpu_s", 1, "s"))


def cost_table(results, rows):
    """Memory and CPU time of the whole process; None when no row has both ours and another one."""
    peers = [peer for peer in results.peers_of(rows) if results.role(peer) != "floor"]
    lines = []
    for row in rows:
        for title, name, scale, unit in COSTS:
            middles = {peer: results.middle(row["id"], peer, name) for peer in peers}
            told = [middle for middle in middles.values() if middle]
            if len(told) < 2 or max(told) < 1.1 * min(told):
                continue  # alike: says nothing
            least = min(told)
            cells = [cell(NONE if not middle else amount(middle * scale, unit), strong=middle == least) for middle in middles.values()]
            lines.append([cell(results.title_of(row), title)] + cells)
    return Table(["what"] + peer_heads(results, peers), 1, lines) if lines else None


def detail_table(results, rows):
    """Every figure of every peer, with its interval."""
    head = ["what", "figure", "who", "rounds", "median", "interval", "middle half", "deviation", "ours better by"]
    lines = []
    for row in rows:
        for figure in row.get("figures") or []:
            for peer in results.peers_of([row]):
                line = detail_line(results, row, figure, peer)
                if line:
                    lines.append(line)
    return Table(head, 3, lines)


def detail_line(results, row, figure, peer):
    found = results.estimate(row["id"], peer, figure["name"])
    if not found:
        return None
    unit, several = figure.get("unit") or "", found.count > 1
    better = results.better_by(row["id"], figure, peer) if peer != OURS else None
    disturbed = sum(bool(sample.get("disturbed")) for sample in results.by_row[row["id"]][peer])
    return [
        cell(results.title_of(row)),
        cell(figure_title(figure)),
        cell(results.title(peer), strong=peer == OURS),
        cell("%d%s" % (found.count, ", %d disturbed" % disturbed if disturbed else "")),
        cell(amount(found.middle, unit)),
        cell(span(found.low, found.high, unit) if several else NONE),
        cell(span(found.q1, found.q3, unit) if several else NONE),
        cell(percent(found.deviation) if several else NONE),
        cell(times_with_interval(better) if better else NONE),
    ]


GROWTH = (("time", "ns_each", "ns"), ("memory", "bytes_each", "B"))
FLAT = 1.5


def growth_table(results, growth, name, unit):
    """x × peers; None when nobody has a point."""
    points = {peer: dict(results.growth_points(growth, peer, name)) for peer in results.order}
    points = {peer: found for peer, found in points.items() if found}
    if not points:
        return None
    lines = []
    for x in growth.get("x") or []:
        middles = {peer: found[x].middle for peer, found in points.items() if x in found}
        least = min((middle for peer, middle in middles.items() if results.role(peer) != "floor"), default=None)
        cells = [cell(amount(middles[peer], unit), strong=middles[peer] == least) if peer in middles else cell(NONE) for peer in points]
        lines.append([cell("{:,}".format(x))] + cells)
    return Table([growth.get("axis") or "amount"] + peer_heads(results, points), 1, lines)


def growth_sentences(results, growth, name, unit):
    """For each of them: does the cost of a unit stay the same, from the smallest amount to the greatest?"""
    sentences = []
    for peer in results.order:
        points = results.growth_points(growth, peer, name)
        if len(points) > 1:
            sentences.append(growth_sentence(results.title(peer), points, unit))
        elif points:
            sentences.append("%s: one point only." % results.title(peer))
    return sentences


def growth_sentence(title, points, unit):
    middles = [found.middle for _, found in points]
    if min(middles) <= 0:
        return "%s: a cost of zero at some points, so that no factor can be given." % title
    range_factor = max(middles) / min(middles)
    factor = middles[-1] / middles[0]
    if range_factor <= FLAT:
        word = "flat"
    elif factor > FLAT:
        word = "grows"
    elif factor < 1 / FLAT:
        word = "falls"
    else:
        word = "ends where it began, but is not flat between"
    start_words, end_words = ("%s with %s" % (amount(found.middle, unit), "{:,}".format(x)) for x, found in (points[0], points[-1]))
    return "%s: %s; %s, %s: a factor of %s (greatest by least %s)." % (title, word, start_words, end_words, digits(factor), digits(range_factor))


def peer_notes(results):
    """[(title, role, note)]"""
    roles = {"ours": "ours", "ours too": "another form of ours", "peer": "peer", "floor": "floor: what the machine gives, not a library"}
    sampled = set(results.peers_of(results.rows)) | {peer for taken in results.by_growth.values() for peer in taken}
    return [(results.title(peer), roles[results.role(peer)], results.note(peer) or "Nothing is noted about it.") for peer in results.order if peer in sampled]
