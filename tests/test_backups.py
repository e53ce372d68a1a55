import subprocess
import sys

import pytest

from gapwatch.rollup.verify import verify_project
from gapwatch.store.core.database import Database
from parts import clean_environment, episode, make_project, reachable, start_service, wait_until


def gapwatch(*arguments, data_dir) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gapwatch", *map(str, arguments), "--data-dir", data_dir],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def directory(tmp_path):
    return reachable(tmp_path)


def test_a_restored_backup_holds_the_same_episodes_and_numbers(directory):
    service = start_service(directory / "old")
    database = Database(service.database_url)
    project = make_project(service, database)
    with project.client() as client:
        client.post("/episodes/batch", json=[episode(signals={"peak_force_n": n / 7}) for n in range(50)])
    wait_until(lambda: not project.value("SELECT count(*) FROM work"), 15)
    before = project.rows("SELECT * FROM rollup_values ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9")
    done = gapwatch("backup", directory / "all.dump", data_dir=directory / "old")
    assert done.returncode == 0, done.stderr
    refused = gapwatch("restore", directory / "all.dump", data_dir=directory / "old")
    assert refused.returncode == 1
    assert "Stop the service first" in refused.stderr
    database.close()
    service.stop()

    restored = gapwatch("restore", directory / "all.dump", data_dir=directory / "new")
    assert restored.returncode == 0, restored.stderr
    assert "50 episodes" in restored.stdout
    again = gapwatch("restore", directory / "all.dump", data_dir=directory / "new")
    assert again.returncode == 1
    assert "already holds projects" in again.stderr
    (directory / "new" / "secret-key").unlink(missing_ok=True)
    service = start_service(directory / "new")
    database = Database(service.database_url)
    with database.transaction() as connection:
        after = connection.exec_driver_sql(
            "SELECT * FROM rollup_values ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9"
        ).fetchall()
    assert [tuple(row) for row in after] == before
    assert verify_project(database, project.id, project.slug).differences == 0
    database.close()
    service.stop()


def test_a_file_that_is_no_backup_is_refused_with_a_sentence(directory):
    (directory / "wrong").write_text("not a dump")
    done = gapwatch("restore", directory / "wrong", data_dir=directory / "data")
    assert done.returncode == 1
    assert "pg_restore failed" in done.stderr
    assert "Traceback" not in done.stderr


def test_verify_says_that_everything_is_equal(directory):
    done = gapwatch("verify", data_dir=directory / "data")
    assert done.returncode == 0, done.stderr
    done = gapwatch("verify", "--project", "nobody", data_dir=directory / "data")
    assert done.returncode == 1
    assert "There is no project nobody" in done.stderr
