# SPDX-License-Identifier: MIT
"""Where we are, on stderr: one line that is written over on a terminal, a line for each row elsewhere."""
import sys
import time


def clock(seconds):
    return "%d:%02d" % divmod(round(seconds), 60)


class Progress:
    def __init__(self, parts, samples, out=sys.stderr):
        """parts: rows and growths; samples: how many there will be."""
        self.parts, self.samples, self.out = parts, samples, out
        self.part = self.done = 0
        self.begin = time.monotonic()
        self.live = out.isatty()
        self.last = ""

    def left(self):
        """By the samples so far, whatever they were: a guess."""
        if not self.done:
            return "?"
        return clock((time.monotonic() - self.begin) / self.done * max(self.samples - self.done, 0))

    def next_part(self, name, samples):
        """samples: how many this one has."""
        self.part += 1
        self.expected = self.done + samples
        self.name = name
        if not self.live:
            self.say("row %d of %d: %s, %d samples, about %s left" % (self.part, self.parts, name, samples, self.left()))

    def sample(self, peer, turn, turns):
        """One begins; turn 0 is the warm-up."""
        self.done += 1
        if self.live:
            word = "round %d of %d" % (turn, turns) if turn else "warm-up"
            self.out.write("\r\033[Krow %d of %d: %s, %s, %s, %s left" % (self.part, self.parts, self.name, peer, word, self.left()))
            self.out.flush()

    def end_part(self):
        self.done = self.expected  # those of who failed will not come

    def say(self, text):
        self.out.write(("\r\033[K" if self.live else "") + text + "\n")
        self.out.flush()

    def end(self):
        if self.live:
            self.out.write("\r\033[K")
            self.out.flush()
