# SPDX-License-Identifier: MIT
"""How the cost of one grows with the number of them: tasks, timers, workers, fibers, connections.

Time for each is what the scenario itself measures, by the number. Memory for each, where the scenario does not measure it itself (fibers_asleep and
echo_server look at the resident size before and after): the largest resident size (rss_kb, VmHWM) of the run with x, less that of the run with
the fewest, by the number that it has more. So code, stacks and queues that are there in any case are counted for nobody, and the run with the fewest has
no such figure. Where x is small, a page more or less shows: read it from the larger ones."""
import collections
import resource
import statistics

# flags, quick, full: of each program, and those that say how much in that form; option: the one that has x; own_memory: the scenario measures it; time: from the line, ns for each
Growth = collections.namedtuple("Growth", "id title axis unit time memory xs quick_xs scenario flags quick full option own_memory figure ns_each contest")

TENS = {power: 10**power for power in range(8)}
SPARE_DESCRIPTORS = 1000


def by_rate(figures, _):
    return 1e9 / figures["ops_per_s"]


def by_median(figures, _):
    return figures["p50_ns"]


def by_night(figures, x):
    """Created, asleep, woken, ended."""
    return (figures["create_s"] + figures["wake_all_s"]) * 1e9 / x


def growth(ident, title, unit, scenario, option, xs, quick_xs, flags=(), quick=(), full=(), time="ns for each", own_memory=False, has_memory=True, figure="ops_per_s",
           ns_each=by_rate, contest=False):
    memory = "bytes for each" if has_memory else None
    return Growth(ident, title, unit + "s", unit, time, memory, xs, quick_xs, scenario, list(flags), list(quick), list(full), option, own_memory, figure, ns_each, contest)


CROWD = [1, 2, 4, 8, 16, 32, 64]
GROWTHS = [
    growth("tasks", "Tasks posted at once", "task", "post", "--n", [TENS[p] for p in range(3, 8)], [TENS[3], TENS[5], TENS[6]], ["--producers", "1", "--threads", "2"]),
    growth("timers", "Timers outstanding", "timer", "timer", "--n", [TENS[p] for p in range(3, 7)], [TENS[3], TENS[5]], ["--threads", "1"], time="ns to insert each"),
    growth("armed", "Timers armed while one is replaced", "timer", "timer_cancel", "--armed", [TENS[p] for p in range(3, 7)], [TENS[3], TENS[5]], quick=["--n", "500000"],
           time="ns to cancel and arm one"),
    growth("workers", "Workers, more than there are CPUs", "worker", "post", "--threads", CROWD, [1, 8, 64], ["--producers", "1"], ["--n", "300000"], time="ns for each post"),
    growth("wake-up", "Wake-up with more workers", "worker", "ping", "--threads", CROWD, [1, 8, 64], quick=["--n", "500"], full=["--n", "3000"], time="ns to wake one, p50",
           has_memory=False, figure="p50_ns", ns_each=by_median),
    growth("fibers", "Fibers asleep at once", "fiber", "fibers_asleep", "--n", [TENS[p] for p in range(2, 7)], [TENS[2], TENS[4], TENS[5]], ["--threads", "1"],
           time="ns to create and wake each", own_memory=True, figure="wake_all_s", ns_each=by_night),
    growth("connections", "Connections, all busy", "connection", "echo_server", "--connections", [TENS[p] for p in range(1, 5)], [10, 1000], ["--threads", "1"],
           ["--seconds", "1"], ["--seconds", "3"], time="ns for each answer", own_memory=True, contest=True),
]
PEERS = ("go", "tokio")  # beside ours, where they have the scenario; `armed` is a matter of ours alone
OURS_ALONE = {"armed"}


def points(one, form):
    return one.quick_xs if form == "quick" else one.xs


def flags(one, form, x):
    return one.flags + (one.quick if form == "quick" else one.full) + [one.option, str(x)]


def raise_descriptors(wanted):
    """As many open files as wanted, or as many as there can be: how many there are. Children have the same."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limits in ((wanted, max(wanted, hard)), (min(wanted, hard), hard)):
        if soft >= wanted:
            break
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        except (ValueError, OSError):
            continue
        soft = limits[0]
    return soft


def does_not_fit(one, x, servers):
    """Why not, or "". A load of x connections to each server has them all in one process."""
    need = x * servers + SPARE_DESCRIPTORS
    have = raise_descriptors(need) if one.contest else need
    return "" if have >= need else "%d connections to each of %d servers take %d open files, and %d is the limit" % (x, servers, need, have)


def put_costs(one, samples):
    """Adds ns_each and bytes_each to the figures of this growth's samples, which are a peer's."""
    mine = [sample for sample in samples if sample.get("growth") == one.id]
    for peer in {sample["peer"] for sample in mine}:
        taken = [sample for sample in mine if sample["peer"] == peer]
        least = min(sample["x"] for sample in taken)
        base_kb = statistics.median(sample["figures"].get("rss_kb", 0) for sample in taken if sample["x"] == least)
        for sample in taken:
            put_cost(one, sample, least, base_kb)


def put_cost(one, sample, least, base_kb):
    figures, x = sample["figures"], sample["x"]
    figures["ns_each"] = one.ns_each(figures, x)
    if not one.memory or one.own_memory:
        return
    figures.pop("bytes_each", None)
    if x > least and "rss_kb" in figures:
        figures["bytes_each"] = max(figures["rss_kb"] - base_kb, 0) * 1024 / (x - least)


def as_json(one, form):
    told = {key: getattr(one, key) for key in ("id", "title", "axis", "unit", "time", "memory", "scenario")}
    return dict(told, x=points(one, form))
