"""CartPole balanced by a plain controller: in simulation, and on what could be a real cart.

    python examples/cartpole.py --url http://127.0.0.1:8000 --key gw_…

The nominal environment is recorded as sim. The same environment with a heavier and longer pole, a delayed command
and noisy sensors stands for the real machine, and is recorded as a deployment. Both describe their contract; every
real attempt starts from the initial state of a simulated one (`pair`). The dashboard then shows what was lost, and
the conditions and signals say why.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import deque
from dataclasses import dataclass

import gymnasium
import numpy as np
from gapwatch_client import Contract, Gapwatch
from gapwatch_client.gymnasium import Ended, RecordEpisodes

STEPS = 250
NAMES = ("position_m", "velocity_m_s", "angle_rad", "angular_velocity_rad_s")
# Full-state feedback, tuned by hand on the nominal cart.
GAINS = np.array([0.5, 1.0, 14.0, 3.0])


@dataclass(frozen=True)
class Cart:
    """How a cart differs from the nominal one."""

    pole_kg: float = 0.1
    pole_half_m: float = 0.5
    delay_steps: int = 0
    noise: float = 0.0
    floor: str = "even"


NOMINAL = Cart()
# The same machine on good days and bad days.
WORKSHOP = (
    Cart(pole_kg=0.15, delay_steps=2, noise=0.02),
    Cart(pole_kg=0.15, delay_steps=3, noise=0.05),
    Cart(pole_kg=0.30, delay_steps=3, noise=0.08, floor="tilted"),
    Cart(pole_kg=0.30, pole_half_m=0.6, delay_steps=4, noise=0.05, floor="tilted"),
)


def make_env(cart: Cart, gw: Gapwatch, **fields: object) -> RecordEpisodes:
    env = gymnasium.make("CartPole-v1", max_episode_steps=STEPS)
    inside = env.unwrapped
    inside.masspole, inside.length = cart.pole_kg, cart.pole_half_m
    inside.total_mass = inside.masspole + inside.masscart
    inside.polemass_length = inside.masspole * inside.length
    contract = (
        Contract(control_hz=round(1 / inside.tau))
        .observation("cart", order=NAMES, frame="rail")
        .action("push", unit="n", scale=inside.force_mag, order=["left", "right"])
        .gains(feedback=GAINS.tolist())
    )
    return RecordEpisodes(
        env, gw, success=kept_upright, observation_names=NAMES, contract=contract, task="balance-pole", **fields
    )


def kept_upright(ended: Ended) -> bool:
    return ended.truncated and not ended.terminated


def attempt(env: RecordEpisodes, cart: Cart, seed: int) -> None:
    """Run one episode, with delay and noise between the machine and its controller, as in a workshop."""
    chance = np.random.default_rng(seed)
    state, _ = env.reset(seed=seed)
    episode = env.episode
    episode.condition("floor", cart.floor)
    episode.condition("payload_kg", cart.pole_kg)
    waiting = deque([1] * cart.delay_steps)
    over = False
    while not over:
        seen = state + chance.normal(0, cart.noise, 4) if cart.noise else state
        waiting.append(int(seen @ GAINS > 0))
        episode.observe("loop_latency_ms", 20.0 * cart.delay_steps)
        episode.observe("sensor_noise", float(np.abs(seen - state).mean()))
        state, _, terminated, truncated, _ = env.step(waiting.popleft())
        over = terminated or truncated


def run(gw: Gapwatch, episodes: int) -> None:
    policy = {"policy": "full-state-feedback", "version": "1.0.0"}
    simulated = make_env(NOMINAL, gw, **policy, simulator=("gymnasium", gymnasium.__version__))
    for seed in range(episodes):
        simulated.describe_next(pair=f"seed-{seed}")
        attempt(simulated, NOMINAL, seed)
    for number, cart in enumerate(WORKSHOP):
        real = make_env(
            *(cart, gw),
            **policy,
            domain="real",
            deployment="workshop-cart",
            robot="cart-1",
            site="workshop",
            stage="supervised",
            session=f"day-{number + 1}",
        )
        for seed in range(number * episodes // len(WORKSHOP), (number + 1) * episodes // len(WORKSHOP)):
            real.describe_next(pair=f"seed-{seed}")
            attempt(real, cart, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default=os.environ.get("GAPWATCH_URL"))
    parser.add_argument("--key", default=os.environ.get("GAPWATCH_KEY"))
    parser.add_argument("--spool", default=os.environ.get("GAPWATCH_SPOOL"))
    parser.add_argument("--episodes", type=int, default=200, help="of each side")
    options = parser.parse_args()
    with Gapwatch(options.url, options.key, options.spool) as gw:
        run(gw, options.episodes)
        if not gw.flush(30):
            sys.exit(f"Not everything is sent yet; it waits in {gw.spool_dir}: {gw.status().get('last_error')}")
    sys.stdout.write(f"{2 * options.episodes} episodes are at {options.url}/deployments/workshop-cart\n")


if __name__ == "__main__":
    main()
