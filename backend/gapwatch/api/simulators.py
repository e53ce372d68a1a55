"""Reading simulators: how far their ranking of policies can be trusted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from gapwatch.access.keys import KeyHolder
from gapwatch.answers.question import question_of
from gapwatch.answers.trust import TrustAnswer, answer_trust
from gapwatch.api.answer_schemas import answered, answers
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.doors.costly_reads import CostlyReads, costly_route
from gapwatch.errors import NotFound
from gapwatch.filters import TrustFilter
from gapwatch.keyring import Keyring
from gapwatch.store.core.database import Database


def simulator_routes(database: Database, keyring: Keyring, costly: CostlyReads) -> APIRouter:
    router = APIRouter(
        prefix="/api/v1",
        tags=["statistics"],
        dependencies=[Depends(refuse_repeated)],
        route_class=costly_route(costly, keyring.of_request, aside=False),
    )
    reader = Depends(keyring.needs("read"))

    @router.get(
        "/simulators/{name:path}/trust",
        summary="Can a simulator be trusted",
        responses=problems(401, 403, 404, 422, 429, 503)
        | answers(TrustAnswer, "The ranking of policies in sim and in real."),
    )
    def read_trust(name: str, query: Annotated[TrustFilter, Query()], holder: KeyHolder = reader) -> Any:
        """Pearson, Spearman and MMRV over the policies that ran on both sides, and the regret of believing sim.

        `interval` is that of Pearson. Nothing is measured below four policies. `tasks` has every task in every
        simulator with its bias, positive where sim promises too much. `convention` says on which side MMRV takes
        its gap.
        """
        if "\0" in name:
            raise NotFound("There is no simulator with this name and version.")
        with database.reading(holder.project_id) as connection:
            question = question_of(query, datetime.now(UTC))
            answer = answer_trust(connection, holder.project_id, name, query.version, query.task, question)
        return answered(answer)

    return router
