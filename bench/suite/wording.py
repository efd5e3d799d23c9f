# SPDX-License-Identifier: MIT
"""Figures as people read them: three digits and a unit."""
import math

STEPS = {
    "1/s": ((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1, "/s")),
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")),
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")),
    "": ((1, ""),),
}
NONE = "–"


def digits(value):
    """Three digits that count; all of those before the point."""
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(float("%.2e" % value))))
    if size >= 6 or size < -4:
        return "%.2e" % value
    text = "%.*f" % (max(0, 2 - size), value)
    return "{:,}".format(int(text)) if size >= 4 else text


def step_of(value, unit):
    steps = STEPS.get(unit)
    if steps is None:
        return 1, unit
    for size, name in steps:
        if abs(value) >= size * 0.9995:  # 999.9 k is 1.00 M
            return size, name
    return (1, unit) if unit == "s" and value == 0 else steps[-1]


def amount(value, unit):
    size, name = step_of(value, unit)
    return (digits(value / size) + " " + name).strip()


def span(low, high, unit):
    """12.1–12.5 M/s: one unit, that of the greater."""
    size, name = step_of(max(abs(low), abs(high)), unit)
    return ("%s–%s %s" % (digits(low / size), digits(high / size), name)).strip()


def times(value):
    return digits(value) + " ×"


def times_with_interval(ratio):
    if ratio.low is None:
        return times(ratio.middle) + " (one round)"
    return "%s (%s–%s)" % (times(ratio.middle), digits(ratio.low), digits(ratio.high))


def percent(share):
    return "%.1f %%" % (100 * share)


def counted(number, one, many=None):
    return "%s %s" % ("{:,}".format(number), one if number == 1 else many or one + "s")


def listed(words):
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else ""


def seconds(value):
    return "%d min %d s" % divmod(round(value), 60) if value >= 120 else "%.0f s" % value
