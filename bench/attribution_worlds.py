"""Worlds in which the cause of a drop is known, and what a team would have logged of them.

An episode meets lighting, an object, clutter, a person and machines; each may make it fail, apart from the others
(competing risks). A world says in what real differs from sim, and what is written down. The truth of a category is
what its difference costs: Shapley over the categories that differ, with 200,000 episodes a combination.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from gapwatch.statistics.causes.failed_episodes import FailedBatch
from gapwatch.statistics.causes.shapley import shapley
from gapwatch.statistics.causes.side_sample import SideSample, SuccessBatch
from gapwatch.taxonomy import UNATTRIBUTED

N_SIM, N_TRUTH = 1000, 200_000
LIGHTS, OBJECTS = ("dim", "normal", "bright"), ("mug", "bottle", "box", "bag")
CLUTTER, SURFACES = ("low", "medium", "high"), ("wood", "steel", "rubber")
PHASES = ("perceive", "approach", "grasp", "lift", "place")
# Where failures of a cause show. Clutter fails in the approach, which by its name points to vision.
SHOWS_IN = {
    "visual": (0.6, 0.3, 0.1, 0, 0),
    "environment_complexity": (0.05, 0.85, 0.1, 0, 0),
    "contact_dynamics": (0, 0, 0.35, 0.55, 0.1),
    "object_property": (0, 0, 0.2, 0.7, 0.1),
    "latency_timing": (0, 0.5, 0.4, 0, 0.1),
    "human_behavior": (0, 0.3, 0.2, 0.1, 0.4),
    "actuation": (0, 0.2, 0.2, 0.5, 0.1),
    "hidden": (0, 0.2, 0.6, 0.2, 0),
    UNATTRIBUTED: (0.15, 0.25, 0.25, 0.2, 0.15),
}
KNOWN_WORDS = {
    "visual": ("dark", "blur"),
    "environment_complexity": ("clutter", "collision"),
    "contact_dynamics": ("slip", "lost_grip"),
    "object_property": ("too_heavy",),
    "latency_timing": ("lag",),
    "human_behavior": ("human_moved",),
    "actuation": ("low_battery",),
    "hidden": ("missed",),
    UNATTRIBUTED: ("missed", "dropped", "gave_up"),
}
OWN_WORDS = {
    "visual": ("too dark", "img-dark!"),
    "environment_complexity": ("collision_clutter", "hit clutter box"),
    "contact_dynamics": ("obj slipped", "slipping out"),
    "object_property": ("obj too heavy",),
    "latency_timing": ("ctrl lagging",),
    "human_behavior": ("human in way",),
    "actuation": ("battery low again",),
    "hidden": ("unclear",),
    UNATTRIBUTED: ("unclear", "obj dropped", "misc"),
}


@dataclass(frozen=True)
class Machine:
    """One side: how often it meets what, and how much that costs there."""

    base: float = 0.08
    dim: float = 0.15
    dim_cost: float = 0.0
    dim_box_cost: float = 0.0
    heavy: float = 0.2
    heavy_cost: float = 0.0
    clutter: float = 0.15
    clutter_cost: float = 0.0
    human: float = 0.15
    human_cost: float = 0.0
    latency_ms: float = 10.0
    latency_spread: float = 0.15
    slip_cost: float = 0.0
    hidden_cost: float = 0.0
    wet: float | None = None
    wet_cost: float = 0.0
    volts: float = 24.0
    # Benign differences of what is measured, in spreads of sim.
    offset: float = 0.0
    # A single cause that moves latency, brightness and voltage together, and costs this.
    bundle: float = 0.0
    bundle_cost: float = 0.0


@dataclass(frozen=True)
class Log:
    """What a team writes down of one side."""

    labels: Mapping[str, tuple[str, ...]] | None = None
    phases: bool = True
    conditions: tuple[str, ...] = ("lighting", "object", "clutter", "surface", "human_present", "floor")
    signals: bool = True
    missing_in_failures: float = 0.0
    mass: bool = False
    symptoms: bool = True


@dataclass(frozen=True)
class World:
    """`causes`: the categories that truly cost something; `targets` at n_real ≥ 100, by column."""

    name: str
    real: Machine
    causes: tuple[str, ...]
    sim: Machine = Machine()
    sim_log: Log = Log()
    real_log: Log = Log()
    targets: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    # Causes that nothing tells apart: two or more of them are to share a bar.
    one_of: frozenset[str] = frozenset()


def hazards(machine: Machine, drawn: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Category → the chance that it makes each episode fail."""
    over = np.maximum(drawn["latency"] - 16.0, 0)
    return {
        UNATTRIBUTED: np.full(len(over), machine.base),
        "visual": np.where(drawn["light"] == 0, machine.dim_cost, 0.0)
        + np.where((drawn["light"] == 0) & (drawn["object"] == 2), machine.dim_box_cost, 0.0),
        "object_property": np.where(drawn["object"] == 2, machine.heavy_cost, 0.0),
        "environment_complexity": np.where(drawn["clutter"] == 2, machine.clutter_cost, 0.0)
        + np.where(drawn["wet"], machine.wet_cost, 0.0),
        "human_behavior": np.where(drawn["human"], machine.human_cost, 0.0),
        "latency_timing": 1 - np.exp(-0.04 * over),
        "contact_dynamics": np.full(len(over), machine.slip_cost),
        "hidden": np.full(len(over), machine.hidden_cost + machine.bundle_cost),
    }


