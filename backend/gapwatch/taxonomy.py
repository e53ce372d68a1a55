"""The gap categories: where a drop from simulation to reality can come from, and what evidence points to each.

The mappings from phases, labels, conditions and signals are data. A project overrides what its words mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
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
HarmfulSide = Literal["above", "below"]
KINDS: tuple[Kind, ...] = ("phases", "labels", "conditions", "signals")


@dataclass(frozen=True)
class Category:
    """One gap category. The words of each kind are whole names, or patterns with * for anything."""

    id: str
    name: str
    covers: str
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
        "Peak and mean contact force, slip detections, the surface and pad material of each episode.",
        phases="grasp contact insert insertion lift transport",
        labels="slip slipped stick_slip lost_grip drop dropped bounce jam jammed wedged grasp_failed",
        conditions="surface surface_* material pad friction* wet*",
        signals="*force* *slip* *impact* *contact* *friction* *grip*",
    ),
    Category(
        "visual", "Visual",
        "Texture, lighting, shadow, reflection, blur, lens, exposure, weather.",
        "Image brightness, blur and exposure, the lighting and camera of each episode, image embeddings.",
        phases="perceive perception detect approach localise localize",
        labels="glare shadow blur blurred dark overexposed reflection not_detected misdetected wrong_object",
        conditions="*light* camera camera_* exposure* weather background texture *glare*",
        signals="*bright* *blur* *exposure* *contrast* *sharpness* image_* *camera* *detection* *embedding*",
    ),
    Category(
        "sensor_noise", "Sensor noise",
        "IMU drift, force-torque offset, encoder quantisation, rolling shutter, depth noise, dropout.",
        "Noise floor, bias and dropout rate of each sensor, the share of invalid depth pixels.",
        labels="dropout sensor_dropout noise noisy depth_hole imu_drift sensor_offset sensor_fault",
        conditions="sensor sensor_* depth_camera",
        signals="*noise* *bias* *dropout* *depth_invalid* *invalid_depth* *snr* *imu_* *gyro_* *quantis*",
    ),
    Category(
        "object_property", "Object property",
        "Mass, local friction, compliance, temperature, age, diversity of objects.",
        "The object and its class, mass and material in every episode.",
        labels="too_heavy heavy deformed crushed broke fragile unknown_object wrong_size",
        conditions="object object_* item item_* mass weight material stiffness fill_level packaging",
        signals="*mass* *weight* *stiffness* *compliance* object_*",
    ),
    Category(
        "environment_complexity", "Environment complexity",
        "Clutter, occlusion, cables, uneven floor, vibration, wind, daylight, the open-world tail.",
        "Clutter and occlusion counts, floor type, time of day, site.",
        labels="clutter cluttered occluded occlusion collision obstacle cable snagged vibration wind",
        conditions="*clutter* *occlu* floor floor_* terrain slope time_of_day shift cable* wind* humidity",
        signals="*clutter* *occlu* *vibration* wind_* *_wind* *obstacle* floor_* *ambient*",
    ),
    Category(
        "human_behavior", "Human behaviour",
        "Reach angle, change of grip, hesitation, variation between people.",
        "Whether a person is present, who takes part (pseudonymous), handover times.",
        phases="handover hand_over give receive",
        labels="human* person* hesitation handover* early_release bumped",
        conditions="human* person* operator* interaction* handover*",
        signals="*human* *person* *handover* *operator* *reach_angle*",
    ),
    Category(
        "robot_dynamics", "Robot dynamics",
        "Mass, inertia, payload, flexibility, damping, air drag, wear.",
        "Free-space trajectory error, power ratio, payload, speed, hours of use.",
        labels="overshoot wobble flex wear worn payload",
        conditions="payload* speed velocity end_effector tool wear*",
        signals="*power_ratio* *trajectory_error* *inertia* *payload* *damping* *flex* *overshoot*",
    ),
    Category(
        "actuation", "Actuation",
        "Saturation, backlash, torque-speed curve, tracking error, clipping, battery voltage.",
        "Tracking error, saturation share, motor temperature and bus voltage.",
        labels="saturation saturated backlash torque_limit overheating overheated low_battery clipping",
        conditions="battery* motor* gain* actuator*",
        signals="*tracking* *saturat* *near_limit* *motor* *volt* *battery* *backlash* *torque* *current* *clip*",
    ),
    Category(
        "latency_timing", "Latency and timing",
        "Loop and communication latency, jitter, inference time, missed deadlines.",
        "Loop latency and jitter percentiles, inference time, missed deadlines.",
        labels="latency lag lagged jitter deadline_missed missed_deadline comms_loss connection_lost stale",
        conditions="network* control_hz control_rate compute* hardware",
        signals="*latency* *jitter* *deadline* *delay* *inference* *loop_time* *overrun* *_rtt* *stale*",
    ),
    Category(
        "state_estimation", "State estimation",
        "Error of the fused state, calibration drift, partial observability.",
        "Estimator residuals, calibration age, landmark offsets.",
        phases="estimate localisation localization calibrate",
        labels="lost_localisation lost_localization miscalibrated pose_error estimator_diverged",
        conditions="calibration* estimator*",
        signals="*residual* *calibration* *landmark* *pose_error* *locali?ation* *odom* *estimat* *covariance*",
    ),
    Category(
        "sim_numerics", "Simulator numerics",
        "Timestep, integrator, solver, penetration, tunnelling, determinism.",
        "Penetration depth, energy error and solver iterations of sim episodes.",
        labels="penetration tunnelling tunneling solver_diverged exploded unstable_contact",
        conditions="timestep integrator solver physics_engine",
        signals="*penetration* *energy_error* *solver* *timestep* *constraint_error*",
    ),
    Category(
        "policy_robustness", "Policy robustness",
        "Compounding errors, states outside the training data, no recovery, overfit to simulation.",
        "Out-of-distribution score, recovery attempts, the step at which an episode fails.",
        phases="recover recovery",
        labels="ood out_of_distribution compounding_error no_recovery stuck oscillation wandered looped",
        conditions="perturbation*",
        signals="ood ood_* *_ood* *recover* *retries* *replan* *uncertainty* *entropy*",
    ),
    Category(
        "interface_contract", "Interface contract",
        "Frames, joint order, action scale, gains, rates, prompt, preprocessing.",
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
# Where only one direction can do harm: a loop that is faster than sim's, or a quieter sensor, accuses nobody.
HARMFUL_ABOVE = (
    "*latency*", "*jitter*", "*deadline*", "*delay*", "*inference*", "*loop_time*", "*overrun*", "*_rtt*",
    "*stale*", "*noise*", "*dropout*", "*invalid*", "*blur*", "*clutter*", "*occlu*", "*vibration*",
    "*residual*", "*error*",
    "*wait*", "*hesitat*", "*drop_rate*", "*packet_loss*", "*penetration*", "*backlash*", "*fields_differing*",
    "*temperature*", "*obstacle*", "*covariance*",
    "*slip*", "*impact*", "*saturat*", "*near_limit*", "*clip*", "*overshoot*", "*rmse*", "ood", "ood_*", "*_ood*",
    "*recover*", "*retries*", "*replan*", "*uncertainty*", "*entropy*",
)  # fmt: skip
HARMFUL_BELOW = (
    "*volt*", "*battery*", "*snr*", "*sharpness*", "*contrast*", "*friction*", "*confidence*", "*detection_rate*",
)  # fmt: skip
_SEPARATORS = re.compile(r"[\s./:-]+")
# Of words that people write freely, the parts are looked at as well.
SPLIT_KINDS: tuple[Kind, ...] = ("labels", "phases")
SHORTEST_STEM = 3
LEAST_LIKENESS = 0.7
_TOKENS = re.compile(r"[^a-z0-9]+|(?<=[a-z])(?=[0-9])")


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

    def harmful_sides(self, signal: str) -> tuple[HarmfulSide, ...]:
        """On which side of the usual a signal may do harm; both where nobody knows."""
        plain = _plain(signal)
        if _BELOW_WORDS.find(plain) is not None:
            return ("below",)
        return ("above",) if _ABOVE_WORDS.find(plain) is not None else ("above", "below")

    def categories_of(self, kind: Kind, name: str) -> tuple[str, ...]:
        """The categories that this phase, label, condition or signal points to; usually one, often none."""
        try:
            return self._categories[kind, name]
        except KeyError:
            plain = _plain(name)
            own = self._own[kind].find(plain) if kind in self._own else None
            categories = own if own is not None else _DEFAULT_WORDS[kind].find(plain)
            if categories is None:
                categories = self._by_tokens(kind, plain) if kind in SPLIT_KINDS else ()
            self._categories[kind, name] = categories
            return categories

    def suggest(self, kind: Kind, name: str) -> str | None:
        """The category of the known word that a part of this one is nearly: `slpped`, `occlusions_left`."""
        for token in sorted(_TOKENS.split(_plain(name)), key=len, reverse=True):
            for near in get_close_matches(token, [*_DEFAULT_WORDS[kind].whole], 1, LEAST_LIKENESS):
                return _DEFAULT_WORDS[kind].whole[near][0]
        return None

    def _by_tokens(self, kind: Kind, plain: str) -> tuple[str, ...]:
        """What the parts of a team's own word point to: `collision_clutter`, `obj slipped`, `too-dark!`.

        Longer runs of parts before shorter ones, so that `wrong object here` is `wrong_object`.
        """
        tokens = [token for token in _TOKENS.split(plain) if token]
        found: dict[str, None] = {}
        size = len(tokens)
        while size:
            starts = range(len(tokens) - size + 1)
            for start in starts:
                run = tokens[start : start + size]
                for word in _forms("_".join(run)):
                    own = self._own[kind].whole.get(word) if kind in self._own else None
                    categories = own if own is not None else _DEFAULT_WORDS[kind].find(word)
                    if categories:
                        found.update(dict.fromkeys(categories))
                        tokens[start : start + size] = [""] * size
                        break
            size -= 1
        return tuple(found)


def joint_words(category: str, *, lower: bool = False) -> str:
    """A category as people say it; of causes that nothing tells apart (`a+b`) both: `Visual or Actuation`."""
    names = [BY_ID[name].name if name in BY_ID else name for name in category.split("+")]
    if lower:
        # A project's own categories keep their names.
        names = [BY_ID[name].name.lower() if name in BY_ID else name for name in category.split("+")]
    return " or ".join(names)


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


def _forms(word: str) -> tuple[str, ...]:
    """A word and what it may be a form of: slipping → slip, drops → drop, lagging → lag."""
    forms = [word]
    for ending in ("ing", "ed", "s"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= SHORTEST_STEM:
            forms += [stem, stem + "e"]
            if len(stem) > SHORTEST_STEM and stem[-1] == stem[-2]:
                forms.append(stem[:-1])
    return tuple(forms)


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
_ABOVE_WORDS, _BELOW_WORDS = (_Words([(word, ()) for word in words]) for words in (HARMFUL_ABOVE, HARMFUL_BELOW))
