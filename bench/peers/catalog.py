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
CC = ["gcc", "-std=gnu11", "-O2", "-DNDEBUG", "-D_GNU_SOURCE", "-pthread"]
MEASURE_C = ["peer_c.c", "../stats.c", "../sync.c", "../tally.c", "../ping.c", "../record.c"]
GO = ["golang-go"], "/usr/bin/go"
GO_FILES = ["{here}/go/%s.go" % name for name in ("peer", "measure", "tasks", "timers", "mixed", "forks", "fibers")]
TOKIO = (
    ["librust-tokio-dev", "librust-tokio+full-dev", "rustc", "cargo"],
    "/usr/share/cargo/registry/tokio-1.24.2",
    ["/usr/bin/cargo", "build", "--release", "--offline", "--quiet", "--config", ".cargo-config.toml", "--manifest-path", "{out}.crate/Cargo.toml"],
)

FIBERS = ("yield", "chan", "skynet_fiber", "spawn_join", "fibers_asleep")

# scenarios: what its program knows; packages: of Debian; sign: the file whose presence shows them; command: how it is built;
# note: what is and what is not comparable, in a few sentences; floor: no library, but what one stands on, a bound and not a rival
Peer = collections.namedtuple("Peer", "scenarios packages sign command note floor", defaults=[False])
# a server of echo_server; threads: the most that it can have
Server = collections.namedtuple("Server", "packages sign command threads note floor", defaults=[False])


def cxx(source, *more):
    return CXX + ["-o", "{out}", "{here}/" + source, *more]


def cc(source, *more):
    return CC + ["-o", "{out}", "{here}/" + source, *more]


def cc_peer(source, *more):
    """With the measuring side of `hive bench`; of the library the headers alone."""
    return cc(source, "-I{here}/..", "-I{here}/../../include", *("{here}/" + name for name in MEASURE_C), *more, "-lm")


def many(compiler, sources, *more):
    """A program of several files."""
    return compiler + ["-o", "{out}"] + ["{here}/" + source for source in sources] + list(more)


PEERS = {}

# Fibers and channels
PEERS.update(
    go=Peer(FIBERS + ("bus", "post", "spawn_local", "ping", "ping_hot", "timer", "timer_cancel", "fib", "skynet", "mixed"),
            *GO, ["go", "build", "-o", "{out}"] + GO_FILES,
            "Goroutines: stacks of 2 KiB that are copied when they grow, and a garbage collector that is part of the cost. There are no outside threads: who "
            "posts is a goroutine, with GOMAXPROCS=T+P up to the number of CPUs. In ping and ping_hot it waits at a channel, as Go programs do, so that mostly its "
            "own thread runs the task and no other one is woken; look_p50_ns is with the habit of the other peers' poster, which looks for 3 us first. Timers are "
            "AfterFunc's, armed by Reset. mixed: hogs on T goroutines, GOMAXPROCS=T+2; with T alone tiny tasks wait for tens of milliseconds. No post_to: "
            "there is no named worker."),
    boost_fiber=Peer(tuple(name for name in FIBERS if name != "skynet_fiber"), ["libboost-fiber-dev"], "/usr/share/doc/libboost-fiber-dev",
                     cxx("boost_fiber.cpp", "-lboost_fiber", "-lboost_context"),
                     "Fibers of one thread each, shared between threads by an algorithm that has a lock. Without skynet_fiber: a million leaves take "
                     "3.5 GiB and ten seconds in the best of the forms that were tried."),
    boost_context=Peer(("switch",), ["libboost-context-dev"], "/usr/share/doc/libboost-context-dev",
                       cxx("boost_context.cpp", "-lboost_context"), "The bare switch of stacks, without a scheduler."),
)