def draw(machine: Machine, n: int, chance: np.random.Generator) -> dict[str, np.ndarray]:
    rest = (1 - machine.dim) / (0.6 + 0.25)
    others = (1 - machine.heavy) / 0.8
    tidy = (1 - machine.clutter) / 0.85
    latency = machine.latency_ms * np.exp(machine.latency_spread * chance.standard_normal(n))
    return {
        "light": chance.choice(3, n, p=[machine.dim, 0.6 * rest, 0.25 * rest]),
        "object": chance.choice(4, n, p=[0.3 * others, 0.3 * others, machine.heavy, 0.2 * others]),
        "clutter": chance.choice(3, n, p=[0.5 * tidy, 0.35 * tidy, machine.clutter]),
        "surface": chance.choice(3, n, p=[0.4, 0.4, 0.2]),
        "human": chance.random(n) < machine.human,
        "wet": chance.random(n) < (machine.wet or 0.0),
        "latency": latency,
    }


def play(machine: Machine, n: int, chance: np.random.Generator) -> tuple[dict, np.ndarray, np.ndarray]:
    """What was met, the category that made each episode fail ("" for a success), and the phase."""
    drawn = draw(machine, n, chance)
    own = hazards(machine, drawn)
    names = list(own)
    strikes = chance.random((len(names), n)) < np.array([own[name] for name in names])
    # Of several that strike, one comes first.
    order = np.where(strikes, chance.random((len(names), n)), 2.0)
    first = order.argmin(axis=0)
    failed = strikes.any(axis=0)
    cause = np.where(failed, np.array(names)[first], "")
    phase = np.full(n, -1)
    for name in names:
        rows = np.flatnonzero(cause == name)
        phase[rows] = chance.choice(len(PHASES), len(rows), p=SHOWS_IN[name])
    return drawn, cause, phase


def measure(machine: Machine, drawn, cause, phase, chance) -> dict[str, np.ndarray]:
    """Signals: what causes measure like, and what failing looks like."""
    n = len(phase)
    z = chance.standard_normal((10, n))
    o = machine.offset
    light = np.array([0.3, 0.6, 0.8])[drawn["light"]]
    slips = np.isin(phase, (2, 3)) & (cause != "")
    late = np.maximum(drawn["latency"] - 10, 0)
    return {
        "image_brightness": light + 0.05 * (z[0] + o) - 0.15 * machine.bundle,
        "loop_latency_ms": drawn["latency"] + 0.5 * z[1] + 0.8 * o + 12.0 * machine.bundle,
        "depth_noise_mm": np.exp(0.15 * (z[2] + o)),
        "calibration_residual_mm": np.exp(0.2 * (z[3] + o)),
        "bus_voltage_v": machine.volts + 0.2 * (z[4] - o) - 1.2 * machine.bundle,
        "clutter_count": np.array([1.0, 4.0, 8.0])[drawn["clutter"]] + np.round(z[5]),
        "tracking_rmse_rad": 0.01 * np.exp(0.15 * (z[6] + o)) + 0.0015 * late,
        "peak_force_n": 15 * np.exp(0.1 * (z[7] + o)) + 0.4 * late + 8.0 * slips,
        "slip_mm": np.exp(0.3 * (z[8] + o)) + 4.0 * slips * (cause == "contact_dynamics") + 1.5 * slips,
        "object_mass_kg": np.array([0.35, 0.5, 0.8, 0.25])[drawn["object"]] * np.exp(0.05 * z[9]),
    }


