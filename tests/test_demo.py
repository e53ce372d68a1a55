import re
import subprocess
import sys
import time
from datetime import UTC, datetime

import httpx

from gapwatch.demo import demo_episodes
from parts import clean_environment, reachable, wait_until


def test_the_demo_prints_address_and_sign_in_and_shows_a_fleet_twice_in_a_row(tmp_path):
    data_dir = reachable(tmp_path) / "demo"
    for _ in range(2):
        log_path = tmp_path / "log"
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
                30,
                what="the sign-in",
            )
            assert time.monotonic() - started < 12
            [url] = re.findall(r"Gapwatch is ready: (\S+)", text)
            [email] = re.findall(r"Sign in with +(\S+)", text)
            [password] = re.findall(r"password +(\S+)", text)
            with httpx.Client(base_url=url, follow_redirects=True) as browser:
                page = browser.post("/sign-in", data={"email": email, "password": password})
                assert "3 deployments" in page.text
                assert "berlin-line-3" in page.text
                wait_until(
                    lambda: "n 240" in browser.get("/").text,
                    what="the counts: the same in the second run, so nothing was doubled",
                )
        finally:
            process.terminate()
            assert process.wait(40) == 0


def test_the_demo_is_the_same_whenever_it_is_made_on_a_day():
    morning, evening = datetime(2026, 11, 2, 8, tzinfo=UTC), datetime(2026, 11, 2, 20, tzinfo=UTC)
    assert demo_episodes(morning) == demo_episodes(evening)
