"""The category that leads each deployment's drop, by what people and labels say: cheap enough for a whole fleet.

A phase alone says where it failed, not why; a deployment's own page also looks at signals and conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gapwatch.answers.fleet import FleetRow
from gapwatch.store.core.database import Connection
from gapwatch.store.read import fleet
from gapwatch.store.read.directory import Deployment
from gapwatch.store.read.fleet import FailureWords
from gapwatch.taxonomy import Taxonomy

# Less of the drop than this does not lead it.
LEAST_SHARE = 0.25

Shares = dict[str, float]
# Domain, deployment or simulator, policy, task.
Key = tuple[str, int, int, int]


@dataclass(frozen=True)
class Leading:
    """`contribution` of the whole drop, both as fractions of episodes."""

    category: str
    contribution: float


def leading_categories(
    connection: Connection,
    project_id: int,
    known: Sequence[Deployment],
    rows: Sequence[FleetRow],
    taxonomy: Taxonomy,
    since: datetime | None,
) -> dict[str, Leading]:
    """Of those whose drop is established; of others the words are not read."""
    lossy = [
        (deployment, row)
        for deployment, row in zip(known, rows, strict=True)
        if row.verdict in ("large", "small") and row.real.n and row.sim.n
    ]
    words = fleet.failure_words(connection, project_id, [deployment for deployment, _ in lossy], since)
    failures = _by_category(words, taxonomy)
    found = {}
    for deployment, row in lossy:
        runs = (deployment.policy_id, deployment.task_id)
        real = failures.get(("real", deployment.id, *runs), {})
        simulator_id = words.simulators.get((row.simulator, row.simulator_version), 0)
        sim = failures.get(("sim", simulator_id, *runs), {})
        excess = {name: real[name] / row.real.n - sim.get(name, 0.0) / row.sim.n for name in real}
        if excess and max(excess.values()) >= LEAST_SHARE * (row.drop.value or 0.0):
            first = max(sorted(excess), key=lambda name: excess[name])
            found[row.slug] = Leading(first, excess[first])
    return found


def _by_category(words: FailureWords, taxonomy: Taxonomy) -> dict[Key, Shares]:
    """A person's category decides, else the labels; what points nowhere counts nowhere."""
    points_to: dict[int, tuple[str, ...]] = {}
    for signature, (labels, category) in words.said.items():
        labelled = [name for label in labels for name in taxonomy.categories_of("labels", label)]
        points_to[signature] = (category,) if category is not None else tuple(dict.fromkeys(labelled))
    found: dict[Key, Shares] = {}
    for *key, signature, failures in words.counts:
        to = points_to[signature]
        if to:
            shares = found.setdefault(tuple(key), {})  # type: ignore[arg-type]
            for name in to:
                shares[name] = shares.get(name, 0.0) + failures / len(to)
    return found
