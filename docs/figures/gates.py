"""The figure of docs/rollout.md: what gates let through, by the true drop."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from drawing import GOOD, GREY, INK, REAL, WARN, Plot

# The bench stands beside the package, not in it.
sys.path.insert(0, str(Path(__file__).parents[2]))
from bench import gates

DROPS = (0.20, 0.175, 0.15, 0.125, 0.10, 0.075, 0.05, 0.025, 0.0)
RUNS = 600
COLOURS = (GOOD, WARN, REAL, INK)
# Each beside its line.
LABELS = (
    ("ours: e-process", 0.045, 0.40, "end"),
    ("point estimate", 0.137, 0.78, "start"),
    ("five windows in a row", 0.118, 0.52, "start"),
    ("interval at every look", 0.104, 0.21, "start"),
)


def draw_gates() -> str:
    plot = Plot(
        (0.0, 0.20),
        (0.0, 1.04),
        title="Share of policies that ever pass, looked at after each of 1,000 episodes; margin 10 points",
        x_name="true drop",
        y_name="ever passes",
    )
    plot.ticks((0.0, 0.05, 0.10, 0.15, 0.20), (0.05, 0.5, 1.0), form="{:.0%}", y_form="{:.0%}")
    plot.mark(gates.MARGIN)
    for rule, colour, label in zip(gates.GATES.values(), COLOURS, LABELS, strict=True):
        shares = [float(np.isfinite(gates.passing(rule, drop, RUNS, 1000)).mean()) for drop in DROPS]
        plot.line(list(DROPS), shares, colour)
        words, x, y, anchor = label
        plot.words(x, y, words, colour, anchor)
    plot.words(0.102, 0.98, "worse than the margin: nothing may pass", GREY)
    return plot.svg()
