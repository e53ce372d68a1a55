"""How much one transaction of a worker takes on."""

from __future__ import annotations

import time
from collections.abc import Iterator

FIRST_STEP = 1_000
# Others wait for a step to end: one that takes longer is followed by half as large a one.
LONGEST_STEP_S = 3.0


def growing_steps(most: int) -> Iterator[int]:
    """Sizes that double up to `most`, in episodes.

    Large steps cost least an episode. But whoever always begins with a large one, and is killed before it is done,
    never gets on; by small ones first each life leaves something behind. Nor is it the number alone that takes
    time: where each episode is of a deployment of its own, steps stay small.
    """
    size = min(FIRST_STEP, most)
    while True:
        began = time.monotonic()
        yield size
        size = max(1, size // 2) if time.monotonic() - began > LONGEST_STEP_S else min(2 * size, most)
