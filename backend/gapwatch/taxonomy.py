"""The gap categories: where a drop from simulation to reality can come from."""

from __future__ import annotations

HEADLINE = (
    "contact_dynamics",
    "visual",
    "sensor_noise",
    "object_property",
    "environment_complexity",
    "human_behavior",
)
CATEGORIES = (
    *HEADLINE,
    "robot_dynamics",
    "actuation",
    "latency_timing",
    "state_estimation",
    "sim_numerics",
    "policy_robustness",
    "interface_contract",
)
