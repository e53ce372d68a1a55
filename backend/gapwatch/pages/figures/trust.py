"""Sim against real over policies: on the diagonal the simulator is right."""

from __future__ import annotations

from typing import Any

from gapwatch.answers.trust import TrustAnswer, TrustedPolicy
from gapwatch.pages.figures.text import bold, short
from gapwatch.pages.words import count, percent
from gapwatch.statistics.rates import wilson

MOST_LABELLED = 12


def trust_figure(answer: TrustAnswer) -> dict[str, Any]:
    """For success, in per cent and with Wilson's intervals on both axes."""
    policies = answer.policies
    real = [_interval(one.real, one.n_real) for one in policies]
    sim = [_interval(one.sim, one.n_sim) for one in policies]
    labelled = len(policies) <= MOST_LABELLED
    return {
        "data": [
            {
                "x": [0, 100],
                "y": [0, 100],
                "mode": "lines",
                "line": {"width": 1, "color": "var(--ink-3)", "dash": "dash"},
                "hoverinfo": "skip",
                "type": "scatter",
            },
            {
                "x": [100 * one.sim for one in policies],
                "y": [100 * one.real for one in policies],
                "mode": "markers+text" if labelled else "markers",
                "text": [short(f" {one.policy} {one.version} ", 26) for one in policies],
                "textposition": ["middle left" if one.sim > 0.6 else "middle right" for one in policies],  # noqa: PLR2004
                "textfont": {"size": 12, "color": "var(--ink-2)"},
                "marker": {"size": 10, "color": "var(--real)", "line": {"width": 1.5, "color": "var(--surface)"}},
                "error_x": _bars([100 * one.sim for one in policies], sim, "sim"),
                "error_y": _bars([100 * one.real for one in policies], real, "real"),
                "hovertext": [_hover(one) for one in policies],
                "hovertemplate": "%{hovertext}<extra></extra>",
                "type": "scatter",
            },
        ],
        "layout": {
            "margin": {"l": 52, "r": 16, "t": 12, "b": 48},
            "xaxis": {
                "range": [-2, 102],
                "ticksuffix": " %",
                "nticks": 6,
                "title": {"text": "success in simulation"},
            },
            "yaxis": {
                "range": [-2, 106],
                "ticksuffix": " %",
                "nticks": 6,
                "showgrid": True,
                "title": {"text": "success in reality"},
            },
            "annotations": [
                {
                    "x": 96,
                    "y": 100,
                    "text": "sim = real",
                    "showarrow": False,
                    "xanchor": "right",
                    "font": {"size": 12, "color": "var(--ink-3)"},
                }
            ],
        },
        "narrow": {"data.1.mode": "markers"},
    }


def _hover(one: TrustedPolicy) -> str:
    return (
        f"{bold(f'{one.policy} {one.version}')}<br>sim {percent(one.sim)} %, n {count(one.n_sim)}"
        f"<br>real {percent(one.real)} %, n {count(one.n_real)}"
    )


def _interval(value: float, n: int) -> tuple[float, float]:
    return wilson(round(value * n), n) if n else (value, value)


def _bars(values: list[float], bounds: list[tuple[float, float]], name: str) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, 100 * high - value) for (_, high), value in zip(bounds, values, strict=True)],
        "arrayminus": [max(0.0, value - 100 * low) for (low, _), value in zip(bounds, values, strict=True)],
        "thickness": 1.5,
        "width": 0,
        "color": f"var(--{name})",
    }
