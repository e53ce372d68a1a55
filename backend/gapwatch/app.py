"""The web application: wires the stages to one ASGI app, and turns every error into one shape."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from gapwatch.access.sealing import Sealer
from gapwatch.api.alerting import alert_routes
from gapwatch.api.baselines import baseline_routes
from gapwatch.api.calendars import calendar_routes
from gapwatch.api.channels import channel_routes
from gapwatch.api.deployments import deployment_routes
from gapwatch.api.episodes import episode_routes
from gapwatch.api.exports import Exports
from gapwatch.api.fixes import fix_routes
from gapwatch.api.health import HealthRoutes
from gapwatch.api.incidents import incident_routes
from gapwatch.api.keys import key_routes
from gapwatch.api.metrics import metrics_routes
from gapwatch.api.permit_board import PermitBoard
from gapwatch.api.permits import PermitCalls, permit_routes
from gapwatch.api.plans import plan_routes
from gapwatch.api.policies import policy_routes
from gapwatch.api.problems import PROBLEM_JSON
from gapwatch.api.ranges import range_routes
from gapwatch.api.rejected import rejected_routes
from gapwatch.api.robots import robot_routes
from gapwatch.api.rollouts import rollout_routes
from gapwatch.api.rules import rule_routes
from gapwatch.api.silences import event_routes, silence_routes
from gapwatch.api.simulators import simulator_routes
from gapwatch.doors.bounded_body import BoundedBodies
from gapwatch.doors.costly_reads import SIDE_PROCESSES, CostlyReads
from gapwatch.doors.side_process import SideProcess
from gapwatch.errors import Fault, GapwatchError, Invalid, ServiceUnavailable, UnsafeServer, problem
from gapwatch.hosts import HostGate, KnownHosts
from gapwatch.ingest.disk_space import DiskSpaceGuard
from gapwatch.ingest.rate_limits import RateLimits
from gapwatch.ingest.routes import IngestRoutes
from gapwatch.keyring import Keyring
from gapwatch.logs import configure_logs
from gapwatch.middleware import RequestContext
from gapwatch.openapi import openapi
from gapwatch.pages.routes import PageRoutes
from gapwatch.pages.templates import Pages
from gapwatch.pipeline import Nudger, make_celery
from gapwatch.settings import Settings
from gapwatch.store.core import uptime
from gapwatch.store.core.database import Database, DatabaseError, translate
from gapwatch.store.core.pool import make_pool
from gapwatch.store.write.accept import Acceptor

log = structlog.get_logger()

INGEST_CONNECTIONS = 8
MARK_EVERY_S = 60.0


def make_side_app(settings: Settings) -> ASGIApp:
    """The application of the side process: the same, without what surrounds it and without another beside it."""
    configure_logs(settings)
    return make_app(settings, is_side=True)


def make_app(
    settings: Settings, *, is_side: bool = False, at_stop: list[Callable[[], None]] | None = None
) -> ASGIApp:
    """`at_stop` gets what has to be called when the server begins to stop: requests that wait are let go."""
    if settings.database_url is None:
        raise ValueError("web needs GAPWATCH_DATABASE_URL")
    size = {"pool_size": 2, "overflow": 0} if is_side else {"pool_size": 10}
    database = Database(settings.database_url, application="gapwatch-web", **size)
    sides = [] if is_side else [SideProcess(make_side_app, settings) for _ in range(SIDE_PROCESSES)]
    costly = CostlyReads(*sides)
    exports = Exports(settings.database_url)
    pool = make_pool(settings.database_url, size=INGEST_CONNECTIONS)
    board = PermitBoard(settings.database_url, pool)
    (at_stop if at_stop is not None else []).append(board.let_go)
    nudger = Nudger(make_celery(settings))
    pages = Pages()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            database.refuse_unsafe_server()
        except UnsafeServer:
            raise
        except ServiceUnavailable:
            # Web may be up before Postgres: it answers 503 until then, and checks every connection again.
            log.warning("the database is not answering yet")
        await pool.open()
        stopped = threading.Event()
        threading.Thread(target=_mark_alive, args=(database, stopped), name="alive", daemon=True).start()
        if not is_side:
            board.start()
        try:
            yield
        finally:
            stopped.set()
            board.stop()
            costly.close()
            nudger.close()
            await pool.close()
            exports.close()
            database.close()

    app = FastAPI(
        title="Gapwatch",
        lifespan=lifespan,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    acceptor, keyring = Acceptor(pool, settings.new_names_a_day), Keyring(pool, settings.server_secret())
    ingest = IngestRoutes(
        acceptor,
        keyring,
        # Each process grants its share of a key's rate.
        RateLimits(settings.ingest_rate / settings.web_processes),
        DiskSpaceGuard(settings.data_dir / "postgres"),
        nudger.nudge,
    )
    app.router.routes += ingest.routes()
    sealer = Sealer(settings.server_secret())
    for router in (
        episode_routes(database, keyring, exports),
        deployment_routes(database, keyring, costly),
        baseline_routes(database, keyring),
        policy_routes(database, keyring, costly),
        simulator_routes(database, keyring, costly),
        rejected_routes(database, keyring),
        alert_routes(database, keyring, nudger),
        incident_routes(database, keyring, nudger),
        rule_routes(database, keyring, costly),
        channel_routes(database, keyring, sealer, nudger),
        silence_routes(database, keyring),
        rollout_routes(database, keyring, nudger, settings.public_url),
        event_routes(database, keyring),
        plan_routes(database, keyring),
        range_routes(database, keyring),
        fix_routes(database, keyring, costly),
        robot_routes(database, keyring, nudger),
        permit_routes(database, keyring, board, settings.public_url),
        calendar_routes(database, keyring),
        key_routes(database, keyring, settings.server_secret()),
        metrics_routes(database, keyring, settings.server_secret(), settings.operator_token),
    ):
        app.include_router(router)
    app.router.routes += HealthRoutes(
        database, settings.data_dir, settings.server_secret(), settings.operator_token
    ).routes()
    app.router.routes += PageRoutes(
        database,
        pages,
        settings,
        nudge=nudger.nudge,
        sealer=sealer,
        costly=costly,
        export=lambda project_id, wanted: exports.answer(project_id, wanted, "csv"),
    ).routes()
    app.openapi = lambda: openapi(app)  # type: ignore[method-assign]
    ours = _answer_errors(app, pages)
    if is_side:
        return app
    bounded = BoundedBodies(app, know_key=keyring.of_request, answer=ours)
    inside = RequestContext(
        bounded,
        https=settings.public_url.startswith("https://"),
        posts=ingest.posts(),
        gets=PermitCalls(keyring, board).find,
    )
    return HostGate(inside, KnownHosts(settings))


def _mark_alive(database: Database, stopped: threading.Event) -> None:
    """Leave a mark every minute: a time without any is our absence, and no silence of a robot.

    In a thread of its own, for which nothing waits: a Postgres that hangs holds up neither requests nor the end.
    """
    while True:
        try:
            database.run(lambda connection: uptime.mark_alive(connection, "ingest"))
        except (GapwatchError, DatabaseError):
            log.warning("no mark of life: the database did not take it")
        if stopped.wait(MARK_EVERY_S):
            return


def _answer_errors(app: FastAPI, pages: Pages) -> Callable[[Request, Exception], Response]:
    """Give every error its answer. Return what answers our own."""

    def answer(request: Request, body: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
        """problem+json, or the same as a page for a browser outside the API."""
        wants_html = "text/html" in request.headers.get("accept", "")
        if wants_html and not request.url.path.startswith("/api/"):
            return pages.render("error.html", body["status"], headers, problem=body)
        return JSONResponse(body, body["status"], headers, media_type=PROBLEM_JSON)

    def ours(request: Request, error: Exception) -> Response:
        error = cast(GapwatchError, error)
        return answer(request, error.problem(_instance(request)), error.headers)

    def starlettes(request: Request, error: Exception) -> Response:
        error = cast(HTTPException, error)
        title = {404: "Not found", 405: "Method not allowed"}.get(error.status_code, str(error.detail))
        code = title.lower().replace(" ", "-")
        detail = {
            404: "There is nothing at this address.",
            405: "This address does not take this method; the Allow header lists those it does.",
        }.get(error.status_code, title)
        body = problem(error.status_code, code, title, detail, _instance(request))
        return answer(request, body, dict(error.headers or {}))

    def parameters(request: Request, error: Exception) -> Response:
        faults = [
            Fault(
                pointer="/" + "/".join(str(part) for part in fault["loc"]),
                code=str(fault["type"]).replace("_", "-"),
                message=str(fault["msg"]),
            )
            for fault in cast(RequestValidationError, error).errors()
        ]
        invalid = Invalid("A parameter is not valid; `errors` says which.", errors=faults)
        return answer(request, invalid.problem(_instance(request)))

    def databases(request: Request, error: Exception) -> Response:
        translated = translate(cast(DatabaseError, error))
        if isinstance(translated, GapwatchError):
            return ours(request, translated)
        return unexpected(request, error)

    def unexpected(request: Request, error: Exception) -> Response:
        log.exception("unexpected error", error=type(error).__name__)
        detail = f"The request failed and was logged under the id {request.state.request_id}."
        return answer(request, GapwatchError(detail).problem(_instance(request)))

    app.add_exception_handler(GapwatchError, ours)
    app.add_exception_handler(HTTPException, starlettes)
    app.add_exception_handler(RequestValidationError, parameters)
    app.add_exception_handler(DatabaseError, databases)
    # Starlette answers 500 and raises again for the server to log; ours answers and logs once.
    app.add_exception_handler(Exception, unexpected)
    return ours


def _instance(request: Request) -> str:
    return f"/requests/{request.state.request_id}"
