# SPDX-License-Identifier: MIT
"""What is measured: a row for each scenario and shape, its figures, and what each of them has to reach.

Targets are ratios to the best peer (`of`: best), to a certain one, to a floor, or absolute (`of`: None). Where a target names a library that Debian does not
have (libfork, TooManyCooks), it is an absolute one, computed from what that library did on the machine on which the targets were set, and its text says so."""
import collections

# flags: for every program; ours: for `hive bench` alone; quick, full: flags that say how much (also for all); in_quick: part of the quick form;
# neighbours: {prefix of its figures: peer} that `hive bench` measures itself in turns with ours; contest: it starts the peers' servers, too
Row = collections.namedtuple("Row", "id group title scenario threads flags ours quick full in_quick rounds kind scaling figures neighbours contest")
# also: further targets of the same figure, each judged by itself
Figure = collections.namedtuple("Figure", "name title unit more headline target also", defaults=[()])
Neighbour = collections.namedtuple("Neighbour", "title floor note")

NEIGHBOURS = {
    "eventfd": Neighbour("bare eventfd", True, "A thread in epoll_wait, woken by a write to an eventfd: what the kernel's wake-up takes, measured in turns with ours in one process."),
    "sleep": Neighbour("plain sleep", True, "A thread in clock_nanosleep() for as long, in turns with ours in one process."),
    "raw_epoll": Neighbour("raw epoll loop", True, "An echo server of a few lines: epoll_wait, recv, send, nothing else."),
    "threads": Neighbour("threads with pread", False, "As many threads as operations under way, each in pread() or pwrite()."),
    "hand": Neighbour("threads by hand", True, "As many threads, each with an equal share of the numbers, in turns with ours in one process."),
    "pread": Neighbour("pread on the worker", False, "The same reads, by pread() on the IO worker: what the sleeper suffers where nobody takes care."),
    "alone": Neighbour("nobody reads", True, "The sleeper alone: what the machine itself does to it."),
}


def at_least(ratio, of, text):
    return {"at_least": ratio, "of": of, "text": text}


def at_most(ratio, of, text):
    return {"at_most": ratio, "of": of, "text": text}


def times_best(ratio):
    return at_least(ratio, "best", "≥ %g × the best peer" % ratio)


def below_best(ratio):
    return at_most(ratio, "best", "≤ %g × the best peer" % ratio)


def absent(library, ratio, millions):
    """A library that Debian does not have, by its figure where the targets were set: 2 virtual CPUs of a Xeon."""
    text = "≥ %g × %s, which Debian does not have: it did %g M/s where the targets were set, so ≥ %g M/s" % (ratio, library, millions, ratio * millions)
    return at_least(ratio * millions * 1e6, None, text)


def rate(title, target=None, name="ops_per_s", unit="1/s", headline=True, also=()):
    return Figure(name, title, unit, True, headline, target, list(also))


def duration(name, title, target=None, unit="ns", headline=False, also=()):
    return Figure(name, title, unit, False, headline, target, list(also))


def latency(p50=None, p99=None, what="from submit to run", headline="p50_ns"):
    return [
        duration("p50_ns", what + ", p50", p50, headline=headline == "p50_ns"),
        duration("p99_ns", what + ", p99", p99, headline=headline == "p99_ns"),
        duration("p999_ns", what + ", p99.9"),
    ]


def row(ident, group, title, figures, threads=1, flags=(), ours=(), quick=(), full=(), in_quick=False, rounds=None, kind="rate", scaling=None, neighbours=None, contest=False):
    return Row(ident, group, title, ident.split(":")[0], threads, list(flags), list(ours), list(quick), list(full), in_quick, rounds, kind, scaling, figures,
               neighbours or {}, contest)


def workers(count):
    return "1 worker" if count == 1 else "%d workers" % count


def n(count):
    return ["--n", str(count)]


def seconds(span):
    return ["--seconds", str(span)]


