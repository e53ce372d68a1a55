"""`gapwatch-client`: push, status, retry, parked, working and import, for shells and for robots without Python."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gapwatch_client import import_command
from gapwatch_client.backlog import Backlog
from gapwatch_client.client import Gapwatch, default_spool
from gapwatch_client.ids import new_id
from gapwatch_client.refused import RefusedRecords
from gapwatch_client.state import State
from gapwatch_client.version import VERSION

# EX_DATAERR and EX_TEMPFAIL of sysexits.h.
DATA_ERROR, TRY_LATER = 65, 75
_SHOWN_REASONS = 10


def main(arguments: list[str] | None = None) -> int:
    logging.basicConfig(format="gapwatch-client: %(message)s", level=logging.WARNING)
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments[:1] == ["import"]:
            return import_command.main(arguments[1:])
        options = _parser().parse_args(arguments)
        return int(options.run(options))
    except (ValueError, OSError) as error:
        print(f"gapwatch-client: {error}", file=sys.stderr)  # noqa: T201 - a command
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gapwatch-client", description=__doc__)
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    push = commands.add_parser(
        "push", help="spool episodes from files or standard input, and send everything pending"
    )
    push.add_argument("files", nargs="*", metavar="FILE", help="NDJSON or JSON; none or - is standard input")
    push.add_argument("--no-wait", action="store_true", help="write to the spool only; do not send now")
    push.set_defaults(run=_push)
    retry = commands.add_parser("retry", help="send refused episodes again, after the cause is fixed")
    retry.set_defaults(run=_retry)
    parked = commands.add_parser("parked", help="say that a robot rests, so that nobody misses it")
    parked.add_argument("--until", metavar="TIME", help="RFC 3339; else until its next episode")
    working = commands.add_parser("working", help="say that a robot works again")
    for command, name in ((parked, "parked"), (working, "working")):
        command.add_argument("--robot", metavar="NAME")
        command.add_argument("--deployment", metavar="NAME", help="one whose episodes name no robot")
        command.add_argument("--reason", metavar="WORDS")
        command.set_defaults(run=_say_status, status=name)
    for command in (push, retry, parked, working):
        _add_service(command)
        command.add_argument(
            "--timeout", type=float, default=60.0, metavar="S", help="how long to wait for answers"
        )
    status = commands.add_parser("status", help="what is pending, what was refused, and the last error")
    status.add_argument("--json", action="store_true")
    status.set_defaults(run=_status)
    _add_service(status)
    commands.add_parser("import", help="import existing episodes: CSV, Parquet, LeRobot, MCAP, MLflow")
    return parser


def _add_service(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", default=os.environ.get("GAPWATCH_URL", ""), help="default: $GAPWATCH_URL")
    parser.add_argument("--key", default=os.environ.get("GAPWATCH_KEY", ""), help="default: $GAPWATCH_KEY")
    parser.add_argument("--spool", default=os.environ.get("GAPWATCH_SPOOL"), help="default: $GAPWATCH_SPOOL")


def _push(options: argparse.Namespace) -> int:
    with Gapwatch(options.url, options.key, options.spool, linger_s=0) as gw:
        refused_before = gw.status()["refused"]
        spooled = wrong = 0
        for name in options.files or ["-"]:
            for record in _records(name):
                if isinstance(record, dict):
                    gw.send({"id": new_id(), **record})
                    spooled += 1
                else:
                    wrong += 1
        if wrong:
            _say(f"{wrong} lines are not JSON objects and were left out")
        if options.no_wait:
            _say(f"{spooled} episodes spooled")
            return DATA_ERROR if wrong else 0
        return _wait(gw, options.timeout, refused_before, spooled) or (DATA_ERROR if wrong else 0)


def _retry(options: argparse.Namespace) -> int:
    with Gapwatch(options.url, options.key, options.spool, linger_s=0) as gw:
        refused_before = gw.status()["refused"]
        spooled = 0
        for record in RefusedRecords(gw.spool_dir).take():
            gw.send(record)
            spooled += 1
        return _wait(gw, options.timeout, refused_before, spooled)


def _say_status(options: argparse.Namespace) -> int:
    if (options.robot is None) == (options.deployment is None):
        raise ValueError("say which robot: --robot NAME, or --deployment NAME where episodes name none")
    with Gapwatch(options.url, options.key, options.spool, linger_s=0) as gw:
        if options.status == "parked":
            gw.parked(options.robot, until=options.until, reason=options.reason, deployment=options.deployment)
        else:
            gw.working(options.robot, reason=options.reason, deployment=options.deployment)
        everything_sent = gw.flush(options.timeout)
        status = gw.status()
    if status.get("complaints", {}).get("status"):
        return DATA_ERROR
    if not everything_sent:
        _say(f"kept and told later: {status.get('last_error', 'still at it')}")
        return TRY_LATER
    _say(f"{options.robot or options.deployment} is {options.status}")
    return 0


def _wait(gw: Gapwatch, timeout_s: float, refused_before: int, spooled: int) -> int:
    everything_sent = gw.flush(timeout_s)
    status = gw.status()
    refused = status["refused"] - refused_before
    if not everything_sent:
        _say(f"{spooled} episodes spooled; not all are sent yet: {status.get('last_error', 'still at it')}")
        return TRY_LATER
    _say(f"{spooled} episodes spooled, everything sent" + (f", {refused} refused" if refused else ""))
    if refused:
        _say(f"the reasons are in {gw.spool_dir / 'refused.ndjson'}; `gapwatch-client status` lists them")
    return DATA_ERROR if refused else 0


def _status(options: argparse.Namespace) -> int:
    if not options.spool and not (options.url and options.key):
        raise ValueError("say which spool: --spool DIR, or --url and --key")
    directory = Path(options.spool or default_spool(options.url, options.key))
    backlog, refused = Backlog(directory), RefusedRecords(directory)
    pending, oldest_s = backlog.pending(), backlog.oldest_s()
    status: dict[str, Any] = {
        "spool": str(directory),
        "pending": {"real": pending["real"], "sim": pending["sim"]},
        "pending_bytes": backlog.pending_bytes(),
        "oldest_pending_s": None if oldest_s is None else round(oldest_s, 1),
        "in_dead_letters": sum(1 for _ in refused),
        "reasons": dict(refused.reasons().most_common()),
        **State(directory).read(),
    }
    if options.json:
        _say(json.dumps(status, indent=2))
        return 0
    reasons = status.pop("reasons")
    for name, value in status.items():
        if value is not None:
            _say(f"{name.replace('_', ' '):18} {json.dumps(value) if isinstance(value, dict) else value}")
    for reason, count in list(reasons.items())[:_SHOWN_REASONS]:
        _say(f"  refused {count} ×  {reason}")
    return 0


def _records(name: str) -> Iterator[Any]:
    """Records of NDJSON, of one JSON object over several lines, or of a JSON array."""
    file = sys.stdin.buffer if name == "-" else Path(name).open("rb")  # noqa: SIM115 - closed below
    try:
        first = file.readline()
        while first.isspace():
            first = file.readline()
        is_whole = first.lstrip().startswith(b"[")
        if not is_whole:
            if not first:
                return
            try:
                yield json.loads(first)
            except ValueError:
                is_whole = True
        if is_whole:
            whole = json.loads(first + file.read())
            yield from whole if isinstance(whole, list) else [whole]
            return
        for line in file:
            if not line.isspace():
                try:
                    yield json.loads(line)
                except ValueError:
                    yield None
    finally:
        if name != "-":
            file.close()


def _say(text: str) -> None:
    print(text)  # noqa: T201 - a command
