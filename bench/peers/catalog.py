# SPDX-License-Identifier: MIT
"""The peers: what each of them can do, which packages it takes, and how its program is built."""
import collections
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CXX = ["g++", "-std=c++17", "-O2", "-DNDEBUG", "-pthread"]

FIBERS = ("yield", "chan", "skynet_fiber", "spawn_join", "fibers_asleep")

# scenarios: what its program knows; packages: of Debian; sign: the file whose presence shows them; command: how it is built;
# note: what is and what is not comparable, in a few sentences
Peer = collections.namedtuple("Peer", "scenarios packages sign command note")
# a server of echo_server; threads: the most that it can have
Server = collections.namedtuple("Server", "packages sign command threads note")


def cxx(source, *more):
    return CXX + ["-o", "{out}", "{here}/" + source, *more]


PEERS = {}

# Fibers and channels
PEERS.update(
    go=Peer(FIBERS + ("bus",), ["golang-go"], "/usr/bin/go", ["go", "build", "-o", "{out}", "{here}/peer.go"],
            "Goroutines: stacks of 2 KiB that are copied when they grow, and a garbage collector that is part of the cost."),
    boost_fiber=Peer(tuple(name for name in FIBERS if name != "skynet_fiber"), ["libboost-fiber-dev"], "/usr/include/boost/fiber/all.hpp",
                     cxx("boost_fiber.cpp", "-lboost_fiber", "-lboost_context"),
                     "Fibers of one thread each, shared between threads by an algorithm that has a lock."),
    boost_context=Peer(("switch",), ["libboost-context-dev"], "/usr/include/boost/context/detail/fcontext.hpp",
                       cxx("boost_context.cpp", "-lboost_context"), "The bare switch of stacks, without a scheduler."),
)

# The message bus
PEERS.update(
    go_one=Peer(("bus",), ["golang-go"], "/usr/bin/go", ["go", "build", "-ldflags", "-X main.one=1", "-o", "{out}", "{here}/peer.go"],
                "Go with everything on one thread, where nothing crosses from CPU to CPU."),
    locked=Peer(("bus",), ["g++"], "/usr/bin/g++", cxx("bus.cpp", "-DPEER_LOCKED"), "A deque with a mutex and two conditions."),
    tbb=Peer(("bus",), ["libtbb-dev"], "/usr/include/tbb/concurrent_queue.h", cxx("bus.cpp", "-DPEER_TBB", "-ltbb"),
             "concurrent_bounded_queue: no types, priorities or counters."),
    asio_post=Peer(("bus",), ["libasio-dev"], "/usr/include/asio.hpp", cxx("bus.cpp", "-DPEER_ASIO"),
                   "post() to an io_context with as many threads, bounded by a count: no types, priorities or counters."),
)

# Fork and join
TBB = (["libtbb-dev"], "/usr/include/tbb/task_group.h")
PEERS.update(
    tbb_tasks=Peer(("fib", "skynet", "loop", "sort"), *TBB, cxx("tbb_tasks.cpp", "-ltbb"),
                   "task_group as its manual has it; a group can carry an exception, ours keeps an error."),
    tbb_context=Peer(("fib", "skynet"), *TBB, cxx("tbb_tasks.cpp", "-ltbb", "-DPEER_ONE_CONTEXT"),
                     "All groups share one context, and so one error and one cancellation, which ours do not."),
    openmp=Peer(("fib", "skynet", "loop"), ["g++"], "/usr/bin/g++", cxx("omp_tasks.cpp", "-fopenmp"),
                "libgomp calls the function where there are 64 tasks for each thread already, which flatters it on one thread."),
)

SERVERS = {
    "libuv": Server(["libuv1-dev"], "/usr/include/uv.h", ["gcc", "-O2", "-o", "{out}", "{here}/echo_uv.c", "-luv"], 1, "Callbacks, a loop of one thread."),
    "asio": Server(["libasio-dev"], "/usr/include/asio.hpp", cxx("echo_asio.cpp"), 256, "Callbacks on an io_context with T threads."),
    "go": Server(["golang-go"], "/usr/bin/go", ["go", "build", "-o", "{out}", "{here}/echo.go"], 256, "A goroutine for each connection."),
    "tokio": Server(
        ["librust-tokio-dev", "librust-tokio+full-dev", "rustc", "cargo"],
        "/usr/share/cargo/registry/tokio-1.24.2",
        ["/usr/bin/cargo", "build", "--release", "--offline", "--quiet", "--config", ".cargo-config.toml", "--manifest-path", "{out}.crate/Cargo.toml"],
        256,
        "A task for each connection on the runtime with T threads.",
    ),
}
CRATE = """[package]
name = "{name}"
version = "0.0.0"
edition = "2021"
[[bin]]
name = "{name}"
path = "{here}/{name}.rs"
[dependencies]
tokio = {{ version = "1", default-features = false, features = ["net", "rt-multi-thread", "io-util", "sync", "time", "macros"] }}
[profile.release]
lto = true
codegen-units = 1
"""
CRATES_OF_DEBIAN = """[source.crates-io]
replace-with = "debian"
[source.debian]
directory = "/usr/share/cargo/registry"
"""


def install_packages(packages):
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    apt = sudo + ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    subprocess.run(apt + ["update"], check=False, stdout=sys.stderr)  # what is there may do without
    subprocess.run(apt + ["install", "-y", "--no-install-recommends"] + packages, check=True, stdout=sys.stderr)


def build(name, peer, install):
    """Path of its program, or None with a word why not. What is built with cargo is named as its source is: echo_tokio.rs."""
    if not os.path.exists(peer.sign):
        if not install:
            print("%s is left out: no %s (--install, or apt-get install %s)" % (name, peer.sign, " ".join(peer.packages)), file=sys.stderr)
            return None
        install_packages(peer.packages)
    folder = os.path.join(ROOT, "build/peers")
    os.makedirs(folder, exist_ok=True)
    out = os.path.join(folder, name)
    environment = dict(os.environ, GOCACHE=os.path.join(folder, "go-cache"), GOFLAGS="-buildvcs=false")
    if "cargo" in peer.packages:
        environment.update(PATH="/usr/bin:/bin", CARGO_TARGET_DIR=out + ".target")  # Debian's, with its crates, no net
        write_crate(name, out + ".crate")
    subprocess.run([part.format(out=out, here=HERE) for part in peer.command], check=True, env=environment, stdout=sys.stderr, cwd=folder)
    if "cargo" in peer.packages:
        shutil.copy(os.path.join(out + ".target/release", name), out)
    return out


def write_crate(name, folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "Cargo.toml"), "w", encoding="utf-8") as file:
        file.write(CRATE.format(name=name, here=HERE))
    with open(os.path.join(os.path.dirname(folder), ".cargo-config.toml"), "w", encoding="utf-8") as file:
        file.write(CRATES_OF_DEBIAN)
