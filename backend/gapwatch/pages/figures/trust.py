"""Sim against real over policies: on the diagonal the simulator is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gapwatch.answers.trust import TrustAnswer, TrustedPolicy
from gapwatch.pages.figures.text import bold, short
from gapwatch.pages.words import count, percent

MOST_LABELLED = 12
# What the axes span at least, in points, and how near to each other two lines of text may stand.
NARROWEST, LINE = 20, 0.045


def trust_figure(answer: TrustAnswer) -> dict[str, Any]:
    """For success, in per cent and with the intervals of both axes."""
    policies = answer.policies
    real = [policy.real_interval or (policy.real, policy.real) for policy in policies]
    sim = [policy.sim_interval or (policy.sim, policy.sim) for policy in policies]
    low = _floor([bound for bounds in (*real, *sim) for bound in bounds])
    diagonal = {
        "x": low + 0.08 * (100 - low),
        "y": low + 0.08 * (100 - low),
        "text": "sim = real",
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "top",
        "font": {"size": 12, "color": "var(--ink-3)"},
    }
    return {
        "data": [
            {
                "x": [low, 100],
                "y": [low, 100],
                "mode": "lines",
                "line": {"width": 1, "color": "var(--ink-3)", "dash": "dash"},
                "hoverinfo": "skip",
                "type": "scatter",
            },
            {
                "x": [100 * policy.sim for policy in policies],
                "y": [100 * policy.real for policy in policies],
                "mode": "markers",
                "marker": {"size": 10, "color": "var(--real)", "line": {"width": 1.5, "color": "var(--surface)"}},
                "error_x": _bars([100 * policy.sim for policy in policies], sim, "sim"),
                "error_y": _bars([100 * policy.real for policy in policies], real, "real"),
                "hovertext": [_hover(policy) for policy in policies],
                "hovertemplate": "%{hovertext}<extra></extra>",
                "type": "scatter",
            },
        ],
        "layout": {
            "margin": {"l": 52, "r": 16, "t": 12, "b": 48},
            "xaxis": {
                "range": [low - 0.02 * (100 - low), 100 + 0.03 * (100 - low)],
                "ticksuffix": " %",
                "nticks": 6,
                "title": {"text": "success in simulation"},
            },
            "yaxis": {
                "range": [low - 0.02 * (100 - low), 100 + 0.03 * (100 - low)],
                "ticksuffix": " %",
                "nticks": 6,
                "showgrid": True,
                "title": {"text": "success in reality"},
            },
            "annotations": [diagonal, *(_names(policies, low) if len(policies) <= MOST_LABELLED else [])],
        },
        "narrow": {"layout.annotations": [diagonal]},
    }


def _floor(bounds: list[float]) -> float:
    """Where both axes begin: near the data, or similar policies would pile up in a corner."""
    return max(0.0, min(100.0 - NARROWEST, 10 * (100 * min(bounds) // 10)))


def _names(policies: Sequence[TrustedPolicy], low: float) -> list[dict[str, Any]]:
    """A name beside each point, joined by a line: names must not overlap, points may."""
    span = 100 - low
    names = []
    free = 100.0
    for policy in sorted(policies, key=lambda policy: (-policy.real, policy.sim)):
        at = min(free, 100 * policy.real)
        free = at - LINE * span
        is_left = 100 * policy.sim < low + span / 2
        names.append(
            {
                "x": 100 * policy.sim,
                "y": 100 * policy.real,
                "ax": 100 * policy.sim + (0.06 if is_left else -0.06) * span,
                "ay": at,
                "axref": "x",
                "ayref": "y",
                "xanchor": "left" if is_left else "right",
                "text": short(f"{policy.policy} {policy.version}", 26),
                "font": {"size": 12, "color": "var(--ink-2)"},
                "showarrow": True,
                "arrowhead": 0,
                "arrowwidth": 1,
                "arrowcolor": "var(--line-strong)",
                "standoff": 6,
            }
        )
    return names


def _hover(policy: TrustedPolicy) -> str:
    return (
        f"{bold(f'{policy.policy} {policy.version}')}<br>sim {percent(policy.sim)} %, n {count(policy.n_sim)}"
        f"<br>real {percent(policy.real)} %, n {count(policy.n_real)}"
    )


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
