# SPDX-License-Identifier: MIT
"""The samples of a run, by row and peer; what is missing; and whether each target is met."""
import collections
import json
import statistics

import estimate
from wording import amount, counted, digits, listed, span, times_with_interval

OURS = "rophive"
PERCENTILES = ("p10_ns", "p25_ns", "p50_ns", "p75_ns", "p90_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns")
FORMAT = 1

MET, MISSED, NOT_SHOWN = "met", "missed", "not shown"

# target, ours, against, theirs, ratio, floor: words for the table
Verdict = collections.namedtuple("Verdict", "row figure target ours against theirs ratio outcome why floor")


class BadSamples(Exception):
    pass


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise BadSamples("%s: %s" % (path, error)) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise BadSamples("%s: not samples of format %d" % (path, FORMAT))
    return Results(data)


class Results:
    def __init__(self, data):
        self.data = data
        self.rows = data.get("rows") or []
        self.growth = data.get("growth") or []
        self.peers = dict(data.get("peers") or {})
        self.peers.setdefault(OURS, {})
        self.by_row = collections.defaultdict(lambda: collections.defaultdict(list))  # row: peer: samples
        self.by_growth = collections.defaultdict(lambda: collections.defaultdict(list))  # (id, x): peer: samples
        for sample in sorted(data.get("samples") or [], key=lambda one: one.get("round") or 0):
            self._file(sample)
        self._floors_within()
        # ours first, then in the order of the file
        self.order = sorted(self.peers, key=lambda peer: ("ours", "ours too", "peer", "floor").index(self.role(peer)))

    def _file(self, sample):
        peer = sample.get("peer") or "unknown"
        self.peers.setdefault(peer, {})
        if sample.get("growth") is not None:
            self.by_growth[sample["growth"], sample.get("x")][peer].append(sample)
        else:
            self.by_row[sample.get("row")][peer].append(sample)

    def _floors_within(self):
        """Some scenarios measure their floor within our own sample: floor_p50_ns beside p50_ns. It becomes a peer of its own, unless the run has made it one."""
        for row in self.rows:
            if any(samples and self.role(peer) == "floor" for peer, samples in self.by_row[row["id"]].items()):
                continue
            wanted = set(PERCENTILES) | {figure["name"] for figure in row.get("figures") or []}
            for sample in list(self.by_row[row["id"]].get(OURS, [])):
                within = {name[6:]: value for name, value in figures_of(sample).items() if name.startswith("floor_") and name[6:] in wanted}
                if within:
                    self.peers.setdefault("floor", {"title": "floor", "note": "What the machine gives, measured within our own sample."})
                    self.by_row[row["id"]]["floor"].append({"round": sample.get("round"), "figures": within})

    def title(self, peer):
        return (self.peers.get(peer) or {}).get("title") or peer

    def note(self, peer):
        return (self.peers.get(peer) or {}).get("note") or ""

    def role(self, peer):
        """ours; ours too: another form of it; floor: what the machine gives at best, nobody's library; peer."""
        if peer == OURS:
            return "ours"
        if (self.peers.get(peer) or {}).get("floor") or peer.startswith("floor") or peer.endswith("_floor"):
            return "floor"
        return "ours too" if peer.startswith(OURS) else "peer"

    def peers_of(self, rows):
        """Those that have a sample of one of the rows, in order."""
        return [peer for peer in self.order if any(self.by_row[row["id"]].get(peer) for row in rows)]

    def groups(self):
        """[(name, rows)] in the order of the file."""
        found = {}
        for row in self.rows:
            found.setdefault(row.get("group") or "Others", []).append(row)
        return list(found.items())

    def values(self, row_id, peer, name):
        """[(round, value)] of a figure; cpu_s is that of the process, which stands beside the figures."""
        found = []
        for sample in self.by_row[row_id].get(peer, []):
            value = figures_of(sample).get(name)
            if name == "cpu_s" and value is None:
                value = sample.get("cpu_s")
            if estimate.finite(value):
                found.append((sample.get("round"), value))
        return found

    def estimate(self, row_id, peer, name):
        return estimate.estimate([value for _, value in self.values(row_id, peer, name)])

    def middle(self, row_id, peer, name):
        values = [value for _, value in self.values(row_id, peer, name)]
        return statistics.median(values) if values else None

    def ratio(self, row_id, name, peer):
        """Ours by theirs, or None."""
        return ratio_of_rounds(self.values(row_id, OURS, name), self.values(row_id, peer, name))

    def better_by(self, row_id, figure, peer):
        """How many times better ours is, above 1 is good, whether more or less is better. None when that cannot be said."""
        sides = [self.values(row_id, OURS, figure["name"]), self.values(row_id, peer, figure["name"])]
        return ratio_of_rounds(*(sides if figure.get("more", True) else reversed(sides)))

    def best(self, row_id, figure, roles=("peer",), among=lambda peer: True):
        """Name of the one with the best median among those with such a role, or None."""
        middles = {peer: self.middle(row_id, peer, figure["name"]) for peer in self.order if self.role(peer) in roles and among(peer)}
        middles = {peer: middle for peer, middle in middles.items() if middle is not None}
        if not middles:
            return None
        return (max if figure.get("more", True) else min)(middles, key=middles.get)

    def growth_points(self, growth, peer, name):
        """[(x, estimate)] of those points that have a figure."""
        points = []
        for x in growth.get("x") or []:
            values = [figures_of(sample).get(name) for sample in self.by_growth[growth["id"], x].get(peer, [])]
            values = [value for value in values if estimate.finite(value) and value >= 0]
            if values and estimate.finite(x) and x > 0:
                points.append((x, estimate.estimate(values)))
        return points

    def rounds(self):
        return max([sample.get("round") or 0 for sample in self.data.get("samples") or []], default=0)

    def title_of(self, row):
        return row.get("title") or row["id"]


