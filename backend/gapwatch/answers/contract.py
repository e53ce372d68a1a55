"""Do both sides mean the same: the contracts they ran under, field by field."""

from __future__ import annotations

from dataclasses import dataclass

from gapwatch.answers.answer import Answer, FieldDifference
from gapwatch.answers.answer_kind import AnswerKind
from gapwatch.answers.contract_pairs import ContractUse, RobotContracts
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields

NEEDS = ANSWER_FIELDS


@dataclass(frozen=True, kw_only=True)
class ContractAnswer(Answer):
    """`verdict`: comparable, differs if any real contract does, or unknown where a side sent no contract.

    `differences` are those of the most used real contract, or else of the most used one that differs, gravest
    first; each contract of `real` has its own. `robots`: how each robot's contracts differ, by the newest
    episodes; there where real ran under several, or where a filter chooses some.
    """

    verdict: str
    differences: tuple[FieldDifference, ...]
    sim: tuple[ContractUse, ...]
    real: tuple[ContractUse, ...]
    sim_contracts: int
    real_contracts: int
    robots: tuple[RobotContracts, ...]
    method: str


def answer_contract(sides: Sides) -> ContractAnswer:
    pair = sides.contract
    return ContractAnswer(
        **answer_fields(sides, pair.diff.reason),
        verdict=pair.verdict,
        differences=pair.differences,
        sim=pair.sim.uses,
        real=pair.real.uses,
        sim_contracts=pair.sim.count,
        real_contracts=pair.real.count,
        robots=pair.robots,
        method="every real contract against the nearest of sim, field by field; numbers equal within a millionth",
    )


KIND = AnswerKind(
    name="contract",
    answer_type=ContractAnswer,
    answer=answer_contract,
    needs=NEEDS,
    summary="Do both sides mean the same",
    gives="The contracts, field by field.",
    description=(
        "The contracts that sim and real ran under, and each field in which a real one differs from the nearest "
        "of those that sim is run under; with the robots that ran under it, by the newest 5,000 episodes."
    ),
)
