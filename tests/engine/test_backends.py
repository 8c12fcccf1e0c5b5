"""All backends give the same bytes: the library at each level of the processor, Numba, and plain Python."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from echelon_env.engine import kernels
from echelon_env.engine.kernels import entry_point

PLAY = """
import hashlib
import os
import numpy as np
from echelon_env import BattleEngine, opponents
from echelon_env.config.catalog import AIR, CONCRETE, DEBRIS, FOLIAGE, LAVA, WATER
from echelon_env.engine import kernels
from echelon_env.engine.geometry import cosine_sine
from echelon_env.engine.state import EVENT_KINDS, NO_MECH
from echelon_env.layout.actions import Action
from echelon_env.networks.config import NetworkConfig
from echelon_env.evaluate import BattleNoise
from echelon_env.spaces.explain import explain_action
from networks.random_weights import random_player
from oracles.situations import set_voxels

if "LEVEL" in os.environ:
    kernels._choose()[1].level = os.environ["LEVEL"]
engine = BattleEngine("skirmish", 1, terrain={"size": 60, "height": 12}, combat={"aim_high": 0.4})
engine.reset([11])
mechs = engine.state.mechs[0]
voxels = np.full((12, 60, 60), AIR, np.uint8)
voxels[0, 20:24] = np.repeat([WATER, LAVA, DEBRIS, AIR], 15)
voxels[:2, 28, ::7] = CONCRETE
voxels[1:4, 28, 3::7] = FOLIAGE
set_voxels(engine.state, 0, voxels)
for i, mech in enumerate(mechs):  # two ranks, face to face, on a plain
    mech["x"], mech["y"], mech["z"] = 20 + 5 * (i % 5), 25 + 6 * (i // 5), 0
    mech["yaw"] = 1.5 if i < 5 else -1.5
    mech["facing_x"], mech["facing_y"] = cosine_sine(mech["yaw"])
    mech["armour"] /= 1 + i % 3
    mech["stability"] = 30
    mech["legs"] = 20
expert = opponents.make("expert@aim_error=0.3", 3, engine.config)
network = random_player(NetworkConfig(width=6, head=5, set_width=4, map_channels=2))
network = network.make(engine.config, BattleNoise([5], [0], engine.num_mechs))
noise = np.random.default_rng(10)
digest = hashlib.sha256()
kinds, remembered = set(), False
for decision in range(40):
    actions = noise.uniform(-1, 1, (1, engine.num_mechs, engine.action_dim)).astype(np.float32)
    actions[..., Action.PRIMARY : Action.VENT] = 1 if decision < 25 else -1
    actions[..., Action.VENT] = -1 if decision < 25 else 1
    if decision % 10 == 1:
        digest.update(expert.act(engine.observations[0].copy()).tobytes())
        parts = explain_action(engine, 0, 0, actions[0, 0], [str(i) for i in range(engine.num_mechs)])
        digest.update(repr(parts).encode())
        digest.update(network.act(engine.observations[0]).tobytes())
        digest.update(network.logits.tobytes())
    mechs["heat"][5] = 0.0  # a heavy that does not shut down, and intercepts
    engine.step(actions)
    kinds |= {EVENT_KINDS[kind] for kind in engine.events()["kind"]}
    remembered |= (engine.state.sightings["age"] > 0).any() and (mechs["intel"] != NO_MECH).any()
    for array in (*engine.state, *engine.out):
        digest.update(np.ascontiguousarray(array).tobytes())
assert kinds == set(EVENT_KINDS), set(EVENT_KINDS) - kinds
assert remembered
print(kernels.backend().name, digest.hexdigest())
"""

RANDOM = """
import hashlib
import os
import numpy as np
from campaigns.fuzz_battles import valid_config, wild_actions
from echelon_env import BattleEngine
from echelon_env.engine import kernels

if "LEVEL" in os.environ:
    kernels._choose()[1].level = os.environ["LEVEL"]
short, long = hashlib.sha256(), hashlib.sha256()
slow = kernels.backend().name == "python"
for case in range(3 if slow else 8):
    rng = np.random.default_rng(case)
    engine = BattleEngine(valid_config(rng))
    engine.reset([case])
    for decision in range(3 if slow else 30):
        engine.step(wild_actions(rng, (1, engine.num_mechs, engine.action_dim)))
        for array in (*engine.state, *engine.out):
            if case < 3 and decision < 3:
                short.update(np.ascontiguousarray(array).tobytes())
            long.update(np.ascontiguousarray(array).tobytes())
print(kernels.backend().name, short.hexdigest(), long.hexdigest())
"""
"""Random configurations with wild actions; Python, which is slow, plays the beginning of three battles."""


MATCHES = """
import os
from echelon_env import make_config
from echelon_env.engine import kernels
from echelon_env.evaluate import baseline, evaluation_seed, play_match

if "LEVEL" in os.environ:
    kernels._choose()[1].level = os.environ["LEVEL"]
print(kernels.backend().name)
seeds = [evaluation_seed(3, number) for number in range(1)]
for name in ("duel", "skirmish", "battle"):
    match = play_match(baseline("champion"), baseline("expert"), make_config(name), seeds, scenario=name)
    for battle in match.battles:
        print("/".join(map(str, (battle.outcome, battle.reason, battle.seconds, *battle.scores, *battle.survivors))))
    print(repr(match.classes).replace(" ", ""))
"""
"""Matches of the champions, whose results depend on every action."""


def play(program: str = PLAY, **environment: str) -> list[str]:
    """The backend that played, and the digests of all that happened."""
    for name in ("ECHELON_JIT", "NUMBA_DISABLE_JIT"):
        environment.setdefault(name, "0")
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=os.environ | environment | {"PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@pytest.mark.long
def test_all_backends_give_the_same_bytes():
    (name, digest), interpreted = play(ECHELON_JIT="1"), play(NUMBA_DISABLE_JIT="1")
    assert name == "jit"
    assert interpreted == ["python", digest]
    levels = levels_of_the_library()
    assert [play(LEVEL=level) for level in levels] == [["library", digest]] * len(levels)


@pytest.mark.long
def test_random_configurations_have_the_same_bytes_everywhere():
    name, *digests = play(RANDOM, ECHELON_JIT="1")
    assert name == "jit"
    assert [play(RANDOM, LEVEL=level)[1:] for level in levels_of_the_library()] == [digests] * len(
        levels_of_the_library()
    )
    assert play(RANDOM, NUMBA_DISABLE_JIT="1")[:2] == ["python", digests[0]]


@pytest.mark.long
def test_the_champions_matches_have_the_same_results_everywhere():
    name, *results = play(MATCHES, ECHELON_JIT="1")
    assert name == "jit" and len(results) == 3 * (2 + 1)
    levels = levels_of_the_library()
    assert [play(MATCHES, LEVEL=level) for level in levels] == [["library", *results]] * len(levels)


def levels_of_the_library() -> list[str]:
    library = kernels._choose()[1]
    return [] if library is None else library.levels


@pytest.mark.skipif(kernels.backend().name != "library", reason="this checkout has no library")
def test_with_the_library_no_compiler_is_imported():
    code = """
import sys
import echelon_env
engine = echelon_env.BattleEngine("skirmish")
echelon_env.opponents.make("expert", 0, engine.config).act(engine.reset([1])[0].copy())
assert "numba" not in sys.modules and "llvmlite" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"ECHELON_JIT": "0"}, check=True)


def test_without_a_library_and_numba_a_call_says_what_to_install(monkeypatch):
    monkeypatch.setattr(
        kernels, "_choose", lambda: (kernels.Backend("none", "no library is installed for plan9"), None)
    )

    @entry_point
    def double(x):
        return 2 * x

    with pytest.raises(
        kernels.BackendError, match=r"no library is installed for plan9; .*pip install 'echelon-env\[jit"
    ):
        double(21)
