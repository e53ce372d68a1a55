"""How much one transaction of a worker takes on."""

from __future__ import annotations

from collections.abc import Iterator

FIRST_STEP = 1_000


def growing_steps(most: int) -> Iterator[int]:
    """Sizes that double up to `most`, in episodes.

    Large steps cost least an episode. But whoever always begins with a large one, and is killed before it is done,
    never gets on; by small ones first each life leaves something behind.
    """
    size = min(FIRST_STEP, most)
    while True:
        yield size
        size = min(2 * size, most)
