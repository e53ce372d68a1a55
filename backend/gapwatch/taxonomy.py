"""The gap categories: where a drop from simulation to reality can come from, and what evidence points to each.

The mappings from phases, labels, conditions and signals are data. A project overrides what its words mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Literal

from cachetools import FIFOCache

HEADLINE = (
    "contact_dynamics", "visual", "sensor_noise", "object_property", "environment_complexity", "human_behavior",
)  # fmt: skip
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
UNATTRIBUTED = "unattributed"
MOST_CACHED = 10_000

Kind = Literal["phases", "labels", "conditions", "signals"]
KINDS: tuple[Kind, ...] = ("phases", "labels", "conditions", "signals")


@dataclass(frozen=True)
class Category:
    """One gap category. The words of each kind are whole names, or patterns with * for anything."""

    id: str
    name: str
    covers: str
    mitigation: str
    collect: str
    phases: str = ""
    labels: str = ""
    conditions: str = ""
    signals: str = ""

    @property
    def is_headline(self) -> bool:
        return self.id in HEADLINE


DEFAULTS = (
    Category(
        "contact_dynamics", "Contact dynamics",
        "Friction, stick-slip, restitution, contact area, deformable contact, belt slippage.",
        "Randomise friction and restitution around measured values; fit contact stiffness to real force traces.",
        "Peak and mean contact force, slip detections, the surface and pad material of each episode.",
        phases="grasp contact insert insertion lift transport",
        labels="slip slipped stick_slip lost_grip drop dropped bounce jam jammed wedged grasp_failed",
        conditions="surface surface_* material pad friction* wet*",
        signals="*force* *slip* *impact* *contact* *friction* *grip*",
    ),
    Category(
        "visual", "Visual",
        "Texture, lighting, shadow, reflection, blur, lens, exposure, weather.",
        "Randomise light, texture and exposure; match the camera model; add real images to training.",
        "Image brightness, blur and exposure, the lighting and camera of each episode, image embeddings.",
        phases="perceive perception detect approach localise localize",
        labels="glare shadow blur blurred dark overexposed reflection not_detected misdetected wrong_object",
        conditions="*light* camera camera_* exposure* weather background texture *glare*",
        signals="*bright* *blur* *exposure* *contrast* *sharpness* image_* *camera* *detection* *embedding*",
    ),
    Category(
        "sensor_noise", "Sensor noise",
        "IMU drift, force-torque offset, encoder quantisation, rolling shutter, depth noise, dropout.",
        "Add measured noise, bias and dropout to simulated sensors; re-zero and shield the real ones.",
        "Noise floor, bias and dropout rate of each sensor, the share of invalid depth pixels.",
        labels="dropout sensor_dropout noise noisy depth_hole imu_drift sensor_offset sensor_fault",
        conditions="sensor sensor_* depth_camera",
        signals="*noise* *bias* *dropout* *depth_invalid* *invalid_depth* *snr* *imu_* *gyro_* *quantis*",
    ),
    Category(
        "object_property", "Object property",
        "Mass, local friction, compliance, temperature, age, diversity of objects.",
        "Simulate the objects that fail; randomise mass and compliance over the measured range.",
        "The object and its class, mass and material in every episode.",
        labels="too_heavy heavy deformed crushed broke fragile unknown_object wrong_size",
        conditions="object object_* item item_* mass weight material stiffness fill_level packaging",
        signals="*mass* *weight* *stiffness* *compliance* object_*",
    ),
    Category(
        "environment_complexity", "Environment complexity",
        "Clutter, occlusion, cables, uneven floor, vibration, wind, daylight, the open-world tail.",
        "Simulate the sites' clutter and floors; scan real scenes; limit deployment to covered conditions.",
        "Clutter and occlusion counts, floor type, time of day, site.",
        labels="clutter cluttered occluded occlusion collision obstacle cable snagged vibration wind",
        conditions="*clutter* *occlu* floor floor_* terrain slope time_of_day shift cable* wind* humidity",
        signals="*clutter* *occlu* *vibration* wind_* *_wind* *obstacle* floor_* *ambient*",
    ),
    Category(
        "human_behavior", "Human behaviour",
        "Reach angle, change of grip, hesitation, variation between people.",
        "Record people doing the task and replay them in simulation; vary timing and reach.",
        "Whether a person is present, who takes part (pseudonymous), handover times.",
        phases="handover hand_over give receive",
        labels="human* person* hesitation handover* early_release bumped",
        conditions="human* person* operator* interaction* handover*",
        signals="*human* *person* *handover* *operator* *reach_angle*",
    ),
    Category(
        "robot_dynamics", "Robot dynamics",
        "Mass, inertia, payload, flexibility, damping, air drag, wear.",
        "Identify inertia, friction and damping on the real robot; randomise payload.",
        "Free-space trajectory error, power ratio, payload, speed, hours of use.",
        labels="overshoot wobble flex wear worn payload",
        conditions="payload* speed velocity end_effector tool wear*",
        signals="*power_ratio* *trajectory_error* *inertia* *payload* *damping* *flex* *overshoot*",
    ),
    Category(
        "actuation", "Actuation",
        "Saturation, backlash, torque-speed curve, tracking error, clipping, battery voltage.",
        "Model the actuators (torque-speed, delay, backlash); retune gains; lower accelerations near limits.",
        "Tracking error, saturation share, motor temperature and bus voltage.",
        labels="saturation saturated backlash torque_limit overheating overheated low_battery clipping",
        conditions="battery* motor* gain* actuator*",
        signals="*tracking* *saturat* *near_limit* *motor* *volt* *battery* *backlash* *torque* *current* *clip*",
    ),
    Category(
        "latency_timing", "Latency and timing",
        "Loop and communication latency, jitter, inference time, missed deadlines.",
        "Simulate the measured latency and jitter; shorten the loop; let the policy act on predicted states.",
        "Loop latency and jitter percentiles, inference time, missed deadlines.",
        labels="latency lag lagged jitter deadline_missed missed_deadline comms_loss connection_lost stale",
        conditions="network* control_hz control_rate compute* hardware",
        signals="*latency* *jitter* *deadline* *delay* *inference* *loop_time* *overrun* *_rtt* *stale*",
    ),
    Category(
        "state_estimation", "State estimation",
        "Error of the fused state, calibration drift, partial observability.",
        "Recalibrate; log calibration age; simulate estimator error instead of true states.",
        "Estimator residuals, calibration age, landmark offsets.",
        phases="estimate localisation localization calibrate",
        labels="lost_localisation lost_localization miscalibrated pose_error estimator_diverged",
        conditions="calibration* estimator*",
        signals="*residual* *calibration* *landmark* *pose_error* *locali?ation* *odom* *estimat* *covariance*",
    ),
    Category(
        "sim_numerics", "Simulator numerics",
        "Timestep, integrator, solver, penetration, tunnelling, determinism.",
        "Halve the timestep and compare; tighten the solver; vary seeds; try a second simulator.",
        "Penetration depth, energy error and solver iterations of sim episodes.",
        labels="penetration tunnelling tunneling solver_diverged exploded unstable_contact",
        conditions="timestep integrator solver physics_engine",
        signals="*penetration* *energy_error* *solver* *timestep* *constraint_error*",
    ),
    Category(
        "policy_robustness", "Policy robustness",
        "Compounding errors, states outside the training data, no recovery, overfit to simulation.",
        "Train on perturbed states and recoveries; add real data; stop early on out-of-distribution states.",
        "Out-of-distribution score, recovery attempts, the step at which an episode fails.",
        phases="recover recovery",
        labels="ood out_of_distribution compounding_error no_recovery stuck oscillation wandered looped",
        conditions="perturbation*",
        signals="ood ood_* *_ood* *recover* *retries* *replan* *uncertainty* *entropy*",
    ),
    Category(
        "interface_contract", "Interface contract",
        "Frames, joint order, action scale, gains, rates, prompt, preprocessing.",
        "Compare the contracts field by field and make them equal before anything else.",
        "A contract on both sides: units, frames, joint order, scales, rates, preprocessing.",
        phases="start startup init first_step",
        labels="wrong_frame wrong_units joint_order wrong_scale wrong_prompt sign_flip contract*",
        conditions="prompt* preprocessing* firmware*",
        signals="*contract* *unit_mismatch* *frame_mismatch*",
    ),
)  # fmt: skip
BY_ID = {category.id: category for category in DEFAULTS}

# Where a name fits several patterns: "force_bias" is about the sensor and "camera_latency_ms" about time.
PATTERN_ORDER = (
    "latency_timing", "state_estimation", "sensor_noise", "sim_numerics", "policy_robustness",
    "interface_contract", "human_behavior", "visual", "robot_dynamics", "actuation",
    "contact_dynamics", "environment_complexity", "object_property",
)  # fmt: skip

Overrides = Mapping[str, Mapping[str, str | Sequence[str] | None]]
# Effects rather than causes: a heavy object slips, a late loop tracks badly, a dim image is unlike the training
# data. Where a signal of a cause explains a failure, these add nothing.
SYMPTOMS = (
    "*force*", "*slip*", "*impact*", "*contact*", "*grip*", "*detection*", "*confidence*", "*tracking*",
    "*saturat*", "*near_limit*", "*torque*", "*current*", "*motor*", "*clip*", "*trajectory_error*", "*overshoot*",
    "*power_ratio*", "*energy*", "*pose_error*", "ood", "ood_*", "*_ood*", "*recover*", "*retries*", "*replan*",
    "*uncertainty*", "*entropy*", "*embedding*",
)  # fmt: skip
_SEPARATORS = re.compile(r"[\s./:-]+")


class Taxonomy:
    """What a project's words mean: its own mappings first, then the defaults; whole names before patterns.

    `overrides` is {"signals": {"*torque*": "actuation", "foo": None}, …}; a category, several, or None for none.
    """

    def __init__(self, overrides: Overrides | None = None) -> None:
        self._own: dict[Kind, _Words] = {}
        for kind, words in (overrides or {}).items():
            if kind not in KINDS:
                raise ValueError(f"{kind} is not one of {', '.join(KINDS)}")
            self._own[kind] = _Words([(word, _known(value)) for word, value in words.items()])
        self._symptoms: FIFOCache[str, bool] = FIFOCache(MOST_CACHED)
        self._categories: FIFOCache[tuple[Kind, str], tuple[str, ...]] = FIFOCache(MOST_CACHED)

    def is_symptom(self, signal: str) -> bool:
        """Whether a signal measures the effect of a cause rather than a cause."""
        if signal not in self._symptoms:
            self._symptoms[signal] = _SYMPTOM_WORDS.find(_plain(signal)) is not None
        return self._symptoms[signal]

    def categories_of(self, kind: Kind, name: str) -> tuple[str, ...]:
        """The categories that this phase, label, condition or signal points to; usually one, often none."""
        try:
            return self._categories[kind, name]
        except KeyError:
            plain = _plain(name)
            own = self._own[kind].find(plain) if kind in self._own else None
            categories = own if own is not None else _DEFAULT_WORDS[kind].find(plain) or ()
            self._categories[kind, name] = categories
            return categories


class _Words:
    """Whole names in a dictionary, patterns in order."""

    def __init__(self, pairs: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        self.whole: dict[str, tuple[str, ...]] = {}
        self.patterns: list[tuple[re.Pattern[str], tuple[str, ...]]] = []
        for word, categories in pairs:
            if re.search(r"[*?\[]", word):
                self.patterns.append((re.compile(translate(_plain(word))), categories))
            else:
                self.whole[_plain(word)] = (*self.whole.get(_plain(word), ()), *categories)

    def find(self, plain: str) -> tuple[str, ...] | None:
        if plain in self.whole:
            return self.whole[plain]
        return next((categories for pattern, categories in self.patterns if pattern.match(plain)), None)


def _plain(name: str) -> str:
    return _SEPARATORS.sub("_", name.strip()).lower()


def _known(value: str | Sequence[str] | None) -> tuple[str, ...]:
    categories = () if value is None else (value,) if isinstance(value, str) else tuple(dict.fromkeys(value))
    for category in categories:
        if category not in CATEGORIES:
            raise ValueError(f"{category} is not one of {', '.join(CATEGORIES)}")
    return categories


_DEFAULT_WORDS = {
    kind: _Words([(word, (name,)) for name in PATTERN_ORDER for word in getattr(BY_ID[name], kind).split()])
    for kind in KINDS
}
_SYMPTOM_WORDS = _Words([(word, ()) for word in SYMPTOMS])
