"""What a robot's sensors report about an episode's quantities: noisy, and only for the phases it reached."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Phases by their number: a slip is seen while lifting, a mass once something hangs in the gripper.
APPROACH, GRASP, LIFT, LAST = 1, 2, 3, 5
GRAVITY = 9.81


@dataclass(frozen=True)
class Quantities:
    """The physical quantities of each episode."""

    usual_mass_kg: Array
    mass_kg: Array
    friction: Array
    brightness: Array
    blur: Array
    clutter: Array
    occlusion: Array
    depth_bias_mm: Array
    depth_noise_mm: Array
    latency_ms: Array
    lag_mm: Array
    calibration_mm: Array
    volts: Array
    wait_s: Array
    scale_error: Array
    wear: Array
    exploit: Array


def measure(q: Quantities, margins: Array, reached: Array, z: Array, handover: bool) -> dict[str, Array]:
    """Signal → one number per episode, NaN where it was not measured.

    Some signals measure causes (brightness, latency, mass), others their effects: a heavy object and a smooth one
    both slip, a late loop and a wrong scale both track badly, and dim or crowded images are all unlike the
    training data.
    """
    slack = np.minimum(margins[LIFT] / 2.45, 1.5)
    strange = np.abs(np.log(q.brightness / 0.62)) + 0.8 * q.occlusion + 0.02 * q.clutter
    signals = {
        "image_brightness": q.brightness + 0.01 * z[0],
        "image_blur_px": q.blur * np.exp(0.1 * z[1]),
        "detection_confidence": 1 / (1 + np.exp(-0.9 * (margins[0] - 0.3 * z[2]))),
        "clutter_count": q.clutter,
        "occlusion_ratio": np.clip(q.occlusion + 0.02 * z[3], 0, 1),
        "depth_noise_mm": q.depth_noise_mm * np.exp(0.05 * z[4]),
        "depth_bias_mm": q.depth_bias_mm + 0.3 * z[5],
        "loop_latency_ms_p95": q.latency_ms * np.exp(0.05 * z[6]),
        "loop_jitter_ms": 0.1 * q.latency_ms * np.exp(0.3 * z[7]),
        "calibration_residual_mm": q.calibration_mm * np.exp(0.1 * z[8]),
        "bus_voltage_v": q.volts + 0.05 * z[9],
        "ood_score": strange * np.exp(0.15 * z[10]),
    }
    late = {
        APPROACH: {
            "tracking_rmse_rad": (0.006 * q.wear + 0.0004 * q.lag_mm + 0.02 * q.scale_error)
            * np.exp(0.12 * z[11]),
            "overshoot_mm": (1.5 + 0.1 * q.lag_mm + 20 * q.scale_error) * np.exp(0.2 * z[12]),
            "motor_temperature_c": 41 + 4 * q.wear + 1.5 * z[13],
        },
        GRASP: {
            "peak_force_n": (14 + 1.2 * GRAVITY * q.mass_kg) * np.exp(0.08 * z[14]),
            "grasp_retries": np.round(np.maximum(0.6 - 0.4 * margins[GRASP] + 0.5 * z[15], 0)),
        },
        LIFT: {
            "slip_mm": np.exp(0.2 - 1.6 * slack + 0.25 * z[16]),
            "payload_kg": q.mass_kg * np.exp(0.04 * z[17]),
            "object_mass_error_kg": q.mass_kg - q.usual_mass_kg + 0.02 * z[18],
            "motor_current_a": (2.0 + 1.4 * q.mass_kg + 0.3 * (24 - q.volts)) * np.exp(0.06 * z[19]),
        },
        LAST: {"handover_wait_s": q.wait_s * np.exp(0.05 * z[20])} if handover else {},
    }
    for phase, measured in late.items():
        for name, values in measured.items():
            signals[name] = np.where(reached > phase, values, np.nan)
    if (q.exploit > 0).any():
        signals["contact_penetration_mm"] = np.where(q.exploit > 0, 1.5 + q.exploit + 0.3 * z[18], np.nan)
    return signals
