"""The disk of the database is full: writes are refused, reads go on, nothing acknowledged is lost, and it heals."""

import contextlib
import subprocess
import time
from pathlib import Path

import httpx
import psycopg
import pytest
from faults.harness import compare, internal_errors, sending, settle, stop

from gapwatch.store.core.database import Database
from parts import make_project, reachable, start_service, wait_until

# Enough for the cluster and for what `/readyz` wants to see free.
SIZE = "450m"
REFUSED = frozenset({429, 503, 507})


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory):
    mount_point = reachable(tmp_path_factory.mktemp("disk")) / "small disk"
    mount_point.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0711", "tmpfs", mount_point]
    try:
        subprocess.run(argv, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a tmpfs cannot be mounted here: {getattr(error, 'stderr', error)}")
    try:
        yield mount_point
    finally:
        subprocess.run(["umount", "--lazy", mount_point], check=True)


@pytest.fixture(scope="module")
def own(small_disk):
    service = start_service(small_disk / "data")
    try:
        yield service
        assert internal_errors(service.log) == []
    finally:
        stop(service)


@pytest.fixture
def project(own):
    wait_until(lambda: readiness(own).status_code == 200, 30, what="readiness")
    database = Database(own.database_url)
    yield make_project(own, database)
    database.close()


@contextlib.contextmanager
def filled(disk: Path):
    """A file that takes all the space there is, down to the last page."""
    ballast = disk / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(1 << 20)):
                pass
        yield
    finally:
        ballast.unlink()


def readiness(service) -> httpx.Response:
    return httpx.get(f"{service.url}/readyz", timeout=10)


def assert_reads_go_on(service) -> None:
    assert httpx.get(f"{service.url}/healthz").status_code == 200
    page = httpx.get(f"{service.url}/sign-in")
    assert page.status_code == 200
    assert "Sign in" in page.text


def wait_for_refusals(tally) -> None:
    def refused() -> int:
        return sum(tally.statuses[status] for status in REFUSED)

    before = refused()
    wait_until(lambda: refused() >= before + 5, 20, what="refused writes")


def wait_for_acknowledgement(tally, within_s: float) -> float:
    """Seconds until the next one."""
    since = time.monotonic()
    wait_until(lambda: tally.acknowledged_at and max(tally.acknowledged_at) > since, within_s, what="writes again")
    return min(at for at in tally.acknowledged_at if at > since) - since


def assert_nothing_was_lost(service, project, ledger, tally) -> None:
    settle(service, project)
    found = compare(project, ledger.read(), tally.sent)
    assert found.is_clean, found
    assert tally.surprises == []
    assert set(tally.statuses) <= {200, 201, 204, 404} | REFUSED


def test_a_log_on_the_full_disk_goes_on_when_there_is_space_again(small_disk, own):
    # Enough lines that a relay which stops at the first it cannot write is found out.
    with filled(small_disk):
        for _ in range(20):
            httpx.get(f"{own.url}/nothing")
    httpx.get(f"{own.url}/nothing", headers={"X-Request-Id": "after-the-full-disk"})
    wait_until(lambda: "after-the-full-disk" in own.log, 5, what="the line of a request after the full disk")


def test_a_full_disk_refuses_writes_and_heals_without_a_restart(small_disk, own, project, tmp_path, capsys):
    with sending(project, tmp_path / "ledger", senders=3, seed=1, retried_statuses=REFUSED) as (ledger, tally):
        wait_for_acknowledgement(tally, 5)
        with filled(small_disk):
            wait_for_refusals(tally)
            assert readiness(own).status_code == 503
            assert readiness(own).json()["checks"]["disk"]["ok"] is False
            time.sleep(2)
            assert_reads_go_on(own)
        seconds = wait_for_acknowledgement(tally, 15)
    assert_nothing_was_lost(own, project, ledger, tally)
    with capsys.disabled():
        print(f"\nfull disk: statuses {dict(tally.statuses)}; writes again after {seconds:.1f} s")


def test_a_postgres_that_stopped_for_want_of_space_comes_back_by_itself(
    small_disk, own, project, tmp_path, capsys
):
    with sending(project, tmp_path / "ledger", senders=3, seed=2, retried_statuses=REFUSED) as (ledger, tally):
        wait_for_acknowledgement(tally, 5)
        with filled(small_disk):
            exhaust_log(own)
            wait_for_refusals(tally)
            assert_reads_go_on(own)
        seconds = wait_for_acknowledgement(tally, 30)
    assert_nothing_was_lost(own, project, ledger, tally)
    with capsys.disabled():
        print(f"\nfull log: statuses {dict(tally.statuses)}; writes again after {seconds:.1f} s")


def exhaust_log(service) -> None:
    """Fill one segment of Postgres' log after another until there is no space for the next: then it stops."""
    with (
        pytest.raises(psycopg.OperationalError),
        psycopg.connect(service.database_url, autocommit=True) as connection,
    ):
        for _ in range(1000):
            connection.execute("SELECT pg_logical_emit_message(false, 'test', repeat('x', 16 * 1024 * 1024))")
