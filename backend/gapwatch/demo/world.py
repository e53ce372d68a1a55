"""A small world of grasping in which the cause of every failure is known.

An episode passes through phases. Each phase has a margin: a base, the effects of physical quantities (friction
against weight, brightness against what the detector needs, latency times speed …) and chance. It fails in the
first phase whose margin is below zero. A gap is a shift of a quantity of the real side; `gaps.py` has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapwatch.demo.sensors import Quantities, measure
from gapwatch.taxonomy import UNATTRIBUTED

Array = NDArray[np.float64]
Quantity = float | Array

PHASES = ("perceive", "approach", "grasp", "lift", "transport", "place")
HANDOVER_PHASES = (*PHASES[:-1], "handover")
OBJECTS = ("mug", "bottle", "box", "bag")
OBJECT_KG = np.array([0.35, 0.5, 0.8, 0.25])
SURFACES = ("wood", "steel", "rubber")
# What the policy was trained for: the friction it expects, the light its detector needs, the errors it tolerates.
FRICTION, BRIGHTNESS, OCCLUSION, CLUTTER = 0.5, 0.38, 0.35, 5.0
BIAS_MM, CALIBRATION_MM, LAG_MM, VOLTS, WAIT_S = 2.0, 2.0, 9.0, 22.8, 1.8
BASE, QUANTITIES, MEASUREMENTS = 2.45, 14, 21


@dataclass(frozen=True)
class World:
    """The quantities of one side. Each may be an array with a value per episode: a drift, one robot, one shift."""

    friction: Quantity = 1.0
    rubber_friction: Quantity = 1.0
    mass: Quantity = 1.0
    brightness: Quantity = 0.62
    brightness_spread: Quantity = 0.07
    blur: Quantity = 1.0
    clutter: Quantity = 2.0
    depth_bias_mm: Quantity = 0.0
    depth_noise_mm: Quantity = 1.2
    latency_ms: Quantity = 5.0
    latency_spread: Quantity = 0.08
    calibration_mm: Quantity = 0.8
    volts: Quantity = 24.0
    hesitation_s: Quantity = 0.8
    action_scale: Quantity = 1.0
    wear: Quantity = 1.0
    # A policy's skill moves every margin, its touch those of grasping and lifting. What it gains by exploiting a
    # simulator's contacts is missing in reality.
    skill: Quantity = 0.0
    touch: Quantity = 0.0
    exploit: Quantity = 0.0


SIM = World()
# Real robots differ from their simulators in many ways that cost nothing: slower loops, noisier depth, more varied
# light, worn joints. Every real world has them, even the one without a gap.
REAL = World(
    brightness_spread=0.1, blur=1.25, depth_noise_mm=1.7, latency_ms=7.5, latency_spread=0.15, volts=23.8, wear=1.3
)


@dataclass(frozen=True)
class Scene:
    """The random draws of each episode, before a side's quantities act on them; it may run in several worlds."""

    objects: NDArray[np.int64]
    surfaces: NDArray[np.int64]
    chance: Array
    noise: Array
    handover: bool

    @property
    def n(self) -> int:
        return len(self.objects)


@dataclass(frozen=True)
class Run:
    """The episodes of one world, as columns. `failed_in` is the index of the phase, −1 for a success.

    `causes` holds the truth, apart from everything a record may carry: the category of the largest setback in the
    phase that failed, `unattributed` where chance alone would have failed it too, "" for a success.
    """

    scene: Scene
    phases: tuple[str, ...]
    failed_in: NDArray[np.int64]
    causes: NDArray[np.str_]
    signals: Mapping[str, Array]
    quantities: Quantities
    duration_s: Array

    @property
    def failed(self) -> NDArray[np.bool_]:
        return np.asarray(self.failed_in >= 0)


def draw_scene(
    n: int,
    generator: np.random.Generator,
    *,
    handover: bool = False,
    objects: tuple[float, ...] = (0.3, 0.3, 0.2, 0.2),
    surfaces: tuple[float, ...] = (0.4, 0.4, 0.2),
) -> Scene:
    """Draw objects and surfaces in the given shares, and all the random numbers of each episode."""
    return Scene(
        generator.choice(len(OBJECTS), n, p=objects),
        generator.choice(len(SURFACES), n, p=surfaces),
        generator.standard_normal((len(PHASES), n)),
        generator.standard_normal((QUANTITIES + MEASUREMENTS, n)),
        handover,
    )


