"""Several subjects one below the other: success in sim and in real, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gapwatch.answers.drop import DropAnswer, SideValue
from gapwatch.pages.figures.axes import ANCHOR, right_column
from gapwatch.pages.figures.text import bold, short
from gapwatch.pages.words import count, percent, point_interval, points

ROW_HEIGHT, FRAME_HEIGHT = 44, 60


def height(rows: int) -> int:
    return FRAME_HEIGHT + ROW_HEIGHT * rows


def sides_figure(subjects: Sequence[tuple[str, DropAnswer]]) -> dict[str, Any]:
    last = len(subjects) - 1
    names = {
        "range": [last + 0.6, -0.6],
        "tickvals": list(range(len(subjects))),
        "ticktext": [short(name, 26) for name, _ in subjects],
        "showgrid": False,
        "tickfont": {"size": 13},
    }
    values = [_drop(answer) for _, answer in subjects]
    lows = [side.interval[0] for _, answer in subjects for side in (answer.sim, answer.real) if side.interval]
    return {
        "data": [
            _gaps(subjects),
            _marks(subjects, "sim"),
            _marks(subjects, "real"),
            ANCHOR,
        ],
        "layout": {
            "margin": {"l": 190, "r": 150, "t": 8, "b": 42},
            "xaxis": {
                "range": [max(-2.0, 100 * min(lows, default=0.0) - 4), 102],
                "ticksuffix": " %",
                "nticks": 7,
                "title": {"text": "success rate"},
            },
            "yaxis": names,
            "yaxis2": right_column(names, values, 13, "ink"),
        },
        "narrow": {
            "layout.margin.l": 110,
            "layout.margin.r": 56,
            "layout.yaxis.ticktext": [short(name, 14) for name, _ in subjects],
            "layout.yaxis2.ticktext": [value.split("  ")[0] for value in values],
            "layout.xaxis.nticks": 3,
        },
    }


def _drop(answer: DropAnswer) -> str:
    if answer.drop.value is None or answer.drop.interval is None:
        return "–"
    return f"<b>{points(answer.drop.value)}</b>  {point_interval(answer.drop.interval)}"


def _gaps(subjects: Sequence[tuple[str, DropAnswer]]) -> dict[str, Any]:
    x: list[float | None] = []
    y: list[float | None] = []
    for place, (_, answer) in enumerate(subjects):
        if answer.sim.value is not None and answer.real.value is not None:
            x += [100 * answer.real.value, 100 * answer.sim.value, None]
            y += [place, place, None]
    line = {"width": 1, "color": "var(--line-strong)"}
    return {"x": x, "y": y, "mode": "lines", "line": line, "hoverinfo": "skip", "type": "scatter"}


def _marks(subjects: Sequence[tuple[str, DropAnswer]], name: str) -> dict[str, Any]:
    rows: list[tuple[int, str, SideValue]] = [
        (place, label, answer.sim if name == "sim" else answer.real)
        for place, (label, answer) in enumerate(subjects)
    ]
    rows = [row for row in rows if row[2].value is not None]
    values = [100 * (side.value or 0.0) for _, _, side in rows]
    bounds = [side.interval or (side.value or 0.0, side.value or 0.0) for _, _, side in rows]
    return {
        "x": values,
        "y": [place for place, _, _ in rows],
        "mode": "markers",
        "marker": {
            "size": 11,
            "symbol": "circle",
            "color": "var(--surface)" if name == "sim" else "var(--real)",
            "line": {"width": 2.5, "color": f"var(--{name})"},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "thickness": 3,
            "width": 0,
            "color": f"var(--{name})",
            "array": [100 * high - value for (_, high), value in zip(bounds, values, strict=True)],
            "arrayminus": [value - 100 * low for (low, _), value in zip(bounds, values, strict=True)],
        },
        "hovertext": [
            f"{bold(label)}, {name}<br>{percent(side.value or 0.0)} % [{percent(low)}, {percent(high)}]"
            f"<br>n {count(side.n)}"
            for (_, label, side), (low, high) in zip(rows, bounds, strict=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "type": "scatter",
    }
