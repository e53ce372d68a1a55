"""Attacks on names, words and traces: host and origin, CSV, mail headers, passwords, audit, keys, backup, quarantine."""

import csv
import gzip
import io
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import httpx
import psutil
import pytest
from channels.messages import message
from people import PASSWORD, Browser, somebody

from gapwatch.access.common_passwords import is_common
from gapwatch.access.passwords import WeakPassword, hash_password
from gapwatch.channels.kinds import email
from gapwatch.csv_cells import safe_cell
from gapwatch.hosts import KnownHosts
from gapwatch.settings import ROOT, Settings
from gapwatch.store.core.database import split_password
from gapwatch.store.write.quarantine import MOST_BYTES_A_MINUTE
from parts import clean_environment, episode

# --- host and origin


@pytest.mark.parametrize(
    "host", ["attacker.example", "127.0.0.1.attacker.example", "localhost@attacker.example", "a b", ""]
)
@pytest.mark.parametrize("path", ["/sign-in", "/api/v1/keys", "/api/v1/episodes/batch"])
def test_a_name_that_is_not_ours_gets_nothing(service, host, path):
    answer = httpx.request("GET" if "batch" not in path else "POST", service.url + path, headers={"Host": host})
    assert answer.status_code == 400, answer.text
    assert "Set-Cookie" not in answer.headers


def test_health_is_answered_by_any_name_and_this_machine_by_its_own(service):
    for path in ("/healthz", "/readyz"):
        assert httpx.get(service.url + path, headers={"Host": "10.0.0.7"}).status_code in {200, 503}
    port = service.url.rpartition(":")[2]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", f"LOCALHOST.:{port}"):
        assert httpx.get(f"{service.url}/sign-in", headers={"Host": host}).status_code == 200


def test_an_origin_is_compared_with_the_configured_address_and_not_with_the_host(service, project):
    """A proxy or a rebound name may make the Host header whatever an attacker likes."""
    who = somebody(project, "engineer")
    port = service.url.rpartition(":")[2]
    for origin, host in (
        ("http://attacker.example", "attacker.example"),
        ("null", f"127.0.0.1:{port}"),
        ("http://127.0.0.1:1", "127.0.0.1:1"),
    ):
        answer = httpx.post(f"{service.url}/sign-in", data=who, headers={"Origin": origin, "Host": host})
        assert answer.status_code in {400, 403}, (origin, answer.text)
    assert httpx.post(f"{service.url}/sign-in", data=who, headers={"Origin": service.url}).status_code == 303


@pytest.mark.parametrize(
    ("origin", "home"),
    [
        ("https://gapwatch.example.com", True),
        ("https://GAPWATCH.example.com:443", True),
        ("http://gapwatch.example.com", False),
        ("https://gapwatch.example.com:8443", False),
        ("https://gapwatch.example.com.attacker.example", False),
        ("http://other.internal", True),
        ("http://10.0.0.7:8000", False),
        ("http://localhost:8000", True),
        ("http://localhost:9", False),
        ("null", False),
        ("https://[", False),
    ],
)
def test_which_origins_are_home(origin, home):
    settings = Settings(
        base_url="https://gapwatch.example.com", allowed_hosts="other.internal", data_dir="/nowhere"
    )
    assert KnownHosts(settings).is_home(origin) is home


# --- CSV


@pytest.mark.parametrize(
    "before", ["", "\x01", "\x00\x1f", "\x7f", "\x85", " ", "\u200b", "\ufeff", "\u00a0\t", "\x01 \x02"]
)
@pytest.mark.parametrize("start", ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "＝1", "\t=1", "\r=1"])
def test_no_cell_is_a_formula_once_it_is_cleaned(before, start):
    assert safe_cell(before + start).startswith("'")


def test_an_export_of_an_attackers_episode_runs_nothing(project):
    with project.client() as client:
        bad = episode(task="=cmd", failure={"note": "\x01=HYPERLINK(1)", "labels": ["@x"]}, outcome="failure")
        client.post("/episodes", json=bad)
    with project.client("read") as client:
        rows = list(csv.reader(io.StringIO(client.get("/episodes/export", params={"format": "csv"}).text)))
    assert len(rows) <= 2
    assert not [cell for row in rows[1:] for cell in row if cell[:1] in "=+@" and cell]