def tasks():
    for producers, threads, ratio, in_quick in ((1, 1, 10, True), (1, 2, 10, True), (1, 4, 7, False), (2, 1, 6, False), (2, 2, 8, True)):
        title = "post, %d producer%s, %s" % (producers, "s" if producers > 1 else "", workers(threads))
        yield row("post:P%d:T%d" % (producers, threads), "Tasks", title, [rate("posts", times_best(ratio))], threads, ["--producers", str(producers)],
                  quick=n(500000), in_quick=in_quick, scaling="post:P%d" % producers)
    for threads, ratio in ((1, 6), (2, 8)):
        yield row("spawn_local:T%d" % threads, "Tasks", "posts from within, %s" % workers(threads), [rate("posts", times_best(ratio))], threads,
                  quick=n(500000), in_quick=threads == 2, scaling="spawn_local")
    yield row("post_to", "Tasks", "posts to a certain worker", [rate("posts")] + latency(headline=None), quick=n(500000))
    yield row("steal", "Tasks", "half of 2 workers overloaded", [rate("tasks"), rate("share of tasks stolen", name="stolen_share", unit="", headline=False)], 2, quick=n(100000))


def wakes():
    for threads in (1, 2):
        yield row("ping:T%d" % threads, "Wake-up", "one task at a time, 100 µs idle between, %s" % workers(threads), latency(below_best(1.0), below_best(1.0)), threads,
                  quick=n(1000), in_quick=threads == 1, kind="latency", neighbours={"floor": "eventfd"}, scaling="ping")
    for threads in (1, 2):
        yield row("ping_hot:T%d" % threads, "Wake-up", "one task at a time, no idle between, %s" % workers(threads), latency(below_best(0.7)), threads,
                  quick=n(20000), in_quick=threads == 2, kind="latency", scaling="ping_hot")
    idle = at_most(0.1, None, "0 % of a CPU when idle: below 0.1 %")
    yield row("idle", "Wake-up", "nothing to do", [duration("cpu_percent", "share of a CPU, percent", idle, unit="", headline=True)], 2, quick=seconds(1), full=seconds(5),
              kind="time")


def timers():
    late = [
        rate("inserts", times_best(1.5)),
        duration("p50_ns", "lateness, p50", at_most(60e3, None, "≤ 60 µs")),
        duration("p99_ns", "lateness, p99", at_most(200e3, None, "≤ 200 µs")),
        Figure("min_ns", "lateness, least", "ns", True, False, at_least(0, None, "never early")),
        duration("cpu_s", "CPU time of the second", at_most(0.4, None, "≤ 0.4 CPU-s"), unit="s"),
    ]
    yield row("timer", "Timers", "100,000 timers within a second", late, in_quick=True, rounds=2)
    lengths = [duration("%s_%s_ns" % (name, word), "%s, %s" % (word.replace("ms", " ms"), what)) for word in ("1ms", "5ms", "16ms")
               for name, what in (("p50", "lateness, p50"), ("p99", "lateness, p99"), ("stdev", "jitter"))]
    never_early = Figure("min_ns", "lateness, least", "ns", True, False, at_least(0, None, "never early"))
    yield row("delay", "Timers", "delays of 1, 5 and 16 ms, one at a time", latency(what="lateness") + [duration("stdev_ns", "jitter")] + lengths + [never_early],
              quick=n(10), full=n(50), rounds=2, kind="latency", neighbours={"floor": "sleep"})
    yield row("timer_cancel", "Timers", "cancel and arm, 10,000 armed", [rate("cancels with arming", times_best(1.5))], quick=n(500000), in_quick=True)


def fork_join():
    for threads, fork in ((1, 56), (2, 102)):
        yield row("fib:T%d" % threads, "Fork and join", "fib, %s" % workers(threads), [rate("calls", absent("libfork", 2, fork))], threads, quick=n(24),
                  in_quick=threads == 2, scaling="fib")
    for threads, fork in ((1, 47), (2, 72)):
        yield row("skynet:T%d" % threads, "Fork and join", "skynet with groups, %s" % workers(threads), [rate("tasks", absent("libfork", 2, fork))], threads,
                  quick=n(100000), in_quick=threads == 2, scaling="skynet")
    by_hand = duration("hand_ratio", "time by that of threads by hand", at_most(1.05, None, "≤ 1.05 × the time of threads by hand"), unit="")
    yield row("loop", "Fork and join", "parallel for, 2 workers", [rate("numbers"), by_hand], 2, quick=n(5000000), neighbours={"hand": "hand"})
    yield row("sort", "Fork and join", "parallel sort, 2 workers", [rate("numbers", times_best(1.0)), rate("with a comparison of one's own", name="generic_ops_per_s", headline=False)],
              2, quick=n(1000000))


