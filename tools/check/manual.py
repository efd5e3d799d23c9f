# SPDX-License-Identifier: MIT
"""Man pages say what the headers say: each function of the headers named here has a page, with the header's own prototype."""
import re

from files import code_of, files, line_of, read
from text import declarations

COMPLETE = tuple("include/rophive/%s.h" % name for name in ("core", "fiber", "io", "op", "process", "sync", "tls", "dns", "glib", "bus", "cancel", "group", "flow", "graph", "strand", "tune", "ui"))  # each of their functions has a page


def squeeze(words):
    return re.sub(r"\s*\*\s*", " *", re.sub(r"\s+", " ", words)).strip()


def prototype(text):
    """(name, "type name(parameter, parameter)") of a declaration in a header."""
    head = code_of(re.sub(r"\bHIVE_CHECKED\b", " ", text))
    result, name, parameters = re.match(r"(?s)(.*?)\b(hive_\w+)\s*\((.*)\)", head).groups()
    parameters = ", ".join(squeeze(parameter) for parameter in parameters.split(","))
    return name, "%s %s(%s)" % (squeeze(result), name, parameters)


def declared():
    """name: (path, line, prototype), of all public headers."""
    found = {}
    for path in files(["include"], (".h",)):
        content = read(path)
        for offset, kind, text in declarations(content):
            if kind == "function":
                name, whole = prototype(text)
                found[name] = (path, line_of(content, offset), whole)
    return found


def described(content):
    """(line, prototype, name) of each function in a page's synopsis."""
    found = []
    pattern = r'^\.Ft ("?)(.*?)\1\n\.Fo (\w+)\n((?:\.Fa .*\n)+)\.Fc$'
    for match in re.finditer(pattern, content, re.M):
        _, result, name, arguments = match.groups()
        arguments = ", ".join(squeeze(a) for a in re.findall(r'^\.Fa "?(.*?)"?$', arguments, re.M))
        found.append((line_of(content, match.start()), "%s %s(%s)" % (squeeze(result), name, arguments), name))
    return found


def manual():
    functions, pages = declared(), {}
    for path in files(["docs"], (".3",)):
        content = read(path)
        named = re.findall(r"^\.Nm (hive_\w+)", content.split("\n.Sh SYNOPSIS")[0], re.M)
        told = described(content)
        if sorted(named) != sorted(name for _, _, name in told):
            yield path, 1, "NAME and SYNOPSIS do not have the same functions"
        for line, whole, name in told:
            pages[name] = path
            if name not in functions:
                yield path, line, "%s is in no header" % name
            elif functions[name][2] != whole:
                yield path, line, "in the header it is: %s" % functions[name][2]
    for name, (path, line, _) in functions.items():
        if path in COMPLETE and name not in pages:
            yield path, line, "%s has no man page (docs/man)" % name


def options():
    """Each long option of the tool stands in its page."""
    page = "\n".join(read(path) for path in files(["docs"], ("hive.1",)))
    for path in files(["bench", "tools"], (".c",)):
        content = read(path)
        for match in re.finditer(r'^\t\{ "([a-z-]+)", (?:required|no)_argument, ', content, re.M):
            if not re.search(r"Fl -%s\b(?!-)" % match.group(1), page):
                yield path, line_of(content, match.start()), "--%s is not in docs/man/hive.1" % match.group(1)


RULES = {"manual": manual, "options": options}
