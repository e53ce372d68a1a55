"""`gw.permit` against a service of its own that answers as it is told."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from gapwatch_client import Gapwatch
from gapwatch_client.permit import PermitWatch
from gapwatch_client.transport import Transport

from parts import wait_until

GO = {
    "policy": {"name": "bin-pick", "version": "1.4.0"}, "stage": "full", "state": "go", "decided_at": None,
    "decision": None,
}  # fmt: skip
STOP = GO | {"policy": None, "state": "stop", "decision": 7}


class Permits:
    """Answers with a permit, waits for another as the service does, or is away."""

    def __init__(self):
        self.body, self.tag, self.is_away = GO, '"1"', False
        self.asked = []
        self.changed = threading.Condition()
        board = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                board.asked.append((self.path, dict(self.headers)))
                known = self.headers.get("If-None-Match")
                if "wait=" in self.path:
                    with board.changed:
                        board.changed.wait_for(lambda: known != board.tag or board.is_away, 0.2)
                body = json.dumps(board.body).encode()
                status = 503 if board.is_away else 304 if known == board.tag else 200
                self.send_response(status)
                self.send_header("ETag", board.tag)
                if status == 200:
                    self.send_header("Content-Length", str(len(body)))
                else:
                    self.send_header("Content-Length", "0")
                self.end_headers()
                if status == 200:
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def decide(self, body, tag):
        with self.changed:
            self.body, self.tag = body, tag
            self.changed.notify_all()

    def go_away(self):
        with self.changed:
            self.is_away = True
            self.changed.notify_all()


@pytest.fixture
def permits():
    board = Permits()
    yield board
    board.server.shutdown()
    board.server.server_close()


def test_the_first_answer_is_unknown_and_then_followed(permits, tmp_path):
    told = []
    with Gapwatch(permits.url, "gw_test", tmp_path, robot="ur5e-012") as gw:
        first = gw.permit("lisbon", on_change=told.append)
        assert (first.state, first.is_known, first.policy) == ("fallback", False, None)
        wait_until(lambda: gw.permit("lisbon").is_known, 10)
        permit = gw.permit("lisbon")
        assert (permit.state, permit.policy, permit.version, permit.stage) == ("go", "bin-pick", "1.4.0", "full")
        assert permit.allows("bin-pick", "1.4.0") and not permit.allows("bin-pick", "1.3.0")
        permits.decide(STOP, '"2"')
        wait_until(lambda: gw.permit("lisbon").state == "stop", 10)
        assert not gw.permit("lisbon").may_drive
        wait_until(lambda: [one.state for one in told] == ["go", "stop"], 10)
    assert permits.asked[0][1]["Gapwatch-Client"].startswith("ur5e-012 ")
    assert permits.asked[-1][1]["If-None-Match"] in ('"1"', '"2"')


def test_what_was_known_is_there_after_a_restart_without_a_service(permits, tmp_path):
    with Gapwatch(permits.url, "gw_test", tmp_path) as gw:
        assert gw.permit("lisbon", first_within_s=10).state == "go"
        permits.decide(STOP, '"2"')
        wait_until(lambda: gw.permit("lisbon").state == "stop", 10)
    permits.go_away()
    with Gapwatch(permits.url, "gw_test", tmp_path) as gw:
        permit = gw.permit("lisbon", when_unknown="keep")
        assert (permit.state, permit.decision, permit.is_known) == ("stop", 7, True)


@pytest.mark.parametrize(("when_unknown", "state"), [("fallback", "fallback"), ("keep", "go")])
def test_a_permit_that_nobody_confirms_any_more_is_what_the_team_chose(permits, tmp_path, when_unknown, state):
    told = []
    transport = Transport(permits.url, "gw_test", 5.0)
    watch = PermitWatch(transport, tmp_path, "lisbon", when_unknown, told.append, None, known_for_s=1.0)
    try:
        assert watch.wait_known(10)
        assert watch.current().state == "go"
        permits.go_away()
        wait_until(lambda: not watch.current().is_known, 20)
        assert watch.current().state == state
        wait_until(lambda: told[-1].is_known is False, 20)
        assert told[-1].state == state
    finally:
        watch.stop()


def test_a_stop_stays_a_stop(permits, tmp_path):
    permits.decide(STOP, '"2"')
    transport = Transport(permits.url, "gw_test", 5.0)
    watch = PermitWatch(transport, tmp_path, "lisbon", "fallback", None, None, known_for_s=0.0)
    try:
        assert watch.wait_known(10)
        assert (watch.current().state, watch.current().is_known) == ("stop", False)
    finally:
        watch.stop()


def test_only_a_wrong_argument_raises(permits, tmp_path):
    with Gapwatch(permits.url, "gw_test", tmp_path) as gw:
        with pytest.raises(ValueError, match="deployment="):
            gw.permit()
        with pytest.raises(ValueError, match="when_unknown"):
            gw.permit("lisbon", when_unknown="whatever")
    broken = tmp_path / "broken"
    broken.mkdir()
    with Gapwatch("http://127.0.0.1:9", "gw_test", broken) as gw:
        gw.permit("lisbon")
        [kept] = [*broken.glob("*.permit"), None]
        assert kept is None
        assert gw.permit("lisbon").state == "fallback"
