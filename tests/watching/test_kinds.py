"""What holds for every kind of rule, and that each is in the documents as its module says."""

import pytest

from gapwatch.settings import ROOT
from gapwatch.watching.kinds import DEFAULT_RULES, RULE_KINDS
from gapwatch.watching.rules import RuleParams

DOCUMENT = (ROOT / "docs" / "alerts.md").read_text()


def in_document(*rows):
    table = "\n".join(rows)
    assert f"\n{table}\n\n" in DOCUMENT, f"docs/alerts.md needs:\n{table}"


def test_the_kinds_of_the_documents_are_those_of_the_registry():
    rows = ["| kind | fires when | parameters |", "|---|---|---|"]
    for name, kind in RULE_KINDS.items():
        own = [field for field in kind.params.model_fields if field not in RuleParams.model_fields]
        parameters = ", ".join(f"`{field}`" for field in own)
        rows.append(f"| `{name}` | {kind.label} | {parameters} |")
    in_document(*rows)


def test_the_default_rules_of_the_documents_are_those_of_the_registry():
    fires_when = {default.name: default.fires_when for kind in RULE_KINDS.values() for default in kind.defaults}
    in_document(
        "| default rule | kind | severity | fires when |",
        "|---|---|---|---|",
        *(f"| `{r.name}` | {r.kind} | {r.severity} | {fires_when[r.name]} |" for r in DEFAULT_RULES),
    )


def test_no_two_kinds_share_a_place_in_a_notification():
    assert len({kind.order for kind in RULE_KINDS.values()}) == len(RULE_KINDS)


@pytest.mark.parametrize("name", RULE_KINDS)
def test_a_kind_says_what_its_parameters_demand(name):
    kind = RULE_KINDS[name]
    assert all(kind.limits(kind.params()))


def test_limits_have_the_numbers_that_people_ask_about():
    limits = {name: kind.limits(kind.params()) for name, kind in RULE_KINDS.items()}
    assert limits["drop"] == ["more than 5.0 points", "at most one false alarm in 30\u202f000 episodes"]
    assert limits["drift"][0] == "success"
    assert limits["no_data"] == ["quiet for 30 min at work"]
