"""The figures of what a drop is made of."""

from __future__ import annotations

from drawing import GREY, INK, REAL, SIM, WARN, Plot

from gapwatch.demo.experiment import ledger_of, true_contributions, two_sides
from gapwatch.statistics.causes.decomposition import decompose
from gapwatch.statistics.causes.slices import slice_drops


def draw_ledger() -> str:
    sim, real = two_sides(("contact slip", "dim light"), 300, 6, labelled=True)
    ledger = ledger_of(sim, real)
    truth = true_contributions(("contact slip", "dim light"), sim.run.scene.handover)
    shown = [e for e in ledger.entries if e.interval][:6]
    plot = Plot(
        (-0.05, 0.5),
        (0, len(shown) + 2),
        title=f"A drop of {100 * (ledger.drop or 0):.0f} points over categories; ◆ is the truth",
        x_name="points of success lost",
        left=170,
    )
    plot.ticks((0, 0.1, 0.2, 0.3, 0.4, 0.5), form="{:.0%}")
    for row, entry in enumerate([*shown, ledger.unattributed]):
        y = len(shown) + 1 - row
        plot.bar(y, 0, entry.contribution, REAL if entry.category in truth else GREY)
        if entry.interval:
            plot.whisker(y, *entry.interval)
        plot.beside(y, entry.category)
        if entry.category in truth:
            plot.words(truth[entry.category], y, "◆", INK, "middle")
    plot.mark(0)
    return plot.svg()


def draw_decomposition() -> str:
    # TRI, Single Task (Dryad 10.5061/dryad.xd2547dxc, CC0): thirteen tasks in sim only, three on both sides.
    only = [149, 123, 166, 131, 109, 189, 159, 100, 145, 39, 107, 156, 137]
    sizes = [200, 200, 199, 200, 200, 200, 199, 200, 200, 200, 200, 200, 200]
    strata = {f"s{i}": (k, n, 0, 0) for i, (k, n) in enumerate(zip(only, sizes, strict=True))}
    strata |= {"push": (32, 199, 6, 50), "kiwi": (27, 200, 22, 50), "mug": (75, 200, 42, 50)}
    found = decompose(strata)
    plot = Plot(
        (-0.3, 0.4),
        (0, 5),
        title="It seems to lose 11 points; on the tasks that both sides have it gains 24",
        left=215,
        x_name="success lost, sim − real",
    )
    plot.ticks((-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3, 0.4), form="{:+.0%}")
    rows = (
        ("crude drop", found.crude, GREY),
        ("off-support: tasks of one side", found.off_support, SIM),
        ("mix: other shares", found.mix, SIM),
        ("rate: same task, other outcome", found.rate, REAL),
    )
    for row, (words, value, colour) in enumerate(rows):
        plot.bar(4 - row, 0, value or 0, colour)
        plot.beside(4 - row, words)
        plot.words(
            (value or 0) + (0.01 if (value or 0) >= 0 else -0.01),
            4 - row,
            f"{100 * (value or 0):+.1f}",
            INK,
            "start" if (value or 0) >= 0 else "end",
        )
    plot.mark(0)
    return plot.svg()


def draw_slices() -> str:
    counts = {
        ("lighting", "bright"): (475, 500, 138, 150), ("lighting", "dim"): (188, 200, 66, 120),
        ("object", "mug"): (285, 300, 76, 100), ("object", "box"): (190, 200, 66, 85),
        ("object", "glass"): (188, 200, 62, 85), ("surface", "wood"): (430, 450, 152, 200),
        ("surface", "steel"): (233, 250, 52, 70),
    }  # fmt: skip
    found = slice_drops(counts)
    plot = Plot(
        (-0.2, 0.6),
        (0, len(found) + 1),
        title="The drop at each level; red: it stands out from the other levels of its condition",
        x_name="success lost, sim − real",
        left=150,
    )
    plot.ticks((-0.2, 0, 0.2, 0.4, 0.6), form="{:.0%}")
    for row, level in enumerate(found):
        y, colour = len(found) - row, WARN if level.is_suspect else GREY
        plot.whisker(y, *(level.interval or (0, 0)), colour)
        plot.dots([level.drop or 0], [y], colour, 5 if level.is_suspect else 3)
        plot.beside(y, f"{level.condition}: {level.level}")
        plot.words(0.45, y, level.verdict, colour)
    plot.mark(0)
    return plot.svg()
