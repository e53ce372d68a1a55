import socket
import subprocess
import sys

import httpx
import pytest
from sqlalchemy import text

from gapwatch.access.sealing import Sealer
from gapwatch.server_secret import WrongSecret, check_secret, is_right, replace_secret, unreadable
from gapwatch.settings import Settings
from parts import clean_environment, reachable, start_service, wait_until

RIGHT, WRONG = "the secret of this database, 32+ letters", "the secret of some other database, 32+"
# Never reached: who has the wrong secret stops before.
NO_REDIS = "redis://127.0.0.1:1/0"


def settings(secret, **more):
    return Settings(secret_key=secret, **more)


def add_channel(database, secret, name="hook"):
    with database.transaction() as connection:
        connection.execute(
            text("INSERT INTO projects (slug, name) VALUES ('fleet', 'fleet') ON CONFLICT DO NOTHING")
        )
        connection.execute(
            text("INSERT INTO channels (project_id, name, kind, secret) VALUES (1, :name, 'webhook', :sealed)"),
            {"name": name, "sealed": Sealer(secret.encode()).seal({"secret": "s"})},
        )


def gapwatch(*arguments, database, **variables):
    environment = clean_environment(
        GAPWATCH_DATABASE_URL=database.url, GAPWATCH_REDIS_URL=NO_REDIS, GAPWATCH_LOG_FORMAT="json", **variables
    )
    command = [sys.executable, "-m", "gapwatch", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_the_first_secret_is_remembered_and_another_is_refused(database):
    check_secret(database, settings(RIGHT))
    check_secret(database, settings(RIGHT))
    with pytest.raises(WrongSecret, match="GAPWATCH_SECRET_KEY here is not it"):
        check_secret(database, settings(WRONG))
    with database.transaction() as connection:
        assert is_right(connection, RIGHT.encode())
        assert not is_right(connection, WRONG.encode())
        [(salt, fingerprint)] = connection.execute(text("SELECT salt, fingerprint FROM server_secret"))
    assert RIGHT.encode() not in bytes(salt) + bytes(fingerprint)


def test_a_secret_that_was_made_because_none_was_set_is_named_by_its_file(database, tmp_path):
    check_secret(database, settings(RIGHT))
    with pytest.raises(WrongSecret, match=f"the one in {tmp_path}/secret-key, used because"):
        check_secret(database, Settings(data_dir=tmp_path))


def test_a_database_of_an_earlier_release_is_asked_by_its_channels(database):
    add_channel(database, RIGHT)
    with pytest.raises(WrongSecret):
        check_secret(database, settings(WRONG))
    check_secret(database, settings(RIGHT))


@pytest.mark.parametrize(
    "command", [("worker",), ("web", "--port", "0"), ("key", "create", "--project", "p", "--scope", "read")]
)
def test_a_process_with_another_secret_ends_with_a_sentence(database, command, tmp_path):
    check_secret(database, settings(RIGHT))
    for variables in ({"GAPWATCH_SECRET_KEY": WRONG}, {"GAPWATCH_DATA_DIR": str(tmp_path)}):
        done = gapwatch(*command, database=database, **variables)
        assert done.returncode == 1
        assert "set up with another server secret" in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
    with database.transaction() as connection:
        assert connection.execute(text("SELECT count(*) FROM api_keys")).scalar_one() == 0


def test_the_service_does_not_start_on_a_data_directory_whose_secret_was_swapped(tmp_path):
    data_dir = reachable(tmp_path) / "data"
    assert start_service(data_dir, ready_within_s=90).stop() == 0
    (data_dir / "secret-key").write_text("x" * 64)
    with pytest.raises(AssertionError, match="set up with another server secret"):
        start_service(data_dir, ready_within_s=90)


def test_readiness_knows_a_secret_that_is_not_the_databases_and_channels_that_cannot_be_read(database):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    environment = clean_environment(
        GAPWATCH_DATABASE_URL=database.url, GAPWATCH_REDIS_URL=NO_REDIS, GAPWATCH_SECRET_KEY=RIGHT
    )
    command = [sys.executable, "-m", "gapwatch", "web", "--port", str(port)]
    web = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def check(name="secret"):
        return httpx.get(f"http://127.0.0.1:{port}/readyz").json()["checks"][name]

    try:
        assert wait_until(check, 60)["ok"]
        assert check("deliveries") == {"ok": True, "undelivered": 0}
        add_channel(database, WRONG)
        assert check()["unreadable_channels"] == 1
        assert not check()["ok"]
        with database.transaction() as connection:
            connection.execute(text("UPDATE channels SET secret = NULL"))
            connection.execute(
                text("""
                INSERT INTO policies (project_id, name, version) VALUES (1, 'p', '1');
                INSERT INTO tasks (project_id, name) VALUES (1, 't');
                INSERT INTO deployments (project_id, slug, policy_id, task_id, described_at)
                VALUES (1, 'd', 1, 1, now());
                INSERT INTO incidents (project_id, deployment_id, state, severity) VALUES (1, 1, 'firing', 'warning');
                INSERT INTO deliveries (project_id, channel_id, incident_id, action, dedup_key, content, state)
                VALUES (1, 1, 1, 'trigger', 'k', '{}', 'dead')
                """)
            )
        assert check()["ok"]
        assert (check("deliveries")["ok"], check("deliveries")["undelivered"]) == (False, 1)
        # As when a secret is replaced under a process that runs.
        replace_secret(database, WRONG.encode(), None)
        assert "another server secret" in check()["why"]
        assert httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 503
    finally:
        web.terminate()
        web.wait(40)


def test_replacing_the_secret_keeps_what_the_one_before_can_read(database, tmp_path):
    check_secret(database, settings(RIGHT))
    add_channel(database, RIGHT)
    add_channel(database, "a third secret, long lost, of 32 letters", name="lost")
    (tmp_path / "before").write_text(RIGHT)
    done = gapwatch(
        *("secret", "replace", "--before", tmp_path / "before", "--data-dir", tmp_path),
        database=database,
        GAPWATCH_SECRET_KEY=WRONG,
    )
    assert done.returncode == 0, done.stderr
    assert "Channels that keep their secrets: 1; to be set again: 1." in done.stdout
    check_secret(database, settings(WRONG))
    with pytest.raises(WrongSecret):
        check_secret(database, settings(RIGHT))
    with database.transaction() as connection:
        assert unreadable(connection, WRONG.encode()) == 1


def test_replacing_a_secret_by_itself_is_refused(database):
    with pytest.raises(ValueError, match="the same"):
        replace_secret(database, RIGHT.encode(), RIGHT.encode())
