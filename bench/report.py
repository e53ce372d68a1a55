"""Figures with their spread, ratios with their targets, as a table and as JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


@dataclass
class Figure:
    """Something measured once per round."""

    name: str
    unit: str
    rounds: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)


@dataclass
class Verdict:
    """A ratio or a figure against its target."""

    name: str
    value: float
    least: float
    most: float
    target: float
    moonshot: float | None
    at_most: bool
    unit: str

    @property
    def word(self) -> str:
        def reached(goal: float) -> bool:
            return self.value <= goal if self.at_most else self.value >= goal

        if self.moonshot is not None and reached(self.moonshot):
            return "pass, moonshot"
        return "pass" if reached(self.target) else "FAIL"


class Report:
    def __init__(self) -> None:
        self.figures: dict[str, Figure] = {}
        self.verdicts: list[Verdict] = []
        self.remarks: list[str] = []

    def add(self, name: str, value: float, unit: str = "ep/s", note: str = "") -> None:
        figure = self.figures.setdefault(name, Figure(name, unit))
        figure.rounds.append(value)
        figure.note = note or figure.note

    def remark(self, sentence: str) -> None:
        print(sentence, flush=True)
        self.remarks.append(sentence)

    def judge_ratio(self, name: str, ours: str, theirs: str, target: float, moonshot: float | None = None) -> None:
        """The median over rounds of the ratio within a round. Nothing to judge when one was not measured."""
        if ours in self.figures and theirs in self.figures:
            # A peer that gave up may have left a round without its counterpart.
            pairs = zip(self.figures[ours].rounds, self.figures[theirs].rounds, strict=False)
            self._judge(name, [value / peer_value for value, peer_value in pairs], "×", target, moonshot)

    def judge_value(self, name: str, figure: str, target: float, *, at_most: bool = False) -> None:
        """The worst round counts."""
        measured = self.figures[figure]
        worst = max(measured.rounds) if at_most else min(measured.rounds)
        self._judge(name, [worst], measured.unit, target, at_most=at_most)

    def _judge(
        self,
        name: str,
        values: list[float],
        unit: str,
        target: float,
        moonshot: float | None = None,
        *,
        at_most: bool = False,
    ) -> None:
        middle = statistics.median(values)
        self.verdicts.append(Verdict(name, middle, min(values), max(values), target, moonshot, at_most, unit))

    def show(self) -> None:
        width = max(map(len, [*self.figures, *(verdict.name for verdict in self.verdicts)]), default=0)
        print(f"\n{'figure':<{width}}  {'median':>9} {'least':>9} {'most':>9}  unit")
        for figure in self.figures.values():
            low, high = min(figure.rounds), max(figure.rounds)
            spread = f"{_number(figure.median):>9} {_number(low):>9} {_number(high):>9}"
            print(f"{figure.name:<{width}}  {spread}  {figure.unit}{f' ({figure.note})' if figure.note else ''}")
        print(f"\n{'target':<{width}}  {'median':>9} {'least':>9} {'most':>9}  {'wanted':>16}")
        for verdict in self.verdicts:
            sign = "≤" if verdict.at_most else "≥"
            wanted = f"{sign} {_number(verdict.target)} {verdict.unit}"
            if verdict.moonshot is not None:
                wanted += f" ({_number(verdict.moonshot)})"
            spread = f"{_number(verdict.value):>9} {_number(verdict.least):>9} {_number(verdict.most):>9}"
            print(f"{verdict.name:<{width}}  {spread}  {wanted:>16}  {verdict.word}")

    def write(self, path: Path, **about: Any) -> None:
        machine = {
            "cores": os.cpu_count(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
            "system": platform.system(),
            "processor": platform.machine(),
            "python": platform.python_version(),
        }
        content = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine,
            **about,
            "figures": [asdict(figure) | {"median": figure.median} for figure in self.figures.values()],
            "targets": [asdict(verdict) | {"verdict": verdict.word} for verdict in self.verdicts],
            "remarks": self.remarks,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n")


def _number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
