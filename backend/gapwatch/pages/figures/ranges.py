"""Randomised ranges with what was measured, a line a parameter, each in widths of its own range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gapwatch.answers.ranges import ParameterAnswer, RangeMeasurement
from gapwatch.pages.figures.axes import ANCHOR, right_column
from gapwatch.pages.figures.text import bold, plain, short

MOST_PARAMETERS = 24
ROW_HEIGHT, FRAME_HEIGHT = 30, 76
# In widths of the range: what lies farther out is drawn at the edge.
FARTHEST = 1.0
# What a margin can hold.
SHORT = {"declared, not applied": "not applied"}
ALARMING = ("outside", "declared, not applied")


def drawn_parameters(parameters: Sequence[ParameterAnswer]) -> list[ParameterAnswer]:
    """Those with a range; the others have nothing to be drawn on."""
    return [one for one in parameters if _width(one) > 0][:MOST_PARAMETERS]


def height(parameters: Sequence[ParameterAnswer]) -> int:
    return FRAME_HEIGHT + ROW_HEIGHT * len(parameters)


def ranges_figure(parameters: Sequence[ParameterAnswer]) -> dict[str, Any]:
    rows = list(enumerate(parameters))
    ticks = [float(row) for row, _ in rows]
    axis = {"range": [len(rows) - 0.4, -0.7], "tickvals": ticks, "showgrid": False}
    names = [f"<b>{short(one.name)}</b>" if one.verdict in ALARMING else short(one.name) for _, one in rows]
    values = [f"<b>{_word(one)}</b>" if one.verdict in ALARMING else _word(one) for _, one in rows]
    measured = [(row, one, each) for row, one in rows for each in one.measured]
    return {
        "data": [
            *(_range_line(row, one) for row, one in rows),
            _marks([mark for mark in measured if mark[2].verdict != "outside"], "var(--real)", "circle"),
            _marks([mark for mark in measured if mark[2].verdict == "outside"], "var(--alarm)", "diamond"),
            ANCHOR,
        ],
        "layout": {
            "margin": {"l": 190, "r": 150, "t": 14, "b": 46},
            "xaxis": {
                "range": [-FARTHEST - 0.08, 1 + FARTHEST + 0.08],
                "tickvals": [0, 1],
                "ticktext": ["low end", "high end"],
                "tickangle": 0,
                "title": {"text": "the range that was randomised"},
            },
            "yaxis": axis | {"ticktext": names},
            "yaxis2": right_column(axis, values, 12, "ink-2"),
        },
        "narrow": {
            "layout.margin.l": 112,
            "layout.margin.r": 92,
            "layout.xaxis.range": [-0.75, 1.75],
            "layout.xaxis.ticktext": ["low", "high"],
        },
    }


def _range_line(row: int, one: ParameterAnswer) -> dict[str, Any]:
    words = (
        f"{bold(one.name)}<br>randomised from {_number(one.low)} to {_number(one.high)} {plain(one.unit or '')}"
    )
    return {
        "x": [0, 1],
        "y": [row, row],
        "mode": "lines",
        "line": {"width": 14, "color": "var(--sim)"},
        "opacity": 0.4,
        "hovertemplate": f"{words}<extra></extra>",
        "type": "scatter",
    }


def _marks(
    marks: Sequence[tuple[int, ParameterAnswer, RangeMeasurement]], colour: str, symbol: str
) -> dict[str, Any]:
    places = [_place(one, each.value) for _, one, each in marks]
    ends = [
        (_place(one, each.interval[0]), _place(one, each.interval[1]))
        if each.interval
        else (_place(one, each.value),) * 2
        for _, one, each in marks
    ]
    return {
        "x": places,
        "y": [row for row, _, _ in marks],
        "mode": "markers",
        "cliponaxis": False,
        "marker": {"size": 9, "symbol": symbol, "color": colour},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "thickness": 3,
            "width": 0,
            "color": colour,
            "array": [high - place for (_, high), place in zip(ends, places, strict=True)],
            "arrayminus": [place - low for (low, _), place in zip(ends, places, strict=True)],
        },
        "hovertext": [_hover(one, each) for _, one, each in marks],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "type": "scatter",
    }


def _hover(one: ParameterAnswer, each: RangeMeasurement) -> str:
    where = ", ".join(word for word in (each.robot, each.site) if word)
    bounds = f" [{_number(each.interval[0])}, {_number(each.interval[1])}]" if each.interval else ""
    n = f"<br>n {each.n}" if each.n is not None else ""
    unit = f" {plain(one.unit)}" if one.unit else ""
    return f"{bold(one.name)}: {_number(each.value)}{bounds}{unit}<br>{plain(each.source)} {plain(where)}{n}"


def _word(one: ParameterAnswer) -> str:
    return SHORT.get(one.verdict, one.verdict)


def _width(one: ParameterAnswer) -> float:
    return 0.0 if one.low is None or one.high is None else one.high - one.low


def _place(one: ParameterAnswer, value: float) -> float:
    """In widths from the low end; cut where it lies far out."""
    return min(max((value - (one.low or 0.0)) / _width(one), -FARTHEST), 1 + FARTHEST)


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"
