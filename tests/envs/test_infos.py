import numpy as np
import pytest

from echelon_env import BattleBatchEnv, parallel_env
from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.envs.infos import STATISTIC_NAMES
from echelon_env.layout.actions import ACTION_DIM
from support.environments import FIGHT, SEED, record

ALWAYS = {
    "alive", "bad_actions", "reward_components", "own_share", "enemy_share", "own_score", "enemy_score",
    "episode_statistics", "map_seed", "outcome", "reason",
}  # fmt: skip


@pytest.fixture(scope="module")
def recording():
    return record("continuous")


def play(env, recording):
    """The infos of every agent in every decision of a recorded battle, with the decision and the rewards."""
    _, infos = env.reset(seed=SEED)
    assert all(set(info) - {"events"} == ALWAYS for info in infos.values())
    for decision in recording.decisions:
        row = {agent: i for i, agent in enumerate(env.possible_agents)}
        _, rewards, terminations, truncations, infos = env.step({a: decision.vectors[row[a]] for a in env.agents})
        ended = {agent for agent in infos if terminations[agent] or truncations[agent]}
        yield decision, rewards, infos, ended


def test_contents_of_an_agents_info(recording):
    env = parallel_env(**FIGHT)
    returns = dict.fromkeys(env.possible_agents, 0.0)
    engine = env.engine
    row = {agent: i for i, agent in enumerate(env.possible_agents)}
    deaths = 0
    for number, (_, rewards, infos, ended) in enumerate(play(env, recording), 1):
        for agent, info in infos.items():
            returns[agent] += rewards[agent]
            own = int(agent.startswith("red"))
            teams = engine.state.teams[0]
            assert info["alive"] == bool(engine.alive[0, row[agent]])
            assert (info["own_share"], info["enemy_share"]) == (teams["share"][own], teams["share"][1 - own])
            assert (info["own_score"], info["enemy_score"]) == (teams["score"][own], teams["score"][1 - own])
            assert info["reward_components"].dtype == np.float32
            assert len(info["reward_components"]) == len(REWARD_COMPONENTS)
            assert sum(info["reward_components"]) == rewards[agent]
            statistics = dict(zip(env.metadata["episode_statistics"], info["episode_statistics"], strict=True))
            assert (statistics["r"], statistics["l"]) == (pytest.approx(returns[agent], abs=1e-9), number)
            counted = engine.statistics[0, row[agent]]
            assert {name: statistics[name] for name in STATISTIC_NAMES} == {n: counted[n] for n in STATISTIC_NAMES}
            assert info["map_seed"] == engine.state.battles["map_seed"][0]
            if not engine.battle_over[0]:
                assert (info["outcome"], info["reason"]) == (0, "")
            deaths += statistics["deaths"] if agent in ended else 0
    assert deaths > 0
    assert set(infos) == ended
    assert {info["outcome"] for info in infos.values()} == {1, -1}
    winner = "blue" if engine.winner[0] == 0 else "red"
    assert all((info["outcome"] == 1) == agent.startswith(winner) for agent, info in infos.items())


def test_writing_into_infos_changes_nothing():
    envs, twin = BattleBatchEnv("duel", 2, max_steps=4), BattleBatchEnv("duel", 2, max_steps=4)
    infos, others = envs.reset(seed=0)[1], twin.reset(seed=0)[1]
    for _ in range(12):
        np.testing.assert_equal(infos, others)
        for value in infos.values():
            for array in value.values() if isinstance(value, dict) else [value]:
                array[...] = 0
        actions = np.zeros((2, 2, ACTION_DIM), np.float32)
        (*first, infos), (*second, others) = envs.step(actions), twin.step(actions)
        np.testing.assert_equal(first, second)
