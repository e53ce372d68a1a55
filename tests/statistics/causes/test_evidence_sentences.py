import numpy as np
import pytest
from failed_episodes import SUSPECTS, TAXONOMY, USUAL, episodes
from hypothesis import given, settings
from hypothesis import strategies as st

from gapwatch.statistics.causes.evidence_claims import far_out
from gapwatch.statistics.causes.evidence_sentences import evidence_sentences
from gapwatch.statistics.causes.failed_episodes import FailedEpisode, batch_of
from gapwatch.statistics.causes.label_balance import even_out
from gapwatch.statistics.causes.signal_ranges import CONTRACT_SIGNAL, UsualRange, unusual_side
from gapwatch.statistics.causes.weighing import weigh

steady = settings(deadline=None, derandomize=True, database=None, max_examples=300)


def sentences_of(episode, usual=None, suspects=()):
    weights = weigh(batch_of([episode]), TAXONOMY, usual, suspects).row(0)
    return [str(sentence) for sentence in evidence_sentences(episode, weights, TAXONOMY, usual, suspects)]


def named(sentences):
    return {category for sentence in sentences for category in sentence.categories}


def with_weight(weights):
    return weights.keys() - {"unattributed"}


def test_the_page_is_told_why():
    episode = FailedEpisode(
        labels=["slip"], phase="approach", signals={"peak_force_n": 31.2}, conditions={"lighting": "dim"}
    )
    # The label decided: what points elsewhere has no weight, and is not said.
    assert sentences_of(episode, USUAL, {("lighting", "dim")}) == [
        "label slip → contact_dynamics",
        "signal peak_force_n 31.2 is above 99 % of sim successes → contact_dynamics",
    ]
    assert sentences_of(episode._replace(labels=["what"]), USUAL, {("lighting", "dim")}) == [
        "signal peak_force_n 31.2 is above 99 % of sim successes → contact_dynamics",
        "lighting dim, where real fails more → visual",
        "failed in phase approach → visual",
    ]
    assert sentences_of(episode._replace(category="actuation")) == ["a person chose actuation → actuation"]
    assert sentences_of(FailedEpisode()) == []


@pytest.mark.parametrize(("fields", "words"), [(1, "1 field"), (3, "3 fields")])
def test_a_contract_that_differs_is_said_in_words(fields, words):
    usual = {CONTRACT_SIGNAL: UsualRange(0, 0, 0, n=100)}
    episode = FailedEpisode(signals={CONTRACT_SIGNAL: fields})
    assert sentences_of(episode, usual) == [f"the contract differs in {words} → interface_contract"]


@steady
@given(episodes)
def test_sentences_name_exactly_the_categories_that_have_weight(episode):
    weights = weigh(batch_of([episode]), TAXONOMY, USUAL, SUSPECTS).row(0)
    sentences = evidence_sentences(episode, weights, TAXONOMY, USUAL, SUSPECTS)
    assert named(sentences) - {"unattributed"} == with_weight(weights)


@steady
@given(st.lists(episodes, min_size=1, max_size=12), st.lists(episodes, min_size=1, max_size=12))
def test_so_do_those_of_a_side_that_was_evened_out(some, others):
    some = [episode._replace(category=None, labels=()) for episode in some]
    in_sim, in_real = batch_of(some), batch_of(others)
    suspects = SUSPECTS - {("object", None)}
    plain = [weigh(batch, TAXONOMY, USUAL, suspects) for batch in (in_sim, in_real)]
    of_sim, _, balance = even_out(in_sim, plain[0], in_real, plain[1])
    for row, episode in enumerate(some):
        weights = of_sim.row(row)
        sentences = evidence_sentences(episode, weights, TAXONOMY, USUAL, suspects, balance)
        assert named(sentences) - {"unattributed"} == with_weight(weights)


@steady
@given(st.sampled_from([*USUAL]), st.floats(-40, 40))
def test_a_value_is_said_to_be_unusual_where_it_weighs(name, value):
    usual = USUAL[name]
    assert (far_out(np.array([value]), usual)[0] > 0) <= (unusual_side(value, usual) is not None)
