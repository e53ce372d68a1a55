"""From the columns of somebody else's file to an episode record, by the rules of a mapping file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import Any

from gapwatch_client.ids import id_of
from gapwatch_client.importers.record_fields import SERVERS_OWN, NotConvertible, converted, is_field
from gapwatch_client.importers.report import ImportReport

MOST_SIGNALS = 256
_SECTIONS = {"constants", "columns", "values", "scale", "ignore", "zone"}


class BadMapping(ValueError):
    """The mapping file is invalid."""


@dataclass(frozen=True)
class Row:
    """One episode as it is in its file. `identity` is the same whenever the same file is read."""

    identity: str
    values: Mapping[str, Any]


@dataclass
class Rules:
    """By field of the record: its column, its constant, {written value: meant value}, and its factor."""

    columns: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    scale: dict[str, float] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    zone: tzinfo | None = None
    salt: str = ""

    def fingerprint(self) -> str:
        return json.dumps([self.columns, self.constants, self.values, self.scale, self.salt], default=str)


def read_rules(path: Path | None) -> Rules:
    """A mapping file, JSON or TOML (the latter from Python 3.11 on)."""
    if path is None:
        return Rules()
    try:
        content = _load(path)
    except (OSError, ValueError) as error:
        raise BadMapping(f"{path} cannot be read: {error}") from None
    unknown = sorted(set(content) - _SECTIONS)
    if unknown:
        raise BadMapping(f"{path}: unknown {', '.join(unknown)}; a mapping has {', '.join(sorted(_SECTIONS))}")
    rules = Rules(
        columns=_flat(content.get("columns", {})),
        constants=_flat(content.get("constants", {})),
        values={name: dict(words) for name, words in _value_tables(content.get("values", {})).items()},
        scale=_flat(content.get("scale", {})),
        ignore=tuple(content.get("ignore", ())),
    )
    for name in (*rules.columns, *rules.constants, *rules.values, *rules.scale):
        if not is_field(name):
            raise BadMapping(f"{path}: {name} is not a field of an episode, such as task or conditions.lighting")
    if "zone" in content:
        from zoneinfo import ZoneInfo

        rules.zone = ZoneInfo(content["zone"])
    return rules


def _load(path: Path) -> dict[str, Any]:
    if path.suffix.lower() == ".toml":
        try:
            import tomllib
        except ModuleNotFoundError:
            raise BadMapping("TOML needs Python 3.11; write the mapping as JSON") from None
        return tomllib.loads(path.read_text(encoding="utf-8"))
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """TOML reads `conditions.lighting = "light"` as a table in a table; it means the same as the quoted name."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat.update(_flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value})
    return flat


def _value_tables(table: Mapping[str, Any], prefix: str = "") -> dict[str, Mapping[str, Any]]:
    tables: dict[str, Mapping[str, Any]] = {}
    for name, value in table.items():
        if any(isinstance(member, dict) for member in value.values()):
            tables.update(_value_tables(value, f"{prefix}{name}."))
        else:
            tables[f"{prefix}{name}"] = value
    return tables


class Mapper:
    """Applies the rules, and reports everything that could not be mapped."""

    def __init__(self, rules: Rules, report: ImportReport, settings: Mapping[str, Any] | None = None) -> None:
        self._rules = rules
        self._report = report
        # Values set for every episode win over the file.
        self._constants = rules.constants | dict(settings or {})
        self._fields_of: dict[str, list[str]] = {}
        for target, column in rules.columns.items():
            self._fields_of.setdefault(column, []).append(target)

    def record(self, row: Row) -> dict[str, Any] | None:
        """The episode, or None when a required field is missing."""
        record: dict[str, Any] = {}
        for column, value in row.values.items():
            if value is None or value == "" or column in self._rules.ignore or column in SERVERS_OWN:
                continue
            fields = self._fields_of.get(column) or ([column] if is_field(column) else [])
            if not fields:
                self._report.left_out(column, "not mapped", value)
            for target in fields:
                self._put(record, column, target, value)
        for target, value in self._constants.items():
            self._put(record, target, target, value, is_constant=True)
        record.setdefault("id", id_of(self._rules.salt, row.identity))
        record.setdefault("domain", "sim" if "simulator" in record and "deployment" not in record else "real")
        missing = self._missing(record)
        if missing:
            self._report.skipped(f"no {', no '.join(missing)}; say it with --set {missing[0]}=… or in a mapping")
            return None
        self._bound_signals(record)
        return record

    def _put(
        self, record: dict[str, Any], column: str, target: str, value: Any, *, is_constant: bool = False
    ) -> None:
        if not is_constant:
            words = self._rules.values.get(target, {})
            value = words.get(str(value), value)
        try:
            value = converted(target, value, self._rules.zone)
            if target in self._rules.scale and not is_constant:
                value *= self._rules.scale[target]
        except NotConvertible as error:
            self._report.left_out(column, str(error), value)
            return
        except (TypeError, ValueError, AttributeError) as error:
            self._report.left_out(column, f"cannot be read ({error})", value)
            return
        if target in {"policy", "simulator"}:
            name, at, version = value.rpartition("@")
            record[target] = (
                {"name": name, "version": version} if at else {"name": value, "version": "unversioned"}
            )
            if not at:
                self._report.assumed(f"{target}.version", "not said anywhere, sent as “unversioned”")
            return
        head, dot, name = target.partition(".")
        if dot:
            inside = record.setdefault(head, {})
            inside[name] = value
        elif isinstance(value, dict) and isinstance(record.get(head), dict):
            record[head] |= value
        else:
            record[head] = value

    def _missing(self, record: dict[str, Any]) -> list[str]:
        needed = ["policy", "task", "started_at", "outcome"]
        needed.append("simulator" if record["domain"] == "sim" else "deployment")
        for versioned in ("policy", "simulator"):
            if versioned in record and "version" not in record[versioned]:
                record[versioned]["version"] = "unversioned"
                self._report.assumed(f"{versioned}.version", "not said anywhere, sent as “unversioned”")
        return [name for name in needed if not record.get(name) or record[name] == {"version": "unversioned"}]

    def _bound_signals(self, record: dict[str, Any]) -> None:
        signals = record.get("signals", {})
        for name in list(signals)[MOST_SIGNALS:]:
            del signals[name]
            self._report.left_out(f"signals.{name}", f"an episode has at most {MOST_SIGNALS} signals")
