"""What simulator and robot must agree on for their numbers to be comparable: stated once, sent with every episode.

Both sides describe what they really do, each from its own configuration; the service compares the two field by
field and shows a difference before any statistic. A contract copied from one side to the other can show none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_Numbers = Sequence[float]


class Contract:
    """Built part by part; every method returns the contract, so calls can be chained.

    Contract(control_hz=50).observation("joint_position", order=["j1", "j2"], unit="rad", frame="base")
    """

    def __init__(self, control_hz: float | None = None, **fields: Any) -> None:
        self._fields: dict[str, Any] = {}
        self.add(control_hz=control_hz, **fields)

    def add(self, **fields: Any) -> Contract:
        """Anything else that must be equal: `action_chunk=8`, `gripper_open_at=1.0`."""
        self._fields.update(_without_none(fields))
        return self

    def observation(
        self,
        name: str,
        *,
        order: Sequence[str] | None = None,
        unit: str | None = None,
        frame: str | None = None,
        scale: float | _Numbers | None = None,
        offset: float | _Numbers | None = None,
        hz: float | None = None,
        **more: Any,
    ) -> Contract:
        """An input of the policy. `order` lists the names of its numbers, in order."""
        self._channel("observation", name, order, unit, frame, scale, offset, hz, more)
        return self

    def action(
        self,
        name: str,
        *,
        order: Sequence[str] | None = None,
        unit: str | None = None,
        frame: str | None = None,
        scale: float | _Numbers | None = None,
        offset: float | _Numbers | None = None,
        limits: Sequence[Any] | None = None,
        hz: float | None = None,
        **more: Any,
    ) -> Contract:
        """An output of the policy. `scale` and `offset` convert its numbers to the unit."""
        self._channel(
            "action", name, order, unit, frame, scale, offset, hz, more | _without_none({"limits": limits})
        )
        return self

    def gains(self, **gains: float | _Numbers) -> Contract:
        """Gains of the low-level controller: `kp=[…], kd=[…]`."""
        self._fields.setdefault("gains", {}).update(_without_none(gains))
        return self

    def rates(self, **hz: float) -> Contract:
        """How often each loop runs: `policy=10, controller=500`."""
        self._fields.setdefault("rates_hz", {}).update(_without_none(hz))
        return self

    def preprocessing(self, step: str, **settings: Any) -> Contract:
        """A step between sensor and policy; steps are listed in the order of the calls."""
        self._fields.setdefault("preprocessing", []).append({"step": step, **_without_none(settings)})
        return self

    def prompt(self, text: str) -> Contract:
        self._fields["prompt"] = text
        return self

    def camera(
        self,
        name: str,
        *,
        resolution: tuple[int, int] | None = None,
        fx: float | None = None,
        fy: float | None = None,
        cx: float | None = None,
        cy: float | None = None,
        distortion: _Numbers | None = None,
        frame: str | None = None,
        hz: float | None = None,
        **more: Any,
    ) -> Contract:
        """A camera of the policy: width and height, intrinsics in pixels, and where it is mounted."""
        intrinsics = _without_none({"fx": fx, "fy": fy, "cx": cx, "cy": cy, "distortion": distortion})
        fields = {"resolution": resolution, "intrinsics": intrinsics or None, "frame": frame, "hz": hz, **more}
        self._fields.setdefault("cameras", {})[name] = _without_none(fields)
        return self

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON, as it is sent."""
        plain: dict[str, Any] = json.loads(json.dumps(self._fields, default=_plain))
        return plain

    def differences(self, other: Contract | Mapping[str, Any]) -> list[str]:
        """Every field in which two contracts differ, for people to read: `action.arm.scale: 0.5 or 1.0`."""
        fields = other.as_dict() if isinstance(other, Contract) else dict(other)
        return list(_differences("", self.as_dict(), fields))

    def _channel(
        self,
        side: str,
        name: str,
        order: Sequence[str] | None,
        unit: str | None,
        frame: str | None,
        scale: float | _Numbers | None,
        offset: float | _Numbers | None,
        hz: float | None,
        more: Mapping[str, Any],
    ) -> None:
        fields = {"order": order, "unit": unit, "frame": frame, "scale": scale, "offset": offset, "hz": hz, **more}
        self._fields.setdefault(side, {})[name] = _without_none(fields)


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _differences(path: str, ours: Any, theirs: Any) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted({*ours, *theirs}):
            field_path = f"{path}.{name}" if path else name
            if name not in theirs:
                yield f"{field_path}: {ours[name]!r} or nothing"
            elif name not in ours:
                yield f"{field_path}: nothing or {theirs[name]!r}"
            else:
                yield from _differences(field_path, ours[name], theirs[name])
    elif ours != theirs:
        yield f"{path}: {ours!r} or {theirs!r}"
