"""The category that leads each deployment's drop, by what people and labels say: cheap enough for a whole fleet.

A phase alone says where it failed, not why; a deployment's own page also looks at signals and conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gapwatch.answers.fleet import FleetRow
from gapwatch.store.directory import Deployment
from gapwatch.store.fleet import FailureWords
from gapwatch.taxonomy import Taxonomy

# Less of the drop than this does not lead it.
LEAST_SHARE = 0.25

Shares = dict[str, float]
# Domain, deployment or simulator, policy, task.
Key = tuple[str, int | tuple[str | None, str | None], int, int]


@dataclass(frozen=True)
class Leading:
    """`contribution` of the whole drop, both as fractions of episodes."""

    category: str
    contribution: float


def leading_categories(
    known: Sequence[Deployment],
    rows: Sequence[FleetRow],
    words: Sequence[FailureWords],
    taxonomy: Taxonomy,
) -> dict[str, Leading]:
    failures = _by_category(words, taxonomy)
    found = {}
    for deployment, row in zip(known, rows, strict=True):
        if row.verdict not in ("large", "small") or not row.real.n or not row.sim.n:
            continue
        runs = (deployment.policy_id, deployment.task_id)
        real = failures.get(("real", deployment.id, *runs), {})
        sim = failures.get(("sim", (row.simulator, row.simulator_version), *runs), {})
        excess = {name: real[name] / row.real.n - sim.get(name, 0.0) / row.sim.n for name in real}
        if excess and max(excess.values()) >= LEAST_SHARE * (row.drop.value or 0.0):
            first = max(sorted(excess), key=lambda name: excess[name])
            found[row.slug] = Leading(first, excess[first])
    return found


def _by_category(words: Sequence[FailureWords], taxonomy: Taxonomy) -> dict[Key, Shares]:
    """A person's category decides, else the labels; what points nowhere counts nowhere."""
    found: dict[Key, Shares] = {}
    for one in words:
        if one.category is not None:
            to: Sequence[str] = (one.category,)
        else:
            labelled = [name for label in one.labels for name in taxonomy.categories_of("labels", label)]
            to = tuple(dict.fromkeys(labelled))
        source = one.source_id if one.domain == "real" else (one.simulator, one.simulator_version)
        shares = found.setdefault((one.domain, source, one.policy_id, one.task_id), {})
        for name in to:
            shares[name] = shares.get(name, 0.0) + one.failures / len(to)
    return found
