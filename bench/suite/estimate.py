# SPDX-License-Identifier: MIT
"""What a handful of rounds says: median, spread, and how far the truth may be from it.

Samples of a benchmark are skewed and have outliers, so nothing here assumes a normal distribution. The interval of a median is made of order
statistics: between the k-th smallest and the k-th largest value the true median lies with a chance that the binomial distribution gives
exactly. The interval of a ratio of two medians is a bootstrap over rounds: rounds are drawn with replacement, the same ones for both sides, since
what else the machine did in a round befell both; then the middle 95 % of the ratios. The draws have a fixed seed: same samples, same
interval. Below five rounds no such interval means 95 %; there it is the widest that the samples allow."""
import collections
import functools
import math
import random
import statistics

CONFIDENCE = 0.95
DRAWS = 2000
FEW_ROUNDS = 5

METHOD = (
    "Each figure is the median over the rounds, each round a fresh process, everybody in turns. The spread is the middle half of the rounds. The interval of a "
    "median lies between two of the sorted rounds and holds the true median in 95 % of all cases, whatever the distribution (with fewer than six rounds: from "
    "the least to the greatest, which is less than 95 %). The interval of a ratio is the middle 95 % of what 2,000 redrawn sets of rounds give, the same rounds "
    "for both sides, with a fixed seed; with fewer than five rounds it reaches from the least ratio that any two samples have to the greatest. A target is met "
    "when the whole interval meets it, missed when the whole interval misses it, and otherwise not shown."
)

# middle: the median; low, high: its interval; q1, q3: the middle half; variance and deviation (its root, as a share of the mean) over the rounds
Estimate = collections.namedtuple("Estimate", "count middle low high q1 q3 variance deviation")
# low and high are None when there is only one round
Ratio = collections.namedtuple("Ratio", "middle low high")


def finite(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


@functools.lru_cache(maxsize=None)
def interval_rank(count):
    """How many values lie outside on each side: the most for which the rest still has the confidence; 0 when not even all have."""
    outside, rank = 0.0, 0
    while rank < (count - 1) // 2:
        outside += 2 * math.comb(count, rank) / 2**count
        if outside > 1 - CONFIDENCE:
            break
        rank += 1
    return max(rank - 1, 0)


def quantile(ordered, share):
    """Between the two neighbours, as statistics.quantiles(method="inclusive")."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def estimate(values):
    """None when there is no value."""
    ordered = sorted(values)
    if not ordered:
        return None
    count, rank = len(ordered), interval_rank(len(ordered))
    variance = statistics.variance(ordered) if count > 1 else 0.0
    mean = statistics.fmean(ordered)
    deviation = math.sqrt(variance) / abs(mean) if mean else 0.0
    low, high = ordered[rank], ordered[count - 1 - rank]
    return Estimate(count, statistics.median(ordered), low, high, quantile(ordered, 0.25), quantile(ordered, 0.75), variance, deviation)


@functools.lru_cache(maxsize=None)
def redrawn_rounds(count, salt):
    """The same lists of rounds for everybody; another salt: other lists."""
    source = random.Random("rounds %d %d" % (count, salt))
    return [source.choices(range(count), k=count) for _ in range(DRAWS)]


@functools.lru_cache(maxsize=4096)
def redrawn_medians(values, salt):
    half, odd = len(values) // 2, len(values) % 2
    medians = []
    for rounds in redrawn_rounds(len(values), salt):
        drawn = sorted([values[index] for index in rounds])
        medians.append(drawn[half] if odd else (drawn[half - 1] + drawn[half]) / 2)
    return medians


def ratio(ours, theirs, paired=True):
    """Median of ours by median of theirs. paired: ours[i] and theirs[i] are of one round. None when theirs is not above zero throughout."""
    if not ours or not theirs or min(theirs) <= 0:
        return None
    middle = statistics.median(ours) / statistics.median(theirs)
    fewest = min(len(ours), len(theirs))
    if fewest < 2:
        return Ratio(middle, None, None)
    if fewest < FEW_ROUNDS:
        corners = [one / other for one in (min(ours), max(ours)) for other in (min(theirs), max(theirs))]
        return Ratio(middle, min(corners), max(corners))
    tops = redrawn_medians(tuple(ours), 0)
    bottoms = redrawn_medians(tuple(theirs), 0 if paired and len(ours) == len(theirs) else 1)
    ratios = sorted(top / bottom for top, bottom in zip(tops, bottoms))
    tail = int((1 - CONFIDENCE) / 2 * DRAWS)
    return Ratio(middle, ratios[tail], ratios[DRAWS - 1 - tail])
