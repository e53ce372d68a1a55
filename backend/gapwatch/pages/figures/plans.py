"""How promises of plans were kept: the promised width of the interval against the obtained one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gapwatch.pages.figures.text import bold, plain

HEIGHT = 320


def calibration_figure(points: Sequence[Mapping[str, Any]], href: Callable[[int], str]) -> dict[str, Any]:
    """A point a plan that is done, with a link to it; on the diagonal it brought what it promised."""
    promised = [100 * point["predicted"] for point in points]
    largest = 1.1 * max([*promised, *(100 * point["obtained"] for point in points)])
    diagonal = {
        "x": [0, largest],
        "y": [0, largest],
        "mode": "lines",
        "line": {"width": 1, "color": "var(--line-strong)", "dash": "dot"},
        "hoverinfo": "skip",
        "type": "scatter",
    }
    marks = {
        "x": promised,
        "y": [100 * point["obtained"] for point in points],
        "mode": "markers",
        "marker": {"size": 10, "color": ["var(--real)" if point["kept"] else "var(--alarm)" for point in points]},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "thickness": 2,
            "width": 0,
            "color": "var(--ink-3)",
            "array": [100 * point["between"][1] - x for point, x in zip(points, promised, strict=True)],
            "arrayminus": [x - 100 * point["between"][0] for point, x in zip(points, promised, strict=True)],
        },
        "hovertext": [
            f"{bold('plan ' + str(point['id']))}, {plain(point['deployment'])}<br>promised "
            f"{100 * point['predicted']:.1f} points, obtained {100 * point['obtained']:.1f}"
            for point in points
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "customdata": [{"href": href(point["id"])} for point in points],
        "type": "scatter",
    }
    axis = {"range": [0, largest], "ticksuffix": "", "nticks": 6}
    return {
        "data": [diagonal, marks],
        "layout": {
            "margin": {"l": 56, "r": 20, "t": 14, "b": 46},
            "xaxis": axis | {"title": {"text": "promised width, points (80 % range)"}},
            "yaxis": axis | {"title": {"text": "obtained width, points"}},
        },
        "narrow": {"layout.xaxis.nticks": 4},
    }
