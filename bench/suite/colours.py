# SPDX-License-Identifier: MIT
"""A look for each peer, the same in every plot: colours that the colour-blind can tell apart, and a marker and a dash beside the colour.

Each colour has two shades, for light and for dark paper. Plots are drawn with the light ones; within the page they become names of colours
(--peer-3), which the scheme of the reader then sets."""
import collections
import re

# The hue of nobody else is near it.
OURS = ("#d55e00", "#ff8a3d")
FLOOR = ("#767676", "#a6a6a6")
PEERS = (
    ("#0072b2", "#57aee8"),
    ("#00876c", "#2fc79a"),
    ("#b5539b", "#e79bcb"),
    ("#b58900", "#e8c04a"),
    ("#3ba0db", "#9ad6fa"),
    ("#332288", "#a194f2"),
    ("#117733", "#62c076"),
    ("#882255", "#dc76a8"),
    ("#8a8a2b", "#cbcb66"),
    ("#88594b", "#cfa594"),
)
MARKERS = "sD^vP*XhH<>pd"
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))

INK, MUTED, GRID, PAPER = "#1b1b1b", "#5a5a5a", "#d9d9d8", "#fefefe"

Look = collections.namedtuple("Look", "colour marker dash width size layer")


def looks(results):
    """peer: Look"""
    found, peers, floors = {}, 0, 0
    for name in results.order:
        role = results.role(name)
        if role == "ours":
            found[name] = Look(OURS[0], "o", "-", 3.2, 8, 10)
        elif role == "ours too":
            found[name] = Look(OURS[0], "o", DASHES[2], 2, 5, 9)
        elif role == "floor":
            found[name] = Look(FLOOR[0], "_", DASHES[1 + floors % 3], 1.6, 6, 1)
            floors += 1
        else:
            dash = DASHES[peers // len(PEERS) % len(DASHES)]
            found[name] = Look(PEERS[peers % len(PEERS)][0], MARKERS[peers % len(MARKERS)], dash, 1.6, 5, 5)
            peers += 1
    return found


def named():
    """[(name of the colour, light, dark)]"""
    pairs = [("--peer-ours", *OURS), ("--peer-floor", *FLOOR)]
    return pairs + [("--peer-%d" % index, *pair) for index, pair in enumerate(PEERS, 1)]


NAMES = {light: "var(%s)" % name for name, light, _ in named()}
NAMES.update({INK: "currentColor", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "none"})


def for_page(svg):
    """The picture as a part of a page: no prolog, no namespaces, colours by name."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.S)  # the style would be the whole page's
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    return re.sub(r"#[0-9a-f]{6}\b", lambda match: NAMES.get(match.group(), match.group()), svg)
