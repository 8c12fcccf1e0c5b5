import copy
import gc
import itertools
import pickle
import threading
import weakref
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from echelon_env import BattleBatchEnv, BattleEngine, ConfigError, ControlledBattles, opponents
from echelon_env.engine.boundary import MEMORIES
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.opponents import FunctionPolicy


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
    assert battles.side.tolist() == [0, 1]
    mechs = battles.engine.state.mechs["place"]
    assert mechs[0, 0] == mechs[1, 0]  # the seed decides which corner blue holds


def test_results_do_not_depend_on_the_batch():
    alone = play(ControlledBattles("skirmish", 1, opponent="novice", side=1), 60, [8])
    among = play(ControlledBattles("skirmish", 5, opponent="novice", side=[0, 0, 1, 1, 0]), 60, [1, 2, 8, 4, 5])
    for (observations, rewards), (all_observations, all_rewards) in zip(alone, among, strict=True):
        np.testing.assert_array_equal(observations[0], all_observations[2])
        np.testing.assert_array_equal(rewards[0], all_rewards[2])


def test_sides_can_change_with_a_reset():
    battles = ControlledBattles("skirmish", 2, opponent="novice")
    battles.reset([1, 2])
    battles.reset([3, 4], np.array([False, True]), side=[1, 1])
    assert battles.side.tolist() == [0, 1]
    assert battles.rows[:, 0].tolist() == [0, 5]


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


def test_the_learner_can_control_every_mech():
    """No policy acts, and the arrays are the engine's, in its order."""
    battles = ControlledBattles("skirmish", 2, control="all", blue=("scout", "heavy"))
    assert battles.num_controlled == 7
    assert battles.rows.tolist() == [list(range(7))] * 2
    assert battles.teams.tolist() == [[0, 0, 1, 1, 1, 1, 1]] * 2
    observations = battles.reset([1, 2])
    np.testing.assert_array_equal(observations, battles.engine.observations)
    seen, *returned = battles.step(np.zeros((2, 7, ACTION_DIM), np.float32))
    np.testing.assert_array_equal(seen, battles.engine.observations)
    for array, output in zip(returned, ("rewards", "terminated", "truncated"), strict=True):
        np.testing.assert_array_equal(array, getattr(battles.engine.out, output))
        assert not np.shares_memory(array, getattr(battles.engine.out, output))
    with pytest.raises(ValueError, match=rf"expected shape \(2, 7, {ACTION_DIM}\), got"):
        battles.step(np.zeros((2, 5, ACTION_DIM), np.float32))


@pytest.mark.parametrize("control", ["pilot", "team", "all"])
@pytest.mark.parametrize("make", [lambda function: function, FunctionPolicy])
def test_everyone_observes_the_own_mechs_and_may_keep_and_change_the_arrays(control, make):
    """The rows are a plain engine's."""
    given, kept, kept_by_policies = [], [], []

    def idle(observations):
        given.append(observations.copy())
        kept_by_policies.append(observations)
        observations[:] = np.nan
        return np.zeros((len(observations), ACTION_DIM), np.float32)

    options = {"maps": 2, "max_steps": 4}
    policies = {"opponent": make(idle), "teammate": make(idle)}
    battles = ControlledBattles("trio", 3, control=control, side=[0, 1, 1], **policies, **options)
    twin = BattleEngine("trio", 3, **options)

    def check(returned):
        np.testing.assert_array_equal(returned, twin.observations[np.arange(3)[:, None], battles.rows])
        kept.append(returned)
        returned[:] = np.nan

    twin.reset([1, 2, 3])
    check(battles.reset([1, 2, 3]))
    for decision in range(9):
        if decision == 4:  # all battles are over, and the second one stays so
            mask = np.array([True, False, True])
            twin.reset([4, 5, 6], mask)
            check(battles.reset([4, 5, 6], mask, side=[1, 0, 0]))
        given.clear()
        expected = twin.observations.copy()
        twin.step(np.zeros((3, 6, ACTION_DIM), np.float32))
        check(battles.step(np.zeros((3, battles.num_controlled, ACTION_DIM), np.float32))[0])
        found = [rows.reshape(3, -1, rows.shape[-1]) for rows in given]
        for b in range(3):
            others = np.delete(expected[b], battles.rows[b], axis=0)
            assert sorted(map(bytes, others)) == sorted(bytes(row) for rows in found for row in rows[b])
    assert not any(np.shares_memory(*pair) for pair in itertools.combinations(kept, 2))
    assert all(np.isnan(returned).all() for returned in (*kept, *kept_by_policies))


