"""Do both sides mean the same: the contracts they ran under, field by field."""

from __future__ import annotations

from dataclasses import dataclass

from gapwatch.answers.answer import Answer, FieldDifference
from gapwatch.answers.answer_kind import AnswerKind
from gapwatch.answers.contract_pairs import ContractUse
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields

NEEDS = ANSWER_FIELDS


@dataclass(frozen=True, kw_only=True)
class ContractAnswer(Answer):
    """`verdict`: comparable, differs, or unknown where a side sent no contract. Gravest difference first."""

    verdict: str
    differences: tuple[FieldDifference, ...]
    sim: tuple[ContractUse, ...]
    real: tuple[ContractUse, ...]
    sim_contracts: int
    real_contracts: int
    method: str


def answer_contract(sides: Sides) -> ContractAnswer:
    pair = sides.contract
    return ContractAnswer(
        **answer_fields(sides, pair.diff.reason),
        verdict=pair.diff.verdict,
        differences=pair.differences,
        sim=pair.sim.uses,
        real=pair.real.uses,
        sim_contracts=pair.sim.count,
        real_contracts=pair.real.count,
        method="the most used contract of each side, field by field; numbers equal within a millionth",
    )


KIND = AnswerKind(
    name="contract",
    answer_type=ContractAnswer,
    answer=answer_contract,
    needs=NEEDS,
    summary="Do both sides mean the same",
    gives="The contracts, field by field.",
    description="The contracts that sim and real ran under, and each field in which the most used ones differ.",
)
