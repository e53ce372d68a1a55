"""What is sent to the alerting routes: shapes with examples, and times and JSON as they are answered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from gapwatch.access.keys import KeyHolder
from gapwatch.channels.kinds import CHANNEL_KINDS
from gapwatch.closing.fix import FixBody
from gapwatch.errors import Fault, Invalid
from gapwatch.filters import parse_happened
from gapwatch.record import FARTHEST_AHEAD
from gapwatch.watching.kinds import RULE_KINDS
from gapwatch.watching.matchers import Match
from gapwatch.watching.recurrence import Recurrence
from gapwatch.watching.routing import Routing
from gapwatch.watching.rules import Severity, WebAddress

Id = Annotated[int, Field(ge=1, le=2**31 - 1)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f/]*$")]
Words = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]
Line = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
Moment = Annotated[str, StringConstraints(min_length=2, max_length=40)]
Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
# What people plan ends within two years.
FARTHEST_END = timedelta(days=732)
WRITE = (400, 401, 403, 415, 422, 503)
READ = (401, 403, 422, 503)

if TYPE_CHECKING:
    ChannelKindName = str
    RuleKindName = str
else:
    ChannelKindName = Literal[tuple(CHANNEL_KINDS)]
    RuleKindName = Literal[tuple(RULE_KINDS)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RuleBody(Body):
    name: Name
    kind: RuleKindName
    params: dict[str, Any] = Field({}, description="What the kind takes; see `GET /rules` for all of it.")
    match: Match = Match()
    severity: Severity = "warning"
    channels: list[Id | Name] = Field(
        [], description="Ids or names; none means every channel that fits.", max_length=50
    )
    dry_run: bool = Field(False, description="Alerts are recorded and nobody is told.")
    enabled: bool = True
    runbook_url: WebAddress | None = Field(
        None, description="http or https; shown with incidents and sent with messages."
    )


class PreviewBody(Body):
    kind: RuleKindName
    params: dict[str, Any] = {}
    match: Match = Match()
    days: Annotated[int, Field(ge=1, le=365)] = 90


class ChannelBody(Body):
    name: Name
    kind: ChannelKindName
    config: dict[str, Any] = Field(description="What the kind takes. Secrets are encrypted and never shown again.")
    routing: Routing = Routing()
    enabled: bool = True


class SilenceBody(Body):
    kind: Literal["silence", "maintenance"] = Field(
        "silence", description="In maintenance nothing is told, and robots that are quiet are not silent."
    )
    match: Match = Match()
    reason: Line
    starts_at: Moment | None = None
    ends_at: Moment | None = Field(
        None, description="RFC 3339; or give `minutes`. Of a series it is its end, and may be left out."
    )
    minutes: Annotated[int, Field(ge=1, le=366 * 24 * 60)] | None = None
    recurrence: Recurrence | None = Field(None, description="Days and hours of every week.")


class IdentifiedValue(Body):
    """A value with its interval, 95 % or what the tool gives; without a value it is the middle of the interval."""

    value: Finite | None = None
    interval: tuple[Finite, Finite] | None = None
    unit: Line | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.interval is not None and self.interval[0] > self.interval[1]:
            raise ValueError("the lower end of an interval comes first")
        if self.value is None:
            if self.interval is None:
                raise ValueError("give a value, or an interval")
            self.value = (self.interval[0] + self.interval[1]) / 2
        return self


# What may measure a parameter of the simulator.
MEASURING_KINDS = ("system_identification", "calibration", "mitigation")


class EventBody(Body):
    kind: Literal["release", "calibration", "simulator", "site", "mitigation", "other", "system_identification"]
    title: Line
    at: Moment | None = Field(None, description="RFC 3339; now if it is not given.")
    deployment: Line | None = None
    site: Line | None = None
    robots: Annotated[list[Line], Field(max_length=200)] = []
    details: Annotated[dict[Line, Line | bool | Finite], Field(max_length=50)] = {}
    values: Annotated[dict[Line, IdentifiedValue], Field(max_length=500)] = Field(
        {}, description="Parameters of the simulator as they were identified; of a system identification needed."
    )
    fix: FixBody | None = Field(None, description="Of a mitigation: what it aims at, its cost, its promise.")


class CommentBody(Body):
    comment: Words | None = None


class RemarkBody(Body):
    comment: Words


class NormalBody(Body):
    normal: bool
    comment: Words | None = None


class SilenceAlertBody(Body):
    reason: Line
    minutes: Annotated[int, Field(ge=1, le=366 * 24 * 60)] = 60


RULE = {
    "name": "success-drift",
    "kind": "drift",
    "params": {"series": "success", "arl": 20000, "for_episodes": 10},
    "match": {"site": ["berlin*"]},
    "severity": "critical",
    "channels": ["on call"],
    "runbook_url": "https://wiki.example.com/runbooks/success-drift",
}
PREVIEW = {"kind": "drift", "params": {"series": "success"}, "days": 90}
CHANNEL = {
    "name": "on call",
    "kind": "webhook",
    "config": {"url": "https://example.com/hooks/gapwatch", "secret": "shared with the receiver"},
    "routing": {"min_severity": "warning", "repeat_minutes": 60},
}
SILENCE = {"match": {"deployment": ["berlin-line-3"]}, "reason": "gripper is being changed", "minutes": 120}
EVENT = {"kind": "release", "title": "bin-pick 1.4.0 rolled out", "deployment": "berlin-line-3"}
FIX = {
    "kind": "mitigation",
    "title": "200 real grasps collected for fine-tuning",
    "deployment": "berlin-line-3",
    "fix": {
        "kind": "fine_tuning",
        "category": "contact_dynamics",
        "from_version": "1.4.1",
        "robot_hours": 12,
        "demonstrations": 200,
        "expected_points": 15,
    },
}
COMMENT = {"comment": "looking at the gripper"}
MAINTENANCE = {
    "kind": "maintenance",
    "match": {"site": ["berlin"]},
    "reason": "belts are cleaned",
    "recurrence": {"days": ["sun"], "from": "22:00", "to": "02:00", "time_zone": "Europe/Berlin"},
}
NORMAL = {"normal": True, "comment": "the line is cleaned on Tuesdays"}
SILENCE_ALERT = {"reason": "known, fixed tomorrow", "minutes": 720}


def actor_of(holder: KeyHolder) -> str:
    return f"key/{holder.prefix}"


def example(value: dict[str, Any]) -> dict[str, Any]:
    return {"one": {"value": value}}


def refuse(error: ValidationError, where: str) -> Invalid:
    """A fault of a nested part, said as faults of the body are."""
    faults = [
        Fault(
            pointer="/body/" + "/".join([where, *(str(part) for part in fault["loc"])]),
            code=str(fault["type"]).replace("_", "-"),
            message=str(fault["msg"]),
        )
        for fault in error.errors(include_input=False, include_url=False)
    ]
    return Invalid(f"`{where}` is not valid; `errors` says why.", errors=faults)


def moment(value: str, field: str, now: datetime, ahead: timedelta = FARTHEST_AHEAD) -> datetime:
    """A time of the body: RFC 3339 with an offset, within the bounds of what may be stored."""
    try:
        return parse_happened(value, now, ahead)
    except (ValueError, OverflowError) as error:
        raise fault(f"/body/{field}", "bad-time", f"{str(error).capitalize()}.") from error


def fault(pointer: str, code: str, message: str) -> Invalid:
    return Invalid(message, errors=[Fault(pointer=pointer, code=code, message=message)])


def page_of(rows: Sequence[dict[str, Any]], limit: int) -> tuple[Sequence[dict[str, Any]], int | None]:
    """The page of rows that were asked for with one more, and the id that the next page starts at."""
    page = rows[:limit]
    return page, page[-1]["id"] if len(rows) > len(page) else None


def as_json(value: Any) -> Any:
    """Times in UTC with a Z, everything else as it is."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, dict):
        return {name: as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return value