@pytest.mark.parametrize(("keep", "made"), [(0, 2), (1, 3), (2, 4), (9, 31)])
def test_memory_of_observations_that_are_gone_is_used_again(keep, made):
    """A part of an array counts as the array. Who keeps more than a few has the others."""
    battles = ControlledBattles("duel", 8, opponent="novice", max_steps=50)
    rows, allocated = battles.engine.observation_rows, []
    rows.use_memory(lambda shape: allocated.append(weakref.ref(array := np.zeros(shape, np.float32))) or array)
    kept = deque([battles.reset(range(8))[1:, 0]], keep)
    for number in range(30):
        observations = battles.step(np.zeros((8, 1, ACTION_DIM), np.float32))[0]
        kept.append(observations[1:, 0])
        if number == 15:
            gc.collect()
    assert len(allocated) <= made
    kept.clear()
    observations = None
    battles.step(np.zeros((8, 1, ACTION_DIM), np.float32))
    assert sum(array() is not None for array in allocated) <= MEMORIES


def test_observations_are_written_into_the_memory_of_an_allocator():
    """Of another one from the next decision on; what was lent before stays as it is."""
    battles, twin = (ControlledBattles("duel", 20, opponent="novice") for _ in range(2))
    made, rows = [], battles.engine.observation_rows
    zeros = np.zeros((20, 1, ACTION_DIM), np.float32)

    def allocate(shape):
        made.append(np.zeros(shape, np.float32))
        return made[-1]

    first = battles.reset(range(20))
    before = first.copy()
    rows.use_memory(allocate)
    for _ in range(4):
        seen = battles.step(zeros)[0]
        assert any(np.shares_memory(seen, array) for array in made)
    assert np.array_equal(first, before)
    assert len(made) < 4, "it is used again"
    twin.reset(range(20))
    for _ in range(4):
        twin.step(zeros)
    assert np.array_equal(battles.engine.observations, twin.engine.observations)
    assert copy.deepcopy(rows)._allocate is not allocate


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


@pytest.mark.parametrize("seed", range(6))
def test_whatever_callers_do_with_observations_the_next_ones_are_the_engines(seed):
    """They keep parts of them, change them, reset some battles, and copy, restore and change the environment."""
    rng = np.random.default_rng(seed)
    count, control = int(rng.integers(2, 6)), ("pilot", "team", "all")[seed % 3]
    options = {"maps": 3, "max_steps": int(rng.integers(5, 20))}
    battles = ControlledBattles("trio", count, control=control, num_threads=1 + seed % 2, **options)
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
            observations, *_ = battles.step(rng.uniform(-1, 1, shape).astype(np.float32))
            twin.step(battles.engine.actions)
            check(observations)
        elif what in ("reset", "copy"):
            mask, seeds = rng.random(count) < 0.5, rng.integers(0, 1000, count)
            twin.reset(seeds, mask)
            check(battles.reset(seeds, mask, side=rng.integers(0, 2, count)))
        elif what == "restore":
            check(battles.restore_arrays(battles.state_arrays()))
        elif what == "copy":
            old, battles = (
                battles,
                copy.deepcopy(battles) if rng.random() < 0.5 else pickle.loads(pickle.dumps(battles)),
            )
            old.close()
        else:
            battles.set_rewards(replace(battles.config.rewards, kill=rng.random()))
        for part, values in kept:
            np.testing.assert_array_equal(np.array(part), values)
    battles.close()


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_ends_of_battles_observe_no_other_battle_again(mode, monkeypatch):
    envs = BattleBatchEnv("skirmish", 3, autoreset_mode=mode, max_steps=4)
    envs.reset(seed=0)
    envs.engine.state.battles["step_count"][:] = 0, 1, 2
    monkeypatch.setattr(envs.engine, "_observe", None)
    for _ in range(8):
        envs.step(np.zeros((3, 10, ACTION_DIM), np.float32))


def test_who_keeps_a_pilots_observations_keeps_no_others():
    battles = ControlledBattles("trio", 2, control="pilot")
    assert battles.reset([1, 2]).base is None
    team = ControlledBattles("trio", 4, control="team").reset(range(4))
    assert team.base.nbytes == 2 * team.nbytes


def test_kept_observations_do_not_keep_the_engine():
    battles = ControlledBattles("duel", 8)
    kept, engine = battles.reset(range(8)), weakref.ref(battles.engine.state.voxels)
    before = kept.copy()
    battles.close()
    gc.disable()
    try:
        del battles
        assert engine() is None
    finally:
        gc.enable()
    np.testing.assert_array_equal(kept, before)


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
    np.testing.assert_array_equal(battles.reset(range(8)), twin.reset(range(8)))
    np.testing.assert_array_equal(kept, before)


def test_the_side_cannot_change_to_a_team_of_another_size():
    battles = ControlledBattles("duel", 1, blue=("scout", "scout"))
    battles.reset([1])
    with pytest.raises(ConfigError, match="side: expected teams of 2 mechs, as at the start, got 1"):
        battles.reset([2], side=1)
    assert battles.engine.state.battles["seed"].tolist() == [1]


def test_teams_of_the_learners_rows():
    battles = ControlledBattles("skirmish", 2, control="team", side=[0, 1])
    assert battles.teams.tolist() == [[0] * 5, [1] * 5]
    assert ControlledBattles("skirmish", 1, control="pilot", side=1, pilot=2).teams.tolist() == [[1]]


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
