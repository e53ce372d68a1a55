"""How each kind of channel is configured, and which parts of it are secret."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

Kind = Literal["webhook", "pagerduty", "slack", "email", "alertmanager", "apprise"]


def _http(url: str) -> str:
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fine = False
    if not fine:
        raise ValueError("must be an http:// or https:// address")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not carry a user name or password")
    return url


def _address(address: str) -> str:
    name, at, host = address.rpartition("@")
    if not at or not name or not host:
        raise ValueError("must be an e-mail address")
    return address


def _not_mail(url: str) -> str:
    """Mail goes through the channel that asks its addresses first."""
    if url.lower().startswith(("mailto:", "mailtos:")):
        raise ValueError(
            "must not be a mail address: make a channel of kind email, which asks its addresses first"
        )
    return url


Line = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00-\x20\x7f]*$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
Url = Annotated[Line, AfterValidator(_http)]
Address = Annotated[Line, AfterValidator(_address)]


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid")


class WebhookConfig(Config):
    url: Url
    secret: Text | None = None


class PagerDutyConfig(Config):
    routing_key: Line
    url: Url = "https://events.pagerduty.com/v2/enqueue"


class SlackConfig(Config):
    url: Url


class EmailConfig(Config):
    to: Annotated[list[Address], Field(min_length=1, max_length=50)]
    sender: Address
    host: Line
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: Text | None = None
    password: Text | None = None


class AlertmanagerConfig(Config):
    url: Url
    username: Text | None = None
    password: Text | None = None
    bearer: Text | None = None


class AppriseConfig(Config):
    urls: Annotated[list[Annotated[Line, AfterValidator(_not_mail)]], Field(min_length=1, max_length=20)]


CONFIGS: dict[Kind, type[Config]] = {
    "webhook": WebhookConfig,
    "pagerduty": PagerDutyConfig,
    "slack": SlackConfig,
    "email": EmailConfig,
    "alertmanager": AlertmanagerConfig,
    "apprise": AppriseConfig,
}
# Never read back. A Slack address and an Apprise address are secrets as a whole: who knows them can write there.
SECRET = {"secret", "routing_key", "password", "bearer", "urls"}


def split_secrets(kind: Kind, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A valid configuration in what may be shown and what may not; pydantic says what is wrong with it."""
    config = CONFIGS[kind].model_validate(given).model_dump(exclude_none=True)
    hidden = SECRET | ({"url"} if kind == "slack" else set())
    shown = {name: value for name, value in config.items() if name not in hidden}
    return shown, {name: value for name, value in config.items() if name in hidden}


def read_config(kind: Kind, shown: dict[str, Any], secrets: dict[str, Any]) -> Config:
    return CONFIGS[kind].model_validate({**shown, **secrets})
