# SPDX-License-Identifier: MIT
"""What may include and use what: the layers of ARCHITECTURE.md, and the single doors to atomics, threads, memory."""
import os
import re

from files import c_files, code_of, line_of, read

UPPER = {"fiber", "sync", "io", "process", "bus", "group", "strand", "graph", "tls", "ui"}  # layer 4, public names of the same
LOW = {"task", "time", "error"}  # layer 0
ANY = None

# folder of src: (folders and single headers of src that it may include, public headers that it may include)
MAY_INCLUDE = {
    "base": ({"base"}, LOW),
    "queue": ({"queue", "base"}, LOW | {"source", "op", "core", "timer"}),  # the timer heap; a core never sees a timer
    "core": ({"core", "base"}, LOW | {"source", "op", "core"}),
    "sched": ({"sched", "queue", "base"}, "not upper"),
    "sim": ({"sim", "sched", "queue", "base"}, "not upper"),
    "fiber": ({"fiber", "base", "sched/guest.h", "sched/parcel.h", "sched/state.h"}, ANY),
    # Strands and graphs are guests, which must neither be refused nor lost, and who joins one waits as fibers do. A fork costs a few nanoseconds:
    # groups see the worker, by one header.
    "group": ({"group", "fiber", "base", "sched/guest.h", "sched/state.h", "sched/team.h"}, ANY),
    "sync": ({"sync", "fiber", "base"}, ANY),
    "io": ({"io", "fiber", "base", "sched/guest.h", "sched/parcel.h", "sched/state.h"}, ANY),
    "bus": ({"bus", "base", "queue"}, LOW | {"bus"}),
    "ui": ({"ui", "base", "sched/guest.h"}, ANY),
    "edge": ({"edge", "base"}, ANY),  # libraries of their own
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def includes(path):
    code = code_of(read(path))
    for match in INCLUDE.finditer(code):
        yield line_of(code, match.start()), match.group(1), match.group(2)


def public_name(header):
    return header[len("rophive/") : -len(".h")] if header.startswith("rophive/") else None


# One file of a folder that connects it with more.
DOORS = {
    "src/sync/ends.c": ({"group/enlist.h"}, set()),
    "src/bus/home_hive.c": ({"fiber/wait.h", "sched/guest.h", "sched/state.h"}, {"worker"})}


def source_offence(path, folder, quote, header):
    """Why this file in src/<folder> may not include this; None: it may."""
    inside, public = MAY_INCLUDE[folder]
    if path in DOORS:
        inside, public = inside | DOORS[path][0], public if public is ANY else public | DOORS[path][1]
    name = public_name(header)
    if name is not None:
        if quote == '"':
            return "public headers are included as <rophive/…>"
        allowed = public is ANY or (name not in UPPER if public == "not upper" else name in public)
        return None if allowed else "src/%s may not include <%s>" % (folder, header)
    if quote == "<":
        return None
    if ".." in header:
        return 'write "folder/file.h", not ".."'
    if "/" not in header or header in inside or header.split("/")[0] in inside:
        return None
    return 'src/%s may not include "%s"' % (folder, header)


# What has no public face and is measured all the same.
LOOKS_INSIDE = {"bench/scenario_switch.c": {"fiber/stack.h", "fiber/switch.h"}}


def outside_offence(path, quote, header):
    """tools, bench and examples see public headers and each other's, never src."""
    if quote == "<":
        return None
    if header.startswith("rophive/"):
        return "public headers are included as <rophive/…>"
    if header in LOOKS_INSIDE.get(path, ()):
        return None
    if path.startswith("examples"):
        folder = os.path.dirname(path)  # a bigger example has a folder of its own, with headers
        if folder != "examples" and "/" not in header and os.path.exists(os.path.join(folder, header)):
            return None
        return "an example includes only <rophive/…> and the system's headers"
    places = [os.path.dirname(path), "tools", "bench", "."]
    if ".." not in header and any(os.path.exists(os.path.join(place, header)) for place in places):
        return None
    return 'only <rophive/…> and headers of tools and bench, not "%s"' % header


def layers():
    for path in c_files("src"):
        folder = path.split(os.sep)[1]
        if folder not in MAY_INCLUDE:
            yield path, 1, "no layer for src/%s: add it to tools/check/layers.py" % folder
            continue
        for line, quote, header in includes(path):
            why = source_offence(path, folder, quote, header)
            if why:
                yield path, line, why
    for path in c_files("tools", "bench", "examples"):
        for line, quote, header in includes(path):
            why = outside_offence(path, quote, header)
            if why:
                yield path, line, why
    for path in c_files("include"):
        for line, quote, header in includes(path):
            name = public_name(header)
            low = os.path.basename(path)[:-2] in LOW
            if quote == '"' or (name is None and not re.match(r"(std\w+|errno)\.h$", header)):
                yield path, line, "a public header includes only <rophive/…> and <std….h>, not %s" % header
            elif name is not None and low and name not in LOW:
                yield path, line, "layer 0 may not include <%s>" % header


def matches(paths, pattern, message):
    pattern = re.compile(pattern)
    for path in paths:
        code = code_of(read(path))
        for match in pattern.finditer(code):
            yield path, line_of(code, match.start()), message % match.group().strip()


def outside_of(paths, *places):
    return [path for path in paths if not path.startswith(places)]


def atomics():
    paths = outside_of(c_files("src", "include"), "src/base/atomic.h")
    names = r"<stdatomic\.h>|\b__(?:atomic|sync)_\w+"
    return matches(paths, names, "%s: src/base/atomic.h is the only door to atomics")


def doors():
    paths = outside_of(c_files("src"), "src/base/")
    # Not after a dot or an arrow: a member may be called free.
    calls = r"\bpthread_\w+|(?<![\w.>])(?:clock_gettime|s?rand|malloc|calloc|realloc|free)(?=\s*\()"
    return matches(paths, calls, "%s: threads, clocks, random numbers and memory come from src/base")


def platforms():
    paths = outside_of(c_files("src"), "src/base/", "src/core/")
    names = r"__linux|__linux__|_WIN32|_WIN64|__APPLE__|__(?:Free|Net|Open)BSD__|__unix__|__GLIBC__|__ANDROID__"
    lines = r"(?m)^[ \t]*#[ \t]*(?:el)?if.*\b(?:%s)\b.*" % names
    return matches(paths, lines, "%s: platforms differ only in src/base and src/core")


RULES = {"layers": layers, "atomics": atomics, "doors": doors, "platforms": platforms}
