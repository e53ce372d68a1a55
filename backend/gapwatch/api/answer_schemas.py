"""What the statistics calls answer, for the OpenAPI document: schemas made from the answers' own classes."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from gapwatch.answers.contract import ContractAnswer
from gapwatch.answers.deployment import DeploymentAnswer
from gapwatch.answers.drop import DropAnswer
from gapwatch.answers.failures import FailuresAnswer
from gapwatch.answers.fleet import FleetAnswer
from gapwatch.answers.ledger import LedgerAnswer
from gapwatch.answers.onset import OnsetAnswer
from gapwatch.answers.prediction import PredictionAnswer
from gapwatch.answers.signals import SignalsAnswer
from gapwatch.answers.slices import SlicesAnswer
from gapwatch.answers.trend import TrendAnswer
from gapwatch.answers.trust import TrustAnswer
from gapwatch.api.answer_examples import BY_PATH

TEMPLATE = "#/components/schemas/{name}"
ANSWERS = (
    ContractAnswer,
    DeploymentAnswer,
    DropAnswer,
    FailuresAnswer,
    FleetAnswer,
    LedgerAnswer,
    OnsetAnswer,
    PredictionAnswer,
    SignalsAnswer,
    SlicesAnswer,
    TrendAnswer,
    TrustAnswer,
)


def answer_schemas() -> dict[str, Any]:
    """Every schema that an answer is made of, by name."""
    return msgspec.json.schema_components(ANSWERS, ref_template=TEMPLATE)[1]


def answers(kind: type, words: str) -> dict[int | str, dict[str, Any]]:
    """The 200 of an operation."""
    schema = {"$ref": TEMPLATE.format(name=kind.__name__)}
    return {200: {"description": words, "content": {"application/json": {"schema": schema}}}}


def give_examples(paths: dict[str, Any]) -> None:
    """Into the finished document: the framework would take every null out of an example."""
    for path, example in BY_PATH.items():
        paths[path]["get"]["responses"]["200"]["content"]["application/json"]["example"] = example


def answered(answer: Any) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")
