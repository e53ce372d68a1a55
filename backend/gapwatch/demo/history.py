"""The episodes of a story: ninety days of both sides, and live ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gapwatch.demo.records import INTERRUPTED, StorySide, records_of
from gapwatch.demo.stories import EVENING, JOINTS, Story, StoryTimes
from gapwatch.demo.world import REAL, SIM, Scene, draw_scene, run

SEED = 7
DAY_MS = 86_400_000
NOON = 14
SHIFTS = ("early", "late", "evening")
# The correlation between the random draws of a pair.
ALIKE = 0.85
SAFE = {"violations": 0, "interventions": 0, "overrides": 0}
CONTRACT = {"action_scale": 0.5, "control_hz": 50, "frames": "base_link", "joint_order": JOINTS}


def story_records(story: Story, anchor: date) -> list[dict[str, Any]]:
    """All episodes of a story up to the end of the day `anchor`, by time; every call returns the same ones."""
    generator = np.random.default_rng([SEED, anchor.toordinal(), crc32(story.slug.encode())])
    midnight = int(datetime.combine(anchor, time(), UTC).timestamp() * 1000)
    sim_day, version = _sim_times(story, generator)
    sim_scene = draw_scene(len(sim_day), generator, handover=story.handover)
    sides = [_sim(story, sim_day, version, sim_scene)]
    at = _moments(story, generator)
    scene = draw_scene(len(at.day), generator, handover=story.handover, surfaces=story.surfaces)
    if story.paired:
        scene = _alike(scene, sim_scene)
    sides.append(_real(story, at, scene, anchor))
    records = [
        record
        for side in sides
        for record in records_of(side, (midnight + side.day * DAY_MS).astype(np.int64), generator)
    ]
    return sorted(records, key=lambda record: str(record["started_at"]))


def live_record(story: Story, now: datetime, generator: np.random.Generator) -> dict[str, Any]:
    """One more real episode of a story, at `now`."""
    hour = now.hour + now.minute / 60
    robots, sites = story.robots * len(story.sites), len(story.sites)
    robot = generator.integers(0, robots, 1)
    at = StoryTimes(
        np.zeros(1), np.array([hour]), robot % sites, robot // sites, np.array([len(story.versions) - 1])
    )
    scene = draw_scene(1, generator, handover=story.handover, surfaces=story.surfaces)
    stages = story.stages if story.live_stage is None else ((story.stages[0][0], story.live_stage),)
    side = _real(replace(story, paired=False, stages=stages), at, scene, now.date())
    return records_of(side, np.array([int(now.timestamp() * 1000)]), generator)[0]


def _moments(story: Story, generator: np.random.Generator) -> StoryTimes:
    """Between 06:00 and 22:00, by random robots. A story that is not live ended the day before yesterday: nobody
    waits for its robots.
    """
    n = story.n_real
    whole = np.sort(generator.integers(int(story.first_day), 1 if story.lives else -1, n))
    hour = generator.uniform(6, 22, n)
    robot = generator.integers(0, story.robots * len(story.sites), n)
    day = whole + hour / 24
    version = np.searchsorted([first for first, _ in story.versions], day, "right") - 1
    return StoryTimes(day, hour, robot % len(story.sites), robot // len(story.sites), np.maximum(version, 0))


def _sim_times(story: Story, generator: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A version is simulated at night, `n_sim` times, from three days before it is deployed."""
    days, versions = [], []
    for index, (first, _) in enumerate(story.versions):
        start = max(first, story.first_day) - 3
        days.append(np.sort(generator.uniform(start, min(start + 30, 0), story.n_sim)))
        versions.append(np.full(story.n_sim, index))
    return np.concatenate(days), np.concatenate(versions)


def _alike(scene: Scene, sim: Scene) -> Scene:
    """The real side of pairs: the same objects as the first sim episodes, and correlated random draws."""
    n = scene.n
    own = np.sqrt(1 - ALIKE**2)
    return replace(
        scene,
        objects=sim.objects[:n],
        surfaces=sim.surfaces[:n],
        chance=ALIKE * sim.chance[:, :n] + own * scene.chance,
        noise=ALIKE * sim.noise[:, :n] + own * scene.noise,
    )


