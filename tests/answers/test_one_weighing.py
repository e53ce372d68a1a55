"""The ledger, the failure groups, a single episode and the fleet weigh failures alike, in worlds like the demo's."""

from collections import defaultdict
from datetime import UTC, date, datetime

import numpy as np
import pytest
from answers.lab import attempts, real, sim

from gapwatch.answers import load_sides as load_sides_module
from gapwatch.answers.episode_evidence import decided_categories, heaviest_episodes, read_episode_evidence
from gapwatch.answers.failure_weights import NEEDS, weigh_sides
from gapwatch.answers.failures import answer_failures
from gapwatch.answers.leading_categories import kept_now, leading_categories
from gapwatch.answers.ledger import NEEDS as LEDGER_NEEDS
from gapwatch.answers.ledger import answer_ledger
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.question import question_of
from gapwatch.answers.subjects import deployment_subject
from gapwatch.demo.history import story_records
from gapwatch.demo.stories import STORIES
from gapwatch.filters import StatisticsFilter
from gapwatch.store.read import directory, episodes
from gapwatch.taxonomy import Taxonomy
from parts import wait_until

NOW = datetime(2026, 11, 17, tzinfo=UTC)
SEOUL = "seoul-arm-4"


def as_driven(record):
    if record.get("stage") != "shadow":
        return record
    return {name: value for name, value in record.items() if name != "shadow"} | {"stage": "supervised"}