def sample_of(machine: Machine, log: Log, n: int, chance: np.random.Generator) -> SideSample:
    drawn, cause, phase = play(machine, n, chance)
    signals = measure(machine, drawn, cause, phase, chance) if log.signals else {}
    if not log.mass:
        signals.pop("object_mass_kg", None)
    if not log.symptoms:
        signals = {k: v for k, v in signals.items() if k not in ("slip_mm", "peak_force_n", "tracking_rmse_rad")}
    failed = cause != ""
    if log.missing_in_failures:
        for name in signals:
            lost = failed & (chance.random(n) < log.missing_in_failures)
            signals[name] = np.where(lost, np.nan, signals[name])
    words = {
        "lighting": np.array(LIGHTS)[drawn["light"]],
        "object": np.array(OBJECTS)[drawn["object"]],
        "clutter": np.array(CLUTTER)[drawn["clutter"]],
        "surface": np.array(SURFACES)[drawn["surface"]],
        "human_present": np.where(drawn["human"], "true", "false"),
        "floor": np.where(drawn["wet"], "wet", "dry") if machine.wet is not None else np.full(n, "missing"),
    }
    conditions = {name: words[name] for name in log.conditions}
    rows, rest = np.flatnonzero(failed), np.flatnonzero(~failed)
    labels = [_labels(log.labels, word, chance) for word in cause[rows].tolist()]
    return SideSample(
        n,
        len(rows),
        FailedBatch(
            np.ones(len(rows)),
            [None] * len(rows),
            labels,
            [PHASES[number] if log.phases else None for number in phase[rows].tolist()],
            {name: levels[rows].tolist() for name, levels in conditions.items()},
            {name: values[rows] for name, values in signals.items()},
        ),
        SuccessBatch(
            len(rest),
            {name: levels[rest].tolist() for name, levels in conditions.items()},
            {name: values[rest] for name, values in signals.items()},
        ),
    )


def _labels(words, cause: str, chance: np.random.Generator) -> list[str]:
    """Three of four name the cause, the others nothing, or what anybody sees."""
    if words is None:
        return []
    care = chance.random()
    if care > 0.9:
        return []
    own = words[cause] if care < 0.75 else words[UNATTRIBUTED]
    return [own[int(chance.integers(len(own)))]]


def two_sides(world: World, n_real: int, seed: int, n_sim: int = N_SIM) -> tuple[SideSample, SideSample]:
    chance = np.random.default_rng(seed)
    return (
        sample_of(world.sim, world.sim_log, n_sim, chance),
        sample_of(world.real, world.real_log, n_real, chance),
    )


def truth_of(world: World) -> dict[str, float]:
    return _truth(world.name)


@cache
def _truth(name: str) -> dict[str, float]:
    """Shapley over the categories that differ."""
    world = BY_NAME[name]
    fields_of = {
        "visual": ("dim", "dim_cost", "dim_box_cost"),
        "object_property": ("heavy", "heavy_cost"),
        "environment_complexity": ("clutter", "clutter_cost", "wet", "wet_cost"),
        "human_behavior": ("human", "human_cost"),
        "latency_timing": ("latency_ms", "latency_spread"),
        "contact_dynamics": ("slip_cost",),
    }

    def failure_rate(switched: int) -> float:
        own = {
            name: getattr(world.real, name)
            for i, cause in enumerate(world.causes)
            for name in fields_of[cause]
            if switched >> i & 1
        }
        machine = replace(world.sim, **own)
        drawn = draw(machine, N_TRUTH, np.random.default_rng(5))
        left = np.prod([1 - hazard for hazard in hazards(machine, drawn).values()], axis=0)
        return float(1 - left.mean())

    if not world.causes:
        return {}
    parts = shapley([failure_rate(switched) for switched in range(1 << len(world.causes))])
    return dict(zip(world.causes, (float(part) for part in parts), strict=True))


