"""An alerted series around its change: a rate with its interval, or a number's median between its quartiles."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from gapwatch.answers.incident_change import KnownChange
from gapwatch.answers.series_steps import SeriesStep
from gapwatch.notation import THIN_GAP, utc_text
from gapwatch.pages.figures.axes import time_ticks
from gapwatch.pages.figures.signals import unit_of
from gapwatch.pages.figures.text import moment
from gapwatch.pages.figures.trend import Mark, change_shapes, event_marks


def series_figure(
    series: str,
    runs: Sequence[Sequence[SeriesStep]],
    change: KnownChange,
    *,
    is_rate: bool,
    sim: float | None = None,
    marks: Sequence[Mark] = (),
) -> dict[str, Any]:
    """`sim`: what success is in simulation, where an alert says so. `marks` are explained in a list below."""
    steps = [step for run in runs for step in run]
    scale = 100.0 if is_rate else 1.0
    start, end = _ends(steps, change)
    shown = [mark for mark in marks if start <= mark.at <= end]
    low, high = _range(steps, is_rate)
    unit = " %" if is_rate else f" {unit_of(series.partition(':')[2])}".rstrip()
    data: list[dict[str, Any]] = []
    if sim is not None:
        data.append(
            {"x": [utc_text(start), utc_text(end)], "y": [100 * sim] * 2, "mode": "lines", "type": "scatter",
             "line": {"color": "var(--sim)", "width": 1.5},
             "hovertemplate": "<b>Sim</b> %{y:.1f} %<extra></extra>"}
        )  # fmt: skip
    data += [_run(run, scale, unit) for run in runs]
    data += event_marks(shown, low + 0.04 * (high - low))
    return {
        "data": data,
        "layout": {
            "margin": {"l": 48, "r": 16, "t": 28, "b": 36},
            "xaxis": {"type": "date", "range": [utc_text(start), utc_text(end)], "showgrid": False, "nticks": 6,
                      "tickformatstops": time_ticks()},
            "yaxis": {"range": [low, high], "ticksuffix": unit, "nticks": 5, "showgrid": True},
            "separators": f".{THIN_GAP}",
            **change_shapes(
                change.at,
                change.earliest,
                change.latest,
                moment(change.at),
                is_early=change.at - start < (end - start) / 2,
            ),
        },
        "narrow": {"layout.xaxis.nticks": 4},
    }  # fmt: skip


def _run(run: Sequence[SeriesStep], scale: float, unit: str) -> dict[str, Any]:
    middle = [step.first_at + (step.last_at - step.first_at) / 2 for step in run]
    return {
        "x": [utc_text(at) for at in middle],
        "y": [round(scale * step.value, 6) for step in run],
        "error_y": {
            "type": "data", "symmetric": False, "width": 0, "thickness": 2.5, "color": "var(--real-band)",
            "array": [round(scale * (step.interval[1] - step.value), 6) for step in run],
            "arrayminus": [round(scale * (step.value - step.interval[0]), 6) for step in run],
        },
        "mode": "lines+markers",
        "line": {"color": "var(--real)", "width": 2},
        "marker": {"size": 6, "color": "var(--real)"},
        "customdata": [
            [round(scale * step.interval[0], 4), round(scale * step.interval[1], 4), step.n, moment(at)]
            for step, at in zip(run, middle, strict=True)
        ],
        "hovertemplate": f"%{{customdata[3]}}<br><b>%{{y:.3~g}}{unit}</b> [%{{customdata[0]:.3~g}}, "
        "%{customdata[1]:.3~g}]<br>n %{customdata[2]:,}<extra></extra>",
        "type": "scatter",
    }  # fmt: skip


def _ends(steps: Sequence[SeriesStep], change: KnownChange) -> tuple[datetime, datetime]:
    times = [at for step in steps for at in (step.first_at, step.last_at)] + [change.earliest, change.latest]
    air = max((max(times) - min(times)) * 0.02, timedelta(minutes=5))
    return min(times) - air, max(times) + air


def _range(steps: Sequence[SeriesStep], is_rate: bool) -> tuple[float, float]:
    if is_rate:
        floor = 100 * min((step.interval[0] for step in steps), default=0.0)
        return max(0.0, 10 * (floor // 10) - 8), 101.0
    low = min((step.interval[0] for step in steps), default=0.0)
    high = max((step.interval[1] for step in steps), default=1.0)
    air = 0.12 * (high - low) or 1.0
    return low - air, high + air
