"""Success per condition level, sim against real, with what only one side has seen marked in words and shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gapwatch.answers.slices import SliceAnswer, SliceSide
from gapwatch.pages.figures.axes import ANCHOR, right_column
from gapwatch.pages.figures.text import bold, plain, seen_word, short
from gapwatch.pages.words import count, percent, point_interval, points

MOST_LEVELS = 24
GROUP_GAP = 1.3
ROW_HEIGHT, FRAME_HEIGHT = 24, 64


def grouped(slices: Sequence[SliceAnswer]) -> list[tuple[str, list[SliceAnswer]]]:
    """Conditions and their levels in the order of the answer, up to as many levels as a figure can hold.

    Levels with few episodes are not drawn: a long line would be all that is seen.
    """
    groups: dict[str, list[SliceAnswer]] = {}
    for level in slices:
        if not level.few:
            groups.setdefault(level.condition, []).append(level)
    kept: list[tuple[str, list[SliceAnswer]]] = []
    room = MOST_LEVELS
    for condition, levels in groups.items():
        if room < min(2, len(levels)):
            break
        kept.append((condition, levels[:room]))
        room -= len(levels[:room])
    return kept


def height(groups: Sequence[tuple[str, list[SliceAnswer]]]) -> int:
    rows = sum(len(levels) + GROUP_GAP for _, levels in groups)
    return round(FRAME_HEIGHT + ROW_HEIGHT * rows)


def conditions_figure(
    groups: Sequence[tuple[str, list[SliceAnswer]]],
    href: Callable[[SliceAnswer], str | None] | None = None,
    words: tuple[str, str] = ("sim", "real"),
) -> dict[str, Any]:
    """`href` gives the list of a level's episodes, if there is one; without it no mark is a link.

    `words`: what the sides are called.
    """
    ticks: list[float] = []
    names: list[str] = []
    sizes: list[str] = []
    placed: list[tuple[float, SliceAnswer]] = []
    at = 0.0
    for condition, levels in groups:
        ticks.append(at)
        names.append(f"<b>{short(condition, 18)}</b>")
        sizes.append("")
        for row, level in enumerate(levels):
            place = at + 0.86 + row
            placed.append((place, level))
            ticks.append(place)
            names.append(short(level.level or "missing", 18))
            sizes.append(_sizes(level, words))
        at += len(levels) + GROUP_GAP
    hrefs = {(level.condition, level.level): None if href is None else href(level) for _, level in placed}
    lowest = min(
        (_interval(side)[0] for _, level in placed for side in (level.sim, level.real) if side.n), default=0.0
    )
    axis = {"range": [at - GROUP_GAP + 0.66, -0.7], "tickvals": ticks, "showgrid": False}
    return {
        "data": [
            _gaps(placed),
            _marks([(y, level, level.sim) for y, level in placed if level.sim.n], "sim", hrefs, words),
            _marks([(y, level, level.real) for y, level in placed if level.real.n], "real", hrefs, words),
            ANCHOR,
        ],
        "layout": {
            "margin": {"l": 124, "r": 104, "t": 20, "b": 42},
            "xaxis": {"range": [max(-2.0, 100 * lowest - 4), 102], "ticksuffix": " %", "nticks": 6,
                      "title": {"text": "success rate"}},
            "yaxis": axis | {"ticktext": names},
            "yaxis2": right_column(axis, sizes, 12, "ink-2"),
            "annotations": [{"xref": "paper", "yref": "paper", "x": 1, "y": 1, "xanchor": "left",
                             "yanchor": "bottom", "text": f"n {words[0]} · {words[1]}", "showarrow": False,
                             "xshift": 4, "font": {"size": 12, "color": "var(--ink-3)"}}],
        },
        "narrow": {"layout.margin.l": 104, "layout.margin.r": 94, "layout.xaxis.nticks": 3},
    }  # fmt: skip


def _sizes(level: SliceAnswer, words: tuple[str, str]) -> str:
    if level.seen == "both":
        return f"{count(level.sim.n)} · {count(level.real.n)}"
    return f"{seen_word(level.seen, words)} · {count(level.sim.n or level.real.n)}"


def _gaps(placed: list[tuple[float, SliceAnswer]]) -> dict[str, Any]:
    x: list[float | None] = []
    y: list[float | None] = []
    for place, level in placed:
        if level.sim.value is not None and level.real.value is not None:
            x += [100 * level.real.value, 100 * level.sim.value, None]
            y += [place, place, None]
    line = {"width": 1, "color": "var(--line-strong)"}
    return {"x": x, "y": y, "mode": "lines", "line": line, "hoverinfo": "skip", "type": "scatter"}


def _marks(
    rows: list[tuple[float, SliceAnswer, SliceSide]],
    name: str,
    hrefs: Mapping[tuple[str, str], str | None],
    words: tuple[str, str],
) -> dict[str, Any]:
    links = [hrefs[level.condition, level.level] for _, level, _ in rows]
    values = [100 * (side.value or 0.0) for _, _, side in rows]
    intervals = [_interval(side) for _, _, side in rows]
    alone = [level.seen != "both" for _, level, _ in rows]
    filled = name == "real"
    return {
        "x": values,
        "y": [place for place, _, _ in rows],
        "mode": "markers",
        "cliponaxis": False,
        "marker": {
            "size": 9,
            "symbol": ["diamond" if single else "circle" for single in alone],
            "color": [f"var(--{name})" if filled and not single else "var(--surface)" for single in alone],
            "line": {"width": 2, "color": f"var(--{name})"},
        },
        "error_x": {
            "type": "data", "symmetric": False, "thickness": 2, "width": 0, "color": f"var(--{name})",
            "array": [100 * high - value for (_, high), value in zip(intervals, values, strict=True)],
            "arrayminus": [value - 100 * low for (low, _), value in zip(intervals, values, strict=True)],
        },
        "hovertext": [
            f"{bold(f'{level.condition} = {level.level}')}, {words[name == 'real']}<br>"
            f"{percent(side.value or 0.0)} % [{percent(low)}, {percent(high)}]<br>"
            f"{count(side.successes)} of {count(side.n)} episodes"
            + _drop(level, words) + ("<br>Click: its episodes" if link else "")
            for (_, level, side), (low, high), link in zip(rows, intervals, links, strict=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
        **({"customdata": [{"href": link} for link in links]} if any(links) else {}),
        "type": "scatter",
    }  # fmt: skip


def _drop(level: SliceAnswer, words: tuple[str, str]) -> str:
    if level.drop is None or level.interval is None:
        return f"<br>{plain(seen_word(level.seen, words))}"
    return f"<br>drop {points(level.drop)} points {point_interval(level.interval)}"


def _interval(side: SliceSide) -> tuple[float, float]:
    return side.interval or (0.0, 0.0)
