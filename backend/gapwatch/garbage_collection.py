"""Python's garbage collector, set for processes that make many short-lived records and hardly a cycle."""

from __future__ import annotations

import gc

# Objects made and not yet freed before the youngest are looked through. A batch or a fold holds some ten thousand
# at once; with Python's 700 it is looked through dozens of times for nothing (a fifth of a fold's time).
YOUNGEST = 50_000


def collect_seldom() -> None:
    """Leave alone what was imported, and look for cycles after many objects. Called once a process has started."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNGEST, 10, 5)
