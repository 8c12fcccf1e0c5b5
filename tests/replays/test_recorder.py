import copy
import pickle

import gymnasium
import numpy as np
import pytest

import echelon_env
from echelon_env import BattleEngine, ConfigError
from echelon_env.config.battle import RewardConfig
from echelon_env.envs.batch import BattleBatchEnv
from echelon_env.envs.controlled import ControlledBattles
from echelon_env.envs.vector import BattleVectorEnv
from echelon_env.interop import SMACEnv
from echelon_env.replays import Recorder

SHORT = {"max_steps": 4}


def play_single(env):
    for seed in (1, 2):
        env.reset(seed=seed)
        done = False
        while not done:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            done = terminated or truncated


def play_parallel(env):
    for seed in (1, 2):
        env.reset(seed=seed)
        while env.agents:
            env.step({agent: env.action_space(agent).sample() for agent in env.agents})


def play_aec(env):
    for seed in (1, 2):
        env.reset(seed=seed)
        for agent in env.agent_iter():
            *_, terminated, truncated, _ = env.last()
            env.step(None if terminated or truncated else env.action_space(agent).sample())


def play_vector(env):
    env.reset(seed=1)
    for _ in range(9):
        env.step(env.action_space.sample())


def play_batch(env):
    env.reset(seed=1)
    for _ in range(9):
        env.step(np.zeros((2, 2, env.action_space.shape[-1]), np.float32))


def play_controlled(battles):
    for seed in (1, 2):
        battles.reset([seed, seed + 10])
        while not battles.battle_over.all():
            battles.step(np.zeros((2, battles.num_controlled, 27), np.float32))


def play_smac(env):
    for _ in range(2):
        env.reset()
        done = False
        while not done:
            _, done, _ = env.step([mask.index(1) for mask in env.get_avail_actions()])


ENVIRONMENTS = {
    "single": (lambda: gymnasium.make("echelon_env:echelon/DuelOpen-v1", **SHORT), play_single),
    "parallel": (lambda: echelon_env.parallel_env("duel-open", **SHORT), play_parallel),
    "aec": (lambda: echelon_env.env("duel-open", **SHORT), play_aec),
    "vector": (lambda: BattleVectorEnv("duel-open", num_envs=2, **SHORT), play_vector),
    "batch": (lambda: BattleBatchEnv("duel-open", 2, autoreset_mode="NextStep", **SHORT), play_batch),
    "controlled": (lambda: ControlledBattles("duel-open", 2, **SHORT), play_controlled),
    "smac": (lambda: SMACEnv("duel-open", opponent="novice", seed=0, **SHORT), play_smac),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_is_recorded(name):
    make, play = ENVIRONMENTS[name]
    environment = make()
    with Recorder(environment, ("mine", "theirs")) as recorder:
        play(environment)
    assert len(recorder.replays) >= 2
    for replay in recorder.replays:
        assert replay.decisions == 4 and replay.players == ("mine", "theirs")
        assert replay.first_difference() is None
    assert len({replay.seed for replay in recorder.replays}) == len(recorder.replays)


def started(**arguments):
    engine = BattleEngine("duel-open", 2, max_steps=6)
    recorder = Recorder(engine, **arguments)
    engine.reset([1, 2])
    return engine, recorder


def step(engine, times=1):
    rng = np.random.default_rng(0)
    for _ in range(times):
        engine.step(rng.uniform(-1, 1, (engine.num_battles, engine.num_mechs, engine.action_dim)))


def test_the_newest_replays_are_kept():
    engine, recorder = started(keep=3)
    for seed in (3, 4, 5):
        step(engine, 6)
        engine.reset([seed, seed + 10])
    assert [replay.seed for replay in recorder.replays] == [13, 4, 14]


def test_a_battle_in_progress_and_one_that_is_cut_short():
    engine, recorder = started()
    step(engine, 2)
    assert (recorder.current(1).decisions, [*Recorder(engine).replays]) == (2, [])
    assert recorder.current(1).first_difference() is None
    engine.reset([7, 8], mask=[True, False])
    (cut,) = recorder.replays
    assert (cut.seed, cut.decisions, cut.voxels_digest) == (1, 2, None)
    assert cut.first_difference() is None


@pytest.mark.parametrize("change", [lambda engine: engine.restore(engine.snapshot()),
                                    lambda engine: engine.set_rewards(RewardConfig(kill=9.0))])  # fmt: skip
def test_a_battle_that_was_changed_is_not_recorded(change):
    engine, recorder = started()
    step(engine)
    change(engine)
    with pytest.raises(ConfigError, match="battle 0: is not recorded"):
        recorder.current()
    step(engine, 5)
    assert not recorder.replays


def test_copies_have_no_observers():
    engine, recorder = started()
    for other in (copy.deepcopy(engine), copy.copy(engine), pickle.loads(pickle.dumps(engine))):
        assert other.observers == []
    recorder.close()
    assert engine.observers == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"players": ("one",)}, ConfigError, "players: expected the names"),
        ({"players": "ab"}, ConfigError, "players: expected the names"),
        ({"players": ("a", "b" * 1025)}, ConfigError, "at most 1024 bytes"),
        ({"players": ("a", "b\ud800")}, ConfigError, "expected printable names"),
        ({"players": ("a", "\x1b[2J")}, ConfigError, "expected printable names"),
        ({"keep": -1}, ConfigError, "keep"),
        ({"environment": object()}, TypeError, "expected an environment of echelon_env, got object"),
    ],
)
def test_invalid_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Recorder(**{"environment": BattleEngine("duel-open", 2), **arguments})
