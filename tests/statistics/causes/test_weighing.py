import random

import pytest
from failed_episodes import TAXONOMY, episodes
from hypothesis import given, settings
from hypothesis import strategies as st

from gapwatch.statistics.causes.failed_episodes import FailedEpisode, batch_of
from gapwatch.statistics.causes.ledger import make_ledger
from gapwatch.statistics.causes.weighing import LABELS_ONLY, Strengths, ledger_side, weigh

steady = settings(deadline=None, derandomize=True, database=None, max_examples=300)


def weights_of(episode, *more, **named):
    return weigh(batch_of([episode]), *more, **named).row(0)


@pytest.mark.parametrize(
    ("episode", "weights"),
    [
        (FailedEpisode(), {"unattributed": 1}),
        (FailedEpisode(category="actuation", labels=["slip"], phase="lift"), {"actuation": 1}),
        (FailedEpisode(labels=["slip"], phase="approach"), {"contact_dynamics": 1}),
        (FailedEpisode(labels=["slip", "glare"]), {"contact_dynamics": 0.5, "visual": 0.5}),
        (FailedEpisode(labels=["slip", "dropped", "slip", "glare"]), {"contact_dynamics": 2 / 3, "visual": 1 / 3}),
        (FailedEpisode(labels=["timeout"], phase="lift"), {"contact_dynamics": 1}),
        (FailedEpisode(phase="place"), {"unattributed": 1}),
    ],
)
def test_words_are_weighed_in_the_order_of_the_rule(episode, weights):
    assert weights_of(episode, TAXONOMY) == pytest.approx(weights, abs=1 / 1024)


def test_a_project_may_trust_a_phase_less():
    weights = weights_of(FailedEpisode(phase="lift"), TAXONOMY, strengths=Strengths(phase=0.5))
    assert weights == {"contact_dynamics": 0.5, "unattributed": 0.5}


@steady
@given(st.lists(episodes, max_size=12), st.sampled_from([Strengths(), Strengths(0.7, 0.9)]))
def test_all_rows_at_once_get_the_weights_of_each_alone(some, strengths):
    weights = weigh(batch_of(some), TAXONOMY, strengths)
    alone = [weights_of(episode, TAXONOMY, strengths) for episode in some]
    assert [weights.row(row) for row in range(len(some))] == alone
    assert (weights.parts.sum(axis=1) == 1024).all()
    assert (weights.parts >= 0).all()


@steady
@given(episodes, st.randoms())
def test_the_order_in_which_evidence_is_written_does_not_matter(episode, chance):
    def shuffled(items):
        items = list(items)
        chance.shuffle(items)
        return items

    again = FailedEpisode(
        episode.category,
        shuffled(episode.labels),
        episode.phase,
        dict(shuffled((episode.signals or {}).items())),
        dict(shuffled((episode.conditions or {}).items())),
    )
    first, second = (weights_of(one, TAXONOMY) for one in (episode, again))
    assert first == second


@steady
@given(st.lists(episodes, max_size=12))
def test_what_people_and_labels_decide_is_the_same_by_labels_only(some):
    whole, by_labels = (weigh(batch_of(some), TAXONOMY, strengths) for strengths in (Strengths(), LABELS_ONLY))
    assert (whole.decided == by_labels.decided).all()
    assert (whole.parts[whole.decided] == by_labels.parts[whole.decided]).all()
    # Nothing is said of the others.
    assert (by_labels.of("unattributed")[~whole.decided] == 1).all()


def test_sums_of_weights_are_exact_in_any_order():
    chance = random.Random(5)
    some = [
        FailedEpisode(labels=chance.sample(["slip", "glare", "ood", "lag"], 3), phase="lift") for _ in range(1000)
    ]
    weights = weigh(batch_of(some), TAXONOMY).of("visual").tolist()
    sums = set()
    for _ in range(20):
        chance.shuffle(weights)
        sums.add((sum(weights), sum(w * w for w in weights)))
    assert len(sums) == 1


def test_a_side_adds_up_and_counts_rows_that_stand_for_several():
    some = [FailedEpisode(labels=["slip"]), FailedEpisode(phase="perceive"), FailedEpisode()]
    batch = batch_of(some, counts=[4, 2, 3])
    side = ledger_side(100, 9, batch, weigh(batch, TAXONOMY))
    assert side.totals == {"contact_dynamics": 4, "visual": 2}
    assert side.squares == {"contact_dynamics": 4, "visual": 2, "unattributed": 3}
    nothing = batch_of([])
    ledger = make_ledger(ledger_side(50, 0, nothing, weigh(nothing, TAXONOMY)), side)
    assert ledger.drop == pytest.approx(0.09)
    assert sum(e.contribution for e in ledger.entries) + ledger.unattributed.contribution == pytest.approx(0.09)


def test_sessions_carry_their_own_sums():
    some = [FailedEpisode(labels=["slip"]), FailedEpisode(labels=["slip"]), FailedEpisode(labels=["glare"])]
    batch = batch_of(some, sessions=["am", "pm", "pm"])
    side = ledger_side(30, 3, batch, weigh(batch, TAXONOMY), {"am": (10, 1), "pm": (10, 2), "night": (10, 0)})
    assert [(s.n, s.failures, dict(s.totals)) for s in side.sessions] == [
        (10, 1, {"contact_dynamics": 1}),
        (10, 2, {"contact_dynamics": 1, "visual": 1}),
        (10, 0, {}),
    ]