def figures_of(sample):
    return sample.get("figures") or {}


def ratio_of_rounds(top, bottom):
    paired = [turn for turn, _ in top] == [turn for turn, _ in bottom]
    return estimate.ratio([value for _, value in top], [value for _, value in bottom], paired)


def verdicts(results):
    """One for each target."""
    return [
        verdict(results, row, figure, target)
        for row in results.rows
        for figure in row.get("figures") or []
        for target in [figure.get("target")] + list(figure.get("also") or [])
        if target
    ]


def verdict(results, row, figure, target):
    unit = figure.get("unit") or ""
    ours = results.estimate(row["id"], OURS, figure["name"])
    against = opponent(results, row, figure, target)
    theirs = results.estimate(row["id"], against, figure["name"]) if against else None

    def word(ratio, outcome, why):
        middles = [amount(one.middle, unit) if one else "" for one in (ours, theirs)]
        held = results.title(against) if against else ""
        return Verdict(row, figure, target_text(target, unit), middles[0], held, middles[1], ratio, outcome, why, floor_words(results, row, figure))

    if ours is None:
        return word("", NOT_SHOWN, "no sample of ours")
    if target.get("of") is None:
        interval = estimate.Ratio(ours.middle, *((ours.low, ours.high) if ours.count > 1 else (None, None)))
        words = "" if interval.low is None else "ours itself (%s)" % span(ours.low, ours.high, unit)
        return word(words, *judged(interval, target))
    if theirs is None:
        return word("", NOT_SHOWN, "no sample to hold it against")
    ratio = results.ratio(row["id"], figure["name"], against)
    if ratio is None:
        return word("", NOT_SHOWN, "a figure of theirs is zero or less")
    return word(times_with_interval(ratio), *judged(ratio, target))


def floor_words(results, row, figure):
    """The best of the floors, which nobody here passes by much, and how much of it ours is; "" where there is none."""
    floor = results.best(row["id"], figure, ("floor",))
    ratio = results.ratio(row["id"], figure["name"], floor) if floor else None
    if ratio is None:
        return ""
    return "%s: %s (ours is %s of it)" % (results.title(floor), amount(results.middle(row["id"], floor, figure["name"]), figure.get("unit") or ""), digits(ratio.middle))


def opponent(results, row, figure, target):
    """Who the target names: a peer, the best peer, the best of some or without some, the best floor; None for an absolute one."""
    of = target.get("of")
    if of == "best" and target.get("among"):
        return results.best(row["id"], figure, ("peer", "floor"), lambda peer: peer in target["among"])
    if of == "best":
        return results.best(row["id"], figure, among=lambda peer: peer not in (target.get("without") or ()))
    if of == "floor" and not results.by_row[row["id"]].get("floor"):
        return results.best(row["id"], figure, ("floor",))
    return of


