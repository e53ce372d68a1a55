"""The `gapwatch` command."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import structlog

from gapwatch import __version__, embedded
from gapwatch.errors import ServiceUnavailable
from gapwatch.logs import configure_logs
from gapwatch.notation import count
from gapwatch.settings import Settings, SettingsError, read_settings, unknown_variables

if TYPE_CHECKING:
    from gapwatch.store.core.database import Database

log = structlog.get_logger()


class SpokenError(click.ClickException):
    """Shown as one sentence, without "Error:" and usage."""

    def show(self, file: Any = None) -> None:
        click.echo(self.message, err=True, file=file)


def settings_from(**overrides: Any) -> Settings:
    try:
        settings = read_settings(**overrides)
    except SettingsError as error:
        raise SpokenError(str(error)) from None
    configure_logs(settings)
    for warning in unknown_variables(os.environ):
        log.warning(warning)
    return settings


def serving_options(command: Any) -> Any:
    for option in (
        click.option("--data-dir", type=click.Path(path_type=Path), help="Where embedded data lives."),
        click.option("--port", type=int, help="Port to listen on; 0 takes a free one."),
        click.option("--host", help="Address to listen on."),
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Gapwatch: what a robot policy loses from simulation to reality, why, and who must know."""


@main.command()
@serving_options
def serve(host: str | None, port: int | None, data_dir: Path | None) -> None:
    """Run the whole service on this machine: web, worker, beat, and Postgres and Redis unless a URL is set."""
    _supervise(settings_from(host=host, port=port, data_dir=data_dir), _say_ready)


@main.command()
@serving_options
def demo(host: str | None, port: int | None, data_dir: Path | None) -> None:
    """Serve, with the demo fleet in the project `demo` and a sign-in for it."""
    from gapwatch.demo import allow_local_pager, load_demo

    _supervise(allow_local_pager(settings_from(host=host, port=port, data_dir=data_dir)), load_demo)


def _supervise(settings: Settings, when_ready: Any) -> None:
    from gapwatch.supervisor import AlreadyRunning, StartFailed, Supervisor

    async def run() -> None:
        await Supervisor(settings).run(when_ready)

    try:
        asyncio.run(run())
    except (AlreadyRunning, StartFailed, embedded.EmbeddedError) as error:
        raise SpokenError(str(error)) from None
    log.info("stopped")


def _say_ready(settings: Settings) -> None:
    from gapwatch.accounts import setup_link
    from gapwatch.store.core.database import Database

    click.echo(f"\n  Gapwatch is ready: {settings.public_url}\n")
    assert settings.database_url is not None  # noqa: S101 - the supervisor set it
    database = Database(settings.database_url)
    try:
        link = setup_link(database, settings)
    except ServiceUnavailable:
        # Web prints it too; an unavailable database must not stop the service.
        link = None
    database.close()
    if link is not None:
        click.echo(f"  Nobody can sign in yet. Make the first admin, within a day, at\n  {link}\n")


@main.command()
@click.option("--fd", type=int, hidden=True, help="Listen on an inherited socket.")
@click.option("--port", type=int)
@click.option("--host")
def web(host: str | None, port: int | None, fd: int | None) -> None:
    """Run only the web part."""
    from gapwatch.web import run_web

    with _spoken_wrong_secret():
        run_web(_with_urls(settings_from(host=host, port=port)), fd)


@main.command()
def worker() -> None:
    """Run only a worker."""
    from gapwatch.worker import run_worker

    with _spoken_wrong_secret():
        run_worker(_with_urls(settings_from()))


@main.command()
def beat() -> None:
    """Run the scheduler that makes workers look for due work."""
    from gapwatch.worker import run_beat

    run_beat(_with_urls(settings_from()))


@contextmanager
def _spoken_wrong_secret() -> Iterator[None]:
    from gapwatch.server_secret import WrongSecret

    try:
        yield
    except WrongSecret as error:
        raise SpokenError(str(error)) from None


def _with_urls(settings: Settings) -> Settings:
    for name in ("database_url", "redis_url"):
        if getattr(settings, name) is None:
            raise SpokenError(f"GAPWATCH_{name.upper()} is not set. `gapwatch serve` brings its own.")
    return settings