def run(world: World, scene: Scene) -> Run:
    """Run the scene's episodes in a world. In another world the same scene has the same random numbers."""
    q = meet(world, scene)
    effects = effects_of(world, scene, q)
    margins = np.array([BASE + world.skill + sum(effect.values()) for effect in effects]) + scene.chance
    failed_in = np.where((margins < 0).any(axis=0), (margins < 0).argmax(axis=0), -1)
    causes = np.full(scene.n, "", dtype="<U24")
    for phase, effect in enumerate(effects):
        largest = np.array([*effect])[np.array([*effect.values()]).argmin(axis=0)]
        by_chance = BASE + world.skill + scene.chance[phase] < 0
        causes = np.where(failed_in == phase, np.where(by_chance, UNATTRIBUTED, largest), causes)
    # A phase takes about two seconds; one that fails is cut short.
    reached = np.where(failed_in < 0, len(PHASES), failed_in + 0.5)
    duration = 2.0 * reached * np.exp(0.1 * scene.noise[-1])
    signals = measure(q, margins, reached, scene.noise[QUANTITIES:], scene.handover)
    phases = HANDOVER_PHASES if scene.handover else PHASES
    return Run(scene, phases, failed_in, causes, signals, q, duration)


def meet(world: World, scene: Scene) -> Quantities:
    """The quantities of each episode in a world."""
    z = scene.noise
    rubber = np.where(scene.surfaces == SURFACES.index("rubber"), world.rubber_friction, 1.0)
    clutter = np.round(np.maximum(world.clutter + np.sqrt(world.clutter) * z[0], 0))
    latency = world.latency_ms * np.exp(world.latency_spread * z[1])
    return Quantities(
        usual_mass_kg=OBJECT_KG[scene.objects],
        mass_kg=OBJECT_KG[scene.objects] * world.mass * np.exp(0.1 * z[2]),
        friction=FRICTION * world.friction * rubber * np.exp(0.08 * z[3]),
        brightness=np.minimum(world.brightness * np.exp(world.brightness_spread * z[4]), 1.0),
        blur=world.blur * np.exp(0.15 * z[5]),
        clutter=clutter,
        occlusion=np.clip(0.05 * clutter + 0.04 * np.abs(z[6]), 0, 0.95),
        depth_bias_mm=world.depth_bias_mm + 0.4 * z[7],
        depth_noise_mm=world.depth_noise_mm * np.exp(0.12 * z[8]),
        latency_ms=latency,
        # Milliseconds times metres a second are millimetres: how far the world moves on while the robot waits.
        lag_mm=latency * 0.6 * np.exp(0.12 * z[9]),
        calibration_mm=world.calibration_mm * np.exp(0.25 * z[10]),
        volts=world.volts + 0.2 * z[11],
        wait_s=world.hesitation_s * np.exp(0.35 * z[12]),
        scale_error=np.abs(np.log(world.action_scale)) * np.exp(0.15 * z[13]),
        wear=world.wear * np.ones(scene.n),
        exploit=world.exploit * np.ones(scene.n),
    )


def effects_of(world: World, scene: Scene, q: Quantities) -> tuple[dict[str, Array], ...]:
    """For each phase, what each category adds to the margin: nothing within the policy's tolerance."""
    grip = np.minimum(np.log(q.friction / FRICTION), 0.1)
    heavier = np.log(q.mass_kg / q.usual_mass_kg)
    offset, shifted = over(np.abs(q.depth_bias_mm), BIAS_MM), over(q.calibration_mm, CALIBRATION_MM)
    late, crowded = over(q.lag_mm, LAG_MM), over(q.clutter, CLUTTER)
    if scene.handover:
        last = {"human_behavior": -1.5 * over(q.wait_s, WAIT_S)}
    else:
        last = {"state_estimation": -0.3 * shifted, "environment_complexity": -0.2 * crowded}
    return (
        {
            "visual": -6.0 * over(np.log(BRIGHTNESS / q.brightness), 0),
            "environment_complexity": -9.0 * over(q.occlusion, OCCLUSION),
        },
        {
            "sensor_noise": -0.5 * offset,
            "state_estimation": -0.9 * shifted,
            "latency_timing": -0.13 * late,
            "environment_complexity": -0.3 * crowded,
            "interface_contract": -7.0 * q.scale_error,
        },
        {
            "sensor_noise": -0.3 * offset,
            "state_estimation": -0.4 * shifted,
            "contact_dynamics": 2.0 * grip,
            "sim_numerics": q.exploit,
            "policy_robustness": world.touch + 0.0 * grip,
        },
        {
            "contact_dynamics": 5.0 * grip,
            "object_property": -5.0 * heavier,
            "sim_numerics": q.exploit,
            "policy_robustness": world.touch + 0.0 * grip,
        },
        {
            "latency_timing": -0.08 * late,
            "actuation": -2.2 * over(VOLTS - q.volts, 0),
            "contact_dynamics": 2.0 * grip,
        },
        last,
    )


def over(value: Array, limit: float) -> Array:
    return np.asarray(np.maximum(value - limit, 0))
