"""Structured logs: readable in a terminal, otherwise one JSON object per line."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

from gapwatch.settings import Settings

REDACTED = ("password", "secret", "token", "authorization", "cookie", "routing_key")


def log_format(settings: Settings) -> str:
    if settings.log_format != "auto":
        return settings.log_format
    return "human" if sys.stderr.isatty() else "json"


def configure_logs(settings: Settings) -> None:
    """Send our own and every library's log records through one chain to standard error."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        _redact,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    human = log_format(settings) == "human"
    renderer: list[structlog.typing.Processor] = (
        [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(),
                pad_event_to=0,
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
        if human
        else [
            # Never with local variables: they hold what was sent, including keys.
            structlog.processors.ExceptionRenderer(
                structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
            ),
            _add_part(settings.part),
            structlog.processors.JSONRenderer(),
        ]
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "celery"):
        library = logging.getLogger(name)
        library.handlers, library.propagate = [], True
    # Our own access line carries the request id; uvicorn's would say the same thing without it.
    logging.getLogger("uvicorn.access").disabled = True
    # What libraries log about their normal work is for debugging.
    if settings.log_level != "debug":
        for name in ("httpx", "httpcore", "alembic", "kombu", "celery", "uvicorn", "psycopg"):
            logging.getLogger(name).setLevel(logging.WARNING)


def _redact(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    for name in event:
        if any(word in name.lower() for word in REDACTED):
            event[name] = "[redacted]"
    return event


def _add_part(part: str) -> structlog.typing.Processor:
    def add(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        event.setdefault("part", part)
        return event

    return add
