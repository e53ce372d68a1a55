"""A disk without room: the loop goes on, nothing that fits in memory is lost, and it heals by itself."""

import contextlib
import resource
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from gapwatch_client import Gapwatch
from gapwatch_client.spool_segments import list_segments

REAL = {"task": "reach", "policy": "bin-pick@1.4.0", "deployment": "line-3", "domain": "real"}
SIZE = 256 * 1024


@dataclass
class SmallDisk:
    """A disk that can be filled: by a file that takes what is left, or by a limit on the size of all files."""

    path: Path
    is_mounted: bool

    @contextlib.contextmanager
    def filled(self):
        if self.is_mounted:
            ballast = self.path / "ballast"
            with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while file.write(bytes(4096)):
                    pass
            try:
                yield
            finally:
                ballast.unlink()
        else:
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(params=["mounted", "limited"])
def small_disk(request, tmp_path):
    """A file system of a quarter of a megabyte; who may not mount one gets the limit twice."""
    disk = tmp_path / "disk"
    disk.mkdir()
    is_mounted = request.param == "mounted" and mount(disk)
    try:
        yield SmallDisk(disk, is_mounted)
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", disk], check=True)


def mount(directory: Path) -> bool:
    try:
        argv = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", directory]
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def end_episodes(gw: Gapwatch, count: int) -> list[str]:
    ids = []
    for _ in range(count):
        with gw.episode(**REAL, provenance={"note": "x" * 100}) as ep:
            ids.append(ep.id)
    return ids


def stored_ids(project) -> list[str]:
    return sorted(row[0] for row in project.rows("SELECT id FROM episodes WHERE project_id = :p"))


def test_a_disk_that_fills_while_the_server_is_away_costs_nothing(project, small_disk):
    with Gapwatch("http://127.0.0.1:9", project.keys["ingest"], small_disk.path / "spool") as gw:
        ids = end_episodes(gw, 100)
        with small_disk.filled():
            ids += end_episodes(gw, 300)
            assert gw.status()["pending"]["in_memory"] > 0
            assert gw.status()["complaints"]["spool"] > 0
        gw._keeper.run_once()
        assert gw.status()["pending"]["in_memory"] == 0, "what waited in memory is on disk again"
    # Every line of the spool is whole, although writes ended in the middle of one.
    with Gapwatch(project.url, project.keys["ingest"], small_disk.path / "spool") as later:
        assert later.flush()
        assert later.status()["damaged"] == 0
    assert stored_ids(project) == sorted(ids)
    assert not list_segments(small_disk.path / "spool")


def test_a_disk_that_is_full_from_the_start_is_no_reason_not_to_send(project, small_disk):
    with (
        small_disk.filled(),
        Gapwatch(project.url, project.keys["ingest"], small_disk.path / "spool", linger_s=0) as gw,
    ):
        ids = end_episodes(gw, 200)
        assert gw.flush()
        assert stored_ids(project) == sorted(ids)


def test_a_directory_that_cannot_be_made_is_no_reason_either(project, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with Gapwatch(project.url, project.keys["ingest"], tmp_path / "file" / "spool", linger_s=0) as gw:
        ids = end_episodes(gw, 5)
        assert gw.flush()
    assert stored_ids(project) == sorted(ids)


def test_memory_is_bounded_and_sim_goes_first(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    with Gapwatch("http://127.0.0.1:9", "gw_test", tmp_path / "file" / "spool") as gw:
        monkeypatch.setattr(gw._overflow, "_most", 50)
        for number in range(100):
            gw.episode(
                task="t", policy="p@1", **({"simulator": "m@1"} if number < 40 else {"deployment": "d"})
            ).end()
        status = gw.status()
    assert (status["dropped_sim"], status["dropped_real"]) == (40, 10)
    assert status["pending"]["in_memory"] == 50
