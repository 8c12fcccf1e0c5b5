"""Approach is potential-based: the discounted sum along a path depends only on its ends."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.config.catalog import LAVA
from echelon_env.engine.core import BattleEngine
from echelon_env.engine.state import RUNNING
from oracles.configs import small_config
from oracles.situations import set_voxels

APPROACH = REWARD_COMPONENTS.index("approach")
ROSTERS = {"blue": ("scout", "medium", "heavy"), "red": ("light", "medium")}
SIZE, STEP, MECHS = 64, 6, 5


def make_engine(time_limit, dead_agents, spirit):
    return BattleEngine(
        small_config(
            **ROSTERS,
            time_limit=time_limit,
            dead_agents=dead_agents,
            max_steps=12,
            decision_repeat=1,
            terrain={"size": SIZE, "height": 8},
            # Won in a decision, and small, so that battles go on for lack of mechs in it.
            zone={"score_to_win": 0.05, "min_radius": 3.5, "max_radius": 6.0},
            rewards={"gamma": 0.9, "team_spirit": spirit},
        )
    )


def begin(engine, seed):
    """Put mechs on a floor of lava, which takes 1/4 of a hit point per decision: mechs with less armour die."""
    engine.reset([seed])
    voxels = np.zeros((8, SIZE, SIZE), np.uint8)
    voxels[0] = LAVA
    set_voxels(engine.state, 0, voxels, engine.config.catalog.materials)


def scatter(engine, rng):
    """Move all mechs to random positions, apart from each other."""
    cells = rng.choice((SIZE // STEP) ** 2, MECHS, replace=False)
    mechs = engine.state.mechs[0]
    mechs["x"] = STEP * (cells % (SIZE // STEP)) + rng.uniform(2, 4, MECHS)
    mechs["y"] = STEP * (cells // (SIZE // STEP)) + rng.uniform(2, 4, MECHS)


def potential(engine, mech):
    """A mech's potential at its current position."""
    battle, row = engine.state.battles[0], engine.state.mechs[0, mech]
    if not row["alive"]:
        return 0.0
    distance = math.hypot(row["x"] - battle["zone_x"], row["y"] - battle["zone_y"]) - battle["zone_radius"]
    return 1 - max(0.0, distance) / SIZE


def play(engine, rng, chance_of_death, length):
    """Walk a random path; returns approach (T, M), potentials (T + 1, M) and whether each mech takes part (T, M)."""
    idle = np.zeros((1, MECHS, engine.action_dim), np.float32)
    phi, paid, part = [[potential(engine, m) for m in range(MECHS)]], [], []
    while not engine.battle_over[0] and len(paid) < length:
        scatter(engine, rng)
        mechs = engine.state.mechs[0]
        part.append((mechs["alive"] == 1) | (engine.config.dead_agents == "persist"))
        doomed = rng.random(MECHS) < chance_of_death
        mechs["armour"] = np.where(mechs["alive"] == 0, 0.0, np.where(doomed, 0.1, 50.0))
        engine.step(idle)
        paid.append(engine.reward_components[0, :, APPROACH].astype(np.float64) / engine.config.rewards.approach)
        terminated = engine.battle_over[0] and not engine.out.truncated.any()
        phi.append([0.0 if terminated else potential(engine, m) for m in range(MECHS)])
    return np.array(paid), np.array(phi), np.array(part)


@pytest.mark.parametrize(
    ("time_limit", "dead_agents", "spirit"),
    [("truncate", "terminate", 0.0), ("terminate", "persist", 0.4), ("truncate", "persist", 0.4)],
)
def test_the_discounted_sum_of_approach_depends_only_on_the_ends(time_limit, dead_agents, spirit):
    engine = make_engine(time_limit, dead_agents, spirit)
    reasons, deaths = set(), 0

    @settings(max_examples=30)
    @given(
        seed=st.integers(0, 2**32 - 1),
        chance_of_death=st.sampled_from([0.0, 0.05, 0.2]),
        length=st.sampled_from([3, 20]),
    )
    def check(seed, chance_of_death, length):
        nonlocal deaths
        begin(engine, seed)
        paid, phi, part = play(engine, np.random.default_rng(seed), chance_of_death, length)
        reasons.add(int(engine.reason[0]))
        deaths += int((engine.state.mechs["alive"] == 0).sum())
        discounts = engine.config.rewards.gamma ** np.arange(len(phi))
        ends = discounts[:, None] * phi - phi[0]  # the sum that a path up to each decision has paid
        for team in (slice(0, 3), slice(3, 5)):
            blended = (1 - spirit) * ends[:, team] + spirit * ends[:, team].mean(axis=1, keepdims=True)
            sums = np.cumsum(discounts[:-1, None] * paid[:, team], axis=0)
            for mech in range(sums.shape[1]):
                last = np.flatnonzero(part[:, team][:, mech])[-1]  # the decision in which it is last paid
                np.testing.assert_allclose(sums[last:, mech], sums[last, mech], rtol=0, atol=0)
                np.testing.assert_allclose(sums[: last + 1, mech], blended[1 : last + 2, mech], rtol=0, atol=2e-6)
            if dead_agents == "persist":
                np.testing.assert_allclose(sums[-1].sum(), ends[-1, team].sum(), rtol=0, atol=5e-6)

    check()
    assert reasons >= {RUNNING, 1, 2, 3}  # unfinished battles and every kind of end
    assert deaths > 20
