# SPDX-License-Identifier: MIT
"""Takes the samples: rows one after the other, within each of them all programs in turns (A B C A B C …) after a round that is thrown away."""
import os
import shlex

import growth
import rows
from sampling import Failed

OURS = "rophive"


class Measuring:
    """programs, servers: {peer: path}; threads_of: {server: the most threads that it can have}; cpus: those that all programs
    have to do with, or None."""

    def __init__(self, hive, programs, servers, sampler, form, scenarios, threads_of, rounds=None, cpus=None):
        self.hive, self.programs, self.servers, self.sampler, self.form = hive, programs, servers, sampler, form
        self.scenarios, self.threads_of = scenarios, threads_of
        self.rounds, self.cpus = rounds, cpus
        self.samples, self.failures = [], []
        self.proven = set()  # servers that have shown that they serve
        self.progress = None

    # ---- who takes part, and by which command

    def peers(self, one):
        """Those with a program of their own for this row; ours is the first."""
        return [OURS] if one.contest else [OURS] + [peer for peer in self.programs if one.scenario in self.scenarios[peer]]

    def growing_peers(self, one):
        if one.contest or one.id in growth.OURS_ALONE:
            return [OURS]
        return [OURS] + [peer for peer in growth.PEERS if peer in self.programs and one.scenario in self.scenarios[peer]]

    def pinned(self, command, needed, everything=False):
        """The same CPUs for all: as many as there are busy threads, the first ones that we may use."""
        if self.cpus is None:
            return command
        chosen = self.cpus if everything else self.cpus[: max(needed, 1)]
        return ["taskset", "-c", ",".join(map(str, chosen))] + command

    def row_command(self, one, peer):
        flags = ["--scenario", one.scenario, "--threads", str(one.threads)] + one.flags + rows.amount(one, self.form)
        outside = int(one.flags[one.flags.index("--producers") + 1]) if "--producers" in one.flags else 1
        if peer != OURS:
            return self.pinned([self.programs[peer]] + flags, one.threads + outside)
        command = [self.hive, "bench"] + flags + one.ours
        if one.contest:
            apart = ["--pin"] if self.cpus is not None else []  # all servers off the CPU of the load
            return self.pinned(command + self.server_flags(one.threads, self.servers) + apart, 0, True)
        return self.pinned(command, one.threads + outside)

    def server_flags(self, threads, names):
        flags = []
        for name in names:
            if threads <= self.threads_of.get(name, threads):
                flags += ["--server", "%s=exec %s %d" % (name, shlex.quote(self.servers[name]), threads)]
        return flags

    # ---- keeping

    def keep(self, place, peer, turn, sample, figures, cpu_s):
        self.samples.append(dict(place, peer=peer, round=turn, tries=sample.tries, disturbed=sample.disturbed, foreign_cpu_percent=round(sample.foreign_percent, 2),
                                 wall_s=round(sample.wall_s, 4), cpu_s=cpu_s, figures=figures))

    def keep_all(self, place, peer, turn, sample, prefixes):
        """Ours, and the neighbours that are in the same line; whose CPU time that was is not known there."""
        lines = split(sample.figures, prefixes)
        self.keep(place, peer, turn, sample, lines.pop(None), sample.cpu_s if not prefixes else None)
        for neighbour, figures in lines.items():
            self.keep(place, neighbour, turn, sample, dict(figures, scenario=sample.figures["scenario"]), None)

    def fail(self, place, peer, turn, why):
        """Told and counted. Who was wrong once has no figure here, and is not asked again."""
        self.failures.append(dict(place, peer=peer, round=turn, why=str(why)))
        self.samples = [sample for sample in self.samples if not (sample["peer"] == peer and place.items() <= sample.items())]
        self.progress.say("%s: %s fails: %s" % (next(iter(place.values())), peer, why))

    # ---- rows

    def turns(self, one):
        if self.rounds:
            return self.rounds
        return (one.rounds or 3) if self.form == "quick" else 7

    def row_samples(self, one):
        return len(self.peers(one)) * (self.turns(one) + 1)

    def measure_row(self, one):
        place, peers = {"row": one.id}, self.peers(one)
        if one.contest:
            self.drop_broken_servers(one, place)
        prefixes = dict(one.neighbours)
        if one.contest:
            prefixes.update({name: name for name in self.servers if one.threads <= self.threads_of.get(name, one.threads)})
        for turn in range(self.turns(one) + 1):
            for peer in list(peers):
                self.progress.sample(peer, turn, self.turns(one))
                try:
                    sample = self.sampler.take(self.row_command(one, peer), one.scenario, rows.headline(one))
                except Failed as failure:
                    self.fail(place, peer, turn, failure)
                    peers.remove(peer)
                    continue
                if turn:
                    self.keep_all(place, peer, turn, sample, prefixes if peer == OURS else {})

    def drop_broken_servers(self, one, place):
        """A server that does not serve would spoil the contest for all: each shows for a moment that it does, beside ours."""
        for name in [name for name in self.servers if name not in self.proven]:
            self.proven.add(name)
            command = [self.hive, "bench", "--scenario", one.scenario, "--threads", "1", "--alone", "--connections", "4", "--seconds", "0.1"]
            try:
                self.sampler.try_out(command + self.server_flags(1, [name]), one.scenario)
            except Failed as failure:
                self.fail(place, name, 0, failure)
                del self.servers[name]

    # ---- growth

    def growth_rounds(self):
        return self.rounds or (1 if self.form == "quick" else 3)

    def growth_samples(self, one):
        return len(self.growing_peers(one)) * len(growth.points(one, self.form)) * self.growth_rounds()

    def growth_command(self, one, peer, x, servers):
        flags = ["--scenario", one.scenario] + growth.flags(one, self.form, x)
        if one.contest:
            return [self.hive, "bench"] + flags + ["--alone"] + self.server_flags(1, servers)
        return [self.hive, "bench"] + flags if peer == OURS else [self.programs[peer]] + flags

    def growing_servers(self):
        return [name for name in growth.PEERS if name in self.servers]

    def measure_growth(self, one):
        gone = set()
        for turn in range(1, self.growth_rounds() + 1):
            for x in growth.points(one, self.form):
                for peer in self.growing_peers(one):
                    if peer not in gone and not self.grow(one, peer, x, turn):
                        gone.add(peer)

    def grow(self, one, peer, x, turn):
        place = {"growth": one.id, "x": x}
        servers = self.growing_servers() if one.contest else []
        self.progress.sample(peer, turn, self.growth_rounds())
        while (why := growth.does_not_fit(one, x, 1 + len(servers))):
            self.fail(place, servers[-1] if servers else peer, turn, why)
            if not servers:
                return True  # the next point may
            servers.pop()
        try:
            sample = self.sampler.take(self.growth_command(one, peer, x, servers), one.scenario, one.figure)
        except Failed as failure:
            self.fail(place, peer, turn, failure)
            return False
        self.keep_all(place, peer, turn, sample, {name: name for name in servers})
        return True

    # ---- all of it

    def measure(self, chosen_rows, chosen_growths, progress):
        self.progress = progress
        for one in chosen_rows:
            progress.next_part(one.id, self.row_samples(one))
            self.measure_row(one)
            progress.end_part()
        for one in chosen_growths:
            if one.contest:
                self.drop_broken_servers(one, {"growth": one.id})
            progress.next_part("growth:" + one.id, self.growth_samples(one))
            try:
                self.measure_growth(one)
            finally:
                growth.put_costs(one, self.samples)  # of those that there are, when it is interrupted
            progress.end_part()


def split(figures, prefixes):
    """{None: ours, neighbour: its figures}: what `hive bench` measured in turns has the name of the neighbour in front. The longest prefix counts: raw_uring is not raw.
    Ratios are ours by theirs, and stay."""
    lines = {None: {}}
    for key, value in figures.items():
        owner = max((prefix for prefix in prefixes if key.startswith(prefix + "_")), key=len, default=None)
        if owner is None or key in (owner + "_ratio", owner + "_cpu_ratio"):
            lines[None][key] = value
        else:
            lines.setdefault(prefixes[owner], {})[key[len(owner) + 1 :]] = value
    return lines


def allowed_cpus():
    return sorted(os.sched_getaffinity(0))
