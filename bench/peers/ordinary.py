"""The service one would write first: FastAPI, a pydantic model as the parameter, an ORM object, a commit per request.

It stores every field of the record in its own column on the same Postgres, maps as JSONB, with the same key
and the same two indexes. It does less than ours: no keys are checked, a repeated id is an error, nothing is
registered and nothing is counted afterwards. Run by uvicorn with uvloop and httptools, one process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, FiniteFloat
from sqlalchemy import Double, Index, Text, create_engine, func, make_url
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIMESTAMP
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

PROJECT_ID = 1

Name = Annotated[str, Field(min_length=1, max_length=128)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class VersionedName(Strict):
    name: Name
    version: Name


class Failure(Strict):
    phase: Name | None = None
    labels: list[Name] | None = None
    category: Name | None = None
    note: str | None = None


class Safety(Strict):
    violations: int | None = None
    interventions: int | None = None
    overrides: int | None = None


class EpisodeIn(Strict):
    id: Name
    domain: Literal["sim", "real"]
    policy: VersionedName
    task: Name
    started_at: AwareDatetime
    outcome: Literal["success", "failure", "aborted", "abandoned"]
    deployment: Name | None = None
    robot: Name | None = None
    site: Name | None = None
    simulator: VersionedName | None = None
    stage: Literal["offline", "shadow", "supervised", "full"] | None = None
    duration_s: FiniteFloat | None = None
    reward: FiniteFloat | None = None
    metrics: dict[Name, FiniteFloat] | None = None
    conditions: dict[Name, str | bool | FiniteFloat] | None = None
    signals: dict[Name, FiniteFloat] | None = None
    failure: Failure | None = None
    safety: Safety | None = None
    session: Name | None = None
    pair: Name | None = None
    contract: dict[str, Any] | None = None
    embedding: list[FiniteFloat] | None = None
    links: dict[Name, str] | None = None
    provenance: dict[Name, Any] | None = None


class Base(DeclarativeBase):
    pass


class Episode(Base):
    __tablename__ = "ordinary_episodes"
    __table_args__ = (
        Index("ordinary_by_time", "project_id", "started_at", "id"),
        Index("ordinary_by_deployment", "project_id", "deployment", "started_at"),
    )

    project_id: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(Text, primary_key=True)
    received_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=func.now())
    domain: Mapped[str]
    policy_name: Mapped[str]
    policy_version: Mapped[str]
    task: Mapped[str]
    started_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True))
    outcome: Mapped[str]
    deployment: Mapped[str | None]
    robot: Mapped[str | None]
    site: Mapped[str | None]
    simulator_name: Mapped[str | None]
    simulator_version: Mapped[str | None]
    stage: Mapped[str | None]
    duration_s: Mapped[float | None]
    reward: Mapped[float | None]
    metrics: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    conditions: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    signals: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    failure_phase: Mapped[str | None]
    failure_labels: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    failure_category: Mapped[str | None]
    failure_note: Mapped[str | None]
    violations: Mapped[int | None]
    interventions: Mapped[int | None]
    overrides: Mapped[int | None]
    session: Mapped[str | None]
    pair: Mapped[str | None]
    contract: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    embedding: Mapped[list[float] | None] = mapped_column(ARRAY(Double))
    links: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    provenance: Mapped[dict[str, Any] | None] = mapped_column(JSONB)


url = make_url(os.environ["BENCH_DATABASE_URL"]).set(drivername="postgresql+psycopg")
# A connection for each of the framework's forty threads, so that none waits for another's.
engine = create_engine(url, pool_size=40)
sessions = sessionmaker(engine)


@asynccontextmanager
async def lifespan(_: FastAPI):
    Base.metadata.create_all(engine)
    yield
    engine.dispose()


app = FastAPI(lifespan=lifespan)


def get_session() -> Iterator[Session]:
    with sessions() as session:
        yield session


@app.post("/episodes", status_code=201)
def post_episode(episode: EpisodeIn, session: Annotated[Session, Depends(get_session)]) -> dict[str, str]:
    simulator = episode.simulator
    failure = episode.failure or Failure()
    safety = episode.safety or Safety()
    fields = episode.model_dump(exclude={"policy", "simulator", "failure", "safety"})
    session.add(
        Episode(
            project_id=PROJECT_ID,
            policy_name=episode.policy.name,
            policy_version=episode.policy.version,
            simulator_name=simulator.name if simulator else None,
            simulator_version=simulator.version if simulator else None,
            failure_phase=failure.phase,
            failure_labels=failure.labels,
            failure_category=failure.category,
            failure_note=failure.note,
            violations=safety.violations,
            interventions=safety.interventions,
            overrides=safety.overrides,
            **fields,
        )
    )
    session.commit()
    return {"id": episode.id, "status": "accepted"}