def fibers():
    by_go = at_least(5, "go", "≥ 5 × Go")
    for threads in (1, 2):
        yield row("skynet_fiber:T%d" % threads, "Fibers", "skynet with fibers, %s" % workers(threads), [rate("fibers", by_go)], threads, quick=n(100000),
                  in_quick=threads == 2, scaling="skynet_fiber")
    by_boost = at_least(4, "boost_fiber", "≥ 4 × Boost.Fiber; then ≥ TooManyCooks, which Debian does not have: 58 M/s where the targets were set, without stacks")
    yield row("yield:T1", "Fibers", "yield, 1 worker", [rate("yields", by_boost)], quick=n(2000000), in_quick=True)
    by_context = at_most(1.5, "boost_context", "≤ 1.5 × Boost.Context")
    yield row("switch", "Fibers", "bare switch of stacks", [duration("switch_ns", "a switch", by_context, headline=True)], quick=n(2000000), kind="time")
    yield row("spawn_join", "Fibers", "spawn and join, 1 worker", [duration("ns_each", "spawn and join", at_most(150, None, "≤ 150 ns"), headline=True)],
              quick=n(300000), kind="time", in_quick=True)
    for threads in (1, 2):
        for side in (1, 4):
            yield row("chan:%d:%d:T%d" % (side, side, threads), "Fibers", "channel, %d to %d, %s" % (side, side, workers(threads)), [rate("values", times_best(1.5))], threads,
                      ["--producers", str(side), "--consumers", str(side)], quick=n(1000000), in_quick=side == 1 and threads == 2, scaling="chan:%d:%d" % (side, side))
    asleep = [
        duration("wake_all_s", "all woken and ended", at_most(2.0, None, "≤ 2 s, for a million"), unit="s", headline=True),
        duration("bytes_each", "resident for each", at_most(6144, None, "≤ 6 KiB"), unit="B"),
        duration("create_s", "all created and asleep", unit="s"),
    ]
    yield row("fibers_asleep", "Fibers", "a million fibers asleep", asleep, kind="time")


def messages():
    for producers, threads in ((1, 1), (4, 4)):
        by_go = at_least(1, "go", "≥ 1 × Go")
        by_rest = dict(at_least(4, "best", "≥ 4 × the best of the rest"), without=["go", "go_one"])
        yield row("bus:P%d:W%d" % (producers, threads), "Message bus", "64-byte messages, %d to %d" % (producers, threads), [rate("messages", by_go, also=[by_rest])], threads,
                  ["--producers", str(producers)], quick=n(500000), in_quick=producers == 1)


CONTESTING = ("fibers", "ops")  # beside all peers; sources are beside the raw loop, which does the same
NO_WORSE = ("libuv", "asio", "tokio", "raw_epoll")  # whose p99 an echo server of ours must not exceed


def raw_targets(core, floor, contest):
    """Of answers, of the CPU time of each, of their p99: within 5 % of the raw loop on the same core, and the bars of the raw epoll loop beside it, for all cores."""
    word = "raw %s loop" % core
    answers = [at_least(0.95, floor, "within 5 %% of the %s" % word)]
    answers.append(at_least(1.0 if core == "uring" else 0.97, "raw_epoll", "≥ %s × the raw epoll loop" % ("1" if core == "uring" else "0.97")))
    cpu = [at_most(1.05, floor, "≤ 1.05 × the %s" % word), at_most(1.0, "raw_epoll", "≤ 1 × the raw epoll loop")]
    if contest:
        answers.append(dict(at_least(1.0, "best", "≥ 1 × the best of libuv, Asio and Tokio"), among=list(NO_WORSE[:3])))
        p99 = [dict(at_most(1.0, "best", "≤ 1 × the best of libuv, Asio, Tokio and the raw epoll loop"), among=list(NO_WORSE))]
    else:
        p99 = [at_most(1.0, "raw_epoll", "≤ 1 × the raw epoll loop")]
    return answers, cpu, p99


