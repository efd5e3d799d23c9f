# SPDX-License-Identifier: MIT
"""Size, layout, and the comments that carry meaning: thread rules and partners of memory orderings."""
import collections
import os
import re
import shutil
import subprocess

from files import c_files, code_of, comments_of, files, line_of, read

CODE = ("src", "include", "tools", "bench", "tests", "examples")
FILE_LINES = {"src": 500, "include": 500, "tools": 500, "bench": 500, "tests": 600, "examples": 500}
FUNCTION_LINES = 80
SCRIPTS = ("bench/suite/run", "bench/suite/selftest", "tools/check/check", "tools/check/misra", "tools/check/selftest", "scripts/setup", "scripts/test", "scripts/test-long", ".ci/run")
THREAD_RULE = re.compile(r"(Any thread|May wait|Worker thread|Owner thread|Foreign thread|Before run|Fiber)\b")
TAG = r"[A-Z]+-[0-9]+"


def sizes():
    for folder in CODE:
        for path in files([folder], (".c", ".h", ".py", ".S", ".cc", ".cpp")):
            count = read(path).count("\n")
            if count > FILE_LINES[folder]:
                yield path, count, "%d lines, at most %d" % (count, FILE_LINES[folder])


def functions():
    for path in c_files(*CODE):
        start = None
        for number, line in enumerate(read(path).split("\n"), 1):
            if line == "{":
                start = number
            elif line.startswith("}") and start:
                if number - start - 1 > FUNCTION_LINES:
                    yield path, start, "a function of %d lines, at most %d" % (number - start - 1, FUNCTION_LINES)
                start = None


def pairs():
    """TAG (pairs with OTHER …) needs, somewhere else, OTHER (pairs with … TAG …)."""
    partners = collections.defaultdict(list)  # tag: [(path, line, {partners})]
    for path in c_files("src", "include"):
        content = read(path)
        for offset, comment in comments_of(content):
            line = line_of(content, offset)
            found = re.findall(r"(%s) \(pairs with ([^)]*)\)" % TAG, comment)
            if len(found) != comment.count("pairs with"):
                yield path, line, 'write it as "TAG-1 (pairs with OTHER-2)"'
            for tag, others in found:
                partners[tag].append((path, line, set(re.findall(TAG, others))))
    for tag, places in partners.items():
        for path, line, others in places:
            if not others:
                yield path, line, "%s pairs with no tag" % tag
            for other in sorted(others):
                back = [place for place in partners.get(other, []) if tag in place[2] and place[:2] != (path, line)]
                if not back and other != tag:  # one step that several threads do may pair with itself
                    yield path, line, "%s pairs with %s, which does not pair with it" % (tag, other)


ORDER = re.compile(r"\b(?:load|store|exchange|add|sub|or|and|cas)_(?:acquire|release|acq_rel|seq)\(")
NEAR = 3  # lines


def orders():
    """An order stronger than relaxed has a tag in a comment beside it, above or below; its partner may be told elsewhere in the file."""
    for path in c_files("src"):
        content, code = read(path), code_of(read(path))
        if path == "src/base/atomic.h":
            continue
        known = set(re.findall(r"(%s) \(pairs with" % TAG, content))
        tagged = {line_of(content, match.start()) for match in re.finditer(TAG, content)
                  if match.group() in known and code[match.start()].isspace()}
        for match in ORDER.finditer(code):
            line = line_of(content, match.start())
            if not tagged.intersection(range(line - NEAR, line + NEAR + 1)):
                yield path, line, "%s…) names no partner: TAG-1 (pairs with OTHER-2)" % match.group()


def declarations(content):
    """(offset, kind, text) at the top level of a header: comments on lines of their own, functions, the rest."""
    dull = r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|\bHIVE_(?:BEGIN|END)\b"  # preprocessor lines; extern "C"
    code = re.sub(dull, lambda match: re.sub(r"[^\n]", " ", match.group()), code_of(content))
    found = []
    for offset, text in comments_of(content):
        if not content[content.rfind("\n", 0, offset) + 1 : offset].strip():
            found.append((offset, "comment", text))
    depth, start = 0, 0
    for match in re.finditer(r"[{};]", code):
        depth += {"{": 1, "}": -1, ";": 0}[match.group()]
        statement = code[start : match.end()]
        # A statement ends with a semicolon, or with the brace of a function's body.
        if depth or (match.group() == "}" and not re.search(r"\)\s*\{", statement)):
            continue
        head = statement.split("{")[0].strip()
        if re.search(r"\bhive_\w+\s*\(", head) and not head.startswith("typedef"):
            found.append((start + len(statement) - len(statement.lstrip()), "function", head))
        else:
            found.append((match.end(), "other", head))  # its end: the comments inside a struct come before that
        start = match.end()
    return sorted(found)


def threads():
    """Each public function stands below a comment that begins with its thread rule; several may share one."""
    for path in c_files("include"):
        content, rule = read(path), ""
        for offset, kind, text in declarations(content):
            if kind == "comment":
                rule = text
            elif kind == "other":
                rule = ""
            elif not THREAD_RULE.match(rule):
                name = re.search(r"\bhive_\w+(?=\s*\()", text).group()
                yield path, line_of(content, offset), "the comment above %s does not begin with its thread rule" % name


def whitespace():
    endings = (".c", ".h", ".py", ".md", ".1", ".3", ".S", ".map", ".sh", ".cmake", ".txt", ".in")
    paths = files(CODE + ("docs", "scripts", "cmake"), endings)
    paths += [p for p in sorted(os.listdir(".")) + list(SCRIPTS) if os.path.isfile(p)]
    for path in paths:
        content = read(path)
        for number, line in enumerate(content.split("\n"), 1):
            if line != line.rstrip():
                yield path, number, "white space at the end of the line"
        if content and not content.endswith("\n"):
            yield path, content.count("\n") + 1, "no newline at the end of the file"


def layout():
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not tool:
        yield "Makefile", 1, "clang-format-14 is missing: scripts/setup check"
        return
    paths = c_files(*CODE)
    for path in paths:
        content = read(path)
        for match in re.finditer(r"(?m)^enum.*\{[ \t]*/\*", content):
            yield path, line_of(content, match.start()), "clang-format 14 cannot lay this out: put the comment above"
    if not paths:
        return
    output = subprocess.run([tool, "--style=file", "--dry-run"] + paths, capture_output=True, text=True).stderr
    first = {}
    for path, line in re.findall(r"(?m)^(\S+?):(\d+):\d+: warning", output):
        first.setdefault(path, int(line))  # one line per file: "make format" cures them all
    for path, line in first.items():
        yield path, line, 'not as clang-format would lay it out ("make format" does)'


def readmes():
    folders = sorted(entry.path for entry in os.scandir("src") if entry.is_dir()) if os.path.isdir("src") else []
    for folder in folders:
        if not os.path.exists(os.path.join(folder, "README.md")):
            yield folder + "/README.md", 1, "missing: each folder of src says what it is for"


RULES = {
    "sizes": sizes,
    "functions": functions,
    "pairs": pairs,
    "orders": orders,
    "threads": threads,
    "whitespace": whitespace,
    "layout": layout,
    "readmes": readmes,
}
