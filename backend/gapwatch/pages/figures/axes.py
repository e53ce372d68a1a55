"""What axes of several figures share: values as a column at the right of names, and dates in the one format."""

from __future__ import annotations

from typing import Any

# An axis without a trace on it is not drawn.
ANCHOR = {"x": [None], "y": [0], "yaxis": "y2", "hoverinfo": "skip", "type": "scatter"}


def right_column(names: dict[str, Any], ticks: list[str], size: int, colour: str) -> dict[str, Any]:
    """The axis of the names again, with other words, on the other side."""
    return names | {
        "ticktext": ticks,
        "overlaying": "y",
        "side": "right",
        "fixedrange": True,
        "ticks": "",
        "ticklabelstandoff": 6,
        "zeroline": False,
        "showline": False,
        "tickfont": {"size": size, "color": f"var(--{colour})"},
    }


def time_ticks() -> list[dict[str, Any]]:
    """The date format of the pages, 2 Nov, with hours or the year where ticks are that close or far apart."""
    day_ms = 24 * 3600 * 1000
    return [
        {"dtickrange": [None, day_ms - 1], "value": "%H:%M\n%-d %b"},
        {"dtickrange": [day_ms, "M1"], "value": "%-d %b"},
        {"dtickrange": ["M1", None], "value": "%-d %b\n%Y"},
    ]
