"""One clock and one way to write numbers: nothing writes a time or a thousand by itself."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from gapwatch.notation import count, date_words, utc_words
from gapwatch.pages.forms import as_utc
from gapwatch.pages.templates import FRONTEND
from gapwatch.pages.words import input_time, utc_day, when, when_day, with_days, with_times
from gapwatch.settings import ROOT

BACKEND = ROOT / "backend/gapwatch"
AT = datetime(2020, 11, 2, 9, 14, 3, tzinfo=UTC)
SPEAKING = ("pages", "watching", "channels", "incidents", "alerts", "cli.py")
# A file's name and a field's value are read by machines.
MACHINES = {'%Y-%m-%d}.csv"', '%Y-%m-%d}.html"', "%Y-%m-%dT%H:%M}", "%Y-%m}"}


@pytest.mark.parametrize("path", sorted((FRONTEND / "templates").glob("*.html")), ids=lambda path: path.name)
def test_a_template_writes_no_time_and_no_thousands_by_itself(path):
    text = path.read_text()
    assert re.findall(r"strftime|isoformat|<time\b|\{:,|:,\}|\"%[-#]?d|format\(.*%Y", text) == []


def test_no_module_that_speaks_to_people_writes_dates_or_thousands_by_itself():
    wrong = []
    for place in SPEAKING:
        paths = [BACKEND / place] if place.endswith(".py") else sorted((BACKEND / place).rglob("*.py"))
        for path in paths:
            for number, line in enumerate(path.read_text().splitlines(), start=1):
                code = line.partition("  # ")[0]
                found = re.search(r"strftime|:%[-#]?[dHYb]|\{[^{}]*:,[.\d]*[df]?\}(?!\")", code)
                if found and not any(known in code for known in MACHINES) and "customdata" not in code:
                    wrong.append(f"{path.relative_to(BACKEND)}:{number}: {line.strip()}")
    assert wrong == []


def test_times_are_elements_with_utc_on_hover():
    assert when(AT) == (
        '<time datetime="2020-11-02T09:14:03Z" title="2 Nov 2020 09:14:03 UTC" data-time="minute">2 Nov 2020 09:14</time>'
    )
    assert 'data-time="day">2 Nov 2020</time>' in when_day(AT)
    # A day of the counts is the same day for every reader.
    assert utc_day(AT.date()).startswith(
        '<time datetime="2020-11-02" title="2 Nov 2020, from midnight to midnight UTC">'
    )


def test_words_of_messages_get_their_moments_back():
    said = with_times("success <b> fell, since 2 Nov 2020 09:14 UTC")
    assert said.startswith('success &lt;b&gt; fell, since <time datetime="2020-11-02T09:14:00Z"')
    assert with_times(said) == said
    assert with_times("2020-11-02T09:14:03Z") == when(AT)
    assert 'from <time datetime="2020-10-31"' in with_days("plausible from 2020-10-31")
    assert with_times("31 Feb 2020 09:14 UTC") == "31 Feb 2020 09:14 UTC"
    assert with_days("lot 2020-13-45") == "lot 2020-13-45"


def test_a_message_without_a_year_means_the_last_such_moment():
    soon = datetime.now(UTC) + timedelta(days=1)
    assert f'datetime="{soon.year}-' in with_times(utc_words(soon))
    past = datetime.now(UTC) - timedelta(days=200)
    assert f'datetime="{past.year}-' in with_times(utc_words(past))


def test_one_separator_and_one_date():
    assert (count(2400), count(-1234567), count(0.5)) == ("2\u202f400", "\u22121\u202f234\u202f567", "0.5")
    assert date_words(AT.date(), 2020) == "2 Nov" and date_words(AT.date(), 2021) == "2 Nov 2020"
    assert utc_words(AT) == "2 Nov 09:14 UTC"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("2026-11-02T09:00", "2026-11-02T09:00:00Z"),
        ("2026-11-02T09:00:30", "2026-11-02T09:00:30Z"),
        ("2026-11-02T09:00:00+09:00", "2026-11-02T09:00:00+09:00"),
        ("30d", "30d"),
    ],
)
def test_a_bare_time_of_a_field_is_utc(given, read):
    assert as_utc(given) == read


def test_a_field_shows_the_moment_of_the_address():
    assert input_time("2026-11-02T18:00:00+09:00") == "2026-11-02T09:00"
    assert input_time("30d") == input_time("Today") == ""
