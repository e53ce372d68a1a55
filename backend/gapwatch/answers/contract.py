"""Do both sides mean the same: the contracts they ran under, field by field."""

from __future__ import annotations

from dataclasses import dataclass

from gapwatch.answers.answer import Answer, FieldDifference
from gapwatch.answers.comparison import Comparison
from gapwatch.answers.contract_pairs import ContractUse


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


def answer_contract(comparison: Comparison) -> ContractAnswer:
    found = comparison.contract
    return ContractAnswer(
        **comparison.told(found.diff.reason),
        verdict=found.diff.verdict,
        differences=found.differences,
        sim=found.sim.uses,
        real=found.real.uses,
        sim_contracts=found.sim.count,
        real_contracts=found.real.count,
        method="the most used contract of each side, field by field; numbers equal within a millionth",
    )
