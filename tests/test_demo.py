import re
import subprocess
import sys
import time

import httpx
import pytest

from parts import clean_environment, reachable, wait_until

# What the pages must show of the stories that no further episode joins.
FEW = "oslo-lab-1"


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
                    wait_until(lambda: "seoul-arm-4" in pages.read_text(), 60, what="a page of an alert")  # noqa: B023
                    assert "berlin-line-3" in pages.read_text() and "zurich-sort-2" not in pages.read_text()
                else:
                    assert "demo fleet:" not in log_path.read_text()
                wait_until(
                    lambda: re.search(r"\bn 9\b", browser.get("/").text),
                    60,
                    what="the counts: the same in the second run, so nothing was doubled",
                )
        finally:
            process.terminate()
            assert process.wait(40) == 0