# Tasks and timers of an asynchronous runtime
PEERS.update(
    tokio=Peer(("post", "spawn_local", "post_to", "steal", "ping", "ping_hot", "timer", "timer_cancel", "delay", "skynet", "yield", "chan", "bus", "mixed", "mixed_ui"), *TOKIO,
               "The multi-threaded runtime with T workers; for T=1 the current_thread one where that is quicker (post, spawn_local, ping, ping_hot, yield). A task is a future with a handle and an allocation of its own. post_to is a thread with a runtime of one "
               "thread, whose task runs what comes through an unbounded channel. chan: mpsc; it has one receiver, so that several share it behind Tokio's mutex. "
               "Timers have milliseconds, rounded up; their rate of insertion is that of the first poll of a Sleep, without a task, the lateness "
               "that of a task for each. timer_cancel is Sleep::reset(), which only notes a later time and does not touch the wheel. mixed: hogs by spawn_blocking "
               "limited to T threads, tiny tasks on two workers; for larger computations the manual recommends a pool of another crate. mixed_ui is mixed with a frame clock on a "
               "thread with a runtime of its own, and not the five loads that ours has besides. steal: nothing holds a feeder on its worker, so that it may be stolen as well; "
               "a task counts as stolen that runs on another thread than the one which spawned it. bus is mpsc of 1024 and blocking_send() by threads: no types, priorities or counters."),
)

# Event loops: a loop for each of T threads; who posts has a queue with a lock and wakes the loop by its thread-safe call
LOOP = ("post_to", "ping", "ping_hot", "timer", "timer_cancel")
PEERS.update(
    libuv=Peer(LOOP + ("post", "mixed"), ["libuv1-dev"], "/usr/include/uv.h", cc_peer("peer_uv.c", "-luv"),
               "uv_async_send() wakes a loop; letters go to the last of T loops. In 1.44 the woken loop spins, for 997 pauses at a time, until the sender has left that "
               "call: on the sender's own CPU that is 15 to 30 us of ping. Timers have milliseconds, and can fire up to one early since the loop's clock is "
               "rounded down. post is the thread pool, of T threads; uv_queue_work() belongs to the thread of a loop, so the P producers are loops, and each request "
               "is allocated and has a completion on its loop, which is not part of the time. What runs in the pool cannot post: no spawn_local. "
               "mixed: hogs in the pool, tiny tasks to a loop."),
    libevent=Peer(LOOP, ["libevent-dev"], "/usr/include/event2/event.h", cc_peer("peer_event.c", "-levent_core", "-levent_pthreads"),
                  "event_active() wakes a loop, with its locks on; letters go to the last of T loops. The loops with timers have no locks and "
                  "the precise clock (EVENT_BASE_FLAG_PRECISE_TIMER). Without a thread pool there is nothing like post."),
    libev=Peer(LOOP, ["libev-dev"], "/usr/include/ev.h", cc_peer("peer_ev.c", "-lev"),
               "ev_async_send() wakes a loop; letters go to the last of T loops. A loop waits in milliseconds, which is late by half of one and costs "
               "little CPU. Without a thread pool there is nothing like post."),
)

# The message bus
PEERS.update(
    go_one=Peer(("bus",), *GO, ["go", "build", "-ldflags", "-X main.one=1", "-o", "{out}"] + GO_FILES,
                "Go with everything on one thread, where nothing crosses from CPU to CPU."),
    locked=Peer(("bus",), ["g++"], "/usr/bin/g++", cxx("bus.cpp", "-DPEER_LOCKED"), "A deque with a mutex and two conditions."),
)

# Fork and join
PEERS.update(
    openmp=Peer(("fib", "skynet", "loop"), ["g++"], "/usr/bin/g++", cxx("omp_tasks.cpp", "-fopenmp"),
                "libgomp calls the function where there are 64 tasks for each thread already, which flatters it on one thread."),
    openmp_clang=Peer(("fib", "skynet", "loop"), ["clang", "libomp-dev"], "/usr/lib/llvm-14/lib/libomp.so",
                      ["clang++"] + cxx("omp_tasks.cpp", "-fopenmp")[1:],
                      "The same source with clang's libomp, which has a deque with a lock for each thread and calls the function where it is full."),
)

