"""The bound of a candidate's success as a bar: what is certain, what is open, and the limits of counting."""

from __future__ import annotations

from typing import Any

from gapwatch.answers.shadow import ShadowBound
from gapwatch.pages.words import count, percent, percent_interval

HEIGHT = 110


def bound_figure(bound: ShadowBound, sim: float | None) -> dict[str, Any] | None:
    if bound.low is None or bound.high is None or bound.interval is None:
        return None
    low, high = 100 * bound.low, 100 * bound.high
    words = (
        f"between {percent(bound.low)} and {percent(bound.high)} %<br>95 % {percent_interval(bound.interval)}"
        f"<br>n {count(bound.n)}"
    )
    traces: list[dict[str, Any]] = [
        _line(100 * bound.interval[0], 100 * bound.interval[1], 3, "var(--real)", words),
        # Two bounds that are the same are still seen.
        _line(low, max(high, low + 0.3), 16, "var(--real)", words),
    ]
    if sim is not None:
        traces.append(
            {
                "x": [100 * sim],
                "y": [0],
                "mode": "markers",
                "marker": {
                    "size": 11,
                    "color": "var(--surface)",
                    "line": {"width": 2.5, "color": "var(--sim)"},
                },
                "hovertemplate": f"sim {percent(sim)} %<extra></extra>",
                "type": "scatter",
            }
        )
    start = min([100 * bound.interval[0], *([] if sim is None else [100 * sim])])
    return {
        "data": traces,
        "layout": {
            "margin": {"l": 24, "r": 24, "t": 8, "b": 42},
            "xaxis": {
                "range": [max(-1.0, start - 6), 101],
                "ticksuffix": " %",
                "nticks": 7,
                "title": {"text": "success rate"},
            },
            "yaxis": {"range": [-1, 1], "visible": False, "fixedrange": True},
        },
        "narrow": {"layout.xaxis.nticks": 4},
    }


def _line(start: float, end: float, width: int, colour: str, words: str) -> dict[str, Any]:
    return {
        "x": [start, end],
        "y": [0, 0],
        "mode": "lines",
        "line": {"width": width, "color": colour},
        "opacity": 0.55 if width > 3 else 1.0,  # noqa: PLR2004 - the bar shows the line beneath it
        "hovertemplate": f"{words}<extra></extra>",
        "type": "scatter",
    }
