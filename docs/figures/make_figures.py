"""Draws the figures of docs/statistics.md and docs/rollout.md with the product's own code.

    .venv/bin/python docs/figures/make_figures.py

Seeded: the same figures every time. `accuracy.svg` shows the last `make bench-attribution`, if there was one.
"""

from __future__ import annotations

from pathlib import Path

import causes
import changes
import gates
import rates


def main() -> None:
    for module in (rates, causes, changes, gates):
        for name in dir(module):
            if name.startswith("draw_"):
                picture = getattr(module, name)()
                if picture is not None:
                    (Path(__file__).parent / f"{name.removeprefix('draw_')}.svg").write_text(picture)


if __name__ == "__main__":
    main()
