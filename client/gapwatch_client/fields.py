"""From the keywords of `Gapwatch.episode` to the fields of a record. A wrong keyword loses only itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from gapwatch_client.ids import new_id

TEXTS = {"deployment", "robot", "site", "stage", "session", "pair", "task", "domain", "outcome"}
MAPS = {"conditions", "signals", "metrics", "links", "provenance", "safety", "failure", "shadow"}
AS_THEY_ARE = {"embedding", "reward", "duration_s", "plan"}
KNOWN = TEXTS | MAPS | AS_THEY_ARE
KNOWN |= {"id", "policy", "version", "simulator", "simulator_version", "started_at", "contract"}


def record_of(fields: dict[str, Any], complain: Callable[[str, str], None]) -> dict[str, Any]:
    """A record at its beginning. It has an id and a domain, whatever else is wrong with it."""
    record: dict[str, Any] = {"id": "", "domain": "real"}
    if fields.get("simulator") and not fields.get("deployment"):
        record["domain"] = "sim"
    for name, value in fields.items():
        if value is None or name in {"version", "simulator_version"}:
            continue
        try:
            if name in KNOWN:
                record[name] = _field(name, value, fields)
            else:
                complain("episode", f"{name} is no field of an episode and was left out")
        except Exception as error:
            complain("episode", f"{name} was left out ({type(error).__name__}: {error})")
    record["id"] = record["id"] or new_id()
    return record


def _field(name: str, value: Any, fields: dict[str, Any]) -> Any:
    if name in TEXTS or name == "id":
        return str(value)
    if name in MAPS:
        return dict(value)
    if name == "policy":
        return versioned(value, fields.get("version"))
    if name == "simulator":
        return versioned(value, fields.get("simulator_version"))
    if name == "started_at":
        return value.isoformat() if isinstance(value, datetime) else str(value)
    if name == "contract":
        return value.as_dict() if hasattr(value, "as_dict") else dict(value)
    return value


def versioned(value: Any, version: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return {name: str(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        value, version = value
    name, at, after = str(value).rpartition("@")
    if version is None and at:
        return {"name": name, "version": after}
    return {"name": str(value), "version": "unversioned" if version is None else str(version)}
