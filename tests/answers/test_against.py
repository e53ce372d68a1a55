"""The present held against what was before it, through the API and on the page."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from answers.lab import NOON, attempts, real, sim
from people import Browser, somebody

from gapwatch.answers.before_words import told_of_before

BERLIN = "/deployments/berlin-line-3"
HELD = ("ledger", "slices", "signals", "failures")


def fell(before: int = 300, since: int = 150, start: datetime = NOON, **fields):
    """Success falls from 96 to 50 % where the residual grows; the force always was another than sim's."""
    for i in range(before + since):
        late = i >= before
        good = i % 2 == 1 if late else i % 25 != 0
        yield real(
            "success" if good else "failure",
            at=start + timedelta(minutes=10 * i),
            robot=f"r-{i % 3}",
            conditions={"lighting": ("dim", "bright")[i % 2 if late else i // 2 % 2]},
            signals={"residual_mm": (4.0 if late else 1.0) + 0.01 * (i % 40), "force_n": 30.0 + 0.1 * (i % 37)},
            failure=None if good else {"phase": "place", "labels": ["miscalibrated" if late else "slip"]},
            **fields,
        )


def simulated():
    for i in range(100):
        yield sim(
            "failure" if i % 20 == 0 else "success",
            at=NOON - timedelta(days=90),
            conditions={"lighting": "dim"},
            signals={"residual_mm": 1.0 + 0.01 * (i % 40), "force_n": 20.0 + 0.1 * (i % 37)},
        )


@pytest.fixture
def changed(lab):
    lab.send([*fell(), *simulated()])
    return lab


def test_since_the_change_against_before(changed):
    now = changed.ask(f"{BERLIN}/now")
    assert (now["why"], now["before"]["n"]) == ("change", 300)
    for name in HELD:
        answer = changed.ask(f"{BERLIN}/{name}", against="before")
        assert answer["n_real"] == now["regime"]["n"], name
        # Exact where what was before is short; it is two days here.
        assert answer["n_sim"] == now["before"]["n"], name
        assert answer["against"]["kind"] == "before"
        assert answer["against"]["name"] == "before the change on 7 Oct"
        assert answer["against"]["window"]["until"] == now["since"]
        assert answer["baseline"] is None
        assert answer["filter"] == {"against": "before"}
        assert changed.ask(f"{BERLIN}/{name}", against="before", window="now")["n_sim"] == 300
        of_sim = changed.ask(f"{BERLIN}/{name}", window="now")
        assert (of_sim["n_sim"], of_sim["against"]["kind"]) == (100, "simulation")
    ledger = changed.ask(f"{BERLIN}/ledger", against="before")
    assert ledger["drop"] == pytest.approx(0.46, abs=0.01)
    parts = [*ledger["categories"], *([ledger["unattributed"]] if ledger["unattributed"] else [])]
    assert sum(part["contribution"] for part in parts) == pytest.approx(ledger["drop"])
    residual = changed.ask(f"{BERLIN}/signals", against="before")["signals"][0]
    assert (residual["signal"], residual["effect"]) == ("residual_mm", pytest.approx(1.0, abs=0.01))
    groups = changed.ask(f"{BERLIN}/failures", against="before")["groups"]
    assert groups[0]["labels"] == ["miscalibrated"] and groups[0]["sim"]["failures"] == 0


def test_what_moved_at_the_change_comes_before_what_sim_always_had_otherwise(changed):
    answer = changed.ask(f"{BERLIN}/signals", window="now")
    assert answer["moved"] == 1
    first, second = answer["signals"]
    assert (first["signal"], first["moved"]["is_established"]) == ("residual_mm", True)
    assert first["moved"]["n_before"] == 300
    assert first["moved"]["interval"][0] <= first["moved"]["effect"] <= first["moved"]["interval"][1]
    assert (second["signal"], second["moved"]["is_established"]) == ("force_n", False)
    # Without the present there is nothing that moved.
    assert changed.ask(f"{BERLIN}/signals")["moved"] is None


def test_who_stands_out_is_the_same_in_the_present_and_among_the_robots(lab):
    records = [
        real(
            "success" if i // 4 % 10 and not (i % 4 == 3 and i // 4 % 3) else "failure",
            at=NOON + timedelta(hours=i),
            robot=f"r-{i % 4}",
        )
        for i in range(400)
    ]
    lab.send(records)
    now, robots = lab.ask(f"{BERLIN}/now"), lab.ask(f"{BERLIN}/robots", window="now")
    units = {unit["name"]: unit for unit in robots["robots"]["units"]}
    for robot in now["robots"]:
        unit = units[robot["robot"]]
        assert (unit["n"], unit["value"], unit["stands_out"]) == (robot["n"], robot["value"], robot["stands_out"])
    assert [name for name, unit in units.items() if unit["stands_out"]] == ["r-3"]
    assert robots["sentence"].startswith("r-3 alone: ")


def test_where_nothing_changed_it_says_so(lab):
    lab.send([*attempts(real, 57, 3), *attempts(sim, 57, 3)])
    for name in HELD:
        answer = lab.ask(f"{BERLIN}/{name}", against="before")
        assert answer["n_sim"] == 0
        assert answer["reason"] == (
            "No change is known since the first episodes of 1.4.0 on 5 Oct, and no event: "
            "there is no before to hold them against."
        )


def test_where_nothing_changed_the_newest_event_divides(lab):
    steady = [real("failure" if i % 10 == 0 else "success", at=NOON + timedelta(hours=i)) for i in range(240)]
    lab.send([*steady, *attempts(sim, 57, 3)])
    for day, title in ((2, "Moved to Wi-Fi"), (5, "New gripper pads")):
        lab.event("mitigation", NOON + timedelta(days=day), title)
    answer = lab.ask(f"{BERLIN}/slices", against="before")
    assert answer["against"]["name"] == "before “New gripper pads” on 10 Oct"
    assert answer["window"]["name"] == "since “New gripper pads” on 10 Oct"
    # Its day is of neither side.
    assert (answer["n_sim"], answer["n_real"]) == (4 * 24 + 12, 240 - 5 * 24 - 12)
    # The present itself is not divided by it.
    assert lab.ask(f"{BERLIN}/slices", window="now")["n_real"] == 240


def test_no_sentence_of_what_was_before_speaks_of_sim(changed):
    def texts(value, name=""):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from texts(inner, key)
        elif isinstance(value, list):
            for inner in value:
                yield from texts(inner, name)
        elif isinstance(value, str) and name in ("why", "evidence", "sentence", "message", "reason"):
            yield value

    ledger = changed.ask(f"{BERLIN}/ledger", against="before")
    said = [text for name in HELD for text in texts(changed.ask(f"{BERLIN}/{name}", against="before"))]
    assert any("before" in text for part in ledger["categories"] for text in part["why"]), ledger["categories"]
    assert not [text for text in said if re.search(r"\bsim|simulat|\breal\b", text)], said


@pytest.mark.parametrize(
    ("of_sim", "of_before"),
    [
        ("residual (4 here, 1 in sim) lies above what is usual", "residual (4 since, 1 before) lies above what is usual"),
        ("lighting dim costs 8 points more here than in sim", "lighting dim costs 8 points more since than before"),
        ("lighting dim is as frequent here as in sim and costs 3 points", "lighting dim is as frequent as before and costs 3 points"),
        ("lighting dim is 2.1 times as rare here and", "lighting dim is 2.1 times as rare as before and"),
        ("glare was never simulated, is met in 30 % of real episodes and", "glare was never met before, is met in 30 % since then and"),
        ("slip, which sim does not log (4 here), lies", "slip, which was not logged before (4 since), lies"),
        ("signal a 4 is above 99 % of sim successes; b", "signal a 4 is above 99 % of the successes before; b"),
    ],
)  # fmt: skip
def test_sentences_are_told_of_before(of_sim, of_before):
    assert told_of_before(of_sim) == of_before


def test_a_release_is_held_against_the_version_before_it(lab):
    old = {"policy": {"name": "bin-pick", "version": "1.3.0"}}
    lab.send([*fell(100, 0, **old), *fell(0, 40, NOON + timedelta(days=3))])
    answer = lab.ask(f"{BERLIN}/slices", against="before")
    assert answer["against"]["name"].startswith("before release 1.4.0 on ")
    assert (answer["n_sim"], answer["n_real"]) == (100, 40)


@pytest.mark.parametrize("window", [{"since": "7d"}, {"until": "1d"}, {"window": "all"}])
def test_another_window_has_no_before(lab, window):
    lab.send([real()])
    refused = lab.get(f"{BERLIN}/ledger", against="before", **window)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/query/against"
    assert lab.get(f"{BERLIN}/drop", against="before").status_code == 422
    assert lab.get(f"{BERLIN}/ledger", against="yesterday").status_code == 422


def test_the_page_can_be_switched_and_keeps_the_switch(changed, service):
    with Browser(service, somebody(changed.project, "viewer")) as browser:
        of_sim = browser.get(BERLIN).text
        assert "/deployments/berlin-line-3?against=before" in of_sim
        assert "Signals, what moved at the change first" in of_sim
        assert of_sim.index('id="signal-0"') < of_sim.index('id="d-standing"') < of_sim.index('id="signal-1"')
        page = browser.get(f"{BERLIN}?against=before").text
        assert "Conditions, before against since" in page and "since only" in page
        assert "against=before&amp;format=csv" in page or "format=csv&amp;table=ledger&amp;against=before" in page
        twin = browser.get(f"{BERLIN}?against=before&format=json").json()["page"]
        for name in HELD:
            assert twin[name] == changed.ask(f"{BERLIN}/{name}", against="before", window="now"), name
        table = browser.get(f"{BERLIN}?against=before&format=csv&table=ledger")
        assert "against-before.csv" in table.headers["content-disposition"]
        report = browser.get(f"{BERLIN}?against=before&format=report").text
        assert "before the change on 7 Oct" in report
        refused = browser.get(f"{BERLIN}?against=before&since=7d")
        assert refused.status_code == 422 and "choose the window now" in refused.text
