"""Echelon's own environments pass the checks."""

import gymnasium
import numpy as np
import pytest

import echelon_env
from echelon_env import opponents
from echelon_env.testing import check_parallel_env, check_vector_env

FORMATS = [
    {"observation": "flat", "action": "continuous"},
    {"observation": "dict", "action": "dict"},
    {"observation": "flat", "action": "multi_discrete", "mask_in_observation": True},
]


class Novices:
    """Plays every agent with its own novice, and counts the decisions of living agents."""

    def __init__(self, config):
        self.config = config
        self.players = {}
        self.decisions = {}

    def __call__(self, agent, space, observation, info):
        if agent not in self.players:
            self.players[agent] = opponents.make("novice", 0, self.config)
            self.players[agent].reset(np.ones(1, bool))
        self.decisions[agent] = self.decisions.get(agent, 0) + bool(info["alive"])
        return self.players[agent].act(observation[None])[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "max_steps", "dead_agents"), [("duel", 100, "persist"), ("skirmish", 80, "terminate")]
)
def test_parallel_battles(scenario, max_steps, dead_agents):
    def make():
        return echelon_env.parallel_env(scenario, dead_agents=dead_agents, max_steps=max_steps, maps=2)

    novices = Novices(make().config)
    check_parallel_env(make, actions=novices)
    # three episodes are played, others are repeated
    assert min(novices.decisions.values()) < 3 * max_steps, "no mech died"


@pytest.mark.parametrize("formats", FORMATS, ids=lambda formats: "-".join(map(str, formats.values())))
def test_parallel_formats(formats):
    def make():
        return echelon_env.parallel_env("duel", max_steps=12, maps=2, events=True, **formats)

    check_parallel_env(make, seed_matters=False)  # two seeds may choose the same of two maps


@pytest.mark.parametrize(("control", "formats"), [("pilot", FORMATS[0]), ("pilot", FORMATS[2])], ids=str)
def test_vector_formats(control, formats):
    options = {"control": control, "max_steps": 6, "max_cycles": 4, "events": True, "maps": 2, **formats}
    check_vector_env(
        lambda n, mode: gymnasium.make_vec(
            "echelon/PairCity-v0", n, "vector_entry_point", autoreset_mode=mode, **options
        ),
        lambda: gymnasium.make("echelon/PairCity-v0", **options),
        num_envs=2,
        seed_matters=False,
    )


@pytest.mark.long
def test_vector_battles():
    def make(num_envs, mode):
        return echelon_env.BattleVectorEnv("duel-open", num_envs, autoreset_mode=mode, maps=2)

    novices = Novices(echelon_env.make_config("duel-open"))
    # the time limit is 480 decisions: an episode that ends earlier was ended by a death or a victory
    check_vector_env(
        make, lambda: echelon_env.BattleEnv("duel-open", maps=2), num_envs=2, max_steps=200, actions=novices
    )
