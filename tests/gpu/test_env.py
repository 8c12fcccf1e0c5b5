"""Battles in a device's memory: the PTX of the kernels, on a GPU or as C, does what the library does, byte for byte."""

import copy
import pickle
import re
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("ziglang")

import torch
from benchmarks.gpu.engine import OnDevice, differing, what_counts
from gymnasium.error import ResetNeeded

from echelon_env import BattleEngine, ConfigError, MapPool, opponents
from echelon_env.config import DEFAULT_CATALOG
from echelon_env.config.scenario import scenarios
from echelon_env.gpu import TorchBattleEnv

pytestmark = pytest.mark.long
EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = {"maps": 3, "max_steps": 40}


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def pair(scenario="duel", battles=3, **arguments):
    """The same battles in the library, and in PTX on a GPU or as C."""
    given = SHORT | arguments
    return TorchBattleEnv(scenario, battles, device="cpu", **given), OnDevice(scenario, battles, device=DEVICE, **given)


def assert_same(expected, found):
    assert differing(expected, found) == []


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
        expected, found = host.step(actions), device.step(actions.to(DEVICE))
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
        expected, found = host.step(actions), device.step(actions.to(DEVICE))
        finals += int(expected[4].get("_final_obs", torch.zeros(1)).sum())
        seeds |= set(expected[4]["map_seed"].tolist())
        assert_same(what_counts(expected), what_counts(found))
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
        assert_same(host.step(actions), device.step(actions.to(DEVICE)))
        if decision % 20 == 5:
            chosen = options | ({"map_seed": decision} if decision > 30 else {})
            seed = None if decision < 50 else [decision, None, None, 3]
            assert_same(host.reset(seed=seed, options=chosen), device.reset(seed=seed, options=chosen))


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
    assert_same(expected[:4], device.step(actions.to(DEVICE))[:4])
    assert_same(expected[0], engine.step(actions.numpy())[0])
    with pytest.raises(ValueError, match="snapshot: array 'mechs' is missing"):
        device.restore({})
    assert_same(expected[0], device.restore(device.snapshot()))


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
@pytest.mark.parametrize("dead_agents", ["terminate", "persist"])
def test_battles_go_on_from_every_snapshot(mode, dead_agents):
    """Some of those that are restored are over, or come where the next battle was to start."""
    host, device = pair(battles=4, autoreset_mode=mode, dead_agents=dead_agents, max_steps=12)
    generator, kept, over = torch.Generator().manual_seed(3), [], 0
    host.reset(seed=[1, 2, 3, 4], options={}), device.reset(seed=[1, 2, 3, 4])
    for decision in range(150):
        actions = random_actions(host, generator)
        assert_same(what_counts(host.step(actions)), what_counts(device.step(actions.to(DEVICE))))
        kept.append(host.snapshot())
        if decision % 7 == 6:
            chosen = kept[-1 - int(torch.randint(6, (), generator=generator))]
            over += int(chosen["battles"]["over"].sum())
            assert_same(host.restore(chosen), device.restore(chosen))
    assert (over > 0) == (mode == "NEXT_STEP")


def test_a_battle_is_copied():
    host, device = pair()
    host.reset(seed=1), device.reset(seed=1)
    for envs in (host, device):
        envs.step(torch.zeros(3, 2, 27, device=envs.device))
        engine = envs.battle(2)
        assert_same(engine.observations[0], envs.restore(envs.snapshot())[2])
        assert engine.terrain().seed == engine.state.battles["map_seed"][0]
        with pytest.raises(IndexError, match="battle: expected 0 to 2, got 3"):
            envs.battle(3)


@pytest.mark.parametrize("number", [0, 1])
def test_before_the_first_reset(number):
    envs = pair()[number]
    actions = torch.zeros(3, 2, 27, device=envs.device)
    for name, arguments in [
        *(("step", (actions,)), ("state", ()), ("action_masks", ())),
        *(("snapshot", ()), ("restore", ({},)), ("battle", (0,))),
    ]:
        with pytest.raises(ResetNeeded, match=re.escape(f"{name}() needs battles: call reset() first")):
            getattr(envs, name)(*arguments)
    with pytest.raises(ResetNeeded, match="the first reset must start every battle"):
        envs.reset(options={"reset_mask": np.array([True, False, True])})


def test_autograd_notices_what_a_step_overwrites():
    _, device = pair()
    weight = torch.ones((), device=DEVICE, requires_grad=True)
    observations, _ = device.reset(seed=1)
    loss, late = ((weight * (observations.clone() if cloned else observations)).sum() for cloned in (True, False))
    device.step(torch.zeros(3, 2, 27, device=DEVICE))
    loss.backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        late.backward()


def test_battles_on_a_device_have_no_copy():
    _, device = pair()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=re.escape("cannot be copied or pickled: use snapshot()")):
            copied(device._battles)
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.deepcopy(device)


def test_bad_arguments():
    _, device = pair()
    device.reset(seed=0)
    for actions, message in [
        (torch.zeros(3, 2, 26), r"expected a tensor \(3, 2, 27\) on .*, got \(3, 2, 26\) on cpu"),
        (np.zeros((3, 2, 27)), "got ndarray"),
        (torch.zeros(3, 2, 27, dtype=torch.int64, device=DEVICE), "expected floats, got torch.int64"),
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
    assert_same(host.step(wild)[0], device.step(wild.clamp(min=0).minimum(sizes - 1).to(DEVICE))[0])


def test_a_pool_is_shared_with_others():
    pool = MapPool.generate("duel", 2, seed=5)
    device = OnDevice("duel", device=DEVICE, maps=pool)
    _, infos = device.reset(seed=1)
    assert int(infos["map_seed"][0]) in pool.seeds


def test_the_example_collects_the_same_everywhere():
    """It keeps nothing that a step overwrites."""
    example, batches = runpy.run_path(str(EXAMPLES / "gpu_ppo.py")), []
    classes = tuple(replace(each, armour=1.0, plating=0.0) for each in DEFAULT_CATALOG.mech_classes)
    weak = replace(DEFAULT_CATALOG, mech_classes=classes)  # so that mechs die
    for envs in pair("trio", 16, action="multi_discrete", autoreset_mode="SAME_STEP", max_steps=200, catalog=weak):
        torch.manual_seed(1)
        agent = example["Agent"](902, [int(size) for size in envs.single_action_space.nvec])
        observation, infos = envs.reset(seed=1)
        batch, observation, present = example["collect"](agent.to(envs.device), envs, observation, infos["present"])
        batches.append(batch | {"observation": observation, "last present": present})
    assert not batches[0]["present"].all()
    if DEVICE == "cpu":  # elsewhere networks round differently
        assert_same(*batches)
