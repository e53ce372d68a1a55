"""`gapwatch-client import FILE…` and `gapwatch import`: options, progress and the final report."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from gapwatch_client.client import default_spool
from gapwatch_client.fields import versioned
from gapwatch_client.importers import EXTRAS, FORMATS, Source, UnknownFormat, open_source
from gapwatch_client.importers.mapping import BadMapping, Rules, read_rules
from gapwatch_client.importers.record_fields import is_field
from gapwatch_client.importers.run import Checkpoint, Interrupted, Result, import_source
from gapwatch_client.range_files import UnreadableRanges, read_ranges
from gapwatch_client.ranges import ranges_path
from gapwatch_client.transport import Transport, Unreachable

DATA_ERROR, TRY_LATER = 65, 75
_SHOWN = 20
_EXAMPLE = "episodes.csv --set domain=real --set policy=bin-pick@1.4.0 --set deployment=berlin-line-3"


class BadOptions(ValueError):
    """Printed, with the exit status of a usage error."""


@dataclass(frozen=True)
class Target:
    """The service to import to. `identity` stays the same from call to call: progress is kept under it."""

    url: str
    key: str
    identity: str
    state: Path


def main(
    arguments: list[str],
    program: str = "gapwatch-client import",
    beside: Callable[[], Target] | None = None,
    more_help: str = "",
) -> int:
    """`beside` finds a service on this machine, when no option names one."""
    options = make_parser(program, more_help).parse_args(arguments)
    try:
        if options.ranges:
            return _send_ranges(options, _target(options, beside))
        if not options.sources:
            raise BadOptions("Say what to import: a file, a directory, or --ranges FILE.")
        return _run(options, _target(options, beside))
    except (BadOptions, BadMapping, UnknownFormat) as error:
        _tell(str(error))
        return 2


def make_parser(program: str, more_help: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Send the episodes of existing files. Repeating it stores nothing twice.",
        epilog=f"Example: {program} {_EXAMPLE}. The mapping file is described in docs/client.md. {more_help}",
    )
    parser.add_argument(
        "sources", nargs="*", metavar="FILE", help="file, directory, or an MLflow tracking address"
    )
    parser.add_argument("--format", choices=FORMATS, help="default: guessed from the name")
    parser.add_argument("--map", metavar="FILE", help="mapping of columns to fields of the record, JSON or TOML")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="for every episode: task=, outcome=, …"
    )
    parser.add_argument(
        "--ranges",
        metavar="FILE",
        help="randomisation ranges instead of episodes: env.yaml of Isaac Lab or mjlab, mujoco.sysid, PACE",
    )
    parser.add_argument("--simulator", metavar="NAME@VERSION", help="whose ranges they are")
    for option, does in (
        ("nominal", "add and scale act on"),
        ("signal", "measures it"),
        ("condition", "says it"),
    ):
        words = f"of a range: the {option} that {does}"
        parser.add_argument(f"--{option}", action="append", default=[], metavar="PARAMETER=…", help=words)
    parser.add_argument("--experiment", help="of MLflow; default: all")
    parser.add_argument("--salt", default="", help="another set of ids: import the same file as other episodes")
    parser.add_argument("--dry-run", action="store_true", help="map everything and report; send nothing")
    parser.add_argument(
        "--timeout", type=float, default=600.0, metavar="S", help="how long to wait for the service"
    )
    parser.add_argument("--url", default=os.environ.get("GAPWATCH_URL"), help="default: $GAPWATCH_URL")
    parser.add_argument("--key", default=os.environ.get("GAPWATCH_KEY"), help="default: $GAPWATCH_KEY")
    parser.add_argument("--spool", default=os.environ.get("GAPWATCH_SPOOL"), help="where progress is kept")
    return parser


def _send_ranges(options: argparse.Namespace, target: Target) -> int:
    """Randomisation ranges of one file, for one simulator."""
    if options.sources:
        raise BadOptions("--ranges takes one file, and no episodes beside it.")
    if "@" not in (options.simulator or ""):
        raise BadOptions("Say whose ranges they are: --simulator NAME@VERSION.")
    try:
        parameters = read_ranges(Path(options.ranges))
    except ModuleNotFoundError as error:
        raise BadOptions(f"{error}. Try: pip install 'gapwatch-client[ranges]'") from None
    except (UnreadableRanges, OSError) as error:
        _tell(str(error))
        return DATA_ERROR
    _complete(parameters, options)
    relative = [one["name"] for one in parameters if one["operation"] != "abs" and "nominal" not in one]
    _tell(f"{options.ranges}: {len(parameters)} parameters for {options.simulator}")
    for one in parameters[:_SHOWN]:
        _tell(f"  {one['name']}: {one['low']:g} to {one['high']:g} ({one['distribution']}, {one['operation']})")
    if len(parameters) > _SHOWN:
        _tell(f"  … and {len(parameters) - _SHOWN} more")
    if relative:
        _tell(f"  relative, nominal not known: {', '.join(relative[:_SHOWN])}. Say --nominal {relative[0]}=…")
    if options.dry_run:
        return 0
    transport = Transport(target.url, target.key)
    try:
        path = ranges_path(versioned(options.simulator, None))
        answer = transport.put(path, {"parameters": parameters})
    except Unreachable as error:
        _tell(f"not sent: {error}")
        return TRY_LATER
    finally:
        transport.close()
    if answer.status == HTTPStatus.OK:
        return 0
    _tell(f"refused, {answer.explanation}")
    for fault in answer.body.get("errors", ())[:_SHOWN]:
        _tell(f"  {fault.get('pointer')}: {fault.get('message')}")
    return DATA_ERROR


def _complete(parameters: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """What files do not say: nominals, and what measures a parameter."""
    by_name = {one["name"]: one for one in parameters}
    for option in ("nominal", "signal", "condition"):
        for setting in getattr(options, option):
            name, equals, value = setting.partition("=")
            if not equals or name not in by_name:
                raise BadOptions(f"--{option} {setting}: wanted PARAMETER=…, of a parameter of the file")
            try:
                by_name[name][option] = float(value) if option == "nominal" else value
            except ValueError:
                raise BadOptions(f"--nominal {setting}: {value} is no number") from None


def _target(options: argparse.Namespace, beside: Callable[[], Target] | None) -> Target:
    url, key = options.url, options.key
    if options.dry_run:
        url, key = url or "http://dry.run", key or "dry-run"
    elif beside and not (url or key):
        return beside()
    if not (url and key):
        raise BadOptions("Say where to: --url and --key, or GAPWATCH_URL and GAPWATCH_KEY.")
    state = Path(options.spool) if options.spool else default_spool(url, key)
    return Target(url, key, f"{url} {key}", state)


def _run(options: argparse.Namespace, target: Target) -> int:
    rules = read_rules(Path(options.map) if options.map else None)
    rules.salt = options.salt
    settings = _parse_settings(options.set)
    try:
        transport = Transport(target.url, target.key)
    except ValueError as error:
        raise BadOptions(str(error)) from None
    asked = rules.fingerprint() + repr(sorted(settings.items()))
    try:
        statuses = [
            _import(
                open_source(where, options.format, options.experiment),
                rules,
                settings,
                transport,
                Checkpoint(target.state, target.identity, str(_absolute(where)), asked),
                options,
            )
            for where in options.sources
        ]
    except Interrupted as error:
        _tell(f"stopped, {error}\nCall it again to go on from here.")
        return TRY_LATER
    finally:
        transport.close()
    return max(statuses)


def _import(
    source: Source,
    rules: Rules,
    settings: dict[str, Any],
    transport: Transport,
    checkpoint: Checkpoint,
    options: argparse.Namespace,
) -> int:
    bar = _Progress(source)
    try:
        result = import_source(
            source,
            rules,
            settings,
            transport,
            checkpoint,
            progress=bar.show,
            patience_s=options.timeout,
            dry_run=options.dry_run,
        )
    except Interrupted:
        raise
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(source.kind, source.kind)
        raise BadOptions(f"{source.name}: {error}. Try: pip install 'gapwatch-client[{extra}]'") from None
    except Exception as error:  # whatever a format's library raises for a bad file
        _tell(f"{source.name}: cannot be read as {source.kind} ({type(error).__name__}: {error})")
        return DATA_ERROR
    finally:
        bar.end()
    _report(result, dry_run=options.dry_run)
    return 0 if result.is_clean else DATA_ERROR


def _parse_settings(settings: list[str]) -> dict[str, Any]:
    values = {}
    for setting in settings:
        field, equals, value = setting.partition("=")
        if not equals or not is_field(field):
            raise BadOptions(f"--set {setting}: wanted FIELD=VALUE, such as task=pick-mug or conditions.light=dim")
        values[field] = value
    return values


def _absolute(where: str) -> str | Path:
    return Path(where).resolve() if Path(where).exists() else where


def _report(result: Result, *, dry_run: bool) -> None:
    sent = "would be sent" if dry_run else "sent"
    mapped = result.rows - result.report.episodes_skipped
    counts = [f"{result.accepted} new", f"{result.duplicates} already there"]
    if result.already:
        counts.insert(0, f"{result.already} by an earlier call")
    if result.conflicts:
        counts.append(f"{result.conflicts} already there with other content (the first stands)")
    if result.refused_records:
        counts.append(f"{result.refused_records} refused")
    detail = "" if dry_run else f": {', '.join(counts)}"
    _tell(f"{result.source}: {result.rows} episodes found, {max(mapped, 0)} {sent}{detail}")
    for reason, count in result.refused.most_common(_SHOWN):
        _tell(f"  refused {count} ×  {reason}")
    lines = list(result.report.lines())
    for line in lines[:_SHOWN]:
        _tell(f"  {line}")
    if len(lines) > _SHOWN:
        _tell(f"  … and {len(lines) - _SHOWN} more fields")


class _Progress:
    """One line that is overwritten, on a terminal; elsewhere a line every few seconds."""

    def __init__(self, source: Source) -> None:
        self._name = source.name
        try:
            self._total = source.count()
        except Exception:  # the total is a courtesy; reading will report what is wrong
            self._total = None
        self._live = sys.stderr.isatty()
        self._shown_at = time.monotonic()

    def show(self, rows: int) -> None:
        every_s = 0.1 if self._live else 5.0
        if time.monotonic() - self._shown_at < every_s:
            return
        self._shown_at = time.monotonic()
        of = f" of {self._total:,}" if self._total else ""
        done = f" ({100 * rows // self._total} %)" if self._total else ""
        sys.stderr.write(f"\r{self._name}: {rows:,}{of} episodes{done}" + ("" if self._live else "\n"))
        sys.stderr.flush()

    def end(self) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[K")


def _tell(text: str) -> None:
    print(text)  # noqa: T201 - a command
