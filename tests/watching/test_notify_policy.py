import itertools
from datetime import UTC, datetime, timedelta

import pytest

from gapwatch.settings import ROOT
from gapwatch.watching.notify_policy import (
    BACK,
    KNOWN_BEFORE,
    NOTIFY_TABLE,
    SAME_FALL,
    SEVERITIES,
    OpenReason,
    Telling,
    is_over,
    knowledge_of,
    notification_for,
    rank,
    standing_after,
    worst,
)
from gapwatch.watching.reason_kinds import REASON_KINDS

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
FLAP = 10.0
LONG_AGO, LATELY = NOW - timedelta(hours=3), NOW - timedelta(minutes=4)
STATES = {
    ("unknown", "untold"): "nobody was told of the incident",
    ("firing", "untold"): "told of other kinds",
    ("firing", "same"): "told of the same fall as the other kind",
    ("firing", "told"): "told of this kind",
    ("firing", "worse"): "told, and more severe now",
    ("firing", "over"): "told, over, and back",
    ("acknowledged", "untold"): "acknowledged, other kinds",
    ("acknowledged", "same"): "acknowledged, the same fall",
    ("acknowledged", "told"): "acknowledged, this kind",
    ("acknowledged", "worse"): "acknowledged, and more severe now",
    ("acknowledged", "over"): "acknowledged, over, and back",
}


def telling(kind, severity="warning", *, at=LONG_AGO, standing=None, over=False, here=True):
    return Telling(kind, severity, standing or severity, at, over, here)


def decide(kind, severity, tellings, *, acknowledged=False, flap=FLAP, fell_at=None):
    """`fell_at`: when success fell, as this kind and the one that it may be the same fall as see it."""
    reasons = {kind: OpenReason(severity, flap, fell_at)}
    if fell_at is not None:
        reasons[SAME_FALL.get(kind, other(kind))] = OpenReason("critical", flap, fell_at)
    return notification_for(reasons, tellings, is_acknowledged=acknowledged, now=NOW)[kind]


def other(kind):
    return REASON_KINDS[REASON_KINDS.index(kind) - 1]


def test_the_table_of_the_documents_is_the_table_of_the_code():
    rows = [
        f"| what people know | {' | '.join(f'`{kind}`' for kind in REASON_KINDS)} |",
        f"|---|{'---|' * len(REASON_KINDS)}",
    ]
    for situation, words in STATES.items():
        messages = [NOTIFY_TABLE.get((kind, *situation), "") for kind in REASON_KINDS]
        cells = ["–" if message is None else message and f"`{message}`" for message in messages]
        rows.append(f"| {words} | {' | '.join(cells)} |")
    table = "\n".join(rows)
    assert f"\n{table}\n\n" in (ROOT / "docs" / "alerts.md").read_text(), f"docs/alerts.md needs:\n{table}"


def test_the_table_has_every_kind_in_every_state_and_nothing_else():
    cells = {(kind, *situation) for kind in REASON_KINDS for situation in STATES}
    assert set(NOTIFY_TABLE) == {cell for cell in cells if cell[2] != "same" or cell[0] in ("performance", "gate")}
    assert set(KNOWN_BEFORE) == set(BACK) == set(REASON_KINDS)
    for message in NOTIFY_TABLE.values():
        assert message is None or message.format(what="", known="", severity="") is not None


@pytest.mark.parametrize(
    ("kind", "state", "knowledge", "severity", "is_recent"),
    [
        (*cell, severity, is_recent)
        for cell in NOTIFY_TABLE
        for severity, is_recent in itertools.product(SEVERITIES, (False, True))
    ],
)
def test_every_cell_sends_its_message_and_waits_only_for_its_own_kind(kind, state, knowledge, severity, is_recent):
    """Every kind, state of the incident, relation of severities, and the kind told lately or not."""
    at = LATELY if is_recent else LONG_AGO
    less_severe = SEVERITIES[max(0, rank(severity) - 1)]
    if knowledge == "worse" and less_severe == severity:
        return  # Nothing is less severe than info.
    # Another kind was told of a moment ago, as severe as can be: it must not matter.
    tellings = [] if state == "unknown" else [telling(other(kind), "critical", at=NOW)]
    tellings.append(telling(other(kind), "critical", at=NOW, over=True, here=False))
    fell_at = None
    if knowledge == "same":
        tellings, fell_at = [telling(SAME_FALL[kind], severity, at=at)], at - timedelta(minutes=1)
    elif knowledge == "untold":
        tellings.append(telling(kind, severity, at=at, over=True, here=False))
    elif knowledge == "worse":
        tellings.append(telling(kind, less_severe, at=at))
    else:
        tellings.append(telling(kind, severity, at=at, over=knowledge == "over"))
    decision = decide(kind, severity, tellings, acknowledged=state == "acknowledged", fell_at=fell_at)
    assert decision.knowledge == knowledge
    if severity == "info" and state != "unknown":
        assert decision.headline is None
        return
    assert decision.headline == NOTIFY_TABLE[kind, state, knowledge]
    if decision.headline is not None:
        waits = is_recent and knowledge != "worse"
        assert decision.at == (at + timedelta(minutes=FLAP) if waits else NOW)