# --- mail


@pytest.mark.parametrize(
    "letter", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
)
def test_nothing_at_which_lines_split_reaches_a_header(letter):
    config = email.EmailConfig(to=["a@example.com"], sender="b@example.com", host="h")
    mail = email.compose(config, message(headline=f"line{letter}Bcc: attacker@example.com"))
    assert mail["Subject"] == "line Bcc: attacker@example.com"
    assert mail["Bcc"] is None
    head = mail.as_bytes().split(b"\n\n")[0]
    assert b"\nBcc" not in head


# --- passwords


def test_the_most_common_passwords_are_refused():
    with gzip.open(ROOT / "backend/gapwatch/access/common-passwords.txt.gz", "rt") as lines:
        django = [line.strip() for line in lines]
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    common = [word for word in [*django, *FREQUENCY_LISTS["passwords"]] if len(word) >= 8]
    assert len(common) > 15_000
    assert [word for word in common if not is_common(word)] == []
    for word in ("spongebob1", "myspace123", "Stephanie1", "1g2w3e4r", "j38ifubn", "Iloveyou123"):
        with pytest.raises(WeakPassword):
            hash_password(word)


@pytest.mark.parametrize("word", [PASSWORD, "correct horse battery", "vk7-Rinde-Sturz", "tidy walrus 41 lamp"])
def test_unrelated_words_are_taken(word):
    assert not is_common(word)


# --- audit


def audited(project, action):
    return project.rows(
        "SELECT actor, subject, details FROM audit_entries WHERE project_id = :p AND action = :action ORDER BY id DESC",
        action=action,
    )


def test_the_audit_says_what_changed_from_and_to(project, service):
    with project.client("admin") as client:
        rule = {"name": "mine", "kind": "drop", "severity": "warning"}
        assert client.post("/rules", json=rule).is_success
        assert client.post("/rules", json=rule | {"severity": "critical"}).is_success
        key = client.post("/keys", json={"name": "k", "scope": "read", "networks": ["10.0.0.0/8"]}).json()
        assert client.delete(f"/keys/{key['id']}").status_code == 204
        now = datetime.now(UTC)
        silence = client.post("/silences", json={"reason": "r", "minutes": 30}).json()
        assert client.delete(f"/silences/{silence['id']}").is_success
        event = {"kind": "other", "title": "moved", "at": now.isoformat()}
        assert client.post("/events", json=event).is_success
        assert client.get("/episodes/export", params={"format": "csv", "deployment": "line-3"}).is_success
    [[_, _, changed], [_, _, made]] = audited(project, "rule.put")
    assert changed["changes"] == {"severity": {"from": "warning", "to": "critical"}}
    assert made["changes"]["kind"] == {"from": None, "to": "drop"}
    [_, [_, _, _], *_] = audited(project, "key.created")
    assert audited(project, "key.created")[0][2]["changes"]["networks"] == {"from": None, "to": ["10.0.0.0/8"]}
    assert key["key"] not in str(audited(project, "key.created"))
    assert audited(project, "key.revoked")[0][2]["changes"] == {"is_revoked": {"from": False, "to": True}}
    [[_, _, ended]] = audited(project, "silence.end")
    assert set(ended["changes"]) == {"ends_at"}
    [[_, _, happened]] = audited(project, "event.recorded")
    assert happened["changes"]["title"] == {"from": None, "to": "moved"}
    [[_, _, exported]] = audited(project, "episodes.exported")
    assert exported == {"format": "csv", "filter": {"deployment": "line-3"}}


def test_a_changed_password_is_in_the_audit_without_a_word_of_it(project, service):
    who = somebody(project, "engineer")
    with Browser(service, who) as browser:
        fresh = "tidy walrus forty lamp"
        done = browser.submit("/account", project.slug, current=PASSWORD, password=fresh)
        assert done.is_success
    [[actor, _, details], *_] = audited(project, "password.changed")
    assert actor == who["email"] and details == {}


