"""How people label failures: mostly with the cause, sometimes with what they saw, sometimes not at all."""

from __future__ import annotations

import numpy as np

from gapwatch.demo.world import Run
from gapwatch.taxonomy import UNATTRIBUTED

CAUSE_LABELS = {
    "contact_dynamics": "slip",
    "visual": "dark",
    "sensor_noise": "sensor_offset",
    "object_property": "too_heavy",
    "environment_complexity": "occluded",
    "human_behavior": "hesitation",
    "latency_timing": "lag",
    "state_estimation": "miscalibrated",
    "actuation": "low_battery",
    "interface_contract": "wrong_scale",
    "sim_numerics": "unstable_contact",
    "policy_robustness": "no_recovery",
}
# A heavy object, a smooth one and bad luck all look like "dropped"; "missed" says nothing about the cause.
SEEN_LABELS = {
    "perceive": "not_detected",
    "approach": "missed",
    "grasp": "grasp_failed",
    "lift": "dropped",
    "transport": "dropped",
    "place": "misplaced",
    "handover": "handover_failed",
}
NAMES_THE_CAUSE, SAYS_SOMETHING = 0.75, 0.9


def label_failures(run: Run, generator: np.random.Generator) -> list[list[str]]:
    """The labels of each episode, none for a success: 15 of 20 failures name the cause, 3 what was seen."""
    care = generator.random(run.scene.n)
    labels: list[list[str]] = []
    for cause, phase, chance in zip(run.causes.tolist(), run.failed_in.tolist(), care.tolist(), strict=True):
        if not cause or chance > SAYS_SOMETHING:
            labels.append([])
        elif chance > NAMES_THE_CAUSE or cause == UNATTRIBUTED:
            labels.append([SEEN_LABELS[run.phases[phase]]])
        else:
            labels.append([CAUSE_LABELS[cause]])
    return labels
