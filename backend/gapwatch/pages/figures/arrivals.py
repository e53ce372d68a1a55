"""Who fell silent: the episodes that came, as bars, against those that usually come then, as a line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from gapwatch.answers.arrivals import DrawnArrivals
from gapwatch.notation import utc_text
from gapwatch.pages.figures.text import moment
from gapwatch.pages.figures.trend import change_shapes
from gapwatch.pages.sentences.incident import arrivals_caption


@dataclass(frozen=True)
class ArrivalsEntry:
    """The arrivals of who fell silent, which are drawn, and the numbers of the bars."""

    figure: str
    drawn: DrawnArrivals

    @property
    def caption(self) -> str:
        return arrivals_caption(self.drawn)


def arrivals_figure(drawn: DrawnArrivals) -> dict[str, Any]:
    pace = timedelta(hours=1) if drawn.tier == "hour" else timedelta(days=1)
    middle = [utc_text(step.at + pace / 2) for step in drawn.steps]
    start, end = drawn.steps[0].at, drawn.steps[-1].at + pace
    shapes = change_shapes(
        drawn.heard_at,
        drawn.heard_at,
        drawn.heard_at,
        moment(drawn.heard_at),
        is_early=drawn.heard_at - start < (end - start) / 2,
    )
    shapes["annotations"][0]["text"] = f"last heard {moment(drawn.heard_at)}"
    bars = {
        "x": middle, "y": [step.n for step in drawn.steps], "type": "bar",
        "width": 0.8 * pace.total_seconds() * 1000, "marker": {"color": "var(--real)"},
        "hovertemplate": f"%{{x|%-d %b %H:%M}}<br><b>%{{y}}</b> episodes in the {drawn.tier}<extra></extra>",
    }  # fmt: skip
    usual = {
        "x": middle, "y": [None if step.usual is None else round(step.usual, 2) for step in drawn.steps],
        "type": "scatter", "mode": "lines", "connectgaps": False,
        "line": {"color": "var(--ink-2)", "width": 1.5, "dash": "dot", "shape": "hvh"},
        "hovertemplate": "%{y:.1f} usual then<extra></extra>",
    }  # fmt: skip
    most = max([1.0, *(float(step.n) for step in drawn.steps), *(step.usual or 0.0 for step in drawn.steps)])
    return {
        "data": [bars, usual],
        "layout": {
            "margin": {"l": 48, "r": 16, "t": 28, "b": 36},
            "xaxis": {"type": "date", "range": [utc_text(start), utc_text(end)], "showgrid": False, "nticks": 6},
            "yaxis": {"range": [0, 1.1 * most], "nticks": 5, "showgrid": True},
            "showlegend": False,
            **shapes,
        },
        "narrow": {"layout.xaxis.nticks": 4},
    }