# oneTBB: tasks from outside and inside, groups, a queue
TBB = (["libtbb-dev"], "/usr/include/tbb/task_group.h")
TBB_SOURCES = ("tbb.cpp", "tbb_pool.cpp", "tbb_tasks.cpp", "bus.cpp")
PEERS.update(
    tbb=Peer(("post", "spawn_local", "ping", "ping_hot", "mixed", "fib", "skynet", "loop", "sort", "bus"), *TBB,
             many(CXX, TBB_SOURCES, "-DPEER_TBB", "-ltbb"),
             "Outside threads enqueue() into a task_arena of T workers; inside, and in fib and skynet, task_group as its manual has it: a group can carry an "
             "exception, ours keeps an error. mixed has two arenas of different priority for T workers: a tiny task waits for the end of a hog, and a worker "
             "more was no better. parallel_sort is not stable and takes no memory. bus is concurrent_bounded_queue: no types, priorities or counters."),
    tbb_context=Peer(("fib", "skynet"), *TBB, many(CXX, TBB_SOURCES, "-DPEER_TBB", "-DPEER_ONE_CONTEXT", "-ltbb"),
                     "oneTBB where all groups share one context, and so one error and one cancellation, which ours do not."),
)

# Asio: one queue for each io_context, timers
PEERS.update(
    asio=Peer(("post", "spawn_local", "post_to", "ping", "ping_hot", "mixed", "skynet", "timer", "timer_cancel", "bus"), ["libasio-dev"], "/usr/include/asio.hpp",
              many(CXX, ("asio.cpp", "asio_pool.cpp", "asio_timer.cpp", "bus.cpp"), "-DPEER_ASIO"),
              "post() to an io_context that T threads run; spawn_local by defer(), which is faster from inside. A named worker, and a loop with timers, is a context with one thread. mixed has two contexts, since one "
              "has no priorities. skynet does not wait in a join: the last child hands the sum on. A cancelled timer still calls its handler, which is part of "
              "timer_cancel. bus is post() bounded by a count: no types, priorities or counters."),
)

# GLib: GThreadPool, GMainContext
POOL, TIMERS = "{here}/peer_pool.c", "{here}/peer_timers.c"
GLIB = ["-isystem", "/usr/include/glib-2.0", "-isystem", "/usr/lib/%s-linux-gnu/glib-2.0/include" % os.uname().machine, "-lglib-2.0"]
PEERS.update(
    glib=Peer(("post", "ping", "ping_hot", "post_to", "mixed", "timer", "timer_cancel"), ["libglib2.0-dev"], "/usr/include/glib-2.0/glib.h",
              cc_peer("peer_glib.c", POOL, TIMERS, *GLIB),
              "An exclusive GThreadPool of T threads, whose tasks are all one function; a named worker is a thread with a GMainContext, which also has the tiny "
              "tasks of mixed. Timers are g_timeout sources: in milliseconds, rounded up, and each turn of the loop looks at all of them, which with "
              "100,000 takes a CPU all the time. Where it is late, that is why."),
)

