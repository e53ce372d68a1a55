"""`gapwatch serve`: one process that starts the parts, restarts what dies, and stops everything cleanly.

Children run in their own sessions, so Ctrl-C reaches only the supervisor, which then stops them in
order: web (it drains), worker and beat together, then Redis, and Postgres last.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import structlog

from gapwatch import embedded
from gapwatch.logs import log_format
from gapwatch.settings import Settings

log = structlog.get_logger()

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0
# A part that lived this long was healthy: its next death restarts the back-off.
HEALTHY_AFTER_S = 5.0
STOP_WITHIN_S = 35.0
MOST_DEATHS_BEFORE_READY = 5


class AlreadyRunning(Exception):
    """Another process serves this data directory."""


class StartFailed(Exception):
    """The service could not start; the message says which part and why."""


@dataclass
class SupervisedProcess:
    """One supervised child process."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    stop_signal: signal.Signals = signal.SIGTERM
    account: embedded.ServerAccount | None = None
    inherited_fds: tuple[int, ...] = ()
    process: asyncio.subprocess.Process | None = None
    deaths: int = 0
    readers: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.returncode is None

    async def start(self, settings: Settings) -> None:
        options = embedded.spawn_options(self.account, self.stop_signal)
        self.process = await asyncio.create_subprocess_exec(
            *self.argv,
            env=self.env,
            cwd="/",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=1 << 20,
            pass_fds=self.inherited_fds,
            **options,
        )
        assert self.process.stdout is not None  # noqa: S101 - narrows the type
        reader = asyncio.create_task(pass_through(self.name, self.process.stdout, settings))
        self.readers.add(reader)
        reader.add_done_callback(self.readers.discard)

    async def stop(self, within_s: float) -> None:
        """Ask, wait, then kill what is left of the whole group (a worker has its own children)."""
        if self.process is None:
            return
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(self.stop_signal)
            try:
                await asyncio.wait_for(self.process.wait(), within_s)
            except TimeoutError:
                log.warning("part did not stop in time and is killed", part=self.name)
        self.kill_group()
        await self.process.wait()
        if self.readers:
            await asyncio.wait(self.readers, timeout=2)

    def kill_group(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


class Supervisor:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.parts: list[SupervisedProcess] = []
        self.stopping = asyncio.Event()
        self.ready = False
        self._restarters: list[asyncio.Task[None]] = []
        self._failed: str | None = None

    async def run(self, when_ready: Callable[[Settings], None]) -> None:
        """Start everything, call `when_ready` with the effective settings, and serve until asked to stop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._ask_to_stop)
        with held_lock(self.settings.data_dir) as lock, listening_socket(self.settings) as listener:
            settings = self.settings.model_copy(update={"port": listener.getsockname()[1]})
            remove_leftovers(lock)
            with self._run_dir() as run_dir:
                starting = asyncio.create_task(self._start(settings, lock, listener, run_dir, when_ready))
                stop_requested = asyncio.create_task(self.stopping.wait())
                try:
                    await asyncio.wait({starting, stop_requested}, return_when=asyncio.FIRST_COMPLETED)
                    if starting.done():
                        starting.result()
                    await stop_requested
                finally:
                    starting.cancel()
                    await asyncio.wait({starting})
                    await self._stop_all()
        if self._failed is not None:
            raise StartFailed(self._failed)

    async def _start(
        self,
        settings: Settings,
        lock: Path,
        listener: socket.socket,
        run_dir: Path,
        when_ready: Callable[[Settings], None],
    ) -> None:
        settings = await self._start_servers(settings, run_dir)
        record(lock, settings, run_dir)
        await self._start_service(settings, listener)
        self.ready = True
        try:
            await asyncio.to_thread(when_ready, settings)
        except OSError as error:
            # Its output has nowhere to go; that must not stop a service that is up.
            if error.errno != errno.ENOSPC:
                raise

    def _ask_to_stop(self) -> None:
        if self.stopping.is_set():
            # A second Ctrl-C: stop waiting.
            for part in self.parts:
                part.kill_group()
            return
        log.info("stopping")
        self.stopping.set()

    @contextlib.contextmanager
    def _run_dir(self) -> Iterator[Path]:
        account = embedded.running_as(self.settings.data_dir)
        run_dir = embedded.make_run_dir(account)
        try:
            yield run_dir
        finally:
            shutil.rmtree(run_dir, ignore_errors=True)

    async def _start_servers(self, settings: Settings, run_dir: Path) -> Settings:
        """Start the embedded servers that have no URL set. Return the settings with both URLs."""
        account = None
        if settings.database_url is None:
            with step("Postgres 18 (embedded)"):
                postgres = await asyncio.to_thread(embedded.prepare_postgres, settings.data_dir, run_dir)
                account = postgres.account
                await self._start_server(postgres)
            settings = settings.model_copy(update={"database_url": postgres.url})
        if settings.redis_url is None:
            with step("Redis (embedded)"):
                redis = embedded.prepare_redis(run_dir, account)
                await self._start_server(redis)
            settings = settings.model_copy(update={"redis_url": redis.url})
        return settings

    async def _start_server(self, server: embedded.Server) -> None:
        part = SupervisedProcess(
            server.name,
            server.argv,
            embedded.server_environment(),
            stop_signal=server.stop_signal,
            account=server.account,
        )
        await self._keep(part)
        await asyncio.to_thread(embedded.wait_until_ready, server, lambda: part.is_alive)

    async def _start_service(self, settings: Settings, listener: socket.socket) -> None:
        from gapwatch.server_secret import WrongSecret, check_secret
        from gapwatch.store.core.database import Database, DatabaseUnusable
        from gapwatch.store.core.migrate import migrate_or_explain

        assert settings.database_url is not None  # noqa: S101 - narrows the type
        with step("migrations"):
            database = Database(settings.database_url, statement_timeout_s=0)
            try:
                await asyncio.to_thread(migrate_or_explain, database)
                await asyncio.to_thread(check_secret, database, settings)
            except DatabaseUnusable as error:
                raise StartFailed(f"The database cannot be used: {error}") from error
            except WrongSecret as error:
                raise StartFailed(str(error)) from None
            finally:
                database.close()
        environment = child_environment(settings)
        python = (sys.executable, "-m", "gapwatch")
        listener.set_inheritable(True)
        with step("web, worker and beat"):
            for number in range(1, settings.web_processes + 1):
                name = "web" if settings.web_processes == 1 else f"web-{number}"
                argv = (*python, "web", "--fd", str(listener.fileno()))
                env = environment | {"GAPWATCH_PART": name}
                await self._keep(SupervisedProcess(name, argv, env, inherited_fds=(listener.fileno(),)))
            for name in ("worker", "beat"):
                await self._keep(SupervisedProcess(name, (*python, name), environment | {"GAPWATCH_PART": name}))
            await self._until_answering(settings)

    async def _until_answering(self, settings: Settings) -> None:
        async with httpx.AsyncClient(base_url=settings.local_url, trust_env=False, timeout=1) as client:
            while not self.stopping.is_set():
                with contextlib.suppress(httpx.HTTPError):
                    if (await client.get("/healthz")).status_code == httpx.codes.OK:
                        return
                await asyncio.sleep(0.05)

    async def _keep(self, part: SupervisedProcess) -> None:
        await part.start(self.settings)
        self.parts.append(part)
        self._restarters.append(asyncio.create_task(self._restart_when_dead(part)))

    async def _restart_when_dead(self, part: SupervisedProcess) -> None:
        pause = FIRST_PAUSE_S
        while True:
            assert part.process is not None  # noqa: S101 - narrows the type
            started = time.monotonic()
            code = await part.process.wait()
            if self.stopping.is_set():
                return
            # A killed worker leaves its pool processes behind; they hold database connections.
            part.kill_group()
            part.deaths += 1
            if time.monotonic() - started > HEALTHY_AFTER_S:
                pause = FIRST_PAUSE_S
            log.warning("part stopped and is started again", name=part.name, code=code, pause_s=pause)
            if not self.ready and part.deaths >= MOST_DEATHS_BEFORE_READY:
                self._failed = f"{part.name} stopped {part.deaths} times while starting; its log says why."
                self.stopping.set()
                return
            while True:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_S)
                if self.stopping.is_set():
                    return
                try:
                    await part.start(self.settings)
                    break
                except OSError as error:  # out of processes or file descriptors
                    log.error("part could not be started", name=part.name, error=str(error))

    async def _stop_all(self) -> None:
        self.stopping.set()
        for restarter in self._restarters:
            restarter.cancel()
        servers = [part for part in self.parts if part.name in {"postgres", "redis"}]
        service = [part for part in self.parts if part not in servers]
        await asyncio.gather(*(part.stop(STOP_WITHIN_S) for part in service))
        for part in reversed(servers):
            await part.stop(STOP_WITHIN_S)


# What Postgres and Redis log about their normal work; shown when debugging.
CHATTER = re.compile(
    r" (LOG|DETAIL|HINT):  |FATAL:  the database system is (starting up|shutting down)"
    r"|# (oO0|Redis version|Configuration loaded|Server initialized|WARNING Memory overcommit)"
    r"|signal-handler|# User requested|# Redis is now ready to exit|worker: Warm shutdown"
)


async def pass_through(name: str, stream: asyncio.StreamReader, settings: Settings) -> None:
    """Relay a child's lines to our standard error: unchanged if they are JSON, else with the part's name."""
    human = log_format(settings) == "human"
    while True:
        try:
            raw = await stream.readline()
        except ValueError:  # a line longer than the limit; the rest follows
            continue
        if not raw:
            return
        line = raw.decode(errors="replace").rstrip()
        if not line or (settings.log_level != "debug" and CHATTER.search(line)):
            continue
        if human:
            line = f"{name:<9}│ {line}"
        elif not line.startswith("{"):
            line = json.dumps({"part": name, "event": line})
        # A full disk under the log loses lines but does not stop the relay.
        with contextlib.suppress(OSError):
            os.write(sys.stderr.fileno(), f"{line}\n".encode())


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Log what is starting and how long it took, for the person waiting."""
    started = time.monotonic()
    log.info(f"starting {what}")
    yield
    log.info(f"started {what}", seconds=round(time.monotonic() - started, 1))


def child_environment(settings: Settings) -> dict[str, str]:
    """The supervisor's settings as variables for its children, which share two heaps between all threads.

    glibc would give each thread its own heap, and memory freed after a large answer is never returned from it.
    """
    values = settings.model_dump(exclude_none=True) | {"log_format": log_format(settings)}
    own = {f"GAPWATCH_{name.upper()}": str(value) for name, value in values.items()}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GAPWATCH_")}
    return {"MALLOC_ARENA_MAX": "2"} | inherited | own


@contextlib.contextmanager
def held_lock(data_dir: Path) -> Iterator[Path]:
    """Lock the data directory for one supervisor. The kernel releases the lock when we die, however we die."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o711 if os.geteuid() == 0 else 0o700)
    path = data_dir / "running.json"
    while True:
        with path.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                running = running_service(data_dir)
                where = f" (process {running['pid']}, {running['url']})" if running else ""
                raise AlreadyRunning(f"Gapwatch is already running on {data_dir}{where}.") from None
            # The previous holder may have removed the file between our open and our lock.
            if not path.exists() or path.stat().st_ino != os.fstat(file.fileno()).st_ino:
                continue
            try:
                yield path
            finally:
                path.unlink(missing_ok=True)
            return


def record(lock: Path, settings: Settings, run_dir: Path) -> None:
    """Tell other commands on this machine (`gapwatch key create` …) where the running service is."""
    lock.chmod(0o600)
    lock.write_text(
        json.dumps(
            {
                "pid": os.getpid(),
                "url": settings.public_url,
                "run_dir": str(run_dir),
                "database_url": settings.database_url,
                "redis_url": settings.redis_url,
            }
        )
    )


def running_service(data_dir: Path) -> dict[str, str] | None:
    """What `record` wrote, if a supervisor holds the lock right now."""
    path = data_dir / "running.json"
    try:
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                content: dict[str, str] = json.loads(file.read() or "{}")
                return content or None
    except (OSError, json.JSONDecodeError):
        pass
    return None


def remove_leftovers(lock: Path) -> None:
    """A supervisor killed with -9 leaves its socket directory; its children die by their death signal."""
    try:
        left = json.loads(lock.read_text() or "{}")
    except json.JSONDecodeError:
        left = {}
    run_dir = Path(left.get("run_dir", ""))
    if run_dir.name.startswith("gapwatch-") and run_dir.is_dir() and not run_dir.is_symlink():
        log.info("cleaning up after a service that was killed")
        shutil.rmtree(run_dir, ignore_errors=True)
    lock.write_text("")


@contextlib.contextmanager
def listening_socket(settings: Settings) -> Iterator[socket.socket]:
    """Bind the socket here and let web inherit it: while web restarts, connections wait instead of failing."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise StartFailed(
            f"Cannot listen on {settings.host} port {settings.port}: {error.strerror or error}. "
            "Choose another with --port or GAPWATCH_PORT."
        ) from error
    with listener:
        yield listener