@contextmanager
def database_of(settings: Settings) -> Iterator[Any]:
    """The database a command works on: the configured one, the running service's, or the embedded one alone."""
    from gapwatch.store.core.database import Database
    from gapwatch.store.core.migrate import migrate as run_migrations
    from gapwatch.supervisor import AlreadyRunning, held_lock, running_service

    running = running_service(settings.data_dir)
    url = settings.database_url or (running or {}).get("database_url")
    if url is not None:
        database = Database(url)
        try:
            yield database
        finally:
            database.close()
        return
    try:
        with held_lock(settings.data_dir):
            run_dir = embedded.make_run_dir(embedded.running_as(settings.data_dir))
            try:
                with embedded.running(embedded.prepare_postgres(settings.data_dir, run_dir)) as server:
                    database = Database(server.url)
                    run_migrations(database)
                    yield database
                    database.close()
            finally:
                run_dir.rmdir()
    except AlreadyRunning as error:
        raise SpokenError(f"{error} Try again in a moment.") from None


@main.command()
@click.option("--data-dir", type=click.Path(path_type=Path))
@click.argument("revision", default="head")
def migrate(data_dir: Path | None, revision: str) -> None:
    """Bring the database to the schema of this release."""
    from gapwatch.store.core.migrate import migrate as run_migrations

    with database_of(settings_from(data_dir=data_dir)) as database:
        run_migrations(database, revision)
    log.info("database migrated", revision=revision)


@main.group()
def key() -> None:
    """API keys."""


@key.command("create")
@click.option("--project", required=True)
@click.option("--scope", type=click.Choice(["ingest", "read", "admin"]), required=True)
@click.option("--name", default="command line", show_default=True)
@click.option("--expires-days", type=click.IntRange(1, 3650))
@click.option("--network", "networks", multiple=True, help="Only from this address or network; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--data-dir", type=click.Path(path_type=Path))
def key_create(
    project: str,
    scope: str,
    name: str,
    expires_days: int | None,
    networks: tuple[str, ...],
    as_json: bool,
    data_dir: Path | None,
) -> None:
    """Create an API key and print it once. A new project is created too."""
    from gapwatch.access.keys import read_networks
    from gapwatch.accounts import make_key
    from gapwatch.server_secret import check_secret

    try:
        allowed = read_networks(networks)
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="--network") from None

    settings = settings_from(data_dir=data_dir)
    expires_at = datetime.now(UTC) + timedelta(days=expires_days) if expires_days else None
    with database_of(settings) as database, _spoken_wrong_secret():
        # A key made with another secret would never work.
        check_secret(database, settings)
        secret = make_key(
            database,
            settings.server_secret(),
            project=project,
            scope=scope,
            name=name,
            expires_at=expires_at,
            networks=allowed,
        )
    if as_json:
        expires = expires_at.isoformat() if expires_at else None
        print(json.dumps({"key": secret, "project": project, "scope": scope, "expires_at": expires}))
    else:
        print(secret)


@main.group("secret")
def server_secret() -> None:
    """The server's own secret, GAPWATCH_SECRET_KEY."""


@server_secret.command("replace")
@click.option(
    "--before",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A file with the secret before: channels then keep their own secrets.",
)
@click.option("--data-dir", type=click.Path(path_type=Path))
def secret_replace(before: Path | None, data_dir: Path | None) -> None:
    """Make the secret of this shell or data directory the one of the database, while no service runs on it."""
    from gapwatch.server_secret import replace_secret
    from gapwatch.supervisor import running_service

    settings = settings_from(data_dir=data_dir)
    if running_service(settings.data_dir) is not None:
        raise SpokenError("Stop the service first: its parts would keep the secret before.")
    old = None if before is None else before.read_bytes().strip()
    with database_of(settings) as database:
        try:
            done = replace_secret(database, settings.server_secret(), old)
        except ValueError as error:
            raise SpokenError(f"Nothing was replaced: {error}.") from None
    print(
        f"The secret is replaced. Channels that keep their secrets: {done.channels_kept}; to be set again: "
        f"{done.channels_to_set_again}. API keys that no longer work: {done.keys_to_replace}."
    )


@main.group()
def user() -> None:
    """People who sign in."""


@user.command("create")
@click.option("--email", required=True)
@click.option("--password-stdin", is_flag=True, required=True, help="Read the password from standard input.")
@click.option("--project", required=True)
@click.option("--role", type=click.Choice(["viewer", "engineer", "admin"]), required=True)
@click.option("--data-dir", type=click.Path(path_type=Path))
def user_create(email: str, password_stdin: bool, project: str, role: str, data_dir: Path | None) -> None:
    """Create a user, or give an existing one a new password, and a role in a project."""
    from gapwatch.accounts import put_person

    settings = settings_from(data_dir=data_dir)
    password = sys.stdin.readline().rstrip("\r\n")
    with database_of(settings) as database:
        try:
            put_person(database, email, password, project, role)
        except ValueError as error:
            raise SpokenError(str(error)) from None
    print(f"{email} can sign in to project {project} as {role}.")


