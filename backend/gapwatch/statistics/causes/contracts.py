"""Two contracts compared field by field: what sim and real must agree on before any statistics mean something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

# Single-precision rounding is not a difference: 0.1 arrives as 0.10000000149.
SAME_NUMBER = 1e-6

Kind = Literal["value", "type", "order", "length", "only in sim", "only in real"]

# Words in a path, the gravest first: what makes a policy act on the wrong joint or in the wrong place, then by the
# wrong amount, then at the wrong time, then see something else.
GRAVITY = (
    ("order", "joint", "frame", "axis", "axes", "sign", "convention", "unit", "units"),
    ("scale", "action", "gain", "limit", "offset", "normalis", "normaliz", "clip", "mean", "std"),
    ("hz", "rate", "dt", "timestep", "period", "delay", "latency", "horizon", "chunk"),
    (
        "prompt",
        "preprocess",
        "camera",
        "image",
        "crop",
        "resize",
        "resolution",
        "exposure",
        "intrinsic",
        "extrinsic",
    ),
)


@dataclass(frozen=True)
class Difference:
    """One field that differs. `relative`: |sim − real| / the larger of both, for numbers; `gravity` 0: worst."""

    path: tuple[str | int, ...]
    kind: Kind
    sim: Any
    real: Any
    gravity: int
    relative: float | None = None

    @property
    def field(self) -> str:
        """The path as it is read: camera.intrinsics[0]."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text


@dataclass(frozen=True)
class ContractDiff:
    """`unknown` where a side has no contract: then nothing can be said, and the page asks for one."""

    verdict: Literal["comparable", "differs", "unknown"]
    differences: tuple[Difference, ...] = ()
    reason: str | None = None


def compare_contracts(sim: Mapping[str, Any] | None, real: Mapping[str, Any] | None) -> ContractDiff:
    """Every field in which two contracts differ: gravest first, then the largest difference, then by name.

    Objects are compared by key, lists in their order; the same entries in another order are one difference of kind
    `order`. Numbers are the same within 1e-6 of the larger, whether written 50 or 50.0; true is not 1.
    """
    missing = [side for side, contract in (("sim", sim), ("real", real)) if contract is None]
    if sim is None or real is None:
        return ContractDiff("unknown", reason=f"No contract in {' and '.join(missing)}.")
    differences = sorted(_differences((), sim, real), key=lambda d: (d.gravity, -(d.relative or 0.0), d.field))
    return ContractDiff("differs" if differences else "comparable", tuple(differences))


def _differences(path: tuple[str | int, ...], sim: Any, real: Any) -> Iterator[Difference]:
    if isinstance(sim, Mapping) and isinstance(real, Mapping):
        for key in sorted({*sim, *real}):
            if key not in real:
                yield _difference((*path, key), "only in sim", sim[key], None)
            elif key not in sim:
                yield _difference((*path, key), "only in real", None, real[key])
            else:
                yield from _differences((*path, key), sim[key], real[key])
    elif isinstance(sim, list | tuple) and isinstance(real, list | tuple):
        if len(sim) != len(real):
            yield _difference(path, "length", sim, real)
        elif sim != real and sorted(map(repr, sim)) == sorted(map(repr, real)):
            yield _difference(path, "order", sim, real)
        else:
            for place, (first, second) in enumerate(zip(sim, real, strict=True)):
                yield from _differences((*path, place), first, second)
    elif _is_number(sim) and _is_number(real):
        relative = _relative(sim, real)
        if relative > SAME_NUMBER:
            yield _difference(path, "value", sim, real, relative)
    elif type(sim) is not type(real):
        yield _difference(path, "type", sim, real)
    elif sim != real:
        yield _difference(path, "value", sim, real)


def _difference(
    path: tuple[str | int, ...], kind: Kind, sim: Any, real: Any, relative: float | None = None
) -> Difference:
    words = "_".join(str(part) for part in path).lower().replace("-", "_").split("_")
    gravity = len(GRAVITY)
    if kind == "order":
        gravity = 0
    for rank, grave in enumerate(GRAVITY):
        if any(word.startswith(start) for word in words for start in grave):
            gravity = min(gravity, rank)
    return Difference(path, kind, sim, real, gravity, relative)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _relative(sim: float, real: float) -> float:
    """Divided before it is subtracted, so that no pair of doubles overflows; whole numbers beyond them differ."""
    largest = max(abs(sim), abs(real))
    try:
        return abs(sim / largest - real / largest) if largest else 0.0
    except OverflowError:
        return 0.0 if sim == real else 1.0
