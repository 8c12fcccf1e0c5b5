import copy
import pickle
import threading
from collections import deque
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from echelon_env import BattleEngine, ConfigError, ControlledBattles, opponents
from echelon_env.layout.actions import ACTION_DIM


def play(battles, steps, seeds):
    observations = battles.reset(seeds)
    rows = []
    for _ in range(steps):
        observations, rewards, *_ = battles.step(np.zeros((*observations.shape[:2], ACTION_DIM), np.float32))
        rows.append((observations.copy(), rewards.copy()))
    return rows


def test_the_side_decides_which_rows_are_the_learners():
    battles = ControlledBattles("duel", 2, opponent="trivial", side=[0, 1], dead_agents="persist")
    battles.reset([3, 3])
    assert battles.rows.tolist() == [[0], [1]]
    mechs = battles.engine.state.mechs["place"]
    assert mechs[0, 0] == mechs[1, 0]  # the seed decides which corner blue holds


def test_results_do_not_depend_on_the_batch():
    alone = play(ControlledBattles("skirmish", 1, opponent="novice", side=1), 60, [8])
    among = play(ControlledBattles("skirmish", 5, opponent="novice", side=[0, 0, 1, 1, 0]), 60, [1, 2, 8, 4, 5])
    for (observations, rewards), (all_observations, all_rewards) in zip(alone, among, strict=True):
        np.testing.assert_array_equal(observations[0], all_observations[2])
        np.testing.assert_array_equal(rewards[0], all_rewards[2])


def test_the_learners_outcome():
    battles = ControlledBattles("duel", 3, opponent="trivial", side=[0, 1, 0], max_steps=1, time_limit="terminate")
    battles.reset([1, 2, 3])
    battles.engine.state.teams["score"][:, 0] = 5, 5, 0
    battles.step(np.zeros((3, 1, ACTION_DIM), np.float32))
    assert battles.battle_over.all()
    assert battles.learner_outcome.tolist() == [1, -1, 0]


class WrongShape:
    def reset(self, mask):
        pass

    def act(self, observations):
        return np.zeros((len(observations), 3), np.float32)


def test_bad_input():
    with pytest.raises(ConfigError, match="need the same side in every battle"):
        ControlledBattles("duel", 2, blue=("scout", "scout"), side=[0, 1])
    with pytest.raises(ConfigError, match=r"side: expected 0 or 1, or \(2,\) of them"):
        ControlledBattles("duel", 2, side=[0, 1, 0])
    battles = ControlledBattles("duel", 1, opponent=WrongShape())
    battles.reset([1])
    with pytest.raises(
        ValueError, match=rf"actions of the opponent .*WrongShape.*: expected shape \(1, {ACTION_DIM}\), got \(1, 3\)"
    ):
        battles.step(np.zeros((1, 1, ACTION_DIM), np.float32))
    with pytest.raises(ValueError, match=rf"expected shape \(1, 1, {ACTION_DIM}\), got"):
        battles.step(np.zeros((1, ACTION_DIM), np.float32))


PARTS = (
    lambda rows: rows,
    lambda rows: rows[..., 3:7],
    lambda rows: rows.view(np.uint32).T,
    memoryview,
    lambda rows: np.frombuffer(rows.data.cast("B"), np.uint8),
    lambda rows: np.lib.stride_tricks.as_strided(rows, (1,), (4,)),
    np.ma.array,
)
"""What callers may keep of an array."""


class Spoiler:
    """A policy that keeps its observations and changes them."""

    kept: ClassVar = []
    seen: ClassVar = []

    def reset(self, mask):
        pass

    def act(self, observations):
        self.seen.extend(map(bytes, observations))
        self.kept.append(observations)
        observations[:] = np.nan
        return np.zeros((len(observations), ACTION_DIM), np.float32)

    def state_arrays(self):
        return {}

    def restore_arrays(self, arrays, rows):
        pass


