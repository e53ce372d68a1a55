import pytest
from failed_episodes import TAXONOMY, episodes
from hypothesis import given, settings

from bench.attribution_worlds import BY_NAME, two_sides
from gapwatch.statistics.causes.evidence_sentences import evidence_sentences, word_sentences
from gapwatch.statistics.causes.failed_episodes import FailedEpisode, batch_of
from gapwatch.statistics.causes.responsibility import find_responsibility, weigh_failures
from gapwatch.statistics.causes.term_facts import term_facts
from gapwatch.statistics.causes.weighing import weigh

steady = settings(deadline=None, derandomize=True, database=None, max_examples=200)


@pytest.fixture(scope="module")
def more_dim_light():
    sim, real = two_sides(BY_NAME["mix: more dim light"], 200, 3)
    basis, fitted = find_responsibility(sim, real, TAXONOMY)
    return basis, term_facts(fitted, sim, real)


def said(episode, basis, facts, domain="real"):
    weights = weigh_failures(basis, batch_of([episode]), domain).row(0)
    return weights, evidence_sentences(episode, weights, domain, basis, facts)


def test_a_cause_is_told_by_how_frequent_it_is_and_what_it_costs(more_dim_light):
    basis, facts = more_dim_light
    _, sentences = said(FailedEpisode(conditions={"lighting": "dim"}), basis, facts)
    [sentence] = [one for one in sentences if "visual" in one.categories]
    assert sentence.text.startswith("lighting dim is ")
    assert " times as frequent here and costs " in sentence.text
    assert sentence.text.endswith(" points wherever it occurs")


def test_a_person_and_a_label_are_told_first(more_dim_light):
    basis, facts = more_dim_light
    _, sentences = said(FailedEpisode(labels=["slip"], conditions={"lighting": "dim"}), basis, facts)
    assert str(sentences[0]) == "label slip → contact_dynamics"
    _, sentences = said(FailedEpisode(category="actuation", labels=["slip"]), basis, facts)
    assert [str(one) for one in sentences] == ["a person chose actuation → actuation"]


@pytest.mark.parametrize("domain", ["sim", "real"])
@steady
@given(episode=episodes)
def test_sentences_name_exactly_the_categories_that_have_weight(more_dim_light, domain, episode):
    weights, sentences = said(episode, *more_dim_light, domain)
    named = {category for sentence in sentences for category in sentence.categories}
    assert named - {"unattributed"} == weights.keys() - {"unattributed"}


@steady
@given(episodes)
def test_so_do_those_of_words_alone(episode):
    weights = weigh(batch_of([episode]), TAXONOMY).row(0)
    sentences = word_sentences(episode, weights, TAXONOMY)
    named = {category for sentence in sentences for category in sentence.categories}
    assert named - {"unattributed"} == weights.keys() - {"unattributed"}