@pytest.mark.parametrize(
    ("known", "joins"), [(known, joins) for known in REASON_KINDS for joins in REASON_KINDS if known != joins]
)
def test_no_kind_swallows_another_at_the_same_severity(known, joins):
    for acknowledged in (False, True):
        decision = decide(joins, "warning", [telling(known, at=LATELY)], acknowledged=acknowledged)
        assert decision.headline == "{what}; {known}"
        assert decision.at == NOW


def test_the_same_drop_in_other_words_is_not_told_twice():
    assert decide("performance", "warning", [telling("performance")]).headline is None
    assert decide("performance", "info", [telling("performance")]).headline is None


@pytest.mark.parametrize(("known", "joins"), [("performance", "gate"), ("gate", "performance")])
def test_a_fall_that_breaks_the_gate_too_is_one_message_unless_it_is_another_fall_or_more_severe(known, joins):
    fell = LONG_AGO - timedelta(minutes=5)
    assert decide(joins, "warning", [telling(known)], fell_at=fell).headline is None
    assert decide(joins, "warning", [telling(known)], acknowledged=True, fell_at=fell).headline is None
    told = [
        decide(joins, "critical", [telling(known)], fell_at=fell),
        # It fell again after people were told, or what they were told of is over, or of another incident.
        decide(joins, "warning", [telling(known)], fell_at=LATELY),
        decide(joins, "warning", [telling(known, over=True)], fell_at=fell),
        decide(joins, "warning", [telling(known, standing="info")], fell_at=fell),
        # A gate of interventions is no fall of success.
        decide(joins, "warning", [telling(known)]),
    ]
    assert [decision.headline for decision in told] == ["{what}; {known}"] * 5
    assert decide(joins, "warning", [telling(known, here=False, over=True)], fell_at=fell).headline == "{what}"


@pytest.mark.parametrize("joins", ["safety", "silence", "signals"])
def test_what_is_no_fall_of_success_is_told_beside_one(joins):
    tellings = [telling("performance", "critical"), telling("gate", "critical")]
    decision = decide(joins, "warning", tellings, fell_at=LONG_AGO - timedelta(minutes=5))
    assert decision.headline == "{what}; {known}"


def test_what_gets_more_severe_is_told_even_when_another_kind_was_that_severe():
    tellings = [telling("safety", "critical"), telling("performance", "warning", at=LATELY)]
    decision = decide("performance", "critical", tellings)
    assert decision.headline == "{what}; {severity} now"
    assert decision.at == NOW


def test_a_kind_that_was_critical_and_is_a_warning_since_is_told_when_it_is_critical_again():
    fell = telling("safety", "critical", standing="warning")
    assert decide("safety", "warning", [fell]).headline is None
    assert decide("safety", "critical", [fell]).knowledge == "worse"
    lately = telling("safety", "critical", standing="warning", at=LATELY)
    assert decide("safety", "critical", [lately]).at == LATELY + timedelta(minutes=FLAP)


def test_a_less_severe_message_holds_back_no_severe_one_of_its_kind():
    earlier = telling("safety", "warning", at=LATELY, over=True, here=False)
    assert decide("safety", "critical", [earlier]).at == NOW
    assert decide("safety", "warning", [earlier]).at == LATELY + timedelta(minutes=FLAP)


def test_what_was_told_stands_as_long_as_its_kind_is_open_and_only_falls():
    told = telling("safety", "critical")
    assert standing_after(told, {"safety": "critical"}) == "critical"
    assert standing_after(told, {"safety": "warning", "silence": "critical"}) == "warning"
    assert standing_after(telling("safety", "warning"), {"safety": "critical"}) == "warning"
    assert standing_after(told, {"silence": "critical"}) is None


def test_what_another_incident_told_is_unknown_in_this_one():
    earlier = telling("silence", over=True, here=False)
    assert knowledge_of("silence", "warning", [earlier]) == "untold"
    assert decide("silence", "warning", [earlier]).headline == "{what}"


def test_the_worst_of_several():
    assert worst(["info", "critical", "warning"]) == "critical"


@pytest.mark.parametrize(
    ("open_severities", "told", "over"),
    [
        ([], None, True),
        ([], "warning", True),
        (["warning"], "warning", False),
        (["info"], "warning", True),
        (["info", "critical"], "warning", False),
        (["info"], "info", False),
        (["info"], None, False),
    ],
)
def test_an_incident_is_over_when_nothing_is_left_that_people_were_told_of(open_severities, told, over):
    assert is_over(open_severities, told) == over
