"""Battles in a device's memory: the PTX of the kernels, run on the CPU, does what the library does, byte for byte."""

import re

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("ziglang")

import torch
from benchmarks.gpu.engine import OnDevice
from gymnasium.error import ResetNeeded

from echelon_env import BattleEngine, ConfigError, MapPool, opponents
from echelon_env.config.scenario import scenarios
from echelon_env.gpu import TorchBattleEnv

pytestmark = pytest.mark.long
SHORT = {"maps": 3, "max_steps": 40}


def pair(scenario="duel", battles=3, **arguments):
    """The same battles in the library and in PTX."""
    given = SHORT | arguments
    return TorchBattleEnv(scenario, battles, device="cpu", **given), OnDevice(scenario, battles, device="cpu", **given)


def assert_same(expected, found, where=""):
    if isinstance(expected, dict):
        assert expected.keys() == found.keys()
        for name in expected:
            assert_same(expected[name], found[name], f"{where} {name}")
    elif isinstance(expected, tuple):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            assert_same(one, other, f"{where} {number}")
    else:
        one, other = np.asarray(expected), np.asarray(found)
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes()), where


def without_final(step):
    """A step's result, with what it says about last battles where it counts."""
    *results, infos = step
    done = infos.pop("_final_obs", None)
    if done is None:
        return (*results, infos)
    last = {name: each[done] for name, each in infos.pop("final_info").items()}
    return (*results, infos, done, infos.pop("final_obs")[done], last)


def random_actions(envs, generator):
    shape = envs.num_envs, envs.num_mechs, *envs.single_action_space.shape
    if envs.single_action_space.dtype == np.float32:
        return torch.rand(shape, generator=generator) * 2.4 - 1.2
    sizes = torch.as_tensor(
        envs.single_action_space.nvec if envs.single_action_space.shape else envs.single_action_space.n
    )
    return (torch.rand(shape, generator=generator) * sizes).long()


GATES = {("duel", None), ("skirmish", "expert")}
CASES = [
    pytest.param(name, level, marks=() if (name, level) in GATES else pytest.mark.slow)
    for name in scenarios()
    for level in (None, "novice", "expert")
]


@pytest.mark.parametrize(("scenario", "level"), CASES)
def test_battles_have_the_same_bytes(scenario, level):
    host, device = pair(scenario, max_steps=60)
    assert_same(host.reset(seed=7), device.reset(seed=7))
    generator, rows, ended = torch.Generator().manual_seed(5), 3 * host.num_mechs, 0
    player = None if level is None else opponents.make(level, 3, host.config)
    observations = host.reset(seed=7)[0]
    device.reset(seed=7)
    for _ in range(150):
        actions = random_actions(host, generator)
        if player is not None:
            seen = observations.numpy().reshape(rows, -1).copy()
            actions = torch.from_numpy(player.act(seen).copy()).view(actions.shape)
        expected, found = host.step(actions), device.step(actions)
        assert_same(expected, found)
        assert_same(host.snapshot(), device.snapshot())
        assert_same(host.state(1), device.state(1))
        observations, ended = expected[0], ended + int((expected[4]["reason"] > 0).sum())
    assert ended >= 3


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
@pytest.mark.parametrize("action", ["continuous", "multi_discrete", "discrete"])
def test_formats_and_modes(mode, action):
    host, device = pair(action=action, autoreset_mode=mode, max_cycles=25, regenerate=2)
    assert_same(host.reset(seed=[4, 5, 2**64 - 1]), device.reset(seed=[4, 5, 2**64 - 1]))
    generator, finals, seeds = torch.Generator().manual_seed(1), 0, set()
    for _ in range(120):
        actions = random_actions(host, generator)
        expected, found = host.step(actions), device.step(actions)
        finals += int(expected[4].get("_final_obs", torch.zeros(1)).sum())
        seeds |= set(expected[4]["map_seed"].tolist())
        assert_same(without_final(expected), without_final(found))
        assert_same(host.action_masks(), device.action_masks())
    assert (finals > 0) == (mode == "SAME_STEP") and len(seeds) > 1
    assert host.action_masks().shape[:2] == (3, 2)


