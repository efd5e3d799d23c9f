# SPDX-License-Identifier: MIT
"""A run that never was: samples of the shape that bench/suite/run writes, for the self-test of the report. No figure here means anything."""
import random

PEERS = {
    "rophive": {"title": "rophive", "note": "The tree at hand."},
    "tokio": {"title": "Tokio 1.24", "note": "Tasks are futures, polled by the runtime: each is allocated, and can be cancelled, which ours cannot."},
    "go": {"title": "Go 1.19", "note": "Goroutines with stacks that grow, and a collector & <its> pauses."},
    "tbb": {"title": "oneTBB 2021.8", "note": "task_group | arena: made for fork and join, not for single tasks from outside."},
    "asio": {"title": "Asio 1.22", "note": "post() to an io_context with T threads."},
    "libuv": {"title": "libuv 1.44", "note": "uv_queue_work on its own pool."},
    "dispatch": {"title": "libdispatch", "note": "A concurrent queue."},
    "taskflow": {"title": "Taskflow 3.4", "note": "An executor with silent_async."},
    "naive": {"title": "mutex and condition", "note": "Forty lines that anybody would write first."},
    "floor_spsc": {"title": "bare ring", "floor": True, "note": "A ring of one writer and one reader: no scheduler at all."},
}
MACHINE = {"env": True, "version": "0.1.0", "kernel": "Linux 6.1 x86_64", "cpu": "A processor that was made up", "cpus_online": 2, "governor": "unknown"}
LATENCY_STEPS = (("p10", 0.8), ("p25", 0.9), ("p50", 1), ("p75", 1.2), ("p90", 1.6), ("p95", 2.1), ("p99", 4), ("p999", 19), ("max", 70))


def figure(name, title, unit, more, headline=True, target=None):
    return {"name": name, "title": title, "unit": unit, "more": more, "headline": headline, "target": target}


def rate_row(name, group, threads, base, target):
    """base: what the best peer does a second."""
    row = {"id": "%s:T%d" % (name, threads), "group": group, "title": "%s, %d worker%s" % (name, threads, "s" * (threads > 1)), "scenario": name}
    row.update(flags=["--threads", str(threads)], threads=threads, kind="rate", scaling=name)
    row["figures"] = [figure("ops_per_s", "operations", "1/s", True, target=target)]
    return row, base


def latency_row(name, threads, base, target):
    row = {"id": "%s:T%d" % (name, threads), "group": "Latency", "title": "%s, %d worker%s" % (name, threads, "s" * (threads > 1)), "scenario": name}
    row.update(flags=["--threads", str(threads)], threads=threads, kind="latency", scaling=None)
    row["figures"] = [
        figure("p50_ns", "median", "ns", False, target=target),
        figure("p99_ns", "99th percentile", "ns", False, False, {"at_most": 1.0, "of": "best", "text": "≤ the best peer"}),
    ]
    return row, base


class Run:
    """rounds of samples; speed: of ours by that of the best peer; speeds: the same for single rows. One target is missed, one is open."""

    def __init__(self, rounds=9, speed=12.0, speeds=None, seed=1, noise=0.04, small=False):
        self.random = random.Random(seed)
        self.rounds, self.speed, self.noise = rounds, speed, noise
        self.speeds = {"spawn_local:T1": 4.8, "post:T4": 7.0} if speeds is None else speeds
        ten = {"at_least": 10, "of": "best", "text": "≥ 10 × the best peer"}
        self.plan = [
            rate_row("post", "Tasks", 1, 3.2e6, ten),
            rate_row("post", "Tasks", 2, 2.4e6, ten),
            latency_row("ping", 2, 3900, {"at_most": 1.0, "of": "asio"}),
        ]
        if not small:
            self.plan[2:2] = [
                rate_row("post", "Tasks", 4, 2.2e6, {"at_least": 7, "of": "best"}),
                rate_row("spawn_local", "Tasks", 1, 9.5e6, {"at_least": 6, "of": "best"}),
                rate_row("fib", "Fork and join", 1, 1.1e7, {"at_least": 11.9, "of": "tbb", "text": "≥ 11.9 × oneTBB"}),
                rate_row("fib", "Fork and join", 2, 2.1e7, None),
            ]
            self.plan.append(latency_row("mixed", 2, 32000, {"at_most": 60000, "of": None, "text": "≤ 60 µs"}))

    def data(self):
        data = {"format": 1, "form": "quick", "commit": "0123abc", "dirty": False, "date": "2026-01-02T03:04:05Z", "took_s": 118.0}
        data.update(machine=dict(MACHINE), peers={name: dict(peer) for name, peer in PEERS.items()})
        data["left_out"] = [{"peer": "libfork", "why": "not packaged by Debian 12"}]
        data["rows"] = [row for row, _ in self.plan]
        points = [1000, 10000, 100000, 1000000]
        data["growth"] = [{"id": "tasks", "title": "Tasks at once", "axis": "tasks", "unit": "task", "x": points, "time": "ns for each", "memory": "bytes for each"}]
        data["samples"] = [sample for turn in range(1, self.rounds + 1) for sample in self.round_of(turn, points)]
        data["disturbed"] = {"repeated": 12, "kept": sum(sample["disturbed"] for sample in data["samples"])}
        return data

    def around(self, value):
        return value * self.random.lognormvariate(0, self.noise)

    def factor(self, row, peer):
        """How good somebody is, by the best peer."""
        if peer == "rophive":
            return self.speeds.get(row["id"], self.speed)
        return 30 if peer == "floor_spsc" else 1 / (1 + 0.35 * (list(PEERS).index(peer) - 1))

    def round_of(self, turn, points):
        for row, base in self.plan:
            for peer in PEERS:
                if peer != "floor_spsc" or row["scenario"] == "post":
                    yield self.sample(turn, peer, self.figures(row, peer, base), row=row["id"])
        for x in points:
            for peer, ns, size, growth in (("rophive", 40, 64, 0.01), ("tokio", 700, 300, 0.05), ("go", 450, 2700, 0.3)):
                slope = 1 + growth * points.index(x)
                yield self.sample(turn, peer, {"ns_each": self.around(ns * slope), "bytes_each": self.around(size / slope)}, growth="tasks", x=x)

    def sample(self, turn, peer, figures, **where):
        disturbed = self.random.random() < 0.01
        tries = self.random.choice((1, 1, 1, 2))
        cpu = round(self.around(1.5), 2)
        return {**where, "peer": peer, "round": turn, "tries": tries, "disturbed": disturbed, "foreign_cpu_percent": 2.1, "cpu_s": cpu, "figures": figures}

    def figures(self, row, peer, base):
        common = {"peer": peer, "scenario": row["scenario"], "threads": row["threads"], "rss_kb": round(self.around(2600 if peer == "rophive" else 61000))}
        if row["kind"] == "rate":
            return {**common, "ops_per_s": self.around(base * self.factor(row, peer))}
        # times differ less than rates do
        middle = self.around(base / self.factor(row, peer) ** 0.5)
        times = {name + "_ns": round(middle * step ** (1.3 if peer == "go" else 1)) for name, step in LATENCY_STEPS}
        if row["scenario"] == "mixed":
            times.update({"e2e_" + name: value * 3 for name, value in times.items() if name in ("p50_ns", "p90_ns", "p99_ns", "p999_ns")})
        return {**common, **times}
