"""`/metrics`: what Prometheus watches, read from the database so that every process says the same."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from fastapi.responses import PlainTextResponse
from starlette.requests import Request

from gapwatch.api.health import is_operator
from gapwatch.api.problems import problems
from gapwatch.keyring import Keyring
from gapwatch.server_secret import is_right, unreadable
from gapwatch.store.alerting import outbox, resending, watch_queue
from gapwatch.store.core import heartbeats
from gapwatch.store.core.database import Database
from gapwatch.store.fold import work

TEXT = "text/plain; version=0.0.4; charset=utf-8"


def metrics_routes(
    database: Database, keyring: Keyring, server_secret: bytes, operator_token: str | None
) -> APIRouter:
    router = APIRouter(tags=["health"])

    async def project_of(request: Request) -> int | None:
        """The project whose figures are asked for; None for the operator, who may see all."""
        if is_operator(request, operator_token):
            return None
        return (await keyring.needs("read")(request)).project_id

    scraper = Depends(project_of)

    @router.get(
        "/metrics",
        summary="Figures for Prometheus",
        responses=problems(401, 403, 503)
        | {200: {"description": "Prometheus text.", "content": {"text/plain": {"example": "gapwatch_up 1\n"}}}},
        response_class=PlainTextResponse,
    )
    def read_metrics(project_id: int | None = scraper) -> PlainTextResponse:
        """How far the numbers are behind the episodes, and how long the workers have been silent.

        With a key, of its project; with `GAPWATCH_OPERATOR_TOKEN`, of all together.
        """
        with database.transaction() as connection:
            silent_s = heartbeats.seconds_since(connection, "worker")
            is_secret_right = is_right(connection, server_secret)
        with database.transaction(project_id) as connection:
            # Row security is what makes these figures those of one project.
            backlog = work.backlog(connection)
            unwatched_s, unsent = watch_queue.oldest_due_s(connection), outbox.outbox_backlog(connection)
            not_taken_again = resending.failing_channels(connection)
            undelivered = outbox.undelivered(connection)
            unread = unreadable(connection, server_secret)
        figures = [
            ("gapwatch_up", "The web part answers and reaches the database.", 1),
            ("gapwatch_work_oldest_seconds", "Age of the oldest work that was not tried yet.", backlog.oldest_s),
            ("gapwatch_work_failing", "Work rows that failed and are tried again later.", backlog.failing),
            ("gapwatch_watch_oldest_seconds", "Age of the oldest batch that is not watched yet.", unwatched_s),
            ("gapwatch_outbox_oldest_seconds", "Age of the oldest delivery not tried yet.", unsent.oldest_s),
            ("gapwatch_outbox_retrying", "Deliveries that failed and are tried again later.", unsent.retrying),
            ("gapwatch_outbox_dead", "Deliveries given up in the last day.", unsent.dead),
            (
                "gapwatch_outbox_undelivered",
                "Deliveries given up in the last day by channels that have sent nothing since.",
                undelivered,
            ),
            ("gapwatch_secret_right", "Web has the server secret of its database.", int(is_secret_right)),
            ("gapwatch_channels_unreadable", "Channels whose secrets are of another server secret.", unread),
            ("gapwatch_resend_failing", "Channels that do not take again what is open.", not_taken_again),
        ]
        if silent_s is not None:
            figures.append(("gapwatch_worker_silent_seconds", "Time since a worker made its round.", silent_s))
        lines = [
            f"# HELP {name} {words}\n# TYPE {name} gauge\n{name} {value:g}\n" for name, words, value in figures
        ]
        return PlainTextResponse("".join(lines), media_type=TEXT)

    return router
