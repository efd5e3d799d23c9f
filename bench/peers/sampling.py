# SPDX-License-Identifier: MIT
"""A sample: one fresh process that warms up, works, checks its own result and prints a line of JSON.

Beside its figures it is told how much CPU time it took, and how much others took meanwhile: the time in which the CPUs were busy by /proc/stat, less that of
the process (and its children) and our own. That is the same for all programs, whatever they say of themselves."""
import collections
import json
import os
import resource
import signal
import subprocess
import time

LIMIT_S = 240
TRIES = 3
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# figures: the line; wall_s, cpu_s: of the process; foreign_percent: of one CPU; disturbed: others took more than allowed; tries: how often it was taken
Sample = collections.namedtuple("Sample", "figures wall_s cpu_s foreign_percent disturbed tries")


class Failed(Exception):
    """No figure: why, in a few words."""


def busy_seconds():
    """Of all CPUs: user, nice, system and stolen. Interrupts are left out: those of the loopback are caused by the program that is measured, and the kernel
    counts them for nobody."""
    with open("/proc/stat", encoding="ascii") as file:
        columns = [int(text) for text in file.readline().split()[1:]]
    return (sum(columns[:3]) + (columns[7] if len(columns) > 7 else 0)) * TICK_S


def own_seconds():
    """Of our children that have ended, and of ourselves."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def end(process):
    """The process and all that it has started: a server outlives its parent else."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def output_of(command, limit_s):
    """What it prints. It has a group of its own, so that an interrupt is ours to deal with."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    except OSError as error:
        raise Failed("cannot be started: %s" % error.strerror) from error
    with process:
        try:
            output, complaint = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            end(process)
            raise Failed("no end within %g s" % limit_s) from error
        except BaseException:
            end(process)
            raise
    if process.returncode != 0:
        said = complaint.strip().splitlines()
        raise Failed("exit %d%s" % (process.returncode, ": " + said[0][:200] if said else ""))
    return output


def figures_of(output, scenario, figure):
    """The last line, if it is a result of that scenario with that figure."""
    try:
        figures = json.loads(output.strip().splitlines()[-1])
        named, value = figures["scenario"], figures.get(figure, 0)
    except (IndexError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise Failed("this is no result: %.80s" % output.strip()) from error
    if named != scenario:
        raise Failed("a result of %s instead of %s" % (named, scenario))
    if not isinstance(value, (int, float)) or not value > 0:
        raise Failed("no %s above 0" % figure)
    return figures


def take_once(command, scenario, figure, limit_s, busy=busy_seconds, own=own_seconds):
    """One process. (figures, wall_s, cpu_s, foreign_s)"""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    own_before, busy_before, begin = own(), busy(), time.monotonic()
    output = output_of(command, limit_s)
    wall, foreign = time.monotonic() - begin, busy() - busy_before - (own() - own_before)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    return figures_of(output, scenario, figure), wall, cpu, max(foreign, 0.0)


class Sampler:
    """Takes samples, again where others used the CPUs, and counts those."""

    def __init__(self, foreign_limit=10.0, limit_s=LIMIT_S, again_s=float("inf"), busy=busy_seconds, own=own_seconds):
        self.foreign_limit, self.limit_s, self.again_s = foreign_limit, limit_s, again_s  # again_s: what all repetitions may take
        self.busy, self.own = busy, own
        self.repeated = self.kept = 0

    def is_disturbed(self, wall, foreign):
        """The kernel counts in ticks: one for each CPU is no sign of anybody."""
        return foreign > wall * self.foreign_limit / 100 + TICK_S * (os.cpu_count() or 1)

    def try_out(self, command, scenario, figure="ops_per_s"):
        """Only whether it works."""
        take_once(command, scenario, figure, self.limit_s, self.busy, self.own)

    def take(self, command, scenario, figure="ops_per_s"):
        best = None  # of several disturbed ones the quietest
        for tries in range(1, TRIES + 1):
            figures, wall, cpu, foreign = take_once(command, scenario, figure, self.limit_s, self.busy, self.own)
            disturbed = self.is_disturbed(wall, foreign)
            sample = Sample(figures, wall, cpu, foreign * 100 / wall, disturbed, tries)
            best = sample if best is None or sample.foreign_percent < best.foreign_percent else best
            if not disturbed or tries == TRIES or self.again_s < wall:
                break
            self.repeated += 1
            self.again_s -= wall
        best = sample if not disturbed else best
        self.kept += best.disturbed
        return best._replace(tries=tries)