@pytest.mark.parametrize("make", [lambda: "novice", Spoiler], ids=["named", "given"])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_callers_do_with_observations_the_next_ones_are_the_engines(seed, make):
    """They keep parts of them, change them, reset some battles, and copy, restore and change the environment."""
    rng = np.random.default_rng(seed)
    count, control = int(rng.integers(2, 6)), ("pilot", "team", "all")[seed % 3]
    options = {"maps": 3, "max_steps": int(rng.integers(5, 20))}
    policies = {"opponent": make(), "teammate": make(), "num_threads": 1 + seed % 2}
    battles = ControlledBattles("trio", count, control=control, **policies, **options)
    Spoiler.kept.clear()
    twin, kept = BattleEngine("trio", count, **options), deque(maxlen=5)

    def check(observations):
        np.testing.assert_array_equal(observations, twin.observations[np.arange(count)[:, None], battles.rows])
        if rng.random() < 0.3:
            observations[:] = rng.random()
            kept.clear()
        part = PARTS[rng.integers(len(PARTS))](observations)
        kept.append((part, np.array(part)))

    seeds = rng.integers(0, 1000, count)
    twin.reset(seeds)
    check(battles.reset(seeds))
    for what in rng.choice(["step", "reset", "restore", "copy", "rewards"], 60, p=[0.65, 0.15, 0.05, 0.1, 0.05]):
        if what == "copy":
            battles.observations[:] = rng.random()
            kept.clear()
            battles.close()
            battles = copy.deepcopy(battles) if rng.random() < 0.5 else pickle.loads(pickle.dumps(battles))
        if what == "step":
            shape = count, battles.num_controlled, ACTION_DIM
            others = [
                bytes(row) for b in range(count) for row in np.delete(twin.observations[b], battles.rows[b], axis=0)
            ]
            Spoiler.seen.clear()
            observations, *_ = battles.step(rng.uniform(-1, 1, shape).astype(np.float32))
            assert make is not Spoiler or sorted(Spoiler.seen) == sorted(others)
            twin.step(battles.engine.actions)
            check(observations)
        elif what in ("reset", "copy"):
            mask, seeds = rng.random(count) < 0.5, rng.integers(0, 1000, count)
            twin.reset(seeds, mask)
            check(battles.reset(seeds, mask, side=rng.integers(0, 2, count)))
        elif what == "restore":
            check(battles.restore_arrays(battles.state_arrays()))
        else:
            battles.set_rewards(replace(battles.config.rewards, kill=rng.random()))
        for part, values in kept:
            np.testing.assert_array_equal(np.array(part), values)
    assert all(np.isnan(rows).all() for rows in Spoiler.kept)
    battles.close()


def test_an_interrupted_step_can_be_followed_by_a_reset(monkeypatch):
    battles, twin = ControlledBattles("duel", 8), ControlledBattles("duel", 8)
    kept = battles.reset(range(8))
    before = kept.copy()

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(battles.engine.observation_rows, "_allocate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            battles.step(np.zeros((8, 1, ACTION_DIM), np.float32))
    np.testing.assert_array_equal(battles.reset(range(8, 16)), twin.reset(range(8, 16)))
    np.testing.assert_array_equal(kept, before)


def test_the_side_cannot_change_to_a_team_of_another_size():
    battles = ControlledBattles("duel", 1, blue=("scout", "scout"))
    battles.reset([1])
    with pytest.raises(ConfigError, match="side: expected teams of 2 mechs, as at the start, got 1"):
        battles.reset([2], side=1)
    assert battles.engine.state.battles["seed"].tolist() == [1]


def test_close_stops_the_threads_of_policies_that_are_given_by_name():
    given = opponents.make("novice", 0, "skirmish", num_threads=2)
    named = "novice@reaction_delay=0.2"
    battles = ControlledBattles("skirmish", 32, control="pilot", opponent=named, teammate=given, num_threads=2)
    before = {*threading.enumerate()}
    battles.reset(range(32))
    battles.step(np.zeros((32, 1, battles.engine.action_dim), np.float32))
    others = {*threading.enumerate()} - before
    assert len(others) == 3  # of the engine and of both policies
    battles.close()
    assert sum(thread.is_alive() for thread in others) == 1  # who made a policy closes it
    given.close()
    assert not any(thread.is_alive() for thread in others)