def tell_story(lab, slug, most=None):
    [story] = [story for story in STORIES if story.slug == slug]
    # As if it had driven: in shadow there is no ledger.
    records = [as_driven(record) for record in story_records(story, date(2026, 11, 16))]
    lab.send(records if most is None else records[:: len(records) // most])


def labelled_in_real_only(lab):
    """A deployment whose simulator's failures nobody has looked at."""
    heavy, dropped = {"phase": "lift", "labels": ["too_heavy"]}, {"phase": "lift", "labels": ["dropped"]}
    lab.send(
        [
            *attempts(sim, 900, 60, failure={"phase": "lift"}),
            *attempts(sim, 0, 40, failure={"phase": "approach"}),
            *attempts(real, 200, 40, failure=heavy),
            *attempts(real, 0, 20, failure=dropped),
            *attempts(real, 0, 12, failure={"phase": "approach"}),
        ]
    )


def both_sides(lab, connection, slug, needs):
    subject = deployment_subject(connection, lab.project.id, slug)
    return load_sides(connection, lab.project.id, subject, question_of(StatisticsFilter(), NOW), needs)


def ledger_and_groups(lab, slug):
    """In this process, where a test may say how many failures are read."""
    with lab.project.database.reading(lab.project.id) as connection:
        sides = both_sides(lab, connection, slug, LEDGER_NEEDS)
        weighed = weigh_sides(sides)
        ledger = answer_ledger(sides, weighed)
        return {part.category: part for part in [*ledger.categories, ledger.unattributed]}, answer_failures(
            sides, weighed
        )


def assert_groups_add_up_to_the_ledger(parts, failures):
    assert not failures.groups_left_out
    for groups in (failures.groups, failures.phases):
        sums = defaultdict(lambda: np.zeros(3))
        for group in groups:
            for weight in group.weights:
                sums[weight.category] += (weight.real, weight.sim, weight.excess)
            assert sum(weight.real for weight in group.weights) == pytest.approx(group.real.failures)
            assert sum(weight.sim for weight in group.weights) == pytest.approx(group.sim.failures)
        for category, part in parts.items():
            expected = (part.real_weight, part.sim_weight, part.contribution)
            assert sums[category] == pytest.approx(expected, abs=1e-9), category


def test_the_failure_groups_add_up_to_the_ledger_where_the_contract_differs(lab):
    tell_story(lab, SEOUL)
    parts, failures = ledger_and_groups(lab, SEOUL)
    assert_groups_add_up_to_the_ledger(parts, failures)
    # By phase alone the groups would say visual: robots with a wrong joint order fail in the approach.
    assert max(parts.values(), key=lambda part: part.contribution).category == "interface_contract"
    [approach] = [word for word in failures.phases if word.word == "approach"]
    assert approach.points_to[0] == "interface_contract"
    assert {weight.category: weight.excess for weight in approach.weights}.get("visual", 0.0) < 0.01
    # The API says the same as both.
    answer = lab.ask(f"/deployments/{SEOUL}/failures")
    sums = defaultdict(float)
    for group in answer["groups"]:
        for weight in group["weights"]:
            sums[weight["category"]] += weight["excess"]
    ledger = lab.ask(f"/deployments/{SEOUL}/ledger")
    for part in [*ledger["categories"], ledger["unattributed"]]:
        assert sums[part["category"]] == pytest.approx(part["contribution"], abs=1e-9)


@pytest.mark.parametrize("most_read", [{"real": 1000, "sim": 500}, {"real": 20, "sim": 10}])
def test_they_do_where_one_side_is_labelled_and_where_failures_are_a_sample(lab, most_read, monkeypatch):
    labelled_in_real_only(lab)
    monkeypatch.setattr(load_sides_module, "MOST_FAILED", most_read)
    parts, failures = ledger_and_groups(lab, "berlin-line-3")
    assert_groups_add_up_to_the_ledger(parts, failures)
    # Labels of one side share out only what that side fails above the other: lifts, 60 of 272 against 60 of 1,000.
    assert parts["object_property"].sim_weight == 0
    assert parts["object_property"].contribution == pytest.approx(2 / 3 * (60 / 272 - 60 / 1000), abs=0.01)


def test_the_fleet_names_what_the_deployments_page_names_with_the_same_number(lab):
    tell_story(lab, SEOUL)
    tell_story(lab, "madrid-bin-6")
    database, project_id = lab.project.database, lab.project.id

    def are_equal():
        with database.reading(project_id) as connection:
            ids = {one.slug: one.id for one in directory.deployments(connection, project_id, None, 100)}
            kept = leading_categories(connection, project_id)
            made = {slug: kept_now(connection, project_id, slug, datetime.now(UTC)).lead for slug in ids}
        return len(made) == 2 and kept == {ids[slug]: lead for slug, lead in made.items() if lead is not None}

    wait_until(are_equal, seconds=40, pause_s=1, what="leads that are the ledgers'")


def in_the_ledger(lab, connection, slug):
    """Episode → its weights, of every real failure that the ledger read."""
    sides = both_sides(lab, connection, slug, NEEDS)
    weighed = weigh_sides(sides)
    rows = {episode_id: weighed.real.weights.row(row) for row, episode_id in enumerate(weighed.real.rows.ids)}
    return sides, rows


def as_shown(connection, lab, episode_id):
    record = episodes.find_episode(connection, lab.project.id, episode_id)
    return record, read_episode_evidence(connection, lab.project.id, record, NOW)


@pytest.mark.parametrize(
    "world", [lambda lab: tell_story(lab, SEOUL), lambda lab: tell_story(lab, "lyon-dock-3", 1200)]
)
def test_an_episode_has_the_weights_of_its_row_in_the_ledger(lab, world):
    world(lab)
    with lab.project.database.reading(lab.project.id) as connection:
        slug = lab.ask("/deployments")["deployments"][0]["slug"]
        sides, rows = in_the_ledger(lab, connection, slug)
        assert len(rows) > 50
        decided = 0
        for episode_id, weights in list(rows.items())[:60]:
            record, evidence = as_shown(connection, lab, episode_id)
            assert evidence.deployment == slug
            assert {share.category: share.weight for share in evidence.shares} == weights
            assert all(share.why for share in evidence.shares)
            # A list says only what people and labels say, and that has weight in the ledger, too.
            [categories] = decided_categories([record.get("failure", {})], Taxonomy())
            assert {*categories} <= weights.keys()
            decided += bool(categories)
        assert 0 < decided < 60
        leading = max(rows.values(), key=lambda weights: max(weights.values()))
        for listed in heaviest_episodes(sides, next(iter(leading)), 20):
            _, evidence = as_shown(connection, lab, listed.id)
            [share] = [share for share in evidence.shares if share.category == next(iter(leading))]
            assert (share.weight, tuple(share.why)) == (listed.weight, listed.evidence)


def test_labels_of_one_side_alone_are_no_gap(lab):
    lab.send(
        [
            *attempts(sim, 300, 30, failure={"phase": "lift", "labels": ["too_heavy"]}),
            *attempts(real, 100, 10, failure={"phase": "lift"}),
        ]
    )
    parts, _ = ledger_and_groups(lab, "berlin-line-3")
    assert all(part.contribution == pytest.approx(0, abs=1e-9) for part in parts.values())
