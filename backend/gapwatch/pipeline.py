"""The pipeline: the tasks by name, when they run, and how the broker is used.

Rows in Postgres are the queue of record. A message on Redis only says "look at the table", so a lost
one costs the seconds until the next sweep and nothing else.
"""

from __future__ import annotations

import threading
import time
from urllib.parse import unquote, urlsplit

import structlog
from celery import Celery

from gapwatch.settings import Settings

log = structlog.get_logger()

FOLD = "rollup.fold"
LEAD = "rollup.lead"
WATCH = "alerts.watch"
SEND = "alerts.send"
RESEND = "alerts.resend"
KEEP_TIME = "alerts.keep_time"
SWEEP = "pipeline.sweep"

# Which task does which kind of work: rows of `work`, `presents`, `watch_due`, `deliveries` and `channels`.
TASK_OF_WORK = {"fold": FOLD, "lead": LEAD, "watch": WATCH, "send": SEND, "resend": RESEND}

SWEEP_EVERY_S = 2.0
# A sweep that waited longer than this is worthless: the next ones have been sent meanwhile.
SWEEP_EXPIRES_S = 6.0
BROKER_TIMEOUT_S = 2.0


def broker_url(redis_url: str) -> str:
    """Kombu writes a Unix socket as redis+socket:// where redis-py writes unix://."""
    if redis_url.startswith("unix://"):
        return f"redis+socket://{unquote(urlsplit(redis_url).path)}"
    return redis_url


def make_celery(settings: Settings) -> Celery:
    if settings.redis_url is None:
        raise ValueError("a worker needs GAPWATCH_REDIS_URL")
    celery = Celery("gapwatch", broker=broker_url(settings.redis_url))
    celery.conf.update(
        # JSON only: nothing on the broker can become code.
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        # A task is acknowledged when done; a killed child's task goes back. Even so kill -9 can lose a
        # message between BRPOP and the write to `unacked`, which is why the sweep exists.
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        task_time_limit=120,
        task_soft_time_limit=90,
        # Publishing never retries inside a caller and never waits for a silent Redis.
        task_publish_retry=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=BROKER_TIMEOUT_S,
        broker_transport_options={
            "visibility_timeout": 300,
            "unacked_restore_interval": 2,
            "unacked_restore_throttle": 1,
            "socket_timeout": BROKER_TIMEOUT_S,
            "socket_connect_timeout": BROKER_TIMEOUT_S,
            "socket_keepalive": not settings.redis_url.startswith("unix://"),
        },
        visibility_timeout=300,
        redis_socket_timeout=BROKER_TIMEOUT_S,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        beat_schedule={
            "sweep": {
                "task": SWEEP,
                "schedule": SWEEP_EVERY_S,
                "options": {"expires": SWEEP_EXPIRES_S},
            }
        },
        beat_max_loop_interval=1,
    )
    return celery


class Nudger:
    """Sends "look at the table" from its own thread, so that no request ever waits for Redis.

    Nudges within `pause_s` of each other become one message. When Redis does not answer, the thread backs
    off and the nudge is dropped: the sweep will find the row.
    """

    def __init__(self, celery: Celery, *, pause_s: float = 0.05) -> None:
        self._celery = celery
        self._pause_s = pause_s
        self._due: set[str] = set()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="nudger", daemon=True)
        self._thread.start()

    def nudge(self, kind: str) -> None:
        """Announce that work of a kind was committed. Returns at once, whatever Redis does."""
        self._due.add(TASK_OF_WORK[kind])
        self._wake.set()

    def close(self) -> None:
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout=1)

    def _run(self) -> None:
        failures = 0
        while True:
            self._wake.wait()
            if self._stopping:
                return
            time.sleep(self._pause_s)
            self._wake.clear()
            tasks, self._due = self._due, set()
            try:
                for task in tasks:
                    self._celery.send_task(task, expires=SWEEP_EXPIRES_S)
                failures = 0
            except Exception as error:
                failures += 1
                if failures == 1:
                    log.warning("nudge not sent; the sweep will find the work", error=type(error).__name__)
                time.sleep(min(0.5 * 2**failures, 5.0))
