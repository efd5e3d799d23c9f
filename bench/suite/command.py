# SPDX-License-Identifier: MIT
"""The command line of bench/suite/run, and the order of things: choose, install, build, measure, write, report."""
import argparse
import datetime
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import building
import growth
import measure
import rows
from progress import Progress, clock
from sampling import LIMIT_S, Sampler

HELP = """Measures `hive bench` side by side with all peers of bench/peers/catalog.py, and has a report made of it.

The quick form takes about two minutes of measuring on two CPUs: some of the rows, less work in each, three rounds. The full one has all rows, as much work as
`hive bench` does by default, seven rounds: the better part of an hour. Each sample is a fresh process that checks its own result; within a row all programs
take turns, after a round that is thrown away. A sample during which others used more than --foreign percent of a CPU is taken again, at most twice.

--pin: each program of a row may use the same few CPUs, by taskset: as many as the row has busy threads. No worker is told to stay on one CPU: the peers cannot say so,
and ours shall have nothing that they have not. With servers, `hive bench --pin` keeps the load on a CPU of its own, for all servers alike. Growth is not pinned: it is
about more workers than CPUs. The CPUs stand among the facts about the machine."""
AGAIN_S = {"quick": 40.0, "full": float("inf")}  # what all repetitions of disturbed samples may take: a machine that is never quiet must not take three times as long


def parse_arguments(argv, root):
    parser = argparse.ArgumentParser(prog="bench/suite/run", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--quick", dest="form", action="store_const", const="quick", default="quick", help="the short form (default)")
    form.add_argument("--full", dest="form", action="store_const", const="full", help="everything")
    parser.add_argument("--only", default="", metavar="PATTERN,…", help="rows by name, of all that there are: post, 'post:P1:*', growth, growth:tasks")
    parser.add_argument("--rounds", type=int, metavar="N", help="samples of each program in each row (quick 3, full 7)")
    parser.add_argument("--peers", metavar="A,B", help="only these beside ours")
    parser.add_argument("--pin", action="store_true", help="the same CPUs for all programs")
    parser.add_argument("--foreign", type=float, default=10.0, metavar="PERCENT", help="of a CPU that others may use during a sample (10)")
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="SECONDS", help="for a sample (%d)" % LIMIT_S)
    parser.add_argument("--no-install", action="store_true", help="peers whose packages are missing are left out")
    parser.add_argument("--out", default=os.path.join(root, "bench/report"), metavar="FOLDER", help="for samples.json and the report (bench/report)")
    parser.add_argument("--hive", default=os.path.join(root, "build/bin/hive"), metavar="FILE", help="our tool (build/bin/hive)")
    parser.add_argument("--list", action="store_true", help="what would be measured, beside whom")
    arguments = parser.parse_args(argv)
    if arguments.rounds is not None and arguments.rounds < 1:
        parser.error("--rounds: at least 1")
    return arguments


def matches(name, pattern):
    return fnmatch.fnmatchcase(name, pattern) or name.startswith(pattern + ":")


def choose(arguments, all_rows, all_growths):
    """The form's rows and growths, or those that are named, of whichever form."""
    if not arguments.only:
        return [one for one in all_rows if one.in_quick or arguments.form == "full"], all_growths
    patterns = [pattern for pattern in arguments.only.split(",") if pattern]
    names = [one.id for one in all_rows] + ["growth:" + one.id for one in all_growths]
    for pattern in patterns:
        if not any(matches(name, pattern) for name in names):
            sys.exit("run: no row is named %s; --full --list has them all" % pattern)
    named = [name for name in names if any(matches(name, pattern) for pattern in patterns)]
    return [one for one in all_rows if one.id in named], [one for one in all_growths if "growth:" + one.id in named]


def wanted_peers(arguments, catalog, chosen_rows, chosen_growths):
    """(peers, servers) that have something to do."""
    names = arguments.peers.split(",") if arguments.peers is not None else list(dict.fromkeys(list(catalog.PEERS) + list(catalog.SERVERS)))
    unknown = [name for name in names if name and name not in catalog.PEERS and name not in catalog.SERVERS]
    if unknown:
        sys.exit("run: no peer %s" % unknown[0])
    peers = {name: catalog.PEERS[name] for name in names if name in catalog.PEERS and has_work(name, catalog.PEERS[name], chosen_rows, chosen_growths)}
    serving = any(one.contest for one in chosen_rows + chosen_growths)
    return peers, {name: catalog.SERVERS[name] for name in names if name in catalog.SERVERS and serving}


def has_work(name, peer, chosen_rows, chosen_growths):
    growing = [one.scenario for one in chosen_growths if name in growth.PEERS]
    return any(scenario in peer.scenarios for scenario in [one.scenario for one in chosen_rows] + growing)


def print_list(arguments, chosen_rows, chosen_growths, peers, servers):
    for one in chosen_rows:
        beside = servers if one.contest else [name for name, peer in peers.items() if one.scenario in peer.scenarios]
        beside = list(beside) + list(one.neighbours.values())
        print("%-22s %s; beside %s" % (one.id, one.title, ", ".join(beside) or "nobody"))
        for figure in one.figures:
            for target in filter(None, [figure.target, *figure.also]):
                print("%-22s   %s: %s" % ("", figure.title, target["text"]))
    for one in chosen_growths:
        print("%-22s %s: %s" % ("growth:" + one.id, one.title, ", ".join("{:,}".format(x) for x in growth.points(one, arguments.form))))


