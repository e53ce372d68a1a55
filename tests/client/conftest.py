"""What the tests of importers share: the command, called in this process against the running service."""

import pytest
from gapwatch_client import import_command


@pytest.fixture
def bring(project, tmp_path, capsys):
    """Runs the import command; gives its exit status and what it printed."""

    def run(*arguments, **options):
        where = ["--url", options.get("url", project.url), "--key", project.keys["ingest"]]
        status = import_command.main([*map(str, arguments), *where, "--spool", str(tmp_path / "progress")])
        return status, capsys.readouterr().out

    return run


@pytest.fixture
def stored(project):
    """Every stored episode as the API gives it, in the order in which they started."""

    def read():
        with project.client("read") as reader:
            answer = reader.get("/episodes", params={"limit": 200}).json()
        return sorted(answer["episodes"], key=lambda episode: (episode["started_at"], episode["id"]))

    return read
