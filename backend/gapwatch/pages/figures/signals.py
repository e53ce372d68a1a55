"""One small figure a signal: the share of episodes at or below each value, sim against real."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gapwatch.answers.signals import SignalAnswer, SignalSide

Curve = Sequence[tuple[float, float]]
UNITS = {
    "n": "N", "nm": "Nm", "ms": "ms", "s": "s", "rad": "rad", "mm": "mm", "cm": "cm", "m": "m", "deg": "deg",
    "v": "V", "a": "A", "w": "W", "j": "J", "kg": "kg", "hz": "Hz", "c": "°C", "px": "px", "percent": "%",
}  # fmt: skip


def unit_of(signal: str) -> str:
    """peak_force_n → N; a unit stands last, or before a percentile."""
    words = [word for word in signal.lower().split("_") if not (word[:1] == "p" and word[1:].isdecimal())]
    return UNITS.get(words[-1], "") if len(words) > 1 else ""


def signal_figure(signal: SignalAnswer, words: tuple[str, str] = ("sim", "real")) -> dict[str, Any]:
    """`words`: what the sides are called. Of what moved at the change, what it was before is drawn as well."""
    unit = unit_of(signal.signal)
    data = []
    if signal.farthest_at is not None:
        ends = [100 * _share_at(side, signal.farthest_at) for side in (signal.sim, signal.real)]
        line = {"width": 1.25, "color": "var(--ink-2)", "dash": "dot"}
        data.append({"x": [signal.farthest_at] * 2, "y": ends, "mode": "lines", "line": line, "hoverinfo": "skip",
                     "type": "scatter"})  # fmt: skip
    if signal.moved is not None and signal.moved.curve_before:
        data.append(_before(signal.moved.curve_before, unit))
    for name, word, side, width in (("sim", words[0], signal.sim, 1.75), ("real", words[1], signal.real, 2.25)):
        data.append(
            {"x": [x for x, _ in side.curve], "y": [100 * y for _, y in side.curve], "mode": "lines",
             "line": {"color": f"var(--{name})", "width": width, "dash": "solid" if name == "real" else "5px,2px"},
             "hovertemplate": f"<b>{word.capitalize()}</b><br>%{{y:.0f}} % are at most %{{x:.3~g}} {unit}"
             "<extra></extra>",
             "type": "scatter"}
        )  # fmt: skip
    curves = [signal.sim.curve, signal.real.curve, () if signal.moved is None else signal.moved.curve_before]
    ends = [bound for curve in curves for bound in _most_of(curve)]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    air = 0.05 * (high - low) or 1.0
    return {
        "data": data,
        "layout": {
            "margin": {"l": 30, "r": 8, "t": 6, "b": 36},
            "xaxis": {"range": [low - air, high + air], "nticks": 4, "showgrid": False,
                      "title": {"text": unit or " ", "standoff": 4}},
            "yaxis": {"range": [-2, 102], "tickvals": [0, 50, 100], "showgrid": True},
        },
        "narrow": {},
    }  # fmt: skip


def _before(curve: Curve, unit: str) -> dict[str, Any]:
    return {"x": [x for x, _ in curve], "y": [100 * y for _, y in curve], "mode": "lines",
            "line": {"color": "var(--real)", "width": 1.5, "dash": "dot"},
            "hovertemplate": f"<b>Before the change</b><br>%{{y:.0f}} % are at most %{{x:.3~g}} {unit}"
            "<extra></extra>",
            "type": "scatter"}  # fmt: skip


def _most_of(curve: Curve) -> list[float]:
    """From the first to the 99th hundredth: one far value must not squeeze the rest."""
    inner = [x for x, share in curve if 0.005 <= share <= 0.995]  # noqa: PLR2004
    return [inner[0], inner[-1]] if inner else [x for x, _ in curve]


def _share_at(side: SignalSide, value: float) -> float:
    return max((share for x, share in side.curve if x <= value), default=0.0)
