"""What a kind of channel consists of: its configuration, what is secret in it, its form and how it sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

from gapwatch.channels.egress import Egress
from gapwatch.channels.message import Attempt, Message


def _http(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_http = False
    if not is_http:
        raise ValueError("must be an http:// or https:// address")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not carry a user name or password")
    return url


def _origin(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        return value
    parts = urlsplit(value)
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


Line = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00-\x20\x7f]*$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
Url = Annotated[Line, AfterValidator(_http)]


class ChannelConfig(BaseModel):
    # What is wrong with a value is said without the value: it may be a secret, and errors are logged.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


@dataclass(frozen=True)
class FormField:
    """One field of the form that makes a channel. `several` takes one value a line."""

    name: str
    hint: str
    default: str
    required: bool
    secret: bool
    several: bool
    choices: tuple[str, ...]


@dataclass(frozen=True)
class ChannelKind:
    """One kind of channel; the module that defines it gives it its name.

    `secrets` names the fields that are encrypted and never shown again. They were given for all the other fields:
    when one of those changes they are dropped, but for `freely_changed`, which decide neither who gets to see a
    secret nor whose it is. `send` makes one attempt and returns what came of it. A kind that forgets what it is
    not told again has `resend`, which tells it of all that is open at once. One that wakes people up takes no
    digest. `note` stands below the form, `remarks` in the table of docs/alerts.md.
    """

    label: str
    config: type[ChannelConfig]
    send: Callable[[Any, Message, Egress], Attempt]
    remarks: str
    secrets: frozenset[str] = frozenset()
    freely_changed: frozenset[str] = frozenset()
    hints: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    resend: Callable[[Any, Sequence[Message], Egress], Attempt] | None = None
    takes_digest: bool = True

    def bound_to(self, config: ChannelConfig) -> dict[str, object]:
        """What the secrets of a configuration were given for: of an address its scheme, host and port."""
        shown = config.model_dump(exclude=set(self.secrets | self.freely_changed))
        return {name: _origin(value) for name, value in shown.items()}

    def form_fields(self) -> list[FormField]:
        """Read the form's fields off the configuration model."""
        return [
            FormField(
                name=name,
                hint=self.hints.get(name, ""),
                default="" if info.is_required() or info.default is None else str(info.default),
                required=info.is_required(),
                secret=name in self.secrets,
                several=get_origin(info.annotation) is list,
                choices=tuple(word for word in get_args(info.annotation) if isinstance(word, str)),
            )
            for name, info in self.config.model_fields.items()
        ]
