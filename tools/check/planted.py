# SPDX-License-Identifier: MIT
"""Mistakes that are planted to show that tests can fail: each must still change the file that it is meant for."""
import os
import subprocess

from files import read

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


def changes(path, change):
    done = subprocess.run(["sed", change, path], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout != read(path)


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
            elif not changes(path, columns[change_column]):
                yield plants, number, "%s has changed: the mistake is not planted any more" % path


RULES = {"planted": planted}
