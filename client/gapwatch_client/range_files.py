"""Randomisation ranges out of the files that training and identification leave behind.

Isaac Lab and mjlab (`params/env.yaml`), `mujoco.sysid` parameters and PACE bounds, all YAML or JSON. The loader
knows plain YAML and the two tags that the trainers write, tuples and slices; any other tag is refused, because a
tag can run code. Pickles and PyTorch files are never opened, for the same reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

LARGEST_BYTES = 32 * 1024 * 1024
TUPLE = "tag:yaml.org,2002:python/tuple"
SLICE = "tag:yaml.org,2002:python/object/apply:builtins.slice"
EXPONENT = re.compile(r"^[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$")
OPERATIONS = ("add", "scale", "abs")
DISTRIBUTIONS = ("uniform", "log_uniform", "gaussian")
# Of `params` of an event: what it randomises, and how a name of a range ends.
ENDINGS = ("_distribution_params", "_ranges", "_range", "ranges")
# Where episodes begin and what pushes them is not a parameter of the simulator.
NO_PARAMETERS = ("pose", "position", "velocity", "force", "torque", "interval", "pose_range")
# References of YAML may make a small file endless: nothing is followed deeper than this.
DEEPEST = 3
MOST_PARAMETERS = 2000
# PACE's order of bounds: each for every joint, and one delay for all.
PACE_OF_JOINTS = (("armature", "kg m^2"), ("damping", "N m s/rad"), ("friction", None), ("bias", "rad"))


class UnreadableRanges(ValueError):
    """Printed: what is wrong with the file, and where."""


def read_ranges(path: Path) -> list[dict[str, Any]]:
    """The parameters of a file, as the service takes them."""
    if path.stat().st_size > LARGEST_BYTES:
        raise UnreadableRanges(f"{path}: larger than 32 MiB, which no parameter file is")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UnreadableRanges(f"{path}: not a text file; pickles and .pt files are not opened") from None
    return ranges_of(load_yaml(text, str(path)), str(path))


def ranges_of(content: Any, name: str = "file") -> list[dict[str, Any]]:
    if not isinstance(content, dict):
        raise UnreadableRanges(f"{name}: wanted a mapping at the top")
    pace: Any = content.get("sim2real") if isinstance(content.get("sim2real"), dict) else content
    if "bounds_params" in pace:
        found = list(_pace(pace, name))
    elif content and all(_is_sysid(one) for one in content.values()):
        found = list(_sysid(content))
    elif isinstance(content.get("events"), dict) or isinstance(content.get("observations"), dict):
        fixed = _fixed(content)
        found = [*_events(content.get("events") or {}), *_noises(content.get("observations") or {})]
        found = [_with_nominal(one, fixed) for one in found] + fixed
    else:
        raise UnreadableRanges(
            f"{name}: neither an env.yaml of Isaac Lab or mjlab (`events`), nor parameters of mujoco.sysid "
            "(`nominal`, `min_value`, `max_value`), nor bounds of PACE (`bounds_params`)"
        )
    unique: dict[str, dict[str, Any]] = {}
    for one in found:
        unique.setdefault(one["name"], one)
    if len(unique) > MOST_PARAMETERS:
        raise UnreadableRanges(f"{name}: more than {MOST_PARAMETERS} parameters")
    return list(unique.values())


def load_yaml(text: str, name: str = "file") -> Any:
    """Plain YAML with tuples and slices; every other tag is refused."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Safe, and two tags more, which are this loader's alone."""

    def as_tuple(loader: Any, node: Any) -> tuple[Any, ...]:
        return tuple(loader.construct_sequence(node, deep=True))

    def as_slice(loader: Any, node: Any) -> None:
        # What was selected is no part of a range, so its ends are not kept.
        if not isinstance(node, yaml.SequenceNode) or not 1 <= len(node.value) <= len(("start", "stop", "step")):
            raise UnreadableRanges(f"{name}, line {node.start_mark.line + 1}: this is no slice")

    # YAML 1.1 takes 1e-05, as JSON writes it, for a word.
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+0123456789"))
    Loader.add_constructor(TUPLE, as_tuple)
    Loader.add_constructor(SLICE, as_slice)
    try:
        return yaml.load(text, Loader=Loader)  # noqa: S506 - a loader of our own, safer than the safe one
    except yaml.constructor.ConstructorError as error:
        mark = error.problem_mark
        at = "" if mark is None else f", line {mark.line + 1}"
        raise UnreadableRanges(
            f"{name}{at}: {error.problem}; only plain YAML, tuples and slices are read"
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, UnreadableRanges):
            raise
        raise UnreadableRanges(f"{name}: no YAML ({str(error).splitlines()[0]})") from None