def servers():
    for name, core, style, floor in (("epoll", "epoll", "fibers", "raw_epoll"), ("sources", "epoll", "sources", "raw_epoll"), ("edges", "epoll", "edges", "raw_epoll"), ("uring", "uring", "ops", "raw_uring")):
        for connections in (64, 512):
            answers, cpu, p99 = raw_targets(core, floor, style in CONTESTING)
            figures = [
                rate("answers", answers[0], also=answers[1:]),
                duration("cpu_ns_each", "CPU of the server for each", cpu[0], also=cpu[1:]),
            ] + latency(p99=p99[0], what="answer", headline=None)
            how = {"ops": "callbacks", "edges": "sources by edges"}.get(style, style)
            yield row("echo_server:%d:%s" % (connections, name), "Input and output", "echo, %d connections, ours with %s on %s" % (connections, how, core), figures,
                      flags=["--connections", str(connections)], ours=["--core", core, "--style", style], quick=seconds(2), full=seconds(6), rounds=2,
                      in_quick=connections == 64 and style in CONTESTING, neighbours={"raw": "raw_epoll"}, contest=style in CONTESTING)
    for verb in ("read", "write"):
        figures = [rate("operations"), duration("cpu_ns_each", "CPU for each")]
        yield row("file_" + verb, "Input and output", "4 KiB at random places, p%s" % verb, figures, quick=seconds(1), neighbours={"threads": "threads"})
    stall = [
        duration("stall_max_ns", "sleeper woken late, worst", headline=True),
        duration("stall_p99_ns", "sleeper woken late, p99"),
    ]
    yield row("file_stall", "Input and output", "a sleeper beside 64 readers of files", stall, ours=["--depth", "64"], quick=seconds(1), kind="latency",
              neighbours={"pread": "pread", "alone": "alone"})


def mixed():
    figures = latency(p99=below_best(0.25), headline="p99_ns") + [
        duration("e2e_p99_ns", "from due to run, p99", below_best(0.25)),
        rate("hogs", at_least(0.98, "best", "≥ 0.98 × the best peer"), "hogs_per_s", headline=False),
    ]
    yield row("mixed:T2", "Under load", "tiny tasks beside hogs, 2 workers", figures, 2, quick=seconds(0.5), full=seconds(3), in_quick=True, rounds=2, kind="latency")
    on_time = at_least(0.995, None, "≥ 99.5 % on time")
    plain = rate("frames on time, plain timer of an ordinary thread", on_time, "frames_on_time", "")  # what Tokio has as well
    loads = ("compute", "timers", "posts", "block", "updates")
    shares = [rate("frames on time beside " + load, on_time, load + "_frames_on_time", "", False) for load in loads]
    late = duration("late_p99_ns", "lateness of a frame of the plain timer, p99")
    for ident, ours, title in (("T2", [], "with real-time priority where it is allowed"), ("ordinary", ["--ordinary"], "without real-time priority")):
        yield row("mixed_ui:" + ident, "Under load", "60 frames a second, 2 workers, " + title, [plain] + shares + [late], 2, ours=ours, quick=seconds(0.5), full=seconds(3))


ROWS = [one for part in (tasks, wakes, timers, fork_join, fibers, messages, servers, mixed) for one in part()]


def amount(one, form):
    return one.quick if form == "quick" else one.full


def headline(one):
    return next(figure.name for figure in one.figures if figure.headline)


def as_json(one, form):
    return {
        "id": one.id, "group": one.group, "title": one.title, "scenario": one.scenario, "flags": one.flags + amount(one, form), "ours": one.ours,
        "threads": one.threads, "kind": one.kind, "scaling": one.scaling, "figures": [figure._asdict() for figure in one.figures],
    }
