import dataclasses
import re
import sys
import threading
import types

import numpy as np
import pytest
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecNormalize, VecVideoRecorder

from echelon_env import BattleEngine, ConfigError, MapPool, make_config, opponents
from echelon_env.config.battle import REWARD_COMPONENTS
from echelon_env.evaluate import EVALUATION_SEEDS, training_map_seed, training_seed
from echelon_env.layout.actions import ACTION_DIM
from echelon_env.layout.observations import Clock, state_streams
from echelon_train import battle_config
from echelon_train.vec_env import BattleVecEnv, learner_side
from train.small import small_battle


def random_actions(env: BattleVecEnv, steps: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, (steps, env.num_envs, ACTION_DIM)).astype(np.float32)


@pytest.mark.parametrize("self_play", [0, 1, 3])
def test_rows_equal_the_learners_mechs_in_a_plain_engine(self_play):
    """All results equal those of a plain engine that the test steps and resets itself; of both teams in self-play."""
    config = small_battle("skirmish", max_steps=6)
    battles, size, seed = 3, 5, 4
    env = BattleVecEnv(config, battles, opponent="novice", seed=seed, self_play=self_play, central=True)
    engine = BattleEngine(config, battles)
    opponent_player = opponents.make("novice", seed, config)
    of_rows = np.repeat([0, 1, 2, *range(self_play)], size)

    def start(episode: int) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """The team of each row, and the mechs of the learner and of the opponent, as (battle, mech)."""
        seeds = [training_seed(seed, place, episode) for place in range(battles)]
        sides = np.array([learner_side(s) for s in seeds])
        engine.reset(seeds)
        opponent_player.reset(np.ones((battles - self_play) * size, np.bool_))
        teams = np.repeat(np.concatenate([sides, 1 - sides[:self_play]]), size)
        mechs = np.tile(np.arange(size), battles + self_play)
        others = np.repeat(np.arange(self_play, battles), size)
        theirs = (1 - sides[others]) * size + np.tile(np.arange(size), battles - self_play)
        return teams, (of_rows, teams * size + mechs), (others, theirs)

    teams, own, other = start(0)
    observations = env.reset()
    returns = np.zeros(env.num_envs)
    all_sides = set(teams[: battles * size].tolist())
    for number, actions in enumerate(random_actions(env, 18), start=1):
        np.testing.assert_array_equal(observations["observation"], engine.observations[own])
        states = np.stack([engine.global_state(np.full(battles, team))[of_rows] for team in (0, 1)])
        np.testing.assert_array_equal(observations["state"], states[teams, np.arange(env.num_envs)])
        both = np.zeros((battles, 10, ACTION_DIM), np.float32)
        both[own] = actions
        if self_play < battles:
            both[other] = opponent_player.act(engine.observations[other])
        engine.step(both)
        observations, rewards, dones, infos = env.step(actions)
        np.testing.assert_array_equal(rewards, engine.out.rewards[own])
        returns += rewards
        assert dones.all() == dones.any() == (number % 6 == 0)
        if not dones.any():
            assert infos == [{}] * env.num_envs
            continue
        final = engine.observations[own]
        states = np.stack([engine.global_state(np.full(battles, team))[of_rows] for team in (0, 1)])
        final_states = states[teams, np.arange(env.num_envs)]
        winners = engine.winner.copy()
        for row, info in enumerate(infos):
            np.testing.assert_array_equal(info["terminal_observation"]["observation"], final[row])
            np.testing.assert_array_equal(info["terminal_observation"]["state"], final_states[row])
            assert info["TimeLimit.truncated"] is False
            winner = winners[of_rows[row]]
            assert info["outcome"] == (0 if winner < 0 else 1 if winner == teams[row] else -1)
            assert info["is_success"] == (info["outcome"] > 0)
            assert info.get("opponent") == ("self" if of_rows[row] < self_play else None)
            assert info["episode"]["r"] == pytest.approx(returns[row], abs=1e-5)
            assert info["episode"]["l"] == 6
        returns[:] = 0
        teams, own, other = start(number // 6)
        all_sides |= set(teams[: battles * size].tolist())
    assert all_sides == {0, 1}


def test_seed_restarts_the_battles():
    env = BattleVecEnv(small_battle(), 2, opponent="trivial", seed=3)
    first = env.reset()
    assert not np.array_equal(env.reset(), first)
    assert env.seed(3) == [3, 3]
    assert np.array_equal(env.reset(), first)


def test_set_rewards_changes_rewards_only():
    """The battles, their ends and all observations are unchanged."""
    plain, changed = (
        BattleVecEnv(small_battle("skirmish", max_steps=6), 2, opponent="trivial", num_threads=2) for _ in range(2)
    )
    plain.reset()
    changed.reset()
    weights = plain.battles.config.rewards
    doubled = dataclasses.replace(weights, **{name: 2 * getattr(weights, name) for name in REWARD_COMPONENTS})
    sharing = dataclasses.replace(doubled, team_spirit=1.0)
    returns = np.zeros(changed.num_envs)
    for step, actions in enumerate(random_actions(plain, 8)):
        if step in (2, 4):
            changed.set_rewards(doubled if step == 2 else sharing)
        observations, rewards, dones, _ = plain.step(actions)
        again, changed_rewards, changed_dones, infos = changed.step(actions)
        assert again.tobytes() == observations.tobytes()
        assert dones.tobytes() == changed_dones.tobytes()
        expected = rewards * (1.0 if step < 2 else 2.0)
        if step >= 4:
            expected = expected.reshape(2, 5).mean(axis=1).repeat(5)
        np.testing.assert_allclose(changed_rewards, expected, rtol=1e-5, atol=1e-6)
        returns += changed_rewards
        if dones.any():
            assert [info["episode"]["r"] for info in infos] == pytest.approx(returns.tolist(), abs=1e-5)
    assert changed.battles.config.rewards == sharing


def test_invalid_rewards_change_nothing():
    env = BattleVecEnv(small_battle(), 1)
    before = env.battles.config
    for rewards, message in (
        (dataclasses.replace(before.rewards, gamma=0.5), "which cannot change, got 0.5"),
        (dataclasses.replace(before.rewards, team_spirit=1.5), "rewards.team_spirit': expected a number from 0 to 1"),
        ({"kill": 2.0}, "'rewards': expected RewardConfig, got"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            env.set_rewards(rewards)
    assert env.battles.config is before


@pytest.mark.parametrize(("scenario", "mechs"), [("skirmish", None), ("skirmish", 20), ("duel", 6)])
def test_a_central_critic_observes_the_global_state(scenario, mechs):
    """From the view of the learner's team: its mechs, padding, the enemy's mechs, padding."""
    config = small_battle(scenario, max_steps=4)
    env = BattleVecEnv(config, 4, opponent="trivial", central=True, state_mechs=mechs, seed=2)
    plain = BattleVecEnv(config, 4, opponent="trivial", seed=2)
    layout, own = state_streams(mechs or config.num_mechs), state_streams(config.num_mechs)
    half, size = (mechs or config.num_mechs) // 2, env.team_size
    assert env.observation_space["state"].shape == (layout["units"].stop,)

    def check(seen):
        assert seen["state"].dtype == np.float32
        for battle in range(4):
            rows = seen["state"][battle * size : (battle + 1) * size]
            assert (rows == rows[0]).all()
            expected = env.battles.engine.global_state(int(env.battles.side[battle]))[battle]
            np.testing.assert_array_equal(rows[0, layout["clock"].part], expected[own["clock"].part])
            units = rows[0, layout["units"].part].reshape(2, half, -1)
            np.testing.assert_array_equal(units[:, :size], expected[own["units"].part].reshape(2, size, -1))
            assert not units[:, size:].any()

    seen = env.reset()
    assert seen["observation"].tobytes() == plain.reset().tobytes()
    check(seen)
    sides, ends = set(), 0
    for actions in random_actions(env, 9):
        seen, rewards, dones, infos = env.step(actions)
        observations, plain_rewards, _, plain_infos = plain.step(actions)
        assert (seen["observation"].tobytes(), rewards.tobytes()) == (observations.tobytes(), plain_rewards.tobytes())
        check(seen)
        sides |= set(env.battles.side.tolist())
        assert env.observation_space.contains({name: part[0] for name, part in seen.items()})
        for row in np.flatnonzero(dones):
            ends += 1
            final = infos[row]["terminal_observation"]
            assert final["observation"].tobytes() == plain_infos[row]["terminal_observation"].tobytes()
            assert final["state"][Clock.TIME_LEFT] == 0.0
            assert seen["state"][row, Clock.TIME_LEFT] == 1.0
    assert sides == {0, 1}
    assert ends == 2 * env.num_envs


def test_close_stops_the_threads_of_an_opponent_that_is_given_by_name():
    before, given = {*threading.enumerate()}, opponents.make("novice", 0, "skirmish", num_threads=2)
    for opponent, left in (("novice", 0), (given, 1)):
        env = BattleVecEnv("skirmish", 32, opponent=opponent, num_threads=2)
        env.reset()
        env.step(random_actions(env, 1)[0])
        assert len({*threading.enumerate()} - before) == 2
        env.close()
        assert len({*threading.enumerate()} - before) == left  # who made a policy closes it
    given.close()


@pytest.mark.parametrize(("side", "self_play"), [("both", 2), ("red", 0)])
def test_final_states_are_those_of_battles_that_end_alone(monkeypatch, side, self_play):
    blue = ("heavy",) if side == "red" else ("light", "scout")
    config = small_battle("skirmish", max_steps=6, blue=blue, red=("light", "scout"))
    env = BattleVecEnv(
        config, 3, opponent="novice", side=side, self_play=self_play, central=True, state_mechs=6, num_threads=2
    )
    env.reset()
    env.engine.state.battles["step_count"][:] = 0, 2, 4
    start, finals = env._start_battles, []

    def look(mask):
        sides = env.battles.side
        finals.append([env.engine.global_state(team, mechs=6) for team in (sides, 1 - sides)])
        start(mask)

    monkeypatch.setattr(env, "_start_battles", look)
    for actions in random_actions(env, 6):
        _, _, dones, infos = env.step(actions)
        ended = np.flatnonzero(dones)
        assert len(ended) in (0, env.team_size, 2 * env.team_size)
        for row in ended:
            team, battle = divmod(row // env.team_size, 3)
            np.testing.assert_array_equal(infos[row]["terminal_observation"]["state"], finals[-1][team][battle])
    assert len(finals) == 3


def test_methods_of_vec_env():
    env = BattleVecEnv(small_battle(), 3, opponent="trivial")
    assert env.get_attr("num_battles") == [3, 3, 3]
    assert env.get_attr("team_size", [0, 2]) == [1, 1]
    with pytest.raises(AttributeError):
        env.get_attr("nothing")
    assert not env.has_attr("nothing")
    env.set_attr("mark", 2.0)
    assert env.get_attr("mark") == [2.0] * 3
    with pytest.raises(ValueError, match="share one environment"):
        env.set_attr("mark", 1.0, indices=0)
    assert env.env_method("seed", 5) == [[5, 5, 5]] * 3
    assert env.env_is_wrapped(Monitor) == [True] * 3
    assert env.env_is_wrapped(VecNormalize, indices=[1]) == [False]


EVALUATION_SEED = EVALUATION_SEEDS.start + 5
ONE_SIDE = small_battle(red=("medium", "light"))
BAD = [
    ({"self_play": -1}, "self_play: expected"),
    ({"self_play": 4}, "self_play: expected"),
    ({"self_play": 1, "side": "blue"}, "self_play: expected"),
    ({"self_play": 1.0}, "self_play: expected"),
    ({"state_mechs": 1, "central": True}, "at least 2, got 1"),
    ({"state_mechs": 3, "central": True}, "even number, got 3"),
    ({"state_mechs": 4.0, "central": True}, "integer of at least 2"),
    ({"state_mechs": 4}, "needs central"),
    ({"config": make_config("duel")}, "persist"),
    ({"config": ONE_SIDE}, "need a learner with one side"),
    ({"config": "duell"}, r"unknown scenario 'duell'; did you mean 'duel'\?"),
    ({"opponent": "novic"}, "novice"),
    ({"maps": 0}, "maps: expected"),
    ({"maps": True}, "maps: expected"),
    ({"maps": 10**9}, "maps: expected"),
    ({"maps": MapPool(small_battle(), [3, EVALUATION_SEED])}, r"maps: seed 4611686018427387909 in MapPool.* reserved"),
    ({"seed": EVALUATION_SEED}, "is outside .* kept for evaluation"),
    ({"seed": np.int64(2**62)}, "is outside .* kept for evaluation"),
    ({"render_mode": "human"}, "render_mode: expected None or 'rgb_array', got 'human'"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_arguments_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        BattleVecEnv(**{"config": small_battle(), "num_battles": 3, **changes})


def test_evaluation_seeds_and_maps_are_refused_later_too(tmp_path):
    env = BattleVecEnv(small_battle(), 1, seed=9, maps=2)
    assert env.engine.maps.seeds == tuple(training_map_seed(9, number) for number in range(2))
    with pytest.raises(ValueError, match=r"is outside .* kept for evaluation"):
        env.seed(EVALUATION_SEED)
    assert env.seed() == [9]
    (tmp_path / "a.json").write_text(MapPool(small_battle(), [EVALUATION_SEED])[0].recipe.to_json())
    with pytest.raises(ConfigError, match=r"maps: seed 4611686018427387909 in .* is reserved for"):
        BattleVecEnv(small_battle(), 1, maps=tmp_path)


def test_an_argument_of_another_environment_is_named():
    for wrong, right in (("num_envs", "num_battles"), ("oponent", "opponent"), ("max_step", "max_steps")):
        with pytest.raises(TypeError, match=f"argument '{wrong}'; did you mean '{right}'"):
            BattleVecEnv("duel", **{wrong: 2})
    assert BattleVecEnv("duel", max_steps=7).battles.config == dataclasses.replace(battle_config("duel"), max_steps=7)


@pytest.mark.parametrize("self_play", [0, 1])
def test_actions_are_read_from_lists_and_refused_with_what_was_expected(self_play):
    env, twin = (BattleVecEnv(small_battle(), 2, self_play=self_play) for _ in range(2))
    for each in (env, twin):
        each.reset()
    actions = random_actions(env, 1)[0]
    np.testing.assert_array_equal(env.step(actions.tolist())[0], twin.step(actions)[0])
    for bad in (actions[0], actions[:, :3], [[0.0], [0.0, 1.0]], None, "x", actions.astype(complex)):
        with pytest.raises(ValueError, match=r"actions \(rows, action\): expected .*, got "):
            env.step(bad)


def test_pictures_of_the_battles(tmp_path, monkeypatch):
    """As `VecVideoRecorder` takes them; it writes them with MoviePy, which is not installed."""
    monkeypatch.setitem(sys.modules, "moviepy", types.ModuleType("moviepy"))
    env = BattleVecEnv(small_battle("skirmish"), 2, render_mode="rgb_array")
    recorder = VecVideoRecorder(VecNormalize(env), str(tmp_path), lambda step: step == 0)
    recorder.reset()
    for actions in random_actions(env, 2):
        recorder.step(actions)
    first, second = env.get_images()
    assert first.shape == second.shape and (first != second).any()
    assert [frame.shape for frame in recorder.recorded_frames] == [(2 * first.shape[0], *first.shape[1:])] * 3
    assert recorder.frames_per_sec == 1 / env.battles.config.decision_seconds
    recorder.recorded_frames.clear()
    with pytest.warns(UserWarning, match="no `render_mode` was passed"):
        assert BattleVecEnv("duel").render() is None
