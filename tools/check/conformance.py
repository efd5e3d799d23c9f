# SPDX-License-Identifier: MIT
"""docs/conformance.md maps each demand to its test: | R-12 | what | tests/dir/file.c:test_name, … |"""
import os
import re

from files import read

PATH = "docs/conformance.md"
LAST = 193
# Demands that are no part of this library yet; their row may say so with a dash in place of a test.
ELSEWHERE = {4, 5, 150, 181, 187, 188, 189, 190}


def tests_of(path):
    return set(re.findall(r"(?m)^TEST\((\w+)\)", read(path)))


def cell_offences(number, cell):
    if re.match(r"[–—-](\s|$)", cell):
        if number not in ELSEWHERE:
            yield "R-%d needs a test" % number
        return
    names = [name.strip(" `") for name in cell.split(",")]
    for name in names:
        match = re.fullmatch(r"(tests/[\w./-]+):(\w+)", name)
        if not match:
            yield 'R-%d: "%s" is not of the form tests/folder/file.c:test_name' % (number, name)
        elif not os.path.isfile(match.group(1)):
            yield "R-%d names %s, which does not exist" % (number, match.group(1))
        elif match.group(2) not in tests_of(match.group(1)):
            yield "R-%d names TEST(%s), which is not in %s" % (number, match.group(2), match.group(1))


def conformance():
    if not os.path.isfile(PATH):
        yield PATH, 1, "missing: it maps R-1 to R-%d to their tests" % LAST
        return
    seen = {}
    for line, text in enumerate(read(PATH).split("\n"), 1):
        match = re.match(r"\|\s*R-(\d+)\s*\|", text)
        if not match:
            continue
        number, cells = int(match.group(1)), text.strip().strip("|").split("|")
        if number in seen:
            yield PATH, line, "R-%d has a row already, line %d" % (number, seen[number])
        if not 1 <= number <= LAST:
            yield PATH, line, "there is no R-%d" % number
        seen[number] = line
        for message in cell_offences(number, cells[2].strip() if len(cells) > 2 else ""):
            yield PATH, line, message
    for number in range(1, LAST + 1):
        if number not in seen:
            yield PATH, 1, "R-%d has no row" % number


RULES = {"conformance": conformance}
