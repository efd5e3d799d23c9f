# SPDX-License-Identifier: MIT
"""The files of the tree, and C text without its comments and strings."""
import functools
import os
import re


def files(folders, endings):
    """Paths below the folders (those that exist) with one of the endings, sorted."""
    found = []
    for folder in folders:
        for place, below, names in os.walk(folder):
            below[:] = sorted(name for name in below if name != "__pycache__")
            found += [os.path.join(place, name) for name in sorted(names) if name.endswith(endings)]
    return found


def c_files(*folders):
    return files(folders, (".c", ".h"))


@functools.lru_cache(maxsize=None)
def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def line_of(content, offset):
    return content.count("\n", 0, offset) + 1


_PIECES = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_of(content):
    """The text with comments and strings turned into blanks; lines and columns stay. #include "x" is kept."""

    def blank(match):
        if match.group()[0] == '"':
            start = content.rfind("\n", 0, match.start()) + 1
            if re.match(r"\s*#\s*include", content[start : match.start()]):
                return match.group()
        return re.sub(r"[^\n]", " ", match.group())

    return _PIECES.sub(blank, content)


def comments_of(content):
    """(offset, text) of each comment; text is one line: stars and line ends inside are gone."""
    for match in _PIECES.finditer(content):
        if match.group().startswith(("/*", "//")):
            inner = re.sub(r"^/[*/]+|\*/$", "", match.group())
            yield match.start(), re.sub(r"\s*\n\s*\*?\s*", " ", inner).strip()
