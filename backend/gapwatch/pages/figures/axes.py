"""What figures with names at the left share: values as a column at the right."""

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