def test_admins_read_the_audit_filtered_and_as_csv_and_nobody_else(project, service):
    with project.client("admin") as client:
        client.post("/keys", json={"name": "=cmd", "scope": "read"})
    with Browser(service, somebody(project, "admin")) as browser:
        page = browser.get("/settings/audit", params={"action": "key.created"})
        assert page.status_code == 200 and "key.created" in page.text and "=cmd" in page.text
        assert "member.put" not in page.text.partition("<tbody>")[2]
        rows = list(csv.reader(io.StringIO(browser.get("/settings/audit", params={"format": "csv"}).text)))
        assert rows[0] == ["id", "at", "actor", "action", "subject", "details"] and len(rows) > 4
        assert "audit.exported" in browser.get("/settings/audit").text
    with Browser(service, somebody(project, "engineer")) as browser:
        assert browser.get("/settings/audit").status_code == 403


# --- keys


def test_a_key_that_is_bound_to_networks_works_from_nowhere_else(project):
    with project.client("admin") as client:
        here = client.post(
            "/keys", json={"name": "here", "scope": "read", "networks": ["127.0.0.0/8", "::1"]}
        ).json()
        there = client.post("/keys", json={"name": "there", "scope": "ingest", "networks": ["192.0.2.7"]}).json()
        bad = client.post("/keys", json={"name": "bad", "scope": "read", "networks": ["anywhere"]})
    assert bad.status_code == 422 and "192.0.2.0/24" in bad.text
    url = f"{project.url}/api/v1"
    assert httpx.get(f"{url}/episodes", headers={"Authorization": f"Bearer {here['key']}"}).status_code == 200
    refused = [
        httpx.get(f"{url}/episodes", headers={"Authorization": f"Bearer {there['key']}"}),
        httpx.post(f"{url}/episodes", json=episode(), headers={"Authorization": f"Bearer {there['key']}"}),
    ]
    unknown = httpx.get(f"{url}/episodes", headers={"Authorization": "Bearer gw_" + "x" * 43})
    assert [answer.status_code for answer in refused] == [401, 401]
    assert refused[0].json()["detail"] == unknown.json()["detail"]


# --- backup


@pytest.mark.parametrize("tool", ["pg_dump"])
def test_a_backup_shows_no_password_in_the_list_of_processes(service, tmp_path, tool):
    secret = (service.data_dir / "postgres-service-password").read_text()
    seen, done = [], threading.Event()

    def look():
        while not done.is_set():
            for process in psutil.process_iter(["cmdline"]):
                words = process.info["cmdline"] or []
                if any(tool in word for word in words[:1]):
                    seen.append(" ".join(words))
            time.sleep(0.002)

    watcher = threading.Thread(target=look)
    watcher.start()
    made = subprocess.run(
        [sys.executable, "-m", "gapwatch", "backup", tmp_path / "all.dump", "--data-dir", service.data_dir],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    done.set()
    watcher.join()
    assert made.returncode == 0, made.stderr
    assert seen
    assert not [line for line in seen if secret in line]
    assert (tmp_path / "all.dump").stat().st_size > 1000


def test_a_password_leaves_an_address_wherever_it_stands():
    for url in (
        "postgresql://u:s3cret@h/d",
        "postgresql://u@h/d?password=s3cret&host=/run",
        "postgres://u:s3cret@h/d",
    ):
        bare, password = split_password(url)
        assert password == "s3cret" and "s3cret" not in bare


# --- quarantine


def test_refused_batches_cannot_grow_the_database(project):
    junk = [{"id": f"x-{n}", "junk": "y" * 20_000} for n in range(300)]
    with project.client() as client:
        for _ in range(4):
            answer = client.post("/episodes/batch", json=junk)
            assert len(answer.json()["errors"]) >= 100, answer.text
    stored = project.value(
        "SELECT coalesce(sum(octet_length(record) + pg_column_size(errors)), 0) FROM rejected_records WHERE project_id = :p"
    )
    # A new minute may have begun in between.
    assert 0 < stored <= 2 * MOST_BYTES_A_MINUTE
