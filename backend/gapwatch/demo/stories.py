"""The demo fleet: a dozen deployments, each with a story that a roboticist recognises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapwatch.demo.world import Quantity

Array = NDArray[np.float64]
DAYS = 90
EVENING = 17
# The first ranks policies as reality does; the second favours one that is no good in reality.
ISAAC, MUJOCO = ("isaac-sim", "5.0.0"), ("mujoco", "3.3.0")


@dataclass(frozen=True)
class StoryTimes:
    """When and where each real episode of a story happens: day 0 is today, −90 the first; others are indices."""

    day: Array
    hour: Array
    site: NDArray[np.int64]
    robot: NDArray[np.int64]
    version: NDArray[np.int64]


@dataclass(frozen=True)
class StoryEvent:
    """Something that may explain a change; it happens before the first shift."""

    day: float
    kind: str
    name: str
    # Of a mitigation, what was written about it before its outcome was known.
    fix: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Story:
    """One deployment. `versions` and `stages` begin on a day; `real` and `sim` change a side's quantities."""

    slug: str
    tells: str
    policy: str
    task: str
    n_sim: int
    n_real: int
    real: Callable[[StoryTimes], Mapping[str, Quantity]] = lambda at: {}
    sim: Mapping[str, Quantity] = field(default_factory=dict)
    skill: float = 0.0
    versions: Sequence[tuple[float, str]] = ((-DAYS, "1.0.0"),)
    stages: Sequence[tuple[float, str]] = ((-DAYS, "supervised"),)
    sites: Sequence[str] = ()
    robots: int = 3
    simulator: tuple[str, str] = ISAAC
    first_day: float = -DAYS
    handover: bool = False
    surfaces: tuple[float, ...] = (0.4, 0.4, 0.2)
    contract: Mapping[str, Any] = field(default_factory=dict)
    events: Sequence[StoryEvent] = ()
    labelled: float = 0.6
    paired: bool = False
    lives: bool = True
    # In shadow: shares of proposed steps that the robot could not do, and that were unlike what was done.
    infeasible: float = 0.008
    disagreeing: float = 0.06
    # The stage of what comes live, where people promote it meanwhile.
    live_stage: str | None = None


JOINTS = ["base", "shoulder", "elbow", "wrist_1", "wrist_2", "wrist_3"]