def _events(events: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    """`events.<term>.params`: every pair of numbers that randomises something, by the name of its term."""
    for term, event in events.items():
        params = event.get("params") if isinstance(event, dict) else None
        if not isinstance(params, dict):
            continue
        operation, distribution = params.get("operation", "abs"), params.get("distribution", "uniform")
        for key, value in params.items():
            ending = next((one for one in ENDINGS if str(key).endswith(one)), None)
            if ending is None or value is None:
                continue
            what = str(key)[: -len(ending)].rstrip("_") or str(params.get("field") or "")
            if what in NO_PARAMETERS:
                continue
            name = f"{term}.{what}" if what else str(term)
            acts = operation if operation in OPERATIONS and "operation" in params else "abs"
            # Ranges of a material or a centre of mass have no operation: com is added, materials are set.
            if what == "com" and "operation" not in params:
                acts = "add"
            drawn = distribution if distribution in DISTRIBUTIONS else "uniform"
            yield from _pairs(name, value, acts, drawn)


def _pairs(
    name: str, value: Any, operation: str, distribution: str, deepest: int = DEEPEST
) -> Iterator[dict[str, Any]]:
    """A pair, or pairs by axis; of vectors (low, high) one parameter a component."""
    if not deepest:
        return
    if isinstance(value, Mapping):
        for axis, pair in value.items():
            yield from _pairs(f"{name}.{axis}", pair, operation, distribution, deepest - 1)
        return
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:  # noqa: PLR2004 - a pair
        return
    low, high = value
    if isinstance(low, (list, tuple)) and isinstance(high, (list, tuple)) and len(low) == len(high):
        for at, pair in enumerate(zip(low, high)):
            yield from _pairs(f"{name}.{at}", pair, operation, distribution, deepest - 1)
        return
    if _is_number(low) and _is_number(high):
        yield _parameter(name, low, high, operation, distribution)


def _noises(observations: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    """`observations.<group>.<term>.noise`: what is added to an observation."""
    for group, terms in observations.items():
        for term, observed in terms.items() if isinstance(terms, dict) else ():
            noise = observed.get("noise") if isinstance(observed, dict) else None
            if not isinstance(noise, dict):
                continue
            name = f"noise.{group}.{term}"
            operation = noise.get("operation", "add")
            acts = operation if operation in OPERATIONS else "add"
            # Noise is about what is true, so it is told as a range around nothing.
            if _is_number(noise.get("n_min")) and _is_number(noise.get("n_max")):
                yield _parameter(
                    name, noise["n_min"], noise["n_max"], acts, "uniform", 0.0 if acts == "add" else 1.0
                )
            elif _is_number(noise.get("std")) and _is_number(noise.get("mean", 0.0)):
                mean = noise.get("mean", 0.0)
                yield _parameter(name, mean, noise["std"], acts, "gaussian", 0.0 if acts == "add" else 1.0)


def _fixed(content: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """What the run kept fixed and identifications often speak of: the control step, and gains of actuators."""
    found = []
    sim = content.get("sim")
    dt: Any = sim.get("dt") if isinstance(sim, dict) else None
    decimation: Any = content.get("decimation")
    if _is_number(dt) and _is_number(decimation):
        found.append(_parameter("control_dt", dt * decimation, dt * decimation, "abs", "uniform", None, "s"))
    scene = content.get("scene")
    robot = scene.get("robot") if isinstance(scene, dict) else None
    actuators = robot.get("actuators") if isinstance(robot, dict) else None
    for group, actuator in actuators.items() if isinstance(actuators, dict) else ():
        for what in ("stiffness", "damping", "armature"):
            value: Any = actuator.get(what) if isinstance(actuator, dict) else None
            for joint, number in value.items() if isinstance(value, dict) else ((None, value),):
                if _is_number(number):
                    name = f"actuators.{group}.{what}" + (f".{joint}" if joint is not None else "")
                    found.append(_parameter(name, number, number, "abs", "uniform"))
    return found


def _with_nominal(parameter: dict[str, Any], fixed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Gains that are added to or scaled act on those of the actuators, where all of them have the same."""
    what = parameter["name"].rpartition(".")[2]
    gains = {one["low"] for one in fixed if one["name"].split(".")[0] == "actuators" and f".{what}" in one["name"]}
    if parameter["operation"] == "abs" or "nominal" in parameter or len(gains) != 1:
        return parameter
    return {**parameter, "nominal": gains.pop()}


def _is_sysid(one: Any) -> bool:
    return isinstance(one, dict) and {"nominal", "min_value", "max_value"} <= set(one)


def _sysid(content: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    for name, one in content.items():
        nominal, low, high = (_flat(one[key]) for key in ("nominal", "min_value", "max_value"))
        if not len(nominal) == len(low) == len(high):
            raise UnreadableRanges(f"{name}: nominal, min_value and max_value have different sizes")
        for at, (middle, *ends) in enumerate(zip(nominal, low, high)):
            least, most = (middle, middle) if one.get("frozen") else ends
            if all(_is_number(value) for value in (middle, least, most)):
                own = str(name) if len(nominal) == 1 else f"{name}.{at}"
                yield _parameter(own, least, most, "abs", "uniform", middle)


def _pace(content: Mapping[Any, Any], name: str) -> Iterator[dict[str, Any]]:
    bounds, joints = content["bounds_params"], content.get("joint_order")
    if not isinstance(bounds, (list, tuple)) or not isinstance(joints, (list, tuple)):
        raise UnreadableRanges(f"{name}: PACE wants `joint_order` and `bounds_params`, a list of pairs")
    wanted = len(PACE_OF_JOINTS) * len(joints) + 1
    if len(bounds) != wanted:
        raise UnreadableRanges(f"{name}: {len(joints)} joints want {wanted} bounds, and there are {len(bounds)}")
    names = [(f"{what}.{joint}", unit) for what, unit in PACE_OF_JOINTS for joint in joints]
    for (own, unit), pair in zip([*names, ("delay", "steps")], bounds):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(map(_is_number, pair)):  # noqa: PLR2004
            raise UnreadableRanges(f"{name}: the bounds of {own} are no pair of numbers")
        yield _parameter(own, pair[0], pair[1], "abs", "uniform", None, unit)


def _flat(value: Any, deepest: int = DEEPEST) -> list[Any]:
    if isinstance(value, (list, tuple)) and deepest:
        return [number for part in value for number in _flat(part, deepest - 1)]
    return [value]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _parameter(
    name: str,
    low: float,
    high: float,
    operation: str,
    distribution: str,
    nominal: float | None = None,
    unit: str | None = None,
) -> dict[str, Any]:
    if distribution != "gaussian":
        low, high = min(low, high), max(low, high)
    if distribution == "log_uniform" and low <= 0:
        distribution = "uniform"
    written = {"name": name, "low": low, "high": high, "distribution": distribution, "operation": operation}
    return written | {key: value for key, value in (("nominal", nominal), ("unit", unit)) if value is not None}
