"""An answer costs a small, fixed number of queries, and all answers of a page together hardly more."""

import gc
import weakref
from datetime import UTC, datetime

import pytest
from answers.lab import NOON, attempts, real, sim

from gapwatch.answers import comparison_side
from gapwatch.answers.comparison import compare_deployment
from gapwatch.answers.contract import answer_contract
from gapwatch.answers.drop import answer_drop
from gapwatch.answers.failures import answer_failures
from gapwatch.answers.fleet import answer_fleet
from gapwatch.answers.ledger import answer_ledger
from gapwatch.answers.onset import answer_onset
from gapwatch.answers.prediction import answer_prediction
from gapwatch.answers.question import question_of
from gapwatch.answers.signals import answer_signals
from gapwatch.answers.slices import answer_slices
from gapwatch.answers.trend import answer_trend
from gapwatch.filters import DropFilter

ANSWERS = (
    answer_drop,
    answer_ledger,
    answer_slices,
    answer_signals,
    answer_trend,
    answer_failures,
    answer_contract,
    answer_onset,
    answer_prediction,
)
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


def count(lab, queries, asked, answers):
    """Of the second time: what cells and contracts are called is remembered by then."""
    for _ in range(2):
        queries.clear()
        with lab.project.database.reading() as connection:
            comparison = compare_deployment(
                connection, lab.project.id, "berlin-line-3", question_of(asked, NOW), whole=len(answers) > 1
            )
            for answer in answers:
                answer(comparison)
    return len(queries)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_an_answer_takes_at_most_eight_queries(busy, queries, answer):
    assert 2 <= count(busy, queries, DropFilter(), [answer]) <= 8
    assert count(busy, queries, DropFilter(condition=["lighting:dim"]), [answer]) <= 16
    # A window that ends within a day reads its ends from the episodes.
    assert (
        count(busy, queries, DropFilter(since="2026-10-05T07:00:00Z", until="2026-10-09T05:00:00Z"), [answer])
        <= 13
    )


def test_all_answers_of_a_page_take_seven(busy, queries, monkeypatch):
    assert count(busy, queries, DropFilter(), ANSWERS) == 7
    # Of many failures a sample is read, over days that the page knows already.
    monkeypatch.setattr(comparison_side, "MOST_FAILED", {"real": 10, "sim": 5})
    assert count(busy, queries, DropFilter(), ANSWERS) == 7


def test_the_number_of_queries_does_not_grow_with_the_episodes_or_the_fleet(busy, queries):
    before = count(busy, queries, DropFilter(), ANSWERS)
    fields = {"conditions": {"lighting": "dim"}, "session": "late", "signals": {"peak_force_n": 1.0}}
    busy.send([*attempts(sim, 700, 100, **fields), *attempts(real, 300, 300, **fields)])
    assert count(busy, queries, DropFilter(), ANSWERS) == before
    fleet = []
    for number in range(2):
        busy.send(real(deployment=f"line-{number}-{n}") for n in range(20))
        queries.clear()
        with busy.project.database.reading() as connection:
            found = answer_fleet(connection, busy.project.id, question_of(DropFilter(), NOW), None, 100)
        fleet.append(len(queries))
    assert len(found.deployments) == 41
    assert fleet[0] == fleet[1] <= 6


@pytest.mark.parametrize("whole", [False, True])
def test_what_was_read_goes_with_its_comparison(busy, whole):
    """Not when the garbage collector comes by, which would cost every few pages a sixth of their time."""
    gc.disable()
    try:
        with busy.project.database.reading() as connection:
            comparison = compare_deployment(
                connection, busy.project.id, "berlin-line-3", question_of(DropFilter(), NOW), whole=whole
            )
            for answer in ANSWERS:
                answer(comparison)
            kept = [weakref.ref(one) for one in (comparison, comparison.sim, comparison.sim.read)]
            del comparison
            assert [one() for one in kept] == [None, None, None]
    finally:
        gc.enable()