STORIES = (
    Story(
        "zurich-sort-2", "Healthy: as good as its simulation, for three months.",
        "parcel-sort", "sort-parcel", 1800, 6000,
        skill=0.15, versions=((-DAYS, "4.2.0"),), sites=("zurich",), robots=4,
        stages=((-DAYS, "shadow"), (-80, "supervised"), (-62, "full")),
        events=(StoryEvent(-62, "release", "parcel-sort 4.2.0 goes to full autonomy"),),
    ),
    Story(
        "berlin-line-3", "Contact slip on a rubber belt: 95 % in simulation, 60 % in reality.",
        "bin-pick", "pick-mug", 1800, 3600,
        lambda at: {"rubber_friction": 0.66},
        skill=0.1, versions=((-DAYS, "1.4.0"),), sites=("berlin",), simulator=MUJOCO, surfaces=(0.05, 0.05, 0.9),
    ),
    Story(
        "lyon-dock-3", "Dim light on the evening shift.",
        "box-stack", "palletise", 1500, 4200,
        lambda at: {"brightness": np.where(at.hour >= EVENING, 0.28, 0.6)},
        skill=-0.2, versions=((-DAYS, "0.9.2"),), sites=("lyon",), simulator=MUJOCO,
        events=(
            StoryEvent(
                -33, "mitigation", "posters about glare put up in the hall",
                {"kind": "process", "category": "visual", "robot_hours": 2, "expected_points": 10},
            ),
        ),
    ),
    Story(
        "turin-cell-1", "Calibration drifting for three weeks.",
        "screw-drive", "fasten-cover", 1500, 3600,
        lambda at: {"calibration_mm": 0.8 + np.clip(at.day + 21, 0, 21) * 0.17},
        versions=((-DAYS, "2.3.1"),), sites=("turin",), robots=2,
        stages=((-DAYS, "supervised"), (-70, "full")),
        events=(StoryEvent(-88, "calibration", "hand-eye calibration 2 of cell 1"),),
    ),
    Story(
        "osaka-line-1", "One robot's latency: osaka-3 was moved to the wireless network.",
        "kit-assemble", "assemble-kit", 1500, 4000,
        lambda at: {"latency_ms": np.where((at.robot == 2) & (at.day >= -40), 34.0, 7.5)},  # noqa: PLR2004
        skill=-0.1, versions=((-DAYS, "3.1.0"),), sites=("osaka",), robots=4, stages=((-DAYS, "full"),),
        events=(StoryEvent(-40, "other", "osaka-3 moved to the wireless network"),),
    ),
    Story(
        "austin-pack-2", "A new release regresses: 2.1.0 is as good in simulation and worse in reality.",
        "bag-pack", "pack-bag", 1200, 3600,
        lambda at: {"skill": np.where(at.version == 1, -0.75, 0.0)},
        versions=((-DAYS, "2.0.3"), (-24, "2.1.0")), sites=("austin",), stages=((-DAYS, "full"),),
        events=(StoryEvent(-24, "release", "bag-pack 2.1.0"),),
    ),
    Story(
        "benelux-tote-1", "Antwerp is fine, Ghent is not: its totes are full of other things.",
        "tote-pick", "pick-tote", 1500, 3600,
        lambda at: {"clutter": np.where(at.site == 1, 7.5, 2.0)},
        skill=-0.45, versions=((-DAYS, "1.8.0"),), sites=("antwerp", "ghent"), robots=2,
    ),
    Story(
        "seoul-arm-4", "A joint-order mismatch, caught by the contract.",
        "drawer-open", "open-drawer", 900, 140,
        lambda at: {"action_scale": 1.75},
        versions=((-DAYS, "0.4.0"),), sites=("seoul",), simulator=MUJOCO, robots=1, first_day=-6,
        stages=((-DAYS, "shadow"),),
        contract={"joint_order": [*JOINTS[:3], JOINTS[4], JOINTS[3], JOINTS[5]]}, lives=False,
        infeasible=0.22, disagreeing=0.45,
        events=(StoryEvent(-6, "release", "drawer-open 0.4.0 on seoul-1, firmware 5.12"),),
    ),
    Story(
        "porto-peg-2", "A policy that exploits the simulator: it presses the peg through the wall.",
        "peg-insert", "insert-peg", 1500, 1600,
        lambda at: {"touch": -1.9},
        {"exploit": 2.3, "touch": -1.9},
        skill=0.25, versions=((-DAYS, "1.1.0"),), sites=("porto",), simulator=MUJOCO, robots=2, first_day=-45,
    ),
    Story(
        "oslo-lab-1", "Too few episodes to say anything.",
        "cable-route", "route-cable", 800, 9,
        versions=((-DAYS, "0.1.0"),), sites=("oslo",), robots=1, first_day=-4, stages=((-DAYS, "shadow"),),
        lives=False,
    ),
    Story(
        "lisbon-pick-5", "Two weeks in shadow, promoted on its evidence.",
        "mug-hang", "hang-mug", 1200, 420,
        lambda at: {"latency_ms": 9.0},
        versions=((-DAYS, "1.0.0"),), sites=("lisbon",), robots=2, first_day=-16, stages=((-DAYS, "shadow"),),
        paired=True, live_stage="supervised",
    ),
    Story(
        "madrid-bin-6", "Fixed by 200 real grasps: fifteen points expected, fourteen closed after the release.",
        "bottle-grasp", "grasp-bottle", 1000, 3200,
        lambda at: {"friction": np.where(at.version == 1, 0.763, 0.7)},
        versions=((-DAYS, "1.4.0"), (-28, "1.4.1")), sites=("madrid",), simulator=MUJOCO, handover=True,
        events=(
            StoryEvent(
                -31, "mitigation", "200 real grasps collected for fine-tuning",
                {"kind": "fine_tuning", "category": "contact_dynamics", "from_version": "1.4.1",
                 "robot_hours": 12, "demonstrations": 200, "expected_points": 15},
            ),
            StoryEvent(-28, "release", "bottle-grasp 1.4.1, fine-tuned on them"),
        ),
    ),
)  # fmt: skip
