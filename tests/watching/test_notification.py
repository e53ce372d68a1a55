from datetime import UTC, datetime

from gapwatch.watching.changes import AffectedRobots
from gapwatch.watching.notification import (
    IncidentFacts,
    build,
    lines,
)
from gapwatch.watching.phrases import AlertReason

AT = datetime(2026, 11, 16, 9, 14, tzinfo=UTC)
DRIFT = {
    "series": "success",
    "statistic": "e-detector",
    "e_value": 12_345.6,
    "arl": 10_000.0,
    "reference": {"n": 300, "value": 0.91, "limit": 0.86},
    "since": {"n": 52, "value": 0.481, "interval": [0.35, 0.61]},
    "change_point": {"at": "2026-11-16T09:14:03Z", "first_episode": "e-301"},
    "decided_by": {"episode": "e-352", "at": "2026-11-16T10:02:00Z"},
}


def reason(kind="drift", severity="warning", series="success", evidence=DRIFT, rule="success-drift", **more):
    return AlertReason(rule, kind, severity, series, evidence, AT, **more)


def facts(*reasons, **more):
    place = {"policy": "bin-pick", "version": "1.4.0", "task": "pick-mug", "site": "berlin", "stage": "full"}
    link = "https://gapwatch.example.com/alerts/7"
    return IncidentFacts(deployment="berlin-line-3", link=link, reasons=reasons, **place, **more)


def test_the_headline_says_what_fell_from_what_to_what_since_when():
    headline = build(facts(reason()))["headline"]
    assert headline == "berlin-line-3: success 91 % → 48 % (n 52), since 16 Nov 09:14 UTC"
    assert len(headline) <= 100


def test_a_headline_is_never_longer_than_a_locked_phone_shows():
    content = build(IncidentFacts("x" * 150, "p", "1", "t", None, None, "https://g", [reason()]))
    assert len(content["headline"]) == 100
    assert content["headline"].endswith("…")


def test_the_most_severe_reason_leads_and_all_are_listed():
    violation = {
        "statistic": "single episode",
        "since": {"n": 1, "value": 2.0},
        "change_point": {"at": "2026-11-16T09:20:00Z"},
    }
    content = build(
        facts(reason(), reason("safety", "critical", "violations severe", violation, "safety-violation"))
    )
    assert content["severity"] == "critical"
    assert content["headline"].startswith("berlin-line-3: 2 safety violations in one episode")
    assert [one["rule"] for one in content["reasons"]] == ["safety-violation", "success-drift"]


def test_an_alert_of_a_kind_that_this_release_does_not_know_is_described_by_its_series_and_comes_last():
    content = build(facts(reason("oracle", rule="sooth"), reason("no_data", series="robot:r1", evidence={})))
    assert [one["kind"] for one in content["reasons"]] == ["no_data", "oracle"]
    assert content["reasons"][1]["sentence"].startswith("success 91 % → 48 % (n 52)")


def test_a_drop_has_its_interval_and_its_baseline():
    evidence = DRIFT | {
        "reference": {"n": 2000, "value": 0.9, "side": "sim"},
        "drop": {"value": 0.42, "interval": [0.28, 0.55]},
    }
    [one] = build(facts(reason("drop", evidence=evidence, rule="success-below-sim")))["reasons"]
    assert "success 90 % in sim → 48 % (n 52)" in one["sentence"]
    assert "drop 42 points [28, 55]" in one["sentence"]
    assert "one false alarm in 10\u202f000 episodes" in one["sentence"]


def test_what_is_known_besides_becomes_lines():
    content = build(
        facts(
            reason(regressed=True),
            category={"category": "contact_dynamics", "contribution": 0.31},
            slices=[{"condition": "object", "level": "glass", "value": 0.2, "n": 20}],
            changes=[{"kind": "release", "at": "2026-11-16T09:00:00Z", "title": "1.4.0 → 1.5.0", "fit": 0.9}],
            robots=AffectedRobots(("ur5e-1",), ("ur5e-2",)),
        )
    )
    text = "\n".join(lines(content))
    assert "regressed" in text
    assert "contact dynamics (31 points)" in text
    assert "object=glass 20 % of 20" in text
    assert "Before it: 1.4.0 → 1.5.0 (release, 16 Nov 09:00 UTC)." in text
    assert "Robots affected: ur5e-1; not: ur5e-2." in text


def test_every_kind_has_words():
    silence = {"robot": "ur5e-012", "heard_at": "2026-11-16T03:00:00Z"}
    category = {"category": "visual", "contribution": 0.12, "interval": [0.08, 0.16]}
    gate = DRIFT | {"reference": {"n": 0, "value": 0.6, "limit": 0.6}}
    signal = {"since": {"n": 40, "direction": "higher"}, "change_point": {"at": "2026-11-16T09:14:03Z"}}
    expected = {
        ("no_data", "robot:ur5e-012"): (silence, "ur5e-012 silent since 16 Nov 03:00 UTC"),
        ("category", "visual"): (category, "visual costs 12 points of success"),
        ("stage_gate", "success@full"): (gate, "success gate 60 % → 48 % (n 52), since 16 Nov 09:14 UTC"),
        ("drift", "signal:peak_force_n"): (signal, "peak_force_n rose, since 16 Nov 09:14 UTC"),
    }
    for (kind, series), (evidence, words) in expected.items():
        assert (
            build(facts(reason(kind, series=series, evidence=evidence)))["headline"] == f"berlin-line-3: {words}"
        )
    [one] = build(facts(reason("category", series="visual", evidence=category)))["reasons"]
    assert one["sentence"].startswith("visual costs 12 points of success [8, 16]")


def test_what_is_news_leads_even_before_what_is_more_severe_and_says_what_was_known():
    known = reason("no_data", "critical", "robot:ur5e-1", {"robot": "ur5e-1"}, "robot-silent")
    news = facts(
        known,
        reason(evidence=DRIFT | {"change_point": {}}),
        headlines={"performance": "{what}; {known}"},
        known=["silence"],
        acknowledged_by="anna",
    )
    content = build(news)
    assert content["headline"] == "berlin-line-3: success 91 % → 48 % (n 52); it was silent before"
    assert content["severity"] == "warning"
    assert [(one["reason_kind"], one["is_new"]) for one in content["reasons"]] == [
        ("performance", True),
        ("silence", False),
    ]
    assert content["tells"] == [{"kind": "performance", "severity": "warning", "since": "2026-11-16T09:14:00Z"}]
    assert content["known"] == ["silence"]
    text = lines(content)
    assert text[1].startswith("Known before: ur5e-1 silent")
    assert text[2].startswith("anna acknowledged what was known before")


def test_without_news_of_its_own_every_reason_is_news():
    content = build(facts(reason()))
    assert content["reasons"][0]["is_new"]
    assert [tell["kind"] for tell in content["tells"]] == ["performance"]
