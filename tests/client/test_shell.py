"""`gapwatch-client push|status|retry`, as a shell or a program in another language calls it."""

import json
import subprocess
import sys

import pytest
from gapwatch_client.spool_segments import list_segments

from parts import clean_environment, episode


@pytest.fixture
def shell(project, tmp_path):
    """Calls the command with the service's address, a key and a spool of the test's own."""

    def call(*arguments, stdin="", url=project.url, **environment):
        argv = [sys.executable, "-c", "import sys; from gapwatch_client.shell import main; sys.exit(main())"]
        settings = {"GAPWATCH_KEY": project.keys["ingest"], "GAPWATCH_SPOOL": str(tmp_path / "spool")}
        settings |= {"GAPWATCH_URL": url} | environment
        return subprocess.run(
            [*argv, *map(str, arguments)],
            input=stdin,
            env=clean_environment(**settings),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    return call


def test_lines_of_standard_input_are_sent(shell, project):
    done = shell("push", stdin="".join(json.dumps(episode()) + "\n" for _ in range(20)))
    assert (done.returncode, done.stdout) == (0, "20 episodes spooled, everything sent\n"), done.stderr
    assert project.stored() == 20


def test_files_may_be_lines_an_array_or_one_object_and_ids_are_made_where_there_are_none(shell, project, tmp_path):
    (tmp_path / "lines.ndjson").write_text("\n" + json.dumps(episode()) + "\n\n" + json.dumps(episode(id=None)))
    (tmp_path / "array.json").write_text(json.dumps([episode(), episode()], indent=1))
    (tmp_path / "one.json").write_text(json.dumps(episode(), indent=1))
    done = shell("push", *(tmp_path / name for name in ("lines.ndjson", "array.json", "one.json")))
    assert done.returncode == 0, done.stderr
    assert project.stored() == 5


def test_the_same_file_twice_is_stored_once(shell, project, tmp_path):
    (tmp_path / "lines.ndjson").write_text(json.dumps(episode()))
    for _ in range(2):
        assert shell("push", tmp_path / "lines.ndjson").returncode == 0
    assert project.stored() == 1


def test_what_is_refused_is_told_mended_and_retried(shell, project, tmp_path):
    good, bad = episode(), episode(deployment=None)
    done = shell("push", stdin=json.dumps(good) + "\n" + json.dumps(bad) + "\n[1]\nnot json\n")
    assert done.returncode == 65
    assert "2 lines are not JSON objects" in done.stdout
    status = shell("status")
    assert "A real episode names its deployment" in status.stdout
    assert json.loads(shell("status", "--json").stdout)["in_dead_letters"] == 1
    assert shell("retry").returncode == 65, "nothing was mended"
    dead = tmp_path / "spool" / "refused.ndjson"
    dead.write_text(dead.read_text().replace('"domain":"real"', '"domain":"real","deployment":"line-3"'))
    done = shell("retry")
    assert done.returncode == 0, done.stdout
    assert project.stored() == 2
    assert json.loads(shell("status", "--json").stdout)["in_dead_letters"] == 0


def test_without_a_server_it_is_kept_and_goes_with_the_next_push(shell, project, tmp_path):
    done = shell("push", "--timeout", "1", stdin=json.dumps(episode()), url="http://127.0.0.1:9")
    assert done.returncode == 75
    assert "not all are sent yet: no answer" in done.stdout
    status = json.loads(shell("status", "--json").stdout)
    assert status["pending"] == {"real": 1, "sim": 0}
    assert "Connection refused" in status["last_error"]
    assert shell("push", stdin=json.dumps(episode())).returncode == 0
    assert project.stored() == 2
    assert not list_segments(tmp_path / "spool")


def test_spooling_alone_needs_no_server(shell, tmp_path):
    done = shell("push", "--no-wait", stdin=json.dumps(episode()), url="http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (0, "1 episodes spooled\n")
    assert len(list_segments(tmp_path / "spool")) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["push", "missing.ndjson"], "missing.ndjson"),
        (["push", "--url", "nonsense"], "no address of a Gapwatch service"),
        (["status", "--spool", "", "--key", ""], "say which spool"),
    ],
)
def test_mistakes_are_told_in_a_sentence(shell, arguments, said):
    done = shell(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
