"""An answer costs a small, fixed number of queries, and all answers of a page together hardly more."""

import functools
import gc
import operator
import weakref
from datetime import UTC, datetime

import pytest
from answers.lab import NOON, attempts, real, sim

from gapwatch.answers import (
    load_sides,
)
from gapwatch.answers.catalogue import DEPLOYMENT_ANSWERS
from gapwatch.answers.fleet import answer_fleet
from gapwatch.answers.needs import Need, NotLoaded
from gapwatch.answers.question import question_of
from gapwatch.answers.subjects import deployment_subject
from gapwatch.filters import DropFilter

ANSWERS = {kind.answer: kind.needs for kind in DEPLOYMENT_ANSWERS}
ALL_NEEDS = functools.reduce(operator.or_, ANSWERS.values())
NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def busy(lab):
    """A deployment with everything that is optional, on a few days."""
    for day in range(6):
        fields = {
            "at": NOON.replace(day=5 + day, hour=3 * day),
            "conditions": {"lighting": "dim" if day % 2 else "bright", "clutter": day},
            "signals": {"peak_force_n": 20.0 + day},
            "session": f"day-{day}",
            "contract": {"control_hz": 50},
            "reward": 0.5,
        }
        failed = fields | {"failure": {"phase": "grasp", "labels": ["slip"]}}
        lab.send([*attempts(sim, 15, 0, **fields), *attempts(sim, 0, 3, **failed)])
        lab.send([*attempts(real, 8, 0, pair=f"p{day}", **fields), *attempts(real, 0, 5, **failed)])
    return lab


def load(lab, asked, needs):
    with lab.project.database.reading(lab.project.id) as connection:
        subject = deployment_subject(connection, lab.project.id, "berlin-line-3")
        return load_sides.load_sides(connection, lab.project.id, subject, question_of(asked, NOW), needs)


def count(lab, queries, asked, answers):
    """Of the second time: what cells and contracts are called is cached by then. Answering sends nothing more."""
    needs = functools.reduce(operator.or_, (ANSWERS[answer] for answer in answers))
    for _ in range(2):
        queries.clear()
        sides = load(lab, asked, needs)
        loaded = len(queries)
        for answer in answers:
            answer(sides)
        assert len(queries) == loaded
    return loaded


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_an_answer_takes_at_most_eight_queries(busy, queries, answer):
    assert 2 <= count(busy, queries, DropFilter(), [answer]) <= 8
    assert count(busy, queries, DropFilter(condition=["lighting:dim"]), [answer]) <= 16
    # A window that ends within a day reads its ends from the episodes.
    assert (
        count(busy, queries, DropFilter(since="2026-10-05T07:00:00Z", until="2026-10-09T05:00:00Z"), [answer])
        <= 14
    )


def test_all_answers_of_a_page_take_seven(busy, queries, monkeypatch):
    assert count(busy, queries, DropFilter(), ANSWERS) == 7
    # Of many failures a sample is read, over days that the page knows already.
    monkeypatch.setattr(load_sides, "MOST_FAILED", {"real": 10, "sim": 5})
    assert count(busy, queries, DropFilter(), ANSWERS) == 7


def test_the_number_of_queries_does_not_grow_with_the_episodes_or_the_fleet(busy, queries):
    before = count(busy, queries, DropFilter(), ANSWERS)
    fields = {"conditions": {"lighting": "dim"}, "session": "late", "signals": {"peak_force_n": 1.0}}
    fields["contract"] = {"control_hz": 50}
    busy.send([*attempts(sim, 700, 100, **fields), *attempts(real, 300, 300, **fields)])
    assert count(busy, queries, DropFilter(), ANSWERS) == before
    # Who ran under which is asked once, where there are several contracts.
    busy.send(real(contract={"control_hz": 20}) for _ in range(5))
    assert count(busy, queries, DropFilter(), ANSWERS) == before + 1
    fleet = []
    for number in range(2):
        busy.send(real(deployment=f"line-{number}-{n}") for n in range(20))
        queries.clear()
        with busy.project.database.reading(busy.project.id) as connection:
            found = answer_fleet(connection, busy.project.id, question_of(DropFilter(), NOW), None, 100)
        fleet.append(len(queries))
    assert len(found.deployments) == 41
    assert fleet[0] == fleet[1] <= 6


@pytest.mark.parametrize("asked", [DropFilter(), DropFilter(condition=["lighting:dim"])], ids=["all", "filtered"])
def test_what_was_loaded_goes_with_its_sides(busy, asked):
    """Not when the garbage collector comes by, which would cost every few pages a sixth of their time."""
    gc.disable()
    try:
        sides = load(busy, asked, ALL_NEEDS)
        for answer in ANSWERS:
            answer(sides)
        kept = [weakref.ref(part) for part in (sides, sides.sim, sides.real.failed, sides.table)]
        del sides
        assert [part() for part in kept] == [None, None, None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_an_answer_needs_what_it_declares_and_says_what_is_missing(busy, answer):
    sides = load(busy, DropFilter(), Need(0))
    assert (sides.sim.n, sides.real.n) == (108, 78)
    with pytest.raises(NotLoaded, match=r"Need\.\w+ was not loaded"):
        answer(sides)


@pytest.mark.parametrize(
    ("need", "read"),
    [
        (Need.CELLS, lambda sides: sides.real.cells),
        (Need.SESSIONS, lambda sides: sides.sim.session_effect),
        (Need.CONTRACTS, lambda sides: sides.warnings),
        (Need.FAILURE_COUNTS, lambda sides: sides.real.failure_counts),
        (Need.FAILED_EPISODES, lambda sides: sides.real.failed),
        (Need.METRICS, lambda sides: sides.real.metrics),
        (Need.SIGNALS, lambda sides: sides.sim.signals),
        (Need.PAIRS, lambda sides: sides.pairs),
        (Need.DAYS, lambda sides: sides.onset),
        (Need.TREND, lambda sides: sides.trend),
        (Need.TASKS, lambda sides: sides.tasks),
    ],
    ids=lambda value: value.name if isinstance(value, Need) else "",
)
@pytest.mark.parametrize("asked", [DropFilter(), DropFilter(condition=["lighting:dim"])], ids=["all", "filtered"])
def test_reading_what_was_not_loaded_names_the_need(busy, need, read, asked):
    with pytest.raises(NotLoaded, match=rf"Need\.{need.name} was not loaded"):
        read(load(busy, asked, ~need & ~Need.DROP & ~Need.TREND if need is not Need.CELLS else Need.DAYS))