# Floors: what can be had without a library
PEERS.update(
    locked_pool=Peer(("post", "spawn_local", "ping", "ping_hot", "mixed"), ["gcc"], "/usr/bin/gcc", cc_peer("floor_pool.c", POOL),
                     "A list with a mutex, a condition, and malloc for each task: what one writes in an hour. mixed has two of them.", floor=True),
    lane=Peer(("post", "bus", "chan"), ["gcc"], "/usr/bin/gcc", cc_peer("floor_lane.c"),
              "A ring for each producer with a release store for each slot, and consumers who look all the time: what two CPUs can hand over, 16 bytes of a task, "
              "64 of a message, 8 of a value. Nobody sleeps or is woken. chan is one ring between two threads, or within one; bus has 1024 places in all rings together.",
              floor=True),
    bare_list=Peer(("spawn_local",), ["gcc"], "/usr/bin/gcc", cc_peer("floor_list.c"),
                   "An array of functions and arguments that one thread appends to and then calls: nobody else can take one. T has no meaning here.", floor=True),
    bare_switch=Peer(("yield",), ["libboost-context-dev"], "/usr/share/doc/libboost-context-dev",
                     cxx("boost_context.cpp", "-lboost_context"),
                     "Two stacks that switch to each other directly, by Boost.Context: a yield that asks nobody who is next. T has no meaning here.", floor=True),
    futex=Peer(("ping", "ping_hot"), ["gcc"], "/usr/bin/gcc", cc_peer("floor_futex.c", POOL),
               "One thread asleep in futex(), woken for each question: the wake of the kernel, without a queue. T has no meaning here.", floor=True),
    spin=Peer(("ping_hot",), ["gcc"], "/usr/bin/gcc", cc_peer("floor_futex.c", POOL, "-DPEER_SPIN"),
              "One thread that looks at a word all the time: what the memory of two CPUs takes, at the price of a CPU. T has no meaning here.", floor=True),
    raw_timer=Peer(("timer", "timer_cancel"), ["gcc"], "/usr/bin/gcc", cc_peer("floor_timer.c", TIMERS),
                   "A binary heap for each thread and a wait in epoll_pwait2() until its first moment: exact, at the price of a wait for each timer.", floor=True),
)

SERVERS = {
    "libuv": Server(["libuv1-dev"], "/usr/include/uv.h", cc("echo_uv.c", "-luv"), 1, "Callbacks, a loop of one thread."),
    "libevent": Server(["libevent-dev"], "/usr/include/event2/event.h", cc("echo_event.c", "-levent_core"), 1,
                       "Plain events without locks, a loop of one thread; the program reads and writes by itself."),
    "libev": Server(["libev-dev"], "/usr/include/ev.h", cc("echo_ev.c", "-lev"), 1,
                    "Watchers of one loop, one thread; the program reads and writes by itself."),
    "asio": Server(["libasio-dev"], "/usr/include/asio.hpp", cxx("echo_asio.cpp"), 256, "Callbacks on an io_context with T threads."),
    "go": Server(*GO, ["go", "build", "-o", "{out}", "{here}/echo.go"], 256, "A goroutine for each connection."),
    "tokio": Server(*TOKIO, 256, "A task for each connection on the runtime with T threads."),
    "raw_uring": Server(["liburing-dev"], "/usr/include/liburing.h", CC + ["-o", "{out}", "{here}/echo_uring.c", "-luring"], 1,
                        "Bare io_uring, one thread: multishot accept and receive, buffers of the ring, one system call for all that has come.", True),
}
CRATE = """[package]
name = "{name}"
version = "0.0.0"
edition = "2021"
[[bin]]
name = "{name}"
path = "{here}/{name}.rs"
[dependencies]
libc = "0.2"
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
    """Path of its program, or None with a word why not. A crate is named as its source is: echo_tokio.rs, peer_tokio.rs."""
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
        write_crate(crate_of(name), out + ".crate")
    subprocess.run([part.format(out=out, here=HERE) for part in peer.command], check=True, env=environment, stdout=sys.stderr, cwd=folder)
    if "cargo" in peer.packages:
        shutil.copy(os.path.join(out + ".target/release", crate_of(name)), out)
    return out


def crate_of(name):
    return name if name.startswith("echo_") else "peer_" + name


def write_crate(name, folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "Cargo.toml"), "w", encoding="utf-8") as file:
        file.write(CRATE.format(name=name, here=HERE))
    with open(os.path.join(os.path.dirname(folder), ".cargo-config.toml"), "w", encoding="utf-8") as file:
        file.write(CRATES_OF_DEBIAN)
