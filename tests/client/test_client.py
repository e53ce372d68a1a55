"""From `with gw.episode(…)` to a stored row: outcomes, summaries, and nothing that reaches the caller's loop."""

import json
import logging
import math
from datetime import UTC, datetime, timedelta

import pytest
from gapwatch_client import Contract, Gapwatch, transport

SIM = {"domain": "sim", "task": "reach", "policy": "bin-pick", "version": "1.4.0", "simulator": "mujoco@3.3.0"}
REAL = {"domain": "real", "task": "reach", "policy": "bin-pick@1.4.0", "deployment": "berlin-line-3"}


@pytest.fixture
def gw(project, tmp_path):
    with Gapwatch(project.url, project.keys["ingest"], spool=tmp_path / "spool", linger_s=0) as client:
        yield client


def stored(project, identity):
    with project.client("read") as reader:
        return reader.get(f"/episodes/{identity}").json()


def test_an_episode_of_a_control_loop_is_stored_with_everything_it_was_told(gw, project):
    contract = Contract(control_hz=50).action("arm", order=["j1", "j2"], unit="rad/s", scale=0.5)
    with gw.episode(**REAL, robot="ur5e-012", site="berlin", stage="supervised", contract=contract) as ep:
        ep.condition("lighting", "dim")
        ep.condition("clutter", 3)
        ep.condition("human_present", False)
        ep.signal("image_brightness", 0.31)
        ep.metric("energy_j", 210)
        for force in range(1, 101):
            ep.observe("force_n", -force)
        ep.reward(0.41)
        ep.intervention()
        ep.provenance("seed", 4)
        ep.link("video", "https://example.com/1.mp4")
        ep.fail(phase="contact", labels=["slip"], note="lost grip")
    assert gw.flush()
    found = stored(project, ep.id)
    assert found["outcome"] == "failure"
    assert found["failure"] == {"phase": "contact", "labels": ["slip"], "note": "lost grip"}
    assert found["conditions"] == {"lighting": "dim", "clutter": 3, "human_present": False}
    assert found["contract"]["action"]["arm"] == {"order": ["j1", "j2"], "unit": "rad/s", "scale": 0.5}
    assert found["signals"]["force_n_peak"] == 100
    assert found["signals"]["force_n_p95"] == pytest.approx(95, rel=0.01)
    assert found["signals"]["force_n_rms"] == pytest.approx(math.sqrt(sum(f * f for f in range(101)) / 100))
    assert found["signals"]["force_n_mean"] == pytest.approx(-50.5)
    assert found["safety"] == {"interventions": 1}
    assert found["reward"] == 0.41
    assert 0 <= found["duration_s"] < 5


def test_an_exception_ends_the_episode_as_aborted_and_goes_on_to_its_owner(gw, project):
    with pytest.raises(ZeroDivisionError), gw.episode(**REAL) as ep:
        ep.fail(phase="grasp")
        raise ZeroDivisionError("the user's own")
    assert gw.flush()
    found = stored(project, ep.id)
    assert found["outcome"] == "aborted"
    assert found["failure"]["note"] == "ZeroDivisionError: the user's own"


def test_outcomes_without_a_with_block_and_ending_twice(gw, project):
    kinds = {
        "success": lambda ep: None,
        "aborted": lambda ep: ep.abort("stop", phase="approach"),
        "abandoned": lambda ep: ep.abandon("shift ended"),
    }
    episodes = {}
    for outcome, say in kinds.items():
        ep = episodes[outcome] = gw.episode(**SIM)
        say(ep)
        ep.end()
        ep.end("failure")
    assert gw.flush()
    assert project.stored() == len(kinds)
    assert {outcome: stored(project, ep.id)["outcome"] for outcome, ep in episodes.items()} == {
        k: k for k in kinds
    }


def test_signals_said_by_hand_need_no_stream_and_win_over_one(gw, project):
    with gw.episode(**REAL) as by_hand:
        by_hand.signal("force_n_peak", 7)
    with gw.episode(**REAL) as both:
        both.signal("force_n_peak", 7)
        both.observe("force_n", 3)
    assert gw.flush()
    assert stored(project, by_hand.id)["signals"] == {"force_n_peak": 7}
    assert stored(project, both.id)["signals"]["force_n_peak"] == 7
    assert stored(project, both.id)["signals"]["force_n_rms"] == 3


