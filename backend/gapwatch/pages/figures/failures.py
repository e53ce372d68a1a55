"""Real failures by phase and category, weighed as in the ledger; cells in which sim never fails are outlined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gapwatch.answers.failures import FailureGroup
from gapwatch.pages.figures.text import bold, narrow_category, plain, short
from gapwatch.pages.words import category_name, count
from gapwatch.taxonomy import UNATTRIBUTED

MOST_PHASES = 8
NO_PHASE = "no phase"
# Fewer failures than this are shown as none.
HARDLY_ANY = 0.5
ROW_HEIGHT, FRAME_HEIGHT = 32, 40


@dataclass(frozen=True)
class FailureTable:
    """Real and sim failures, [category][phase]; rows by what only real has, columns as often as they occur."""

    categories: list[str]
    phases: list[str]
    real: list[list[float]]
    sim: list[list[float]]

    @property
    def only_real(self) -> float:
        return sum(
            real
            for row, others in zip(self.real, self.sim, strict=True)
            for real, sim in zip(row, others, strict=True)
            if sim < HARDLY_ANY
        )


def failure_table(groups: Sequence[FailureGroup]) -> FailureTable:
    """The groups' weights by category and phase; a category with hardly any failure has no row."""
    cells: dict[tuple[str, str], list[float]] = {}
    for group in groups:
        for weight in group.weights:
            cell = cells.setdefault((weight.category, group.phase or NO_PHASE), [0.0, 0.0])
            cell[0] += weight.real
            cell[1] += weight.sim
    phases = _by_weight(cells, 1)[:MOST_PHASES]
    total: dict[str, float] = {}
    only: dict[str, float] = {}
    for (category, phase), (real, sim) in cells.items():
        if phase in phases and real:
            total[category] = total.get(category, 0.0) + real
            only[category] = only.get(category, 0.0) + (real if sim < HARDLY_ANY else 0.0)
    least = min(HARDLY_ANY, max(total.values(), default=0.0))
    only = {category: failures for category, failures in only.items() if total[category] >= least}
    order = sorted(only, key=lambda name: (name == UNATTRIBUTED, -only[name], -total[name], name))
    return FailureTable(
        order,
        phases,
        *(
            [[cells.get((category, phase), [0.0, 0.0])[side] for phase in phases] for category in order]
            for side in (0, 1)
        ),
    )


def _by_weight(cells: dict[tuple[str, str], list[float]], place: int) -> list[str]:
    weight: dict[str, float] = {}
    for key, cell in cells.items():
        weight[key[place]] = weight.get(key[place], 0.0) + cell[0]
    return [name for name in sorted(weight, key=lambda name: (-weight[name], name)) if weight[name]]


def height(table: FailureTable) -> int:
    return FRAME_HEIGHT + ROW_HEIGHT * max(1, len(table.categories))


def failures_figure(
    table: FailureTable,
    n_real: int,
    n_sim: int,
    href: Callable[[str], str] | None = None,
    words: tuple[str, str] = ("sim", "real"),
) -> dict[str, Any]:
    """`href(phase)` answers where the real failures of a phase are listed; without it the cells are no links."""
    rows, columns = range(len(table.categories)), range(len(table.phases))
    largest = max((value for row in table.real for value in row), default=1.0)
    links = {}
    if href is not None:
        links["customdata"] = [[{"href": href(phase)} for phase in table.phases] for _ in rows]
    outlined = [(x, y) for y in rows for x in columns if _is_new(table, x, y)]
    return {
        "data": [
            {
                "type": "heatmap",
                "z": [[value or None for value in row] for row in table.real],
                "x": list(columns),
                "y": list(rows),
                "hovertext": [[_hover(table, x, y, (n_sim, n_real), words) for x in columns] for y in rows],
                "hovertemplate": "%{hovertext}<extra></extra>",
                **links,
                "showscale": False,
                "xgap": 3,
                "ygap": 3,
                "zmin": 0,
                "zmax": 1.1 * largest,
                "hoverongaps": False,
                "colorscale": [[0, "var(--heat-0)"], [0.35, "var(--heat-1)"], [1, "var(--heat-2)"]],
            }
        ],
        "layout": {
            "margin": {"l": 164, "r": 4, "t": 28, "b": 4},
            "xaxis": {"side": "top", "tickvals": list(columns), "showgrid": False,
                      "ticktext": [short(phase, 12) for phase in table.phases],
                      "range": [-0.5, len(table.phases) - 0.5]},
            "yaxis": {"range": [len(table.categories) - 0.5, -0.5], "tickvals": list(rows),
                      "ticktext": [plain(category_name(name)) for name in table.categories]},
            "shapes": [
                {"type": "rect", "x0": x - 0.46, "x1": x + 0.46, "y0": y - 0.42, "y1": y + 0.42,
                 "line": {"color": "var(--ink)", "width": 2}, "fillcolor": "rgba(0,0,0,0)"}
                for x, y in outlined
            ],
            "annotations": [
                {"x": x, "y": y, "text": f"<b>{value:.0f}</b>" if (x, y) in outlined else f"{value:.0f}",
                 "showarrow": False, "font": {"size": 13, "color": _ink(value, largest)}}
                for y in rows for x in columns if round(value := table.real[y][x])
            ],
        },
        "narrow": {
            "layout.margin.l": 84,
            "layout.margin.r": 26,
            "layout.margin.t": 58,
            "layout.xaxis.tickangle": -45,
            "layout.yaxis.ticktext": [narrow_category(name) for name in table.categories],
        },
    }  # fmt: skip


def _is_new(table: FailureTable, x: int, y: int) -> bool:
    """Whether real fails in a way that sim does not know."""
    return table.real[y][x] >= HARDLY_ANY > table.sim[y][x]


def _ink(value: float, largest: float) -> str:
    """On the strongest cells the paper's own dark: the hue is as bright in both themes."""
    return "#17191c" if value > 0.5 * largest else "var(--ink)"


def _hover(table: FailureTable, x: int, y: int, n: tuple[int, int], called: tuple[str, str]) -> str:
    real, sim = table.real[y][x], table.sim[y][x]
    words = [
        f"{bold(category_name(table.categories[y]))} in {plain(table.phases[x])}",
        f"{count(round(real, 1))} of {count(n[1])} episodes, {called[1]}",
        f"{count(round(sim, 1))} of {count(n[0])} episodes, {called[0]}",
    ]
    if _is_new(table, x, y):
        words.append(f"<b>{called[1]} only</b>")
    return "<br>".join(words)
