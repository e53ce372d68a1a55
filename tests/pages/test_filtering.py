from starlette.requests import Request

from gapwatch.filters import StatisticsFilter
from gapwatch.pages.filtering import read_filter, window_or_now, window_picker
from gapwatch.pages.links import Links

LINKS = Links(None)


def asked(query: str) -> Request:
    return Request({"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": query.encode()})


def test_a_page_speaks_of_the_present_unless_asked_for_something_else():
    assert window_or_now({}) == {"window": "now"}
    assert window_or_now({"robot": ["r1"]}) == {"window": "now"}
    assert window_or_now({"since": ["7d"]}) == {"since": "7d"}
    assert window_or_now({"window": ["all"]}) == {"window": "all"}


def test_the_other_windows_are_one_click_away_and_keep_the_filters():
    picker = window_picker(LINKS, ("deployments", "turin"), {"robot": ["r1"], "since": ["7d"]}, "last 7 days")
    assert [(choice.label, choice.is_chosen) for choice in picker.choices] == [
        ("now", False),
        ("24 h", False),
        ("7 d", True),
        ("30 d", False),
        ("all", False),
    ]
    assert picker.choices[0].href == "/deployments/turin?robot=r1"
    assert picker.choices[-1].href == "/deployments/turin?robot=r1&window=all"
    assert not picker.is_custom


def test_times_of_ones_own_are_custom():
    picker = window_picker(LINKS, (), {"since": ["2026-10-01T00:00:00Z"]}, "since 1 Oct")
    assert picker.is_custom
    assert picker.since == "2026-10-01T00:00:00Z"


def test_a_window_by_name_and_times_at_once_are_a_problem_in_words():
    read = read_filter(asked("window=now&since=7d"), StatisticsFilter)
    assert read.given == {"since": ["7d"]}
    assert "not both" in read.problems[0]