def test_some_battles_are_reset():
    host, device = pair(battles=4)
    generator = torch.Generator().manual_seed(2)
    host.reset(seed=1), device.reset(seed=1)
    options = {"reset_mask": np.array([True, False, True, False])}
    for decision in range(90):
        actions = random_actions(host, generator)
        assert_same(host.step(actions), device.step(actions))
        if decision % 20 == 5:
            chosen = options | ({"map_seed": decision} if decision > 30 else {})
            seed = None if decision < 50 else [decision, None, None, 3]
            assert_same(host.reset(seed=seed, options=chosen)[0], device.reset(seed=seed, options=chosen)[0])


def test_snapshots_go_from_device_to_device():
    host, device = pair()
    generator = torch.Generator().manual_seed(3)
    host.reset(seed=1), device.reset(seed=9)
    for _ in range(12):
        host.step(random_actions(host, generator))
    assert_same(host.restore(host.snapshot()), device.restore(host.snapshot()))
    engine = BattleEngine(host.config, 3, maps=3)
    engine.restore(device.snapshot())
    actions = random_actions(host, generator)
    expected = host.step(actions)
    assert_same(expected[:4], device.step(actions)[:4])
    assert_same(expected[0], engine.step(actions.numpy())[0])
    with pytest.raises(ValueError, match="snapshot: array 'mechs' is missing"):
        device.restore({})
    assert_same(expected[0], device.restore(device.snapshot()))


def test_a_battle_is_copied():
    host, device = pair()
    host.reset(seed=1), device.reset(seed=1)
    for envs in (host, device):
        envs.step(torch.zeros(3, 2, 27))
        engine = envs.battle(2)
        assert_same(engine.observations[0], envs.restore(envs.snapshot())[2])
        assert engine.terrain().seed == engine.state.battles["map_seed"][0]
        with pytest.raises(IndexError, match="battle: expected 0 to 2, got 3"):
            envs.battle(3)


def test_bad_arguments():
    _, device = pair()
    with pytest.raises(ResetNeeded, match=re.escape("step() needs a battle")):
        device.step(torch.zeros(3, 2, 27))
    device.reset(seed=0)
    for actions, message in [
        (torch.zeros(3, 2, 26), r"expected a tensor \(3, 2, 27\) on cpu, got \(3, 2, 26\) on cpu"),
        (np.zeros((3, 2, 27)), "got ndarray"),
        (torch.zeros(3, 2, 27, dtype=torch.int64), "expected floats, got torch.int64"),
    ]:
        with pytest.raises(ValueError, match=message):
            device.step(actions)
    with pytest.raises(ValueError, match="team: expected 0 or 1, got 2"):
        device.state(2)
    for arguments, message in [
        ({"device": "mps"}, "device: expected 'cuda' or 'cpu', got 'mps'"),
        ({"device": "gpu"}, "device: expected 'cuda' or 'cpu', got 'gpu'"),
        ({"action": "dict"}, "unknown action 'dict'"),
        ({"maps": None}, "maps: expected a number of maps"),
        ({"autoreset_mode": "DISABLED"}, "autoreset_mode: expected NEXT_STEP or SAME_STEP, got DISABLED"),
        ({"num_envs": 0}, "num_envs: expected an integer of at least 1, got 0"),
    ]:
        with pytest.raises(ConfigError, match=message):
            TorchBattleEnv("duel", **{"device": "cpu"} | arguments)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_without_a_gpu_the_error_says_what_to_do():
    with pytest.raises(ConfigError, match="device 'cuda': torch finds no NVIDIA GPU here; use device='cpu'"):
        TorchBattleEnv("duel")


def test_choices_out_of_range_are_the_nearest():
    host, device = pair(action="multi_discrete")
    host.reset(seed=1), device.reset(seed=1)
    wild = torch.randint(-9, 99, (3, 2, *host.single_action_space.shape))
    sizes = torch.as_tensor(host.single_action_space.nvec)
    assert_same(host.step(wild)[0], device.step(wild.clamp(min=0).minimum(sizes - 1))[0])


def test_a_pool_is_shared_with_others():
    pool = MapPool.generate("duel", 2, seed=5)
    device = OnDevice("duel", device="cpu", maps=pool)
    _, infos = device.reset(seed=1)
    assert int(infos["map_seed"][0]) in pool.seeds
