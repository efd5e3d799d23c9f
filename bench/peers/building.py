# SPDX-License-Identifier: MIT
"""The peers' programs: what they need is installed, each is built once, and again when its sources have changed."""
import hashlib
import os
import shutil
import subprocess
import sys

import catalog

HEADERS = (".h", ".hpp", ".hh")


def may_install():
    """As scripts/setup: root, or sudo without a password, unless it is forbidden."""
    if os.environ.get("ROPHIVE_NO_INSTALL") or not shutil.which("apt-get"):
        return False
    if os.geteuid() == 0:
        return True
    return bool(shutil.which("sudo")) and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0


def missing_packages(peers):
    """Of all that lack something, each once."""
    return list(dict.fromkeys(package for peer in peers if not os.path.exists(peer.sign) for package in peer.packages))


def install_missing(peers):
    """One call for all; where that fails (a package that this system does not have), one for each, so that the others have theirs."""
    packages = missing_packages(peers)
    if not packages:
        return
    if not may_install():
        print("not installed, as we may not: %s" % " ".join(packages), file=sys.stderr)
        return
    print("installing %s" % " ".join(packages), file=sys.stderr)
    if try_install(packages):
        return
    for peer in peers:
        if not os.path.exists(peer.sign):
            try_install(peer.packages)


def try_install(packages):
    try:
        catalog.install_packages(packages)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def files_below(path):
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]


def sources(peer):
    """What its command names, and what that may include: all headers that are here, with cargo all that is Rust."""
    named = [part[part.index("{here}") :].format(out="", here=catalog.HERE) for part in peer.command if "{here}" in part]
    endings = HEADERS + ((".rs",) if "cargo" in peer.packages else ())
    shared = [os.path.join(catalog.HERE, name) for name in os.listdir(catalog.HERE) if name.endswith(endings)]
    return sorted({path for place in named + shared for path in files_below(place) if os.path.exists(path)})


def digest(peer):
    """Of its command, its sources and the library that it is built with."""
    seen = hashlib.sha256(repr((peer.command, os.path.getmtime(peer.sign))).encode())
    for path in sources(peer):
        with open(path, "rb") as file:
            seen.update(path.encode() + file.read())
    return seen.hexdigest()


def build(name, peer):
    """(path of its program, "") or (None, why there is none)."""
    if not os.path.exists(peer.sign):
        return None, "no %s (apt-get install %s)" % (peer.sign, " ".join(peer.packages))
    out = os.path.join(catalog.ROOT, "build/peers", name)
    stamp, now = out + ".made", digest(peer)
    if os.path.exists(out) and os.path.exists(stamp):
        with open(stamp, encoding="ascii") as file:
            if file.read() == now:
                return out, ""
    print("building %s" % name, file=sys.stderr)
    try:
        catalog.build(name, peer, False)
    except (OSError, subprocess.CalledProcessError) as error:
        why = "exit %d" % error.returncode if isinstance(error, subprocess.CalledProcessError) else error
        return None, "cannot be built: %s: %s (it takes %s)" % (peer.command[0], why, " ".join(peer.packages))
    with open(stamp, "w", encoding="ascii") as file:
        file.write(now)
    return out, ""


def build_all(wanted, install):
    """wanted: {name: Peer or Server}. ({name: program}, {name: why not}); both in the order of `wanted`."""
    if install:
        install_missing(list(wanted.values()))
    built = {name: build(name, peer) for name, peer in wanted.items()}
    broken = [name for name, (path, _) in built.items() if not path and os.path.exists(wanted[name].sign)]
    if install and broken and may_install():  # a package may be there in part: a header without its library
        if try_install(list(dict.fromkeys(package for name in broken for package in wanted[name].packages))):
            built.update({name: build(name, wanted[name]) for name in broken})
    for name, (path, why) in built.items():
        if not path:
            print("%s is left out: %s" % (name, why), file=sys.stderr)
    return {name: path for name, (path, _) in built.items() if path}, {name: why for name, (path, why) in built.items() if not path}
