"""The waterfall from simulation to reality: a bar a category, what has no evidence last, points at both ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gapwatch.answers.drop import SideValue
from gapwatch.answers.ledger import CategoryPart
from gapwatch.pages.figures.axes import ANCHOR, right_column
from gapwatch.pages.figures.text import bold, narrow_category, plain
from gapwatch.pages.words import category_colour, count, percent, signed
from gapwatch.taxonomy import UNATTRIBUTED

ROW_HEIGHT, FRAME_HEIGHT = 38, 52


def shown_parts(parts: Sequence[CategoryPart], unattributed: CategoryPart | None) -> list[CategoryPart]:
    """Categories with evidence, largest first, then what is left; zeros go into the caption."""
    kept = [part for part in parts if part.contribution or part.real_weight or part.sim_weight]
    kept.sort(key=lambda part: -part.contribution)
    return [*kept, unattributed] if unattributed is not None else kept


def height(rows: int) -> int:
    return FRAME_HEIGHT + ROW_HEIGHT * (rows + 2)


def ledger_figure(
    sim: SideValue,
    real: SideValue,
    parts: Sequence[CategoryPart],
    href: Callable[[str], str] | None = None,
    words: tuple[str, str] = ("sim", "real"),
) -> dict[str, Any]:
    """`href` answers where the episodes behind a category are listed; without it the bars are no links.

    `words`: what the sides are called.
    """
    first, second = ("Simulation" if words[0] == "sim" else words[0].capitalize(), words[1].capitalize())
    assert sim.value is not None and real.value is not None  # noqa: S101 - there is a drop
    rows = range(1, len(parts) + 1)
    bases, at = [], 100 * sim.value
    for part in parts:
        bases.append(at)
        at -= 100 * part.contribution
    ends = [base - 100 * part.contribution for base, part in zip(bases, parts, strict=True)]
    last = len(parts) + 1
    steps_x: list[float | None] = []
    steps_y: list[float | None] = []
    for place, x in enumerate([100 * sim.value, *ends]):
        steps_x += [x, x, None]
        steps_y += [place, place + 1, None]
    labels = [bold(first), *(plain(part.name) for part in parts), bold(second)]
    narrow = [bold(first), *(narrow_category(part.category) for part in parts), bold(second)]
    values = [
        _value(sim),
        *(f"<b>{signed(-part.contribution)}</b>{_bar_interval(part)}" for part in parts),
        _value(real),
    ]
    return {
        "data": [
            _line(steps_x, steps_y),
            _bars(parts, list(rows), bases, sim, real, href, words),
            _whiskers(parts, list(rows), ends, "surface", 4),
            _whiskers(parts, list(rows), ends, "ink", 1.25),
            _point(sim, 0, "sim", first, "circle-open"),
            _point(real, last, "real", second, "circle"),
            ANCHOR,
        ],
        "layout": {
            "margin": {"l": 170, "r": 168, "t": 4, "b": 44},
            "xaxis": {"range": _range(sim, real, [*bases, *ends], parts), "ticksuffix": " %", "nticks": 8,
                      "title": {"text": "success rate"}},
            "yaxis": _names(labels, last),
            "yaxis2": right_column(_names(labels, last), values, 13, "ink"),
            "bargap": 0.3,
        },
        "narrow": {
            "layout.margin.l": 92,
            "layout.margin.r": 66,
            "layout.yaxis.ticktext": narrow,
            "layout.yaxis2.ticktext": [
                f"<b>{percent(sim.value)} %</b>",
                *(f"<b>{signed(-part.contribution)}</b>" for part in parts),
                f"<b>{percent(real.value)} %</b>",
            ],
            "layout.xaxis.nticks": 4,
        },
    }  # fmt: skip


def _of_side(word: str) -> str:
    return f"{word} episodes" if word in ("sim", "real") else f"episodes {word}"


def _value(side: SideValue) -> str:
    interval = "" if side.interval is None else f"  [{percent(side.interval[0])}, {percent(side.interval[1])}]"
    return f"<b>{percent(side.value or 0.0)} %</b>{interval}"


def _bar_interval(part: CategoryPart) -> str:
    if part.interval is None:
        return ""
    low, high = part.interval
    return f"  [{signed(-high)}, {signed(-low)}]"


def _line(x: list[float | None], y: list[float | None]) -> dict[str, Any]:
    line = {"width": 1, "color": "var(--line-strong)"}
    return {"x": x, "y": y, "mode": "lines", "line": line, "hoverinfo": "skip", "type": "scatter"}


def _bars(
    parts: Sequence[CategoryPart],
    rows: list[int],
    bases: list[float],
    sim: SideValue,
    real: SideValue,
    href: Callable[[str], str] | None,
    words: tuple[str, str],
) -> dict[str, Any]:
    hatched = [part.category == UNATTRIBUTED for part in parts]
    offer = "" if href is None else "<br>Click: its episodes"
    links = {} if href is None else {"customdata": [{"href": href(part.category)} for part in parts]}
    return {
        "type": "bar",
        "orientation": "h",
        "y": rows,
        "x": [-100 * part.contribution for part in parts],
        "base": bases,
        "width": 0.62,
        "marker": {
            "color": ["var(--surface)" if bare else category_colour(part.category)
                      for part, bare in zip(parts, hatched, strict=True)],
            "line": {"width": [1 if bare else 0 for bare in hatched], "color": "var(--ink-3)"},
            "pattern": {"shape": ["/" if bare else "" for bare in hatched], "size": 6, "solidity": 0.25,
                        "fgcolor": "var(--ink-3)"},
        },
        "hovertext": [
            f"{bold(part.name)}<br>{signed(-part.contribution)} points{_bar_interval(part)}<br>"
            f"failure weight {count(round(part.real_weight, 1))} in {count(real.n)} {_of_side(words[1])}, "
            f"{count(round(part.sim_weight, 1))} in {count(sim.n)} {_of_side(words[0])}{offer}"
            for part in parts
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
        **links,
    }  # fmt: skip


def _whiskers(
    parts: Sequence[CategoryPart], rows: list[int], ends: list[float], colour: str, thickness: float
) -> dict[str, Any]:
    """The interval of each bar, at its end; drawn twice, the first time as a halo on dark bars."""
    marked = [(row, end, part) for row, end, part in zip(rows, ends, parts, strict=True) if part.interval]
    low = [100 * (part.contribution - part.interval[0]) for _, _, part in marked if part.interval]
    high = [100 * (part.interval[1] - part.contribution) for _, _, part in marked if part.interval]
    return {
        "x": [end for _, end, _ in marked],
        "y": [row for row, _, _ in marked],
        "mode": "markers",
        "marker": {"size": 1, "color": f"var(--{colour})"},
        # A larger contribution lies further left.
        "error_x": {"type": "data", "symmetric": False, "array": low, "arrayminus": high, "thickness": thickness,
                    "width": 4 if colour == "surface" else 3, "color": f"var(--{colour})"},
        "hoverinfo": "skip",
        "type": "scatter",
    }  # fmt: skip


def _point(side: SideValue, row: int, name: str, label: str, symbol: str) -> dict[str, Any]:
    value = 100 * (side.value or 0.0)
    low, high = side.interval or (side.value or 0.0, side.value or 0.0)
    return {
        "x": [value],
        "y": [row],
        "mode": "markers",
        "marker": {"size": 11, "symbol": symbol, "color": f"var(--{name})", "line": {"width": 2.5}},
        "error_x": {"type": "data", "symmetric": False, "array": [100 * high - value],
                    "arrayminus": [value - 100 * low], "thickness": 3, "width": 0, "color": f"var(--{name})"},
        "hovertext": [f"{bold(label)}<br>{_value(side)}<br>n {count(side.n)}"],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "type": "scatter",
    }  # fmt: skip


def _range(sim: SideValue, real: SideValue, at: list[float], parts: Sequence[CategoryPart]) -> list[float]:
    """Everything with its whisker, and a little air."""
    reach = [100 * bound for side in (sim, real) if side.interval for bound in side.interval]
    for part, end in zip(parts, at[len(parts) :], strict=True):
        if part.interval:
            reach += [
                end - 100 * (part.interval[1] - part.contribution),
                end + 100 * (part.contribution - part.interval[0]),
            ]
    low, high = min([*at, *reach]), max([*at, *reach])
    air = max(1.0, 0.04 * (high - low))
    return [max(-1.0, low - air), min(101.0, high + air)]


def _names(ticks: list[str], last: int) -> dict[str, Any]:
    return {
        "range": [last + 0.6, -0.6],
        "tickvals": list(range(last + 1)),
        "ticktext": ticks,
        "showgrid": False,
        "tickfont": {"size": 13},
    }
