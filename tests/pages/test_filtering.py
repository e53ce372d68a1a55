from datetime import date

from gapwatch.pages.filtering import window_choices


def test_windows_are_the_usual_ones_each_change_and_what_is_asked_for():
    choices = window_choices([date(2026, 11, 2)], ["7d", "2026-10-01T00:00:00Z"])
    assert [value for value, _ in choices] == [
        "24h",
        "7d",
        "30d",
        "90d",
        "2026-11-02T00:00:00Z",
        "2026-10-01T00:00:00Z",
    ]
    assert choices[-2:] == [
        ("2026-11-02T00:00:00Z", "since the change on 2 Nov"),
        ("2026-10-01T00:00:00Z", "since 1 Oct 00:00 UTC"),
    ]
