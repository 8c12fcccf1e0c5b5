import os
import subprocess
import sys
from pathlib import Path

import pytest

from echelon_env.engine import _jit

TESTS = str(Path(__file__).parent.parent)

PLAY = """
import hashlib
import numpy as np
from echelon_env import BattleEngine
from echelon_env.actions import Action
from echelon_env.catalog import AIR, CONCRETE, DEBRIS, FOLIAGE, LAVA, WATER
from echelon_env.engine.geometry import cosine_sine
from echelon_env.engine.state import EVENT_KINDS, NO_MECH
from oracles.situations import set_voxels

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
noise = np.random.default_rng(8)
digest = hashlib.sha256()
kinds = set()
for decision in range(40):
    actions = noise.uniform(-1, 1, (1, engine.num_mechs, engine.action_dim)).astype(np.float32)
    actions[..., Action.PRIMARY : Action.VENT] = 1 if decision < 25 else -1
    actions[..., Action.VENT] = -1 if decision < 25 else 1
    engine.step(actions)
    kinds |= {EVENT_KINDS[kind] for kind in engine.events()["kind"]}
    for array in (*engine.state, *engine.out):
        digest.update(np.ascontiguousarray(array).tobytes())
assert kinds == set(EVENT_KINDS), set(EVENT_KINDS) - kinds
assert (engine.state.sightings["age"] > 0).any() and (mechs["intel"] != NO_MECH).any()
print(digest.hexdigest())
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | environment | {"PYTHONPATH": TESTS}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_without_the_jit_a_battle_has_the_same_bytes():
    compiled, interpreted = run(PLAY), run(PLAY, NUMBA_DISABLE_JIT="1")
    assert compiled.returncode == interpreted.returncode == 0, compiled.stderr + interpreted.stderr
    assert compiled.stdout == interpreted.stdout


LOAD = """
from pathlib import Path
from echelon_env.engine import _jit
@_jit.entry_point
def double(x):
    return 2 * x
assert double(21) == 42
print(_jit.cache_directory(Path(__file__).parent))
"""


def compiles(result: subprocess.CompletedProcess) -> bool:
    assert result.returncode == 0, result.stderr
    return "compiling kernels (first run only)" in result.stderr


@pytest.fixture
def script(tmp_path):
    """A file with an entry point: Numba caches only functions that come from files."""
    path = tmp_path / "load.py"
    path.write_text(LOAD)

    def call(**environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, str(path)], env=os.environ | environment, capture_output=True, text=True, check=False
        )

    return call


def test_compiled_code_is_kept_in_the_cache_directory(script, tmp_path):
    cache = tmp_path / "cache"
    assert compiles(script(ECHELON_CACHE_DIR=str(cache)))
    assert not compiles(script(ECHELON_CACHE_DIR=str(cache)))
    assert list(cache.rglob("*.nbi"))


def test_a_damaged_cache_is_compiled_anew(script, tmp_path):
    cache = tmp_path / "cache"
    script(ECHELON_CACHE_DIR=str(cache))
    for file in (*cache.rglob("*.nbi"), *cache.rglob("*.nbc")):
        file.write_bytes(b"damaged")
    assert compiles(script(ECHELON_CACHE_DIR=str(cache)))


def test_an_unwritable_cache_directory_falls_back(script, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    home = tmp_path / "home"
    result = script(ECHELON_CACHE_DIR=str(blocked), XDG_CACHE_HOME=str(home))
    assert result.returncode == 0
    assert str(home) in result.stdout


def test_without_any_writable_directory_nothing_is_kept(tmp_path):
    code = """
from echelon_env.engine import _jit
_jit.cache_directory = lambda folder: None
@_jit.entry_point
def double(state):
    return 2 * state
assert double(21) == 42
"""
    assert run(code).returncode == 0


def test_a_full_disk_costs_only_the_cache(script, tmp_path):
    code = f"""
import errno, runpy
from echelon_env.engine import _jit
from numba.core.caching import IndexDataCacheFile
def full(self, *args):
    raise OSError(errno.ENOSPC, "No space left on device")
IndexDataCacheFile.save = full
runpy.run_path({str(tmp_path / "load.py")!r})
"""
    result = run(code, ECHELON_CACHE_DIR=str(tmp_path / "cache"))
    assert result.returncode == 0, result.stderr
    assert "could not be kept" in result.stderr


def test_the_hash_follows_the_sources_and_numba(monkeypatch, tmp_path):
    from echelon_env.engine import _jit

    imported = _jit.imported_hash(tmp_path)
    assert imported == _jit.source_hash(tmp_path)
    assert imported in str(_jit.cache_directory(tmp_path))
    (tmp_path / "kernels.py").write_text("ONE = 1\n")
    edited = _jit.source_hash(tmp_path)
    assert edited != imported
    monkeypatch.setattr(_jit.numba, "__version__", "0.0")
    assert _jit.source_hash(tmp_path) not in (imported, edited)
    assert _jit.imported_hash(tmp_path) == imported


def test_code_compiled_from_edited_sources_is_not_kept(tmp_path, script):
    """Compiled code is of the sources that were imported; a directory named by others must not get it."""
    cache = tmp_path / "cache"
    code = f"""
import runpy
from echelon_env.engine import _jit
_jit.source_hash = lambda folder, hashes=iter(range(9)): str(next(hashes))
runpy.run_path({str(tmp_path / "load.py")!r})
"""
    assert compiles(run(code, ECHELON_CACHE_DIR=str(cache)))
    assert not list(cache.rglob("*.nbi"))


def test_inner_kernels_are_compiled_within_their_callers_only():
    """With a Numba whose insides are others everything works, but compiles a third longer: find the new way then."""
    assert "pipeline_class" in _jit._INNER
