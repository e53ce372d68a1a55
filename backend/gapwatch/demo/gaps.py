"""The gaps that can be put between the two sides of the demo world, each a shift of one real quantity."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gapwatch.demo.world import REAL, Quantity, World


@dataclass(frozen=True)
class Gap:
    """What shifts, to which value, and the category that a roboticist would name."""

    category: str
    quantity: str
    value: Quantity
    handover: bool = False


GAPS = {
    "contact slip": Gap("contact_dynamics", "friction", 0.68),
    "dim light": Gap("visual", "brightness", 0.27),
    "sensor bias": Gap("sensor_noise", "depth_bias_mm", 5.4),
    "heavy object": Gap("object_property", "mass", 1.45),
    "clutter": Gap("environment_complexity", "clutter", 8.0),
    "human handover": Gap("human_behavior", "hesitation_s", 2.8, handover=True),
    "latency": Gap("latency_timing", "latency_ms", 36.0),
    "action scale": Gap("interface_contract", "action_scale", 1.3),
    "calibration": Gap("state_estimation", "calibration_mm", 3.6),
    "low voltage": Gap("actuation", "volts", 22.1),
}


def with_gaps(*names: str, world: World = REAL) -> World:
    """The real side with some gaps; without names, it differs from sim only in ways that cost nothing."""
    for name in names:
        gap = GAPS[name]
        world = replace(world, **{gap.quantity: gap.value})
    return world
