"""Who may be talked to: every spelling of a private address is refused, and the answer is taken within bounds."""

import socket
import time

import pytest
from alerts.receivers import BadDay

from gapwatch.channels.egress import Egress, is_public, retry_after_s

PRIVATE = [
    *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
    *("224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
    *("::1", "::", "fe80::1", "fc00::1", "fec0::1", "ff02::1", "::ffff:127.0.0.1", "::127.0.0.1"),
    *("64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1", "2001:0:7f00:1::"),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_on_the_open_internet(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"])
def test_public_addresses(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0", "localhost", "[::1]", "[::ffff:7f00:1]"],
)
def test_no_spelling_of_this_machine_is_reached(receiver, host):
    port = receiver.server.server_port
    attempt = Egress().post(f"https://{host}:443/hook", b"{}", {})
    assert attempt.outcome == "refused"
    attempt = Egress().post(f"http://{host}:{port}/hook", b"{}", {})
    assert attempt.outcome == "refused"
    assert receiver.got == []
    assert "GAPWATCH_ALLOW_PRIVATE_TARGETS" in attempt.answer


def test_a_name_with_one_private_address_among_public_ones_is_refused(monkeypatch):
    def both(*_args, **_more):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 443)) for ip in ("1.1.1.1", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    attempt = Egress().post("https://rebinding.example.com/hook", b"{}", {})
    assert attempt.outcome == "refused"
    assert "public" in attempt.answer


def test_the_address_that_was_checked_is_the_one_connected_to(receiver, monkeypatch):
    """A name that resolves differently the second time gets no second time."""
    calls = []
    real = socket.getaddrinfo

    def once(host, *args, **more):
        calls.append(host)
        return real("127.0.0.1" if host == "hook.example.com" else host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", once)
    url = f"http://hook.example.com:{receiver.server.server_port}/hook"
    attempt = Egress(allow_private=True).post(url, b"{}", {})
    assert attempt.outcome == "sent"
    assert calls.count("hook.example.com") == 1
    assert receiver.got[0].headers["Host"] == f"hook.example.com:{receiver.server.server_port}"


@pytest.mark.parametrize("url", ["http://example.com/", "https://example.com:22/", "https://example.com:6379/"])
def test_plain_http_and_odd_ports_need_the_setting(url):
    assert Egress().post(url, b"", {}).outcome == "refused"


def test_redirects_are_not_followed(receiver):
    receiver.bad_days = [BadDay(302, {"Location": f"{receiver.url}/elsewhere"})]
    attempt = Egress(allow_private=True).post(f"{receiver.url}/hook", b"{}", {})
    assert (attempt.outcome, attempt.status) == ("refused", 302)
    assert [got.path for got in receiver.got] == ["/hook"]


def test_proxies_of_the_environment_are_not_asked(receiver, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert Egress(allow_private=True).post(f"{receiver.url}/hook", b"{}", {}).outcome == "sent"


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *((status, "sent") for status in (200, 202, 204)),
        *((status, "refused") for status in (400, 401, 403, 404, 410)),
        *((status, "retry") for status in (408, 429, 500, 503)),
    ],
)
def test_what_an_answer_means(receiver, status, outcome):
    receiver.bad_days = [BadDay(status, body=b"" if status == 204 else b"words")]
    assert Egress(allow_private=True).post(f"{receiver.url}/hook", b"{}", {}).outcome == outcome


def test_nobody_there_a_reset_and_a_name_that_does_not_exist_are_tried_again(receiver):
    egress = Egress(allow_private=True)
    assert egress.post("http://127.0.0.1:9/hook", b"{}", {}).outcome == "retry"
    receiver.bad_days = [BadDay(reset=True)]
    assert egress.post(f"{receiver.url}/hook", b"{}", {}).outcome == "retry"
    assert egress.post("http://no-such-name.invalid/hook", b"{}", {}).outcome == "retry"


def test_a_slow_answer_is_not_waited_for_and_a_long_one_not_kept(receiver, monkeypatch):
    monkeypatch.setattr("gapwatch.channels.egress.ANSWER_WITHIN_S", 0.5)
    receiver.bad_days = [BadDay(200, wait_s=3), BadDay(200, body=b"x" * 1_000_000)]
    started = time.monotonic()
    attempt = Egress(allow_private=True).post(f"{receiver.url}/hook", b"{}", {})
    assert attempt.outcome == "retry"
    assert time.monotonic() - started < 2
    attempt = Egress(allow_private=True).post(f"{receiver.url}/hook", b"{}", {})
    assert len(attempt.answer) <= 2000


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("7", 7), ("0", 0), ("-5", 0), ("999999", 3600), ("Wed, 21 Oct 2026 07:28:00 GMT", 60)],
)
def test_retry_after(header, seconds):
    assert retry_after_s(header) == seconds


def test_what_the_other_side_says_is_shown_without_control_characters(receiver):
    receiver.bad_days = [BadDay(400, body=b"no\x1b[31m \x00 \xff way")]
    answer = Egress(allow_private=True).post(f"{receiver.url}/hook", b"{}", {}).answer
    assert answer == "no�[31m � � way"
