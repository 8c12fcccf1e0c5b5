"""The interface of SMAC, as the runners of PyMARL and EPyMARL use it."""

import functools
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from gymnasium.error import ResetNeeded

from echelon_env import BattleEnv, scenario_names
from echelon_env.interop import EPyMARLEnv, SMACEnv
from echelon_env.replays import Recorder, read_replay

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "smac.md"
SHORT = {"terrain": {"size": 50}, "max_steps": 40}


def available(env, rng):
    """A random available action for each mech."""
    return [int(rng.choice(np.flatnonzero(mask))) for mask in env.get_avail_actions()]


@pytest.mark.parametrize("side", [0, 1])
def test_an_episode_has_the_observations_states_and_rewards_of_the_team_environment(side):
    env = SMACEnv("skirmish", opponent="expert", seed=4, side=side, **SHORT)
    team = BattleEnv("skirmish", control="team", opponent="expert", action="discrete", side=side, **SHORT)
    sizes = env.get_env_info()
    assert sizes == {
        "state_shape": team.state_space.shape[0], "obs_shape": team.observation_space.shape[0] // 5,
        "n_actions": 67, "n_agents": 5, "episode_limit": 40,
    }  # fmt: skip
    rng, terminated, steps = np.random.default_rng(0), False, 0
    (observations, state), (expected, _) = env.reset(), team.reset(seed=4)
    while not terminated:
        assert np.shape(observations) == (5, sizes["obs_shape"])
        np.testing.assert_array_equal(np.concatenate(observations), expected)
        np.testing.assert_array_equal(env.get_obs_agent(3), observations[3])
        np.testing.assert_array_equal(state, team.state())
        assert team.state_space.contains(state)
        assert np.shape(env.get_avail_actions()) == (5, sizes["n_actions"])
        assert env.get_avail_agent_actions(2) == env.get_avail_actions()[2]
        actions = available(env, rng)
        reward, terminated, info = env.step(actions)
        expected, expected_reward, *flags, expected_info = team.step(np.array(actions))
        assert (reward, terminated) == (expected_reward, any(flags))
        assert info["dead_allies"] == 5 - expected_info["alive"]
        observations, state, steps = env.get_obs(), env.get_state(), steps + 1
    assert info["episode_limit"] == flags[1]
    assert info["battle_won"] == (expected_info["outcome"] > 0)
    stats = env.get_stats()
    assert (stats["battles_game"], stats["battles_won"], stats["timeouts"]) == (1, info["battle_won"], flags[1])
    with pytest.raises(ResetNeeded):
        env.step(actions)
    env.close()


def test_the_dead_have_no_choice_and_are_counted():
    env = SMACEnv("skirmish", opponent="expert", seed=1, terrain={"size": 50}, zone={"score_to_win": 120.0})
    env.reset()
    terminated, dead = False, set()
    while not terminated:
        _, terminated, info = env.step(np.zeros(5, int))
        choices = np.sum(env.get_avail_actions(), axis=1)
        assert (choices == 1).sum() >= info["dead_allies"]
        dead.add(info["dead_allies"])
    assert len(dead) > 1 and not info["battle_won"] and info["dead_enemies"] == 0


def test_later_battles_follow_from_the_seed():
    states = []
    for _ in range(2):
        env = SMACEnv("duel", seed=3, **SHORT)
        states.append([env.reset()[1] for _ in range(2)])
        env.seed(3)
        states[-1].append(env.reset()[1])
    np.testing.assert_array_equal(*states)
    assert (states[0][0] != states[0][1]).any()
    np.testing.assert_array_equal(states[0][0], states[0][2])


def epymarl():
    """EPyMARL's registry and configuration after the additions of docs/guide/smac.md, as its `main.py` reads them."""
    code = next(block for block in blocks("python") if "REGISTRY" in block)
    names = {}
    exec(code, names)
    block = next(block for block in blocks("yaml") if "env_args" in block)
    config = {"common_reward": True, "reward_scalarisation": "sum"} | yaml.safe_load(block)
    assert config["env_args"]["map_name"] in scenario_names()  # results are named by it; without it `main.py` ends
    config["env_args"] |= {"seed": 900_737_697}
    rewards = {name: config[name] for name in ("common_reward", "reward_scalarisation")}
    return names["REGISTRY"][config["env"]], config["env_args"], rewards


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def look(env):
    """What both runners read before each choice."""
    return {"state": env.get_state(), "avail_actions": env.get_avail_actions(), "obs": env.get_obs()}


