# SPDX-License-Identifier: MIT
"""docs/conformance.md maps each demand to its test: | R-12 | what | tests/dir/file.c:test_name, … |
docs/known-bugs.md maps bugs of others to ours: `tests/dir/file:words`, words that are in this file."""
import os
import re

from files import read

PATH = "docs/conformance.md"
BUGS = "docs/known-bugs.md"
LAST = {"R": 193, "F": 65, "V": 33, "W": 52}
# Demands that are no part of this library yet, or that no test program shows; their row may say so with a dash in place of a test.
ELSEWHERE = {"R-4", "R-5", "R-150", "R-181", "R-187", "R-188", "R-189", "R-190", "V-14", "V-25", "V-27", "V-28", "W-3", "W-44"}


def tests_of(path):
    return set(re.findall(r"(?m)^TEST\((\w+)\)", read(path)))


def cell_offences(demand, cell):
    if re.match(r"[–—-](\s|$)", cell):
        if demand not in ELSEWHERE:
            yield "%s needs a test" % demand
        return
    names = [name.strip(" `") for name in cell.split(",")]
    for name in names:
        match = re.fullmatch(r"(tests/[\w./-]+):(\w+)", name)
        if not match:
            yield '%s: "%s" is not of the form tests/folder/file.c:test_name' % (demand, name)
        elif not os.path.isfile(match.group(1)):
            yield "%s names %s, which does not exist" % (demand, match.group(1))
        elif match.group(2) not in tests_of(match.group(1)):
            yield "%s names TEST(%s), which is not in %s" % (demand, match.group(2), match.group(1))


def conformance():
    demands = ["%s-%d" % (design, number) for design, last in LAST.items() for number in range(1, last + 1)]
    if not os.path.isfile(PATH):
        yield PATH, 1, "missing: it maps demands to their tests"
        return
    seen = {}
    for line, text in enumerate(read(PATH).split("\n"), 1):
        match = re.match(r"\|\s*([A-Z]-\d+)\s*\|", text)
        if not match:
            continue
        demand, cells = match.group(1), text.strip().strip("|").split("|")
        if demand in seen:
            yield PATH, line, "%s has a row already, line %d" % (demand, seen[demand])
        if demand not in demands:
            yield PATH, line, "there is no %s" % demand
        seen[demand] = line
        for message in cell_offences(demand, cells[2].strip() if len(cells) > 2 else ""):
            yield PATH, line, message
    for demand in demands:
        if demand not in seen:
            yield PATH, 1, "%s has no row" % demand


def known_bugs():
    for line, text in enumerate(read(BUGS).split("\n"), 1) if os.path.isfile(BUGS) else ():
        for path, words in re.findall(r"`(tests/[^:`]+):([^`]+)`", text):
            if not os.path.isfile(path):
                yield BUGS, line, "names %s, which does not exist" % path
            elif not re.search(r"\b%s\b" % re.escape(words), read(path)):
                yield BUGS, line, "names %s, which is not in %s" % (words, path)


RULES = {"conformance": conformance, "bugs": known_bugs}
