"""The reports about agents, compared with sums by NumPy."""

import numpy as np
import pytest

from echelon_env import BattleEngine, make_config
from echelon_env.engine.agents import EPISODE_STATISTICS
from echelon_env.engine.state import DRAW, STATISTIC_NAMES
from echelon_env.envs.autoreset import Agents
from echelon_env.layout.actions import ACTION_DIM

CONFIG = make_config("skirmish", terrain={"size": 56}, max_steps=30)
BATTLES, MECHS = 7, 10
SEEDS = range(4, 4 + BATTLES)
R, L = map(EPISODE_STATISTICS.index, "rl")
TEAM = np.tile(np.arange(5, 10), (BATTLES, 1))
ALL = np.tile(np.arange(MECHS), (BATTLES, 1))
PILOTS = np.array([[3], [7], [0], [0], [9], [5], [1]])
CASES = pytest.mark.parametrize(("rows", "count"), [(ALL, MECHS), (TEAM, 1), (PILOTS, 1)], ids=["all", "team", "pilot"])


def start(rows, count):
    engine = BattleEngine(CONFIG, BATTLES)
    return engine, Agents(engine, rows, count), np.random.default_rng(3)


def fight(engine, noise):
    actions = noise.uniform(-1, 1, (BATTLES, MECHS, ACTION_DIM)).astype(np.float32)
    actions[0, 0, :3] = np.nan
    engine.step(actions)


def mechs_of(array, rows, count):
    """The entries (B, a, mechs of an agent, ...) of the agents' mechs."""
    return array[np.arange(BATTLES)[:, None], rows].reshape(BATTLES, count, -1, *array.shape[2:])


def expected(engine, rows, count):
    """What reports say, without the course of the episodes."""
    battle = np.arange(BATTLES)[:, None]
    state, out = engine.state, engine.out
    size = rows.shape[1] // count

    def grouped(array):
        return mechs_of(array, rows, count)

    components = grouped(out.components)
    if count == 1:
        total = components[:, :, 0].copy()
        for i in range(1, size):  # NumPy's sum may add in another order
            total += components[:, :, i]
        components = total / np.float32(size)
    else:
        components = components[:, :, 0]
    team = grouped(state.mechs["team"])[:, :, 0]
    winner = state.battles["winner"][:, None]
    over = state.battles["over"][:, None] == 1
    return {
        "alive": grouped(state.mechs["alive"]).sum(axis=2),
        "living": grouped(state.mechs["alive"]).any(axis=2),
        "valid": np.ones((BATTLES, count), bool),
        "bad_actions": grouped(state.mechs["bad_actions"]).sum(axis=2),
        "components": components,
        "own_share": state.teams["share"][battle, team],
        "enemy_score": state.teams["score"][battle, 1 - team],
        "map_seed": np.tile(state.battles["map_seed"][:, None], count),
        "outcome": np.where(over & (winner != DRAW), np.where(winner == team, 1, -1), 0),
        "reason": np.tile(state.battles["reason"][:, None], count),
    } | {name: grouped(engine.statistics[name]).sum(axis=2) for name in STATISTIC_NAMES if name != "bad_actions"}


@CASES
def test_reports_are_sums_over_the_agents_mechs(rows, count):
    engine, agents, noise = start(rows, count)
    engine.reset(SEEDS)
    assert agents.report(None, counts=False)["present"].all()
    returns = np.zeros((BATTLES, count))
    summed = set(STATISTIC_NAMES) - {"bad_actions"}
    bad = 0
    for _ in range(30):
        fight(engine, noise)
        report = agents.report(None, counts=True)
        results = agents.results
        np.testing.assert_array_equal(results.rewards, np.cumsum(report["components"], axis=-1)[..., -1])
        np.testing.assert_array_equal(results.terminated, mechs_of(engine.out.terminated, rows, count)[:, :, 0])
        np.testing.assert_array_equal(results.truncated, mechs_of(engine.out.truncated, rows, count)[:, :, 0])
        returns += results.rewards
        for name, values in expected(engine, rows, count).items():
            found = report["statistics"][..., 2 + STATISTIC_NAMES.index(name)] if name in summed else report[name]
            if name == "components":
                assert found.tobytes() == values.tobytes()  # signs of zeros, too
            np.testing.assert_array_equal(found, values, err_msg=name)
        np.testing.assert_array_equal(report["statistics"][..., R], returns)
        bad += report["bad_actions"].sum()
        assert agents.ends == (results.terminated | results.truncated).sum()
        assert agents.over == engine.battle_over.sum()
        assert results.done.tolist() == (~report["present"]).all(axis=1).tolist()
    assert (report["statistics"][..., L] > 0).all()
    assert (results.truncated | results.terminated).any()
    assert not report["present"].any()
    assert (bad > 0) == (0 in rows[0])


def test_episodes_are_followed_and_start_again():
    engine, agents, noise = start(ALL, MECHS)
    engine.reset(SEEDS)
    agents.report(7, counts=False)
    for decision in range(1, 8):
        fight(engine, noise)
        report = agents.report(7, counts=True)
        assert agents.results.truncated.any() == (decision == 7)
    again = agents.report(7, counts=False)
    np.testing.assert_array_equal(again["statistics"], report["statistics"])
    mask = np.arange(BATTLES) == 1
    engine.reset(SEEDS, mask)
    started = agents.report(7, counts=True)  # no decision has been taken in battle 1
    assert started["present"].all(axis=1).tolist() == mask.tolist()
    assert not started["statistics"][1].any()
    assert not agents.results.rewards[1].any()


def test_a_limit_of_cycles_truncates_who_is_there_and_is_not_terminated():
    engine, agents, noise = start(ALL, MECHS)
    engine.reset(SEEDS)
    agents.report(3, counts=False)
    leaves = {1: (0, 1), 3: (0, 2)}  # decision -> battle and mech
    for decision in range(1, 4):
        fight(engine, noise)
        if decision in leaves:
            engine.out.terminated[leaves[decision]] = True
        report = agents.report(3, counts=True)
        terminated = [*map(tuple, np.argwhere(agents.results.terminated).tolist())]
        assert terminated == ([leaves[decision]] if decision in leaves else [])
        expected = np.full((BATTLES, MECHS), decision == 3)
        expected[0, 1:3] = False
        np.testing.assert_array_equal(agents.results.truncated, expected)
        assert agents.ends == {1: 1, 2: 0, 3: BATTLES * MECHS - 1}[decision]
    assert report["statistics"][0, :4, L].tolist() == [3, 1, 3, 3]
    assert agents.results.done.all()


def test_a_missing_report_before_the_first_decision_does_not_continue_the_last_episode():
    engine, agents, noise = start(ALL, MECHS)
    for _ in range(2):
        engine.reset(SEEDS)
        for length in (1.0, 2.0):
            fight(engine, noise)
            report = agents.report(None, counts=True)
            assert (report["statistics"][..., L] == length).all()
            agents.report(None, counts=False)
