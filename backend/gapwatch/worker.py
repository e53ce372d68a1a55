"""The Celery worker: tasks by name, each one transaction per step, each safe to run twice."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import structlog
from celery import Celery
from celery.signals import setup_logging, worker_process_init, worker_process_shutdown

from gapwatch import pipeline
from gapwatch.access.sealing import Sealer
from gapwatch.alerts import timed_rounds
from gapwatch.alerts.address_confirmation import confirm_link
from gapwatch.alerts.outbox import Sender
from gapwatch.alerts.resending import is_resend_due, resend_open
from gapwatch.alerts.retired_channels import replace_apprise
from gapwatch.alerts.watch import watch_due_episodes
from gapwatch.channels.egress import Egress
from gapwatch.garbage_collection import collect_seldom
from gapwatch.logs import configure_logs
from gapwatch.rollup.fold import fold_due_work
from gapwatch.rollup.leads import fill_missing_presents, refresh_leads
from gapwatch.server_secret import wait_and_check_secret
from gapwatch.settings import Settings
from gapwatch.step_sizes import Turn
from gapwatch.store.alerting import outbox, rewatches, watch_queue
from gapwatch.store.core import heartbeats
from gapwatch.store.core.database import Database
from gapwatch.store.fold import leads, presents, work
from gapwatch.store.people import access, members
from gapwatch.store.write.name_budget import forget_old_budgets
from gapwatch.store.write.quarantine import trim_rejected

log = structlog.get_logger()

HOUSEKEEPING_EVERY_S = 60
# Tasks of all kinds and projects share the worker's few processes, first come, first served: none keeps one for
# much longer than this, but sends itself again and stands in line.
TURN_S = 1.0


class Worker:
    """The tasks and the database of one worker process.

    Pool processes are forked, and a connection made before a fork is shared by both sides and breaks,
    so each process opens its own in `worker_process_init`.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.celery = pipeline.make_celery(settings)
        self._database: Database | None = None
        self._add_tasks()
        setup_logging.connect(self._configure_logs, weak=False)
        worker_process_init.connect(self._open, weak=False)
        worker_process_shutdown.connect(self._close, weak=False)

    @property
    def database(self) -> Database:
        if self._database is None:
            self._open()
        assert self._database is not None  # noqa: S101 - narrows the type
        return self._database

    def _add_tasks(self) -> None:
        @self.celery.task(name=pipeline.FOLD)
        def fold() -> None:
            turn = Turn(TURN_S)
            if fold_due_work(self.database, turn):
                self._nudge("watch")
            if turn.was_cut:
                self._nudge("fold")

        @self.celery.task(name=pipeline.LEAD)
        def lead() -> None:
            fill_missing_presents(self.database, Turn(TURN_S))
            refresh_leads(self.database)

        @self.celery.task(name=pipeline.WATCH)
        def watch() -> None:
            turn = Turn(TURN_S)
            if watch_due_episodes(self.database, self.settings.public_url, turn):
                self._nudge("send")
            if turn.was_cut:
                self._nudge("watch")

        @self.celery.task(name=pipeline.SEND)
        def send() -> None:
            egress, sealer = Egress(self.settings.allow_private_targets), Sealer(self.settings.server_secret())
            link = partial(confirm_link, self.settings.server_secret(), self.settings.public_url)
            Sender(self.database, sealer, egress, link).send_due()

        @self.celery.task(name=pipeline.RESEND)
        def resend() -> None:
            egress, sealer = Egress(self.settings.allow_private_targets), Sealer(self.settings.server_secret())
            resend_open(self.database, sealer, egress)

        @self.celery.task(name=pipeline.KEEP_TIME)
        def keep_time() -> None:
            timed_rounds.keep_time(self.database, self.settings.public_url, self.settings.heartbeat_url)

        @self.celery.task(name=pipeline.SWEEP)
        def sweep() -> None:
            """Send one message per kind of work that is due, and record a heartbeat."""
            with self.database.transaction() as connection:
                heartbeats.beat(connection, "worker")
                if heartbeats.claim_round(connection, "housekeeping", HOUSEKEEPING_EVERY_S):
                    trim_rejected(connection)
                    forget_old_budgets(connection)
                    access.drop_old_sessions(connection)
                    members.drop_what_is_over(connection)
                    replace_apprise(connection, Sealer(self.settings.server_secret()))
                kinds = work.kinds_due(connection)
                if leads.are_due(connection) or presents.are_missing(connection):
                    kinds.append("lead")
                if watch_queue.projects_due(connection) or rewatches.due_rewatches(connection):
                    kinds.append("watch")
                if outbox.is_due(connection):
                    kinds.append("send")
                if is_resend_due(connection):
                    kinds.append("resend")
            for kind in kinds:
                self._nudge(kind)
            self.celery.send_task(pipeline.KEEP_TIME, expires=pipeline.SWEEP_EXPIRES_S)

    def _nudge(self, kind: str) -> None:
        self.celery.send_task(pipeline.TASK_OF_WORK[kind], expires=pipeline.SWEEP_EXPIRES_S)

    def _configure_logs(self, **_: Any) -> None:
        configure_logs(self.settings)

    def _open(self, **_: Any) -> None:
        if self.settings.database_url is None:
            raise ValueError("a worker needs GAPWATCH_DATABASE_URL")
        self._database = Database(self.settings.database_url, pool_size=2, application="gapwatch-worker")
        collect_seldom()

    def _close(self, **_: Any) -> None:
        if self._database is not None:
            self._database.close()


def run_worker(settings: Settings) -> None:
    if settings.database_url is None:
        raise ValueError("a worker needs GAPWATCH_DATABASE_URL")
    database = Database(settings.database_url, pool_size=1, application="gapwatch-worker")
    wait_and_check_secret(database, settings)
    # The pool processes are forked from here and open their own.
    database.close()
    # Celery warns when run as root because of pickle; we accept only JSON.
    warnings.filterwarnings("ignore", message="You're running the worker with superuser privileges")
    celery = Worker(settings).celery
    celery.start(
        [
            "--quiet",
            "worker",
            "--pool=prefork",
            f"--concurrency={settings.worker_processes}",
            f"--loglevel={settings.log_level}",
            "--without-gossip",
            "--without-mingle",
            # A process that grew is replaced between tasks (kilobytes).
            "--max-memory-per-child=450000",
        ]
    )


def run_beat(settings: Settings) -> None:
    """Beat only ticks; its schedule lives in code, so it keeps no state file."""
    celery: Celery = Worker(settings).celery
    celery.Beat(scheduler_cls="celery.beat:Scheduler", loglevel=settings.log_level, quiet=True).run()
