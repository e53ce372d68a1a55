"""Real success of each robot and each site, one below the other; one that stands out is marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gapwatch.answers.robots_sites import UnitGroup, UnitRate
from gapwatch.pages.figures.axes import ANCHOR, right_column
from gapwatch.pages.figures.text import bold, short
from gapwatch.pages.words import count, percent, point_interval, points

MOST_UNITS = 24
GROUP_GAP = 1.3
ROW_HEIGHT, FRAME_HEIGHT = 26, 64
HEADS = {"robot": "Robots", "site": "Sites"}


def shown_units(groups: Sequence[UnitGroup]) -> list[tuple[UnitGroup, list[UnitRate]]]:
    """As many of each group as a figure can hold, without those that have few episodes."""
    shown = [(group, [unit for unit in group.units if not unit.few][:MOST_UNITS]) for group in groups]
    return [(group, units) for group, units in shown if units]


def height(shown: Sequence[tuple[UnitGroup, list[UnitRate]]]) -> int:
    return round(FRAME_HEIGHT + ROW_HEIGHT * sum(len(units) + GROUP_GAP for _, units in shown))


def units_figure(
    shown: Sequence[tuple[UnitGroup, list[UnitRate]]], href: Callable[[str, str], str] | None = None
) -> dict[str, Any]:
    """`href` gives the episodes of a robot or a site. The line across a group is the rate of the others."""
    ticks: list[float] = []
    names: list[str] = []
    values: list[str] = []
    placed: list[tuple[float, UnitGroup, UnitRate]] = []
    lines: list[dict[str, Any]] = []
    at = 0.0
    for group, units in shown:
        ticks.append(at)
        names.append(f"<b>{HEADS[group.by]}</b>")
        values.append("")
        for row, unit in enumerate(units):
            place = at + 0.86 + row
            placed.append((place, group, unit))
            ticks.append(place)
            name = short(unit.name, 18)
            names.append(f"<b>{name}</b>" if unit.stands_out else name)
            rate = f"{percent(unit.value)} % · {count(unit.n)}"
            values.append(f"<b>{rate}</b>" if unit.stands_out else rate)
        if group.others is not None:
            x = 100 * group.others.value
            lines.append({"type": "line", "x0": x, "x1": x, "y0": at + 0.4, "y1": at + len(units) + 0.3,
                          "line": {"width": 1, "color": "var(--line-strong)", "dash": "dot"}})  # fmt: skip
        at += len(units) + GROUP_GAP
    axis = {"range": [at - GROUP_GAP + 0.66, -0.7], "tickvals": ticks, "showgrid": False}
    lowest = min((unit.interval[0] for _, _, unit in placed), default=0.0)
    return {
        "data": [
            _marks([row for row in placed if not row[2].stands_out], href, "var(--real)", "circle"),
            _marks([row for row in placed if row[2].verdict == "worse"], href, "var(--alarm)", "diamond"),
            _marks([row for row in placed if row[2].verdict == "better"], href, "var(--real)", "diamond"),
            ANCHOR,
        ],
        "layout": {
            "margin": {"l": 124, "r": 116, "t": 20, "b": 42},
            "xaxis": {"range": [max(-2.0, 100 * lowest - 4), 102], "ticksuffix": " %", "nticks": 6,
                      "title": {"text": "real success"}},
            "yaxis": axis | {"ticktext": names},
            "yaxis2": right_column(axis, values, 12, "ink-2"),
            "shapes": lines,
            "annotations": [{"xref": "paper", "yref": "paper", "x": 1, "y": 1, "xanchor": "left",
                             "yanchor": "bottom", "text": "rate · n", "showarrow": False, "xshift": 4,
                             "font": {"size": 12, "color": "var(--ink-3)"}}],
        },
        "narrow": {"layout.margin.l": 96, "layout.margin.r": 104, "layout.xaxis.nticks": 3},
    }  # fmt: skip


def _marks(
    rows: Sequence[tuple[float, UnitGroup, UnitRate]],
    href: Callable[[str, str], str] | None,
    colour: str,
    symbol: str,
) -> dict[str, Any]:
    values = [100 * unit.value for _, _, unit in rows]
    bounds = [(100 * unit.interval[0], 100 * unit.interval[1]) for _, _, unit in rows]
    links: dict[str, Any] = {}
    if href is not None:
        links["customdata"] = [{"href": href(group.by, unit.name)} for _, group, unit in rows]
    return {
        "x": values,
        "y": [place for place, _, _ in rows],
        "mode": "markers",
        "cliponaxis": False,
        "marker": {"size": 11 if symbol == "diamond" else 9, "symbol": symbol, "color": colour,
                   "line": {"width": 2, "color": colour}},
        "error_x": {
            "type": "data", "symmetric": False, "thickness": 2, "width": 0, "color": colour,
            "array": [high - value for (_, high), value in zip(bounds, values, strict=True)],
            "arrayminus": [value - low for (low, _), value in zip(bounds, values, strict=True)],
        },
        "hovertext": [_hover(unit) + ("<br>Click: its episodes" if links else "") for _, _, unit in rows],
        "hovertemplate": "%{hovertext}<extra></extra>",
        **links,
        "type": "scatter",
    }  # fmt: skip


def _hover(unit: UnitRate) -> str:
    low, high = unit.interval
    words = (
        f"{bold(unit.name)}{', stands out' if unit.stands_out else ''}<br>{percent(unit.value)} % "
        f"[{percent(low)}, {percent(high)}]<br>{count(unit.successes)} of {count(unit.n)} episodes"
    )
    if unit.lost is None or unit.lost_interval is None:
        return words
    return f"{words}<br>{points(unit.lost)} points below the others {point_interval(unit.lost_interval)}"