def test_defaults_are_said_once_and_sim_is_known_by_its_simulator(project, tmp_path):
    with Gapwatch(project.url, project.keys["ingest"], tmp_path, task="reach", policy="bin-pick", version=2) as gw:
        gw.episode(simulator=("isaac", "5.0")).end()
        gw.episode(deployment="berlin-line-3", version="3").end()
        assert gw.flush()
    found = project.rows(
        "SELECT domain, simulator_id IS NOT NULL FROM episodes WHERE project_id = :p ORDER BY domain"
    )
    assert found == [("real", False), ("sim", True)]


def test_nothing_a_loop_calls_raises_and_what_cannot_be_kept_is_told_once(gw, project, caplog):
    class Odd:
        def __str__(self):
            raise RuntimeError("even its text")

    with caplog.at_level(logging.WARNING, "gapwatch_client"), gw.episode(**REAL, tsak="typo", conditions=5) as ep:
        for _ in range(50):
            ep.signal("nan", math.nan)
            ep.observe("mixed", math.inf)
            ep.observe("text", "no number")
        ep.observe("mixed", 2.0)
        ep.metric("none", None)
        ep.condition("odd", Odd())
        ep.condition("object", "mug")
        ep.embedding(["x"])
        ep.fail(labels=[Odd()])
        ep.violation("many")
        ep.provenance("nested", float("nan"))
    assert gw.flush()
    found = stored(project, ep.id)
    assert found["signals"] == {"mixed_peak": 2, "mixed_p95": 2, "mixed_rms": 2, "mixed_mean": 2}
    assert found["outcome"] == "failure"
    assert found["conditions"] == {"object": "mug"}
    complaints = gw.status()["complaints"]
    assert complaints["signals"] == 50
    assert sum("signals: nan" in text for text in caplog.messages) == 1
    assert any("tsak" in text for text in caplog.messages)


def test_a_refused_record_goes_to_the_dead_letter_file_with_the_servers_reasons(gw, project):
    with gw.episode(**REAL | {"deployment": None}):
        pass
    gw.episode(**REAL).end()
    assert gw.flush()
    [line] = (gw.spool_dir / "refused.ndjson").read_text().splitlines()
    entry = json.loads(line)
    [reason] = entry["reasons"]
    assert (reason["pointer"], reason["code"]) == ("/deployment", "missing")
    assert entry["record"]["task"] == "reach"
    assert project.stored() == 1
    status = gw.status()
    assert (status["accepted"], status["refused"], status["pending"]["real"]) == (1, 1, 0)


def test_a_record_too_large_for_the_service_is_not_sent_in_vain(gw):
    gw.episode(**REAL, contract={"map": "x" * 2_000_000}).end()
    assert gw.flush()
    [entry] = gw._refused
    assert entry["reasons"][0]["code"] == "record-too-large"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"url": "gapwatch.example.com", "key": "gw_x"}, "no address"),
        ({"url": "http://localhost", "key": ""}, "key create"),
        ({"url": "http://localhost", "key": "gw_x", "tsak": "reach"}, "tsak"),
    ],
)
def test_wrong_arguments_are_told_where_the_client_is_made(arguments, said, tmp_path):
    with pytest.raises((ValueError, TypeError), match=said):
        Gapwatch(**arguments, spool=tmp_path)


def test_a_clock_that_is_off_is_reported(project, tmp_path, monkeypatch):
    class Fast(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(UTC) + timedelta(minutes=10)

    monkeypatch.setattr(transport, "datetime", Fast)
    with Gapwatch(project.url, project.keys["ingest"], tmp_path, linger_s=0) as gw:
        gw.episode(**REAL).end()
        assert gw.flush()
        assert gw.status()["clock_skew_s"] == pytest.approx(600, abs=5)
    assert project.value("SELECT clock_skew_s FROM episodes WHERE project_id = :p") == pytest.approx(600, abs=5)