@main.command()
@click.option("--project", help="Only this project.")
@click.option("--packets", is_flag=True, help="Evidence packets of decisions: hashes, chain, and every figure.")
@click.option("--data-dir", type=click.Path(path_type=Path))
def verify(project: str | None, packets: bool, data_dir: Path | None) -> None:
    """Recompute every number from the stored episodes and compare. May run beside a live service."""
    from gapwatch.store.people.access import projects

    with database_of(settings_from(data_dir=data_dir)) as database:
        with database.transaction() as connection:
            chosen = [(id_, slug) for id_, slug in projects(connection) if project in (None, slug)]
        if project is not None and not chosen:
            raise SpokenError(f"There is no project {project}.")
        check = _check_packets if packets else _check_rollups
        wrong = sum(check(database, project_id, slug) for project_id, slug in chosen)
    if wrong:
        sys.exit(1)


def _check_rollups(database: Database, project_id: int, slug: str) -> int:
    from gapwatch.rollup.verify import verify_project

    done = verify_project(database, project_id, slug)
    word = "equal" if not done.differences else f"{done.differences} DIFFERENT"
    print(f"{slug}: {done.rows} stored rows against {done.episodes} episodes: {word}")
    for table, key, stored, computed in done.examples:
        print(f"  {table} {key}: stored {stored}, computed {computed}")
    return done.differences


def _check_packets(database: Database, project_id: int, slug: str) -> int:
    from gapwatch.rollouts.verify_packets import verify_packets

    done = verify_packets(database, project_id, slug)
    words = f"{done.reproduced} of {done.packets} packets reproduced to the last figure"
    print(
        f"{slug}: {words}, {len(done.aged)} aged out, {len(done.faults)} WRONG"
        if done.packets
        else f"{slug}: no packets"
    )
    for sentence in (*done.faults, *done.aged):
        print(f"  {sentence}")
    return len(done.faults)


@main.command("import", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.option("--project", default="main")
@click.option("--data-dir", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def import_files(project: str, data_dir: Path | None, arguments: tuple[str, ...]) -> None:
    """Send the episodes of existing files: CSV, NDJSON, Parquet, LeRobot, MCAP, MLflow."""
    from gapwatch_client.import_command import Target
    from gapwatch_client.import_command import main as run_import

    from gapwatch.accounts import make_key
    from gapwatch.server_secret import check_secret
    from gapwatch.supervisor import running_service

    def beside() -> Target:
        settings = settings_from(data_dir=data_dir)
        running = running_service(settings.data_dir)
        if running is None or "url" not in running:
            raise SpokenError(f"No service runs on {settings.data_dir}; say --data-dir, or --url and --key.")
        with database_of(settings) as database, _spoken_wrong_secret():
            check_secret(database, settings)
            key = make_key(
                database,
                settings.server_secret(),
                project=project,
                scope="ingest",
                name="import",
                expires_at=datetime.now(UTC) + timedelta(days=1),
            )
        return Target(running["url"], key, f"{settings.data_dir} {project}", settings.data_dir)

    more_help = "Without --url and --key: into --project (main) of the service that runs on --data-dir."
    sys.exit(run_import(list(arguments), "gapwatch import", beside, more_help))


@main.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--data-dir", type=click.Path(path_type=Path))
def backup(file: Path, data_dir: Path | None) -> None:
    """Write everything to FILE. May run beside a live service. Back up the server secret separately."""
    from gapwatch.backups import BackupError, back_up

    with database_of(settings_from(data_dir=data_dir)) as database:
        try:
            size = back_up(database, file)
        except (BackupError, OSError) as error:
            raise SpokenError(str(error)) from None
    print(f"{file}: {count(size)} bytes.")


@main.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--data-dir", type=click.Path(path_type=Path))
def restore(file: Path, data_dir: Path | None) -> None:
    """Restore FILE into an empty database, while no service runs on it."""
    from gapwatch.backups import BackupError
    from gapwatch.backups import restore as restore_from

    settings = settings_from(data_dir=data_dir)
    if settings.database_url is None:
        from gapwatch.supervisor import running_service

        if running_service(settings.data_dir) is not None:
            raise SpokenError("Stop the service first: a restore needs the database for itself.")
    with database_of(settings) as database:
        try:
            episodes = restore_from(database, file)
        except BackupError as error:
            raise SpokenError(str(error)) from None
    print(f"{count(episodes)} episodes restored.")
