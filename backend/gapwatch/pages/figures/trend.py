"""Real success over time beside the baseline, with change points and events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from gapwatch.answers.trend import TrendAnswer
from gapwatch.answers.trend_line import SAME_CHANGE, WINDOW_DAYS, LinePoint
from gapwatch.notation import MONTHS, THIN_GAP, date_words, utc_text
from gapwatch.pages.figures.axes import time_ticks
from gapwatch.pages.figures.text import moment, plain
from gapwatch.pages.words import count, percent, plain_day

MOST_SINGLE_DAYS, DAY_MS = 9, 24 * 3600 * 1000
GLYPHS = {
    "release": ("▲", "triangle-up"),
    "calibration": ("◆", "diamond"),
    "mitigation": ("✚", "cross"),
    "simulator": ("●", "circle"),
    "site": ("■", "square"),
    "other": ("■", "square"),
}


def glyph(kind: str) -> str:
    """The sign of an event in the list below the figure, as it is drawn."""
    return GLYPHS.get(kind, GLYPHS["other"])[0]


@dataclass(frozen=True)
class Regime:
    """The present: since when, what its window is called, and success in its newest episodes."""

    since: datetime
    words: str
    newest: datetime
    value: float
    interval: tuple[float, float]
    n: int


@dataclass(frozen=True)
class Mark:
    """An event under the line, explained in the list below by its number."""

    number: int
    at: datetime
    kind: str


def trend_figure(
    answer: TrendAnswer,
    runs: Sequence[Sequence[LinePoint]],
    marks: Sequence[Mark],
    episodes: str | None = None,
    changed_at: datetime | None = None,
    regime: Regime | None = None,
) -> dict[str, Any]:
    """`runs` are the answer's line. `episodes` is where those of all time are listed; a point of the line opens
    those of its days. Without it the line is no link.

    An alert knows itself when something changed; else the answer's change points are drawn, and the `regime`,
    which names its own beginning.
    """
    points = answer.change_points if changed_at is None else ()
    times = [point.at for run in runs for point in run] or [step.at for step in answer.steps]
    times += [mark.at for mark in marks]
    start, end = min(times), max(times) + timedelta(days=1)
    lows = [point.interval[0] for run in runs for point in run] + [
        value for value in [_sim(answer)[0]] if value is not None
    ]
    if regime is not None:
        lows.append(regime.interval[0])
    floor = max(0.0, 10 * ((100 * min(lows, default=0.0)) // 10) - 8)
    layout: dict[str, Any] = {
        "margin": {"l": 44, "r": 16, "t": 28, "b": 44 if answer.tier == "hour" else 32},
        "dragmode": "zoom",
        "xaxis": {"type": "date", "range": [utc_text(start - (end - start) * 0.02), utc_text(end)],
                  "showgrid": False, "nticks": 9, "fixedrange": False, **_ticks(answer.tier, end - start)},
        "yaxis": {"range": [floor, 101], "ticksuffix": " %", "nticks": 5, "showgrid": True},
        "separators": f".{THIN_GAP}",
        "shapes": [],
        "annotations": [],
    }  # fmt: skip
    if changed_at is not None:
        layout["shapes"].append(_change_line(utc_text(changed_at)))
        layout["annotations"].append(_change_word(utc_text(changed_at), moment(changed_at)))
    for point in points:
        layout["shapes"] += _change_shapes(point)
        if regime is None or abs(_midnight(point.day) - regime.since) > SAME_CHANGE:
            layout["annotations"].append(_change_word(utc_text(_midnight(point.day)), date_words(point.day)))
    data = _baseline(answer, start, end)
    for run in runs:
        data += _run(run, answer.tier, episodes)
    if regime is not None:
        is_early = regime.since - start < (end - start) / 2
        layout["shapes"] += _regime_shapes(regime, end)
        layout["annotations"].append(_regime_word(regime, is_early=is_early))
        data.append(_newest(regime))
    data += event_marks(marks, floor + 3)
    return {"data": data, "layout": layout, "narrow": {"layout.xaxis.nticks": 5, "layout.margin.r": 24}}


def _regime_shapes(regime: Regime, end: datetime) -> list[dict[str, Any]]:
    span = {"type": "rect", "xref": "x", "yref": "paper", "x0": utc_text(regime.since), "x1": utc_text(end),
            "y0": 0, "y1": 1, "fillcolor": "var(--sunken)", "line": {"width": 0}, "layer": "below"}  # fmt: skip
    return [span, _change_line(utc_text(regime.since))]


def _regime_word(regime: Regime, *, is_early: bool) -> dict[str, Any]:
    return {"x": utc_text(regime.since), "y": 1, "yref": "paper", "yanchor": "bottom",
            "xanchor": "left" if is_early else "right", "text": plain(f"now: {regime.words}"), "showarrow": False,
            "font": {"size": 12}}  # fmt: skip


def _newest(regime: Regime) -> dict[str, Any]:
    """The rate that the headline tells, where its episodes end."""
    low, high = (100 * bound for bound in regime.interval)
    value = 100 * regime.value
    return {
        "x": [utc_text(regime.newest)], "y": [round(value, 2)], "mode": "markers",
        "marker": {"size": 11, "symbol": "diamond", "color": "var(--real)"},
        "error_y": {"type": "data", "symmetric": False, "array": [round(high - value, 2)],
                    "arrayminus": [round(value - low, 2)], "thickness": 2, "width": 4, "color": "var(--real)"},
        "hovertemplate": f"<b>Now, newest {count(regime.n)} episodes</b><br>{value:.1f} % "
        f"[{low:.1f}, {high:.1f}]<br>n {count(regime.n)}<extra></extra>",
        "type": "scatter",
    }  # fmt: skip


def _ticks(tier: str, shown: timedelta) -> dict[str, Any]:
    """Each day is written once: in few days ticks between them would repeat it."""
    if tier == "hour":
        return {"tickformatstops": time_ticks()}
    few = shown < timedelta(days=MOST_SINGLE_DAYS)
    return {"tickformatstops": time_ticks(), **({"dtick": DAY_MS} if few else {})}


def _baseline(answer: TrendAnswer, start: datetime, end: datetime) -> list[dict[str, Any]]:
    value, interval = answer.sim.value, answer.sim.interval
    if value is None:
        return []
    ends = [utc_text(start - timedelta(days=2)), utc_text(end)]
    data: list[dict[str, Any]] = []
    if interval is not None:
        low, high = (100 * bound for bound in interval)
        data.append(
            {"x": [*ends, *reversed(ends)], "y": [low, low, high, high], "fill": "toself",
             "fillcolor": "var(--sim-band)", "line": {"width": 0}, "mode": "lines", "hoverinfo": "skip",
             "type": "scatter"}
        )  # fmt: skip
    about = "" if interval is None else f" [{percent(interval[0])}, {percent(interval[1])}]"
    data.append(
        {"x": ends, "y": [100 * value] * 2, "mode": "lines", "line": {"color": "var(--sim)", "width": 1.5},
         "hovertemplate": f"<b>Sim baseline</b><br>{percent(value)} %{about}<br>n {count(answer.sim.n)}"
         "<extra></extra>",
         "type": "scatter"}
    )  # fmt: skip
    return data


def _run(run: Sequence[LinePoint], tier: str, episodes: str | None) -> list[dict[str, Any]]:
    """A point's customdata: its day, the interval, n, and from when to when its episodes are, in seconds.

    The texts are put together by Plotly: written out they were most of a page over a year.
    """
    x = [utc_text(point.at) for point in run]
    span = timedelta(days=WINDOW_DAYS - 1) if tier == "day" else timedelta(0)
    end = {"day": _next_day, "hour": _next_hour, "month": _next_month}[tier]
    band = {
        "x": [*x, *reversed(x)],
        "y": [round(100 * p.interval[1], 2) for p in run]
        + [round(100 * p.interval[0], 2) for p in reversed(run)],
        "fill": "toself", "fillcolor": "var(--real-band)", "line": {"width": 0}, "mode": "lines",
        "hoverinfo": "skip", "type": "scatter",
    }  # fmt: skip
    word = {"hour": moment, "day": plain_day, "month": _month}[tier]
    what = f"Real, {WINDOW_DAYS} days to" if tier == "day" else "Real,"
    line = {
        "x": x,
        "y": [round(100 * p.value, 2) for p in run],
        "mode": "lines+markers" if len(run) < 4 else "lines",  # noqa: PLR2004 - a short line is hardly seen
        "marker": {"size": 6, "color": "var(--real)"},
        "line": {"color": "var(--real)", "width": 2.25},
        "hovertemplate": f"<b>{what} %{{customdata[0]}}</b><br>%{{y:.1f}} % [%{{customdata[1]:.1f}}, "
        "%{customdata[2]:.1f}]<br>n %{customdata[3]:,}" + ("" if episodes is None else "<br>Click: these episodes")
        + "<extra></extra>",
        "customdata": [
            [word(p.at), round(100 * p.interval[0], 2), round(100 * p.interval[1], 2), p.n,
             int((p.at - span).timestamp()), int(end(p.at).timestamp())]
            for p in run
        ],
        **({} if episodes is None else {"meta": {"episodes": episodes}}),
        "type": "scatter",
    }  # fmt: skip
    return [band, line]


def _next_hour(at: datetime) -> datetime:
    return at + timedelta(hours=1)


def _next_day(at: datetime) -> datetime:
    return at + timedelta(days=1)


def _next_month(at: datetime) -> datetime:
    return (at.replace(day=1) + timedelta(days=31)).replace(day=1)


def _month(at: datetime) -> str:
    return f"{MONTHS[at.month - 1]} {at.year}"


def event_marks(marks: Sequence[Mark], height: float) -> list[dict[str, Any]]:
    """The numbered glyphs of events, at this height of the figure."""
    if not marks:
        return []
    # Numbers that would touch stand on two levels.
    sides = ["top center"] * len(marks)
    for place, (earlier, later) in enumerate(pairwise(marks), start=1):
        if later.at - earlier.at < timedelta(days=2) and sides[place - 1] == "top center":
            sides[place] = "top right"
    return [
        {"x": [utc_text(mark.at) for mark in marks], "y": [height] * len(marks), "mode": "markers+text",
         "text": [plain(mark.number) for mark in marks], "textposition": sides, "textfont": {"size": 12},
         "marker": {"size": 9, "color": "var(--ink-2)",
                    "symbol": [GLYPHS.get(mark.kind, GLYPHS["other"])[1] for mark in marks]},
         "hoverinfo": "skip", "type": "scatter"}
    ]  # fmt: skip


def _change_shapes(point: Any) -> list[dict[str, Any]]:
    at = utc_text(_midnight(point.day))
    shapes: list[dict[str, Any]] = []
    if point.plausible is not None:
        first, last = _midnight(point.plausible[0]), _midnight(point.plausible[1]) + timedelta(days=1)
        shapes.append(
            {"type": "rect", "xref": "x", "yref": "paper", "x0": utc_text(first), "x1": utc_text(last),
             "y0": 0, "y1": 1, "fillcolor": "var(--line)", "line": {"width": 0}, "layer": "below"}
        )  # fmt: skip
    return [*shapes, _change_line(at)]


def change_shapes(
    at: datetime, earliest: datetime, latest: datetime, words: str, *, is_early: bool
) -> dict[str, Any]:
    """Shapes and annotations of a layout: the change, and the span in which it lies with 95 %."""
    span = {"type": "rect", "xref": "x", "yref": "paper", "x0": utc_text(earliest), "x1": utc_text(latest),
            "y0": 0, "y1": 1, "fillcolor": "var(--line)", "line": {"width": 0}, "layer": "below"}  # fmt: skip
    word = _change_word(utc_text(at), words) | {"xanchor": "left" if is_early else "right"}
    return {"shapes": [span, _change_line(utc_text(at))], "annotations": [word]}


def _change_line(at: str) -> dict[str, Any]:
    line = {"color": "var(--ink)", "width": 1.25, "dash": "dot"}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1, "line": line}


def _change_word(at: str, words: str) -> dict[str, Any]:
    return {
        "x": at,
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "xanchor": "right",
        "text": f"change point {words}",
        "showarrow": False,
        "font": {"size": 12},
    }


def _sim(answer: TrendAnswer) -> tuple[float | None, float | None]:
    return answer.sim.interval or (answer.sim.value, answer.sim.value)


def _midnight(day: Any) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
