"""Every setting of the service, read once from the environment and passed down.

`GAPWATCH_NAME` or, for values kept in a file (Docker and Kubernetes secrets), `GAPWATCH_NAME_FILE`.
"""

from __future__ import annotations

import difflib
import os
import re
import secrets
import shlex
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

PREFIX = "GAPWATCH_"
# Variables of the client package, which may share a shell with the service.
CLIENT_VARIABLES = {"GAPWATCH_URL", "GAPWATCH_KEY", "GAPWATCH_SPOOL"}

ROOT = Path(__file__).resolve().parents[2]
"""The checkout: `frontend/` and `migrations/` lie beside `backend/`."""


class SettingsError(Exception):
    """A setting has a bad value; the message names the variable and is meant for a person."""


def default_data_dir() -> Path:
    share = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(share) / "gapwatch"


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    database_url: str | None = None
    redis_url: str | None = None
    data_dir: Path = Field(default_factory=default_data_dir)
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    base_url: str | None = None
    allowed_hosts: str = ""
    trusted_proxies: str = ""
    secret_key: Annotated[str, Field(min_length=32)] | None = None
    operator_token: Annotated[str, Field(min_length=32)] | None = None
    ingest_rate: Annotated[float, Field(gt=0)] = 100_000
    new_names_a_day: Annotated[int, Field(ge=1, le=1_000_000)] = 2000
    allow_private_targets: bool = False
    heartbeat_url: str | None = None
    web_processes: Annotated[int, Field(ge=1, le=64)] = 1
    worker_processes: Annotated[int, Field(ge=1, le=64)] = 2
    log_format: Literal["auto", "human", "json"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    part: str = "gapwatch"

    @field_validator("database_url")
    @classmethod
    def _postgres_only(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("postgresql://", "postgres://")):
            raise ValueError("must start with postgresql:// (Postgres is the only database)")
        return url

    @field_validator("redis_url")
    @classmethod
    def _redis_only(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("must start with redis://, rediss:// or unix://")
        return url

    @field_validator("base_url", "heartbeat_url")
    @classmethod
    def _http_address(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        return url.rstrip("/") if url else url

    @field_validator("allowed_hosts")
    @classmethod
    def _host_names(cls, listed: str) -> str:
        for name in filter(None, (part.strip() for part in listed.split(","))):
            if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9a-fA-F:]+", name):
                raise ValueError("must be host names without scheme and port, with commas between them")
        return listed

    @field_validator("trusted_proxies")
    @classmethod
    def _addresses(cls, listed: str) -> str:
        for part in filter(None, (part.strip() for part in listed.split(","))):
            try:
                network = ip_network(part, strict=False)
            except ValueError:
                raise ValueError("must be addresses or networks, with commas between them") from None
            if network.prefixlen == 0:
                raise ValueError("must not be every address: anybody could then claim to be anywhere")
        return listed

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        from_files = InitSettingsSource(settings_cls, _values_from_files(cls.model_fields))
        return init_settings, env_settings, from_files

    @property
    def allowed_host_names(self) -> set[str]:
        return {part.strip().lower() for part in self.allowed_hosts.split(",") if part.strip()}

    @property
    def public_url(self) -> str:
        """Where people and robots reach the service; links in alerts start with it."""
        return self.base_url or self.local_url

    @property
    def local_url(self) -> str:
        """Where this machine reaches the service, whatever address it listens on."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def data_dir_option(self) -> str:
        """What a command on this machine needs to find the same data; nothing when it is the default."""
        if self.data_dir == default_data_dir():
            return ""
        return f" --data-dir {shlex.quote(str(self.data_dir))}"

    def server_secret(self) -> bytes:
        """The key of every keyed hash; made once in the data directory when none is set."""
        if self.secret_key is not None:
            return self.secret_key.encode()
        path = self.data_dir / "secret-key"
        if not path.exists():
            self.data_dir.mkdir(parents=True, exist_ok=True)
            fresh = path.with_name(f"secret-key.{os.getpid()}")
            fresh.touch(mode=0o600)
            fresh.write_text(secrets.token_urlsafe(48))
            try:
                # A hard link fails if another process was first: then its key is used.
                path.hardlink_to(fresh)
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        return path.read_bytes()


def read_settings(**overrides: Any) -> Settings:
    """Read the settings of this process. A bad value raises SettingsError with a sentence for a person."""
    values = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**values)
    except ValidationError as error:
        sentences = [_sentence(dict(fault)) for fault in error.errors(include_input=False)]
        raise SettingsError(" ".join(sentences)) from None


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """One warning per `GAPWATCH_*` variable that nobody reads, with the likely intended name."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    known |= {f"{name}_FILE" for name in known} | CLIENT_VARIABLES
    warnings = []
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            warnings.append(f"{name} is not a setting and is ignored{hint}")
    return warnings


def _values_from_files(fields: Mapping[str, Any]) -> dict[str, str]:
    values = {}
    for name in fields:
        variable = f"{PREFIX}{name.upper()}"
        path = os.environ.get(f"{variable}_FILE")
        if not path:
            continue
        if variable in os.environ:
            raise SettingsError(f"{variable} and {variable}_FILE are both set; keep one of them.")
        try:
            values[name] = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{variable}_FILE cannot be read: {error}.") from None
    return values


def _sentence(fault: dict[str, Any]) -> str:
    name = str(fault["loc"][0]) if fault["loc"] else ""
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{PREFIX}{name.upper()} is wrong: {message[0].lower()}{message[1:]}."
