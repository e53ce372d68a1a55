"""How much one transaction of a worker takes on."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

FIRST_STEP = 250
# Others wait for a step to end: one that takes longer is followed by half as large a one.
LONGEST_STEP_S = 1.0


class Turn:
    """How long a task may keep its worker process: until nothing is due, or until others shall have it.

    Folds, watches and the rest share few processes. A task that went on for as long as something is due would let
    one busy project keep all others waiting; so it stops after its turn, and says whether something may be left.
    """

    def __init__(self, for_s: float = math.inf) -> None:
        self._until = time.monotonic() + for_s
        self.was_cut = False

    def is_over(self) -> bool:
        self.was_cut = self.was_cut or time.monotonic() > self._until
        return self.was_cut


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
