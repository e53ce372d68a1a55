"""How long a first start takes. It runs before everything else, with the machine to itself."""

import time

import httpx

from parts import reachable, start_service


def test_page_answers_within_8_seconds_of_an_empty_directory_and_progress_is_shown(tmp_path):
    started = time.monotonic()
    service = start_service(reachable(tmp_path) / "data of a robot")
    seconds = time.monotonic() - started
    log = service.log
    page = httpx.get(f"{service.url}/", follow_redirects=True)
    service.stop()
    assert page.status_code == 200
    assert "Sign in" in page.text
    assert seconds < 8
    for step in ("starting Postgres", "started Postgres", "started Redis", "started migrations"):
        assert step in log
