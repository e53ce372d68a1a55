"""`gapwatch import`, the same importers as a command of the service."""

import json
import subprocess
import sys

from sqlalchemy import text

from parts import clean_environment, episode


def gapwatch(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "gapwatch", *map(str, arguments)],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def stored_in(database, slug):
    with database.transaction() as connection:
        query = "SELECT count(*) FROM episodes JOIN projects ON projects.id = project_id WHERE slug = :slug"
        return connection.execute(text(query), {"slug": slug}).scalar_one()


def test_beside_a_service_it_needs_neither_address_nor_key(service, service_database, tmp_path):
    path = tmp_path / "some.ndjson"
    path.write_text("".join(json.dumps(episode(id=None)) + "\n" for _ in range(30)))
    project = f"imported-{tmp_path.name[-12:]}".replace("_", "-")
    for told in ("30 new, 0 already there", "0 new, 30 already there"):
        done = gapwatch("import", path, "--project", project, "--data-dir", service.data_dir)
        assert done.returncode == 0, done.stderr
        assert told in done.stdout
    assert stored_in(service_database, project) == 30


def test_elsewhere_it_takes_both(project, tmp_path):
    path = tmp_path / "some.ndjson"
    path.write_text(json.dumps(episode()))
    done = gapwatch("import", "--url", project.url, "--key", project.keys["ingest"], "--spool", tmp_path, path)
    assert done.returncode == 0, done.stderr
    assert project.stored() == 1


def test_without_a_service_it_says_what_to_do(tmp_path):
    (tmp_path / "some.ndjson").write_text(json.dumps(episode()))
    done = gapwatch("import", tmp_path / "some.ndjson", "--data-dir", tmp_path)
    assert done.returncode == 1
    assert f"No service runs on {tmp_path}; say --data-dir, or --url and --key." in done.stderr


def test_its_help_tells_of_both():
    done = gapwatch("import", "--help")
    assert done.returncode == 0
    assert "--map FILE" in done.stdout
    assert "--data-dir" in done.stdout