def build(peers, servers, install):
    """Programs and servers that there are, and who is left out. A server's program is named echo_…"""
    built, missing = building.build_all({**peers, **{"echo_" + name: server for name, server in servers.items()}}, install)
    programs = {name: built[name] for name in peers if name in built}
    serving = {name: built["echo_" + name] for name in servers if "echo_" + name in built}
    left_out = [{"peer": name[len("echo_") :] if name not in peers else name, "why": why} for name, why in missing.items()]
    return programs, serving, [one for i, one in enumerate(left_out) if one not in left_out[:i]]


def told(name, peer):
    """Of one of the catalogue, for the report."""
    return {"title": getattr(peer, "title", None) or name, "note": peer.note, "floor": bool(getattr(peer, "floor", False))}


def describe_peers(samples, peers, servers, version):
    """Of those with samples: a peer's own words before those of its server."""
    known = {measure.OURS: {"title": "rophive " + version, "note": "This library, by its own tool.", "floor": False}}
    known.update({name: neighbour._asdict() for name, neighbour in rows.NEIGHBOURS.items()})
    known.update({name: told(name, server) for name, server in servers.items()})
    known.update({name: told(name, peer) for name, peer in peers.items()})
    return {name: known[name] for name in dict.fromkeys([measure.OURS] + [sample["peer"] for sample in samples]) if name in known}


def machine_of(hive):
    done = subprocess.run([hive, "bench", "--env"], capture_output=True, text=True, timeout=60, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def git(root, *words):
    done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False) if shutil.which("git") else None
    return done.stdout.strip() if done and done.returncode == 0 else None


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, ensure_ascii=False)
        file.write("\n")
    os.replace(path + ".part", path)


def measure_all(measuring, chosen_rows, chosen_growths, out):
    """Whether it came to its end. Interrupted: what was measured so far counts."""
    samples = sum(map(measuring.row_samples, chosen_rows)) + sum(map(measuring.growth_samples, chosen_growths))
    progress = Progress(len(chosen_rows) + len(chosen_growths), samples, out)
    try:
        measuring.measure(chosen_rows, chosen_growths, progress)
    except KeyboardInterrupt:
        progress.say("interrupted: what there is so far is written")
        return False
    finally:
        progress.end()
    return True


def interrupt(*_):
    raise KeyboardInterrupt


def main(argv, root, catalog, all_rows=rows.ROWS, all_growths=growth.GROWTHS, sampler=None, out=sys.stderr):
    arguments = parse_arguments(argv, root)
    chosen_rows, chosen_growths = choose(arguments, all_rows, all_growths)
    peers, servers = wanted_peers(arguments, catalog, chosen_rows, chosen_growths)
    if arguments.list:
        print_list(arguments, chosen_rows, chosen_growths, peers, servers)
        return 0
    if not shutil.which(arguments.hive):
        sys.exit("run: no %s: make tool" % arguments.hive)
    if arguments.pin and not shutil.which("taskset"):
        sys.exit("run: --pin takes taskset, of util-linux")
    programs, serving, left_out = build(peers, servers, not arguments.no_install)
    cpus = measure.allowed_cpus() if arguments.pin else None
    machine = dict(machine_of(arguments.hive), **({"pinned_to_cpus": " ".join(map(str, cpus))} if cpus else {}))
    signal.signal(signal.SIGTERM, interrupt)
    sampler = sampler or Sampler(arguments.foreign, arguments.limit, AGAIN_S[arguments.form])
    measuring = measure.Measuring(
        arguments.hive, programs, serving, sampler, arguments.form, {name: peer.scenarios for name, peer in peers.items()},
        {name: server.threads for name, server in servers.items()}, arguments.rounds, cpus)
    date, begin = datetime.datetime.now(datetime.timezone.utc), time.monotonic()
    whole = measure_all(measuring, chosen_rows, chosen_growths, out)
    took = time.monotonic() - begin
    samples = os.path.join(arguments.out, "samples.json")
    write(samples, {
        "format": 1, "form": arguments.form, "commit": git(root, "rev-parse", "--short", "HEAD"), "dirty": bool(git(root, "status", "--porcelain")),
        "date": date.strftime("%Y-%m-%dT%H:%M:%SZ"), "took_s": round(took, 1), "whole": whole, "pinned": arguments.pin,
        "machine": dict(machine, load_after=os.getloadavg()[0]),
        "peers": describe_peers(measuring.samples, peers, servers, machine.get("version", "")), "left_out": left_out, "failures": measuring.failures,
        "rows": [rows.as_json(one, arguments.form) for one in chosen_rows], "growth": [growth.as_json(one, arguments.form) for one in chosen_growths],
        "samples": measuring.samples, "disturbed": {"repeated": sampler.repeated, "kept": sampler.kept},
    })
    out.write("%d samples in %s; %d taken again as others used the CPUs, %d stayed so; %d failures; %s\n" % (
        len(measuring.samples), clock(took), sampler.repeated, sampler.kept, len(measuring.failures), os.path.relpath(samples)))
    code = report(root, arguments.out, out)
    return code if whole else 130


def report(root, folder, out):
    program = os.path.join(root, "bench/suite/report")
    if not os.access(program, os.X_OK):
        out.write("there is no bench/suite/report: no report is made\n")
        return 0
    out.flush()
    return subprocess.run([program, folder], check=False).returncode
