import json
import re
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import httpx
import psycopg
import pytest

from parts import clean_environment, reachable, wait_until

# What the pages must show of the stories that no further episode joins.
FEW = "oslo-lab-1"


def told(pages, is_of_rollouts):
    """What the pager got: news of rollouts, or everything else."""
    found = map(json.loads, pages.read_text().splitlines())
    return [page for page in found if (page["action"] == "rollout") == is_of_rollouts]


def assert_told_in_one_line(pages):
    line, *others = told(pages, is_of_rollouts=False)
    assert {"austin-pack-2", "turin-cell-1"} <= set(line["import"]["changed"])
    # What is no history comes after it: the belt's friction left the range that was randomised.
    assert all("belt_friction" in page["headline"] for page in others)
    # It never drove: what it proposed in shadow is for its gate.
    assert "seoul-arm-4" not in json.dumps(line)
    assert "zurich-sort-2" not in json.dumps(line)


def assert_decisions_were_told(pages):
    found = [page for page in told(pages, is_of_rollouts=True) if "decision" in page]
    kinds = {page["deployment"]: page["decision"]["kind"] for page in found}
    assert kinds == {"lisbon-pick-5": "promote", "seoul-arm-4": "stop", "austin-pack-2": "rollback"}


def incidents(data_dir):
    """Slug, state and times of the incidents that are worth a page."""
    url = json.loads((data_dir / "running.json").read_text())["database_url"]
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT d.slug, i.state, i.changed_at, i.opened_at FROM incidents i"
            " JOIN deployments d ON d.project_id = i.project_id AND d.id = i.deployment_id WHERE i.severity <> 'info'"
        ).fetchall()


def assert_incidents_are_of_their_time(data_dir):
    """Some are over, two are being taken care of, and each story has at most one open."""
    found = incidents(data_dir)
    assert {state for _, state, _, _ in found} == {"firing", "acknowledged", "resolved"}
    assert max(Counter(slug for slug, state, _, _ in found if state != "resolved").values()) == 1
    assert not {"zurich-sort-2", "oslo-lab-1", "lisbon-pick-5"} & {slug for slug, *_ in found}
    for slug, first, last in (("austin-pack-2", 26, 20), ("turin-cell-1", 23, 4), ("berlin-line-3", 91, 85)):
        [(changed_at, opened_at)] = [row[2:] for row in found if row[0] == slug and row[1] != "resolved"]
        assert last < (datetime.now(UTC) - changed_at) / timedelta(days=1) < first, slug
        # Turin's signal moved, and opened it, before anything was lost.
        assert max(changed_at, opened_at) < datetime.now(UTC) - timedelta(days=1)


@pytest.mark.timeout(300)
def test_the_demo_prints_address_and_sign_in_and_shows_a_fleet_twice_in_a_row(tmp_path):
    data_dir = reachable(tmp_path) / "demo"
    for number in range(2):
        log_path = tmp_path / f"log-{number}"
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "gapwatch", "demo", "--port", "0", "--data-dir", data_dir],
                env=clean_environment(),
                stdout=log,
                stderr=log,
            )
        started = time.monotonic()
        try:
            text = wait_until(
                lambda: "Ctrl-C stops it" in (text := log_path.read_text()) and text,  # noqa: B023
                40,
                what="the sign-in",
            )
            assert time.monotonic() - started < 30
            [url] = re.findall(r"Gapwatch is ready: (\S+)", text)
            [email] = re.findall(r"Sign in with +(\S+)", text)
            [password] = re.findall(r"password +(\S+)", text)
            with httpx.Client(base_url=url, follow_redirects=True, timeout=30) as browser:
                page = browser.post("/sign-in", data={"email": email, "password": password})
                # Never empty: every deployment is there with the sign-in, before the rest of its history.
                assert "12 deployments" in page.text
                assert FEW in page.text and "berlin-line-3" in page.text
                if number == 0:
                    said = wait_until(
                        lambda: re.search(r"demo fleet: (\d+) episodes in", log_path.read_text()),  # noqa: B023
                        60,
                        what="the whole history",
                    )
                    assert 49_000 < int(said[1]) < 53_000
                    pages = data_dir / "demo" / "pages.ndjson"
                    wait_until(
                        lambda: told(pages, is_of_rollouts=False),  # noqa: B023
                        150,
                        what="the line about the import",
                    )
                    assert_told_in_one_line(pages)
                    assert_decisions_were_told(pages)
                    wait_until(
                        lambda: sum(state == "acknowledged" for _, state, *_ in incidents(data_dir)) == 2,
                        60,
                        what="somebody who takes care",
                    )
                    assert_incidents_are_of_their_time(data_dir)
                else:
                    assert "demo fleet:" not in log_path.read_text()
                wait_until(
                    lambda: re.search(r"\bn 9\b", browser.get(f"/deployments/{FEW}").text),
                    60,
                    what="the counts: the same in the second run, so nothing was doubled",
                )
        finally:
            process.terminate()
            assert process.wait(40) == 0