def _sim(story: Story, day: NDArray[np.float64], version: NDArray[np.int64], scene: Scene) -> StorySide:
    name, simulator_version = story.simulator
    shared = {
        "domain": "sim",
        "task": story.task,
        "simulator": {"name": name, "version": simulator_version},
        "contract": CONTRACT,
    }
    columns: dict[str, list[Any]] = {"policy": _policies(story, version)}
    if story.paired:
        columns["pair"] = [f"{story.slug}/{i}" if i < story.n_real else None for i in range(scene.n)]
    world_run = run(replace(SIM, skill=story.skill, **story.sim), scene)
    # Sim episodes have shifts too, but the simulated light does not depend on them.
    shifts = [SHIFTS[i % len(SHIFTS)] for i in range(scene.n)]
    return StorySide(world_run, day, shared, columns, shifts, story.labelled, interrupted=0.0)


def _real(story: Story, at: StoryTimes, scene: Scene, anchor: date) -> StorySide:
    changes = dict(story.real(at))
    changes["skill"] = story.skill + changes.get("skill", 0.0)
    world_run = run(replace(REAL, **changes), scene)
    stage = np.searchsorted([first for first, _ in story.stages], at.day, "right") - 1
    shifts = np.array(SHIFTS)[np.searchsorted([NOON, EVENING], at.hour, "right")].tolist()
    sites = np.array(story.sites)[at.site].tolist()
    days = [date.fromordinal(anchor.toordinal() + day) for day in np.floor(at.day).astype(int).tolist()]
    columns: dict[str, list[Any]] = {
        "policy": _policies(story, at.version),
        "site": sites,
        "robot": [f"{site}-{robot + 1}" for site, robot in zip(sites, at.robot.tolist(), strict=True)],
        "stage": [story.stages[max(index, 0)][1] for index in stage.tolist()],
        "session": [f"{day}-{shift}-{site}" for day, shift, site in zip(days, shifts, sites, strict=True)],
    }
    if story.live_stage is not None:
        # Whoever supervises says so also of episodes in which nothing happened.
        columns["safety"] = [SAFE if stage == story.live_stage else None for stage in columns["stage"]]
    columns["shadow"] = _proposed(story, columns["stage"], world_run.duration_s)
    if story.paired:
        columns["pair"] = [f"{story.slug}/{i}" for i in range(scene.n)]
    contract = {**CONTRACT, **story.contract}
    shared = {"domain": "real", "task": story.task, "deployment": story.slug, "contract": contract}
    # A story of nine episodes has none to spare for interruptions.
    interrupted = INTERRUPTED if story.lives else 0.0
    return StorySide(world_run, at.day, shared, columns, shifts, story.labelled, interrupted)


def _proposed(story: Story, stages: list[str], duration_s: NDArray[np.float64]) -> list[dict[str, Any] | None]:
    """What the candidate would have done while its forerunner drove: counts of steps, ten a second."""
    # Draws of its own, so that the other numbers of a story do not depend on it.
    generator = np.random.default_rng([SEED, len(stages), crc32(story.slug.encode())])
    steps = np.maximum(20, (10 * duration_s).astype(int))
    near = np.maximum(4, steps // 6)
    unlike = generator.beta(4 * story.disagreeing, 4 * (1 - story.disagreeing), len(stages))
    beyond = generator.beta(20 * story.infeasible, 20 * (1 - story.infeasible), len(stages))

    def counts(of: int, disagreeing: float, infeasible: float) -> dict[str, int]:
        return {
            "steps": of,
            "agree": of - round(of * disagreeing),
            "infeasible": round(of * infeasible),
            "near_limit": round(of * min(1.0, 2 * infeasible)),
            "out_of_distribution": round(of * disagreeing / 3),
        }

    forerunner = {"name": story.policy, "version": "0.0.9"}
    return [
        None
        if stage != "shadow"
        else {
            "executed_by": forerunner,
            **counts(int(steps[i]), unlike[i], beyond[i]),
            "critical": counts(int(near[i]), unlike[i], beyond[i]),
        }
        for i, stage in enumerate(stages)
    ]


def _policies(story: Story, version: NDArray[np.int64]) -> list[dict[str, str]]:
    known = [{"name": story.policy, "version": name} for _, name in story.versions]
    return [known[index] for index in version.tolist()]
