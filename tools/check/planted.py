# SPDX-License-Identifier: MIT
"""Mistakes that are planted to show that tests can fail: each part of it must still change the file that it is meant for.
And faults that have a name: there is a list of them."""
import os
import re
import subprocess

from files import c_files, code_of, line_of, read

# file of plants: (column of the file, column of the change for sed, folder in which files lie)
LISTS = {
    "tests/fuzz/mutants.txt": (1, 2, ""),
    "tests/model/mutants.txt": (0, 1, "src"),
    "tests/explore/canaries.txt": (0, 1, "src"),
    "tests/faults/plants.txt": (0, 1, "src"),
}


def place(folder, name):
    """Models plant mistakes in their own programs as well."""
    return os.path.join("tests" if name.startswith("model/") else folder, name)


def behind(text, at, delimiter):
    """The place behind the next delimiter that is not escaped."""
    while at < len(text) and text[at] != delimiter:
        at += 2 if text[at] == "\\" else 1
    return at + 1


def command_end(text, at):
    """Where one command of sed ends: addresses, then s/…/…/, {…} or a word."""
    while text[at : at + 1] in ("/", ",", "!", " ") or text[at : at + 1].isdigit():
        at = behind(text, at + 1, "/") if text[at] == "/" else at + 1
    if text[at : at + 1] == "s":
        at = behind(text, behind(text, at + 2, text[at + 1]), text[at + 1])
    elif text[at : at + 1] == "{":
        at += 1
        while at < len(text) and text[at] != "}":
            at = max(command_end(text, at + 1 if text[at] in "; " else at), at + 1)
        return at + 1
    while at < len(text) and text[at] not in ";}":
        at += 1
    return at


def commands(text):
    at = 0
    while at < len(text):
        if text[at] in "; ":
            at += 1
            continue
        end = max(command_end(text, at), at + 1)
        yield text[at:end]
        at = end


def apply(path, change):
    """What becomes of the file; None: sed does not take it."""
    done = subprocess.run(["sed", change, path], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def is_planted(path, change):
    """All of it: each part makes a difference."""
    whole, parts = apply(path, change), list(commands(change))
    if whole is None or whole == read(path):
        return False
    return len(parts) < 2 or all(
        apply(path, "\n".join(parts[:i] + parts[i + 1 :])) != whole for i in range(len(parts)))


def planted():
    for plants, (file_column, change_column, folder) in LISTS.items():
        if not os.path.exists(plants):
            continue
        for number, line in enumerate(read(plants).splitlines(), 1):
            columns = line.split("\t")
            if line.startswith("#") or len(columns) <= change_column:
                continue
            path = place(folder, columns[file_column])
            if not os.path.exists(path):
                yield plants, number, "there is no %s" % path
            elif not is_planted(path, columns[change_column]):
                yield plants, number, "%s has changed: the mistake is not planted any more" % path


FAULTS = "tests/explore/README.md"


def faults():
    known = read(FAULTS) if os.path.exists(FAULTS) else ""
    for path in c_files("src", "tests/explore"):
        content, code = read(path), code_of(read(path))
        for point in re.finditer(r'\bHIVE_FAULT\("([^"]*)"\)', content):
            if code[point.start()] == "H" and "`%s`" % point.group(1) not in known:  # not in a comment
                yield path, line_of(content, point.start()), "%s does not name `%s`" % (FAULTS, point.group(1))


RULES = {"planted": planted, "faults": faults}