def run_episodes(make, env_args, rewards):
    """The calls of `EpisodeRunner`, from the constructor to `close_env`: two battles, and the last one's replay."""
    env = make(**env_args, **rewards)
    sizes, limit, stats = env.get_env_info(), env.episode_limit, {}
    rng = np.random.default_rng(1)
    for _ in range(2):
        env.reset()
        terminated, t = False, 0
        while not terminated:
            seen = look(env)
            assert np.shape(seen["state"]) == (sizes["state_shape"],)
            assert np.shape(seen["avail_actions"]) == (sizes["n_agents"], sizes["n_actions"])
            assert np.shape(seen["obs"]) == (sizes["n_agents"], sizes["obs_shape"])
            actions = np.array([available(env, rng)])
            _, reward, terminated, truncated, env_info = env.step(actions[0])
            terminated = terminated or truncated
            assert isinstance(reward, float)
            t += 1
        assert t <= limit
        assert env_info["episode_limit"] == truncated
        look(env)
        stats = {k: stats.get(k, 0) + env_info.get(k, 0) for k in set(stats) | set(env_info)}
    env.save_replay()
    env.close()
    assert stats.keys() == {"battle_won", "dead_allies", "dead_enemies", "episode_limit"}
    return t


def run_in_parallel(make, env_args, rewards):
    """The calls of `ParallelRunner`, whose processes get pickled environments; the first one saves a replay."""
    rng, lengths, states = np.random.default_rng(1), [], []
    pickled = [pickle.dumps(functools.partial(make, **env_args | {"seed": seed}, **rewards)) for seed in (5, 6)]
    envs = [pickle.loads(each)() for each in pickled]
    for env in envs:
        env.reset()
        states.append(look(env)["state"].tobytes())
        terminated, t = False, 0
        while not terminated:
            _, _, terminated, truncated, _ = env.step(np.array(available(env, rng)))
            terminated = terminated or truncated
            look(env)
            t += 1
        lengths.append(t)
    assert len(set(states)) == 2
    assert [env.get_stats()["battles_game"] for env in envs] == [1, 1]
    envs[0].save_replay()
    for env in envs:
        env.close()
    return lengths[0]


@pytest.mark.parametrize("run", [run_episodes, run_in_parallel])
def test_epymarls_runners_play_and_save_a_replay(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, env_args, rewards = epymarl()
    length = run(make, {**env_args, **SHORT}, rewards)
    replay = read_replay(Path(env_args["replay_dir"], f"{env_args['map_name']}.replay"))
    assert replay.decisions == length
    assert replay.first_difference() is None
    assert replay.players == ("learner", env_args["opponent"])


@pytest.mark.parametrize(("side", "maps"), [(0, None), (1, 2)])
def test_a_saved_replay_is_that_of_a_recorder(side, maps, tmp_path):
    env = SMACEnv("duel", seed=1, side=side, maps=maps, replay_dir=tmp_path / "new", replay_prefix="mine", **SHORT)
    rng = np.random.default_rng(0)
    with Recorder(env) as recorder:
        for decisions in (3, 5, 40):
            env.reset()
            for _ in range(decisions):
                env.step(available(env, rng))
            saved = read_replay(env.save_replay())
            expected = recorder.current() if decisions < SHORT["max_steps"] else recorder.replays[-1]
            assert saved.players == (("learner", "novice"), ("novice", "learner"))[side]
            assert saved.digests.tobytes() == expected.digests.tobytes()
            assert saved.actions.tobytes() == expected.actions.tobytes()
            assert (saved.seed, saved.map_seed, saved.map_hash) == (expected.seed, expected.map_seed, expected.map_hash)
            assert saved.voxels_digest == expected.voxels_digest
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == ["mine-2.replay", "mine-3.replay", "mine.replay"]


def test_epymarls_reset_takes_a_seed():
    env = EPyMARLEnv(
        map_name="duel", opponent="trivial", seed=5, common_reward=True, reward_scalarisation="sum", **SHORT
    )
    first, info = env.reset(seed=5)
    again, _ = env.reset(seed=5)
    np.testing.assert_array_equal(first, again)
    assert info == {}
    observations, *_ = env.step([0])
    np.testing.assert_array_equal(observations, env.get_obs())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EPyMARLEnv(common_reward=False), "common_reward: expected True"),
        (lambda: SMACEnv("duel", observation="dict", control="pilot"), "control, observation: the interface of SMAC"),
        (lambda: SMACEnv(scenario="duel"), r"SMACEnv.* argument 'scenario'; did you mean 'map_name'\?"),
        (lambda: SMACEnv("duel", seed=-1), "seed: expected an integer"),
        (lambda: SMACEnv("duel").save_replay(), r"save_replay\(\) needs a battle with a decision"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("changes", "limit"), [({"time_limit": "terminate"}, 3), ({"max_cycles": 2}, 2)])
def test_time_limits_are_counted(changes, limit):
    env = SMACEnv("duel-open", seed=0, max_steps=3, **changes)
    env.reset()
    steps, over = 0, False
    while not over:
        _, over, _ = env.step([0])
        steps += 1
    assert (steps, env.episode_limit, env.get_env_info()["episode_limit"]) == (limit, limit, limit)
    assert env.get_stats()["timeouts"] == 1
    env.close()