def judged(ratio, target):
    """The outcome, and why it is not shown."""
    least, most = target.get("at_least"), target.get("at_most")
    if least is None and most is None:
        return NOT_SHOWN, "the target has no bound"
    if ratio.low is None:
        return NOT_SHOWN, "one round only"
    if (least is None or ratio.low >= least) and (most is None or ratio.high <= most):
        return MET, ""
    if (least is not None and ratio.high < least) or (most is not None and ratio.low > most):
        return MISSED, ""
    return NOT_SHOWN, "the interval straddles the target"


def target_text(target, unit):
    if target.get("text"):
        return target["text"]
    of = target.get("of")
    parts = []
    for sign, bound in (("≥", target.get("at_least")), ("≤", target.get("at_most"))):
        if bound is not None:
            parts.append("%s %s" % (sign, amount(bound, unit) if of is None else "%g ×" % bound))
    return (", ".join(parts) + ({None: "", "best": " the best peer", "floor": " the floor"}.get(of, " %s" % of))).strip()


def gaps(results):
    """What is missing or odd, a sentence each."""
    found = [failure_words(results, failure) for failure in results.data.get("failures") or []]
    if results.data.get("whole") is False:
        found.append("The run was interrupted: rows that were not reached have no samples.")
    for row in results.rows:
        found += row_gaps(results, row)
    sampled = set(results.peers_of(results.rows)) | {peer for taken in results.by_growth.values() for peer in taken}
    told = {one.get("peer") for one in results.data.get("left_out") or []}
    silent = [results.title(peer) for peer in results.order if peer not in sampled and peer not in told]
    if silent:
        found.append("No samples at all of %s." % listed(silent))
    unknown = sorted(str(name) for name in set(results.by_row) - {row["id"] for row in results.rows} if results.by_row[name])
    if unknown:
        found.append("Samples of rows that are not described, left out here: %s." % listed(unknown))
    if results.rounds() == 1:
        found.append("One round only: no interval can be given, and no target is shown to be met or missed.")
    for growth in results.growth:
        if len(results.growth_points(growth, OURS, "ns_each")) < 2 and len(results.growth_points(growth, OURS, "bytes_each")) < 2:
            found.append("%s: fewer than two points of ours." % (growth.get("title") or growth["id"]))
    return found


def failure_words(results, failure):
    """A program that was wrong once has no figure in that row."""
    titles = {one["id"]: one.get("title") or one["id"] for one in results.rows + results.growth}
    where = failure.get("row") or failure.get("growth")
    amount_words = " with %s" % "{:,}".format(failure["x"]) if estimate.finite(failure.get("x")) else ""
    return "%s%s: %s failed in round %s: %s." % (titles.get(where, where), amount_words, results.title(failure.get("peer")), failure.get("round"), str(failure.get("why")).rstrip("."))


def row_gaps(results, row):
    taken = {peer: samples for peer, samples in results.by_row[row["id"]].items() if samples}
    title = results.title_of(row)
    if not taken:
        return ["%s: no samples." % title]
    found = [] if OURS in taken else ["%s: no sample of ours." % title]
    if not any(results.role(peer) == "peer" for peer in taken):
        found.append("%s: no peer to compare with." % title)
    for figure in row.get("figures") or []:
        name, headline = figure["name"], figure.get("headline")
        zeros = [results.title(peer) for peer in taken if any(value == 0 for _, value in results.values(row["id"], peer, name))]
        if zeros:
            found.append("%s, %s: a figure of zero from %s." % (title, figure.get("title") or name, listed(zeros)))
        without = [results.title(peer) for peer in taken if results.role(peer) != "floor" and not results.values(row["id"], peer, name)]
        if without and headline:
            found.append("%s: no figure \"%s\" from %s." % (title, name, listed(without)))
    most = max(map(len, taken.values()))
    fewer = ["%s %d" % (results.title(peer), len(samples)) for peer, samples in taken.items() if len(samples) < most]
    if fewer:
        found.append("%s: fewer samples than the %s of others: %s." % (title, counted(most, "round"), ", ".join(fewer)))
    return found