KNOWN, OWN, PLAIN = Log(labels=KNOWN_WORDS), Log(labels=OWN_WORDS), Log()
NO_SIGNALS = Log(signals=False)
HARD_LIGHT = Machine(dim_cost=0.45)
HARD_PEOPLE = Machine(human_cost=0.5)
WORLDS = (
    World("known labels", Machine(slip_cost=0.2, offset=1.0), ("contact_dynamics",), Machine(slip_cost=0.01),
          KNOWN, KNOWN, {"first": 1.0, "covered": 0.9, "accused": 0.15}),
    World("clutter, own words", Machine(clutter=0.35, clutter_cost=0.4, offset=1.0), ("environment_complexity",),
          Machine(clutter_cost=0.3), OWN, OWN, {"first": 0.85, "covered": 0.9, "accused": 0.15}),
    World("clutter, no labels", Machine(clutter=0.35, clutter_cost=0.4, offset=1.0), ("environment_complexity",),
          Machine(clutter_cost=0.3), NO_SIGNALS, NO_SIGNALS, {"first": 0.75, "covered": 0.9, "accused": 0.15}),
    World("clutter harder in real, no labels", Machine(clutter=0.3, clutter_cost=0.4, offset=1.0),
          ("environment_complexity",), Machine(clutter=0.3, clutter_cost=0.05), NO_SIGNALS, NO_SIGNALS,
          {"first": 0.75, "covered": 0.9, "accused": 0.15}),
    World("mix: more dim light", replace(HARD_LIGHT, dim=0.65, offset=1.0), ("visual",), HARD_LIGHT,
          targets={"first": 0.95, "covered": 0.9, "accused": 0.15}),
    World("mix: more dim light, no signals", replace(HARD_LIGHT, dim=0.65), ("visual",), HARD_LIGHT,
          NO_SIGNALS, NO_SIGNALS, {"first": 0.95, "covered": 0.9, "accused": 0.15}),
    World("mix: more humans", replace(HARD_PEOPLE, human=0.6, offset=1.0), ("human_behavior",), HARD_PEOPLE,
          targets={"first": 0.95, "covered": 0.9, "accused": 0.15}),
    World("heavy object, mass not logged", Machine(heavy=0.45, heavy_cost=0.45, offset=1.0), ("object_property",),
          Machine(heavy_cost=0.15), targets={"first": 0.9, "covered": 0.9, "accused": 0.15}),
    World("latency, signals missing in failures", Machine(latency_ms=22.0, latency_spread=0.25, offset=1.0),
          ("latency_timing",), real_log=Log(missing_in_failures=0.7), sim_log=Log(missing_in_failures=0.7),
          targets={"first": 0.85, "covered": 0.9, "accused": 0.2}),
    World("mediator: latency, tracking, force", Machine(latency_ms=22.0, latency_spread=0.25, offset=1.0),
          ("latency_timing",), targets={"first": 0.95, "covered": 0.9, "accused": 0.2}),
    World("two causes", Machine(latency_ms=22.0, latency_spread=0.25, dim=0.5, dim_cost=0.45, offset=1.0),
          ("latency_timing", "visual"), HARD_LIGHT, targets={"first": 0.9, "covered": 0.9, "accused": 0.2}),
    World("contact, no labels", Machine(slip_cost=0.2, offset=1.0), ("contact_dynamics",), Machine(slip_cost=0.01),
          targets={"first": 0.9, "covered": 0.9, "accused": 0.2}),
    World("interaction: dim × box", Machine(dim=0.5, heavy=0.3, dim_box_cost=0.7, offset=1.0), ("visual",),
          Machine(heavy=0.3, dim_box_cost=0.7), targets={"covered": 0.9},
          note="Both were met together only: one of these is said, or both get a share."),
    World("one cause moves three signals", Machine(bundle=1.0, bundle_cost=0.2), (),
          targets={"first": 0.8, "accused": 0.2}, note="Never varied apart: one of these.",
          one_of=frozenset({"visual", "latency_timing", "actuation"})),
    World("cause not logged", Machine(hidden_cost=0.2, offset=1.0), (), targets={"accused": 0.2}),
    World("cause in real only: wet floor", Machine(wet=0.5, wet_cost=0.4, offset=1.0), ("environment_complexity",),
          targets={"first": 0.9, "covered": 0.9, "accused": 0.15}),
    World("null: benign offsets", Machine(offset=1.0), (), targets={"accused": 0.05}),
    World("null: large offsets", Machine(offset=3.0), (), targets={"accused": 0.05}),
    World("null: labels in real only", Machine(offset=1.0), (), real_log=KNOWN, targets={"accused": 0.05}),
    World("null: phases in real only", Machine(offset=1.0), (), sim_log=Log(phases=False), targets={"accused": 0.05}),
    World("null: signals in real only", Machine(offset=1.0), (), sim_log=NO_SIGNALS, targets={"accused": 0.05}),
    World("null: costly conditions, one mix", replace(HARD_LIGHT, human_cost=0.3, offset=1.0), (),
          replace(HARD_LIGHT, human_cost=0.3), targets={"accused": 0.05}),
)  # fmt: skip
BY_NAME = {world.name: world for world in WORLDS}
Weigher = Callable[[SideSample, SideSample], object]
