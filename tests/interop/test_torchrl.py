"""TorchRL: `TorchRLEnv`, and its own wrappers."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from tensordict import TensorDict
from torchrl.envs import GymEnv, GymWrapper, PettingZooWrapper
from torchrl.envs.utils import check_env_specs

import echelon_env
from echelon_env import ConfigError
from echelon_env.engine.rng import episode_seed
from echelon_env.envs.controlled import ControlledBattles
from echelon_env.interop.torchrl import TorchRLEnv


def load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ppo, qmix = load("torchrl_ppo"), load("torchrl_qmix")


def rollout_on(env, steps):
    """A rollout in which battles that are over are followed by others."""
    torch.manual_seed(0)
    return env.rollout(steps, break_when_any_done=False)


def rollout(env, steps, seed=0):
    torch.manual_seed(seed)
    env.set_seed(seed)
    return env.rollout(steps)


@pytest.mark.filterwarnings("ignore:PettingZoo in TorchRL is tested")  # with another version
def test_infos_as_they_are_do_not_fit():
    with pytest.raises(TypeError, match="integer is required"):
        PettingZooWrapper(echelon_env.parallel_env("duel-open"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: GymEnv("echelon_env:echelon/DuelOpen-v1", max_steps=10),
        lambda: GymWrapper(echelon_env.BattleEnv("duel-open", max_steps=10)),
    ],
    ids=["GymEnv", "GymWrapper"],
)
def test_one_agent(make):
    env = make()
    check_env_specs(env)
    assert rollout(env, 20)["next", "done"][-1]


@pytest.mark.parametrize("opponent", [None, "novice"])
@pytest.mark.parametrize("action", ["continuous", "multi_discrete", "discrete"])
def test_batch_specs(action, opponent):
    env = TorchRLEnv("skirmish", 3, opponent=opponent, action=action, max_steps=5)
    check_env_specs(env)
    assert env.group_map.keys() == ({"blue"} if opponent else {"blue", "red"})
    assert env.group_map["blue"] == [f"blue_{i}" for i in range(5)]


@pytest.mark.parametrize("opponent", [None, "novice"])
def test_a_batch_is_the_battles_of_the_engine(deadly, opponent):
    """Observations, rewards, states and ends are those of `ControlledBattles` with the same seeds and actions."""
    env = TorchRLEnv(deadly, 3, opponent=opponent, seed=5, maps=4, max_steps=40)
    played = rollout(env, 40, seed=5)
    battles = ControlledBattles(
        deadly, 3, control="team" if opponent else "all", opponent="novice", maps=4, dead_agents="persist", max_steps=40
    )  # fmt: skip
    observed = [battles.reset([episode_seed(5 + b, 0) for b in range(3)])]
    teams, rewards, states = list(env.group_map), [], [battles.engine.global_state()]
    for t in range(played.shape[1]):
        actions = torch.cat([played[team, "action"][:, t] for team in teams], 1)
        results = battles.step(actions.numpy())
        observed.append(results[0]), rewards.append(results[1]), states.append(battles.engine.global_state())
    seen = torch.cat([played[team, "observation"] for team in teams], 2)
    assert np.array_equal(seen, np.stack(observed[:-1], 1))
    assert np.array_equal(played["next", "state"], np.stack(states[1:], 1))
    earned = torch.cat([played["next", team, "reward"] for team in teams], 2)[..., 0]
    assert np.array_equal(earned, np.stack(rewards, 1))
    assert not torch.cat([played[team, "alive"] for team in teams], 2).all()
    done = played["next", "done"][:, -1, 0]
    assert done.any() and np.array_equal(done, battles.battle_over)
    assert np.array_equal(played["next", "outcome"][done, -1, 0], battles.learner_outcome[done])


def test_battles_of_a_batch_end_and_begin_again_by_themselves():
    env = TorchRLEnv("duel", 2, opponent="novice", seed=1, max_steps=7)
    played = rollout_on(env, 20)
    ends = played["next", "done"][..., 0].nonzero()[:, 1].tolist()
    assert ends == [6, 13, 6, 13]
    assert played["next", "truncated"].equal(played["next", "done"]) and not played["next", "terminated"].any()
    starts = played["blue", "observation"][0, [0, 7, 14]]
    assert not starts[0].equal(starts[1]) and not starts[1].equal(starts[2])


def test_seeds_repeat_a_batch():
    first, again, other = (rollout_on(TorchRLEnv("duel", 2, seed=seed, max_steps=6), 15) for seed in (3, 3, 4))
    assert first["next", "state"].equal(again["next", "state"])
    assert not first["next", "state"].equal(other["next", "state"])
    unseeded = [TorchRLEnv("duel", 1).reset()["state"] for _ in range(2)]
    assert not unseeded[0].equal(unseeded[1])


def test_seeds_wait_for_the_next_reset_of_their_battles():
    expected = TorchRLEnv("duel", 2, seed=3).reset()["state"]
    env = TorchRLEnv("duel", 2)
    env.reset()
    env.set_seed(3)
    for battle, masks in enumerate([[[True], [False]], [[False], [True]]]):
        reset = env.reset(TensorDict({"_reset": torch.tensor(masks)}, [2]))
        assert reset["state"][battle].equal(expected[battle])
    assert env.reset(seed=3)["state"].equal(expected)
    with pytest.raises(TypeError, match="no keyword arguments but seed, got options"):
        env.reset(options={})


def test_battles_of_a_batch_cannot_wait():
    env = TorchRLEnv("duel", 2, seed=0)
    start = env.rand_action(env.reset())
    with pytest.raises(RuntimeError, match="_step: expected all battles that are not over"):
        env.step(start.set("_step", torch.tensor([True, False])))


def python_of(marker, shelf):
    """The block with some text of a page about libraries, docs/guide/libraries.md or docs/reference/libraries.md."""
    text = (Path(__file__).parents[2] / "docs" / shelf / "libraries.md").read_text(encoding="utf-8")
    (block,) = (block for block in text.split("```")[1::2] if marker in block)
    return block.removeprefix("python").lstrip("\n")


def test_the_blocks_of_the_documentation_run(capsys):
    exec(compile(python_of("rollout = env.rollout(100", "guide"), "libraries.md", "exec"), {})
    assert "torch.Size([64, 100, 5, 1])" in capsys.readouterr().out
    names = {"actor": ppo.make_networks(TorchRLEnv("skirmish", 1, action="discrete"))[0]}
    exec(compile(python_of("class Trained", "reference"), "libraries.md", "exec"), names)
    assert len(names["match"].battles) == 2


def test_a_batch_shows_its_first_battle():
    env = TorchRLEnv("duel", 2)
    env.reset()
    assert env.render().ndim == 3
    env.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"action": "dict"}, "action: unknown format 'dict'"),
        ({"dead_agents": "terminate"}, "dead mechs keep their rows"),
        ({"observation": "dict"}, r"TorchRLEnv.__init__\(\) got an unexpected keyword argument 'observation'"),
        ({"pilot": 1}, "unexpected keyword argument 'pilot'"),
        ({"num_envs": 0}, "num_envs: expected an integer of at least 1, got 0"),
        ({"opponent": "nobody"}, "unknown opponent 'nobody'"),
    ],
)
def test_wrong_arguments_of_a_batch_are_errors(arguments, message):
    with pytest.raises(ConfigError, match=message):
        TorchRLEnv("duel", **arguments)


@pytest.mark.filterwarnings("ignore:The env passed to Collector")  # TorchRL 0.14 announces a change
def test_ppo_learns(monkeypatch, capsys):
    """The trivial level wins all battles against a beginner, who does not reach the zone."""
    monkeypatch.setattr("sys.argv", ["torchrl_ppo.py", "--scenario=duel-open", "--opponent=trivial", "--updates=30"])
    ppo.main()
    first, *_, last = (int(re.search(r"won (\d+)%", line).group(1)) for line in capsys.readouterr().out.splitlines())
    assert first <= 40  # 12 at the first run
    assert last >= 80  # 100 at the first run


def test_qmix_learns(monkeypatch, capsys):
    """The trivial level wins all battles against a beginner, who does not reach the zone."""
    monkeypatch.setattr("sys.argv", ["torchrl_qmix.py"])
    qmix.main()
    lines = capsys.readouterr().out.splitlines()
    first, last = (int(re.search(r"won (\d+)%", line).group(1)) for line in (lines[0], lines[-1]))
    assert first <= 10
    assert last >= 50  # 84 with this seed on the machine of its first run
